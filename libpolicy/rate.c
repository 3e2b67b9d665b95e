#include "libpolicy/rate.h"

#include <sys/prctl.h>
#include <time.h>

#include "kernels/ticks.h"

/* Long enough for a part in 400, were a tick of 41 ns (24 MHz, the coarsest that is common) and a reading off by one.
 */
enum { LEAST_NS = 20000, TRIES = 3 };

/* Slower than 10 MHz a tick is longer than a cache miss; faster than 100 GHz is no clock. */
#define LEAST_RATE 0.01
#define MOST_RATE 100.0

bool pc_ticks_allowed(void)
{
	int mode = PR_TSC_ENABLE;

	/* An error means that this kernel or architecture forbids nobody. */
	return prctl(PR_GET_TSC, &mode, 0, 0, 0) < 0 || mode == PR_TSC_ENABLE;
}

static uint64_t monotonic_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Of three readings the one with the least between its two ticks: no interrupt, no cold code. */
struct pc_moment pc_moment_now(void)
{
	struct pc_moment best = {0};
	uint64_t least = UINT64_MAX;

	if (!pc_ticks_allowed())
		return best;
	for (int i = 0; i < TRIES; i++) {
		uint64_t before = pc_ticks(), ns = monotonic_ns(), gap = pc_ticks() - before;

		if (gap < least) {
			least = gap;
			best = (struct pc_moment){.ticks = before + gap / 2, .ns = ns};
		}
	}
	return best;
}

double pc_rate_since(struct pc_moment begin)
{
	struct pc_moment now;

	if (begin.ns == 0)
		return 0;
	while (monotonic_ns() - begin.ns < LEAST_NS)
		;
	now = pc_moment_now();
	if (now.ns <= begin.ns || now.ticks <= begin.ticks)
		return 0;
	double rate = (double)(now.ticks - begin.ticks) / (double)(now.ns - begin.ns);
	return rate < LEAST_RATE || rate > MOST_RATE ? 0 : rate;
}
