/*
 * Children of a run that are healthy, broken or mean: each plays a script of records. Included by the tests of the run.
 */
#ifndef TESTS_RUN_SCRIPTS_H
#define TESTS_RUN_SCRIPTS_H

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calibrd/run.h"
#include "calibrd/trial.h"
#include "tests/unit/harness.h"

/* --- children ---------------------------------------------------------------------------------------------------- */

enum ending { EXITS, KILLS_ITSELF, HANGS, CLOSES_AND_HANGS };

struct script {
	struct record records[80];
	size_t count;
	size_t part; /* bytes of one record more */
	size_t step; /* bytes a write, 0: all at once */
	enum ending ending;
	int code;
};

static inline struct record *add(struct script *script, struct record record)
{
	record.number = (uint32_t)script->count;
	script->records[script->count] = record;
	return &script->records[script->count++];
}

static inline struct record sample(double ns, bool tainted)
{
	return (struct record){
		.kind = RECORD_SAMPLE,
		.u.sample = {{.bytes = 4096, .threads = 1, .prior = PC_CACHED}, {.ns = (float)ns}, tainted},
	};
}

static inline struct record knee(uint64_t bytes, unsigned epoch)
{
	return (struct record){.kind = RECORD_KNEE, .u.knee = {bytes, epoch}};
}

static inline struct record trial(unsigned kernel, enum trial result)
{
	return (struct record){.kind = RECORD_TRIAL, .u.trial = {kernel, result}};
}

static inline struct record progress(void)
{
	return (struct record){.kind = RECORD_PROGRESS, .u.progress = {1, 3, 0.25}};
}

static inline struct record probe(void)
{
	return (struct record){.kind = RECORD_PROBE, .u.probe = {65536, PC_CACHED, 60, {10, 11}}};
}

static inline struct record end(int error)
{
	return (struct record){.kind = RECORD_END, .u.end = {error, {.samples = 9, .lost = 2, .rounds = 4, .cpu = 1}}};
}

static inline void __attribute__((noreturn)) play(const struct script *script, int out)
{
	const char *at = (const char *)script->records;
	size_t left = script->count * sizeof(struct record) + script->part;

	while (left > 0) {
		ssize_t wrote = write(out, at, script->step > 0 && script->step < left ? script->step : left);

		if (wrote < 0)
			_exit(99);
		at += wrote;
		left -= (size_t)wrote;
	}
	if (script->ending == KILLS_ITSELF) {
		signal(script->code, SIG_DFL);
		raise(script->code);
	}
	if (script->ending == CLOSES_AND_HANGS)
		close(out);
	while (script->ending != EXITS)
		pause();
	_exit(script->code);
}

static inline void start_task(struct run *run, enum order_task task, const struct script *script)
{
	int ends[2];
	struct pc_why why;
	pid_t pid;

	CU_ASSERT_EQUAL_FATAL(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	CU_ASSERT_FATAL(pid >= 0);
	if (pid == 0) {
		close(ends[0]);
		play(script, ends[1]);
	}
	close(ends[1]);
	CU_ASSERT_EQUAL_FATAL(run_watch(run, task, pid, ends[0], -1, &why), 0);
}

static inline void start(struct run *run, const struct script *script)
{
	start_task(run, ORDER_CALIBRATE, script);
}

/* What run_read() says once it has more to say than "go on"; 0 if nothing comes any more. */
static inline int read_on(struct run *run, int patience_ms, struct pc_why *why)
{
	struct pollfd ready = {.fd = run->records, .events = POLLIN};
	int r = 0;

	why->text[0] = '\0';
	while (r == 0 && poll(&ready, 1, patience_ms) > 0)
		r = run_read(run, why);
	return r;
}

enum { PATIENCE_MS = 30000, HANG_MS = 100 };

/* The whole life of a run that ends by itself. */
static inline int outcome(const struct script *script, struct pc_why *why)
{
	struct run run;
	int r;

	start(&run, script);
	r = read_on(&run, PATIENCE_MS, why);
	run_free(&run);
	return r;
}

static inline bool says(const struct pc_why *why, const char *part)
{
	if (strstr(why->text, part) == NULL)
		printf("\n'%s' does not hold '%s'\n", why->text, part);
	return strstr(why->text, part) != NULL;
}

static inline bool no_child_left(void)
{
	return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD;
}

static inline struct script healthy(void)
{
	struct script script = {.count = 0};

	add(&script, trial(0, TRIAL_PASSED));
	add(&script, progress());
	add(&script, knee(8 << 20, 0));
	add(&script, probe());
	add(&script, sample(100, false));
	add(&script, sample(110, false));
	add(&script, sample(900, true));
	add(&script, sample(105, false));
	add(&script, end(0));
	return script;
}

#endif
