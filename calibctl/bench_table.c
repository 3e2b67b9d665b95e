/* Measures the kernel patch's table; see bench_table.h. */
#include "calibctl/bench_table.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

/* A block is one size from one prior state in one run. Five runs of sixteen blocks take 24 s at most, unless the three
 * rounds that a median needs take longer. */
enum { ROUNDS_LEAST = 3, ROUNDS_MOST = 25, PASSES = 3 };
static const uint64_t block_ns = 300000000;

struct block {
	enum pc_prior prior;
	size_t size;
};

/* Samples of one block. */
struct held {
	unsigned count[PC_KERNEL_MAX];
	double ns[PC_KERNEL_MAX][ROUNDS_MOST];
};

static int take_round(struct bench_grid *grid, struct bench_stand *stand, const struct block *block, struct held *held)
{
	struct meter *meter = stand->meter;
	struct meter_sample samples[PC_KERNEL_MAX] = {{0}};
	unsigned order[PC_KERNEL_MAX];
	size_t count = bench_stand_shuffle(stand, grid->kernels, order);
	int r = meter->ops->round_begin(meter, random_next(&stand->random));
	bool tainted;

	for (size_t i = 0; i < count && r == 0; i++) {
		struct meter_ask ask = {.kernel = &pc_kernels[order[i]],
		                        .phase = PHASE_CLEAR,
		                        .prior = block->prior,
		                        .bytes = grid->sizes[block->size],
		                        .passes = PASSES,
		                        .exact = true};

		r = meter->ops->sample(meter, &ask, &samples[i]);
	}
	tainted = meter->ops->round_end(meter);
	for (size_t i = 0; i < count && r == 0; i++) {
		struct bench_cell *cell = bench_grid_cell(grid, block->prior, block->size, order[i]);

		cell->samples++;
		if (tainted || samples[i].tainted)
			cell->tainted++;
		else
			held->ns[order[i]][held->count[order[i]]++] = samples[i].ns;
	}
	return r;
}

static int keep(struct bench_grid *grid, const struct block *block, struct held *held)
{
	int r = 0;

	for (unsigned kernel = 0; kernel < pc_kernel_count && r == 0; kernel++) {
		struct bench_values values = {.x = held->ns[kernel], .count = held->count[kernel]};
		double ns = bench_values_median(&values);

		if (values.count > 0 && ns > 0)
			r = bench_values_add(&bench_grid_cell(grid, block->prior, block->size, kernel)->runs,
			                     (double)grid->sizes[block->size] / ns);
	}
	return r;
}

static int take_block(struct bench_grid *grid, struct bench_stand *stand, const struct block *block)
{
	struct meter *meter = stand->meter;
	struct held held = {.count = {0}};
	uint64_t start = meter->ops->now_ns(meter);
	int r = 0;

	for (unsigned round = 0; round < ROUNDS_MOST && r == 0; round++) {
		if (round >= ROUNDS_LEAST && meter->ops->now_ns(meter) - start > block_ns)
			break;
		if (bench_stand_stopped(stand)) /* half a block is no run */
			return 0;
		r = take_round(grid, stand, block, &held);
	}
	return r == 0 ? keep(grid, block, &held) : r;
}

static size_t list_blocks(const struct bench_grid *grid, struct block *blocks)
{
	size_t count = 0;

	for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED; prior++)
		for (size_t size = 0; size < grid->size_count && (grid->priors >> prior & 1) != 0; size++)
			blocks[count++] = (struct block){prior, size};
	return count;
}

static int take_run(struct bench_grid *grid, struct bench_stand *stand)
{
	struct block blocks[PC_PRIORS * BENCH_SIZES];
	unsigned order[PC_PRIORS * BENCH_SIZES];
	size_t count = list_blocks(grid, blocks);
	struct meter_room room = {.target_bytes = grid->sizes[grid->size_count - 1]};
	int r = stand->meter->ops->epoch(stand->meter, &room);

	for (unsigned i = 0; i < count; i++)
		order[i] = i;
	random_shuffle(&stand->random, order, count);
	for (size_t i = 0; i < count && r == 0 && !bench_stand_stopped(stand); i++) {
		bench_stand_progress(stand, grid->runs,
		                     ((double)grid->runs + (double)i / (double)count) / stand->request.runs);
		r = take_block(grid, stand, &blocks[order[i]]);
	}
	grid->runs++;
	return r;
}

/* What fits of the usual sizes where none are asked for; the smallest always does. */
static void choose_sizes(struct bench_grid *grid, const struct bench_stand *stand)
{
	static const uint64_t usual[] = {4 * KIB, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB, 16 * MIB, 64 * MIB};
	const struct bench_request *request = &stand->request;

	grid->size_count = request->size_count;
	memcpy(grid->sizes, request->sizes, sizeof(grid->sizes));
	for (size_t i = 0; request->size_count == 0 && i < sizeof(usual) / sizeof(usual[0]); i++) {
		grid->cut = i > 0 && usual[i] > stand->memory_bytes;
		if (!grid->cut)
			grid->sizes[grid->size_count++] = usual[i];
	}
}

int bench_grid_measure(struct bench_grid *out, struct bench_stand *stand)
{
	int r = 0;

	*out = (struct bench_grid){.priors = stand->request.priors, .kernels = stand->kernels};
	choose_sizes(out, stand);
	out->cells = calloc((size_t)PC_PRIORS * BENCH_SIZES * PC_KERNEL_MAX, sizeof(out->cells[0]));
	if (out->cells == NULL)
		return -ENOMEM;
	while (out->runs < stand->request.runs && out->kernels != 0 && r == 0 && !bench_stand_stopped(stand))
		r = take_run(out, stand);
	bench_stand_progress(stand, out->runs, 1);
	return r;
}

void bench_grid_clear(struct bench_grid *grid)
{
	for (size_t i = 0; grid->cells != NULL && i < (size_t)PC_PRIORS * BENCH_SIZES * PC_KERNEL_MAX; i++)
		bench_values_clear(&grid->cells[i].runs);
	free(grid->cells);
	*grid = (struct bench_grid){0};
}

int bench_grid_best(const struct bench_grid *grid, enum pc_prior prior, size_t size)
{
	int best = -1;
	double most = 0;

	for (unsigned kernel = 0; kernel < pc_kernel_count; kernel++) {
		double mean = bench_values_mean(&bench_grid_cell(grid, prior, size, kernel)->runs);

		if (mean > most) {
			most = mean;
			best = (int)kernel;
		}
	}
	return best;
}

static bool has_figures(const struct bench_grid *grid)
{
	for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED; prior++)
		for (size_t size = 0; size < grid->size_count; size++)
			if (bench_grid_best(grid, prior, size) >= 0)
				return true;
	return false;
}

static int print(const struct bench_grid *grid, const struct bench_stand *stand)
{
	if (stand->request.format == BENCH_CSV) {
		bench_grid_csv(grid, stand, stdout);
		return 0;
	}
	if (stand->request.format == BENCH_JSON)
		return bench_json_print(bench_grid_json(grid, stand));
	return bench_grid_print(grid, stand);
}

int bench_table(struct bench_stand *stand, struct pc_why *why)
{
	struct bench_grid grid;
	int r = bench_grid_measure(&grid, stand);
	bool measured = r == 0;

	if (r == 0 && bench_stand_stopped(stand) && !has_figures(&grid))
		r = -ECANCELED;
	else if (r == 0)
		r = print(&grid, stand);
	if (r < 0 && r != -ECANCELED)
		pc_why_say(why, "cannot %s the table: %s", measured ? "print" : "measure", strerror(-r));
	bench_grid_clear(&grid);
	return r;
}
