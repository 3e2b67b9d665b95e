/*
 * A policy's tables told briefly: those that say the same become one chapter, and what holds for more threads is told
 * by where it differs. Pure.
 */
#ifndef CALIBCTL_STORY_H
#define CALIBCTL_STORY_H

#include <stddef.h>

#include "libpolicy/document.h"

struct chapter {
	const struct pc_table *table; /* for the fewest threads; any of the priors' */
	unsigned priors;              /* 1 << enum pc_prior */
	size_t other_count;
	const struct pc_table *others[PC_TABLES_MAX]; /* for more threads, ascending; likewise */
};

struct story {
	size_t count;
	struct chapter chapters[PC_TABLES_MAX]; /* hot, cold, scrub; cached before flushed before unknown */
};

/* Priors share a chapter if they say the same for every number of threads; of more than the fewest, choices alone
 * count: gains and crossovers' ranges always differ a little. */
void story_tell(struct story *out, const struct pc_document *document);

enum { STORY_HEADING = 160, STORY_THREADS = 4096 };

/* "cold, cached or unknown prior"; ", 8 threads" behind it where the fewest aren't 1. */
void story_heading(const struct chapter *chapter, char out[STORY_HEADING]);

/* What the others say, in lines that end in '\n': "the same with 2 threads", or "with 8 threads otherwise: libc for 2
 * KiB
 * - 4 KiB, movnti from 16 MiB on". "" if there are none. */
void story_threads(const struct chapter *chapter, char out[STORY_THREADS]);

#endif
