/* Builds the cells of a table from paired rounds; see grid.h. The costs are design section 1's, the limits section 7's.
 */
#include "calibrd/grid.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pageclear/policy.h"

static const double slower_margin = 0.03; /* surely slower than this: forbidden, */
static const double sure = 0.98;          /* of hundreds of cells some look bad by chance; seven pairs can be as sure */
static const double least_scale_ns = 1e-3; /* a scrub that costs libc less than this is no measure for others */
static const double most_octaves = 2; /* between sizes that are interpolated between: one of a coarse grid left out */

/* --- pairs of one cell ------------------------------------------------------------------------------------------- */

/* Where the extent was asked for alone too, the one that speaks worse for the kernel counts. */
static void cold_pairs(const struct dataset *data, struct cost_key key, unsigned kernel, struct cost_points *out)
{
	struct cost_points single;

	key.kind = COST_CLEAR;
	costs_paired(data, &key, kernel, 0, out);
	key.kind = COST_SINGLE;
	costs_paired(data, &key, kernel, 0, &single);
	if (costs_alone_counts(costs_centre(out, NULL), costs_centre(&single, NULL)))
		*out = single;
}

static void known_pairs(const struct dataset *data, unsigned intent, struct cost_key key, unsigned kernel,
                        struct cost_points *out)
{
	if (intent == PAGECLEAR_COLD) {
		cold_pairs(data, key, kernel, out);
		return;
	}
	key.kind = COST_HOT;
	costs_paired(data, &key, kernel, 0, out);
}

/* True if a kernel surely costs over `limit` more than libc. Pairs of one epoch are alike, so that an interval over all
 * of them is too sure of itself: three of four epochs must have seen a loss as well. */
static bool surely_loses(const struct cost_points *pairs, double limit)
{
	double epochs[COST_EPOCHS];
	unsigned seen = 0, losses = 0;

	if (!(stats_median_interval(pairs->value, pairs->count, sure).low > limit))
		return false;
	costs_centre(pairs, epochs);
	for (unsigned e = 0; e < COST_EPOCHS; e++) {
		if (isnan(epochs[e]))
			continue;
		seen++;
		if (epochs[e] > 0)
			losses++;
	}
	return 4 * losses >= 3 * seen;
}

/* What stands against a kernel that is chosen without knowing the prior. */
struct guarded {
	double worse; /* the larger l of the two priors */
	bool broken;  /* surely, by one of them */
};

static struct guarded guarded(const struct cost_points *cached, const struct cost_points *flushed)
{
	return (struct guarded){fmax(costs_centre(cached, NULL), costs_centre(flushed, NULL)),
	                        surely_loses(cached, GRID_GUARD) || surely_loses(flushed, GRID_GUARD)};
}

/* Mean of the two logs, the i-th round of an epoch under one prior with the i-th under the other. */
static struct guarded unknown_pairs(const struct dataset *data, unsigned intent, struct cost_key key, unsigned kernel,
                                    struct cost_points *out)
{
	struct cost_points flushed;
	struct guarded against;
	size_t kept = 0, j = 0;

	key.prior = PC_CACHED;
	known_pairs(data, intent, key, kernel, out);
	key.prior = PC_FLUSHED;
	known_pairs(data, intent, key, kernel, &flushed);
	against = guarded(out, &flushed);
	for (size_t i = 0; i < out->count && j < flushed.count; i++) {
		while (j < flushed.count && flushed.epoch[j] < out->epoch[i])
			j++;
		if (j == flushed.count || flushed.epoch[j] != out->epoch[i])
			continue;
		out->value[kept] = (out->value[i] + flushed.value[j++]) / 2;
		out->epoch[kept] = out->epoch[i];
		out->round[kept++] = out->round[i];
	}
	out->count = kept;
	return against;
}

/* True if point i of a is also in b, where *j moves on. Both are in order. */
static bool shared_round(const struct cost_points *a, size_t i, const struct cost_points *b, size_t *j)
{
	unsigned when = a->epoch[i] * 65536u + a->round[i];

	while (*j < b->count && b->epoch[*j] * 65536u + b->round[*j] < when)
		(*j)++;
	return *j < b->count && b->epoch[*j] * 65536u + b->round[*j] == when;
}

/* Displacement of a kernel, round by round: the sum over the victims. The last-level victim is not asked for small
 * extents, and then counts as not displaced. libc's series say whether it was: were it counted for one of two kernels
 * alone, the other would look cheaper by all of it. */
static void displacements(const struct dataset *data, struct cost_key key, unsigned kernel, struct cost_points *out)
{
	struct cost_points l2, llc;
	size_t kept = 0, j = 0, k = 0;
	bool last_level;

	key.kind = COST_VICTIM_LLC;
	costs_of(data, &key, 0, &llc);
	last_level = llc.count > 0;
	costs_of(data, &key, kernel, &llc);
	key.kind = COST_VICTIM_L1;
	costs_of(data, &key, kernel, out);
	key.kind = COST_VICTIM_L2;
	costs_of(data, &key, kernel, &l2);
	for (size_t i = 0; i < out->count; i++) {
		if (!shared_round(out, i, &l2, &j) || (last_level && !shared_round(out, i, &llc, &k)))
			continue;
		out->value[kept] = out->value[i] + l2.value[j] + (last_level ? llc.value[k] : 0);
		out->epoch[kept] = out->epoch[i];
		out->round[kept++] = out->round[i];
	}
	out->count = kept;
}

/* Median clear of flushed memory, and each epoch's. */
static double clears(const struct dataset *data, const struct cost_key *key, unsigned kernel, double *by_epoch)
{
	struct cost_points points;
	struct cost_key clear = {COST_CLEAR, PC_FLUSHED, key->bytes, key->threads};

	costs_of(data, &clear, kernel, &points);
	return costs_centre(&points, by_epoch);
}

/* Displacements may cancel or be nothing at all: no quotient of them is worth more than "a hundredfold". */
static double bounded_ratio(double above, double below)
{
	if (!(above > 0 || below > 0))
		return 1; /* both nothing, or one not measured */
	return above > 0 ? fmax(0.01, fmin(100, above / fmax(0, below))) : 0.01;
}

/* (S_k - S_libc) / (w C_libc + max(0, D_libc)): differences, since most displacements are small and many negative.
 * The scale is libc's median, as a single round's would often be next to nothing. Clears are another block's, so an
 * epoch's own medians stand for its rounds: what varies between epochs must be seen to. *ratio is for people: libc's
 * cost over the kernel's, where displacements below 0 count from the lower of the two, so that the cheaper one looks
 * cheaper. */
static void scrub_pairs(const struct dataset *data, struct cost_key key, unsigned kernel, double weight,
                        struct cost_points *out, double *ratio)
{
	struct cost_points libc;
	double libc_epochs[COST_EPOCHS], kernel_epochs[COST_EPOCHS];
	double clear_libc = clears(data, &key, 0, libc_epochs),
	       clear_kernel = clears(data, &key, kernel, kernel_epochs);
	double moved_libc, moved_kernel, least, scale;
	size_t kept = 0, j = 0;

	displacements(data, key, kernel, out);
	displacements(data, key, 0, &libc);
	moved_libc = costs_centre(&libc, NULL);
	moved_kernel = costs_centre(out, NULL);
	least = fmin(0, fmin(moved_libc, moved_kernel));
	scale = weight * clear_libc + fmax(0, moved_libc);
	*ratio = bounded_ratio(weight * clear_libc + moved_libc - least, weight * clear_kernel + moved_kernel - least);
	for (size_t i = 0; i < out->count && scale > least_scale_ns && !isnan(clear_kernel); i++) {
		size_t epoch = out->epoch[i] % COST_EPOCHS;
		double more = kernel_epochs[epoch] - libc_epochs[epoch];

		if (!shared_round(out, i, &libc, &j))
			continue;
		more = isnan(more) ? clear_kernel - clear_libc : more;
		out->value[kept] = (weight * more + out->value[i] - libc.value[j]) / scale;
		out->epoch[kept] = out->epoch[i];
		out->round[kept++] = out->round[i];
	}
	out->count = kept;
}

/* --- cells ------------------------------------------------------------------------------------------------------- */

static int fill_cell(struct cell *cell, const struct cost_points *pairs, const struct guarded *against)
{
	cell->l = costs_centre(pairs, cell->epoch);
	cell->ratio = exp(-cell->l);
	if (pairs->count == 0 || isnan(cell->l))
		return 0;
	cell->pairs = malloc(pairs->count * sizeof(*cell->pairs));
	if (cell->pairs == NULL)
		return -ENOMEM;
	memcpy(cell->pairs, pairs->value, pairs->count * sizeof(*cell->pairs));
	cell->count = pairs->count;
	cell->measured = true;
	cell->interval = stats_median_interval(cell->pairs, cell->count, 0.95);
	cell->worse = against != NULL ? against->worse : cell->l;
	cell->forbidden = (against != NULL && against->broken) || surely_loses(pairs, slower_margin);
	cell->doubtful = !cell->forbidden &&
	                 (cell->interval.low > slower_margin || (against != NULL && cell->worse > GRID_GUARD));
	return 0;
}

static int build_cell(struct grid *grid, const struct dataset *data, size_t size, unsigned kernel, double weight)
{
	struct cost_points pairs;
	struct cost_key key = {COST_CLEAR, grid->prior, grid->bytes[size], grid->threads};
	struct cell *cell = grid_cell(grid, size, kernel);
	double scrub_ratio = 0;
	struct guarded against;
	bool both = grid->intent != PAGECLEAR_SCRUB && grid->prior == PC_UNKNOWN;
	int r;

	if (grid->intent == PAGECLEAR_SCRUB) {
		key.prior = PC_FLUSHED;
		scrub_pairs(data, key, kernel, weight, &pairs, &scrub_ratio);
	} else if (both) {
		against = unknown_pairs(data, grid->intent, key, kernel, &pairs);
	} else {
		known_pairs(data, grid->intent, key, kernel, &pairs);
	}
	r = fill_cell(cell, &pairs, both ? &against : NULL);
	if (grid->intent == PAGECLEAR_SCRUB)
		cell->ratio = scrub_ratio;
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
		displacements(data, key, 0, &points);
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
	cell->doubtful = grid->intent != PAGECLEAR_SCRUB && grid->prior == PC_UNKNOWN && cell->worse > GRID_GUARD;
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
