/*
 * What the database remembers, as one time line. Pure: the records are given. (history_json.c is for printing.)
 */
#ifndef CALIBCTL_HISTORY_LINE_H
#define CALIBCTL_HISTORY_LINE_H

#include <jansson.h>
#include <stddef.h>

#include "calibctl/history_now.h"
#include "calibrd/store.h"

/* A verification with what its series come to. */
struct history_verification {
	struct verification verification;
	size_t series;
	double mean;           /* regret, mean over the series; NaN without any */
	struct verified worst; /* the series with the largest mean */
};

/* Exactly one of the three is set. */
struct history_event {
	int64_t at; /* seconds since 1970: of its end; of its beginning where it still runs */
	const struct calibration *calibration;
	const struct published *published;
	const struct history_verification *verification;
};

struct history {
	size_t calibration_count, published_count, verification_count;
	struct calibration *calibrations;
	struct published *published;
	struct history_verification *verifications;
	struct history_now now;
	size_t count; /* of events, newest first */
	struct history_event *events;
	const char *topology; /* the newest event's, NULL: none */
};

/* Makes events of the records, at most `most`. 0 or -ENOMEM. */
int history_arrange(struct history *history, size_t most);

/* Frees events and records, and what the records own. */
void history_release(struct history *history);

void history_sum_up(struct history_verification *out, const struct verified *series, size_t count);

const char *history_topology(const struct history_event *event);

/* "in force", "in force, edited since"; NULL: the file has nothing to do with that publication. */
const char *history_standing(const struct history *history, const struct published *published);

enum { HISTORY_WORDS = 1024 };

/* One event as a sentence. */
void history_words(const struct history *history, const struct history_event *event, char out[HISTORY_WORDS]);

json_t *history_json(const struct history *history, const struct history_event *event);

#endif
