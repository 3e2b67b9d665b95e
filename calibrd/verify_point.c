/* What choices cost at one size; see verify.h. Pure but for looking them up in the policy, which is immutable. */
#include <math.h>
#include <pageclear/policy.h>

#include "calibrd/costs.h"
#include "calibrd/decide.h"
#include "calibrd/stats.h"
#include "calibrd/verify.h"
#include "kernels/kernels.h"

/* The rounds that count: those of even epochs, of odd ones, or all. Epochs, not single rounds: what a mapping does to a
 * kernel would else be in both halves, and look like regret though the next mapping undoes it. */
enum half { EVEN, ODD, ALL };

enum {
	LIBC = 0,
	NOBODY = VERIFY_ENTRANTS,
	LEAST_ROUNDS = 2, /* of a half: one alone is an anecdote */
};

/* One size under one intent. */
struct view {
	const struct verify_point *point;
	bool read;    /* the first read counts */
	bool alone;   /* asked for in two ways, see costs_asked_alone() */
	double scale; /* scrub: libc's cost, ns; 0: costs are compared as ratios */
};

/* --- costs ------------------------------------------------------------------------------------------------------- */

static const struct verify_cost *cost_at(const struct verify_point *point, size_t round, size_t entrant)
{
	return &point->costs[round * point->entrant_count + entrant];
}

/* An entrant, and which of the two ways it is asked for in. */
struct party {
	size_t entrant;
	bool alone;
};

static double cost(const struct view *view, size_t round, struct party party)
{
	const struct verify_cost *at = cost_at(view->point, round, party.entrant);

	if (view->point->shape == VERIFY_SCRUB)
		return DECIDE_SCRUB_WEIGHT * (double)at->clear + (double)at->displaced;
	if (party.alone)
		return (double)at->alone;
	return (double)at->clear + (view->read ? (double)at->read : 0);
}

static bool counts(const struct view *view, size_t round, enum half half)
{
	return half == ALL || (view->point->epoch[round] & 1) == (half == ODD);
}

/* Nanoseconds of a call alone hold the work behind it: those asked for in different ways are each compared with libc
 * first, asked for likewise. */
static double between(const struct view *view, size_t round, struct party a, struct party b)
{
	double ratio = cost(view, round, a) / cost(view, round, b);

	if (view->scale > 0)
		return (cost(view, round, a) - cost(view, round, b)) / view->scale;
	if (a.alone != b.alone)
		ratio *= cost(view, round, (struct party){LIBC, b.alone}) /
		         cost(view, round, (struct party){LIBC, a.alone});
	return log(ratio);
}

/* One party's cost next to another's in the rounds that hold both; how many those are. values[VERIFY_ROUNDS]. */
static size_t pair_parties(const struct view *view, struct party a, struct party b, enum half half, double *values)
{
	size_t count = 0;

	for (size_t r = 0; r < view->point->rounds; r++) {
		double value = between(view, r, a, b);

		if (counts(view, r, half) && isfinite(value))
			values[count++] = value;
	}
	return count;
}

/* NaN if there are too few. */
static double median(const double *values, size_t count)
{
	return count < LEAST_ROUNDS ? NAN : stats_median(values, count);
}

/* The way in which an entrant is dearer next to libc, as the decision has it. What was hardly measured in one of them
 * is NOBODY's: the other alone would speak too well of it. */
static struct party party_of(const struct view *view, size_t entrant, enum half half)
{
	double values[VERIFY_ROUNDS], l[2];

	if (!view->alone || entrant == LIBC || entrant == NOBODY)
		return (struct party){entrant, false};
	for (unsigned alone = 0; alone < 2; alone++) {
		struct party party = {entrant, alone == 1}, libc = {LIBC, alone == 1};

		l[alone] = median(values, pair_parties(view, party, libc, half, values));
	}
	return (struct party){isnan(l[0] + l[1]) ? NOBODY : entrant, costs_alone_counts(l[0], l[1])};
}

/* One entrant's cost next to another's, each as it is dearer. libc is the measure of both ways, so follows the other.
 */
static size_t pair(const struct view *view, size_t entrant, size_t other, enum half half, double *values)
{
	struct party a = party_of(view, entrant, half), b = party_of(view, other, half);

	if (a.entrant == NOBODY || b.entrant == NOBODY)
		return 0;
	if (a.entrant == LIBC)
		a.alone = b.alone;
	if (b.entrant == LIBC)
		b.alone = a.alone;
	return pair_parties(view, a, b, half, values);
}

static double compare(const struct view *view, size_t entrant, size_t other, enum half half)
{
	double values[VERIFY_ROUNDS];

	return median(values, pair(view, entrant, other, half, values));
}

/* Design section 1's denominator, w C_libc + max(0, D_libc). */
static double scrub_scale(const struct verify_point *point)
{
	double clear[VERIFY_ROUNDS], displaced[VERIFY_ROUNDS];
	size_t count = 0;

	for (size_t r = 0; r < point->rounds; r++) {
		const struct verify_cost *at = cost_at(point, r, LIBC);

		if (isnan(at->clear + at->displaced))
			continue;
		clear[count] = (double)at->clear;
		displaced[count++] = (double)at->displaced;
	}
	return DECIDE_SCRUB_WEIGHT * stats_median(clear, count) + fmax(0, stats_median(displaced, count));
}

/* --- entrants ---------------------------------------------------------------------------------------------------- */

static size_t find_way(const struct verify_point *point, const struct verify_way *way)
{
	for (size_t e = 0; e < point->entrant_count; e++)
		if (point->entrants[e].kind == VERIFY_KERNEL && point->entrants[e].way.kernel == way->kernel &&
		    point->entrants[e].way.chunk == way->chunk)
			return e;
	return NOBODY;
}

static size_t find_kind(const struct verify_point *point, enum verify_kind kind)
{
	for (size_t e = 0; e < point->entrant_count; e++)
		if (point->entrants[e].kind == kind)
			return e;
	return NOBODY;
}

static size_t find_unhinted(const struct verify_point *point, const struct pageclear_policy *policy, unsigned intent)
{
	for (size_t e = 0; e < point->entrant_count; e++)
		if (point->entrants[e].kind == VERIFY_UNHINTED && point->entrants[e].policy == policy &&
		    point->entrants[e].intent == intent)
			return e;
	return NOBODY;
}

static unsigned hint(enum verify_shape shape)
{
	return shape == VERIFY_CACHED ? PAGECLEAR_CACHED : shape == VERIFY_FLUSHED ? PAGECLEAR_FLUSHED : 0;
}

struct verify_way verify_choice(const struct pageclear_policy *policy, enum verify_shape shape, uint64_t bytes,
                                unsigned intent)
{
	struct pageclear_query query = {
		.size = sizeof(query), .len = (size_t)bytes, .intent = intent | hint(shape), .threads = 1};
	struct pageclear_choice choice = {.size = sizeof(choice)};
	const struct pc_kernel *kernel;

	pageclear_policy_choose(policy, &query, &choice);
	kernel = pc_kernel_find(choice.kernel);
	return (struct verify_way){.kernel = kernel != NULL ? pc_kernel_index(kernel) : LIBC,
	                           .chunk = choice.chunk < bytes ? choice.chunk : 0};
}

/* Ties go to the earlier one. NOBODY if none of them was measured well enough in that half. */
static size_t best_of(const struct view *view, enum half half)
{
	double least = INFINITY;
	size_t best = NOBODY;

	for (size_t e = 0; e < view->point->entrant_count; e++) {
		double value;

		if (view->point->entrants[e].kind != VERIFY_KERNEL)
			continue;
		value = compare(view, e, LIBC, half);
		if (value < least) {
			least = value;
			best = e;
		}
	}
	return best;
}

/* --- one size ---------------------------------------------------------------------------------------------------- */

bool verify_point_serves(const struct verify_point *point, unsigned intent)
{
	return (point->shape == VERIFY_SCRUB) == (intent == PAGECLEAR_SCRUB);
}

bool verify_point_alone(const struct verify_point *point, unsigned intent)
{
	return point->shape == VERIFY_FLUSHED && intent == PAGECLEAR_COLD &&
	       costs_asked_alone(PC_FLUSHED, 1, point->bytes);
}

/* Picked on one half and valued on the other, then the other way round: the mean of the two halves the noise. */
static void judge_halves(const struct view *view, size_t own, struct verify_outcome *out)
{
	size_t even = best_of(view, EVEN), odd = best_of(view, ODD);
	size_t again = find_kind(view->point, VERIFY_AGAIN);

	out->regret = (compare(view, own, even, ODD) + compare(view, own, odd, EVEN)) / 2;
	out->best = (compare(view, even, LIBC, ODD) + compare(view, odd, LIBC, EVEN)) / 2;
	out->floor = fabs(compare(view, again, LIBC, ODD) + compare(view, again, LIBC, EVEN)) / 2;
}

static struct view view_of(const struct verify_point *point, unsigned intent)
{
	return (struct view){.point = point,
	                     .read = intent == PAGECLEAR_HOT,
	                     .alone = verify_point_alone(point, intent),
	                     .scale = point->shape == VERIFY_SCRUB ? scrub_scale(point) : 0};
}

struct interval verify_point_between(const struct verify_point *point, unsigned intent, const struct verify_way *a,
                                     const struct verify_way *b)
{
	struct view view = view_of(point, intent);
	double values[VERIFY_ROUNDS];
	bool told = point->shape != VERIFY_SCRUB || view.scale > 0;
	size_t count = told ? pair(&view, find_way(point, a), find_way(point, b), ALL, values) : 0;

	return stats_median_interval(values, count, 0.95);
}

bool verify_point_judge(const struct verify_point *point, unsigned intent, const struct pageclear_policy *policy,
                        struct verify_outcome *out)
{
	struct view view = view_of(point, intent);
	struct verify_way chosen = verify_choice(policy, point->shape, point->bytes, intent);
	size_t own = find_way(point, &chosen), best;

	*out = (struct verify_outcome){NAN, NAN, NAN, NAN, NAN, NAN, chosen, chosen};
	if (point->shape == VERIFY_SCRUB && !(view.scale > 0))
		return false;
	judge_halves(&view, own, out);
	out->own = compare(&view, own, LIBC, ALL);
	out->unhinted = compare(&view, find_unhinted(point, policy, intent), LIBC, ALL);
	out->against = compare(&view, find_kind(point, VERIFY_AGAINST), LIBC, ALL);
	best = best_of(&view, ALL);
	if (best != NOBODY)
		out->better = point->entrants[best].way;
	return !isnan(out->regret + out->floor + out->own + out->best);
}
