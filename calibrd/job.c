/* The child that runs, whatever it measures; see service_parts.h. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/wait.h>
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

/* Children of a child that was killed die with it and fall to us (a subreaper, see service.c): whoever stops us shall
 * find nobody left. There are no others. */
static void reap_orphans(void)
{
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
}

void job_stop(struct service *service)
{
	struct job *job = &service->job;

	progress_end(&service->progress);
	job->records = sd_event_source_disable_unref(job->records);
	job->deadline = sd_event_source_disable_unref(job->deadline);
	if (job->task != TASK_NONE) {
		run_free(&job->run);
		reap_orphans();
	}
	job->before = look_free(job->before);
	job->task = TASK_NONE;
	/* Texts that the concluding function had on its stack, and the topology's. */
	job->calibration.reasons = job->calibration.faulted = job->calibration.surroundings = NULL;
	job->calibration.soft = job->verification.soft = NULL;
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

/* What comes next follows from what is known now. --once has done what it was called for. */
static void look_ahead(struct service *service, enum task task)
{
	log_once_over(&service->trouble[task]);
	if (service->options->once && task == TASK_CALIBRATE)
		agenda_done(&service->agenda);
	else
		agenda_want(&service->agenda, TASK_LOOK, WISH_ITSELF, "something was measured");
}

void job_ended(struct service *service, int r, const struct pc_why *why)
{
	enum task task = service->job.task;

	if (r < 0) {
		job_abandon(service, "failed", why);
		service_trouble(service, r, why);
	} else {
		job_stop(service);
		look_ahead(service, task);
	}
	if (service->again)
		service_look_soon(service, "something changed while measuring");
	bus_changed(service->bus);
	service_step(service);
}

static int conclude(struct service *service, struct pc_why *why)
{
	return service->job.task == TASK_CALIBRATE ? measuring_conclude(service, why)
	                                           : verifying_conclude(service, why);
}

static int on_records(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct service *service = context;
	struct pc_why why, trouble;
	int r = run_read(&service->job.run, &why);

	(void)source;
	(void)fd;
	(void)events;
	if (r == 0) {
		standing_progress(service);
		return 0;
	}
	if (r == 1)
		r = conclude(service, &why);
	else if (r == -ENOEXEC && service->job.task == TASK_VERIFY &&
	         (r = verifying_refuted(service, &why, &trouble)) < 0)
		why = trouble;
	job_ended(service, r, &why);
	return 0;
}

static int on_deadline(sd_event_source *source, uint64_t now, void *context)
{
	struct pc_why why;

	(void)source;
	(void)now;
	pc_why_say(&why, "the measuring process did not end in time and was killed");
	job_ended(context, -ETIMEDOUT, &why);
	return 0;
}

static int listen_to(struct service *service)
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

	if (r == 0 && (r = listen_to(service)) < 0)
		pc_why(why, r, "cannot watch the measuring process: %s", strerror(-r));
	return r < 0 ? r : 0;
}
