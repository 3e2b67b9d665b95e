/* The child that runs, whatever it measures; see service_parts.h. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <time.h>

#include "calibrd/crew.h"
#include "calibrd/memory.h"
#include "calibrd/meter.h"
#include "calibrd/rest.h"
#include "calibrd/service_parts.h"
#include "calibrd/worker.h"

/* As calibrd.yaml has it: with less nothing beyond the caches' smallest could be measured. */
static const uint64_t least_memory = 16 << 20;

/* More threads than a quota has CPUs would throttle themselves, and make noisy what one alone measures well. */
static uint32_t whole_cpus(double quota)
{
	return isfinite(quota) ? (uint32_t)fmin(fmax(1, floor(quota)), CREW_MOST) : 0;
}

int job_order(const struct service *service, enum order_task task, struct order *order, struct pc_why *why)
{
	const struct config *config = &service->config;
	uint64_t most = config->memory_most_bytes, available = memory_available(NULL) / 4;

	if (available == 0)
		return pc_why(why, -ENOMEM, "cannot tell how much memory is available: is /proc mounted?");
	if (available < least_memory)
		return pc_why(why, -ENOMEM,
		              "only %llu MiB of memory for measuring (a quarter of what is available), %llu are needed",
		              (unsigned long long)available >> 20, (unsigned long long)least_memory >> 20);
	*order = (struct order){
		.magic = ORDER_MAGIC,
		.task = task,
		.duty_percent = config->duty_percent,
		.memory_bytes = (most > 0 && most < available ? most : available) - METER_OVERHEAD,
		.l1_bytes = topology_cache_bytes(service->topology, 1),
		.l2_bytes = topology_cache_bytes(service->topology, 2),
		.llc_bytes = topology_cache_bytes(service->topology, 0),
		.seed = (uint64_t)time(NULL),
		.excluded = config->exclude,
		.keep = service->old != NULL ? settle_named(service->old) : 0,
		.threads_most = service->job.before != NULL ? whole_cpus(service->job.before->quota) : 0,
		.nice = service->options->once ? 0 : WORKER_NICE,
		.scrub_weight = config->scrub_weight,
	};
	return 0;
}

void job_stop(struct service *service)
{
	struct job *job = &service->job;

	progress_end(&service->progress);
	job->records = sd_event_source_disable_unref(job->records);
	job->deadline = sd_event_source_disable_unref(job->deadline);
	if (job->task != TASK_NONE)
		run_free(&job->run);
	job->before = look_free(job->before);
	job->task = TASK_NONE;
	/* Texts that the concluding function had on its stack. */
	job->calibration.reasons = job->calibration.faulted = job->calibration.surroundings = NULL;
}

bool job_abandon(struct service *service, const char *outcome, const struct pc_why *why)
{
	enum task task = service->job.task;

	if (task == TASK_NONE)
		return false;
	job_stop(service);
	if (task == TASK_CALIBRATE)
		measuring_failed(service, outcome, why);
	else
		verifying_failed(service, outcome, why);
	return true;
}

static void fail(struct service *service, int r, const struct pc_why *why)
{
	job_abandon(service, "failed", why);
	service_trouble(service, r, why);
	service_step(service);
}

static void conclude(struct service *service)
{
	struct pc_why why;
	int r = service->job.task == TASK_CALIBRATE ? measuring_conclude(service, &why)
	                                            : verifying_conclude(service, &why);

	if (r < 0) {
		fail(service, r, &why);
		return;
	}
	job_stop(service);
	log_once_over(&service->trouble);
	if (service->again)
		service_look_soon(service, "something changed while measuring");
	service_step(service);
}

static int on_records(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct service *service = context;
	struct pc_why why;
	int r = run_read(&service->job.run, &why);

	(void)source;
	(void)fd;
	(void)events;
	if (r == -ENOEXEC && service->job.task == TASK_VERIFY) {
		verifying_refuted(service, &why);
		service_step(service);
	} else if (r < 0)
		fail(service, r, &why);
	else if (r == 1)
		conclude(service);
	else
		standing_progress(service);
	return 0;
}

static int on_deadline(sd_event_source *source, uint64_t now, void *context)
{
	struct pc_why why;

	(void)source;
	(void)now;
	pc_why_say(&why, "the measuring process did not end in time and was killed");
	fail(context, -ETIMEDOUT, &why);
	return 0;
}

static int watch(struct service *service)
{
	struct job *job = &service->job;
	double seconds = run_patience_seconds(rest_wall_seconds(job->seconds, service->config.duty_percent));
	int r = sd_event_add_io(service->event, &job->records, job->run.records, EPOLLIN, on_records, service);

	if (r >= 0)
		r = sd_event_add_time_relative(service->event, &job->deadline, CLOCK_MONOTONIC,
		                               (uint64_t)(seconds * 1e6), 0, on_deadline, service);
	return r;
}

int job_start(struct service *service, const struct order *order, struct pc_why *why)
{
	int r = run_start(&service->job.run, order, why);

	if (r == 0 && (r = watch(service)) < 0)
		pc_why(why, r, "cannot watch the measuring process: %s", strerror(-r));
	return r < 0 ? r : 0;
}
