/* From sizes to a verdict; see verify.h. Pure but for looking choices up in the policy, which is immutable. */
#include <errno.h>
#include <math.h>
#include <pageclear/policy.h>
#include <stdlib.h>

#include "calibrd/stats.h"
#include "calibrd/verify.h"

/* The 95th percentile rests on the worst one or two sizes: disturbances show there first. */
static const double p95_slack = 0.10;

/* A saving so large that noise in the displacement must have made it counts as this share of libc's cost. */
static const double least_share = 0.05;

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

const struct verified *verify_worst(const struct verify_report *report, double tolerance)
{
	const struct verified *worst = NULL;
	double most = -INFINITY;

	for (size_t i = 0; i < report->count; i++) {
		const struct verified *told = &report->series[i].told;
		double beyond =
			fmax(told->mean - verify_mean_limit(told, tolerance), told->p95 - verify_p95_limit(told));

		if (!told->passed && beyond > most) {
			most = beyond;
			worst = told;
		}
	}
	return worst;
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
