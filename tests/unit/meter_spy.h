/*
 * Memory as a kernel sees it: a kernel that spies, and a meter to call it. Included by the tests of the meter of one
 * thread.
 */
#ifndef TESTS_METER_SPY_H
#define TESTS_METER_SPY_H

#include "tests/unit/harness.h"
#include "tests/unit/meter_stand.h"

enum { MIB = 1 << 20, TARGET = 16 * MIB, BASE = 12 * MIB, VICTIM = 4 * MIB, SMALL_ARENA = 8 * MIB };
enum { CALLS = 17000 }; /* a sample of the poorest clock has fewer */

/* --- a kernel that spies ----------------------------------------------------------------------------------------- */

static struct {
	unsigned calls;
	unsigned dirty; /* calls that found nothing but non-zero bytes */
	char *first, *low, *high;
	char *at[CALLS];
	size_t len[CALLS];
} seen;

static inline void spy(void *dst, size_t len)
{
	char *at = dst;

	if (seen.calls < CALLS) {
		seen.at[seen.calls] = at;
		seen.len[seen.calls] = len;
	}
	if (seen.calls++ == 0)
		seen.first = at;
	seen.dirty += all_non_zero(at, len);
	if (seen.low == NULL || at < seen.low)
		seen.low = at;
	if (at + len > seen.high)
		seen.high = at + len;
	memset(at, 0, len);
}

static const struct pc_kernel spying = {.name = "spy", .body = spy, .clear = spy};

/* --- a meter for one test ---------------------------------------------------------------------------------------- */

static inline void start(void)
{
	stand_start(NULL, &(struct meter_room){.target_bytes = TARGET, .base_bytes = BASE, .victim_bytes = VICTIM});
}

static inline int sample(struct meter_ask ask, struct meter_sample *out)
{
	memset(&seen, 0, sizeof(seen));
	memset(out, 0xff, sizeof(*out));
	return meter->ops->sample(meter, &ask, out);
}

static inline struct meter_ask ask_clear(uint64_t bytes, enum pc_prior prior)
{
	return (struct meter_ask){
		.kernel = &spying, .phase = PHASE_CLEAR, .prior = prior, .bytes = bytes, .passes = 3, .read = true};
}

/* Every call found dirty memory, of the size asked for (below 4 KiB and above 2 MiB up to a sixteenth less, alike for
 * all), and what it cleared is clear. */
static inline void check_calls(uint64_t bytes)
{
	uint64_t less = bytes < 4096 || bytes > 2 * MIB ? bytes / 16 : 0;

	CU_ASSERT(seen.calls > 0);
	CU_ASSERT_EQUAL(seen.dirty, seen.calls);
	for (unsigned i = 0; i < seen.calls && i < CALLS; i++) {
		CU_ASSERT(seen.len[i] <= bytes && seen.len[i] >= bytes - less);
		CU_ASSERT_EQUAL(seen.len[i], seen.len[0]);
		CU_ASSERT(all_zero(seen.at[i], seen.len[i]));
	}
}

#endif
