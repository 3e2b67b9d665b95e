/* Datasets and grids made by hand, for tests of the pure modules. */
#ifndef TESTS_BY_HAND_H
#define TESTS_BY_HAND_H

#include <math.h>
#include <stdlib.h>

#include "calibrd/grid.h"
#include "calibrd/random.h"
#include "calibrd/samples.h"
#include "tests/unit/harness.h"

#define NEAR(actual, expected) CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-6)

/* Some tests compare rivals by row: a build with fewer kernels cannot run them. */
#define NEEDS_KERNELS(n)                                                                                               \
	do {                                                                                                           \
		if (pc_kernel_count < (n)) {                                                                           \
			unit_skip("this build has %u kernels", pc_kernel_count);                                       \
			return;                                                                                        \
		}                                                                                                      \
	} while (0)

struct where {
	enum phase phase;
	enum pc_prior prior;
	uint64_t bytes;
};

static inline void put(struct dataset *data, struct where where, unsigned kernel, unsigned epoch, unsigned round,
                       double ns)
{
	struct series_key key = {
		.bytes = where.bytes,
		.threads = 1,
		.kernel = (uint8_t)kernel,
		.prior = (uint8_t)where.prior,
		.phase = (uint8_t)where.phase,
	};
	struct round_value value = {(float)ns, (uint16_t)round, (uint8_t)epoch};

	CU_ASSERT_EQUAL_FATAL(dataset_add(data, &key, &value, false), 0);
}

/* Rounds that all take the same, times what is common to a round: pairs hide that. */
static inline void put_rounds(struct dataset *data, struct where where, unsigned kernel, unsigned epoch,
                              unsigned rounds, double ns)
{
	for (unsigned round = 0; round < rounds; round++)
		put(data, where, kernel, epoch, round, ns * (1 + 0.1 * (round % 4)));
}

/* `sizes` octaves from 1 KiB up, every cell unmeasured; grid_free() as usual. */
static inline void grid_by_hand(struct grid *grid, size_t sizes, unsigned epochs)
{
	*grid = (struct grid){.sizes = sizes, .threads = 1, .prior = PC_FLUSHED, .epochs = epochs};
	grid->cells = calloc(sizes * pc_kernel_count, sizeof(*grid->cells));
	CU_ASSERT_PTR_NOT_NULL_FATAL(grid->cells);
	for (size_t i = 0; i < sizes; i++) {
		grid->bytes[i] = (uint64_t)1024 << i;
		grid->width[i] = 1;
		for (unsigned k = 0; k < pc_kernel_count; k++)
			for (unsigned e = 0; e < COST_EPOCHS; e++)
				grid_cell(grid, i, k)->epoch[e] = NAN;
	}
}

/* `count` pairs, all of them l, alike in every epoch. */
static inline void set_cell(struct grid *grid, size_t size, unsigned kernel, double l, size_t count)
{
	struct cell *cell = grid_cell(grid, size, kernel);

	free(cell->pairs);
	cell->pairs = calloc(count + 1, sizeof(*cell->pairs));
	CU_ASSERT_PTR_NOT_NULL_FATAL(cell->pairs);
	cell->measured = true;
	cell->forbidden = cell->unproven = false;
	cell->l = l;
	cell->ratio = exp(-l);
	cell->count = count;
	for (size_t i = 0; i < count; i++)
		cell->pairs[i] = l;
	for (unsigned e = 0; e < grid->epochs; e++)
		cell->epoch[e] = l;
	cell->interval = stats_median_interval(cell->pairs, count, 0.95);
}

/* Uniform in [low, high). */
static inline double uniform(struct random *random, double low, double high)
{
	return low + random_unit(random) * (high - low);
}

#endif
