/* What is known of this host, and what follows from it; see service_parts.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "calibrd/log.h"
#include "calibrd/pool.h"
#include "calibrd/rollback.h"
#include "calibrd/service_parts.h"

/* --- what is published -------------------------------------------------------------------------------------------- */

bool looking_worth_publishing(struct service *service, const struct calibration *calibration)
{
	if (strcmp(calibration->quality, "noisy") != 0 || service->old == NULL ||
	    strcmp(service->old->quality, "good") != 0) {
		log_once_over(&service->noise);
		return true;
	}
	log_once(&service->noise, LOG_LEVEL_WARNING,
	         "the new measurements are noisy (%s): the good policy of before stays",
	         calibration->reasons != NULL ? calibration->reasons : "no reason recorded");
	return false;
}

int looking_refresh(struct service *service, struct pc_why *why)
{
	pc_document_free(service->old);
	service->old = NULL;
	return settle_last(service->store, service->topology->id, &service->old, why);
}

/* known: NULL: this topology has not been measured; a policy may have been imported for it. */
static int publish_known(struct service *service, const struct calibration *known, const struct dataset *data,
                         struct pc_why *why)
{
	bool worth = known != NULL && looking_worth_publishing(service, known);
	struct settlement what = {.config = &service->config,
	                          .store = service->store,
	                          .topology = service->topology,
	                          .calibration = known,
	                          .data = worth ? data : NULL,
	                          .old = service->old,
	                          .source = "restart",
	                          .where = service->where};

	if (!settle_has_rounds(data) && service->old == NULL)
		return 0; /* nothing left of it but its name */
	int r = rollback_stand(&what, why);
	if (r == 2)
		r = known != NULL ? settle(&what, why) : 0;
	return r < 0 ? r : looking_refresh(service, why);
}

/* --- what is due -------------------------------------------------------------------------------------------------- */

/* Of this topology alone; *out is for store_verification_free(). 0, 1 there is none. */
static int newest_verification(struct service *service, struct verification *out, struct pc_why *why)
{
	struct verification *list = NULL;
	size_t count = 0;
	bool found = false;
	int r = store_verifications(service->store, SIZE_MAX, &list, &count, why);

	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		if (!found && strcmp(list[i].topology, service->topology->id) == 0) {
			*out = list[i];
			found = true;
		} else {
			store_verification_free(&list[i]);
		}
	}
	free(list);
	return found ? 0 : 1;
}

static bool is_same(const char *soft, const struct service *service)
{
	return soft != NULL && strcmp(soft, service->topology->soft) == 0;
}

struct due {
	enum task task;
	enum wish wish;
	const char *reason;
};

/* What verifications since the calibration say. One that failed outweighs all that passed before it. Software that
 * changed is no reason to measure again once a verification has passed with it. */
static int find_doubt(struct service *service, const struct calibration *known, struct due *due, struct pc_why *why)
{
	struct verification newest = {0};
	int r = newest_verification(service, &newest, why);
	bool since = r == 0 && newest.newest >= known->id;

	if (since && !newest.passed)
		due->reason = "the policy failed its last verification";
	else if (!is_same(known->soft, service) && !(since && is_same(newest.soft, service)))
		*due = (struct due){TASK_VERIFY, WISH_ITSELF,
		                    "the system's software or kernels changed since the known calibration"};
	else
		due->task = TASK_NONE;
	store_verification_free(&newest);
	return r < 0 ? r : 0;
}

/* What --force asked for waits for nothing, until it has failed once. */
static enum wish forced(const struct service *service)
{
	return service->force && service->agenda.past[TASK_CALIBRATE].failures == 0 ? WISH_ASKED : WISH_ITSELF;
}

/* A remembered calibration needs no repetition if nothing it rests on has changed. */
static int find_due(struct service *service, const struct calibration *known, const struct dataset *data,
                    struct due *due, struct pc_why *why)
{
	int r = 0;

	*due = (struct due){.task = TASK_CALIBRATE};
	if (service->force)
		*due = (struct due){TASK_CALIBRATE, forced(service), "asked to measure again"};
	else if (effort_find(known->effort) == EFFORTS || effort_find(known->effort) < service->config.effort)
		due->reason = "the known calibration was made with less effort";
	else if (strcmp(known->quality, "noisy") == 0)
		due->reason = "the known calibration is noisy";
	else if (!settle_has_rounds(data))
		due->reason = "the samples of the known calibration are no longer kept";
	else if (settle_unmeasured(data, known, &service->config) != 0)
		due->reason = "kernels that may be chosen here were not measured then";
	else
		r = find_doubt(service, known, due, why);
	return r;
}

/* Where the configuration forbids what is due, that is said, and nothing is due. */
static int allow(struct service *service, struct due *due, struct pc_why *why)
{
	enum config_calibrate calibrate = service->config.calibrate;
	bool told = service->options->once || due->wish == WISH_ASKED;

	if (due->task == TASK_NONE || calibrate == CALIBRATE_AUTO || (told && calibrate == CALIBRATE_MANUAL))
		return 0;
	if (service->options->once)
		return pc_why(why, -EPERM, "%s, and calibrd.yaml forbids measuring (calibrate: import)", due->reason);
	snprintf(service->idle, sizeof(service->idle), "%s, and calibrd.yaml asks not to measure", due->reason);
	log_once(&service->idleness, LOG_LEVEL_NOTICE, "%s", service->idle);
	due->task = TASK_NONE;
	return 0;
}

static int schedule(struct service *service, struct pc_why *why)
{
	struct calibration known = {0};
	struct verification verification = {0};
	int64_t last = 0;
	unsigned days = service->config.calibrate == CALIBRATE_AUTO ? service->config.verify_interval_days : 0,
		 pooled = 1;
	int r = store_latest(service->store, service->topology->id, &known, why);

	if (r == 0) {
		last = known.finished;
		r = pool_count(service->store, &known, &pooled, why);
	}
	if (r == 0) {
		r = newest_verification(service, &verification, why);
		if (r == 0 && verification.at > last)
			last = verification.at;
	}
	store_calibration_free(&known);
	store_verification_free(&verification);
	if (r < 0)
		return r;
	/* A verification has nothing to say that the next epochs would not, until a policy rests on as many as count.
	 */
	agenda_schedule(&service->agenda, pooled < POOL_MOST ? TASK_CALIBRATE : TASK_VERIFY, last, time(NULL),
	                last > 0 ? days : 0, service_now());
	return 0;
}

static int put_on_agenda(struct service *service, struct due *due, struct pc_why *why)
{
	int r = allow(service, due, why);

	if (r == 0 && due->task == TASK_CALIBRATE)
		r = settle_check(&service->config, why);
	if (r < 0)
		return r;
	service->effort = due->task == TASK_VERIFY ? EFFORT_QUICK : service->config.effort;
	if (due->task == TASK_NONE)
		agenda_done(&service->agenda);
	else
		agenda_want(&service->agenda, due->task, due->wish, due->reason);
	return schedule(service, why);
}

/* --- looking ------------------------------------------------------------------------------------------------------ */

/* Home or where it is, the log is told what stands in, once, and that it no longer does. */
static int open_store(struct service *service, char renamed[512], struct pc_why *why)
{
	int r;

	renamed[0] = '\0';
	if (service->store == NULL) {
		r = store_place_open(&service->store, &service->place, service->config.database, renamed, why);
		if (r == 1)
			log_once(&service->makeshift, LOG_LEVEL_WARNING, "%s", why->text);
	} else {
		r = store_place_return(&service->store, &service->place, renamed, why);
		if (r < 0)
			return 0; /* not yet */
	}
	if (r == 0 && why->text[0] != '\0')
		log_notice("%s", why->text);
	if (r == 0)
		log_once_over(&service->makeshift);
	return r < 0 ? r : 0;
}

int looking_open(struct service *service, struct pc_why *why)
{
	char renamed[512];
	int r;

	if (service->store != NULL && !service->place.fallback)
		return 0;
	r = open_store(service, renamed, why);
	if (renamed[0] != '\0') /* home's or what stands in for it, with ".damaged-N" behind */
		log_warning("%.*s was damaged: it is kept as %s, and a new one begun",
		            (int)(strstr(renamed, ".damaged-") - renamed), renamed, renamed);
	return r;
}

bool looking_makes_do(const struct service *service)
{
	return service->store == NULL || service->place.fallback || strcmp(service->where, SETTLE_FALLBACK) == 0;
}

static int find_topology(struct service *service, struct pc_why *why)
{
	struct topology *found;
	int r = topology_detect(&found, &(struct topology_source){0}, why);

	if (r < 0)
		return r;
	if (service->topology == NULL || strcmp(service->topology->id, found->id) != 0) {
		log_info("topology %s: %s", found->id, found->name);
		if (found->disagreements[0] != '\0')
			log_notice("%s", found->disagreements);
		service->where[0] = '\0';
	}
	topology_free(service->topology);
	service->topology = found;
	return 0;
}

static bool is_moved(const struct service *service, const struct topology *found)
{
	return service->topology == NULL || strcmp(service->topology->id, found->id) != 0 ||
	       !is_same(found->soft, service);
}

int looking_moved(struct service *service, struct pc_why *why)
{
	struct topology *found;
	int r = topology_detect(&found, &(struct topology_source){0}, why);

	if (r < 0)
		return r;
	r = is_moved(service, found);
	if (r == 1) {
		log_notice("this host is not what it was: looking again");
		agenda_want(&service->agenda, TASK_LOOK, WISH_ASKED, "the topology changed");
	} else {
		topology_take_raw(service->topology, found); /* which may have been forgotten */
	}
	topology_free(found);
	return r;
}

static int look_at_known(struct service *service, struct pc_why *why)
{
	struct due due = {TASK_CALIBRATE, forced(service), "this topology has not been measured yet"};
	struct calibration known = {0};
	struct dataset data = {0};
	int r = store_latest(service->store, service->topology->id, &known, why), e = 0;

	if (r == 0)
		r = store_series(service->store, known.id, &data, why);
	if (r == 1)
		r = publish_known(service, NULL, &data, why);
	if (r == 0 && known.id > 0) {
		e = publish_known(service, &known, &data, why);
		if (e == -ENODATA)
			due.reason = "nothing can be decided from the known calibration";
		else
			r = e < 0 ? e : find_due(service, &known, &data, &due, why);
	}
	dataset_clear(&data);
	store_calibration_free(&known);
	return r < 0 ? r : put_on_agenda(service, &due, why);
}

/* At once, whatever else does not work. A read-only /etc, say: what is published now goes before what is there. */
static void withdraw(struct service *service)
{
	struct pc_why why;

	if (settle_withdraw(&service->config, service->store, service->topology->id, &why) < 0)
		log_once(&service->withdrawal, LOG_LEVEL_WARNING, "%s", why.text);
	else
		log_once_over(&service->withdrawal);
}

int looking_do(struct service *service, struct pc_why *why)
{
	struct pc_why closed;
	int r, e;

	service->idle[0] = '\0';
	service->again = false;
	e = looking_open(service, &closed);
	r = find_topology(service, why);
	if (r < 0)
		return r;
	withdraw(service);
	if (e < 0) {
		*why = closed;
		return e;
	}
	r = looking_refresh(service, why);
	if (r == 0)
		r = look_at_known(service, why);
	standing_policy(service);
	return r;
}
