/*
 * How many ticks of pc_ticks() go into a nanosecond: asked only for a policy that probes, since it takes a system call
 * and time.
 */
#ifndef PC_RATE_H
#define PC_RATE_H

#include <stdbool.h>
#include <stdint.h>

/* One moment on both clocks; all zero where the program may not read pc_ticks(). */
struct pc_moment {
	uint64_t ticks, ns;
};

/* False if reading the time stamp counter would kill the program (PR_SET_TSC). */
bool pc_ticks_allowed(void);

struct pc_moment pc_moment_now(void);

/* Ticks a nanosecond since then; waits until 20 us have gone by. 0 if there is no usable rate. */
double pc_rate_since(struct pc_moment begin);

#endif
