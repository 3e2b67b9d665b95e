/*
 * What the daemon does next, and when. Pure: it is told what is known and what time it is, it looks at no clock, file
 * or database. Times are seconds of a clock that also runs while the host sleeps (CLOCK_BOOTTIME); `wall` is seconds
 * since 1970 and may jump.
 */
#ifndef CALIBRD_AGENDA_H
#define CALIBRD_AGENDA_H

#include <stdbool.h>
#include <stdint.h>

enum task { TASK_NONE, TASK_CALIBRATE, TASK_VERIFY };

/* Who wants it decides what may hold it up. */
enum wish {
	WISH_ITSELF, /* of the daemon's own accord: waits for quiet and for mains power, retries */
	WISH_ASKED,  /* somebody asked for it now */
};

struct agenda {
	enum task task; /* due; TASK_NONE: nothing but the next verification */
	enum wish wish;
	char reason[160];     /* in words */
	double since;         /* when it became due */
	double not_before;    /* a retry waits for this */
	unsigned failures;    /* of this task in a row; a noisy outcome counts as one */
	double verify_at;     /* next verification of its own accord; INFINITY: none */
	bool waited_too_long; /* for quiet: said once */
};

/* What is to be done now. */
enum step {
	STEP_SLEEP, /* until `at`, INFINITY: until something happens */
	STEP_BEGIN, /* agenda->task */
};

struct agenda_now {
	double now;          /* seconds */
	bool calm, fed;      /* conditions.h; looked at only where a task of its own accord is due */
	double wait_seconds; /* quiet.wait_seconds: most that a busy host is waited for */
	bool has_policy;     /* one for this topology is published */
};

/* A task is due from now on; one that is due already for the same reason keeps its failures and its wait. */
void agenda_want(struct agenda *agenda, enum task task, enum wish wish, const char *reason, double now);

/* Nothing is due any more but verifications: done, cancelled, or not to be done here. */
void agenda_done(struct agenda *agenda);

/* It failed, or its outcome was noisy: again, after 1, 2, 4 ... minutes, at most 6 hours (noisy: from 10 minutes on, at
 * most a day). Returns the seconds until then. */
double agenda_retry(struct agenda *agenda, bool noisy, double now);

/* When to verify next: interval_days after the last look at the policy's worth (calibration or verification, `last` of
 * the wall clock), and not before an hour from now; a `last` in the future counts as now: the clock was set. 0 days:
 * never. */
void agenda_schedule(struct agenda *agenda, int64_t last, int64_t wall, unsigned interval_days, double now);

/* May turn a verification that has become due into the task. *at: when to ask again. */
enum step agenda_next(struct agenda *agenda, const struct agenda_now *facts, double *at);

#endif
