/*
 * What was measured around one size: costs, ratios as the decision saw them, noise, and what a wrong hint costs.
 * Pure: from a dataset; the database and the printing are elsewhere.
 */
#ifndef CALIBCTL_EVIDENCE_H
#define CALIBCTL_EVIDENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calibrd/samples.h"
#include "kernels/kernels.h"
#include "libpolicy/document.h"

struct evidence_query {
	unsigned intent;
	enum pc_prior prior; /* PC_UNKNOWN for scrub */
	unsigned threads;
	uint64_t bytes;
};

/* NaN where it was not measured or does not apply. */
struct evidence_kernel {
	unsigned kernel;
	double cached_ns, flushed_ns; /* clear, for hot with the first read behind it; medians over epochs */
	double alone_ns;              /* cold, flushed, small: one call with work behind it */
	double displaced_ns;          /* scrub: how much longer the victims take to read again */
	double l;                     /* the cost against libc's that the decision goes by; see calibrd/grid.h */
	double gain;                  /* libc's cost over this kernel's, as in the policy: a cell's ratio */
	double least, most;           /* of the gain, over epochs; NaN for scrub */
	unsigned epochs;
};

struct evidence_size {
	uint64_t bytes;
	double noise; /* half the spread of a gain (scrub: of l) between epochs, as a share, median over kernels; NaN:
	               * one epoch */
	size_t count;
	struct evidence_kernel kernels[PC_KERNEL_MAX]; /* best first */
};

/* The kernel chosen for one prior, run under the other one. */
struct evidence_wrong {
	uint64_t bytes; /* where it was measured; 0: nowhere */
	double cost;    /* of the wrong kernel over the right one's; NaN: not measured */
};

struct evidence {
	size_t count; /* 0: nothing measured for this; 1: at that size, or the nearest one is the last; 2: on both sides
	               */
	struct evidence_size sizes[2];
};

/* 0 or -ENOMEM. */
int evidence_collect(struct evidence *out, const struct dataset *data, const struct evidence_query *query);

/* At the measured size nearest to query->bytes: what `wrong` costs where query->prior holds and `right` is chosen.
 * Hot and cold with a known prior only. 0 or -ENOMEM. */
int evidence_if_wrong(struct evidence_wrong *out, const struct dataset *data, const struct evidence_query *query,
                      unsigned right, unsigned wrong);

#endif
