/* Pairs of one cell, from paired rounds; see grid_parts.h. The costs are design section 1's. */
#include <math.h>

#include "calibrd/grid_parts.h"
#include "pageclear/policy.h"

static const double sure = 0.98; /* of hundreds of cells some look bad by chance; seven pairs can be as sure */
static const double least_scale_ns = 1e-3; /* a scrub that costs libc less than this is no measure for others */

/* --- times ------------------------------------------------------------------------------------------------------- */

/* Where the extent was asked for alone too, the one that speaks worse for the kernel counts. Whom only the batch knows,
 * though libc was asked alone, has no pairs at all: it would speak too well of it. */
static void cold_pairs(const struct dataset *data, struct cost_key key, unsigned kernel, struct cost_points *out)
{
	struct cost_points single;

	key.kind = COST_CLEAR;
	costs_paired(data, &key, kernel, 0, out);
	key.kind = COST_SINGLE;
	costs_paired(data, &key, kernel, 0, &single);
	if (costs_alone_counts(costs_centre(out, NULL), costs_centre(&single, NULL)))
		*out = single;
	if (single.count > 0)
		return;
	costs_of(data, &key, 0, &single);
	if (single.count > 0)
		out->count = 0;
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

bool grid_surely_loses(const struct cost_points *pairs, double limit)
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

static struct guarded guarded(const struct cost_points *cached, const struct cost_points *flushed)
{
	return (struct guarded){fmax(costs_centre(cached, NULL), costs_centre(flushed, NULL)),
	                        grid_surely_loses(cached, GRID_GUARD) || grid_surely_loses(flushed, GRID_GUARD)};
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

/* --- scrub ------------------------------------------------------------------------------------------------------- */

/* True if point i of a is also in b, where *j moves on. Both are in order. */
static bool shared_round(const struct cost_points *a, size_t i, const struct cost_points *b, size_t *j)
{
	unsigned when = a->epoch[i] * 65536u + a->round[i];

	while (*j < b->count && b->epoch[*j] * 65536u + b->round[*j] < when)
		(*j)++;
	return *j < b->count && b->epoch[*j] * 65536u + b->round[*j] == when;
}

void grid_displacements(const struct dataset *data, struct cost_key key, unsigned kernel, struct cost_points *out)
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

	grid_displacements(data, key, kernel, out);
	grid_displacements(data, key, 0, &libc);
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

/* ----------------------------------------------------------------------------------------------------------------- */

void grid_pairs(const struct dataset *data, const struct grid *grid, uint64_t bytes, unsigned kernel, double weight,
                struct grid_pairs *out)
{
	struct cost_key key = {COST_CLEAR, grid->prior, bytes, grid->threads};

	out->guarded = false;
	out->against = (struct guarded){0};
	out->ratio = NAN;
	if (grid->intent == PAGECLEAR_SCRUB) {
		key.prior = PC_FLUSHED;
		scrub_pairs(data, key, kernel, weight, &out->points, &out->ratio);
	} else if (grid->prior == PC_UNKNOWN) {
		out->guarded = true;
		out->against = unknown_pairs(data, grid->intent, key, kernel, &out->points);
	} else {
		known_pairs(data, grid->intent, key, kernel, &out->points);
	}
}
