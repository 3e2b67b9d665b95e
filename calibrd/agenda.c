/* What is due; see agenda.h. */
#include "calibrd/agenda.h"

#include <math.h>
#include <stdio.h>

enum {
	RETRY_S = 60,
	RETRY_MOST_S = 6 * 3600,
	NOISY_S = 600,
	NOISY_MOST_S = 24 * 3600,
	FIRST_HOUR_S = 3600,
	/* PSI's shortest average is of 10 s: looking more often would see the same. */
	BUSY_LOOK_S = 10,
	/* Power that comes back tells itself (watch.h), except where uevents can't be had. */
	BATTERY_LOOK_S = 300,
	DOUBLINGS = 16
};

void agenda_start(struct agenda *agenda, double now)
{
	*agenda = (struct agenda){.started = now, .held_since = NAN, .next_at = INFINITY, .look_at = INFINITY};
}

void agenda_want(struct agenda *agenda, enum task task, enum wish wish, const char *reason)
{
	agenda->task = task;
	agenda->wish = wish;
	snprintf(agenda->reason, sizeof(agenda->reason), "%s", reason);
}

void agenda_done(struct agenda *agenda)
{
	agenda_want(agenda, TASK_NONE, WISH_ITSELF, "");
	agenda->held_since = NAN;
}

double agenda_failed(struct agenda *agenda, enum task task, bool noisy, double now)
{
	struct agenda_past *past = &agenda->past[task];
	unsigned doublings = past->failures < DOUBLINGS ? past->failures : DOUBLINGS;
	double wait = ldexp(noisy ? NOISY_S : RETRY_S, (int)doublings), most = noisy ? NOISY_MOST_S : RETRY_MOST_S;

	wait = fmin(wait, most);
	past->failures++;
	past->not_before = now + wait;
	return wait;
}

void agenda_went_well(struct agenda *agenda, enum task task)
{
	agenda->past[task] = (struct agenda_past){0};
}

void agenda_schedule(struct agenda *agenda, enum task next, int64_t last, int64_t wall, unsigned interval_days,
                     double now)
{
	double age = last < wall ? (double)(wall - last) : 0, at = INFINITY;
	bool same = agenda->next == next && agenda->last == last;

	if (interval_days > 0)
		at = fmax(now + 86400.0 * interval_days - age, agenda->started + FIRST_HOUR_S);
	if (interval_days > 0 && same)
		at = fmin(at, agenda->next_at);
	agenda->next = next;
	agenda->last = last;
	agenda->next_at = at;
}

/* What has come due is not due again before its outcome is known. A look loses nothing: it finds again what waits. */
static void take(struct agenda *agenda, double now)
{
	if (now >= agenda->look_at && agenda->wish == WISH_ITSELF) {
		agenda->look_at = INFINITY;
		agenda_want(agenda, TASK_LOOK, WISH_ITSELF, "something was not in its place");
	} else if (agenda->task == TASK_NONE && now >= agenda->next_at) {
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

	return comes || (is_measuring(agenda->task) && agenda->wish == WISH_ITSELF &&
	                 now >= agenda->past[agenda->task].not_before);
}

/* HOLD_NOTHING: now. */
static enum hold held(struct agenda *agenda, const struct agenda_facts *facts, double *at)
{
	double now = facts->now, not_before = agenda->past[agenda->task].not_before;

	if (now < not_before) {
		*at = not_before;
		return HOLD_RETRY;
	}
	if (!is_measuring(agenda->task))
		return HOLD_NOTHING;
	if (!facts->fed) {
		*at = now + BATTERY_LOOK_S;
		return HOLD_BATTERY;
	}
	if (isnan(agenda->held_since))
		agenda->held_since = now;
	*at = fmin(now + BUSY_LOOK_S, agenda->held_since + facts->wait_seconds);
	return facts->calm || now >= agenda->held_since + facts->wait_seconds ? HOLD_NOTHING : HOLD_BUSY;
}

enum step agenda_next(struct agenda *agenda, const struct agenda_facts *facts, double *at, enum hold *hold)
{
	take(agenda, facts->now);
	*hold = HOLD_NOTHING;
	*at = agenda->task == TASK_NONE ? agenda->next_at : INFINITY;
	if (agenda->task != TASK_NONE && agenda->wish == WISH_ITSELF)
		*hold = held(agenda, facts, at);
	if (agenda->task == TASK_NONE || *hold != HOLD_NOTHING) {
		*at = fmin(*at, agenda->look_at);
		return STEP_SLEEP;
	}
	if (is_measuring(agenda->task))
		agenda->held_since = NAN;
	return STEP_BEGIN;
}
