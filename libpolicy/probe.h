/*
 * Was the target in a cache? Times looks at a few of its lines. Async-signal-safe. calibrd measures `probe.slow_ns`
 * with the same looks.
 *
 * A look loads several lines at once, between two readings of the clock: it takes as long as the slowest, so it tells
 * whether all of them were cached. Reading the clock is what costs (25 ns of a probe's 60 on a Zen 3 guest), so one
 * look says "cached" alone, and others are asked before "flushed" is believed: a second look at as many lines; or,
 * where wrong is worse than late, each line by itself. tests/bench/forms.c compares this with loads that are timed one
 * by one, with one look, other numbers of lines and other places.
 */
#ifndef PC_PROBE_H
#define PC_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "kernels/ticks.h"

/* More lines count as that many. */
enum { PC_PROBE_LOOKS = 2, PC_PROBE_MOST = 16 };

/* Lines of look 0 or 1, of `lines` (at least 1) in all; where that leaves none for the second, the first decides. */
static inline unsigned pc_probe_share(unsigned lines, unsigned look)
{
	if (lines > PC_PROBE_MOST)
		lines = PC_PROBE_MOST;
	return (lines + (look == 0)) / 2;
}

/*
 * Where the i-th load goes, as an offset below total. Multiples of the golden ratio, from a start that the salt picks,
 * spread well and without equal steps, which wake stride prefetchers: on a Zen 3 four equidistant loads took many
 * flushed targets for cached. And a few low bits are stirred, since steps near a multiple of two pages would meet one
 * half only of a target whose every second page is cached.
 */
static inline size_t pc_probe_offset(size_t total, uint64_t salt, unsigned i)
{
	uint64_t share = salt + (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
	size_t at = (size_t)((unsigned __int128)total * share >> 64);
	uint64_t stir = (share ^ share >> 29) * UINT64_C(0xd1342543de82ef95); /* not linear in i, as share is */
	size_t stirred = at ^ (size_t)(stir >> 49 & 0x7fc0);

	return stirred < total ? stirred : at;
}

/* Ticks that a look at the loads first .. first + count - 1 takes, the clock's own cost included. */
uint64_t pc_probe_look(const struct iovec *ranges, size_t total, unsigned first, unsigned count);

/* What "flushed" takes beyond a first look that was slow. */
enum pc_doubt {
	PC_PROBE_ANY, /* another slow look: of targets half of which is cached, most */
	PC_PROBE_ALL, /* no fast line among the others: of such targets, few */
};

/* `lines` are looked at in all, spread over the ranges (total bytes, at least 1); a look is slow if it takes more than
 * slow_ticks. May clear some bytes of the ranges, which their caller is about to do anyway. */
bool pc_probe_flushed(const struct iovec *ranges, size_t total, unsigned lines, uint64_t slow_ticks,
                      enum pc_doubt doubt);

#endif
