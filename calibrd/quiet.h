/*
 * Was it quiet while something was timed? Lost time, another CPU, stolen time, a CPU slower than before. For the one
 * thread that measures, pinned to the CPU it runs on.
 */
#ifndef CALIBRD_QUIET_H
#define CALIBRD_QUIET_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct quiet {
	int cpu;     /* that the thread is pinned to */
	int stat_fd; /* /proc/stat, or -1 where it is hidden */
	uint64_t stolen, stolen_read_ns;
	uint64_t reference_best, reference_before; /* ticks of a loop that always does the same */
	uint64_t sink;                             /* keeps the loop alive */
};

/* Pins the caller where it is. 0 or -errno; quiet_stop() only after 0. */
int quiet_start(struct quiet *quiet);
void quiet_stop(struct quiet *quiet);

/* A round: true at its end if all of it is tainted. Whoever was moved from its CPU stays on the new one: -errno if it
 * may not. */
int quiet_round_begin(struct quiet *quiet);
bool quiet_round_end(struct quiet *quiet);

struct quiet_mark {
	long switches;
	int cpu;
	uint64_t wall_ns, cpu_ns;
};

/* A sample: disturbed if, since the mark, it moved to another CPU, or was switched out for more than a hundredth of
 * what was timed. A sample of 100 ms that lost 20 us to another process is as good as any. */
struct quiet_mark quiet_mark(void);
bool quiet_disturbed(const struct quiet_mark *before, double timed_ns);

/* Clock ticks (of sysconf(_SC_CLK_TCK) a second) stolen from a CPU so far, as the text of /proc/stat tells; 0 where it
 * does not. Pure. */
uint64_t quiet_stolen(const char *stat, int cpu);

uint64_t quiet_clock_ns(clockid_t clock);

#endif
