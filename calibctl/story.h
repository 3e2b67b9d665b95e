/*
 * A policy's tables told briefly: those that say the same become one chapter. Pure.
 */
#ifndef CALIBCTL_STORY_H
#define CALIBCTL_STORY_H

#include <stdbool.h>
#include <stddef.h>

#include "libpolicy/document.h"

struct chapter {
	const struct pc_table *table; /* any of those it stands for */
	unsigned priors;              /* 1 << enum pc_prior */
	size_t thread_count;
	unsigned threads[PC_TABLES_MAX]; /* ascending */
};

struct story {
	size_t count;
	struct chapter chapters[PC_TABLES_MAX]; /* hot, cold, scrub; cached before flushed before unknown */
	bool tells_threads;                     /* the policy has tables for more than one number of them */
};

/* Every chapter is a product: each of its priors with each of its numbers of threads. */
void story_tell(struct story *out, const struct pc_document *document);

enum { STORY_HEADING = 160 };

/* "cold, cached or unknown prior, 1 or 2 threads" */
void story_heading(const struct story *story, const struct chapter *chapter, char out[STORY_HEADING]);

#endif
