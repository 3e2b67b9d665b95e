/* What others ask for over the bus; see bus.h and service_parts.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "calibrd/import.h"
#include "calibrd/log.h"
#include "calibrd/rollback.h"
#include "calibrd/service_parts.h"

static const char *name_of(enum task task)
{
	return task == TASK_CALIBRATE ? "calibration" : "verification";
}

static int check_free(const struct service *service, struct pc_why *why)
{
	const struct job *job = &service->job;

	if (job->task == TASK_NONE)
		return 0;
	return pc_why(why, -EBUSY, "a %s is running (job %llu): wait for it, or cancel it", name_of(job->task),
	              (unsigned long long)job->number);
}

/* Nothing can be done for anybody before this host is known: who asks right after the start need not ask twice. */
static int make_known(struct service *service, struct pc_why *why)
{
	return service->store != NULL && service->topology != NULL ? 0 : looking_do(service, why);
}

/* --- measuring ---------------------------------------------------------------------------------------------------- */

static int check_measuring(struct service *service, struct pc_why *why)
{
	int r = check_free(service, why);

	if (r == 0)
		r = make_known(service, why);
	if (r == 0 && service->config.calibrate == CALIBRATE_IMPORT)
		r = pc_why(why, -EPERM, "calibrd.yaml forbids measuring (calibrate: import)");
	return r;
}

static int find_effort(const char *text, enum effort standard, enum effort *out, struct pc_why *why)
{
	*out = text[0] == '\0' ? standard : effort_find(text);
	return *out < EFFORTS ? 0 : pc_why(why, -EINVAL, "effort '%.40s': expected quick, standard or thorough", text);
}

/* This host may not be the one that was looked at. */
static int look_first(struct service *service, struct pc_why *why)
{
	int r = looking_moved(service, why);

	return r == 1 ? looking_do(service, why) : r;
}

/* What failed is told to whoever asked, and then goes the way of all troubles. */
static int failed(struct service *service, int r, const struct pc_why *why)
{
	service_trouble(service, r, why);
	service_step(service);
	return r;
}

static int start(struct service *service, enum task task, enum effort effort, uint64_t *job, struct pc_why *why)
{
	int r = look_first(service, why);

	if (r < 0)
		return failed(service, r, why);
	agenda_want(&service->agenda, task, WISH_ASKED, "asked for over the bus");
	service->effort = effort;
	r = task == TASK_CALIBRATE ? measuring_start(service, effort, why) : verifying_start(service, effort, why);
	*job = service->job.number;
	return r < 0 ? failed(service, r, why) : 0;
}

static int calibrate(void *context, const char *text, uint64_t *job, struct pc_why *why)
{
	struct service *service = context;
	enum effort effort;
	int r = find_effort(text, service->config.effort, &effort, why);

	if (r == 0)
		r = check_measuring(service, why);
	return r < 0 ? r : start(service, TASK_CALIBRATE, effort, job, why);
}

static int verify(void *context, const char *text, uint64_t *job, struct pc_why *why)
{
	struct service *service = context;
	enum effort effort;
	int r = find_effort(text, EFFORT_QUICK, &effort, why);

	if (r == 0)
		r = check_measuring(service, why);
	return r < 0 ? r : start(service, TASK_VERIFY, effort, job, why);
}

/* What waits is forgotten until something else happens: the next start, a reload, a host that changed. */
static int cancel(void *context, struct pc_why *why)
{
	struct service *service = context;
	const struct pc_why cancelled = {"cancelled"};
	enum task waiting = service->agenda.task;

	if (!job_abandon(service, "cancelled", &cancelled) && waiting != TASK_CALIBRATE && waiting != TASK_VERIFY)
		return pc_why(why, -ENOENT, "nothing runs or waits");
	log_notice("cancelled: the policy in force stays");
	agenda_done(&service->agenda);
	bus_changed(service->bus);
	if (service->again)
		service_look_soon(service, "something changed while measuring");
	service_step(service);
	return 0;
}

static int reload(void *context, struct pc_why *why)
{
	return service_reload(context, why);
}

/* --- policies ----------------------------------------------------------------------------------------------------- */

/* What a calibration publishes when it ends would replace it, and a verification would be of another policy. */
static int check_publishing(struct service *service, struct pc_why *why)
{
	int r = check_free(service, why);

	return r < 0 ? r : make_known(service, why);
}

static struct settlement settlement(struct service *service, const char *source)
{
	return (struct settlement){
		.config = &service->config,
		.store = service->store,
		.topology = service->topology,
		.old = service->old,
		.source = source,
		.where = service->where,
	};
}

static int publish_done(struct service *service, int r, struct pc_why *why)
{
	if (r >= 0)
		r = looking_refresh(service, why);
	if (r < 0) {
		service_mind_store(service, r);
		service_look_soon(service, "publishing failed");
	} else {
		service->idle[0] = '\0'; /* what was wished for is what there is */
		standing_policy(service);
	}
	service_step(service);
	return r < 0 ? r : 0;
}

static int roll_back(void *context, uint64_t generation, uint64_t *published, struct pc_why *why)
{
	struct service *service = context;
	struct settlement what;
	int r = check_publishing(service, why);

	if (r < 0)
		return r;
	what = settlement(service, ROLLBACK_SOURCE);
	return publish_done(service, rollback_to(&what, generation, published, why), why);
}

static int import(void *context, const char *text, size_t len, uint64_t *published, struct pc_why *why)
{
	struct service *service = context;
	struct settlement what;
	int r = check_publishing(service, why);

	if (r < 0)
		return r;
	what = settlement(service, IMPORT_SOURCE);
	return publish_done(service, import_policy(&what, text, len, published, why), why);
}

const struct bus_ops request_ops = {
	.calibrate = calibrate,
	.verify = verify,
	.cancel = cancel,
	.reload = reload,
	.rollback = roll_back,
	.import = import,
	.view = standing_view,
};
