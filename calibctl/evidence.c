#include "calibctl/evidence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibrd/costs.h"
#include "calibrd/decide.h"
#include "calibrd/grid_parts.h"
#include "calibrd/stats.h"
#include "pageclear/policy.h"

/* At that very size. */
static bool was_measured(const struct cell *cell)
{
	return cell->measured && !cell->interpolated;
}

/* --- one kernel at one size ------------------------------------------------------------------------------------- */

static double measured_ns(const struct dataset *data, const struct evidence_query *query, enum cost_kind kind,
                          enum pc_prior prior, uint64_t bytes, unsigned kernel)
{
	struct cost_key key = {kind, prior, bytes, query->threads};

	return costs_ns(data, &key, kernel);
}

/* As the decision adds them up: the last-level victim is not asked for small extents. */
static double victims_ns(const struct dataset *data, const struct evidence_query *query, uint64_t bytes,
                         unsigned kernel)
{
	struct cost_key key = {.prior = PC_FLUSHED, .bytes = bytes, .threads = query->threads};
	struct cost_points points;

	grid_displacements(data, key, kernel, &points);
	return costs_centre(&points, NULL);
}

static void fill_times(struct evidence_kernel *out, const struct dataset *data, const struct evidence_query *query,
                       uint64_t bytes)
{
	bool scrub = query->intent == PAGECLEAR_SCRUB;
	enum cost_kind kind = query->intent == PAGECLEAR_HOT ? COST_HOT : COST_CLEAR;

	out->cached_ns = out->flushed_ns = out->alone_ns = out->displaced_ns = NAN;
	if (query->prior != PC_FLUSHED && !scrub)
		out->cached_ns = measured_ns(data, query, kind, PC_CACHED, bytes, out->kernel);
	if (query->prior != PC_CACHED)
		out->flushed_ns = measured_ns(data, query, kind, PC_FLUSHED, bytes, out->kernel);
	if (query->prior != PC_CACHED && query->intent == PAGECLEAR_COLD)
		out->alone_ns = measured_ns(data, query, COST_SINGLE, PC_FLUSHED, bytes, out->kernel);
	if (scrub)
		out->displaced_ns = victims_ns(data, query, bytes, out->kernel);
}

/* Half the distance between the epochs' extremes of l; NaN for fewer than two epochs. A scrub's l is a difference, and
 * not what its gain is made of: the epochs' gains cannot be told from theirs. */
static double fill_gain(struct evidence_kernel *out, unsigned intent, const struct cell *cell)
{
	double low = INFINITY, high = -INFINITY;

	for (size_t e = 0; e < COST_EPOCHS; e++) {
		if (isnan(cell->epoch[e]))
			continue;
		low = fmin(low, cell->epoch[e]);
		high = fmax(high, cell->epoch[e]);
		out->epochs++;
	}
	out->l = cell->l;
	out->gain = cell->ratio;
	out->least = out->epochs > 0 && intent != PAGECLEAR_SCRUB ? exp(-high) : NAN;
	out->most = out->epochs > 0 && intent != PAGECLEAR_SCRUB ? exp(-low) : NAN;
	return out->epochs > 1 ? (high - low) / 2 : NAN;
}

/* --- one size ----------------------------------------------------------------------------------------------------- */

static int by_cost(const void *a, const void *b)
{
	const struct evidence_kernel *left = a, *right = b;

	if (left->l != right->l)
		return left->l < right->l ? -1 : 1;
	return left->kernel < right->kernel ? -1 : left->kernel > right->kernel;
}

static void fill_size(struct evidence_size *out, const struct dataset *data, const struct evidence_query *query,
                      const struct grid *grid, size_t size)
{
	double spreads[PC_KERNEL_MAX];
	size_t spread_count = 0;

	*out = (struct evidence_size){.bytes = grid->bytes[size]};
	for (unsigned k = 0; k < pc_kernel_count; k++) {
		struct evidence_kernel *kernel = &out->kernels[out->count];

		if (!was_measured(grid_cell(grid, size, k)))
			continue;
		*kernel = (struct evidence_kernel){.kernel = k};
		fill_times(kernel, data, query, out->bytes);
		double spread = fill_gain(kernel, query->intent, grid_cell(grid, size, k));
		if (k > 0 && !isnan(spread)) /* libc against itself has none */
			spreads[spread_count++] = spread;
		out->count++;
	}
	double l = stats_median(spreads, spread_count);
	out->noise = query->intent == PAGECLEAR_SCRUB ? l : expm1(l);
	qsort(out->kernels, out->count, sizeof(*out->kernels), by_cost);
}

/* 0, 1 if nothing was measured for it, -ENOMEM. */
static int build(struct grid *grid, const struct dataset *data, const struct evidence_query *query)
{
	return grid_build(grid, data, query->intent, query->prior, query->threads, UINT32_MAX, DECIDE_SCRUB_WEIGHT);
}

int evidence_collect(struct evidence *out, const struct dataset *data, const struct evidence_query *query)
{
	struct grid grid = {0};
	size_t above = 0;

	memset(out, 0, sizeof(*out));
	int r = build(&grid, data, query);
	if (r != 0)
		return r < 0 ? r : 0;
	while (above < grid.sizes && grid.bytes[above] < query->bytes)
		above++;
	if (above > 0 && (above == grid.sizes || grid.bytes[above] != query->bytes))
		fill_size(&out->sizes[out->count++], data, query, &grid, above - 1);
	if (above < grid.sizes)
		fill_size(&out->sizes[out->count++], data, query, &grid, above);
	grid_free(&grid);
	return 0;
}

/* --- the wrong hint ----------------------------------------------------------------------------------------------- */

/* By the distance in octaves; 0 bytes count as 1. */
static size_t nearest(const struct grid *grid, uint64_t bytes)
{
	size_t best = 0;

	for (size_t i = 1; i < grid->sizes; i++)
		if (fabs(log2((double)grid->bytes[i] / fmax(1, (double)bytes))) <
		    fabs(log2((double)grid->bytes[best] / fmax(1, (double)bytes))))
			best = i;
	return best;
}

int evidence_if_wrong(struct evidence_wrong *out, const struct dataset *data, const struct evidence_query *query,
                      unsigned right, unsigned wrong)
{
	struct grid grid = {0};

	*out = (struct evidence_wrong){.cost = NAN};
	int r = build(&grid, data, query);
	if (r != 0)
		return r < 0 ? r : 0;
	size_t size = nearest(&grid, query->bytes);
	const struct cell *a = grid_cell(&grid, size, right), *b = grid_cell(&grid, size, wrong);
	out->bytes = grid.bytes[size];
	if (was_measured(a) && was_measured(b))
		out->cost = exp(b->l - a->l);
	grid_free(&grid);
	return 0;
}
