/*
 * The child that measures: calibrd executed anew, one order in, records out. It never sees the database; a policy only
 * to verify it.
 */
#ifndef CALIBRD_WORKER_H
#define CALIBRD_WORKER_H

#include <sys/types.h>

#include "calibrd/records.h"

/*
 * What a daemon's order has as `nice`; a person who waits gets 0. Measured with `tests/bench/run priority`, twice, on a
 * shared Zen 3 guest with 2 CPUs, six to eight others running.
 *
 * As the host was, no priority (nice 0 to 19, SCHED_BATCH, SCHED_IDLE) told: medians of 4 KiB, 64 KiB and 1 MiB within
 * 8 % of those at nice 0, most within 3 %; 3 to 4 % of all samples dropped.
 *
 * With a busy loop of nice 0 on each CPU besides: samples kept a second 1150-1200 at nice 0, 435-550 at 5, 180-310 at
 * 10, 29-37 at 19, 7-19 with SCHED_IDLE; SCHED_BATCH as nice 0. Never were more than 3 % dropped. At 19 and SCHED_IDLE
 * medians were up to 1.4 times those at nice 0, since each slice finds other people's caches; at 5 and 10 within 12 %,
 * but for libc on 64 KiB of cached memory in one of the two runs (1.4, 1.15).
 *
 * So what a low priority costs is time, of which budgets are made: against one busy neighbour nice 5 leaves a quarter
 * of it, nice 10 a tenth, in which three epochs have no room. Where services are scheduled as groups (cgroups with CPU
 * weights, autogroup) nice counts within the group alone, and the unit's CPUWeight= does the rest.
 */
enum { WORKER_NICE = 5 };

/* Reads a struct order from in, writes records to out until RECORD_END. Returns what main should return. */
int worker_main(int in, int out);

/* --- for children that are forked and not executed ---------------------------------------------------------------- */

struct worker;

/* 0 or -ENOMEM. Writes to out, and closes nothing. */
int worker_new(struct worker **out, int fd);

/* From now on this process ends with that parent; false if it has lost it already. */
bool worker_tie(pid_t parent);

/* Verifies the policy as the order says, but for the file that it names. against: another library's memset, which has
 * passed its trial; NULL: none. 0 or -errno with why, as verify_measure() and verify_judge(). */
int worker_verify(struct worker *worker, const struct order *order, const struct pageclear_policy *policy,
                  const struct pc_kernel *against, struct pc_why *why);

/* Says how it ended, 0 or -errno with why. Returns the exit code. Releases the worker. */
int worker_end(struct worker *worker, int r, const struct pc_why *why);

#endif
