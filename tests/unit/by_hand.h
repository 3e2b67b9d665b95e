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

static inline void put_key(struct dataset *data, const struct series_key *key, unsigned epoch, unsigned round,
                           double ns)
{
	struct round_value value = {(float)ns, (uint16_t)round, (uint8_t)epoch};

	CU_ASSERT_EQUAL_FATAL(dataset_add(data, key, &value, false), 0);
}

/* What all rounds of a test's series have in common by their number: pairs hide it. */
static inline double in_round(unsigned round, double ns)
{
	return ns * (1 + 0.1 * (round % 4));
}

static inline void put_key_rounds(struct dataset *data, const struct series_key *key, unsigned epoch, unsigned rounds,
                                  double ns)
{
	for (unsigned round = 0; round < rounds; round++)
		put_key(data, key, epoch, round, in_round(round, ns));
}

/* One thread, whole, on base pages: as small extents are measured. */
static inline struct series_key plain_key(struct where where, unsigned kernel)
{
	return (struct series_key){
		.bytes = where.bytes,
		.threads = 1,
		.kernel = (uint8_t)kernel,
		.prior = (uint8_t)where.prior,
		.phase = (uint8_t)where.phase,
	};
}

static inline void put(struct dataset *data, struct where where, unsigned kernel, unsigned epoch, unsigned round,
                       double ns)
{
	struct series_key key = plain_key(where, kernel);

	put_key(data, &key, epoch, round, ns);
}

static inline void put_rounds(struct dataset *data, struct where where, unsigned kernel, unsigned epoch,
                              unsigned rounds, double ns)
{
	struct series_key key = plain_key(where, kernel);

	put_key_rounds(data, &key, epoch, rounds, ns);
}

/* `sizes` octaves from 1 KiB up, every cell unmeasured; grid_free() as usual. */
static inline void grid_by_hand(struct grid *grid, size_t sizes, unsigned epochs)
{
	*grid = (struct grid){.sizes = sizes, .threads = 1, .prior = PC_FLUSHED, .epochs = epochs};
	grid->cells = calloc(sizes * pc_kernel_count, sizeof(*grid->cells));
	CU_ASSERT_PTR_NOT_NULL_FATAL(grid->cells);
	for (size_t i = 0; i < sizes; i++) {
		grid->bytes[i] = i < 50 ? (uint64_t)1024 << i : UINT64_MAX; /* more are for the test to name */
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
	cell->interpolated = cell->forbidden = cell->doubtful = cell->unproven = false;
	cell->l = cell->worse = l;
	cell->ratio = exp(-l);
	cell->count = count;
	for (size_t i = 0; i < count; i++)
		cell->pairs[i] = l;
	for (unsigned e = 0; e < grid->epochs; e++)
		cell->epoch[e] = l;
	cell->interval = stats_median_interval(cell->pairs, count, 0.95);
}

/* As between two measured sizes: no pairs, and a wide interval. */
static inline void set_interpolated(struct grid *grid, size_t size, unsigned kernel, double l)
{
	set_cell(grid, size, kernel, l, 0);
	grid_cell(grid, size, kernel)->interpolated = true;
	grid_cell(grid, size, kernel)->interval = (struct interval){l - 0.2, l + 0.2};
}

/* Uniform in [low, high). */
static inline double uniform(struct random *random, double low, double high)
{
	return low + random_unit(random) * (high - low);
}

#endif
