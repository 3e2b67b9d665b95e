/*
 * calibrd as those see it who call it over the system bus: one connection to one daemon, plain calls, and what it tells
 * of itself. Prints nothing. One that was restarted is another daemon. Not thread-safe.
 */
#ifndef CALIBCTL_CLIENT_H
#define CALIBCTL_CLIENT_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "libpolicy/why.h"

/* client_open()'s answers where there is nobody to talk to: no calibrd on the bus; no bus, so that nobody knows. */
enum { CLIENT_ABSENT = 1, CLIENT_NO_BUS = 2 };

struct client;

/* 0; CLIENT_ABSENT, CLIENT_NO_BUS or -errno, with why: *out is left alone. It is for client_close(). */
int client_open(struct client **out, struct pc_why *why);
struct client *client_close(struct client *client);

/*
 * All calls: 0; a positive errno with why: calibrd's own answer, in its words (EBUSY another job runs, EINVAL, ENOENT
 * nothing of that kind, EPERM its configuration forbids it, ESTALE for another host, EBADMSG no policy); or negative,
 * and nothing is known to have happened: -EACCES not for this user, -ENOTCONN it is not there any more, -ETIMEDOUT it
 * does not answer, -errno.
 */

/* Its properties at one moment; what is too long is cut. */
struct client_view {
	char state[16];
	char phase[96], reason[512];
	double progress; /* 0..1 */
	uint64_t job;    /* 0: nothing runs or waits */
	char topology[16];
	uint64_t generation; /* 0: none */
	char policy_path[1024];
	char version[32];
};
/* Never positive: they are for everyone. */
int client_view(struct client *client, struct client_view *out, struct pc_why *why);

/* effort: a name, or "" for calibrd's own choice. */
int client_calibrate(struct client *client, const char *effort, uint64_t *job, struct pc_why *why);
int client_verify(struct client *client, const char *effort, uint64_t *job, struct pc_why *why);
int client_cancel(struct client *client, struct pc_why *why);
int client_rollback(struct client *client, uint64_t generation, uint64_t *published, struct pc_why *why);
/* file: a policy, open for reading; it stays the caller's. */
int client_import(struct client *client, int file, uint64_t *published, struct pc_why *why);

/* --- what it tells of its own accord ----------------------------------------------------------------------------- */

/* How a job ended. */
struct client_end {
	uint64_t job;
	bool verifying;       /* a verification; else a calibration */
	char outcome[16];     /* good, noisy, emulated; passed, beyond; failed, cancelled */
	int64_t verification; /* its number in the database; 0: none */
	char text[1024];      /* why, in words */
};

/* The end of that job (0: of any: the last one), NULL: none was told since the client was opened. */
const struct client_end *client_end(const struct client *client, uint64_t job);

/* Waits until it tells something; INFINITY: as long as it takes. mask: of the signals while it waits, NULL: no other
 * than now. 0; 1 the time is up; -EINTR a signal was caught; -ENOTCONN with why. What was told is known by then. */
int client_listen(struct client *client, double seconds, const sigset_t *mask, struct pc_why *why);

#endif
