/* From measurements to a verdict; see verify.h. Pure but for looking choices up in the policy, which is immutable. */
#include <errno.h>
#include <math.h>
#include <pageclear/policy.h>
#include <stdlib.h>

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

/* The 95th percentile rests on the worst one or two sizes: disturbances show there first. */
static const double p95_slack = 0.10;

/* A saving so large that noise in the displacement must have made it counts as this share of libc's cost. */
static const double least_share = 0.05;

/* One size under one intent. */
struct view {
	const struct verify_point *point;
	bool read;    /* the first read counts */
	double scale; /* scrub: libc's cost, ns; 0: costs are compared as ratios */
};

/* --- costs ------------------------------------------------------------------------------------------------------- */

static const struct verify_cost *cost_at(const struct verify_point *point, size_t round, size_t entrant)
{
	return &point->costs[round * point->entrant_count + entrant];
}

static double cost(const struct view *view, size_t round, size_t entrant)
{
	const struct verify_cost *at = cost_at(view->point, round, entrant);

	if (view->point->shape == VERIFY_SCRUB)
		return DECIDE_SCRUB_WEIGHT * (double)at->clear + (double)at->displaced;
	return (double)at->clear + (view->read ? (double)at->read : 0);
}

static bool counts(const struct view *view, size_t round, enum half half)
{
	return half == ALL || (view->point->epoch[round] & 1) == (half == ODD);
}

/* One entrant's cost next to another's in the rounds that hold both; how many those are. values[VERIFY_ROUNDS]. */
static size_t pair(const struct view *view, size_t entrant, size_t other, enum half half, double *values)
{
	size_t count = 0;

	if (entrant == NOBODY || other == NOBODY)
		return 0;
	for (size_t r = 0; r < view->point->rounds; r++) {
		double a = cost(view, r, entrant), b = cost(view, r, other);
		double value = view->scale > 0 ? (a - b) / view->scale : log(a / b);

		if (counts(view, r, half) && isfinite(value))
			values[count++] = value;
	}
	return count;
}

/* The median of that, NaN if there are too few. */
static double compare(const struct view *view, size_t entrant, size_t other, enum half half)
{
	double values[VERIFY_ROUNDS];
	size_t count = pair(view, entrant, other, half, values);

	return count < LEAST_ROUNDS ? NAN : stats_median(values, count);
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

/* Picked on one half and valued on the other, both ways: the mean of the two halves the noise. */
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

/* --- a series ---------------------------------------------------------------------------------------------------- */

/* What the sizes of a series add up to. */
struct tally {
	size_t count;
	double *regret, *floor;                /* [count] */
	double own, best;                      /* sums */
	double unhinted, against, own_against; /* likewise, over the sizes at which they could be told */
	size_t unhinted_count, against_count;
};

static void tally_add(struct tally *tally, const struct verify_outcome *outcome)
{
	tally->regret[tally->count] = outcome->regret;
	tally->floor[tally->count++] = outcome->floor;
	tally->own += outcome->own;
	tally->best += outcome->best;
	if (!isnan(outcome->unhinted)) {
		tally->unhinted += outcome->unhinted;
		tally->unhinted_count++;
	}
	if (!isnan(outcome->against)) {
		tally->against += outcome->against;
		tally->own_against += outcome->own;
		tally->against_count++;
	}
}

static double mean(double sum, size_t count)
{
	return count == 0 ? NAN : sum / (double)count;
}

static double mean_of(const double *x, size_t count)
{
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += x[i];
	return mean(sum, count);
}

/* From nats to a share: cost over the other cost, less one. Scrub's are shares already. */
static double share(unsigned intent, double nats)
{
	return intent == PAGECLEAR_SCRUB ? nats : expm1(nats);
}

/* Cost over libc's. */
static double relative(unsigned intent, double against_libc)
{
	return intent == PAGECLEAR_SCRUB ? fmax(least_share, 1 + against_libc) : exp(against_libc);
}

static void tell(const struct tally *tally, struct verified *told)
{
	unsigned intent = told->intent;
	double own = relative(intent, mean(tally->own, tally->count));

	told->sizes = (unsigned)tally->count;
	told->mean = share(intent, mean_of(tally->regret, tally->count));
	told->p95 = share(intent, stats_quantile(tally->regret, tally->count, 0.95));
	told->floor = share(intent, mean_of(tally->floor, tally->count));
	told->floor_p95 = share(intent, stats_quantile(tally->floor, tally->count, 0.95));
	told->gain = 1 / own;
	told->best_gain = 1 / relative(intent, mean(tally->best, tally->count));
	told->unhinted =
		tally->unhinted_count == 0 ? NAN : 1 / relative(intent, mean(tally->unhinted, tally->unhinted_count));
	told->against = tally->against_count == 0
	                        ? NAN
	                        : relative(intent, mean(tally->against, tally->against_count)) /
	                                  relative(intent, mean(tally->own_against, tally->against_count));
}

double verify_mean_limit(const struct verified *told, double tolerance)
{
	return told->floor + (told->intent == PAGECLEAR_SCRUB ? VERIFY_SCRUB_TIMES : 1) * tolerance;
}

double verify_p95_limit(const struct verified *told)
{
	return told->floor_p95 + p95_slack;
}

static enum verify_shape shape_of(const struct verified *told)
{
	return told->intent == PAGECLEAR_SCRUB ? VERIFY_SCRUB
	       : told->prior == PC_CACHED      ? VERIFY_CACHED
	                                       : VERIFY_FLUSHED;
}

static void judge_series(const struct verify_data *data, const struct pageclear_policy *policy, struct tally *tally,
                         struct verify_series *out)
{
	double worst = -INFINITY;

	for (size_t i = 0; i < data->count; i++) {
		const struct verify_point *point = &data->points[i];
		struct verify_outcome outcome;

		if (point->shape != shape_of(&out->told))
			continue;
		out->measured++;
		if (!verify_point_judge(point, out->told.intent, policy, &outcome))
			continue;
		tally_add(tally, &outcome);
		if (outcome.regret <= worst)
			continue;
		worst = outcome.regret;
		out->told.worst = share(out->told.intent, worst);
		out->told.worst_bytes = point->bytes;
		out->chosen = outcome.chosen;
		out->better = outcome.better;
	}
	tell(tally, &out->told);
}

static int too_few(const struct verify_series *series, struct pc_why *why)
{
	bool scrub = series->told.intent == PAGECLEAR_SCRUB;

	return pc_why(why, -ENODATA,
	              "only %u of %u sizes could be measured undisturbed for %s%s%s: this host is too busy or too slow "
	              "for this effort",
	              series->told.sizes, series->measured, pc_intent_name(series->told.intent), scrub ? "" : ", ",
	              scrub ? "" : pc_prior_name(series->told.prior));
}

static int judge_all(const struct verify_data *data, const struct pageclear_policy *policy, double tolerance,
                     double *room, struct verify_report *out, struct pc_why *why)
{
	static const struct {
		unsigned intent;
		enum pc_prior prior;
	} asked[VERIFY_SERIES] = {{PAGECLEAR_HOT, PC_CACHED},
	                          {PAGECLEAR_HOT, PC_FLUSHED},
	                          {PAGECLEAR_COLD, PC_CACHED},
	                          {PAGECLEAR_COLD, PC_FLUSHED},
	                          {PAGECLEAR_SCRUB, PC_UNKNOWN}};

	*out = (struct verify_report){.passed = true};
	for (size_t i = 0; i < VERIFY_SERIES; i++) {
		struct tally tally = {.regret = room, .floor = room + data->count};
		struct verify_series *series = &out->series[out->count++];
		struct verified *told = &series->told;

		told->intent = asked[i].intent;
		told->prior = asked[i].prior;
		judge_series(data, policy, &tally, series);
		if (2 * told->sizes < series->measured || told->sizes == 0)
			return too_few(series, why);
		told->passed = told->mean <= verify_mean_limit(told, tolerance) && told->p95 <= verify_p95_limit(told);
		out->passed &= told->passed;
	}
	return 0;
}

int verify_judge(const struct verify_data *data, const struct pageclear_policy *policy, double tolerance,
                 struct verify_report *out, struct pc_why *why)
{
	double *room = calloc(2 * data->count + 1, sizeof(*room));
	int r;

	if (room == NULL)
		return pc_why(why, -ENOMEM, "out of memory");
	r = judge_all(data, policy, tolerance, room, out, why);
	free(room);
	return r;
}
