/* What is done next, and what becomes of what went wrong; see service_parts.h. */
#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "calibrd/clock.h"
#include "calibrd/conditions.h"
#include "calibrd/log.h"
#include "calibrd/service_parts.h"

/* How late a sleep may end: whoever waits for a quiet host need not be punctual, nor who verifies once a week. */
enum { LATE_SHARE = 20, LATE_MOST_S = 60 };

/* How often it is tried whether what stands in for something can go. */
enum { MAKESHIFT_S = 600 };

/* Tasks that end at once and lead to each other, as on a host whose CPUs come and go all the time. */
enum { STEPS_AT_ONCE = 6 };

double service_now(void)
{
	return clock_seconds(CLOCK_BOOTTIME);
}

void service_leave(struct service *service, int status)
{
	service->status = status;
	service->leaving = true;
	sd_event_exit(service->event, 0);
}

/* --- trouble ------------------------------------------------------------------------------------------------------ */

void service_mind_store(struct service *service, int r)
{
	if (store_place_reopens(r))
		service->store = store_close(service->store);
}

static void say_trouble(struct service *service, enum task task, const struct pc_why *why)
{
	struct log_once *once = &service->trouble[task];

	if (task == TASK_CALIBRATE)
		log_event_once(once, LOG_CALIBRATION_FAILED, LOG_LEVEL_ERROR, "%s", why->text);
	else
		log_once(once, LOG_LEVEL_ERROR, "%s", why->text);
}

static void set_back(struct service *service, enum task task, bool noisy, const char *text)
{
	agenda_failed(&service->agenda, task, noisy, service_now());
	service->setback.noisy = noisy;
	snprintf(service->setback.text, sizeof(service->setback.text), "%s", text);
}

void service_trouble(struct service *service, int r, const struct pc_why *why)
{
	enum task task = service->agenda.task != TASK_NONE ? service->agenda.task : TASK_LOOK;

	say_trouble(service, task, why);
	service_mind_store(service, r);
	if (service->options->once) {
		service_leave(service, 1);
		return;
	}
	set_back(service, task, false, why->text);
	agenda_want(&service->agenda, TASK_LOOK, WISH_ITSELF, "something failed");
}

void service_noisy(struct service *service, const char *reasons)
{
	set_back(service, TASK_CALIBRATE, true, reasons);
}

void service_look_soon(struct service *service, const char *reason)
{
	if (service->job.task != TASK_NONE) {
		service->again = true;
		return;
	}
	service->again = false;
	agenda_want(&service->agenda, TASK_LOOK, WISH_ASKED, reason);
}

/* --- sleeping ----------------------------------------------------------------------------------------------------- */

static int on_wake(sd_event_source *source, uint64_t now, void *context)
{
	(void)source;
	(void)now;
	service_step(context);
	return 0;
}

static void wake_at(struct service *service, double at)
{
	double wait = fmax(0, at - service_now());
	uint64_t late = (uint64_t)(1e6 * fmin(wait / LATE_SHARE, LATE_MOST_S));
	int r = 0;

	service->wake = sd_event_source_disable_unref(service->wake);
	if (isfinite(at))
		r = sd_event_add_time_relative(service->event, &service->wake, CLOCK_BOOTTIME, (uint64_t)(wait * 1e6),
		                               late, on_wake, service);
	if (r < 0)
		log_error("cannot set a timer: %s: nothing is done until calibrd is restarted", strerror(-r));
}

static void say_idle(struct service *service)
{
	if (service->idle[0] != '\0')
		standing_say(service, "idle", "%s", service->idle);
	else if (service->where[0] != '\0')
		standing_say(service, "idle", "the policy for topology %s is %s", service->topology->id,
		             service->where);
	else
		standing_say(service, "idle", "no policy is published for topology %s", service->topology->id);
}

/* The log has it once, the status each time: its figures change. */
static void say_waiting(struct service *service, const struct pc_why *held)
{
	if (strcmp(service->standing.state, "waiting") != 0)
		log_info("waiting to %s: %s", service->agenda.task == TASK_VERIFY ? "verify" : "measure", held->text);
	standing_say(service, "waiting", "%s (%s)", held->text, service->agenda.reason);
}

/* What was measured leaves most of a megabyte behind, and a dump of every CPU: none of it is needed to sleep. */
static void hold_little(struct service *service)
{
	if (service->topology != NULL)
		topology_forget_raw(service->topology);
	store_rest(service->store);
	malloc_trim(0);
}

static void say_setback(struct service *service, double at)
{
	const struct setback *setback = &service->setback;
	double minutes = fmax(1, round((at - service_now()) / 60));

	if (setback->noisy)
		standing_say(service, "waiting", "measured again in %.0f min: the measurements were noisy (%s)",
		             minutes, setback->text);
	else
		standing_say(service, "failed", "%s; next try in %.0f min", setback->text, minutes);
}

static void rest(struct service *service, double at, enum hold hold, const struct pc_why *held)
{
	if (service->options->once) {
		service_leave(service, 0);
		return;
	}
	wake_at(service, at);
	hold_little(service);
	if (hold == HOLD_NOTHING)
		say_idle(service);
	else if (hold == HOLD_RETRY)
		say_setback(service, at);
	else
		say_waiting(service, held);
}

/* --- beginning ---------------------------------------------------------------------------------------------------- */

/* Whoever asks says how thorough; what comes by itself is calibrated as configured, and verified in passing. */
static enum effort effort_of(const struct service *service)
{
	if (service->agenda.wish == WISH_ASKED)
		return service->effort;
	return service->agenda.task == TASK_CALIBRATE ? service->config.effort : EFFORT_QUICK;
}

/* A guest may have been moved to another processor since anybody looked. */
static int begin_measuring(struct service *service, struct pc_why *why)
{
	const struct agenda *agenda = &service->agenda;
	int r = looking_open(service, why);

	if (r == 0)
		r = looking_moved(service, why);
	if (r != 0)
		return r < 0 ? r : 0;
	log_info("%s", agenda->reason);
	return agenda->task == TASK_CALIBRATE ? measuring_start(service, effort_of(service), why)
	                                      : verifying_start(service, effort_of(service), why);
}

static int look(struct service *service, struct pc_why *why)
{
	int r = looking_do(service, why);

	if (r < 0)
		return r;
	log_once_over(&service->trouble[TASK_LOOK]);
	agenda_went_well(&service->agenda, TASK_LOOK);
	return 0;
}

static void begin(struct service *service)
{
	struct pc_why why;
	int r = service->agenda.task == TASK_LOOK ? look(service, &why) : begin_measuring(service, &why);

	if (r < 0)
		service_trouble(service, r, &why);
}

static enum step next(struct service *service, double *at, enum hold *hold, struct pc_why *held)
{
	struct agenda_facts facts = {
		.now = service_now(), .calm = true, .fed = true, .wait_seconds = service->config.quiet_wait_seconds};
	struct conditions conditions;
	struct pc_why fed;

	if (looking_makes_do(service) && isinf(service->agenda.look_at))
		service->agenda.look_at = facts.now + MAKESHIFT_S;
	if (agenda_minds_conditions(&service->agenda, facts.now)) {
		conditions_read(&conditions, NULL);
		facts.calm = conditions_calm(&conditions, service->config.quiet_percent, held);
		facts.fed = conditions_fed(&conditions, &fed);
		if (!facts.fed)
			*held = fed;
	}
	return agenda_next(&service->agenda, &facts, at, hold);
}

void service_step(struct service *service)
{
	for (unsigned i = 0; !service->leaving && service->job.task == TASK_NONE; i++) {
		struct pc_why held = {""};
		enum hold hold;
		double at;

		if (i == STEPS_AT_ONCE) {
			wake_at(service, service_now() + 1);
			return;
		}
		if (service->options->once)
			service->agenda.wish = WISH_ASKED;
		if (next(service, &at, &hold, &held) == STEP_SLEEP) {
			rest(service, at, hold, &held);
			return;
		}
		begin(service);
	}
}
