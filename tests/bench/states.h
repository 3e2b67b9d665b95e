/* States of a target between cached and flushed, brought about on purpose; for the benches of the probe. */
#ifndef TESTS_BENCH_STATES_H
#define TESTS_BENCH_STATES_H

#include <stddef.h>
#include <stdint.h>

#include "calibrd/random.h"
#include "calibrd/touch.h"
#include "kernels/cpu.h"

enum state {
	STATE_CACHED,
	STATE_FLUSHED,
	STATE_HALF,  /* the first half is cached */
	STATE_PAGES, /* every second page is */
	STATE_TAIL,  /* the last quarter */
	STATE_HEAD,  /* the first quarter */
	STATE_TENTH, /* all but one line in ten */
	STATES,
};

static const char *const state_names[STATES] = {"cached", "flushed", "half", "pages", "tail", "head", "tenth"};

static inline void state_prepare(enum state state, char *at, size_t bytes, struct random *random)
{
	for (int pass = 0; pass < (state == STATE_FLUSHED ? 1 : 3); pass++)
		touch_dirty(at, bytes);
	if (state == STATE_FLUSHED)
		pc_cpu_flush(at, bytes);
	if (state == STATE_HALF)
		pc_cpu_flush(at + bytes / 2, bytes / 2);
	for (size_t page = 0; state == STATE_PAGES && page < bytes; page += 8192)
		pc_cpu_flush(at + page, 4096);
	if (state == STATE_TAIL)
		pc_cpu_flush(at, bytes / 4 * 3);
	if (state == STATE_HEAD)
		pc_cpu_flush(at + bytes / 4, bytes / 4 * 3);
	for (size_t line = 0; state == STATE_TENTH && line < bytes; line += 64)
		if (random_below(random, 10) == 0)
			pc_cpu_flush(at + line, 1);
}

#endif
