/*
 * What the verbs that ask something of calibrd share: reaching it, what to say when that fails, waiting, telling the
 * end.
 */
#ifndef CALIBCTL_STEER_H
#define CALIBCTL_STEER_H

#include "calibctl/args.h"
#include "calibctl/client.h"
#include "calibctl/follow.h"

/* calibrd goes by its own configuration: --policy and --database are wrong here, which is said. DONE or USAGE. */
enum outcome steer_check(const struct args *args, const struct calibctl *ctl);

/* DONE, or UNREADABLE with what is to be done instead. *out is for client_close(). */
enum outcome steer_open(struct client **out, const char *instead);

/* Says why a call (r != 0, as client.h has it) came to nothing: PROBLEM where calibrd refused, else UNREADABLE. */
enum outcome steer_failed(int r, const struct pc_why *why);

/* follow(), and what is to be said where it is left before the end: DONE, or PROBLEM for a time that is up, UNREADABLE.
 * Does not come back from a signal. */
enum outcome steer_follow(struct client *client, uint64_t job, double seconds, struct followed *out);

/* Tells how a job ended, or that nothing did, and what is in force; looks again for that. The outcome of job_judge(),
 * or PROBLEM where nothing ended and calibrd's own state is failed. */
enum outcome steer_tell(struct client *client, const struct calibctl *ctl, struct followed *followed);

#endif
