/* Chunks, direction and pages from paired rounds; see spot.h and design section 6. */
#include "calibrd/spot.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pageclear/policy.h"

static const double margin = 0.03, confidence = 0.95;

/* A twentieth, shared by the chunks, the tables and their rules that ask: chance must not find one somewhere. */
static const double chunk_level = 0.002;

const uint64_t spot_chunks[SPOT_CHUNKS] = {64 << 10, 2 << 20};

static enum cost_kind cost_of(unsigned intent)
{
	return intent == PAGECLEAR_HOT ? COST_HOT : COST_CLEAR;
}

/* --- rounds ------------------------------------------------------------------------------------------------------ */

/* How two ways compare under one prior, over the sizes of a range. */
struct evidence {
	size_t sizes;
	double sum;       /* of the sizes' centres */
	double worst_low; /* the largest lower end of a size's interval */
	double epoch_sum[COST_EPOCHS];
	unsigned epoch_sizes[COST_EPOCHS];
	size_t count;
	double *pairs; /* owned */
};

/* The next size above `after` at which a kernel's spot checks were made; 0: none. */
static uint64_t next_size(const struct dataset *data, const struct spot_range *range, enum pc_prior prior,
                          unsigned kernel, uint64_t after)
{
	uint64_t next = 0;

	for (size_t i = 0; i < data->count; i++) {
		const struct series_key *key = &data->series[i].key;

		if (key->kernel == kernel && key->chunk == key->bytes && key->prior == (uint8_t)prior &&
		    key->threads == range->threads && key->bytes > after && key->bytes >= range->from &&
		    key->bytes < range->to && (next == 0 || key->bytes < next))
			next = key->bytes;
	}
	return next;
}

static int pool(struct evidence *evidence, const struct cost_points *points)
{
	double *more = realloc(evidence->pairs, (evidence->count + points->count) * sizeof(*more));

	if (more == NULL)
		return -ENOMEM;
	memcpy(more + evidence->count, points->value, points->count * sizeof(*more));
	evidence->pairs = more;
	evidence->count += points->count;
	return 0;
}

static int add_size(struct evidence *evidence, const struct cost_points *points)
{
	double epochs[COST_EPOCHS], low = stats_median_interval(points->value, points->count, confidence).low;
	int r = pool(evidence, points);

	if (r < 0)
		return r;
	evidence->sum += costs_centre(points, epochs);
	evidence->worst_low = evidence->sizes == 0 ? low : fmax(evidence->worst_low, low);
	evidence->sizes++;
	for (size_t e = 0; e < COST_EPOCHS; e++)
		if (!isnan(epochs[e])) {
			evidence->epoch_sum[e] += epochs[e];
			evidence->epoch_sizes[e]++;
		}
	return 0;
}

/* A chunk of the extent's size is the whole extent. */
static bool is_same(const struct cost_way *a, const struct cost_way *b)
{
	return a->kernel == b->kernel && a->chunk == b->chunk && a->backward == b->backward &&
	       a->base_pages == b->base_pages;
}

/* Adds what one prior says to *out: zero-initialised, pairs to be freed by the caller whatever is returned. */
static int collect(struct evidence *out, const struct dataset *data, const struct spot_range *range,
                   enum pc_prior prior, const struct cost_way *way, const struct cost_way *other)
{
	struct cost_points points;
	int r = 0;

	if (range->intent == PAGECLEAR_SCRUB)
		return 0;
	for (uint64_t bytes = 0; r == 0 && (bytes = next_size(data, range, prior, way->kernel, bytes)) != 0;) {
		struct cost_key key = {cost_of(range->intent), prior, bytes, range->threads};
		struct cost_way a = *way, b = *other;

		a.chunk = a.chunk == 0 ? bytes : a.chunk;
		b.chunk = b.chunk == 0 ? bytes : b.chunk;
		if (a.chunk > bytes || b.chunk > bytes || is_same(&a, &b))
			continue;
		costs_paired_ways(data, &key, &a, &b, &points);
		if (points.count > 0)
			r = add_size(out, &points);
	}
	return r;
}

/* The priors that a range is about. */
static enum pc_prior first_prior(const struct spot_range *range)
{
	return range->prior == PC_UNKNOWN ? PC_CACHED : range->prior;
}

static enum pc_prior last_prior(const struct spot_range *range)
{
	return range->prior == PC_UNKNOWN ? PC_FLUSHED : range->prior;
}

/* --- comparisons ------------------------------------------------------------------------------------------------- */

int spot_compare(struct spot_ratio *out, const struct dataset *data, const struct spot_range *range,
                 const struct cost_way *way, const struct cost_way *other)
{
	struct evidence evidence = {0};
	int r = 0;

	for (enum pc_prior p = first_prior(range); p <= last_prior(range) && r == 0; p++)
		r = collect(&evidence, data, range, p, way, other);
	if (r == 0 && evidence.count == 0)
		r = 1;
	if (r == 0) {
		struct interval logs = stats_median_interval(evidence.pairs, evidence.count, confidence);

		*out = (struct spot_ratio){.ratio = exp(evidence.sum / (double)evidence.sizes),
		                           .interval = {exp(logs.low), exp(logs.high)},
		                           .pairs = evidence.count};
	}
	free(evidence.pairs);
	return r;
}

int spot_direction(struct spot_ratio *out, const struct dataset *data, const struct spot_range *range, unsigned kernel,
                   uint64_t chunk)
{
	struct cost_way forward = {.kernel = kernel, .chunk = chunk != 0 ? chunk : spot_chunks[0]}, backward = forward;

	backward.backward = true;
	return spot_compare(out, data, range, &backward, &forward);
}

/* --- chunks ------------------------------------------------------------------------------------------------------ */

/* Of the few epochs of one calibration all must see a gain, of the many of several seven of eight. */
static bool epochs_agree(const struct evidence *evidence)
{
	unsigned seen = 0, gains = 0;

	for (size_t e = 0; e < COST_EPOCHS; e++) {
		seen += evidence->epoch_sizes[e] > 0;
		gains += evidence->epoch_sizes[e] > 0 && evidence->epoch_sum[e] < 0;
	}
	return 8 * gains >= 7 * seen && seen >= 2;
}

static bool is_better(const struct evidence *evidence)
{
	return stats_sign_below(evidence->pairs, evidence->count, -margin) < chunk_level && epochs_agree(evidence) &&
	       !(evidence->worst_low > margin);
}

static bool is_worse(const struct evidence *evidence)
{
	return evidence->count > 0 &&
	       (evidence->worst_low > margin ||
	        stats_median_interval(evidence->pairs, evidence->count, confidence).low > margin);
}

/* A chunk against the whole extent, under every prior of the range. */
struct judgement {
	bool better, worse;
	double sum; /* of all centres: sizes that the chunk covers whole add nothing */
};

static int judge(struct judgement *out, const struct dataset *data, const struct spot_range *range, unsigned kernel,
                 uint64_t chunk)
{
	const struct cost_way way = {.kernel = kernel, .chunk = chunk}, whole = {.kernel = kernel};
	int r = 0;

	*out = (struct judgement){.better = true};
	for (enum pc_prior p = first_prior(range); p <= last_prior(range) && r == 0; p++) {
		struct evidence evidence = {0};

		r = collect(&evidence, data, range, p, &way, &whole);
		if (r == 0) {
			out->better = out->better && is_better(&evidence);
			out->worse = out->worse || is_worse(&evidence);
			out->sum += evidence.sum;
		}
		free(evidence.pairs);
	}
	return r;
}

int spot_chunk(uint64_t *out, const struct dataset *data, const struct spot_range *range, unsigned kernel, uint64_t old)
{
	struct judgement judgement = {.worse = true};
	uint64_t best = 0;
	double least = 0;
	int r = 0;

	if (old != 0)
		r = judge(&judgement, data, range, kernel, old);
	if (r == 0 && !judgement.worse && judgement.sum <= 0) {
		*out = old;
		return 0;
	}
	for (size_t i = 0; i < SPOT_CHUNKS && r == 0; i++) {
		r = judge(&judgement, data, range, kernel, spot_chunks[i]);
		if (r == 0 && judgement.better && (best == 0 || judgement.sum < least)) {
			best = spot_chunks[i];
			least = judgement.sum;
		}
	}
	if (r == 0)
		*out = best;
	return r;
}

/* --- pages ------------------------------------------------------------------------------------------------------- */

/* One kernel of a table, under one prior. */
struct contender {
	const struct grid *grid;
	const struct dataset *data;
	enum pc_prior prior;
	unsigned kernel;
};

/* ln over libc's cost at a size. */
struct over_libc {
	double l; /* NaN: not measured */
	struct interval interval;
};

/* On the grid's own pages, or in spot checks on base pages. */
static struct over_libc over_libc(const struct contender *who, uint64_t bytes, bool base_pages)
{
	struct cost_points points;
	struct cost_key key = {cost_of(who->grid->intent), who->prior, bytes, who->grid->threads};
	struct cost_way way = {.kernel = who->kernel, .chunk = base_pages ? bytes : 0, .base_pages = base_pages};
	struct cost_way libc = way;

	libc.kernel = 0;
	costs_paired_ways(who->data, &key, &way, &libc, &points);
	return (struct over_libc){costs_centre(&points, NULL),
	                          stats_median_interval(points.value, points.count, confidence)};
}

/* Marks the sizes of (from, to) at which the kernel would lose were it `more` dearer than on the grid's pages. Between
 * measured sizes that goes by the lower one, or by the grid's own interpolation where it is of that prior. */
static void mark(const struct contender *who, uint64_t from, uint64_t to, double more, double limit, bool *out)
{
	bool loses = true;

	for (size_t i = 0; i < who->grid->sizes; i++) {
		const struct cell *cell = grid_cell(who->grid, i, who->kernel);
		double l;

		if (who->grid->bytes[i] <= from || who->grid->bytes[i] >= to || !cell->measured)
			continue;
		l = who->grid->prior == who->prior ? cell->l : over_libc(who, who->grid->bytes[i], false).l;
		loses = isnan(l) ? loses : l + more > limit;
		out[i] = out[i] || loses;
	}
}

static void mark_size(const struct grid *grid, uint64_t bytes, bool *out)
{
	for (size_t i = 0; i < grid->sizes; i++)
		out[i] = out[i] || grid->bytes[i] == bytes;
}

/* Sets out[size] where base pages make the kernel lose more than `limit`. */
static void lost_on_base(const struct contender *who, double limit, bool *out)
{
	const struct spot_range all = {.prior = who->prior, .threads = who->grid->threads, .to = UINT64_MAX};
	uint64_t from = 0;
	double more = 0;

	for (uint64_t bytes = 0; (bytes = next_size(who->data, &all, who->prior, who->kernel, bytes)) != 0;) {
		struct over_libc base = over_libc(who, bytes, true), usual = over_libc(who, bytes, false);

		if (!isfinite(base.interval.low))
			continue; /* not tried, or too few rounds to be sure of anything */
		if (from != 0)
			mark(who, from, bytes, more, limit, out);
		from = 0;
		if (!(base.interval.low > limit))
			continue;
		mark_size(who->grid, bytes, out);
		if (isnan(usual.l) || base.interval.low > usual.interval.high) {
			from = bytes;
			more = isnan(usual.l) ? INFINITY : base.l - usual.l;
		}
	}
	if (from != 0)
		mark(who, from, UINT64_MAX, more, limit, out);
}

static void forbid_kernel(struct grid *grid, const struct dataset *data, unsigned kernel)
{
	const struct contender cached = {grid, data, PC_CACHED, kernel}, flushed = {grid, data, PC_FLUSHED, kernel};
	bool any[GRID_SIZES] = {false}, one[GRID_SIZES] = {false}, other[GRID_SIZES] = {false};

	if (grid->prior == PC_UNKNOWN) {
		lost_on_base(&cached, GRID_GUARD, any);
		lost_on_base(&flushed, GRID_GUARD, any);
		lost_on_base(&cached, margin, one);
		lost_on_base(&flushed, margin, other);
	} else {
		lost_on_base(grid->prior == PC_CACHED ? &cached : &flushed, margin, any);
	}
	for (size_t i = 0; i < grid->sizes; i++)
		if (grid_cell(grid, i, kernel)->measured && (any[i] || (one[i] && other[i])))
			grid_cell(grid, i, kernel)->forbidden = true;
}

void spot_forbid(struct grid *grid, const struct dataset *data)
{
	for (unsigned k = 1; k < pc_kernel_count && grid->intent != PAGECLEAR_SCRUB; k++)
		forbid_kernel(grid, data, k);
}
