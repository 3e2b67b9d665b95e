/* The huge page's figures as text, CSV and JSON; see bench_hugepage.h. */
#include <math.h>
#include <stdio.h>

#include "calibctl/bench_csv.h"
#include "calibctl/bench_hugepage.h"
#include "calibctl/output.h"
#include "calibctl/words.h"

static const char *page_words(bool base_pages)
{
	return base_pages ? "base" : "huge";
}

static const char *direction_words(const struct hugepage_way *way)
{
	return way->backward ? "backward" : "forward";
}

static void warn_pages(const struct hugepage_table *table, const struct bench_stand *stand)
{
	if (!table->knows_huge)
		bench_warn(stand, "this OS does not tell whether it gave huge pages");
	else if (table->runs_huge < table->runs)
		bench_warn(stand, "the OS gave no huge pages, or not all, in some mappings: 'a huge page' is base "
		                  "pages there");
}

/* --- for people -------------------------------------------------------------------------------------------------- */

static void add_way(struct columns *columns, const struct hugepage_way *way)
{
	const struct variance *variance = &way->variance;
	char text[WORDS_SHORT];

	columns_row(columns, STYLE_PLAIN);
	columns_cell(columns, "%s", pc_kernels[way->kernel].name);
	words_size(way->chunk, text);
	columns_cell(columns, "%s", way->chunk == HUGEPAGE_BYTES ? "whole" : text);
	columns_cell(columns, "%s", way->chunk == HUGEPAGE_BYTES ? "" : direction_words(way));
	words_ns(variance->mean, text);
	columns_cell(columns, "%s", text);
	words_ns(variance->median, text);
	columns_cell(columns, "%s", text);
	words_ns(variance->stdev, text);
	columns_cell(columns, "%s", text);
	words_percent(variance->stdev / variance->mean, text);
	columns_cell(columns, "%s", text);
	for (enum variance_part part = 0; part < VARIANCE_PARTS; part++) {
		words_percent(variance->share[part], text);
		columns_cell(columns, "%s", text);
	}
}

static int print_pages(const struct hugepage_table *table, bool base_pages)
{
	static const char *const titles[] = {"kernel", "chunk", "",        "mean",  "median",    "stdev",
	                                     "",       "taint", "warm-up", "clock", "placement", "rest"};
	struct columns *columns;
	int r = columns_new(&columns, "lllrrrrrrrrr");

	if (r < 0)
		return r;
	output_line(STYLE_HEADING, "\n%s", base_pages ? "2 MiB of base pages (control)" : "a huge page of 2 MiB");
	columns_row(columns, STYLE_HEADING);
	for (size_t i = 0; i < sizeof(titles) / sizeof(titles[0]); i++)
		columns_cell(columns, "%s", titles[i]);
	for (size_t i = 0; i < table->count; i++)
		if (table->ways[i].base_pages == base_pages)
			add_way(columns, &table->ways[i]);
	r = columns_print(columns);
	columns_free(columns);
	return r;
}

static void print_ratio(const char *what, const struct hugepage_ratio *ratio)
{
	output_field("", "%s: %.2f to %.2f times, depending on the kernel", what, ratio->least, ratio->most);
}

static void print_summary(const struct hugepage_table *table, bool base_pages)
{
	struct hugepage_summary summary;
	struct hugepage_ratio ratio;
	char words[HUGEPAGE_WORDS], deviation[WORDS_SHORT], clean[WORDS_SHORT];

	hugepage_summarise(&summary, table, base_pages);
	hugepage_words(&summary, words);
	words_percent(summary.relative_stdev, deviation);
	words_percent(summary.clean_relative_stdev, clean);
	output_field(base_pages ? "base pages" : "huge page",
	             "standard deviation %s of the mean, %s without disturbed samples (medians of %zu ways); %s",
	             deviation, clean, summary.count, words);
	if (hugepage_chunk_ratio(&ratio, table, 4096, base_pages))
		print_ratio("4 KiB a call against the whole at once", &ratio);
	if (hugepage_chunk_ratio(&ratio, table, 65536, base_pages))
		print_ratio("64 KiB a call against the whole at once", &ratio);
	if (hugepage_backward_ratio(&ratio, table, base_pages))
		print_ratio("backward against forward", &ratio);
}

static void print_head(const struct hugepage_table *table, const struct bench_stand *stand)
{
	size_t samples = 0, tainted = 0;

	for (size_t i = 0; i < table->count; i++) {
		samples += table->ways[i].variance.count;
		tainted += table->ways[i].variance.tainted;
	}
	bench_print_head(stand);
	output_field("samples",
	             "%zu from %s memory over %u mapping%s, %zu of them disturbed (kept: they are part of the "
	             "answer)",
	             samples, table->count > 0 ? pc_prior_name(table->ways[0].prior) : "no", table->runs,
	             table->runs == 1 ? "" : "s", tainted);
	if (table->raced)
		output_field("kernels", "libc and the best of each other family in a short race beforehand");
	output_field("shares",
	             "taint: of the variance; the others: of the variance without disturbed samples, of which they "
	             "make 100 %%");
	warn_pages(table, stand);
}

int hugepage_print(const struct hugepage_table *table, const struct bench_stand *stand)
{
	int r;

	print_head(table, stand);
	r = print_pages(table, false);
	if (r == 0)
		r = print_pages(table, true);
	if (r < 0 || table->count == 0)
		return r;
	output_line(STYLE_HEADING, "\nWhere the deviation comes from");
	print_summary(table, false);
	print_summary(table, true);
	return 0;
}

/* --- for programs ------------------------------------------------------------------------------------------------ */

static void csv_way(struct bench_csv *csv, const struct hugepage_table *table, const struct hugepage_way *way)
{
	const struct variance *variance = &way->variance;

	bench_csv_text(csv, page_words(way->base_pages));
	bench_csv_text(csv, pc_prior_name(way->prior));
	bench_csv_text(csv, pc_kernels[way->kernel].name);
	bench_csv_whole(csv, way->chunk);
	bench_csv_text(csv, direction_words(way));
	bench_csv_whole(csv, table->runs);
	bench_csv_whole(csv, variance->count);
	bench_csv_whole(csv, variance->tainted);
	bench_csv_number(csv, variance->mean / 1000);
	bench_csv_number(csv, variance->median / 1000);
	bench_csv_number(csv, variance->stdev / 1000);
	bench_csv_number(csv, variance->clean_mean / 1000);
	bench_csv_number(csv, variance->clean_stdev / 1000);
	bench_csv_number(csv, variance->clock_correlation);
	for (enum variance_part part = 0; part < VARIANCE_PARTS; part++)
		bench_csv_number(csv, variance->share[part]);
	bench_csv_text(csv, "");
	bench_csv_end(csv);
}

/* A kernel that is not measured has one row, with nothing in it but its name and the reason. */
static void csv_obstacle(struct bench_csv *csv, const char *kernel, const char *reason)
{
	for (unsigned column = 0; column < 19; column++)
		bench_csv_text(csv, column == 2 ? kernel : "");
	bench_csv_text(csv, reason);
	bench_csv_end(csv);
}

void hugepage_csv(const struct hugepage_table *table, const struct bench_stand *stand, FILE *out)
{
	static const char *const names[] = {"page",
	                                    "prior",
	                                    "kernel",
	                                    "chunk_bytes",
	                                    "direction",
	                                    "mappings",
	                                    "samples",
	                                    "tainted",
	                                    "mean_us",
	                                    "median_us",
	                                    "stdev_us",
	                                    "untainted_mean_us",
	                                    "untainted_stdev_us",
	                                    "clock_correlation",
	                                    "taint_share",
	                                    "warm_up_share",
	                                    "clock_share",
	                                    "placement_share",
	                                    "rest_share",
	                                    "note",
	                                    NULL};
	struct bench_csv csv = {.out = out};

	bench_warn_stopped(stand);
	warn_pages(table, stand);
	bench_csv_header(&csv, names);
	for (size_t i = 0; i < table->count; i++)
		csv_way(&csv, table, &table->ways[i]);
	for (unsigned kernel = 0; kernel < pc_kernel_count; kernel++)
		if (stand->obstacles[kernel][0] != '\0')
			csv_obstacle(&csv, pc_kernels[kernel].name, stand->obstacles[kernel]);
}

static json_t *json_shares(const double share[VARIANCE_PARTS])
{
	json_t *shares = json_object();

	for (enum variance_part part = 0; part < VARIANCE_PARTS; part++)
		json_object_set_new(shares, variance_part_name(part), output_json_number(share[part]));
	return shares;
}

static json_t *json_way(const struct hugepage_way *way)
{
	const struct variance *variance = &way->variance;

	return json_pack("{s:s, s:s, s:s, s:o, s:s, s:i, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "page",
	                 page_words(way->base_pages), "prior", pc_prior_name(way->prior), "kernel",
	                 pc_kernels[way->kernel].name, "chunk_bytes", output_json_bytes(way->chunk), "direction",
	                 direction_words(way), "samples", (int)variance->count, "tainted", (int)variance->tainted,
	                 "mean_ns", output_json_number(variance->mean), "median_ns",
	                 output_json_number(variance->median), "stdev_ns", output_json_number(variance->stdev),
	                 "untainted_mean_ns", output_json_number(variance->clean_mean), "untainted_stdev_ns",
	                 output_json_number(variance->clean_stdev), "clock_correlation",
	                 output_json_number(variance->clock_correlation), "shares", json_shares(variance->share));
}

static json_t *json_summary(const struct hugepage_table *table, bool base_pages)
{
	struct hugepage_summary summary;
	char words[HUGEPAGE_WORDS];

	hugepage_summarise(&summary, table, base_pages);
	hugepage_words(&summary, words);
	return json_pack("{s:s, s:i, s:o, s:o, s:o, s:s}", "page", page_words(base_pages), "ways", (int)summary.count,
	                 "relative_stdev", output_json_number(summary.relative_stdev), "untainted_relative_stdev",
	                 output_json_number(summary.clean_relative_stdev), "shares", json_shares(summary.share),
	                 "words", words);
}

json_t *hugepage_json(const struct hugepage_table *table, const struct bench_stand *stand)
{
	json_t *root = bench_json_head(stand, table->runs), *cells = json_array();

	for (size_t i = 0; i < table->count; i++)
		json_array_append_new(cells, json_way(&table->ways[i]));
	int r = json_object_update_new(
		root, json_pack("{s:b, s:o, s:o, s:[o, o]}", "raced", table->raced, "runs_all_huge",
	                        table->knows_huge ? json_integer(table->runs_huge) : json_null(), "cells", cells,
	                        "summaries", json_summary(table, false), json_summary(table, true)));
	if (r < 0) {
		json_decref(root);
		return NULL;
	}
	return root;
}
