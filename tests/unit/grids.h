/* Grids of datasets that are put together by hand. */
#ifndef TESTS_UNIT_GRIDS_H
#define TESTS_UNIT_GRIDS_H

#include "calibrd/grid.h"
#include "tests/unit/by_hand.h"

enum { EPOCHS = 3, ROUNDS = 8 };

static inline void put_epochs(struct dataset *data, enum phase phase, enum pc_prior prior, uint64_t bytes,
                              unsigned kernel, double ns)
{
	for (unsigned epoch = 0; epoch < EPOCHS; epoch++)
		put_rounds(data, (struct where){phase, prior, bytes}, kernel, epoch, ROUNDS, ns);
}

/* With all kernels that the data speak of. */
static inline int build(struct grid *grid, struct dataset *data, unsigned intent, enum pc_prior prior)
{
	uint32_t kernels = 0;

	for (size_t i = 0; i < data->count; i++)
		kernels |= 1u << data->series[i].key.kernel;
	return grid_build(grid, data, intent, prior, 1, kernels, 0.1);
}

#endif
