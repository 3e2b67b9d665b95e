/*
 * The kernel patch's table (Arora, linux-mm, 2021): kernels x sizes, GB/s and their deviation over runs. A run has
 * mappings of its own; its figure is the median of several samples.
 */
#ifndef CALIBCTL_BENCH_TABLE_H
#define CALIBCTL_BENCH_TABLE_H

#include "calibctl/bench.h"
#include "calibctl/bench_values.h"
#include "libpolicy/document.h"

struct bench_cell {
	struct bench_values runs; /* GB/s (10^9 bytes a second), one a run that had an undisturbed sample */
	unsigned samples, tainted;
};

struct bench_grid {
	size_t size_count;
	uint64_t sizes[BENCH_SIZES]; /* ascending */
	uint32_t priors, kernels;    /* bits */
	unsigned runs;               /* that were begun */
	bool cut;                    /* usual sizes are missing: too little memory */
	struct bench_cell *cells;
};

static inline struct bench_cell *bench_grid_cell(const struct bench_grid *grid, enum pc_prior prior, size_t size,
                                                 unsigned kernel)
{
	return &grid->cells[((size_t)prior * BENCH_SIZES + size) * PC_KERNEL_MAX + kernel];
}

/* The fastest kernel of a row by its mean; -1: none was measured. Pure. */
int bench_grid_best(const struct bench_grid *grid, enum pc_prior prior, size_t size);

/* Runs that were asked for, shuffled inside, until all are done or the stand is stopped. 0 or -errno;
 * bench_grid_clear() after both. */
int bench_grid_measure(struct bench_grid *out, struct bench_stand *stand);
void bench_grid_clear(struct bench_grid *grid);

int bench_grid_print(const struct bench_grid *grid, const struct bench_stand *stand);
void bench_grid_csv(const struct bench_grid *grid, const struct bench_stand *stand, FILE *out);
json_t *bench_grid_json(const struct bench_grid *grid, const struct bench_stand *stand);

#endif
