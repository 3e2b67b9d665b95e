/* The measuring child's life and words; see worker.h. What it measures is in worker_calibrate.c and worker_verify.c. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "calibrd/log.h"
#include "calibrd/rest.h"
#include "calibrd/trial.h"
#include "calibrd/worker_parts.h"
#include "libpolicy/policy.h"

/* --- records ----------------------------------------------------------------------------------------------------- */

static int write_all(int fd, const void *data, size_t size)
{
	const char *at = data;

	while (size > 0) {
		ssize_t wrote = write(fd, at, size);

		if (wrote < 0 && errno == EINTR)
			continue;
		if (wrote < 0)
			return -errno;
		at += wrote;
		size -= (size_t)wrote;
	}
	return 0;
}

static int flush(struct worker *worker)
{
	int r = write_all(worker->out, worker->records, worker->held * sizeof(worker->records[0]));

	worker->held = 0;
	return r;
}

int worker_say(struct worker *worker, struct record record)
{
	record.number = worker->number++;
	worker->records[worker->held++] = record;
	return worker->held == WORKER_BATCH ? flush(worker) : 0;
}

int worker_say_whole(struct worker *worker, enum record_kind kind, const void *whole, size_t size)
{
	int r = 0;

	for (uint32_t at = 0; at < size && r == 0; at += RECORD_PIECE)
		r = worker_say(worker, (struct record){.kind = kind, .u.piece = record_piece(whole, size, at)});
	return r;
}

int worker_say_progress(void *context, unsigned epoch, unsigned epochs, double share)
{
	struct worker *worker = context;
	int percent = (int)(100 * share), r;

	if (percent == worker->percent && epoch == worker->epoch)
		return 0;
	worker->percent = percent;
	worker->epoch = epoch;
	r = worker_say(worker, (struct record){.kind = RECORD_PROGRESS, .u.progress = {epoch, epochs, share}});
	return r < 0 ? r : flush(worker);
}

/* --- what both tasks begin and end with -------------------------------------------------------------------------- */

static int try_kernel(struct worker *worker, unsigned row, uint32_t *passed, struct pc_why *why)
{
	int trial = trial_run(&pc_kernels[row], TRIAL_DEADLINE_MS), r;

	if (trial < 0)
		return pc_why(why, trial, "cannot try %s: %s", pc_kernels[row].name, strerror(-trial));
	if (trial == TRIAL_PASSED)
		*passed |= 1u << row;
	r = worker_say(worker, (struct record){.kind = RECORD_TRIAL, .u.trial = {row, (uint32_t)trial}});
	return r < 0 ? r : flush(worker);
}

int worker_try_kernels(struct worker *worker, uint32_t excluded, uint32_t *passed, struct pc_why *why)
{
	int r = 0;

	*passed = 0;
	for (unsigned row = 0; row < pc_kernel_count && r == 0; row++)
		if (pc_kernel_runs(&pc_kernels[row]) && (excluded >> row & 1) == 0)
			r = try_kernel(worker, row, passed, why);
	return r;
}

int worker_new_meter(struct meter **out, const struct order *order, const struct crew *crew, struct pc_why *why)
{
	struct meter *real = NULL;
	int r = meter_real_new(&real, crew, why);

	*out = NULL;
	return r == 0 ? rest_new(out, real, order->duty_percent, why) : r;
}

void worker_free_meter(struct worker *worker, struct meter *meter)
{
	if (meter != NULL && meter->ops->taints != NULL)
		meter->ops->taints(meter, &worker->taints);
	meter_free(meter);
}

/* --- life -------------------------------------------------------------------------------------------------------- */

int worker_new(struct worker **out, int fd)
{
	struct worker *worker = calloc(1, sizeof(*worker));

	if (worker == NULL)
		return -ENOMEM;
	worker->out = fd;
	worker->taints.cpu = worker->percent = -1;
	*out = worker;
	return 0;
}

bool worker_tie(pid_t parent)
{
	/* In this order: whoever loses its parent before prctl() sees another one after it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	return getppid() == parent;
}

int worker_end(struct worker *worker, int r, const struct pc_why *why)
{
	int e = r < 0 ? worker_say_whole(worker, RECORD_WORDS, why, sizeof(*why)) : 0;

	if (e == 0)
		e = worker_say(worker, (struct record){.kind = RECORD_END, .u.end = {r, worker->taints}});
	if (e == 0)
		e = flush(worker);
	free(worker);
	return r == 0 && e == 0 ? 0 : 1;
}

/* --- executed ---------------------------------------------------------------------------------------------------- */

static bool makes_sense(const struct order *order)
{
	return order->magic == ORDER_MAGIC && order->task <= ORDER_VERIFY && order->effort < EFFORTS &&
	       order->duty_percent <= 100 && memchr(order->policy, '\0', sizeof(order->policy)) != NULL;
}

static int read_order(int in, struct order *order)
{
	char *at = (char *)order;
	size_t left = sizeof(*order);

	while (left > 0) {
		ssize_t got = read(in, at, left);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : -EPIPE;
		at += got;
		left -= (size_t)got;
	}
	return makes_sense(order) ? 0 : -EPROTO;
}

/* Should memory run short after all, it is ours that goes, and not that of whom this host is for. Where /proc does not
 * let us say so we measure all the same. */
static void offer_memory(void)
{
	static const char first[] = "1000";
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, first, sizeof(first) - 1) < 0)
		log_info("cannot offer memory to the OOM killer: %s", strerror(errno));
	close(fd);
}

/* SIGINT and the like are meant for the whole terminal or service: the parent decides what becomes of us, and kills us
 * for it. */
static void settle_in(const struct order *order)
{
	prctl(PR_SET_NAME, "calibrd-worker"); /* else "exe": what it was executed as */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	setpriority(PRIO_PROCESS, 0, order->nice);
	offer_memory();
}

static int verify_file(struct worker *worker, const struct order *order, struct pc_why *why)
{
	struct pageclear_policy *policy;
	struct pc_why reason;
	int r = pc_policy_load(&policy, order->policy, &reason);

	if (r < 0)
		return pc_why(why, r, "%s: %s", order->policy, reason.text);
	r = worker_verify(worker, order, policy, NULL, why);
	pageclear_policy_close(policy);
	return r;
}

int worker_main(int in, int out)
{
	struct worker *worker = NULL;
	struct order order;
	struct pc_why why = {""};
	int r = read_order(in, &order);

	if (r == 0)
		r = worker_new(&worker, out);
	if (r != 0) {
		fprintf(stderr, "calibrd: --worker is started by calibrd itself, not by hand: %s\n", strerror(-r));
		return 2;
	}
	if (!worker_tie(order.parent)) {
		free(worker);
		return 1; /* nobody is left to be told */
	}
	settle_in(&order);
	r = order.task == ORDER_VERIFY ? verify_file(worker, &order, &why) : worker_calibrate(worker, &order, &why);
	return worker_end(worker, r, &why);
}
