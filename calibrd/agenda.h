/*
 * What the daemon does next, and when. Pure: it is told what is known and what time it is, it looks at no clock, file
 * or database. `now` and all that is compared with it are seconds of a clock that also runs while the host sleeps
 * (CLOCK_BOOTTIME); `wall` is seconds since 1970, and may jump.
 */
#ifndef CALIBRD_AGENDA_H
#define CALIBRD_AGENDA_H

#include <stdbool.h>
#include <stdint.h>

enum task {
	TASK_NONE,
	TASK_LOOK, /* at the database, the topology and what is known of it: what else is due follows from that */
	TASK_CALIBRATE,
	TASK_VERIFY,
	TASKS
};

/* Who wants it decides what may hold it up. */
enum wish {
	WISH_ITSELF, /* the daemon: it waits for quiet and for mains power, and tries again */
	WISH_ASKED,  /* somebody, now */
};

/* How a task went since it last went well: kept whatever else comes between. */
struct agenda_past {
	unsigned failures; /* in a row; a noisy outcome counts as one */
	double not_before; /* a retry's time */
};

struct agenda {
	enum task task; /* due */
	enum wish wish;
	char reason[192];  /* in words */
	double held_since; /* when only the host's being busy held it up, NaN: not yet */
	struct agenda_past past[TASKS];
	double started; /* when the daemon was */
	enum task next; /* TASK_VERIFY, or TASK_CALIBRATE: comes of its own accord ... */
	double next_at; /* ... then; INFINITY: nothing does */
	int64_t last;   /* what that was counted from */
	double look_at; /* next look, whatever waits: something stands in for what doesn't work; INFINITY: none */
};

enum step {
	STEP_SLEEP, /* until a time, INFINITY: until something happens */
	STEP_BEGIN, /* agenda->task */
};

/* What holds up a task of the daemon's own accord; what was asked for is never held up. */
enum hold { HOLD_NOTHING, HOLD_RETRY, HOLD_BATTERY, HOLD_BUSY };

struct agenda_facts {
	double now;
	bool calm, fed;      /* conditions.h */
	double wait_seconds; /* most that a busy host is waited for */
};

void agenda_start(struct agenda *agenda, double now);

/* Due from now on, in the place of what was. */
void agenda_want(struct agenda *agenda, enum task task, enum wish wish, const char *reason);

/* Nothing is due any more but what comes by itself. */
void agenda_done(struct agenda *agenda);

/* A task failed, or its outcome was noisy: of its own accord the daemon does it again after 1, 2, 4 ... minutes, at
 * most 6 hours (noisy: from 10 minutes on, at most a day). Returns the seconds until then. */
double agenda_failed(struct agenda *agenda, enum task task, bool noisy, double now);

/* It went well. */
void agenda_went_well(struct agenda *agenda, enum task task);

/*
 * What comes next of its own accord: interval_days after the policy's worth was last looked at (`last`, of the wall
 * clock), but not within the daemon's first hour; where `last` lies in the future the clock was set, and the interval
 * begins now. 0 days: never. An appointment stays when it is asked for again, unless there is an earlier one.
 */
void agenda_schedule(struct agenda *agenda, enum task next, int64_t last, int64_t wall, unsigned interval_days,
                     double now);

/* True if conditions matter to what is due: whoever has to read them need not otherwise. */
bool agenda_minds_conditions(const struct agenda *agenda, double now);

/* Makes what comes of its own accord the task when its time has come. *at: when to ask again at the latest; *hold: what
 * it waits for. */
enum step agenda_next(struct agenda *agenda, const struct agenda_facts *facts, double *at, enum hold *hold);

#endif
