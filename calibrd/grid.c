/* Builds the cells of a table; see grid.h. The limits are design section 7's. */
#include "calibrd/grid.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibrd/grid_parts.h"
#include "pageclear/policy.h"

static const double most_octaves = 2; /* between sizes that are interpolated between: one of a coarse grid left out */

/* --- cells ------------------------------------------------------------------------------------------------------- */

static int fill_cell(struct cell *cell, const struct grid_pairs *pairs)
{
	const struct cost_points *points = &pairs->points;

	cell->l = costs_centre(points, cell->epoch);
	cell->ratio = exp(-cell->l);
	if (points->count == 0 || isnan(cell->l))
		return 0;
	cell->pairs = malloc(points->count * sizeof(*cell->pairs));
	if (cell->pairs == NULL)
		return -ENOMEM;
	memcpy(cell->pairs, points->value, points->count * sizeof(*cell->pairs));
	cell->count = points->count;
	cell->measured = true;
	cell->interval = stats_median_interval(cell->pairs, cell->count, 0.95);
	cell->worse = pairs->guarded ? pairs->against.worse : cell->l;
	cell->forbidden = pairs->against.broken || grid_surely_loses(points, GRID_SLOWER);
	cell->doubtful =
		!cell->forbidden && (cell->interval.low > GRID_SLOWER || (pairs->guarded && cell->worse > GRID_GUARD));
	return 0;
}

static bool is_small(const struct grid *grid, size_t size)
{
	return grid->bytes[size] < GRID_LEAST_BYTES;
}

static int build_cell(struct grid *grid, const struct dataset *data, size_t size, unsigned kernel, double weight)
{
	struct cell *cell = grid_cell(grid, size, kernel);
	struct grid_pairs pairs;
	int r;

	grid_pairs(data, grid, grid->bytes[size], kernel, weight, &pairs);
	r = fill_cell(cell, &pairs);
	cell->doubtful = cell->doubtful || is_small(grid, size);
	if (grid->intent == PAGECLEAR_SCRUB)
		cell->ratio = pairs.ratio;
	if (kernel == 0) { /* the measure of all: there even where the two priors share no epoch, so hold no pair */
		cell->measured = true;
		cell->ratio = 1;
		cell->l = cell->worse = 0;
		cell->forbidden = cell->doubtful = false;
	}
	return r;
}

/* --- the grid ---------------------------------------------------------------------------------------------------- */

static bool has_libc(const struct dataset *data, const struct grid *grid, uint64_t bytes)
{
	struct cost_points points;
	struct cost_key key = {COST_CLEAR, PC_FLUSHED, bytes, grid->threads};

	if (grid->intent == PAGECLEAR_SCRUB) {
		grid_displacements(data, key, 0, &points);
		return points.count > 0 && !isnan(costs_ns(data, &key, 0));
	}
	key.kind = grid->intent == PAGECLEAR_HOT ? COST_HOT : COST_CLEAR;
	if (grid->prior != PC_CACHED && isnan(costs_ns(data, &key, 0)))
		return false;
	key.prior = PC_CACHED;
	return grid->prior == PC_FLUSHED || !isnan(costs_ns(data, &key, 0));
}

/* Inserts in ascending order what is not there yet. */
static void add_size(struct grid *grid, uint64_t bytes)
{
	size_t at = 0;

	while (at < grid->sizes && grid->bytes[at] < bytes)
		at++;
	if (at < grid->sizes && grid->bytes[at] == bytes)
		return;
	memmove(grid->bytes + at + 1, grid->bytes + at, (grid->sizes - at) * sizeof(grid->bytes[0]));
	grid->bytes[at] = bytes;
	grid->sizes++;
}

static void find_sizes(struct grid *grid, const struct dataset *data)
{
	uint64_t last = 0;

	for (size_t i = 0; i < data->count && grid->sizes < GRID_SIZES; i++) {
		const struct series_key *key = &data->series[i].key;

		if (key->kernel == 0 && key->bytes != last && has_libc(data, grid, key->bytes))
			add_size(grid, key->bytes);
		last = key->bytes;
	}
}

static void find_widths(struct grid *grid)
{
	for (size_t i = 0; i < grid->sizes; i++) {
		size_t left = i > 0 ? i - 1 : i, right = i + 1 < grid->sizes ? i + 1 : i;

		grid->width[i] = log2((double)grid->bytes[right] / (double)grid->bytes[left]) /
		                 (right > left ? (double)(right - left) : 1);
		if (grid->sizes == 1)
			grid->width[i] = 1;
	}
}

static void find_noise(struct grid *grid)
{
	double spread[GRID_SIZES * PC_KERNEL_MAX];
	size_t count = 0;

	for (size_t i = 0; i < grid->sizes; i++)
		for (unsigned k = 0; k < pc_kernel_count; k++) {
			double epochs[COST_EPOCHS];
			size_t n = 0;

			for (unsigned e = 0; e < COST_EPOCHS; e++)
				if (grid_cell(grid, i, k)->measured && !isnan(grid_cell(grid, i, k)->epoch[e])) {
					epochs[n++] = grid_cell(grid, i, k)->epoch[e];
					if (e >= grid->epochs)
						grid->epochs = e + 1;
				}
			if (k > 0 && n >= 3)
				spread[count++] = stats_mad(epochs, n) * 1.4826; /* MAD to standard deviation */
		}
	grid->sigma = count > 0 ? stats_median(spread, count) : 0;
}

/* A size at which no rival of libc had three rounds cannot speak for libc either. */
static bool is_heard(const struct grid *grid, size_t size, uint32_t kernels)
{
	for (unsigned k = 1; k < pc_kernel_count; k++)
		if (grid_cell(grid, size, k)->count >= 3)
			return true;
	return (kernels & ~1u) == 0;
}

static void drop_unheard(struct grid *grid, uint32_t kernels)
{
	size_t kept = 0;

	for (size_t i = 0; i < grid->sizes; i++) {
		if (!is_heard(grid, i, kernels)) {
			for (unsigned k = 0; k < pc_kernel_count; k++)
				free(grid_cell(grid, i, k)->pairs);
			continue;
		}
		memmove(grid_cell(grid, kept, 0), grid_cell(grid, i, 0), pc_kernel_count * sizeof(*grid->cells));
		grid->bytes[kept++] = grid->bytes[i];
	}
	memset(grid_cell(grid, kept, 0), 0, (grid->sizes - kept) * pc_kernel_count * sizeof(*grid->cells));
	grid->sizes = kept;
}

/* --- interpolation ----------------------------------------------------------------------------------------------- */

static double octaves(const struct grid *grid, size_t from, size_t to)
{
	return log2((double)grid->bytes[to] / (double)grid->bytes[from]);
}

static double between(double a, double b, double share)
{
	return a + share * (b - a);
}

static void interpolate(struct grid *grid, unsigned kernel, size_t below, size_t size, size_t above)
{
	const struct cell *a = grid_cell(grid, below, kernel), *b = grid_cell(grid, above, kernel);
	double share = octaves(grid, below, size) / octaves(grid, below, above);
	struct cell *cell = grid_cell(grid, size, kernel);

	*cell = (struct cell){
		.measured = true,
		.interpolated = true,
		.forbidden = a->forbidden && b->forbidden,
		.worse = between(a->worse, b->worse, share),
		.l = between(a->l, b->l, share),
		.ratio = exp(between(log(a->ratio), log(b->ratio), share)),
		.interval = {fmin(a->interval.low, b->interval.low), fmax(a->interval.high, b->interval.high)},
	};
	cell->doubtful = is_small(grid, size) ||
	                 (grid->intent != PAGECLEAR_SCRUB && grid->prior == PC_UNKNOWN && cell->worse > GRID_GUARD);
	for (unsigned e = 0; e < COST_EPOCHS; e++)
		cell->epoch[e] = between(a->epoch[e], b->epoch[e], share); /* NaN where either is */
}

static void fill_gaps(struct grid *grid)
{
	for (unsigned k = 1; k < pc_kernel_count; k++) {
		size_t below = GRID_SIZES;

		for (size_t i = 0; i < grid->sizes; i++) {
			if (!grid_cell(grid, i, k)->measured)
				continue;
			for (size_t j = below + 1; j < i && octaves(grid, below, i) <= most_octaves; j++)
				interpolate(grid, k, below, j, i);
			below = i;
		}
	}
}

int grid_build(struct grid *out, const struct dataset *data, unsigned intent, enum pc_prior prior, unsigned threads,
               uint32_t kernels, double scrub_weight)
{
	struct grid grid = {.intent = intent, .prior = prior, .threads = threads};
	int r = 0;

	find_sizes(&grid, data);
	if (grid.sizes == 0)
		return 1;
	grid.cells = calloc(grid.sizes * pc_kernel_count, sizeof(*grid.cells));
	if (grid.cells == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < grid.sizes; i++)
		for (unsigned k = 0; k < pc_kernel_count && r == 0; k++)
			if (k == 0 || (kernels >> k & 1) != 0)
				r = build_cell(&grid, data, i, k, scrub_weight);
	if (r < 0) {
		grid_free(&grid);
		return r;
	}
	drop_unheard(&grid, kernels);
	if (grid.sizes == 0) {
		grid_free(&grid);
		return 1;
	}
	find_widths(&grid);
	find_noise(&grid);
	fill_gaps(&grid);
	*out = grid;
	return 0;
}

void grid_free(struct grid *grid)
{
	for (size_t i = 0; grid->cells != NULL && i < grid->sizes * pc_kernel_count; i++)
		free(grid->cells[i].pairs);
	free(grid->cells);
	*grid = (struct grid){0};
}
