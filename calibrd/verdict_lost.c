/* Sizes about which a calibration knows nothing; see verdict_parts.h. */
#include <math.h>
#include <string.h>

#include "calibrd/costs.h"
#include "calibrd/grid.h"
#include "calibrd/sizes.h"
#include "calibrd/verdict_parts.h"

/* Of the octaves asked about; a calibration covers about twenty, so: more than one. */
static const double most_lost = 0.05;

enum {
	LEAST_ROUNDS = 3, /* with libc and a rival: enough for a size however many were dropped */
	NAMED = 4,        /* sizes, in words */
};

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
	struct cost_points pairs;
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
		verdict_say(out, "%s%s%s",
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
		verdict_say(out, " and %zu more sizes", lost - named);
}

bool verdict_lost(const struct verdict_facts *facts, struct verdict *out)
{
	struct fates fates;

	find_fates(facts, &fates);
	name_lost(&fates, out);
	return share_lost(&fates) > most_lost;
}
