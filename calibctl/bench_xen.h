/*
 * Xen's table (Beulich, xen-devel, 14 April 2021): what a clear takes, and how much longer a victim that fills a
 * private cache takes to read afterwards, for targets of half that cache.
 */
#ifndef CALIBCTL_BENCH_XEN_H
#define CALIBCTL_BENCH_XEN_H

#include <stdio.h>

#include "calibctl/bench.h"
#include "calibctl/bench_values.h"
#include "libpolicy/document.h"

struct xen_victim {
	char name[32]; /* "L1D", "L2", or the target's size where one is asked for */
	uint64_t victim_bytes, target_bytes;
	bool assumed; /* the host does not tell the cache's size */
};

/* One kernel on one victim from one prior state. All from undisturbed samples. */
struct xen_cell {
	struct bench_values clear_ns;
	struct bench_values pre_ns, post_ns; /* a line of the victim, without a clear and after it */
	struct bench_values displaced_ns;    /* post less the pre of the same round: any sign */
	unsigned samples, tainted;           /* rounds */
};

struct xen_table {
	size_t victim_count;
	struct xen_victim victims[BENCH_SIZES];
	uint32_t priors, kernels; /* bits */
	unsigned runs;            /* that were begun */
	struct xen_cell *cells;
};

static inline struct xen_cell *xen_cell(const struct xen_table *table, size_t victim, enum pc_prior prior,
                                        unsigned kernel)
{
	return &table->cells[(victim * PC_PRIORS + (size_t)prior) * PC_KERNEL_MAX + kernel];
}

/* 0 or -errno; xen_clear() after both. */
int xen_measure(struct xen_table *out, struct bench_stand *stand);
void xen_clear(struct xen_table *table);

int xen_print(const struct xen_table *table, const struct bench_stand *stand);
void xen_csv(const struct xen_table *table, const struct bench_stand *stand, FILE *out);
json_t *xen_json(const struct xen_table *table, const struct bench_stand *stand);

#endif
