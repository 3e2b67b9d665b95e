/* Quality of a calibration; see verdict.h. */
#include "calibrd/verdict.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "calibrd/costs.h"
#include "calibrd/grid.h"
#include "calibrd/sizes.h"
#include "pageclear/policy.h"

/* A quarter of the samples dropped, or epochs that differ by more than the smallest crossover can stand: background 2
 * has 5-20 % for a quiet shared guest. */
static const double most_tainted = 0.25, most_spread = 0.25;

/* Of the octaves asked about; a calibration covers about twenty, so: more than one. */
static const double most_lost = 0.05;

enum {
	LEAST_EPOCHS = 3, /* fewer have no spread */
	LEAST_ROUNDS = 3, /* with libc and a rival: enough for a size however many were dropped */
	NAMED = 4,        /* sizes, in words */
};

/* Spread of the cold, flushed table: the one with the largest effects, so with the most to lose. NaN if not measured.
 */
static double spread(const struct verdict_facts *facts)
{
	struct grid grid;
	double sigma;

	if (grid_build(&grid, facts->data, PAGECLEAR_COLD, PC_FLUSHED, 1, facts->kernels, 0) != 0)
		return NAN;
	sigma = grid.epochs >= LEAST_EPOCHS ? grid.sigma : NAN;
	grid_free(&grid);
	return sigma;
}

/* --- sizes that were lost ---------------------------------------------------------------------------------------- */

/* What became of a size; the shares hide that the dear sizes are a few samples of many. */
struct fate {
	uint64_t bytes;
	unsigned asked, lost; /* bits 1 << prior */
};

struct fates {
	size_t count;
	struct fate at[GRID_SIZES]; /* ascending */
};

static bool is_clear(const struct series *series)
{
	return series->key.phase == PHASE_CLEAR && series->key.threads == 1 && series->key.chunk == 0 &&
	       series->count + series->tainted > 0;
}

static struct fate *find_fate(struct fates *fates, uint64_t bytes)
{
	size_t at = 0;

	while (at < fates->count && fates->at[at].bytes < bytes)
		at++;
	if (at < fates->count && fates->at[at].bytes == bytes)
		return &fates->at[at];
	if (fates->count == GRID_SIZES)
		return NULL; /* no grid holds it either */
	memmove(fates->at + at + 1, fates->at + at, (fates->count++ - at) * sizeof(fates->at[0]));
	fates->at[at] = (struct fate){.bytes = bytes};
	return &fates->at[at];
}

/* Rounds that hold libc and the rival which has most of them; libc's own where it has no rivals. */
static size_t compared_rounds(const struct verdict_facts *facts, const struct cost_key *key)
{
	static _Thread_local struct cost_points pairs;
	size_t most = 0;

	for (unsigned k = (facts->kernels & ~1u) != 0 ? 1 : 0; k < pc_kernel_count; k++) {
		costs_paired(facts->data, key, k, 0, &pairs);
		if (pairs.count > most)
			most = pairs.count;
	}
	return most;
}

/* Nothing to compare, or next to nothing and most of it dropped. */
static bool is_lost(const struct verdict_facts *facts, uint64_t bytes, enum pc_prior prior)
{
	size_t rounds = compared_rounds(facts, &(struct cost_key){COST_CLEAR, prior, bytes, 1});
	uint64_t kept = 0, dropped = 0;

	for (size_t i = 0; i < facts->data->count; i++) {
		const struct series *series = &facts->data->series[i];

		if (!is_clear(series) || series->key.prior != prior || series->key.bytes != bytes)
			continue;
		kept += series->count;
		dropped += series->tainted;
	}
	return rounds == 0 || (rounds < LEAST_ROUNDS && kept < dropped);
}

static void find_fates(const struct verdict_facts *facts, struct fates *out)
{
	out->count = 0;
	for (size_t i = 0; i < facts->data->count; i++) {
		const struct series *series = &facts->data->series[i];
		struct fate *fate = is_clear(series) ? find_fate(out, series->key.bytes) : NULL;

		if (fate == NULL || (fate->asked >> series->key.prior & 1) != 0)
			continue;
		fate->asked |= 1u << series->key.prior;
		if (is_lost(facts, series->key.bytes, series->key.prior))
			fate->lost |= 1u << series->key.prior;
	}
}

/* Octaves that the size at `i` speaks for: half of the way to each neighbour. */
static double octaves(const struct fates *fates, size_t i)
{
	size_t left = i > 0 ? i - 1 : i, right = i + 1 < fates->count ? i + 1 : i;

	return right > left ? log2((double)fates->at[right].bytes / (double)fates->at[left].bytes) / 2 : 1;
}

/* Share of the octaves asked about; where one of two priors was lost, half of a size's. */
static double share_lost(const struct fates *fates)
{
	double asked = 0, lost = 0;

	for (size_t i = 0; i < fates->count; i++) {
		const struct fate *fate = &fates->at[i];

		asked += octaves(fates, i);
		lost += octaves(fates, i) * __builtin_popcount(fate->lost) / __builtin_popcount(fate->asked);
	}
	return asked > 0 ? lost / asked : 0;
}

/* --- words ------------------------------------------------------------------------------------------------------- */

static void __attribute__((format(printf, 2, 3))) append(struct verdict *out, const char *format, ...)
{
	size_t length = strlen(out->reasons);
	va_list list;

	va_start(list, format);
	vsnprintf(out->reasons + length, sizeof(out->reasons) - length, format, list);
	va_end(list);
}

/* "; nothing usable at 16 MiB (cached), 32 MiB and 64 MiB" */
static void name_lost(const struct fates *fates, struct verdict *out)
{
	size_t lost = 0, named = 0;
	char text[SIZE_TEXT];

	for (size_t i = 0; i < fates->count; i++)
		lost += fates->at[i].lost != 0;
	for (size_t i = 0; i < fates->count && named < NAMED; i++) {
		const struct fate *fate = &fates->at[i];

		if (fate->lost == 0)
			continue;
		append(out, "%s%s%s",
		       named == 0          ? "; nothing usable at "
		       : named + 1 == lost ? " and "
		                           : ", ",
		       size_format(fate->bytes, text, sizeof(text)),
		       fate->lost == fate->asked       ? ""
		       : fate->lost == 1u << PC_CACHED ? " (cached)"
		                                       : " (flushed)");
		named++;
	}
	if (named < lost)
		append(out, " and %zu more sizes", lost - named);
}

void verdict_reach(const struct verdict_facts *facts, struct verdict *out)
{
	struct fates fates;
	bool noisy;

	find_fates(facts, &fates);
	*out = (struct verdict){.spread = spread(facts)};
	noisy = facts->tainted > most_tainted || !(out->spread <= most_spread) || share_lost(&fates) > most_lost;
	out->quality = facts->emulated ? "emulated" : noisy ? "noisy" : "good";
	append(out, "%s%.1f %% of samples dropped, ",
	       facts->emulated ? "the CPU is emulated: its timings say nothing of hardware; " : "",
	       100 * facts->tainted);
	if (isnan(out->spread))
		append(out, "too few epochs to compare");
	else
		append(out, "epochs differ by %.1f %%", 100 * out->spread);
	name_lost(&fates, out);
}
