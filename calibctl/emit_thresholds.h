/*
 * Where glibc's memset should change its way on this host, from what calibrd measured. Pure.
 */
#ifndef CALIBCTL_EMIT_THRESHOLDS_H
#define CALIBCTL_EMIT_THRESHOLDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calibrd/samples.h"

/* Vector stores up to `stosb` bytes, REP STOSB beyond, non-temporal stores from `nontemporal` on: only where that is
 * beyond `stosb`, since the test for it lies behind the other. So measured with glibc 2.36 and 2.41 on a Zen 3. */
struct thresholds {
	uint64_t stosb, nontemporal; /* bytes; UINT64_MAX: never */
};

enum thresholds_path { THRESHOLDS_STORES, THRESHOLDS_REP, THRESHOLDS_NONTEMPORAL, THRESHOLDS_PATHS };

static inline enum thresholds_path thresholds_path(const struct thresholds *at, uint64_t bytes)
{
	if (bytes <= at->stosb)
		return THRESHOLDS_STORES;
	return bytes >= at->nontemporal ? THRESHOLDS_NONTEMPORAL : THRESHOLDS_REP;
}

/* Hot and cold, each cached and flushed: an unmodified program may mean any of them. */
enum { THRESHOLDS_CASES = 4, THRESHOLDS_SIZES = 128 };

/* What each path costs, as ln(cost / libc's cost); NaN where that was not measured. */
struct thresholds_costs {
	size_t count;
	uint64_t bytes[THRESHOLDS_SIZES]; /* ascending: sizes of which every case is known */
	double l[THRESHOLDS_SIZES][THRESHOLDS_CASES][THRESHOLDS_PATHS];
	double low[THRESHOLDS_SIZES][THRESHOLDS_CASES][THRESHOLDS_PATHS];  /* of the 95 % interval */
	double high[THRESHOLDS_SIZES][THRESHOLDS_CASES][THRESHOLDS_PATHS]; /* likewise */
};

struct thresholds_range {
	bool stosb, nontemporal; /* may be set at all */
	struct thresholds least, most;
};

struct thresholds_choice {
	struct thresholds value;
	bool set_stosb, set_nontemporal; /* neither: nothing would gain enough */
	uint64_t from, to;               /* smallest and largest measured size whose path changes */
	double gain;                     /* over the present thresholds, geometric mean over those sizes and cases */
	double gains[THRESHOLDS_CASES];  /* hot cached, hot flushed, cold cached, cold flushed */
};

/* From one thread's samples. 0, 1: something that it takes was not measured; -ENOMEM. */
int thresholds_costs(struct thresholds_costs *out, const struct dataset *data);

/* own: libc was measured with the present thresholds, so its own figures stand for the paths that they take. */
void thresholds_choose(struct thresholds_choice *out, const struct thresholds_costs *costs,
                       const struct thresholds *present, const struct thresholds_range *range, bool own);

#endif
