/* The meter's clock; see meter_timer.h. */
#include "calibrd/meter_timer.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "calibrd/clock.h"
#include "kernels/ticks.h"

/* Batches of 8 KiB stay in the smallest L1D, with what lies between their buffers. Four of them below 64 KiB whatever
 * the clock: calls of microseconds vary more than it does. Where its ticks alone take more than 16, as those of 20 or
 * 40 ns do, the batches grow first: that helps in proportion, repeating only by the root. Twice the bytes still fit.
 * Jitter must not decide that: it differs from one calibration to the next, and what a larger batch measures is
 * something else (8 KiB by CLZERO, 93 ns alone and 200 in a pair). */
enum {
	BATCH_BYTES = 8192,
	BATCH_COUNT = 64,
	REPEATS_LEAST = 4,
	REPEATS_MANY = 16,
	REPEATED_BELOW = 65536,
};

static const double error_allowed = 0.01;
static const double call_ns = 1, bytes_per_ns = 64; /* 64: AVX at 2 GHz, and what a Zen 3 gets */

/* --- arithmetic -------------------------------------------------------------------------------------------------- */

double timer_ns(const struct timer *timer, uint64_t ticks, unsigned regions)
{
	return fmax(0, (double)ticks - regions * timer->overhead_ticks) * timer->ns_per_tick;
}

/* Both ends of a region fall anywhere between two ticks: the difference is off by sqrt(1/6) of one. Jitter was seen
 * through the same clock, so that this is the least it can be, and no addition to it. */
unsigned timer_repeats(double ns_per_tick, double jitter_ns, double expected_ns, unsigned most)
{
	double deviation = fmax(jitter_ns, ns_per_tick / sqrt(6));
	double repeats = ceil(pow(deviation / (error_allowed * expected_ns), 2));

	if (!(repeats < most))
		return most;
	return repeats < 1 ? 1 : (unsigned)repeats;
}

unsigned timer_enough(const struct timer *timer, uint64_t ticks, unsigned regions)
{
	return timer_repeats(timer->ns_per_tick, timer->jitter_ns, timer_ns(timer, ticks, regions) / regions,
	                     TIMER_REPEATS_MOST);
}

static unsigned predict(const struct timer *timer, double jitter_ns, unsigned count, uint64_t bytes)
{
	return timer_repeats(timer->ns_per_tick, jitter_ns, count * (call_ns + (double)bytes / bytes_per_ns),
	                     TIMER_REPEATS_MOST);
}

struct timer_batch timer_batch(const struct timer *timer, uint64_t bytes)
{
	uint64_t fit = bytes > 0 && bytes < BATCH_BYTES ? BATCH_BYTES / bytes : 1;
	unsigned count = fit < BATCH_COUNT ? (unsigned)fit : BATCH_COUNT;
	unsigned least = bytes < REPEATED_BELOW ? REPEATS_LEAST : 1, repeats;

	while (predict(timer, 0, count, bytes) > REPEATS_MANY && 2 * count <= TIMER_BATCH_MOST &&
	       2 * count * bytes <= 2 * BATCH_BYTES)
		count *= 2;
	repeats = predict(timer, timer->jitter_ns, count, bytes);
	return (struct timer_batch){count, least, repeats > least ? repeats : least};
}

/* --- measuring it ------------------------------------------------------------------------------------------------ */

enum { LENGTHS = 64, TIMES = 128 };

static int compare_ticks(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static void multiply(unsigned times)
{
	uint64_t x = times;

	for (unsigned i = 0; i < times; i++) {
		x *= 0x9e3779b97f4a7c15u;
		__asm__ volatile("" : "+r"(x));
	}
}

/* Ticks of a region with so many dependent multiplications inside. */
static double region_ticks(unsigned length)
{
	uint64_t before = pc_ticks();

	multiply(length);
	return (double)(pc_ticks() - before);
}

/* Mean and variance of the same region over and over, after pauses that differ: a loop of nothing but readings falls
 * into step with the clock. What takes more than twice the median was interrupted. */
static void region_spread(unsigned length, double *mean, double *variance)
{
	double ticks[TIMES], sum = 0, squares = 0;
	unsigned count = 0;

	for (unsigned i = 0; i < TIMES; i++) {
		multiply(i * 29 % TIMES);
		ticks[i] = region_ticks(length);
	}
	qsort(ticks, TIMES, sizeof(ticks[0]), compare_ticks);
	while (count < TIMES && ticks[count] <= 2 * ticks[TIMES / 2] + 2) {
		sum += ticks[count];
		squares += ticks[count] * ticks[count];
		count++;
	}
	*mean = sum / count;
	*variance = fmax(0, squares / count - *mean * *mean);
}

/* Some clocks step by more than one tick (a Zen's TSC by what is 10 ns), and a region whose length is near a multiple
 * of the step hides it: so over regions of many lengths. */
static void measure_overhead(struct timer *timer)
{
	double sum = 0, mean, variance;

	region_spread(0, &mean, &variance); /* warm */
	region_spread(0, &timer->overhead_ticks, &variance);
	for (unsigned length = 0; length < LENGTHS; length++) {
		region_spread(length, &mean, &variance);
		sum += variance;
	}
	timer->jitter_ns = sqrt(sum / LENGTHS) * timer->ns_per_tick;
}

static void measure_rate(struct timer *timer)
{
	uint64_t t0 = pc_ticks(), n0 = clock_ns(CLOCK_MONOTONIC), n1;

	do
		n1 = clock_ns(CLOCK_MONOTONIC);
	while (n1 - n0 < 20000000);
	timer->ns_per_tick = (double)(n1 - n0) / (double)(pc_ticks() - t0);
}

void timer_calibrate(struct timer *timer)
{
	measure_rate(timer);
	measure_overhead(timer);
}
