/*
 * Where the deviation of a set of timings comes from: an analysis of variance. Pure.
 *
 * Tainted samples first: what the variance loses when they are left out. The others' variance is taken apart, one part
 * after the other, each from what the ones before have left: first against later samples of a mapping; the clock, as
 * far as the reference loop beside each sample tells (a core that runs x percent slower clears at most x percent
 * slower, so the slope is held to 0..1: else a steady clock would take the blame for what it happens to go along with);
 * the mapping, that is where the OS has placed its pages. Each part is less what chance alone would give it (epsilon
 * squared: Kelley 1935; for a mapping it is the between-groups component of a one-way random-effects model).
 */
#ifndef CALIBCTL_BENCH_VARIANCE_H
#define CALIBCTL_BENCH_VARIANCE_H

#include <stdbool.h>
#include <stddef.h>

struct variance_sample {
	double value;     /* above 0 */
	double reference; /* time of a loop that always does the same, right beside it; 0: not known */
	unsigned mapping; /* counts from 0 */
	unsigned turn;    /* within the mapping, from 0 */
	bool tainted;
};

enum variance_part {
	VARIANCE_TAINT,
	VARIANCE_WARM_UP,
	VARIANCE_CLOCK,
	VARIANCE_PLACEMENT,
	VARIANCE_REST,
	VARIANCE_PARTS
};

struct variance {
	size_t count, tainted;
	unsigned mappings;
	double mean, median, stdev;     /* of all samples */
	double clean_mean, clean_stdev; /* of those that are not tainted; NaN: too few */
	double clock_correlation;       /* of the clean values with the reference loop, -1..1; NaN: not known */
	/* VARIANCE_TAINT: of the variance of all. The others: of the variance without tainted samples; they add up
	 * to 1. NaN: cannot be told, as placement of a single mapping, or all of too few samples, or where nothing
	 * deviates. */
	double share[VARIANCE_PARTS];
};

/* Where fewer than half of the samples are clean, all are taken apart, and VARIANCE_TAINT is NaN. 0 or -ENOMEM. */
int variance_find(struct variance *out, const struct variance_sample *samples, size_t count);

/* "warm_up", for programs. */
const char *variance_part_name(enum variance_part part);
/* A clause that goes on from "62 % of the variance ": "lies between mappings: page placement". */
const char *variance_part_words(enum variance_part part);

#endif
