/* Threshold and smallest worthwhile size of the probe; see probe_fit.h. */
#include "calibrd/probe_fit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "calibrd/costs.h"
#include "pageclear/policy.h"

static const double most_wrong = 0.1;  /* of single loads: more, and the clock is too coarse or the caches too alike */
static const double least_gain = 0.03; /* what a probe must earn, as everywhere */
static const double most_loss = 0.06;  /* on memory that is cached after all: as much as a switch must earn */

int probe_set_add(struct probe_set *set, const struct bench_probe *probe)
{
	if (set->count == set->room) {
		size_t room = set->room > 0 ? 2 * set->room : 256;
		struct bench_probe *more = realloc(set->probes, room * sizeof(*more));

		if (more == NULL)
			return -ENOMEM;
		set->probes = more;
		set->room = room;
	}
	set->probes[set->count++] = *probe;
	return 0;
}

void probe_set_clear(struct probe_set *set)
{
	free(set->probes);
	*set = (struct probe_set){0};
}

/* --- the threshold ----------------------------------------------------------------------------------------------- */

/* Sizes whose "cached" state is real: well inside the last-level cache, if we know where it ends. */
static bool tells(const struct bench_probe *probe, uint64_t knee_bytes)
{
	return knee_bytes == 0 || probe->bytes <= knee_bytes / 2;
}

static bool is_slow(double ns, double threshold)
{
	return ns > threshold;
}

/* Share of loads that a threshold puts on the wrong side, both priors weighing the same. */
static double load_errors(const struct probe_set *set, uint64_t knee_bytes, double threshold)
{
	double wrong[PC_PRIORS] = {0}, all[PC_PRIORS] = {0};

	for (size_t i = 0; i < set->count; i++) {
		const struct bench_probe *probe = &set->probes[i];

		if (!tells(probe, knee_bytes))
			continue;
		for (unsigned j = 0; j < BENCH_PROBE_LINES; j++) {
			all[probe->prior]++;
			wrong[probe->prior] += is_slow(probe->loads[j], threshold) != (probe->prior == PC_FLUSHED);
		}
	}
	if (all[PC_CACHED] == 0 || all[PC_FLUSHED] == 0)
		return 1;
	return (wrong[PC_CACHED] / all[PC_CACHED] + wrong[PC_FLUSHED] / all[PC_FLUSHED]) / 2;
}

/* The middle (in log) of the first range of thresholds that are best, all of them: far from both kinds of loads. */
static double best_threshold(const struct probe_set *set, uint64_t knee_bytes, double *errors)
{
	double low = NAN, high = NAN;
	bool within = false;

	*errors = 1;
	for (double ns = 2; ns < 2000; ns *= 1.02) {
		double wrong = load_errors(set, knee_bytes, ns);

		if (wrong < *errors - 1e-9) {
			*errors = wrong;
			low = ns;
			within = true;
		}
		within = within && wrong < *errors + 1e-9;
		if (within)
			high = ns;
	}
	return sqrt(low * high);
}

/* --- what a probe costs and earns
 * ------------------------------------------------------------------------------------------- */

/* libpolicy's rule: flushed if more than half of the lines are slow. */
static bool says_flushed(const struct bench_probe *probe, double threshold)
{
	unsigned slow = 0;

	for (unsigned j = 0; j < BENCH_PROBE_LINES; j++)
		slow += is_slow(probe->loads[j], threshold);
	return 2 * slow > BENCH_PROBE_LINES;
}

struct behaviour {
	double wrong;    /* share of probes that told the wrong prior */
	double whole_ns; /* median cost of a probe */
};

static struct behaviour behaviour(const struct probe_set *set, uint64_t bytes, enum pc_prior prior, double threshold)
{
	double whole[1024];
	size_t count = 0, wrong = 0;

	for (size_t i = 0; i < set->count && count < 1024; i++) {
		const struct bench_probe *probe = &set->probes[i];

		if (probe->bytes != bytes || probe->prior != prior)
			continue;
		whole[count++] = probe->whole_ns;
		wrong += says_flushed(probe, threshold) != (prior == PC_FLUSHED);
	}
	return (struct behaviour){count > 0 ? (double)wrong / (double)count : NAN, stats_median(whole, count)};
}

static unsigned chosen(const struct decision *decision, enum pc_prior prior, uint64_t bytes)
{
	for (size_t i = 0; i < decision->table_count; i++) {
		const struct pc_table *table = &decision->tables[i];

		if (table->intent == PAGECLEAR_COLD && table->prior == prior && table->threads == 1) {
			const struct pc_kernel *kernel = pc_kernel_find(pc_table_rule(table, bytes)->kernel);

			return kernel != NULL ? pc_kernel_index(kernel) : 0;
		}
	}
	return 0;
}

static double clear_ns(const struct dataset *data, unsigned kernel, enum pc_prior prior, uint64_t bytes)
{
	struct cost_key key = {COST_CLEAR, prior, bytes, 1};

	return costs_ns(data, &key, kernel);
}

static double chosen_ns(const struct dataset *data, const struct decision *decision, enum pc_prior told,
                        enum pc_prior prior, uint64_t bytes)
{
	return clear_ns(data, chosen(decision, told, bytes), prior, bytes);
}

/* What cold memory in that state costs with a probe, which may tell the other one. */
static double probed_ns(const struct probe_set *set, const struct dataset *data, const struct decision *decision,
                        double threshold, enum pc_prior prior, uint64_t bytes)
{
	struct behaviour seen = behaviour(set, bytes, prior, threshold);
	double right = chosen_ns(data, decision, prior, prior, bytes);
	double wrong = chosen_ns(data, decision, prior == PC_CACHED ? PC_FLUSHED : PC_CACHED, prior, bytes);

	return seen.whole_ns + (1 - seen.wrong) * right + seen.wrong * wrong;
}

/* Cached memory must not suffer, next to the better of libc and the choice for it: a choice's own gain is not spent on
 * probing. Both states together must gain. NaN, not measured, is not worthwhile. */
static bool worthwhile(const struct probe_set *set, const struct dataset *data, const struct decision *decision,
                       double threshold, uint64_t bytes)
{
	double cached = probed_ns(set, data, decision, threshold, PC_CACHED, bytes);
	double flushed = probed_ns(set, data, decision, threshold, PC_FLUSHED, bytes);
	double due = fmin(clear_ns(data, 0, PC_CACHED, bytes), chosen_ns(data, decision, PC_CACHED, PC_CACHED, bytes));
	double gain = (log(chosen_ns(data, decision, PC_UNKNOWN, PC_CACHED, bytes) / cached) +
	               log(chosen_ns(data, decision, PC_UNKNOWN, PC_FLUSHED, bytes) / flushed)) /
	              2;

	return cached <= due * (1 + most_loss) && gain >= least_gain;
}

/* --- from which size on ------------------------------------------------------------------------------------------ */

static uint64_t largest(const struct probe_set *set, uint64_t knee_bytes)
{
	uint64_t last = 0;

	for (size_t i = 0; i < set->count; i++)
		if (tells(&set->probes[i], knee_bytes) && set->probes[i].bytes > last)
			last = set->probes[i].bytes;
	return last;
}

/* The smallest size from which on every probed size (an octave apart) inside the caches is worthwhile. */
static uint64_t smallest(const struct probe_set *set, const struct dataset *data, const struct decision *decision,
                         uint64_t knee_bytes, double threshold)
{
	uint64_t from = 0;

	for (uint64_t bytes = largest(set, knee_bytes); bytes > 0 && worthwhile(set, data, decision, threshold, bytes);
	     bytes /= 2)
		from = bytes;
	return from;
}

/* Share of wrong answers, both priors weighing the same, at the sizes from `from` up that can be cached. */
static double wrong_from(const struct probe_set *set, uint64_t from, uint64_t knee_bytes, double threshold)
{
	double sum = 0;
	unsigned sizes = 0;

	for (uint64_t bytes = from; bytes <= largest(set, knee_bytes); bytes *= 2, sizes++)
		sum += (behaviour(set, bytes, PC_CACHED, threshold).wrong +
		        behaviour(set, bytes, PC_FLUSHED, threshold).wrong) /
		       2;
	return sum / sizes;
}

void probe_fit(const struct probe_set *set, const struct dataset *data, const struct decision *decision,
               uint64_t knee_bytes, struct probe_fit *out)
{
	double errors;

	*out = (struct probe_fit){.lines = BENCH_PROBE_LINES};
	out->slow_ns = best_threshold(set, knee_bytes, &errors);
	if (!(errors <= most_wrong)) {
		snprintf(out->reason, sizeof(out->reason),
		         "timed loads do not tell cached from flushed here (%.0f %% wrong)", 100 * errors);
		return;
	}
	out->from = smallest(set, data, decision, knee_bytes, out->slow_ns);
	if (out->from == 0) {
		snprintf(out->reason, sizeof(out->reason), "no size at which a probe earns what it costs");
		return;
	}
	out->wrong = wrong_from(set, out->from, knee_bytes, out->slow_ns);
	snprintf(out->reason, sizeof(out->reason), "%.1f %% of single loads on the wrong side", 100 * errors);
}
