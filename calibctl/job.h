/*
 * What calibrd's state and a job's end mean, in words and as outcomes. Pure.
 */
#ifndef CALIBCTL_JOB_H
#define CALIBCTL_JOB_H

#include <stdbool.h>

#include "calibctl/calibctl.h"
#include "calibctl/client.h"

/* True while something runs, or a host without a policy waits for one: with one, what waits may do so for a day. */
bool job_is_pending(const struct client_view *view);

/* True while progress and phase tell how far it is. */
bool job_is_measuring(const struct client_view *view);

/* "calibrating, 43 %, pass 2 of 4"; "idle". */
enum { JOB_WORDS = 160 };
void job_words(const struct client_view *view, char out[JOB_WORDS]);

/* True if two texts are the same but for their figures: "busy in 83.8 % of the time" is no news after "in 62.6 %". */
bool job_says_same(const char *a, const char *b);

/* DONE: good, emulated, passed; UNREADABLE: a verification that failed, as where it can't measure by itself; PROBLEM:
 * all else. */
enum outcome job_judge(const struct client_end *end);

/* "60", "0.5": seconds, at most those of a year. */
bool job_parse_seconds(const char *text, double *seconds);

#endif
