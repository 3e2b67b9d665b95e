/*
 * The child that measures and judges, and the parent that waits for it. What comes back is distrusted: a foreign
 * library may have written anywhere in the child.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <pageclear/policy.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "calibctl/tried.h"
#include "calibctl/verify.h"
#include "calibctl/verify_against.h"
#include "calibrd/progress.h"
#include "calibrd/quiet.h"
#include "calibrd/run.h"
#include "kernels/kernels.h"

/* With less nothing beyond the caches' smallest could be measured. */
static const uint64_t least_memory = 6 << 20;

enum stage { STAGE_LOADING, STAGE_TRYING, STAGE_MEASURING };

enum message_kind { MESSAGE_STAGE = 1, MESSAGE_PROGRESS, MESSAGE_FAILED, MESSAGE_REPORT };

struct message {
	uint32_t kind;
	union {
		uint32_t stage;
		struct {
			uint32_t epoch, epochs;
			double share;
		} progress;
		struct {
			int32_t error;
			struct pc_why why;
		} failed;
		struct verify_report report;
	} u;
};

/* --- the child --------------------------------------------------------------------------------------------------- */

struct child {
	int out;
	int said; /* per cent, so that a sample is not followed by a system call each time */
};

static int say(const struct child *child, const struct message *message)
{
	const char *at = (const char *)message;
	size_t left = sizeof(*message);

	while (left > 0) {
		ssize_t wrote = write(child->out, at, left);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0)
			return -errno;
		at += wrote;
		left -= (size_t)wrote;
	}
	return 0;
}

static int say_stage(const struct child *child, enum stage stage)
{
	return say(child, &(struct message){.kind = MESSAGE_STAGE, .u.stage = stage});
}

static int say_progress(void *context, unsigned epoch, unsigned epochs, double share)
{
	struct child *child = context;
	int percent = (int)(100 * share);

	if (percent == child->said)
		return 0;
	child->said = percent;
	return say(child, &(struct message){.kind = MESSAGE_PROGRESS, .u.progress = {epoch, epochs, share}});
}

static int find_memory(uint64_t *out, struct pc_why *why)
{
	*out = tried_memory();
	if (*out >= least_memory)
		return 0;
	return pc_why(why, -ENOMEM,
	              "a quarter of the memory that is available leaves %llu MiB for measuring, %llu are needed",
	              (unsigned long long)*out >> 20, (unsigned long long)least_memory >> 20);
}

static int measure(struct child *child, const struct verification_request *request,
                   const struct verify_config *prepared, struct verify_report *out, struct pc_why *why)
{
	const struct pageclear_policy *policies[] = {request->policy};
	struct verify_config config = *prepared;
	struct meter *meter = NULL;
	struct verify_data data = {0};
	int r = find_memory(&config.memory_bytes, why);

	config.policies = policies;
	config.policy_count = 1;
	config.progress = say_progress;
	config.context = child;
	if (r == 0)
		r = say_stage(child, STAGE_MEASURING);
	if (r == 0)
		r = meter_real_new(&meter, NULL, why);
	if (r == 0)
		r = verify_measure(meter, &config, &data, why);
	meter_free(meter);
	if (r == 0)
		r = verify_judge(&data, request->policy, request->tolerance, out, why);
	verify_data_free(&data);
	return r;
}

static int prepare(struct child *child, const struct verification_request *request, struct verify_config *config,
                   struct pc_why *why)
{
	struct tried tried;
	int r = say_stage(child, STAGE_LOADING);

	if (r == 0 && request->against != NULL)
		r = against_load(&config->against, request->against, why);
	if (r == 0)
		r = say_stage(child, STAGE_TRYING);
	if (r == 0 && request->against != NULL)
		r = against_try(config->against, request->against, why);
	if (r == 0)
		r = tried_kernels(&tried, UINT32_MAX, why);
	if (r == 0)
		config->kernels = tried.passed;
	return r;
}

static void __attribute__((noreturn))
be_child(const int ends[2], pid_t parent, const struct verification_request *request)
{
	struct child child = {.out = ends[1], .said = -1};
	struct verify_config config = {.effort = request->effort,
	                               .l1_bytes = topology_cache_bytes(request->topology, 1),
	                               .l2_bytes = topology_cache_bytes(request->topology, 2),
	                               .knee_bytes = request->subject.document->knee_bytes,
	                               .seed = request->seed,
	                               .unhinted = true};
	struct message last = {.kind = MESSAGE_REPORT};
	struct pc_why why = {""};
	int r;

	/* Else a parent's death would not be seen by a child that writes. */
	close(ends[0]);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it died before that */
		_exit(1);
	/* What a library prints is not our result. */
	dup2(STDERR_FILENO, STDOUT_FILENO);
	r = prepare(&child, request, &config, &why);
	if (r == 0)
		r = measure(&child, request, &config, &last.u.report, &why);
	if (r < 0) {
		last = (struct message){.kind = MESSAGE_FAILED, .u.failed.error = r};
		last.u.failed.why = why;
	}
	_exit(say(&child, &last) == 0 ? 0 : 1);
}

/* --- the parent -------------------------------------------------------------------------------------------------- */

struct parent {
	const struct verification_request *request;
	pid_t pid;
	int in;
	enum stage stage;
	struct progress progress;
	bool ended; /* the last message is here: */
	int error;
	struct verify_report *report;
	struct pc_why *why;
};

static double now_seconds(void)
{
	return (double)quiet_clock_ns(CLOCK_MONOTONIC) / 1e9;
}

static bool is_sane_series(const struct verify_series *series)
{
	const struct verified *told = &series->told;

	return told->intent <= PAGECLEAR_SCRUB && (unsigned)told->prior < PC_PRIORS && told->sizes > 0 &&
	       told->sizes <= series->measured && isfinite(told->mean + told->p95 + told->worst) &&
	       isfinite(told->floor + told->floor_p95) && told->gain > 0 && isfinite(told->gain) &&
	       told->best_gain > 0 && isfinite(told->best_gain) && series->chosen.kernel < pc_kernel_count &&
	       series->better.kernel < pc_kernel_count;
}

static bool is_sane(const struct verify_report *report)
{
	for (size_t i = 0; i < VERIFY_SERIES; i++)
		if (!is_sane_series(&report->series[i]))
			return false;
	return report->count == VERIFY_SERIES;
}

static int senseless(struct parent *parent)
{
	return pc_why(parent->why, -EPROTO, "the measuring process sent what makes no sense");
}

static int take(struct parent *parent, struct message *message)
{
	double seconds = verify_seconds(parent->request->effort);

	switch (message->kind) {
	case MESSAGE_STAGE:
		parent->stage = message->u.stage;
		return message->u.stage <= STAGE_MEASURING ? 0 : senseless(parent);
	case MESSAGE_PROGRESS:
		if (!(message->u.progress.share >= 0 && message->u.progress.share <= 1))
			return senseless(parent);
		progress_say(&parent->progress, message->u.progress.epoch, message->u.progress.epochs,
		             message->u.progress.share, (1 - message->u.progress.share) * seconds);
		return 0;
	case MESSAGE_FAILED:
		message->u.failed.why.text[sizeof(message->u.failed.why.text) - 1] = '\0';
		*parent->why = message->u.failed.why;
		parent->error = message->u.failed.error < 0 ? message->u.failed.error : -EPROTO;
		parent->ended = true;
		return 0;
	case MESSAGE_REPORT:
		if (!is_sane(&message->u.report))
			return senseless(parent);
		*parent->report = message->u.report;
		parent->ended = true;
		return 0;
	default:
		return senseless(parent);
	}
}

/* 1 more, 0 the pipe has ended, -errno. */
static int read_message(struct parent *parent, struct message *message, double deadline)
{
	char *at = (char *)message;
	size_t left = sizeof(*message);

	while (left > 0) {
		struct pollfd in = {.fd = parent->in, .events = POLLIN};
		double wait = deadline - now_seconds();
		int ready = poll(&in, 1, wait > 0 ? (int)(wait * 1000) + 1 : 0);
		ssize_t got = 0;

		if (ready == 0)
			return pc_why(parent->why, -ETIME, "the measuring process did not end in time and was killed");
		if (ready > 0)
			got = read(parent->in, at, left);
		if ((ready < 0 || got < 0) && errno == EINTR)
			continue;
		if (ready < 0 || got < 0)
			return pc_why(parent->why, -errno, "cannot read from the measuring process: %s",
			              strerror(errno));
		if (got == 0)
			return left == sizeof(*message) ? 0 : senseless(parent);
		at += got;
		left -= (size_t)got;
	}
	return 1;
}

/* Up to the last message: whatever the library has started may hold the pipe open for longer. */
static int read_all(struct parent *parent)
{
	double deadline = now_seconds() + run_patience_seconds(verify_seconds(parent->request->effort));
	struct message message;
	int r;

	do {
		r = read_message(parent, &message, deadline);
		if (r == 1 && (r = take(parent, &message)) == 0)
			r = 1;
	} while (r == 1 && !parent->ended);
	return r < 0 ? r : 0;
}

/* What the child's end says where its last message is missing. */
static int judge_end(const struct parent *parent, int status)
{
	static const char *const doing[] = {
		[STAGE_LOADING] = "loading ", [STAGE_TRYING] = "trying the kernels", [STAGE_MEASURING] = "measuring"};
	const char *library =
		parent->stage == STAGE_LOADING && parent->request->against != NULL ? parent->request->against : "";

	if (parent->ended)
		return parent->error;
	if (WIFSIGNALED(status))
		return pc_why(parent->why, -ECHILD, "the measuring process was killed by signal %d (%s) while %s%s",
		              WTERMSIG(status), strsignal(WTERMSIG(status)), doing[parent->stage], library);
	return pc_why(parent->why, -ECHILD, "the measuring process ended early with exit code %d while %s%s",
	              WEXITSTATUS(status), doing[parent->stage], library);
}

static int conclude(struct parent *parent, int r)
{
	int status = 0;

	/* It has said all that it has to say, or is hung; one that died is not changed by it. */
	kill(parent->pid, SIGKILL);
	while (waitpid(parent->pid, &status, 0) < 0)
		if (errno != EINTR)
			return pc_why(parent->why, -errno, "cannot wait for the measuring process: %s",
			              strerror(errno));
	progress_end(&parent->progress);
	return r < 0 ? r : judge_end(parent, status);
}

int verification_run(const struct verification_request *request, struct verify_report *out, struct pc_why *why)
{
	struct parent parent = {
		.request = request, .progress = {.foreground = true}, .report = out, .why = why, .in = -1};
	pid_t self = getpid();
	int ends[2], r;

	fflush(NULL);
	if (pipe2(ends, O_CLOEXEC) < 0)
		return pc_why(why, -errno, "cannot start the measuring process: %s", strerror(errno));
	parent.pid = fork();
	if (parent.pid == 0)
		be_child(ends, self, request);
	r = parent.pid < 0 ? pc_why(why, -errno, "cannot start the measuring process: %s", strerror(errno)) : 0;
	close(ends[1]);
	parent.in = ends[0];
	if (r == 0)
		r = conclude(&parent, read_all(&parent));
	close(ends[0]);
	return r;
}
