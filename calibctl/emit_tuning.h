/*
 * glibc's tunables for this host: what the measurements say, the loader allows, and the meter shows.
 */
#ifndef CALIBCTL_EMIT_TUNING_H
#define CALIBCTL_EMIT_TUNING_H

#include "calibctl/emit.h"
#include "calibctl/emit_effect.h"
#include "calibctl/emit_thresholds.h"

enum { TUNING_VALUE = 160, TUNING_WORDS = 256 };

struct tuning {
	char value[TUNING_VALUE]; /* of GLIBC_TUNABLES; "": nothing to set */
	char why[TUNING_WORDS];   /* what it changes, or why there is nothing */
	char source[TUNING_WORDS];
	struct thresholds_choice choice;
	struct effect effect; /* count 0: not measured */
};

/* DONE: value may be empty. PROBLEM: it is, and why says what is wrong. UNREADABLE: said. */
enum outcome tuning_find(struct emit *emit, struct tuning *out);

/* What was measured with the value and without it, a line a size; nothing where it was not. */
void tuning_note_effect(struct emit *emit, const struct effect *effect);

#endif
