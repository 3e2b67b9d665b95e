/*
 * One calibration or verification as the parent sees it: the child, its records, and what they add up to.
 */
#ifndef CALIBRD_RUN_H
#define CALIBRD_RUN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "calibrd/probe_fit.h"
#include "calibrd/records.h"
#include "calibrd/samples.h"
#include "calibrd/verify.h"
#include "libpolicy/why.h"

struct run {
	enum order_task task;
	pid_t pid;
	int records; /* the child's records; non-blocking; readable at its end too */
	int orders;  /* kept open: the child's standard input */
	uint32_t number;
	size_t held; /* bytes of a record that is not complete yet */
	unsigned char partial[sizeof(struct record)];
	bool ended;
	int error;           /* what RECORD_END said */
	struct pc_why words; /* why, in the child's words; worth a look once it has ended */
	size_t words_held;
	struct taints taints;

	struct dataset data;
	struct probe_set probes;
	uint64_t knees[COST_EPOCHS];
	size_t knee_count;
	uint32_t passed, faulted; /* bits of pc_kernels after their trials */
	unsigned epoch, epochs;
	double share; /* of the budget, 0..1 */

	bool verified; /* a verification's outcome is here, which till then is not to be looked at: */
	struct verify_report report;
	size_t report_held;
};

/* How long to wait for a child that should take so many seconds: with half as long again and half a minute more it is
 * hung. */
static inline double run_patience_seconds(double seconds)
{
	return 1.5 * seconds + 30;
}

/* Executes this program anew with --worker, tied to this process (order->parent is filled in). 0 or -errno with why;
 * run_free() in both cases. */
int run_start(struct run *run, const struct order *order, struct pc_why *why);

/* The same with a child that is there already and writes its records to that pipe. Both descriptors (orders may be -1)
 * and the child are the run's from now on, even after an error. */
int run_watch(struct run *run, enum order_task task, pid_t pid, int records, int orders, struct pc_why *why);

/* Takes what the child has sent; never waits for it. 0: more will come; 1: all is here and the child is gone; -errno
 * with why: it failed (its own words, and its own number: -ENOEXEC from a verification whose policy names a kernel that
 * fails its trial), died, or sent what no healthy child sends. After 1 and after errors only run_free() is left to
 * call. */
int run_read(struct run *run, struct pc_why *why);

/* Once run->ended, for who does not wait for the pipe's end, which others may hold open: ends the child if need be, and
 * says what run_read() would have said if that was all. */
int run_cut(struct run *run, struct pc_why *why);

/* Kills the child if it is still there, and releases everything. */
void run_free(struct run *run);

/* Median over the epochs that saw a knee; 0 where most epochs saw none. */
uint64_t run_knee(const struct run *run);

/* Share of all samples that were dropped as tainted. */
double run_tainted(const struct run *run);

#endif
