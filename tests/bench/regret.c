/*
 * What a policy's choices cost at sizes that calibration never saw: regret against the best kernel (picked on half of
 * the rounds, valued on the other half), gain over libc, and the noise floor (libc against itself). The library is
 * timed as programs call it. A report for `make bench`; it judges nothing.
 */
#include <math.h>
#include <pageclear/policy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "calibrd/meter.h"
#include "calibrd/random.h"
#include "calibrd/stats.h"
#include "kernels/kernels.h"

enum { ROUNDS = 24, SIZES = 14, LIBRARY = PC_KERNEL_MAX, UNHINTED, AGAIN, ENTRANTS };

static const uint64_t most_bytes = 64 << 20;
static const double scrub_weight = 0.1;

static const struct pageclear_policy *policy;
static unsigned hinted, unhinted; /* intents of the series that runs */

static void library_zero(void *dst, size_t len)
{
	pageclear_policy_zero(policy, dst, len, hinted);
}

static void library_unhinted(void *dst, size_t len)
{
	pageclear_policy_zero(policy, dst, len, unhinted);
}

static const struct pc_kernel library = {.name = "library", .clear = library_zero};
static const struct pc_kernel library_blind = {.name = "unhinted", .clear = library_unhinted};

struct question {
	const char *name;
	unsigned intent, hint;
	enum pc_prior prior;
	bool read, victims;
	uint64_t least;
};

static const struct question questions[] = {
	{"hot, cached", PAGECLEAR_HOT, PAGECLEAR_CACHED, PC_CACHED, true, false, 1024},
	{"hot, flushed", PAGECLEAR_HOT, PAGECLEAR_FLUSHED, PC_FLUSHED, true, false, 1024},
	{"cold, cached", PAGECLEAR_COLD, PAGECLEAR_CACHED, PC_CACHED, false, false, 1024},
	{"cold, flushed", PAGECLEAR_COLD, PAGECLEAR_FLUSHED, PC_FLUSHED, false, false, 1024},
	{"scrub", PAGECLEAR_SCRUB, 0, PC_FLUSHED, false, true, 16384},
};

static bool takes_part(unsigned entrant)
{
	if (entrant < PC_KERNEL_MAX)
		return entrant < pc_kernel_count && pc_kernel_runs(&pc_kernels[entrant]);
	return true;
}

static const struct pc_kernel *kernel_of(unsigned entrant)
{
	if (entrant == LIBRARY)
		return &library;
	if (entrant == UNHINTED)
		return &library_blind;
	return entrant == AGAIN ? &pc_kernels[0] : &pc_kernels[entrant];
}

/* What one entrant cost in one round, ns: the clear (with its first read, where that counts) and, for scrub, what it
 * displaced. NaN where a sample was disturbed. */
struct cost {
	double clear, displaced;
};

static double displacement(struct meter *meter, uint64_t bytes, const struct pc_kernel *kernel)
{
	static const uint64_t victims[] = {32 << 10, 512 << 10, 4 << 20};
	double sum = 0;

	for (unsigned v = 0; v < (bytes >= victims[1] ? 3u : 2u); v++) {
		struct meter_ask ask = {.kernel = kernel,
		                        .phase = PHASE_VICTIM_L1 + v,
		                        .prior = PC_FLUSHED,
		                        .bytes = bytes,
		                        .victim_bytes = victims[v]};
		struct meter_sample with, without;

		if (meter->ops->sample(meter, &ask, &with) < 0 || with.tainted)
			return NAN;
		ask.kernel = NULL;
		if (meter->ops->sample(meter, &ask, &without) < 0 || without.tainted)
			return NAN;
		sum += with.ns - without.ns;
	}
	return sum;
}

static struct cost cost_once(struct meter *meter, const struct question *question, uint64_t bytes,
                             const struct pc_kernel *kernel)
{
	struct meter_ask ask = {.kernel = kernel,
	                        .phase = PHASE_CLEAR,
	                        .prior = question->prior,
	                        .bytes = bytes,
	                        .passes = 3,
	                        .read = question->read};
	struct meter_sample sample;

	if (meter->ops->sample(meter, &ask, &sample) < 0 || sample.tainted)
		return (struct cost){NAN, NAN};
	return (struct cost){sample.ns + sample.read_ns, question->victims ? displacement(meter, bytes, kernel) : 0};
}

/* Long samples are seldom undisturbed on a shared host: up to four tries. */
static struct cost cost(struct meter *meter, const struct question *question, uint64_t bytes,
                        const struct pc_kernel *kernel)
{
	struct cost ns = {NAN, NAN};

	for (int try = 0; try < 4 && isnan(ns.clear + ns.displaced); try++)
		ns = cost_once(meter, question, bytes, kernel);
	return ns;
}

struct size_result {
	double regret, blind_regret, gain, blind_gain, best_gain, floor;
};

/* Median over every second round, from `first`, of (cost of entrant - cost of libc) / scale. */
static double relative(struct cost (*ns)[ENTRANTS], unsigned entrant, unsigned first, double weight, double scale)
{
	double values[ROUNDS];
	size_t count = 0;

	for (unsigned r = first; r < ROUNDS; r += 2) {
		double more = weight * (ns[r][entrant].clear - ns[r][0].clear) + ns[r][entrant].displaced -
		              ns[r][0].displaced;

		if (!isnan(more))
			values[count++] = more / scale;
	}
	return stats_median(values, count);
}

/* weight x clear + displacement of libc, a negative displacement counting as none: design section 1's denominator. */
static double libc_cost(struct cost (*ns)[ENTRANTS], double weight)
{
	double clear[ROUNDS], displaced[ROUNDS];
	size_t count = 0;

	for (unsigned r = 0; r < ROUNDS; r++)
		if (!isnan(ns[r][0].clear + ns[r][0].displaced)) {
			clear[count] = ns[r][0].clear;
			displaced[count++] = ns[r][0].displaced;
		}
	return weight * stats_median(clear, count) + fmax(0, stats_median(displaced, count));
}

/* For scrub regret and gain are differences in units of libc's cost; a ratio of displacements means nothing near 0. */
static void judge(struct cost (*ns)[ENTRANTS], bool scrub, struct size_result *out)
{
	double weight = scrub ? scrub_weight : 1, scale = libc_cost(ns, weight), best, own, blind, again;
	unsigned winner = 0;

	for (unsigned e = 1; e < PC_KERNEL_MAX; e++)
		if (takes_part(e) && relative(ns, e, 0, weight, scale) < relative(ns, winner, 0, weight, scale))
			winner = e;
	best = relative(ns, winner, 1, weight, scale);
	own = relative(ns, LIBRARY, 1, weight, scale);
	blind = relative(ns, UNHINTED, 1, weight, scale);
	again = relative(ns, AGAIN, 1, weight, scale);
	if (scrub)
		*out = (struct size_result){own - best, blind - best, -own, -blind, -best, fabs(again)};
	else
		*out = (struct size_result){log((1 + own) / (1 + best)),
		                            log((1 + blind) / (1 + best)),
		                            -log(1 + own),
		                            -log(1 + blind),
		                            -log(1 + best),
		                            fabs(log(1 + again))};
}

static void run_size(struct meter *meter, const struct question *question, uint64_t bytes, struct random *random,
                     struct size_result *out)
{
	static struct cost ns[ROUNDS][ENTRANTS];

	for (unsigned r = 0; r < ROUNDS; r++) {
		unsigned order[ENTRANTS], count = 0;

		for (unsigned e = 0; e < ENTRANTS; e++)
			if (takes_part(e))
				order[count++] = e;
		random_shuffle(random, order, count);
		meter->ops->round_begin(meter, random_next(random));
		for (unsigned i = 0; i < count; i++)
			ns[r][order[i]] = cost(meter, question, bytes, kernel_of(order[i]));
		if (meter->ops->round_end(meter))
			for (unsigned e = 0; e < ENTRANTS; e++)
				ns[r][e] = (struct cost){NAN, NAN};
	}
	judge(ns, question->victims, out);
}

/* Leaves out the sizes that had no undisturbed round; returns how many are left. */
static size_t only_numbers(double *x, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (!isnan(x[i]))
			x[kept++] = x[i];
	return kept;
}

static double mean(double *x, size_t n)
{
	double sum = 0;

	n = only_numbers(x, n);
	for (size_t i = 0; i < n; i++)
		sum += x[i];
	return sum / (double)n;
}

static double quantile(double *x, size_t n, double q)
{
	return stats_quantile(x, only_numbers(x, n), q);
}

/* Gain as a factor; of scrub's relative saving s that is 1 / (1 - s), capped where displacement noise ate the cost. */
static double shown(const struct question *question, double gain)
{
	return question->victims ? 1 / fmax(0.05, 1 - gain) : exp(gain);
}

static void run_series(struct meter *meter, const struct question *question, struct random *random)
{
	double regret[SIZES], blind[SIZES], gain[SIZES], blind_gain[SIZES], best[SIZES], noise[SIZES];
	double octaves = log2((double)(question->victims ? 16 << 20 : (int)most_bytes) / (double)question->least);

	hinted = question->intent | question->hint;
	unhinted = question->intent;
	for (unsigned s = 0; s < SIZES; s++) {
		/* One random size in each of equal steps of the logarithm, in whole 16 bytes. */
		uint64_t bytes =
			(uint64_t)((double)question->least * exp2(octaves * (s + random_unit(random)) / SIZES)) / 16 *
			16;
		struct size_result result;

		run_size(meter, question, bytes, random, &result);
		regret[s] = result.regret;
		blind[s] = result.blind_regret;
		gain[s] = result.gain;
		blind_gain[s] = result.blind_gain;
		best[s] = result.best_gain;
		noise[s] = result.floor;
		printf("  %-14s %9llu B  regret %+6.1f %%  unhinted %+6.1f %%   gain %5.2fx  unhinted %5.2fx  best "
		       "%5.2fx  floor %4.1f %%\n",
		       question->name, (unsigned long long)bytes, 100 * result.regret, 100 * result.blind_regret,
		       shown(question, result.gain), shown(question, result.blind_gain),
		       shown(question, result.best_gain), 100 * result.floor);
		fflush(stdout);
	}
	printf("%-16s regret: mean %.1f %%, p95 %.1f %%, worst %.1f %%; unhinted mean %.1f %%; gain: %.2fx, best "
	       "%.2fx, "
	       "unhinted %.2fx; floor: mean %.1f %%\n",
	       question->name, 100 * mean(regret, SIZES), 100 * quantile(regret, SIZES, 0.95),
	       100 * quantile(regret, SIZES, 1), 100 * mean(blind, SIZES), shown(question, mean(gain, SIZES)),
	       shown(question, mean(best, SIZES)), shown(question, mean(blind_gain, SIZES)), 100 * mean(noise, SIZES));
}

int main(int argc, char **argv)
{
	struct random random = {(uint64_t)time(NULL)};
	struct meter *meter = NULL;
	struct pc_why why;
	int r = argc == 2 ? pageclear_policy_open(&policy, argv[1]) : -1;

	if (r < 0) {
		fprintf(stderr, "usage: %s POLICY.YAML (%s)\n", argv[0], argc == 2 ? strerror(-r) : "which policy?");
		return 2;
	}
	if (meter_real_new(&meter, NULL, &why) < 0) {
		fprintf(stderr, "%s\n", why.text);
		return 1;
	}
	printf("sizes off the grid, %d rounds each, best kernel picked and valued on different rounds\n", ROUNDS);
	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++) {
		if (meter->ops->epoch(
			    meter, &(struct meter_room){.target_bytes = 2 * most_bytes, .victim_bytes = 16 << 20}) < 0)
			return 1;
		run_series(meter, &questions[i], &random);
	}
	meter_free(meter);
	pageclear_policy_close(policy);
	return 0;
}
