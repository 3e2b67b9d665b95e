/*
 * What the meter's clock is worth: its rate, what reading it costs, how far a reading may be off, and from these how
 * much must stand under one timer, and how often, until the clock's error is below a hundredth of what is timed.
 */
#ifndef CALIBRD_METER_TIMER_H
#define CALIBRD_METER_TIMER_H

#include <stdint.h>

struct timer {
	double ns_per_tick;
	double overhead_ticks; /* mean of an empty timed region */
	double jitter_ns;      /* standard deviation of a timed region that always does the same: the overhead's and
	                        * what the clock's steps make of it */
};

/* Measures all three; takes some 25 ms. */
void timer_calibrate(struct timer *timer);

/* Time of `regions` timed regions that showed so many ticks in all; never below 0. Pure. */
double timer_ns(const struct timer *timer, uint64_t ticks, unsigned regions);

/* How many timed regions of that length it takes until the standard error of their mean, as far as the clock makes it,
 * is below 1 %; from 1 to most. Pure. */
unsigned timer_repeats(double ns_per_tick, double jitter_ns, double expected_ns, unsigned most);

enum { TIMER_BATCH_MOST = 256, TIMER_REPEATS_MOST = 256 };

/* Likewise, going by the ticks that the regions so far have shown. Pure. */
unsigned timer_enough(const struct timer *timer, uint64_t ticks, unsigned regions);

/* How a sample of extents of that size is laid out, going by what the fastest kernels take in a cache. Pure. */
struct timer_batch {
	unsigned count;   /* buffers under one timer */
	unsigned least;   /* timed regions, however good the clock */
	unsigned repeats; /* timed regions, for those who cannot decide as they go */
};
struct timer_batch timer_batch(const struct timer *timer, uint64_t bytes);

#endif
