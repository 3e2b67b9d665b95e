/*
 * Where two policies choose otherwise, table by table. Pure.
 */
#ifndef CALIBCTL_DIFF_RULES_H
#define CALIBCTL_DIFF_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libpolicy/document.h"

enum { DIFF_RANGES_MAX = 2 * PC_RULES_MAX, DIFF_TABLES_MAX = 2 * PC_TABLES_MAX, DIFF_CHANGE = 256 };

/* Sizes [from, to) for which kernel, chunk or pin differ; to UINT64_MAX: no limit. */
struct diff_range {
	uint64_t from, to;
	const struct pc_rule *a, *b;
};

struct diff_table {
	unsigned intent;
	enum pc_prior prior;
	unsigned threads;
	bool in_a, in_b;              /* it has a table for just this number of threads */
	const struct pc_table *a, *b; /* what holds: that table, or what the library takes in its place; never NULL */
	bool moved;                   /* the same choices in the same order: crossovers moved, nothing else */
	size_t range_count;           /* 0: they choose alike */
	struct diff_range ranges[DIFF_RANGES_MAX];
};

/* Kernel, chunk and pin. */
bool diff_same_choice(const struct pc_rule *a, const struct pc_rule *b);

/* The ranges in which two tables differ; out's a and b are given. */
void diff_ranges(struct diff_table *out);

/* All tables that either has, hot, cold, scrub; out[DIFF_TABLES_MAX] borrows from both. How many. */
size_t diff_tables(struct diff_table *out, const struct pc_document *a, const struct pc_document *b);

/* How many changes there are to tell. */
size_t diff_change_count(const struct diff_table *table);

/* One of them: "clzero from 2 KiB -> 1.5 KiB", or "1 MiB - 4 MiB: libc -> clzero in pieces of 2 MiB". */
void diff_change(const struct diff_table *table, size_t change, char out[DIFF_CHANGE]);

/* "8 MiB", "not known"; "from 256 KiB on, 4 loads, 57 ns", "none" */
void diff_knee_words(const struct pc_document *document, char out[DIFF_CHANGE]);
void diff_probe_words(const struct pc_document *document, char out[DIFF_CHANGE]);

/* What holds instead of a table that a policy has not: "that for 2 threads", "libc". */
void diff_instead(const struct diff_table *table, char out[DIFF_CHANGE]);

/* "cold, flushed, 2 threads" */
void diff_heading(const struct diff_table *table, char out[DIFF_CHANGE]);

#endif
