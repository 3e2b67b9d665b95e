/* The measuring child; see worker.h. */
#include "calibrd/worker.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "calibrd/bench.h"
#include "calibrd/crew.h"
#include "calibrd/log.h"
#include "calibrd/records.h"
#include "calibrd/trial.h"

/* Records leave in batches, so that a sample is not followed by a system call each time. */
enum { BATCH = 256 };

struct worker {
	int out;
	uint32_t number;
	size_t held;
	struct record records[BATCH];
};

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

static int say(struct worker *worker, struct record record)
{
	record.number = worker->number++;
	worker->records[worker->held++] = record;
	return worker->held == BATCH ? flush(worker) : 0;
}

static int say_sample(void *context, const struct series_key *key, const struct round_value *value, bool tainted)
{
	return say(context, (struct record){.kind = RECORD_SAMPLE, .u.sample = {*key, *value, tainted}});
}

static int say_knee(void *context, unsigned epoch, uint64_t bytes)
{
	return say(context, (struct record){.kind = RECORD_KNEE, .u.knee = {bytes, epoch}});
}

static int say_probe(void *context, const struct bench_probe *probe)
{
	return say(context, (struct record){.kind = RECORD_PROBE, .u.probe = *probe});
}

static int say_progress(void *context, unsigned epoch, unsigned epochs, double share)
{
	int r = say(context, (struct record){.kind = RECORD_PROGRESS, .u.progress = {epoch, epochs, share}});

	return r < 0 ? r : flush(context);
}

/* The parent cannot do anything about it; whoever reads the log may. */
static int say_crew_lost(void *context, int error)
{
	(void)context;
	log_warning("several threads cannot be measured: %s", strerror(-error));
	return 0;
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
	return order->magic == ORDER_MAGIC && order->effort < EFFORTS ? 0 : -EPROTO;
}

/* Bits of the kernels that run here and passed their trial; says how each trial went. */
static int try_kernels(struct worker *worker, uint32_t excluded, uint32_t *passed)
{
	*passed = 0;
	for (unsigned k = 0; k < pc_kernel_count; k++) {
		int trial, r;

		if (!pc_kernel_runs(&pc_kernels[k]) || (excluded >> k & 1) != 0)
			continue;
		trial = trial_run(&pc_kernels[k], TRIAL_DEADLINE_MS);
		if (trial < 0)
			return trial;
		if (trial == TRIAL_PASSED)
			*passed |= 1u << k;
		r = say(worker, (struct record){.kind = RECORD_TRIAL, .u.trial = {k, (uint32_t)trial}});
		if (r < 0)
			return r;
	}
	return flush(worker);
}

/* The CPUs that may clear together, at most so many (0: all), and a place among them: whoever is moved before it is
 * pinned would measure beside another cache than the rest. */
static int find_crew(struct crew *crew, uint32_t most)
{
	int cpu, r = crew_find(crew, NULL);
	size_t place = 0;

	if (r < 0)
		return r;
	cpu = sched_getcpu();
	for (size_t i = 0; i < crew->count; i++)
		if (crew->cpus[i] == cpu)
			place = i;
	if (most > 0 && most < crew->count) {
		if (place + most > crew->count)
			place = crew->count - most;
		memmove(crew->cpus, crew->cpus + place, most * sizeof(crew->cpus[0]));
		crew->count = most;
		place = 0;
	}
	return crew_pin(crew->cpus[place]);
}

static int measure(struct worker *worker, const struct order *order, struct taints *taints)
{
	const struct bench_sink sink = {worker, say_sample, say_knee, say_probe, say_progress, say_crew_lost};
	struct bench_config config = {
		.effort = order->effort,
		.keep = order->keep,
		.memory_bytes = order->memory_bytes,
		.l1_bytes = order->l1_bytes,
		.l2_bytes = order->l2_bytes,
		.llc_bytes = order->llc_bytes,
		.seed = order->seed,
		.scrub_weight = order->scrub_weight,
	};
	struct dataset data = {0};
	struct meter *meter = NULL;
	struct crew crew = {.count = 0};
	struct pc_why why;
	int r = try_kernels(worker, order->excluded, &config.kernels);

	if (r == 0)
		r = find_crew(&crew, order->threads_most);
	if (r == 0 && (r = meter_real_new(&meter, &crew, &why)) < 0)
		log_error("%s", why.text); /* the record can only say the number */
	config.threads = r == 0 ? (unsigned)crew.count : 0;
	if (r == 0)
		r = bench_run(meter, &config, &data, &sink);
	if (meter != NULL && meter->ops->taints != NULL)
		meter->ops->taints(meter, taints);
	meter_free(meter);
	dataset_clear(&data);
	return r;
}

int worker_main(int in, int out)
{
	struct worker *worker = calloc(1, sizeof(*worker));
	struct order order;
	struct taints taints = {.cpu = -1};
	int r = worker != NULL ? read_order(in, &order) : -ENOMEM, e;

	if (r < 0) {
		free(worker);
		fprintf(stderr, "calibrd: --worker is started by calibrd itself, not by hand: %s\n", strerror(-r));
		return 2;
	}
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "calibrd-worker"); /* else "exe": what it was executed as */
	/* Meant for the whole terminal or service: the parent decides what becomes of us, and kills us for it. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	setpriority(PRIO_PROCESS, 0, order.nice);
	worker->out = out;
	r = measure(worker, &order, &taints);
	e = say(worker, (struct record){.kind = RECORD_END, .u.end = {r, taints}});
	if (e == 0)
		e = flush(worker);
	free(worker);
	return r == 0 && e == 0 ? 0 : 1;
}
