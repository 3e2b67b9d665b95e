/*
 * Clocks, read as one number.
 */
#ifndef CALIBRD_CLOCK_H
#define CALIBRD_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Nanoseconds. Thread-safe, and safe in a signal handler. The clock must be one that this kernel has. */
static inline uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The same in seconds. */
static inline double clock_seconds(clockid_t clock)
{
	return (double)clock_ns(clock) / 1e9;
}

#endif
