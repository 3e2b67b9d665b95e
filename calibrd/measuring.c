/* One calibration: what the child is asked for, and what becomes of what it sent. See service_parts.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "calibrd/log.h"
#include "calibrd/service_parts.h"
#include "calibrd/verdict.h"

/* --- the end ------------------------------------------------------------------------------------------------------ */

static int cannot_look(struct pc_why *why, int r)
{
	return pc_why(why, r, "cannot read in /proc and /sys what else goes on here: %s", strerror(-r));
}

/* What the record of a calibration points to while it is written. */
struct notes {
	struct verdict verdict;
	char faulted[PC_KERNEL_MAX * PC_KERNEL_NAME], surroundings[SURROUNDINGS_TEXT];
};

/* After the child's end, which adds its time to ours. */
static int look_around(const struct service *service, struct surroundings *out, struct pc_why *why)
{
	struct look *after = NULL;
	int r = look_new(&after, NULL);

	if (r == 0)
		r = surroundings_find(out, service->job.before, after, service->job.run.taints.cpu, NULL);
	look_free(after);
	return r < 0 ? cannot_look(why, r) : 0;
}

static int judge(const struct service *service, struct notes *notes, struct pc_why *why)
{
	const struct run *run = &service->job.run;
	struct surroundings around;
	int r = look_around(service, &around, why);

	if (r < 0)
		return r;
	surroundings_text(&around, &run->taints, notes->surroundings);
	verdict_reach(&(struct verdict_facts){.data = &run->data,
	                                      .kernels = run->passed,
	                                      .tainted = run_tainted(run),
	                                      .emulated = strstr(service->topology->hypervisor, "TCG") != NULL,
	                                      .taints = &run->taints,
	                                      .surroundings = &around},
	              &notes->verdict);
	settle_name_faulted(run->faulted, notes->faulted);
	if (run->faulted != 0)
		log_warning("left out, since their trial failed on this host: %s", notes->faulted);
	return 0;
}

static void tell_quality(const struct verdict *verdict)
{
	if (strcmp(verdict->quality, "noisy") == 0)
		log_event(LOG_CALIBRATION_NOISY, LOG_LEVEL_NOTICE, "quality: noisy (%s)", verdict->reasons);
	else
		log_info("quality: %s (%s)", verdict->quality, verdict->reasons);
}

static int remember(struct service *service, struct notes *notes, struct pc_why *why)
{
	struct run *run = &service->job.run;
	struct calibration *calibration = &service->job.calibration;
	int r = judge(service, notes, why);

	if (r < 0)
		return r;
	calibration->state = CALIBRATION_DONE;
	calibration->finished = time(NULL);
	calibration->knee_bytes = run_knee(run);
	snprintf(calibration->quality, sizeof(calibration->quality), "%s", notes->verdict.quality);
	calibration->reasons = notes->verdict.reasons;
	calibration->faulted = notes->faulted;
	calibration->surroundings = notes->surroundings;
	tell_quality(&notes->verdict);
	r = settle_probe(&service->config, &run->data, &run->probes, calibration, why);
	return r < 0 ? r : store_finish(service->store, calibration, &run->data, why);
}

/* A noisy one does not, where a good one is known. */
static int is_newest_that_counts(const struct service *service, const struct calibration *calibration,
                                 struct pc_why *why)
{
	struct calibration newest = {0};
	int r = store_latest(service->store, calibration->topology, &newest, why);
	bool same = r == 0 && newest.id == calibration->id;

	store_calibration_free(&newest);
	return r < 0 ? r : same;
}

static int publish_outcome(struct service *service, struct pc_why *why)
{
	struct job *job = &service->job;
	bool worth = looking_worth_publishing(service, &job->calibration);
	int r = worth ? is_newest_that_counts(service, &job->calibration, why) : 0;

	if (worth && r == 0)
		log_notice("the new measurements are noisy: what is known from better ones stays");
	if (r == 1)
		r = settle(&(struct settlement){.config = &service->config,
		                                .store = service->store,
		                                .topology = service->topology,
		                                .calibration = &job->calibration,
		                                .data = &job->run.data,
		                                .old = service->old,
		                                .source = "calibration",
		                                .where = service->where},
		           why);
	if (r >= 0)
		r = looking_refresh(service, why);
	if (r >= 0)
		standing_policy(service);
	return r < 0 ? r : 0;
}

int measuring_conclude(struct service *service, struct pc_why *why)
{
	struct job *job = &service->job;
	struct notes notes;
	int r = 0;

	if (!settle_has_rounds(&job->run.data))
		r = pc_why(why, -ENODATA,
		           "no sample was taken undisturbed in time: this host is too slow or too busy for effort %s",
		           job->calibration.effort);
	if (r == 0)
		r = remember(service, &notes, why);
	if (r < 0)
		return r;
	job->stored = true;
	service->force = false;
	r = publish_outcome(service, why);
	if (r < 0)
		return r;
	if (strcmp(job->calibration.quality, "noisy") == 0)
		service_noisy(service, job->calibration.reasons);
	else
		agenda_went_well(&service->agenda, TASK_CALIBRATE);
	bus_calibration_finished(service->bus, job->number, job->calibration.quality, job->calibration.reasons);
	return 0;
}

void measuring_failed(struct service *service, const char *outcome, const struct pc_why *why)
{
	struct job *job = &service->job;
	struct pc_why trouble;

	if (!job->stored && store_fail(service->store, job->calibration.id, why->text, &trouble) < 0)
		log_error("%s", trouble.text);
	bus_calibration_finished(service->bus, job->number, outcome, why->text);
}

/* --- the beginning ------------------------------------------------------------------------------------------------ */

static int begin_record(struct service *service, enum effort effort, struct pc_why *why)
{
	struct calibration *calibration = &service->job.calibration;

	*calibration = (struct calibration){.started = time(NULL), .soft = service->topology->soft};
	snprintf(calibration->topology, sizeof(calibration->topology), "%s", service->topology->id);
	snprintf(calibration->effort, sizeof(calibration->effort), "%s", effort_limits[effort].name);
	return store_begin(service->store, service->topology, calibration, why);
}

static int start(struct service *service, enum effort effort, struct pc_why *why)
{
	struct order order;
	int r = look_new(&service->job.before, NULL);

	if (r < 0)
		return cannot_look(why, r);
	r = job_order(service, ORDER_CALIBRATE, &order, why);
	if (r < 0)
		return r;
	order.effort = (uint32_t)effort;
	return job_start(service, &order, why);
}

int measuring_start(struct service *service, enum effort effort, struct pc_why *why)
{
	struct job *job = &service->job;
	int r = settle_check(&service->config, why);

	if (r == 0)
		r = begin_record(service, effort, why);
	if (r < 0)
		return r;
	service->again = false;
	job->task = TASK_CALIBRATE;
	job->stored = false;
	job->wish = service->agenda.wish;
	job->number = ++service->jobs;
	job->seconds = effort_limits[effort].seconds;
	log_info("measuring for about %.0f s (effort %s)", job->seconds, job->calibration.effort);
	standing_say(service, "calibrating", "%s", service->agenda.reason);
	r = start(service, effort, why);
	if (r < 0)
		job_abandon(service, "failed", why);
	return r;
}
