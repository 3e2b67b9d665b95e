/*
 * What a value of GLIBC_TUNABLES does to libc's memset: measured by children with it and without it, in turns.
 */
#ifndef CALIBCTL_EMIT_EFFECT_H
#define CALIBCTL_EMIT_EFFECT_H

#include <stddef.h>
#include <stdint.h>

#include "libpolicy/document.h"
#include "libpolicy/why.h"

enum { EFFECT_SIZES = 8, EFFECT_POINTS = 2 * EFFECT_SIZES, EFFECT_TURNS = 5 };

struct effect_point {
	enum pc_prior prior;
	uint64_t bytes;
	double before, after; /* GB/s, medians over the turns; NaN: not measured undisturbed */
	double gain;          /* median of the turns' ratios */
};

struct effect {
	size_t count;
	struct effect_point points[EFFECT_POINTS]; /* cached before flushed, ascending */
};

/* `calibctl bench table` as a child. 0, -errno of child_ask(), -EBADMSG: no such answer. */
int effect_measure(struct effect *out, const char *tunables, const uint64_t *sizes, size_t count, struct pc_why *why);

#endif
