/* Threshold and smallest worthwhile size of the probe; see probe_fit.h. */
#include "calibrd/probe_fit.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "calibrd/costs.h"
#include "pageclear/policy.h"

static const double most_wrong = 0.1;  /* of single looks: more, and the clock is too coarse or the caches too alike */
static const double least_gain = 0.03; /* what a probe must earn, as everywhere */
static const double most_loss = 0.06;  /* on memory that is cached after all: as much as a switch must earn */
static const double most_share = 0.1;  /* of the clear of a target of which a quarter is cached: two looks */

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

/* Sizes whose "cached" state is real. On a shared host the knee moves by a factor of two and more within minutes, and
 * what of a target is gone by then is no wrong answer. */
static bool tells(uint64_t bytes, uint64_t knee_bytes)
{
	return knee_bytes == 0 || bytes <= knee_bytes / 4;
}

static bool is_slow(double ns, double threshold)
{
	return ns > threshold;
}

/* Share of looks that a threshold puts on the wrong side, both priors weighing the same. */
static double look_errors(const struct probe_set *set, uint64_t knee_bytes, double threshold)
{
	double wrong[PC_PRIORS] = {0}, all[PC_PRIORS] = {0};

	for (size_t i = 0; i < set->count; i++) {
		const struct bench_probe *probe = &set->probes[i];

		if (!tells(probe->bytes, knee_bytes))
			continue;
		for (unsigned j = 0; j < PC_PROBE_LOOKS; j++) {
			all[probe->prior]++;
			wrong[probe->prior] += is_slow(probe->looks[j], threshold) != (probe->prior == PC_FLUSHED);
		}
	}
	if (all[PC_CACHED] == 0 || all[PC_FLUSHED] == 0)
		return 1;
	return (wrong[PC_CACHED] / all[PC_CACHED] + wrong[PC_FLUSHED] / all[PC_FLUSHED]) / 2;
}

/* The middle (in log) of the first range of thresholds that are best, all of them: far from both kinds of looks. */
static double best_threshold(const struct probe_set *set, uint64_t knee_bytes, double *errors)
{
	double low = NAN, high = NAN;
	bool within = false;

	*errors = 1;
	for (double ns = 2; ns < 2000; ns *= 1.02) {
		double wrong = look_errors(set, knee_bytes, ns);

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

/* --- what a probe costs and earns -------------------------------------------------------------------------------- */

/* libpolicy's rule: flushed if both looks are slow. */
static bool says_flushed(const struct bench_probe *probe, double threshold)
{
	for (unsigned j = 0; j < PC_PROBE_LOOKS; j++)
		if (!is_slow(probe->looks[j], threshold))
			return false;
	return true;
}

/* Median cost of a probe. */
static double whole_ns(const struct probe_set *set, uint64_t bytes, enum pc_prior prior)
{
	double whole[1024];
	size_t count = 0;

	for (size_t i = 0; i < set->count && count < 1024; i++)
		if (set->probes[i].bytes == bytes && set->probes[i].prior == prior)
			whole[count++] = set->probes[i].whole_ns;
	return stats_median(whole, count);
}

/* Share of probes that told the wrong prior, of sizes from least to most; NaN without any. */
static double wrong_share(const struct probe_set *set, uint64_t least, uint64_t most, enum pc_prior prior,
                          double threshold)
{
	size_t count = 0, wrong = 0;

	for (size_t i = 0; i < set->count; i++) {
		const struct bench_probe *probe = &set->probes[i];

		if (probe->bytes < least || probe->bytes > most || probe->prior != prior)
			continue;
		count++;
		wrong += says_flushed(probe, threshold) != (prior == PC_FLUSHED);
	}
	return count > 0 ? (double)wrong / (double)count : NAN;
}

/* With the sizes an octave to either side, where those tell: a quick calibration has a dozen probes an epoch of each,
 * of which one that an interrupt spoils looks like eight in a hundred. */
static double wrong_around(const struct probe_set *set, uint64_t bytes, uint64_t knee_bytes, enum pc_prior prior,
                           double threshold)
{
	uint64_t above = tells(2 * bytes, knee_bytes) ? 2 * bytes : bytes;

	return wrong_share(set, bytes / 2, above, prior, threshold);
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

/* What is asked of one size, and with what. */
struct question {
	const struct probe_set *set;
	const struct dataset *data;
	const struct decision *decision;
	uint64_t knee_bytes, bytes;
	double threshold;
};

/* What a probe adds to the cost of cold memory in that state: itself, and wrong answers. */
static double added_ns(const struct question *q, enum pc_prior prior)
{
	double wrong = wrong_around(q->set, q->bytes, q->knee_bytes, prior, q->threshold);
	double right_ns = chosen_ns(q->data, q->decision, prior, prior, q->bytes);
	double wrong_ns = chosen_ns(q->data, q->decision, prior == PC_CACHED ? PC_FLUSHED : PC_CACHED, prior, q->bytes);

	return whole_ns(q->set, q->bytes, prior) + wrong * (wrong_ns - right_ns);
}

/* A target of which a quarter is cached, by the better choice: so much of either prior's cost, by size, as measured
 * (tests/bench/probe.c, `tail` and `half`). */
static double quarter_ns(const struct question *q)
{
	double least = INFINITY;

	for (enum pc_prior told = PC_CACHED; told <= PC_FLUSHED; told++)
		least = fmin(least, chosen_ns(q->data, q->decision, told, PC_CACHED, q->bytes) / 4 +
		                            chosen_ns(q->data, q->decision, told, PC_FLUSHED, q->bytes) * 3 / 4);
	return least;
}

/* ln of what the rule for an unknown prior takes over what a probe and its choice take. */
static double gain(const struct question *q, enum pc_prior prior)
{
	double probed_ns = chosen_ns(q->data, q->decision, prior, prior, q->bytes) + added_ns(q, prior);

	return log(chosen_ns(q->data, q->decision, PC_UNKNOWN, prior, q->bytes) / probed_ns);
}

/* Cached memory must not suffer, next to the better of libc and the choice for it: a choice's own gain is not spent on
 * probing, and what it loses by itself is not the probe's. Both states together must gain. In between, the looks must
 * not weigh. NaN, not measured, is not worthwhile. */
static bool worthwhile(const struct question *q)
{
	double due = fmin(clear_ns(q->data, 0, PC_CACHED, q->bytes),
	                  chosen_ns(q->data, q->decision, PC_CACHED, PC_CACHED, q->bytes));

	return added_ns(q, PC_CACHED) <= due * most_loss &&
	       (gain(q, PC_CACHED) + gain(q, PC_FLUSHED)) / 2 >= least_gain &&
	       whole_ns(q->set, q->bytes, PC_FLUSHED) <= most_share * quarter_ns(q);
}

/* --- from which size on ------------------------------------------------------------------------------------------ */

static uint64_t largest(const struct probe_set *set, uint64_t knee_bytes)
{
	uint64_t last = 0;

	for (size_t i = 0; i < set->count; i++)
		if (tells(set->probes[i].bytes, knee_bytes) && set->probes[i].bytes > last)
			last = set->probes[i].bytes;
	return last;
}

/* The smallest size from which on every probed size (an octave apart) inside the caches is worthwhile. */
static uint64_t smallest(struct question q)
{
	uint64_t from = 0;

	for (q.bytes = largest(q.set, q.knee_bytes); q.bytes > 0 && worthwhile(&q); q.bytes /= 2)
		from = q.bytes;
	return from;
}

/* Share of wrong answers, both priors weighing the same, at the sizes from `from` up that can be cached. */
static double wrong_from(const struct probe_set *set, uint64_t from, uint64_t knee_bytes, double threshold)
{
	double sum = 0;
	unsigned sizes = 0;

	for (uint64_t bytes = from; bytes <= largest(set, knee_bytes); bytes *= 2, sizes++)
		sum += (wrong_share(set, bytes, bytes, PC_CACHED, threshold) +
		        wrong_share(set, bytes, bytes, PC_FLUSHED, threshold)) /
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
		         "timed looks do not tell cached from flushed here (%.0f %% wrong)", 100 * errors);
		return;
	}
	out->from = smallest((struct question){set, data, decision, knee_bytes, 0, out->slow_ns});
	if (out->from == 0) {
		snprintf(out->reason, sizeof(out->reason), "no size at which a probe earns what it costs");
		return;
	}
	out->wrong = wrong_from(set, out->from, knee_bytes, out->slow_ns);
	snprintf(out->reason, sizeof(out->reason), "%.1f %% of single looks on the wrong side, %.1f %% of probes",
	         100 * errors, 100 * out->wrong);
}
