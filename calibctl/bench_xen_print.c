/* Xen's table as text, CSV and JSON; see bench_xen.h. */
#include <stdio.h>

#include "calibctl/bench_csv.h"
#include "calibctl/bench_xen.h"
#include "calibctl/output.h"
#include "calibctl/words.h"

/* As the thread calls them. */
static const char *prior_words(enum pc_prior prior)
{
	return prior == PC_CACHED ? "cached (warm)" : "flushed (cold)";
}

/* --- for people -------------------------------------------------------------------------------------------------- */

/* "9.54 +-0.12 ns"; "-" where nothing undisturbed was seen. */
static void add_values(struct columns *columns, const struct bench_values *values)
{
	char median[WORDS_SHORT], spread[WORDS_SHORT];

	words_ns(bench_values_median(values), median);
	words_ns(bench_values_mad(values), spread);
	if (values->count < 2)
		columns_cell(columns, "%s", median);
	else
		columns_cell(columns, "%s +-%s", median, spread);
}

static void add_kernel(struct columns *columns, const struct xen_cell *cell, unsigned kernel)
{
	columns_row(columns, STYLE_PLAIN);
	columns_cell(columns, "%s", pc_kernels[kernel].name);
	add_values(columns, &cell->clear_ns);
	add_values(columns, &cell->pre_ns);
	add_values(columns, &cell->post_ns);
	add_values(columns, &cell->displaced_ns);
	columns_cell(columns, "%u", cell->samples - cell->tainted);
	columns_cell(columns, "%u", cell->tainted);
}

static int print_block(const struct xen_table *table, size_t victim, enum pc_prior prior)
{
	static const char *const titles[] = {"kernel", "clear", "pre", "post", "displaced", "samples", "dropped"};
	const struct xen_victim *what = &table->victims[victim];
	char read[WORDS_SHORT], cleared[WORDS_SHORT];
	struct columns *columns;
	int r = columns_new(&columns, "lrrrrrr");

	if (r < 0)
		return r;
	words_size(what->victim_bytes, read);
	words_size(what->target_bytes, cleared);
	output_line(STYLE_HEADING, "\n%s, %s: clear %s, victim of %s%s", what->name, prior_words(prior), cleared, read,
	            what->assumed ? " (assumed: this host does not tell that cache's size)" : "");
	columns_row(columns, STYLE_HEADING);
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		columns_cell(columns, "%s", titles[i]);
	for (unsigned kernel = 0; kernel < pc_kernel_count; kernel++)
		if ((table->kernels >> kernel & 1) != 0)
			add_kernel(columns, xen_cell(table, victim, prior, kernel), kernel);
	r = columns_print(columns);
	columns_free(columns);
	return r;
}

int xen_print(const struct xen_table *table, const struct bench_stand *stand)
{
	int r = 0;

	bench_print_head(stand);
	output_field("figures",
	             "medians over %u run%s +- median absolute deviation; clear: of the whole target; pre, post: a "
	             "line of the victim, read without a clear and after it; displaced: post less the pre beside it",
	             table->runs, table->runs == 1 ? "" : "s");
	for (size_t victim = 0; victim < table->victim_count; victim++)
		for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED && r == 0; prior++)
			if ((table->priors >> prior & 1) != 0)
				r = print_block(table, victim, prior);
	return r;
}

/* --- for programs ------------------------------------------------------------------------------------------------ */

static void csv_values(struct bench_csv *csv, const struct bench_values *values)
{
	bench_csv_number(csv, bench_values_median(values));
	bench_csv_number(csv, bench_values_mad(values));
}

static void csv_row(struct bench_csv *csv, const struct xen_table *table, const struct bench_stand *stand,
                    size_t victim, enum pc_prior prior, unsigned kernel)
{
	const struct xen_cell *cell = xen_cell(table, victim, prior, kernel);
	const char *obstacle = stand->obstacles[kernel];

	bench_csv_text(csv, table->victims[victim].name);
	bench_csv_whole(csv, table->victims[victim].victim_bytes);
	bench_csv_whole(csv, table->victims[victim].target_bytes);
	bench_csv_text(csv, pc_prior_name(prior));
	bench_csv_text(csv, pc_kernels[kernel].name);
	csv_values(csv, &cell->clear_ns);
	csv_values(csv, &cell->pre_ns);
	csv_values(csv, &cell->post_ns);
	csv_values(csv, &cell->displaced_ns);
	bench_csv_whole(csv, cell->samples);
	bench_csv_whole(csv, cell->tainted);
	bench_csv_text(csv, obstacle[0] != '\0'         ? obstacle
	                    : cell->clear_ns.count == 0 ? "every sample was disturbed"
	                                                : "");
	bench_csv_end(csv);
}

void xen_csv(const struct xen_table *table, const struct bench_stand *stand, FILE *out)
{
	static const char *const names[] = {"victim",
	                                    "victim_bytes",
	                                    "target_bytes",
	                                    "prior",
	                                    "kernel",
	                                    "clear_ns",
	                                    "clear_mad_ns",
	                                    "pre_ns_per_line",
	                                    "pre_mad_ns_per_line",
	                                    "post_ns_per_line",
	                                    "post_mad_ns_per_line",
	                                    "displaced_ns_per_line",
	                                    "displaced_mad_ns_per_line",
	                                    "samples",
	                                    "tainted",
	                                    "note",
	                                    NULL};
	struct bench_csv csv = {.out = out};

	bench_warn_stopped(stand);
	bench_csv_header(&csv, names);
	for (size_t victim = 0; victim < table->victim_count; victim++)
		for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED; prior++)
			for (unsigned kernel = 0; kernel < pc_kernel_count; kernel++)
				if ((table->priors >> prior & 1) != 0 &&
				    ((table->kernels >> kernel & 1) != 0 || stand->obstacles[kernel][0] != '\0'))
					csv_row(&csv, table, stand, victim, prior, kernel);
}

static json_t *json_values(const struct bench_values *values)
{
	return json_pack("{s:o, s:o}", "median", output_json_number(bench_values_median(values)), "mad",
	                 output_json_number(bench_values_mad(values)));
}

static json_t *json_cell(const struct xen_table *table, size_t victim, enum pc_prior prior, unsigned kernel)
{
	const struct xen_cell *cell = xen_cell(table, victim, prior, kernel);
	const struct xen_victim *what = &table->victims[victim];

	return json_pack("{s:s, s:b, s:o, s:o, s:s, s:s, s:o, s:o, s:o, s:o, s:i, s:i}", "victim", what->name,
	                 "size_assumed", what->assumed, "victim_bytes", output_json_bytes(what->victim_bytes),
	                 "target_bytes", output_json_bytes(what->target_bytes), "prior", pc_prior_name(prior), "kernel",
	                 pc_kernels[kernel].name, "clear_ns", json_values(&cell->clear_ns), "pre_ns_per_line",
	                 json_values(&cell->pre_ns), "post_ns_per_line", json_values(&cell->post_ns),
	                 "displaced_ns_per_line", json_values(&cell->displaced_ns), "samples", (int)cell->samples,
	                 "tainted", (int)cell->tainted);
}

json_t *xen_json(const struct xen_table *table, const struct bench_stand *stand)
{
	json_t *root = bench_json_head(stand, table->runs), *cells = json_array();

	for (size_t victim = 0; victim < table->victim_count; victim++)
		for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED; prior++)
			for (unsigned kernel = 0; kernel < pc_kernel_count; kernel++)
				if ((table->priors >> prior & 1) != 0 && (table->kernels >> kernel & 1) != 0)
					json_array_append_new(cells, json_cell(table, victim, prior, kernel));
	if (json_object_set_new(root, "cells", cells) < 0) {
		json_decref(root);
		return NULL;
	}
	return root;
}
