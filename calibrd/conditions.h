/*
 * Is this a good time to measure? How busy the host is and what feeds it, read when asked; judged by pure rules.
 */
#ifndef CALIBRD_CONDITIONS_H
#define CALIBRD_CONDITIONS_H

#include <stdbool.h>

#include "libpolicy/why.h"

/* NaN and -1: unknown, which never holds anything up. */
struct conditions {
	double cpu;    /* per cent of the last 10 s in which some task waited for a CPU (PSI) */
	double memory; /* likewise for memory */
	double io;     /* likewise for a disk */
	double load;   /* where PSI is not to be had: average of the last minute, per CPU online */
	int mains;     /* 1: on mains power, 0: on battery, -1: has no battery, or nothing tells */
};

/* root: prefix of /proc and /sys, NULL: none. What is missing or hidden is unknown. */
void conditions_read(struct conditions *out, const char *root);

/* Pure. most_percent: of `cpu` (memory and io: the same). True if measuring may begin; else why says what is against
 * it, with figures. */
bool conditions_calm(const struct conditions *now, double most_percent, struct pc_why *why);

/* Pure. On battery nothing is measured that nobody asked for, however long that takes. */
bool conditions_fed(const struct conditions *now, struct pc_why *why);

#endif
