/*
 * Which of the recorded generations the policy's file holds.
 */
#ifndef CALIBCTL_HISTORY_NOW_H
#define CALIBCTL_HISTORY_NOW_H

#include <stdint.h>

#include "calibctl/where.h"
#include "calibrd/store.h"

enum history_now_state {
	NOW_NONE,       /* no file: withdrawn, or never published there */
	NOW_RECORDED,   /* generation, to the letter */
	NOW_EDITED,     /* generation, but not as it was published */
	NOW_UNRECORDED, /* generation, of which the database knows nothing */
	NOW_UNREADABLE, /* no policy at all: reason says why */
};

struct history_now {
	enum history_now_state state;
	uint64_t generation; /* as the file has it; 0: it has none */
	struct pc_why reason;
};

/* 0, or -errno with why: of the database or for want of memory; a file that can't be read is a state. */
int history_now(struct history_now *out, const struct where *where, struct store *store, struct pc_why *why);

/* "recorded", "edited", ... for programs. */
const char *history_now_name(enum history_now_state state);

enum { HISTORY_NOW_WORDS = 320 };

/* "generation 7, edited since" */
void history_now_words(const struct history_now *now, char out[HISTORY_NOW_WORDS]);

#endif
