/*
 * Waiting for calibrd: until a job has ended, or nothing runs any more. How far it is is told on standard error: a line
 * that rewrites itself on a terminal, a line every tenth elsewhere.
 */
#ifndef CALIBCTL_FOLLOW_H
#define CALIBCTL_FOLLOW_H

#include "calibctl/client.h"

enum { FOLLOW_TIME_UP = 1 };

struct followed {
	struct client_view view; /* as it was seen last */
	const struct client_end
		*end; /* of the job, or of the last one that ended meanwhile; NULL: none. The client's */
};

/* job 0: until nothing runs or waits. seconds: INFINITY: as long as it takes. 0; FOLLOW_TIME_UP; -EINTR: a signal
 * (signals_catch()) ended the waiting, not the job; -ENOTCONN calibrd is not there any more, -errno; why for all of
 * these. *out holds what is known in each case. */
int follow(struct client *client, uint64_t job, double seconds, struct followed *out, struct pc_why *why);

#endif
