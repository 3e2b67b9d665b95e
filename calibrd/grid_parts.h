/*
 * How each round compares a kernel with libc, for grid.c and for who explains it. Pure.
 */
#ifndef CALIBRD_GRID_PARTS_H
#define CALIBRD_GRID_PARTS_H

#include "calibrd/grid.h"

/* What stands against a kernel that is chosen without knowing the prior. */
struct guarded {
	double worse; /* the larger l of the two priors */
	bool broken;  /* surely, by one of them */
};

struct grid_pairs {
	struct cost_points points;
	bool guarded; /* the prior is unknown: `against` tells */
	struct guarded against;
	double ratio; /* scrub: libc's cost over the kernel's, for people; else NaN */
};

/* Of one size and kernel, for the grid's intent, prior and number of threads; weight: that of a scrub's own time. */
void grid_pairs(const struct dataset *data, const struct grid *grid, uint64_t bytes, unsigned kernel, double weight,
                struct grid_pairs *out);

/* True if a kernel surely costs over `limit` more than libc. Pairs of one epoch are alike, so that an interval over all
 * of them is too sure of itself: three of four epochs must have seen a loss as well. */
bool grid_surely_loses(const struct cost_points *pairs, double limit);

/* Displacement of a kernel, round by round: the sum over the victims. The last-level victim is not asked for small
 * extents, and then counts as not displaced. libc's series say whether it was: were it counted for one of two kernels
 * alone, the other would look cheaper by all of it. */
void grid_displacements(const struct dataset *data, struct cost_key key, unsigned kernel, struct cost_points *out);

#endif
