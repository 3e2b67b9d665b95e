/* Racing by dominance; see race.h. */
#include "calibrd/race.h"

#include <math.h>

#include "calibrd/costs.h"
#include "calibrd/stats.h"
#include "kernels/kernels.h"

/* A win below 3 % decides nothing; plausible means inside the 99.5 % interval (design: racing). */
static const double margin = 0.03, confidence = 0.995;

static const struct {
	enum cost_kind kind;
	enum pc_prior prior;
} conditions[] = {
	{COST_CLEAR, PC_CACHED}, {COST_HOT, PC_CACHED},     {COST_CLEAR, PC_FLUSHED},
	{COST_HOT, PC_FLUSHED},  {COST_SINGLE, PC_FLUSHED},
};

enum {
	CONDITIONS = sizeof(conditions) / sizeof(conditions[0]),
	HEARING = 3,      /* rounds before a kernel may be dropped for being expensive */
	MIDDLE = 1 << 20, /* beyond every L2, inside every last-level cache that deserves the name */
};

/* True if under every condition measured so far `kernel` cannot plausibly win more than the margin against `rival`. */
static bool beaten(const struct dataset *data, uint64_t bytes, unsigned kernel, unsigned rival)
{
	struct cost_points pairs;
	unsigned seen = 0;

	for (unsigned i = 0; i < CONDITIONS; i++) {
		struct cost_key key = {conditions[i].kind, conditions[i].prior, bytes, 1};

		costs_paired(data, &key, kernel, rival, &pairs);
		if (pairs.count == 0)
			continue;
		seen++;
		if (stats_median_interval(pairs.value, pairs.count, confidence).low <= -margin)
			return false;
	}
	return seen > 0;
}

static bool loses_to(const struct dataset *data, uint64_t bytes, unsigned kernel, unsigned rival)
{
	if (!beaten(data, bytes, kernel, rival))
		return false;
	return rival < kernel || !beaten(data, bytes, rival, kernel); /* a tie: the simpler one stays */
}

/* Lowers behind[k] to the kernel's distance from the best under one condition, in nats. One or two rounds are no
 * hearing: whoever has no more there is not judged by it. */
static void find_distances(const struct dataset *data, const struct cost_key *key, uint32_t mask, double *behind)
{
	struct cost_points pairs;
	double l[PC_KERNEL_MAX], best = INFINITY;

	for (unsigned k = 1; k < pc_kernel_count; k++) {
		l[k] = NAN;
		if ((mask >> k & 1) == 0)
			continue;
		costs_paired(data, key, k, 0, &pairs);
		if (pairs.count < HEARING)
			continue;
		l[k] = costs_centre(&pairs, NULL);
		best = fmin(best, l[k]);
	}
	for (unsigned k = 1; k < pc_kernel_count; k++)
		behind[k] = fmin(behind[k], l[k] - best);
}

/* By the least distance under any condition: the best of each condition stays before any second. */
static uint32_t keep_cheapest(const struct dataset *data, uint64_t bytes, uint32_t mask, unsigned most)
{
	double behind[PC_KERNEL_MAX];

	if ((unsigned)__builtin_popcount(mask & ~1u) <= most)
		return mask;
	for (unsigned k = 0; k < PC_KERNEL_MAX; k++)
		behind[k] = INFINITY;
	for (unsigned i = 0; i < CONDITIONS; i++)
		find_distances(data, &(struct cost_key){conditions[i].kind, conditions[i].prior, bytes, 1}, mask,
		               behind);
	while ((unsigned)__builtin_popcount(mask & ~1u) > most) {
		unsigned worst = 0;

		for (unsigned k = 1; k < pc_kernel_count; k++)
			if ((mask >> k & 1) != 0 && !isinf(behind[k]) && (worst == 0 || behind[k] >= behind[worst]))
				worst = k;
		if (worst == 0)
			break; /* nobody leaves unheard */
		mask &= ~(1u << worst);
	}
	return mask;
}

uint32_t race_survivors(const struct dataset *data, uint64_t bytes, uint32_t mask, unsigned most)
{
	for (unsigned k = 1; k < pc_kernel_count; k++)
		for (unsigned rival = 0; rival < pc_kernel_count && (mask >> k & 1) != 0; rival++)
			if (rival != k && (mask >> rival & 1) != 0 && loses_to(data, bytes, k, rival))
				mask &= ~(1u << k);
	return keep_cheapest(data, bytes, mask, most);
}

static unsigned cheapest(const struct dataset *data, const struct cost_key *key, uint32_t mask)
{
	unsigned best = 0;
	double best_ns = INFINITY;

	for (unsigned k = 1; k < pc_kernel_count; k++) {
		double ns = (mask >> k & 1) != 0 ? costs_ns(data, key, k) : NAN;

		if (ns < best_ns) {
			best = k;
			best_ns = ns;
		}
	}
	return best;
}

/* The largest size up to `most` at which libc and another kernel of the mask have undisturbed rounds. */
static uint64_t largest_compared(const struct dataset *data, enum pc_prior prior, uint32_t mask, uint64_t most)
{
	struct cost_points pairs;
	uint64_t bytes = 0;

	for (size_t i = 0; i < data->count; i++) {
		const struct series_key *key = &data->series[i].key;

		if (key->phase != PHASE_CLEAR || key->prior != prior || key->threads != 1 || key->kernel == 0 ||
		    key->bytes > most || key->bytes <= bytes || (mask >> key->kernel & 1) == 0)
			continue;
		costs_paired(data, &(struct cost_key){COST_CLEAR, prior, key->bytes, 1}, key->kernel, 0, &pairs);
		if (pairs.count > 0)
			bytes = key->bytes;
	}
	return bytes;
}

uint32_t race_finalists(const struct dataset *data, uint32_t mask)
{
	struct cost_key clear = {COST_CLEAR, PC_FLUSHED, largest_compared(data, PC_FLUSHED, mask, UINT64_MAX), 1},
			hot = clear;
	uint32_t first = 1u << cheapest(data, &clear, mask);

	hot.kind = COST_HOT;
	return 1u | first | 1u << cheapest(data, &clear, mask & ~first) | 1u << cheapest(data, &hot, mask);
}

static uint32_t family(uint32_t mask, enum pc_family wanted)
{
	uint32_t members = 0;

	for (unsigned k = 1; k < pc_kernel_count; k++)
		if ((mask >> k & 1) != 0 && pc_kernels[k].family == wanted)
			members |= 1u << k;
	return members;
}

/* Judged at 1 MiB; where memory or disturbances left no such size, at the largest one below. Two non-temporal ones, for
 * what the faster displaces is not known yet: on a Skylake AVX-512 clears as fast as AVX, and the victim takes 60 %
 * longer to read after it (Beulich 2021). */
uint32_t race_champions(const struct dataset *data, uint32_t mask)
{
	struct cost_key key = {COST_CLEAR, PC_FLUSHED, largest_compared(data, PC_FLUSHED, mask, MIDDLE), 1};
	uint32_t champions = 1;

	for (enum pc_family f = PC_REP; f <= PC_LINE; f++)
		champions |= 1u << cheapest(data, &key, family(mask, f));
	return champions | 1u << cheapest(data, &key, family(mask, PC_NONTEMPORAL) & ~champions);
}

uint32_t race_classes(const struct dataset *data, uint32_t mask)
{
	struct cost_key cached = {COST_CLEAR, PC_CACHED, largest_compared(data, PC_CACHED, mask, MIDDLE), 1};
	struct cost_key flushed = {COST_CLEAR, PC_FLUSHED, largest_compared(data, PC_FLUSHED, mask, MIDDLE), 1};
	uint32_t temporal = family(mask, PC_REP) | family(mask, PC_TEMPORAL);
	uint32_t round_caches = family(mask, PC_NONTEMPORAL) | family(mask, PC_LINE);

	return 1u | 1u << cheapest(data, &cached, temporal) | 1u << cheapest(data, &flushed, round_caches);
}

uint32_t race_winners(const struct dataset *data, uint64_t bytes, enum pc_prior prior, uint32_t mask)
{
	uint32_t winners = 0;

	for (enum cost_kind kind = COST_CLEAR; kind <= COST_HOT; kind++) {
		struct cost_key key = {kind, prior, bytes, 1};
		double libc_ns = costs_ns(data, &key, 0);
		unsigned best = cheapest(data, &key, mask);

		if (!isnan(libc_ns))
			winners |= best != 0 && costs_ns(data, &key, best) < libc_ns ? 1u << best : 1u;
	}
	return winners;
}
