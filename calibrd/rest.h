/*
 * A meter that is busy for no more than a share of the time: the duty cycle. It rests by itself, between rounds, and
 * its clock leaves the rests out: budgets are of busy time, and whoever plans by that clock needs not know.
 */
#ifndef CALIBRD_REST_H
#define CALIBRD_REST_H

#include "calibrd/meter.h"

enum {
	/* Of one turn of work and rest, so that any ten seconds hold two. Long, since each rest has its price: what
	 * comes first after it finds the CPU slow and other people's data in the caches. Even 200 ms after every 40
	 * show in nothing but time (tests/bench/run priority, as told in worker.h): medians within 6 % of those without
	 * rests, most within 2, as many samples dropped. */
	REST_PERIOD_MS = 5000,
	/* A round that takes longer than that is interrupted between two samples: they are so long that nothing of what
	 * a rest leaves behind shows in them. */
	REST_ROUND_MS = 2 * REST_PERIOD_MS,
};

/* Owns inner from now on, after an error too. duty_percent: 1 to 99; else *out is inner itself. 0, -ENOMEM, or -EINVAL
 * of a meter that cannot rest. */
int rest_new(struct meter **out, struct meter *inner, unsigned duty_percent, struct pc_why *why);

/* How long a task of so many busy seconds takes. */
static inline double rest_wall_seconds(double busy_seconds, unsigned duty_percent)
{
	return duty_percent > 0 && duty_percent < 100 ? busy_seconds * 100 / duty_percent : busy_seconds;
}

#endif
