/*
 * A real meter for one test: made, given room, and the test's own affinity given back afterwards. Included by the tests
 * of the meter, each of which has its own.
 */
#ifndef TESTS_METER_STAND_H
#define TESTS_METER_STAND_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "calibrd/crew.h"
#include "calibrd/meter.h"
#include "tests/unit/harness.h"

static struct meter *meter;
static cpu_set_t allowed; /* before the meter pinned its caller */

static inline uint64_t stand_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Without room yet. */
static inline void stand_meter(const struct crew *crew)
{
	struct pc_why why = {""};

	CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	CU_ASSERT_EQUAL_FATAL(meter_real_new(&meter, crew, &why), 0);
}

static inline void stand_start(const struct crew *crew, const struct meter_room *room)
{
	stand_meter(crew);
	CU_ASSERT_EQUAL_FATAL(meter->ops->epoch(meter, room), 0);
	CU_ASSERT_EQUAL_FATAL(meter->ops->round_begin(meter, 1), 0);
}

static inline void stand_stop(void)
{
	meter->ops->round_end(meter);
	meter = meter_free(meter);
	CU_ASSERT_EQUAL(sched_setaffinity(0, sizeof(allowed), &allowed), 0);
}

/* Finds this host's crew; true, and a skip that is seen, if the caller is alone in it. */
static inline bool stand_lacks_crew(struct crew *crew)
{
	int r = crew_find(crew, NULL);

	if (r == 0 && crew->count == 1) {
		unit_skip("one CPU in the last-level cache's domain");
		return true;
	}
	CU_ASSERT_EQUAL_FATAL(r, 0);
	return false;
}

static inline bool all_non_zero(const char *at, size_t len)
{
	return memchr(at, 0, len) == NULL;
}

static inline bool all_zero(const char *at, size_t len)
{
	return len == 0 || (at[0] == 0 && memcmp(at, at + 1, len - 1) == 0);
}

#endif
