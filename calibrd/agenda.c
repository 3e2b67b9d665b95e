/* What is due; see agenda.h. */
#include "calibrd/agenda.h"

#include <math.h>
#include <stdio.h>

enum {
	RETRY_S = 60,
	RETRY_MOST_S = 6 * 3600,
	NOISY_S = 600,
	NOISY_MOST_S = 24 * 3600,
	NEXT_LEAST_S = 3600,
	/* PSI's shortest average is of 10 s: looking more often would see the same. */
	BUSY_LOOK_S = 10,
	/* Power that comes back tells itself (watch.h), except where uevents can't be had. */
	BATTERY_LOOK_S = 300,
	DOUBLINGS = 16
};

void agenda_start(struct agenda *agenda)
{
	*agenda = (struct agenda){.held_since = NAN, .next_at = INFINITY, .look_at = INFINITY};
}

void agenda_want(struct agenda *agenda, enum task task, enum wish wish, const char *reason)
{
	if (agenda->task != task || wish == WISH_ASKED) {
		agenda->failures = 0;
		agenda->not_before = 0;
		agenda->held_since = NAN;
	}
	agenda->task = task;
	agenda->wish = wish;
	snprintf(agenda->reason, sizeof(agenda->reason), "%s", reason);
}

void agenda_done(struct agenda *agenda)
{
	struct agenda kept = *agenda;

	agenda_start(agenda);
	agenda->next = kept.next;
	agenda->next_at = kept.next_at;
	agenda->look_at = kept.look_at;
}

double agenda_retry(struct agenda *agenda, bool noisy, double now)
{
	unsigned doublings = agenda->failures < DOUBLINGS ? agenda->failures : DOUBLINGS;
	double wait = ldexp(noisy ? NOISY_S : RETRY_S, (int)doublings), most = noisy ? NOISY_MOST_S : RETRY_MOST_S;

	wait = fmin(wait, most);
	agenda->failures++;
	agenda->wish = WISH_ITSELF;
	agenda->not_before = now + wait;
	agenda->held_since = NAN;
	return wait;
}

void agenda_schedule(struct agenda *agenda, enum task next, int64_t last, int64_t wall, unsigned interval_days,
                     double now)
{
	double age = last < wall ? (double)(wall - last) : 0;

	agenda->next = next;
	agenda->next_at =
		interval_days > 0 ? now + fmax(86400.0 * interval_days - age, NEXT_LEAST_S) : (double)INFINITY;
}

/* What has come due is not due again before its outcome is known. */
static void take(struct agenda *agenda, double now)
{
	if (agenda->task != TASK_NONE)
		return;
	if (now >= agenda->look_at) {
		agenda->look_at = INFINITY;
		agenda_want(agenda, TASK_LOOK, WISH_ITSELF, "something was not in its place");
	} else if (now >= agenda->next_at) {
		agenda->next_at = INFINITY;
		agenda_want(agenda, agenda->next, WISH_ITSELF,
		            agenda->next == TASK_VERIFY ? "the policy has not been verified for long"
		                                        : "few calibrations of this host are known yet: epochs add up");
	}
}

static bool is_measuring(enum task task)
{
	return task == TASK_CALIBRATE || task == TASK_VERIFY;
}

bool agenda_minds_conditions(const struct agenda *agenda, double now)
{
	bool comes = agenda->task == TASK_NONE && now >= agenda->next_at;

	return comes || (is_measuring(agenda->task) && agenda->wish == WISH_ITSELF && now >= agenda->not_before);
}

enum step agenda_next(struct agenda *agenda, const struct agenda_facts *facts, double *at, enum hold *hold)
{
	double now = facts->now;

	take(agenda, now);
	*hold = HOLD_NOTHING;
	*at = fmin(agenda->next_at, agenda->look_at);
	if (agenda->task == TASK_NONE)
		return STEP_SLEEP;
	if (agenda->wish == WISH_ASKED)
		return STEP_BEGIN;
	if (now < agenda->not_before) {
		*hold = HOLD_RETRY;
		*at = agenda->not_before;
		return STEP_SLEEP;
	}
	if (!is_measuring(agenda->task))
		return STEP_BEGIN;
	if (!facts->fed) {
		*hold = HOLD_BATTERY;
		*at = now + BATTERY_LOOK_S;
		return STEP_SLEEP;
	}
	if (isnan(agenda->held_since))
		agenda->held_since = now;
	if (facts->calm || now >= agenda->held_since + facts->wait_seconds)
		return STEP_BEGIN;
	*hold = HOLD_BUSY;
	*at = fmin(now + BUSY_LOOK_S, agenda->held_since + facts->wait_seconds);
	return STEP_SLEEP;
}
