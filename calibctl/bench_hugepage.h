/*
 * The arm64 thread's experiment (Baronia, Deacon, linux-mm, 2020) on any host: a 2 MiB huge page, and 2 MiB of base
 * pages beside it, cleared in chunks, forward and backward, again and again over several mappings; and where the
 * deviation comes from.
 */
#ifndef CALIBCTL_BENCH_HUGEPAGE_H
#define CALIBCTL_BENCH_HUGEPAGE_H

#include <stdio.h>

#include "calibctl/bench.h"
#include "calibctl/bench_variance.h"
#include "libpolicy/document.h"

enum { HUGEPAGE_BYTES = 2 << 20, HUGEPAGE_WAYS = 2 * 5 * PC_KERNEL_MAX };

/* One way of clearing the page. */
struct hugepage_way {
	unsigned kernel;
	enum pc_prior prior;
	uint64_t chunk; /* HUGEPAGE_BYTES: the whole page at once */
	bool backward, base_pages;
	size_t count, room;
	struct variance_sample *samples; /* values in ns */
	struct variance variance;        /* of them */
};

struct hugepage_table {
	size_t count;
	struct hugepage_way
		*ways;    /* huge pages before base pages, kernels in the order of their table, small chunks first */
	uint32_t kernels; /* bits: those asked for, or the best of each family in a short race */
	bool raced;
	unsigned runs;      /* that were begun, each with a mapping of its own */
	unsigned runs_huge; /* of these, those whose huge pages were all there */
	bool knows_huge;    /* the OS tells so */
};

/* What several ways have in common, of those whose deviation could be taken apart: the mean share of each part over
 * those of which it could be told (NaN: none), and the medians of their relative deviations. */
struct hugepage_summary {
	size_t count;
	double relative_stdev, clean_relative_stdev; /* the latter without tainted samples */
	double share[VARIANCE_PARTS];
};

/* Pure. */
void hugepage_summarise(struct hugepage_summary *out, const struct hugepage_table *table, bool base_pages);

/* "62 % of the variance lies between mappings: page placement; ...", parts of 5 % and more, the largest first, behind
 * what tainted samples make. Pure. */
enum { HUGEPAGE_WORDS = 512 };
void hugepage_words(const struct hugepage_summary *summary, char out[HUGEPAGE_WORDS]);

/* How the medians of ways compare that differ in chunk (against the whole page) or direction (against forward) alone.
 * false: none to compare. Pure. */
struct hugepage_ratio {
	double least, most; /* over all kernels */
};
bool hugepage_chunk_ratio(struct hugepage_ratio *out, const struct hugepage_table *table, uint64_t chunk,
                          bool base_pages);
bool hugepage_backward_ratio(struct hugepage_ratio *out, const struct hugepage_table *table, bool base_pages);

/* 0 or -errno; hugepage_clear() after both. */
int hugepage_measure(struct hugepage_table *out, struct bench_stand *stand);
void hugepage_clear(struct hugepage_table *table);

int hugepage_print(const struct hugepage_table *table, const struct bench_stand *stand);
void hugepage_csv(const struct hugepage_table *table, const struct bench_stand *stand, FILE *out);
json_t *hugepage_json(const struct hugepage_table *table, const struct bench_stand *stand);

#endif
