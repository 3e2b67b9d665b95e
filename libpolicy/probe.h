/*
 * Was the target in a cache? Times loads of a few of its lines. Async-signal-safe. calibrd measures `probe.slow_ns`
 * with the same load.
 */
#ifndef PC_PROBE_H
#define PC_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "kernels/ticks.h"

/* Ticks that a load takes, the clock's own cost included. *last: pc_ticks() right before; becomes that right after, so
 * that loads in a row read the clock once each. */
static inline uint64_t pc_probe_load(const void *at, uint64_t *last)
{
	uint64_t before = *last;

	(void)*(const volatile unsigned char *)at;
	*last = pc_ticks();
	return *last - before;
}

/* Where the i-th load goes, as an offset below total: multiples of the golden ratio, so that the loads spread well and
 * no two steps in a row are equal. Equal steps wake stride prefetchers: on a Zen 3 four equidistant loads took many
 * flushed targets for cached, up to most of them at some sizes, these none (tests/bench/probe.c shows it). */
static inline size_t pc_probe_offset(size_t total, unsigned i)
{
	uint64_t share = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);

	return (size_t)((unsigned __int128)total * share >> 64);
}

/* True if more than half of `lines` loads, spread over the ranges (total bytes together, at least 1), take more than
 * slow_ticks each. Loads no more than it takes to know. */
bool pc_probe_flushed(const struct iovec *ranges, size_t total, unsigned lines, uint64_t slow_ticks);

#endif
