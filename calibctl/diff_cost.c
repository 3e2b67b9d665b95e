/* Costs of two policies' choices between measured sizes; see diff_cost.h. Pure. */
#include "calibctl/diff_cost.h"

#include <math.h>
#include <string.h>

#include "calibrd/decide.h"
#include "calibrd/grid.h"
#include "pageclear/policy.h"

/* Steps an octave in which ranges are walked: four times as fine as the sizes between which crossovers are found. */
static const double steps = 32;

struct sums {
	double octaves, all; /* all: of the differences in ln(cost), times octaves */
	double epoch[COST_EPOCHS], epoch_octaves[COST_EPOCHS];
};

/* ln of a kernel's cost over libc's; NaN where it was not measured. A scrub's l is no logarithm, and may cost next to
 * nothing: see grid.h. */
static double log_cost(const struct grid *grid, double l)
{
	if (grid->intent != PAGECLEAR_SCRUB || isnan(l)) /* fmax() would make a number of it */
		return l;
	return log(fmax(0.01, 1 + l));
}

/* Unknown kernels are libc's to stand in for. */
static unsigned kernel_of(const struct pc_rule *rule)
{
	const struct pc_kernel *kernel = pc_kernel_find(rule->kernel);

	return kernel != NULL ? pc_kernel_index(kernel) : 0;
}

/* What b costs more than a at one measured size; NaN if either was not measured. epoch COST_EPOCHS: over all. libc is
 * the measure of all, in every epoch. */
static double difference(const struct grid *grid, size_t size, unsigned a, unsigned b, unsigned epoch)
{
	const struct cell *left = grid_cell(grid, size, a), *right = grid_cell(grid, size, b);

	if (!left->measured || !right->measured)
		return NAN;
	if (epoch == COST_EPOCHS)
		return log_cost(grid, right->l) - log_cost(grid, left->l);
	return log_cost(grid, b == 0 ? 0 : right->epoch[epoch]) - log_cost(grid, a == 0 ? 0 : left->epoch[epoch]);
}

/* Between sizes i and i + 1, `share` of the way. */
static double between(const struct grid *grid, size_t i, double share, unsigned a, unsigned b, unsigned epoch)
{
	double left = difference(grid, i, a, b, epoch);

	if (i + 1 == grid->sizes)
		return left;
	double right = difference(grid, i + 1, a, b, epoch);
	if (isnan(left) || isnan(right))
		return share < 0.5 ? left : right; /* the nearer one, if that was measured */
	return left + share * (right - left);
}

static void add_step(struct sums *sums, struct diff_cost *out, const struct grid *grid, double at, double octaves,
                     const struct diff_range *range)
{
	unsigned a = kernel_of(range->a), b = kernel_of(range->b);
	size_t i = 0;

	while (i + 1 < grid->sizes && log2((double)grid->bytes[i + 1]) <= at)
		i++;
	double left = log2((double)grid->bytes[i]);
	double right = i + 1 < grid->sizes ? log2((double)grid->bytes[i + 1]) : left + 1;
	double share = (at - left) / (right - left), all = between(grid, i, share, a, b, COST_EPOCHS);
	if (isnan(all) || a == b) {
		out->unmeasured += octaves;
		return;
	}
	sums->octaves += octaves;
	sums->all += octaves * all;
	for (unsigned e = 0; e < COST_EPOCHS; e++) {
		double one = between(grid, i, share, a, b, e);

		if (isnan(one))
			continue;
		sums->epoch[e] += octaves * one;
		sums->epoch_octaves[e] += octaves;
	}
}

/* Pins that came or went choose nothing new. */
static bool differs(const struct diff_range *range)
{
	return strcmp(range->a->kernel, range->b->kernel) != 0 || range->a->chunk != range->b->chunk;
}

static void add_range(struct sums *sums, struct diff_cost *out, const struct grid *grid, const struct diff_range *range)
{
	double first = log2((double)grid->bytes[0]), last = log2((double)grid->bytes[grid->sizes - 1]);
	double from = range->from > 0 ? log2((double)range->from) : first;
	double to = range->to == UINT64_MAX ? INFINITY : log2((double)range->to);

	if (from < first || range->from == 0 || to > last)
		out->beyond = true;
	from = fmax(from, first);
	to = fmin(to, last);
	if (!(from < to))
		return;
	size_t count = (size_t)ceil((to - from) * steps);
	double width = (to - from) / (double)count;
	for (size_t i = 0; i < count; i++)
		add_step(sums, out, grid, from + ((double)i + 0.5) * width, width, range);
}

/* An epoch that saw less than half of it speaks of something else. */
static void judge(struct diff_cost *out, const struct sums *sums)
{
	double least = INFINITY, most = -INFINITY;

	out->octaves = sums->octaves;
	out->share = out->least = out->most = NAN;
	if (sums->octaves <= 0)
		return;
	out->share = expm1(sums->all / sums->octaves);
	for (unsigned e = 0; e < COST_EPOCHS; e++) {
		if (sums->epoch_octaves[e] < sums->octaves / 2)
			continue;
		double mean = expm1(sums->epoch[e] / sums->epoch_octaves[e]);
		least = fmin(least, mean);
		most = fmax(most, mean);
		out->epochs++;
	}
	if (out->epochs == 0)
		return;
	out->least = least;
	out->most = most;
	if (out->epochs > 1)
		out->verdict = least > 0 ? DIFF_MORE : most < 0 ? DIFF_LESS : DIFF_NOISE;
}

int diff_cost(struct diff_cost *out, const struct dataset *data, const struct diff_table *table)
{
	struct grid grid = {0};
	struct sums sums = {0};
	int r = grid_build(&grid, data, table->intent, table->prior, table->threads, UINT32_MAX, DECIDE_SCRUB_WEIGHT);

	*out = (struct diff_cost){.share = NAN, .least = NAN, .most = NAN, .verdict = DIFF_UNKNOWN};
	if (r < 0)
		return r;
	for (size_t i = 0; i < table->range_count; i++) {
		if (!differs(&table->ranges[i]))
			continue;
		if (r == 0)
			add_range(&sums, out, &grid, &table->ranges[i]);
		else
			out->beyond = true;
	}
	judge(out, &sums);
	grid_free(&grid);
	return 0;
}
