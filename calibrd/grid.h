/*
 * One table's question as numbers: for every size and kernel, how its cost compares with libc's. Pure.
 */
#ifndef CALIBRD_GRID_H
#define CALIBRD_GRID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calibrd/costs.h"
#include "calibrd/samples.h"
#include "calibrd/stats.h"
#include "kernels/kernels.h"

enum { GRID_SIZES = 128 }; /* the thorough grid's 46, and 80 inside crossovers' brackets */

/* ln 1.05: what either prior may lose when the prior is unknown (design section 1). */
#define GRID_GUARD 0.04879

/* Surely slower than libc by more than that: forbidden. */
#define GRID_SLOWER 0.03

/* Smaller clears are left to libc: memset takes 4 to 10 ns there, and what another kernel gains of that (1 ns for avx2
 * at 384 bytes, Zen 3) is less than the look-up in the policy takes (1 to 5 ns, bench cost), which those that are
 * libc's up to here are spared. */
enum { GRID_LEAST_BYTES = 1024 };

/* A kernel without pairs at a size, but with some on both sides of it and at most two octaves apart, is interpolated:
 * linear in the size's logarithm. That speaks for what it costs there and proves nothing. */
struct cell {
	bool measured;     /* what stands below may be used: it comes from pairs, or is interpolated */
	bool interpolated; /* no pairs, no noise; the interval spans both neighbours', forbidden only if both are */
	bool forbidden;    /* surely slower than libc, the unknown prior's guard surely broken, or by spot_forbid() */
	bool doubtful; /* that guard is broken, not surely or as interpolated, or the size is below GRID_LEAST_BYTES: no
	                * new rule, but an old one may stay */
	bool unproven; /* by solve_proven(): part of a segment whose gain it could not prove */
	double l;      /* ln(cost / libc's cost): median over epochs of the medians of pairs; 0 for libc */
	double worse;  /* unknown prior: the larger l of the two, by which the guard goes; else l */
	double ratio;  /* libc's cost over this kernel's, for people: exp(-l), for scrub within 0.01 and 100 */
	struct interval interval;  /* 95 % of the pairs' median */
	double epoch[COST_EPOCHS]; /* l of each epoch, NaN where there is none */
	size_t count;
	double *pairs;
};

struct grid {
	unsigned intent;
	enum pc_prior prior;
	unsigned threads;
	size_t sizes;
	uint64_t bytes[GRID_SIZES]; /* ascending */
	double width[GRID_SIZES];   /* octaves that a cell speaks for */
	unsigned epochs;
	bool many;          /* they are those of DECIDE_MANY calibrations: set by decide() */
	double sigma;       /* typical spread of a cell's l between epochs, as a standard deviation */
	struct cell *cells; /* [sizes][pc_kernel_count] */
};

/* For one intent, prior (PC_UNKNOWN: both together) and number of threads; kernels: bits that may be chosen.
 * 0, 1 if nothing was measured for it, -ENOMEM. */
int grid_build(struct grid *out, const struct dataset *data, unsigned intent, enum pc_prior prior, unsigned threads,
               uint32_t kernels, double scrub_weight);
void grid_free(struct grid *grid);

static inline struct cell *grid_cell(const struct grid *grid, size_t size, unsigned kernel)
{
	return &grid->cells[size * pc_kernel_count + kernel];
}

#endif
