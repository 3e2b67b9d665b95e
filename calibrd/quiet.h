/*
 * Was it quiet while something was timed? Lost time, another CPU, stolen time, a CPU slower than before. For the one
 * thread that measures, pinned to the CPU it runs on.
 */
#ifndef CALIBRD_QUIET_H
#define CALIBRD_QUIET_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "calibrd/taints.h"

struct quiet_mark {
	long switches; /* of any kind: a stop and a sleep count as voluntary ones */
	int cpu;
	uint64_t cpu_ns, wall_ns;
};

struct quiet {
	int cpu;                          /* that the thread is pinned to */
	int stat_fd;                      /* /proc/stat, or -1 where it is hidden */
	uint64_t stolen, stolen_since_ns; /* the counter and when: what was stolen is told against this */
	uint64_t stolen_read_ns;          /* when it was last looked at */
	uint64_t reference_best;          /* ticks of a loop that always does the same: least of the last rounds */
	uint64_t reference_recent;        /* least of the newest of them, UINT64_MAX: none yet */
	unsigned reference_rounds;        /* of reference_recent */
	uint64_t reference_before;        /* of this round */
	uint64_t sink;                    /* keeps the loop alive */
	struct taints taints;             /* since quiet_start(); its times are quiet_taints()'s */
	struct quiet_mark started;
};

/* Pins the caller where it is. 0 or -errno; quiet_stop() only after 0. */
int quiet_start(struct quiet *quiet);
void quiet_stop(struct quiet *quiet);

/* Forgets how fast the CPU was: the turbo of a while ago is no measure for what comes now. */
void quiet_epoch(struct quiet *quiet);

/* A round: true at its end if all of it is tainted. Whoever was moved from its CPU stays on the new one: -errno if it
 * may not. */
int quiet_round_begin(struct quiet *quiet);
bool quiet_round_end(struct quiet *quiet);

/* After a sleep of one's own of at least so long: neither counts as lost nor thins what was stolen, and the CPU has its
 * speed again when this returns. */
void quiet_rested(struct quiet *quiet, uint64_t ns);

enum quiet_loss { QUIET_KEPT, QUIET_LOST, QUIET_MOVED };

/* Before a sample. */
struct quiet_mark quiet_mark(void);

/* After it: what disturbed it since the mark. timed_ns: the part of that time that the sample consists of. */
enum quiet_loss quiet_disturbed(const struct quiet_mark *before, double timed_ns);

/*
 * The rule, on the caller's marks. Pure. Lost is the time that passed less the time that the thread ran: whoever or
 * whatever took it, a stop, a sleep, another thread, a quota, the hypervisor.
 * With a switch a hundredth of what was timed is too much: somebody else's data came into the caches. (A sample of 100
 * ms that lost 20 us to another process is as good as any.) Without one, interrupts took it, or the hypervisor: spread
 * over all of the time since the mark, most of which is preparation, so a hundredth of that.
 */
enum quiet_loss quiet_judge(const struct quiet_mark *before, const struct quiet_mark *after, double timed_ns);

/* Counts a sample in quiet->taints. */
void quiet_count(struct quiet *quiet, enum quiet_loss loss);

/* All that was counted, and the time lost since quiet_start(). For the thread that called that. */
void quiet_taints(const struct quiet *quiet, struct taints *out);

/* Takes the time of a reference loop into account: the best of at least the last 250 and at most the last 500. Pure. */
void quiet_reference(struct quiet *quiet, uint64_t ticks);

/* Takes a reading of the counter of stolen time into account; true if since the one it is told against more than one
 * tick and more than a hundredth of the time was stolen. Pure. */
bool quiet_steal(struct quiet *quiet, uint64_t stolen, uint64_t at_ns);

/* Clock ticks (of sysconf(_SC_CLK_TCK) a second) stolen from a CPU so far, as the text of /proc/stat tells; 0 where it
 * does not. Pure. */
uint64_t quiet_stolen(const char *stat, int cpu);

#endif
