/*
 * Shared by verdict*.c alone.
 */
#ifndef CALIBRD_VERDICT_PARTS_H
#define CALIBRD_VERDICT_PARTS_H

#include "calibrd/verdict.h"

/* Adds to the reasons, as far as there is room. */
void verdict_say(struct verdict *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* --- verdict_lost.c: sizes about which nothing is known ----------------------------------------------------------- */

/* Names them; true if they are more than a twentieth of the octaves asked about. */
bool verdict_lost(const struct verdict_facts *facts, struct verdict *out);

/* --- verdict_noise.c: what else went on --------------------------------------------------------------------------- */

/* What the dropped samples were dropped for, in words. */
void verdict_taints(const struct verdict_facts *facts, struct verdict *out);

/* Names each disturbance beyond its limit; true if there was one. */
bool verdict_noise(const struct verdict_facts *facts, struct verdict *out);

/* Who keeps the clock, as far as it is known. No reason for anything. */
void verdict_clock(const struct verdict_facts *facts, struct verdict *out);

#endif
