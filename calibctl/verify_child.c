/*
 * calibctl's measuring child, calibrd's in all but that it is forked, not executed: what it measures against is a
 * library that may be broken. What comes back is distrusted: that library may have written anywhere in the child.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "calibctl/tried.h"
#include "calibctl/verify.h"
#include "calibctl/verify_against.h"
#include "calibrd/clock.h"
#include "calibrd/progress.h"
#include "calibrd/run.h"
#include "calibrd/worker.h"

/* With less nothing beyond the caches' smallest could be measured. */
static const uint64_t least_memory = 6 << 20;

static int make_order(const struct verification_request *request, struct order *out, struct pc_why *why)
{
	*out = (struct order){
		.task = ORDER_VERIFY,
		.effort = request->effort,
		.memory_bytes = tried_memory(),
		.l1_bytes = topology_cache_bytes(request->topology, 1),
		.l2_bytes = topology_cache_bytes(request->topology, 2),
		.knee_bytes = request->subject.document->knee_bytes,
		.seed = request->seed,
		.tolerance = request->tolerance,
	};
	if (out->memory_bytes >= least_memory)
		return 0;
	return pc_why(why, -ENOMEM,
	              "a quarter of the memory that is available leaves %llu MiB for measuring, %llu are needed",
	              (unsigned long long)out->memory_bytes >> 20, (unsigned long long)least_memory >> 20);
}

/* --- the child --------------------------------------------------------------------------------------------------- */

static int verify(struct worker *worker, const struct verification_request *request, const struct order *order,
                  struct pc_why *why)
{
	const struct pc_kernel *against = NULL;
	int r = 0;

	if (request->against != NULL)
		r = against_load(&against, request->against, why);
	if (r == 0 && against != NULL)
		r = against_try(against, request->against, why);
	return r == 0 ? worker_verify(worker, order, request->policy, against, why) : r;
}

static void __attribute__((noreturn))
be_child(const int ends[2], pid_t parent, const struct verification_request *request, const struct order *order)
{
	struct worker *worker;
	struct pc_why why = {""};
	int r;

	/* Else a parent's death would not be seen by a child that writes. */
	close(ends[0]);
	if (!worker_tie(parent) || worker_new(&worker, ends[1]) < 0)
		_exit(1);
	/* What a library prints is not our result. */
	dup2(STDERR_FILENO, STDOUT_FILENO);
	r = verify(worker, request, order, &why);
	_exit(worker_end(worker, r, &why));
}

/* --- the parent -------------------------------------------------------------------------------------------------- */

static int start(struct run *run, const struct verification_request *request, const struct order *order,
                 struct pc_why *why)
{
	pid_t self = getpid(), pid;
	int ends[2], r;

	fflush(NULL);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return pc_why(why, -errno, "cannot start the measuring process: %s", strerror(errno));
	pid = fork();
	if (pid == 0)
		be_child(ends, self, request, order);
	r = pid < 0 ? pc_why(why, -errno, "cannot start the measuring process: %s", strerror(errno)) : 0;
	close(ends[1]);
	if (r == 0)
		return run_watch(run, ORDER_VERIFY, pid, ends[0], -1, why);
	close(ends[0]);
	return r;
}

/* 1 there is something to read, 0 not yet, -errno. */
static int wait_for(const struct run *run, double deadline, struct pc_why *why)
{
	struct pollfd in = {.fd = run->records, .events = POLLIN};
	double wait = deadline - clock_seconds(CLOCK_MONOTONIC);
	int ready = poll(&in, 1, wait > 0 ? (int)(wait * 1000) + 1 : 0);

	if (ready == 0)
		return pc_why(why, -ETIME, "the measuring process did not end in time and was killed");
	if (ready < 0 && errno != EINTR)
		return pc_why(why, -errno, "cannot read from the measuring process: %s", strerror(errno));
	return ready > 0;
}

/* Up to the last record: whatever the library has started may hold the pipe open for longer. */
static int read_all(struct run *run, const struct verification_request *request, struct pc_why *why)
{
	double seconds = verify_seconds(request->effort),
	       deadline = clock_seconds(CLOCK_MONOTONIC) + run_patience_seconds(seconds);
	struct progress progress = {.foreground = true};
	int r = 0;

	while (r == 0 && !run->ended) {
		r = wait_for(run, deadline, why);
		if (r == 1)
			r = run_read(run, why);
		if (run->epochs > 0)
			progress_say(&progress, "Verifying", run->epoch, run->epochs, run->share,
			             (1 - run->share) * seconds);
	}
	progress_end(&progress);
	return r == 0 ? run_cut(run, why) : r;
}

/* A child that died could not say at what. */
static int add_stage(const struct run *run, const struct verification_request *request, struct pc_why *why)
{
	const struct pc_why died = *why;
	bool tried = (run->passed | run->faulted) != 0;

	if (run->epochs > 0)
		pc_why_say(why, "%s while measuring", died.text);
	else if (tried || request->against == NULL)
		pc_why_say(why, "%s while trying the kernels", died.text);
	else
		pc_why_say(why, "%s while loading %s", died.text, request->against);
	return -ECHILD;
}

int verification_run(const struct verification_request *request, struct verify_report *out, struct pc_why *why)
{
	struct run run = {.pid = -1, .records = -1, .orders = -1};
	struct order order;
	int r = make_order(request, &order, why);

	if (r == 0)
		r = start(&run, request, &order, why);
	if (r == 0)
		r = read_all(&run, request, why);
	if (r == -ECHILD && !run.ended)
		r = add_stage(&run, request, why);
	if (r == 1)
		*out = run.report;
	run_free(&run);
	return r < 0 ? r : 0;
}
