/*
 * What two tables' choices cost, on one calibration's measurements. Pure: from a dataset.
 */
#ifndef CALIBCTL_DIFF_COST_H
#define CALIBCTL_DIFF_COST_H

#include <stdbool.h>

#include "calibctl/diff_rules.h"
#include "calibrd/samples.h"

enum diff_verdict {
	DIFF_UNKNOWN, /* nothing to compare, or no two epochs */
	DIFF_NOISE,   /* epochs disagree about the sign */
	DIFF_LESS,    /* B costs less, as every epoch says */
	DIFF_MORE,
};

/* Octaves are of sizes, within those that were measured. */
struct diff_cost {
	double octaves;     /* in which kernels differ and both were measured */
	double unmeasured;  /* in which they differ otherwise: a kernel that was not measured, or chunks */
	bool beyond;        /* they also differ at sizes that were not measured */
	double share;       /* what B costs more than A, as a share of A's cost, mean over `octaves`; NaN if 0 */
	double least, most; /* of the epochs; NaN where there are none */
	unsigned epochs;
	enum diff_verdict verdict;
};

/* Between measured sizes costs are taken from both, by the distance in octaves. 0 or -ENOMEM. */
int diff_cost(struct diff_cost *out, const struct dataset *data, const struct diff_table *table);

#endif
