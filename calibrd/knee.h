/*
 * The knee: the size at which the last-level cache of this host stops helping, read off a latency curve. Pure.
 */
#ifndef CALIBRD_KNEE_H
#define CALIBRD_KNEE_H

#include <stddef.h>
#include <stdint.h>

struct knee_point {
	uint64_t bytes; /* ascending */
	double ns;      /* latency of a dependent load */
};

/* The largest size that still costs less than the geometric mean of the last cached plateau and memory. `inner_bytes`
 * (the largest private cache) bounds the plateau from below; where it is unknown (0) the bound is half of memory's
 * latency instead. One disturbed point does not count. 0 where the curve never rises. */
uint64_t knee_find(const struct knee_point *points, size_t count, uint64_t inner_bytes);

#endif
