/* The kernel patch's table as text, CSV and JSON; see bench_table.h. */
#include <math.h>
#include <stdio.h>

#include "calibctl/bench_csv.h"
#include "calibctl/bench_table.h"
#include "calibctl/output.h"
#include "calibctl/words.h"

/* Of a line: the size, then cells like "*14.4 +-1.6 (11 %)". */
enum { NAME_WIDTH = 10, CELL_WIDTH = 20, BAND = (OUTPUT_WIDTH - NAME_WIDTH) / CELL_WIDTH };

static const char cut_words[] = "larger sizes are left out: too little memory is available";

/* The rows of a figure that is measured: GB/s, its deviation over runs, and that over the figure. */
struct shown {
	double mean, stdev, relative;
};

static struct shown show(const struct bench_cell *cell)
{
	double mean = bench_values_mean(&cell->runs), stdev = bench_values_stdev(&cell->runs);

	return (struct shown){mean, stdev, stdev / mean};
}

static void bandwidth(double gb_per_s, char out[WORDS_SHORT])
{
	words_rate(1000000000, 1e9 / gb_per_s, out);
}

static void warn_cut(const struct bench_grid *grid, const struct bench_stand *stand)
{
	if (grid->cut)
		bench_warn(stand, cut_words);
}

/* --- for people -------------------------------------------------------------------------------------------------- */

static void add_cell(struct columns *columns, const struct bench_cell *cell, bool best)
{
	struct shown shown = show(cell);
	char mean[WORDS_SHORT], stdev[WORDS_SHORT], relative[WORDS_SHORT];
	const char *mark = best ? "*" : "";

	bandwidth(shown.mean, mean);
	bandwidth(shown.stdev, stdev);
	words_percent(shown.relative, relative);
	if (isnan(shown.mean))
		columns_cell(columns, "-");
	else if (isnan(shown.stdev))
		columns_cell(columns, "%s%s", mark, mean);
	else
		columns_cell(columns, "%s%s +-%s (%s)", mark, mean, shown.stdev > 0 ? stdev : "0.00", relative);
}

/* Some of the kernels; all would be wider than a terminal. */
static int print_band(const struct bench_grid *grid, enum pc_prior prior, const unsigned *kernels, size_t count)
{
	struct columns *columns;
	int r = columns_new(&columns, "lrrrrrrr");

	if (r < 0)
		return r;
	columns_row(columns, STYLE_HEADING);
	columns_cell(columns, "size");
	for (size_t i = 0; i < count; i++)
		columns_cell(columns, "%s", pc_kernels[kernels[i]].name);
	for (size_t size = 0; size < grid->size_count; size++) {
		char text[WORDS_SHORT];

		words_size(grid->sizes[size], text);
		columns_row(columns, STYLE_PLAIN);
		columns_cell(columns, "%s", text);
		for (size_t i = 0; i < count; i++)
			add_cell(columns, bench_grid_cell(grid, prior, size, kernels[i]),
			         bench_grid_best(grid, prior, size) == (int)kernels[i]);
	}
	r = columns_print(columns);
	columns_free(columns);
	return r;
}

static int print_prior(const struct bench_grid *grid, enum pc_prior prior)
{
	unsigned kernels[PC_KERNEL_MAX];
	size_t count = 0, bands, width;
	int r = 0;

	for (unsigned kernel = 0; kernel < pc_kernel_count; kernel++)
		if ((grid->kernels >> kernel & 1) != 0)
			kernels[count++] = kernel;
	bands = (count + BAND - 1) / BAND;
	width = bands > 0 ? (count + bands - 1) / bands : 1;
	output_line(STYLE_HEADING, "\n%s   (%s)", pc_prior_name(prior), words_prior_meaning(prior));
	for (size_t first = 0; first < count && r == 0; first += width) {
		if (first > 0)
			putchar('\n');
		r = print_band(grid, prior, kernels + first, count - first < width ? count - first : width);
	}
	return r;
}

static void print_taint(const struct bench_grid *grid)
{
	unsigned samples = 0, tainted = 0;

	for (size_t i = 0; i < (size_t)PC_PRIORS * BENCH_SIZES * PC_KERNEL_MAX; i++) {
		samples += grid->cells[i].samples;
		tainted += grid->cells[i].tainted;
	}
	output_field("samples", "%u; %u of them disturbed and dropped", samples, tainted);
}

int bench_grid_print(const struct bench_grid *grid, const struct bench_stand *stand)
{
	int r = 0;

	bench_print_head(stand);
	print_taint(grid);
	output_field("figures",
	             "GB/s (10^9 bytes a second), mean of %u run%s +- standard deviation over them (and as a share); "
	             "* best of its row",
	             grid->runs, grid->runs == 1 ? "" : "s");
	warn_cut(grid, stand);
	for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED && r == 0; prior++)
		if ((grid->priors >> prior & 1) != 0)
			r = print_prior(grid, prior);
	return r;
}

/* --- for programs ------------------------------------------------------------------------------------------------ */

static const char *note(const struct bench_stand *stand, const struct bench_cell *cell, unsigned kernel)
{
	if (stand->obstacles[kernel][0] != '\0')
		return stand->obstacles[kernel];
	return cell->runs.count == 0 ? "every sample was disturbed" : "";
}

static bool is_listed(const struct bench_grid *grid, const struct bench_stand *stand, unsigned kernel)
{
	return (grid->kernels >> kernel & 1) != 0 || stand->obstacles[kernel][0] != '\0';
}

static void csv_row(struct bench_csv *csv, const struct bench_grid *grid, const struct bench_stand *stand,
                    enum pc_prior prior, size_t size, unsigned kernel)
{
	const struct bench_cell *cell = bench_grid_cell(grid, prior, size, kernel);
	struct shown shown = show(cell);

	bench_csv_text(csv, pc_prior_name(prior));
	bench_csv_whole(csv, grid->sizes[size]);
	bench_csv_text(csv, pc_kernels[kernel].name);
	bench_csv_number(csv, shown.mean);
	bench_csv_number(csv, shown.stdev);
	bench_csv_number(csv, shown.relative);
	bench_csv_whole(csv, cell->runs.count);
	bench_csv_whole(csv, cell->samples);
	bench_csv_whole(csv, cell->tainted);
	bench_csv_whole(csv, bench_grid_best(grid, prior, size) == (int)kernel);
	bench_csv_text(csv, note(stand, cell, kernel));
	bench_csv_end(csv);
}

void bench_grid_csv(const struct bench_grid *grid, const struct bench_stand *stand, FILE *out)
{
	static const char *const names[] = {"prior",          "size_bytes",     "kernel", "gb_per_s",
	                                    "stdev_gb_per_s", "relative_stdev", "runs",   "samples",
	                                    "tainted",        "best",           "note",   NULL};
	struct bench_csv csv = {.out = out};

	bench_warn_stopped(stand);
	warn_cut(grid, stand);
	bench_csv_header(&csv, names);
	for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED; prior++)
		for (size_t size = 0; size < grid->size_count && (grid->priors >> prior & 1) != 0; size++)
			for (unsigned kernel = 0; kernel < pc_kernel_count; kernel++)
				if (is_listed(grid, stand, kernel))
					csv_row(&csv, grid, stand, prior, size, kernel);
}

static json_t *json_cell(const struct bench_grid *grid, enum pc_prior prior, size_t size, unsigned kernel)
{
	const struct bench_cell *cell = bench_grid_cell(grid, prior, size, kernel);
	struct shown shown = show(cell);

	return json_pack("{s:s, s:o, s:s, s:o, s:o, s:o, s:i, s:i, s:i, s:b}", "prior", pc_prior_name(prior),
	                 "size_bytes", output_json_bytes(grid->sizes[size]), "kernel", pc_kernels[kernel].name,
	                 "gb_per_s", output_json_number(shown.mean), "stdev_gb_per_s", output_json_number(shown.stdev),
	                 "relative_stdev", output_json_number(shown.relative), "runs", (int)cell->runs.count, "samples",
	                 (int)cell->samples, "tainted", (int)cell->tainted, "best",
	                 bench_grid_best(grid, prior, size) == (int)kernel);
}

json_t *bench_grid_json(const struct bench_grid *grid, const struct bench_stand *stand)
{
	json_t *root = bench_json_head(stand, grid->runs), *cells = json_array();

	for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED; prior++)
		for (size_t size = 0; size < grid->size_count && (grid->priors >> prior & 1) != 0; size++)
			for (unsigned kernel = 0; kernel < pc_kernel_count; kernel++)
				if ((grid->kernels >> kernel & 1) != 0)
					json_array_append_new(cells, json_cell(grid, prior, size, kernel));
	json_t *warnings = json_array();

	if (grid->cut)
		json_array_append_new(warnings, json_string(cut_words));
	if (json_object_update_new(root, json_pack("{s:o, s:o}", "warnings", warnings, "cells", cells)) < 0) {
		json_decref(root);
		return NULL;
	}
	return root;
}
