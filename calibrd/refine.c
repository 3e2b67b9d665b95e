/* Open decisions and brackets; see refine.h and design section 7. */
#include "calibrd/refine.h"

#include <math.h>

#include "calibrd/decide.h"
#include "calibrd/solve.h"
#include "calibrd/spot.h"
#include "pageclear/policy.h"

/* A bracket that can cost less than this, in nat-octaves, or that is hardly wider than what one size speaks for (up to
 * a sixteenth below it, see meter.h), is not worth a size more. */
static const double bracket_regret = 0.01, bracket_octaves = 0.13;

enum {
	LEAST_TAKEN = 6,              /* rounds; a sign test at 95 % needs as many */
	MOST_TRIES = 4 * LEAST_TAKEN, /* at a size that is always disturbed */
	SPOT_TAKEN = 15,              /* enough for a spot check over two sizes */
	BRACKET_SIZES = 4,
	REFINED_MOST = 80, /* blocks of a calibration: its time is better spent than on crossovers that jump about */
};

/* --- what is open ------------------------------------------------------------------------------------------------ */

/* True if a rival may plausibly be so much cheaper here that half a switch were earned: two cells like this one make a
 * segment. */
static bool cell_is_open(const struct grid *grid, size_t size, unsigned chosen)
{
	const struct cell *own = grid_cell(grid, size, chosen);
	double least = solve_switch_cost(grid) / 2;

	for (unsigned k = 0; k < pc_kernel_count; k++) {
		const struct cell *rival = grid_cell(grid, size, k);

		/* Whom the race dropped unheard, or nearly, gets no more rounds anyway. */
		if (k == chosen || !rival->measured || rival->count < LEAST_TAKEN || rival->forbidden)
			continue;
		if (!(grid->width[size] * (own->interval.high - rival->interval.low) <= least))
			return true;
	}
	return false;
}

static bool speaks_for(const struct block *block, const struct grid *grid, size_t size)
{
	if (block->kind == BLOCK_SPOT || block->bytes != grid->bytes[size] || block->threads != grid->threads)
		return false;
	if (grid->intent == PAGECLEAR_SCRUB)
		return block->kind == BLOCK_SCRUB;
	return block->kind != BLOCK_SCRUB && (grid->prior == PC_UNKNOWN || grid->prior == block->prior);
}

static void mark_open(struct plan *plan, const struct grid *grid, const unsigned *choice)
{
	for (size_t i = 0; i < grid->sizes; i++) {
		if (!cell_is_open(grid, i, choice[i]))
			continue;
		for (size_t b = 0; b < plan->count; b++)
			if (speaks_for(&plan->blocks[b], grid, i))
				plan->blocks[b].settled = false;
	}
}

/* --- brackets ---------------------------------------------------------------------------------------------------- */

/* What placing the crossover wrongly between two sizes could cost at most: half the bracket at the larger difference.
 */
static double worst_in_bracket(const struct grid *grid, size_t size, unsigned before, unsigned after)
{
	double left = grid_cell(grid, size - 1, after)->l - grid_cell(grid, size - 1, before)->l;
	double right = grid_cell(grid, size, after)->l - grid_cell(grid, size, before)->l;
	double octaves = log2((double)grid->bytes[size] / (double)grid->bytes[size - 1]);

	return octaves / 2 * fmax(fabs(left), fabs(right));
}

static bool is_wide(const struct grid *grid, const unsigned *choice, size_t size)
{
	unsigned before = choice[size - 1], after = choice[size];

	if (before == after)
		return false;
	for (size_t i = size - 1; i <= size; i++)
		if (!grid_cell(grid, i, before)->measured || !grid_cell(grid, i, after)->measured)
			return false;
	return log2((double)grid->bytes[size] / (double)grid->bytes[size - 1]) > bracket_octaves &&
	       worst_in_bracket(grid, size, before, after) > bracket_regret;
}

/* As round as the distance to its neighbours allows. */
static uint64_t whole(double bytes)
{
	double unit = exp2(floor(log2(bytes)) - 6);

	return (uint64_t)(floor(bytes / fmax(16, unit)) * fmax(16, unit));
}

static size_t refined(const struct plan *plan)
{
	size_t count = 0;

	for (size_t i = 0; i < plan->count; i++)
		count += plan->blocks[i].field == FIELD_GIVEN;
	return count;
}

static void divide(struct plan *plan, const struct grid *grid, const unsigned *choice, size_t size)
{
	double from = (double)grid->bytes[size - 1], ratio = (double)grid->bytes[size] / from;
	uint32_t kernels = 1u << choice[size - 1] | 1u << choice[size];

	for (int i = 1; i <= BRACKET_SIZES && refined(plan) < REFINED_MOST; i++) {
		uint64_t bytes = whole(from * pow(ratio, i / (BRACKET_SIZES + 1.0)));

		for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED; prior++)
			if (grid->prior == PC_UNKNOWN || grid->prior == prior)
				plan_refine(plan, prior, grid->threads, bytes, kernels);
	}
}

static void add_sizes(struct plan *plan, const struct grid *grid, const unsigned *choice)
{
	if (grid->intent == PAGECLEAR_SCRUB) /* a difference of displacements is no curve to bisect */
		return;
	for (size_t i = 1; i < grid->sizes; i++)
		if (is_wide(grid, choice, i))
			divide(plan, grid, choice, i);
}

/* --- all tables -------------------------------------------------------------------------------------------------- */

static int look_at(struct plan *plan, const struct dataset *data, const struct decide_question *question,
                   unsigned threads, double scrub_weight)
{
	unsigned choice[GRID_SIZES];
	struct grid grid;
	int r = grid_build(&grid, data, question->intent, question->prior, threads, plan->kernels, scrub_weight);

	if (r != 0)
		return r < 0 ? r : 0;
	spot_forbid(&grid, data); /* as decide() does */
	solve_proven(&grid, choice);
	mark_open(plan, &grid, choice);
	add_sizes(plan, &grid, choice);
	grid_free(&grid);
	return 0;
}

/* Undisturbed rounds of libc: the measure of all others. */
static size_t undisturbed(const struct dataset *data, const struct block *block)
{
	struct cost_points points;
	struct cost_key key = {COST_CLEAR, block->prior, block->bytes, block->threads};

	if (block->kind == BLOCK_SINGLE)
		key.kind = COST_SINGLE;
	if (block->kind == BLOCK_SCRUB)
		key.kind = COST_VICTIM_L1;
	costs_of(data, &key, 0, &points);
	return points.count;
}

/* Enough to decide by, or so many tries that no more will help. */
static bool is_heard(const struct dataset *data, const struct block *block)
{
	if (block->wish == 0)
		return true;
	if (block->kind == BLOCK_SPOT)
		return block->taken >= SPOT_TAKEN;
	return block->taken >= MOST_TRIES || undisturbed(data, block) >= LEAST_TAKEN;
}

int refine(struct plan *plan, const struct dataset *data, double scrub_weight)
{
	int r = 0;

	for (size_t i = 0; i < plan->count; i++)
		plan->blocks[i].settled = is_heard(data, &plan->blocks[i]);
	for (size_t i = 0; i < DECIDE_QUESTIONS && r == 0; i++) {
		r = look_at(plan, data, &decide_questions[i], 1, scrub_weight);
		if (r == 0 && plan->threads > 1)
			r = look_at(plan, data, &decide_questions[i], plan->threads, scrub_weight);
	}
	return r;
}

bool refine_is_settled(const struct plan *plan)
{
	for (size_t i = 0; i < plan->count; i++)
		if (!plan->blocks[i].settled)
			return false;
	return plan->count > 0;
}
