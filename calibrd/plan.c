/* The grid, its budget and its race; see plan.h. */
#include "calibrd/plan.h"

#include <math.h>
#include <string.h>

#include "calibrd/costs.h"
#include "calibrd/race.h"
#include "calibrd/spot.h"
#include "kernels/kernels.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

enum {
	SMALLEST = 256,     /* up to here libpolicy inlines libc's memset */
	SCRUB_LEAST = 4096, /* from here the built-in policy scrubs otherwise than libc does */
	SCRUB_MOST = 16 << 20,
	THREADS_MOST = 64 << 20,
	JOINING = 2, /* races that add kernels to what several threads are measured with */
};

/* Share of its wish that a settled block still gets: epochs differ, and a decision must be seen to hold. */
static const double settled_share = 0.15;

const struct effort_limits effort_limits[EFFORTS] = {
	[EFFORT_QUICK] = {"quick", 10, 3, 64 * MIB, 1},
	[EFFORT_STANDARD] = {"standard", 60, 5, 256 * MIB, 2},
	[EFFORT_THOROUGH] = {"thorough", 600, 15, 1024 * MIB, 2},
};

enum effort effort_find(const char *name)
{
	enum effort effort = EFFORT_QUICK;

	while (effort < EFFORTS && strcmp(effort_limits[effort].name, name) != 0)
		effort++;
	return effort;
}

/* --- the grid ---------------------------------------------------------------------------------------------------- */

/* Rounds that the decision of a size needs, from the spread seen at it: about 8 % below 16 MiB, 10-20 % above. The
 * small sizes cost next to nothing. */
static double wish(uint64_t bytes)
{
	if (bytes < 64 * KIB)
		return 60;
	if (bytes < 4 * MIB)
		return 20;
	if (bytes < 16 * MIB)
		return 15;
	return 12;
}

/* Finalists and champions are chosen in the middle of the first epoch; four is a fair guess of how many. */
static int kernel_count(const struct block *block)
{
	return block->kernels == 0 ? 4 : __builtin_popcount(block->kernels);
}

/* Samples a kernel in a round. Of a spot check: whole, two chunks each way, base pages. */
static int ways(const struct block *block)
{
	return block->kind == BLOCK_SPOT ? 6 : 1;
}

/* What a round costs before one was taken: figures of one Zen 3 guest, corrected by the first round. */
static double round_estimate(const struct block *block)
{
	double ns_per_kib = block->kind == BLOCK_SCRUB ? 400 * 3 : 500;
	double victims = block->kind == BLOCK_SCRUB ? 4e6 : 0;

	return kernel_count(block) * ways(block) * (2e4 + victims + (double)block->bytes / 1024 * ns_per_kib);
}

static bool add(struct plan *plan, struct block block)
{
	if (plan->count == PLAN_BLOCKS)
		return false; /* test_plan shows that the grid of every effort fits */
	if (block.field == FIELD_ALL)
		block.kernels = plan->kernels;
	if (block.threads == 0)
		block.threads = 1;
	if (block.wish == 0)
		block.wish = wish(block.bytes);
	block.round_ns = round_estimate(&block);
	plan->blocks[plan->count++] = block;
	return true;
}

static bool is_quick(const struct plan *plan)
{
	return plan->limits.per_octave == 1;
}

static void add_size(struct plan *plan, uint64_t bytes, uint64_t memory_bytes)
{
	/* Dear sizes are for finalists. Quick has so few rounds there that a dozen kernels would leave nothing to prove
	 * with. */
	enum block_field field = bytes > (is_quick(plan) ? 16 : 64) * MIB ? FIELD_FINALISTS : FIELD_ALL;

	if (bytes > plan->limits.most_bytes || bytes > memory_bytes)
		return;
	add(plan, (struct block){.kind = BLOCK_CLEAR, .field = field, .prior = PC_FLUSHED, .bytes = bytes});
	if (bytes <= 64 * MIB)
		add(plan, (struct block){.kind = BLOCK_CLEAR, .field = field, .prior = PC_CACHED, .bytes = bytes});
	if (costs_asked_alone(PC_FLUSHED, 1, bytes))
		add(plan, (struct block){.kind = BLOCK_SINGLE, .prior = PC_FLUSHED, .bytes = bytes});
	if (bytes >= SCRUB_LEAST && bytes <= SCRUB_MOST && (bytes & (bytes - 1)) == 0)
		add(plan, (struct block){.kind = BLOCK_SCRUB,
		                         .field = FIELD_FAMILIES,
		                         .prior = PC_FLUSHED,
		                         .bytes = bytes,
		                         .wish = 30});
}

/* Three kernels and what one thread chooses, at every octave. */
static void add_threads(struct plan *plan, uint64_t bytes, const struct plan_means *means)
{
	struct block block = {.field = FIELD_CLASSES,
	                      .prior = PC_FLUSHED,
	                      .threads = means->threads,
	                      .bytes = bytes,
	                      .wish = bytes < 64 * KIB ? wish(bytes) / 2 : wish(bytes)};

	if (means->threads < 2 || bytes > THREADS_MOST || bytes > means->crew_bytes || bytes > means->memory_bytes)
		return;
	if (is_quick(plan) && ((__builtin_ctzll(bytes) & 1) != 0 || bytes > 16 * MIB)) /* every second octave */
		return;
	add(plan, block);
	block.prior = PC_CACHED;
	add(plan, block);
	if (bytes < 64 * KIB || bytes > SCRUB_MOST)
		return;
	block.prior = PC_FLUSHED;
	block.kind = BLOCK_SCRUB;
	block.wish = 8;
	add(plan, block);
}

/* Enough rounds for a sign test over two sizes. Quick has no time for them. */
static void add_spots(struct plan *plan, const struct plan_means *means)
{
	uint64_t most = means->base_bytes < means->memory_bytes ? means->base_bytes : means->memory_bytes;

	if (is_quick(plan))
		return;
	for (uint64_t bytes = SPOT_FROM; bytes <= SPOT_TO && bytes <= most; bytes *= 4)
		for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED; prior++)
			add(plan, (struct block){.kind = BLOCK_SPOT,
			                         .field = FIELD_WINNERS,
			                         .prior = prior,
			                         .bytes = bytes,
			                         .wish = 9});
}

void plan_build(struct plan *plan, enum effort effort, const struct plan_means *means)
{
	uint64_t memory_bytes = means->memory_bytes;

	*plan = (struct plan){.limits = effort_limits[effort],
	                      .kernels = means->kernels | 1,
	                      .threads = means->threads > 1 ? means->threads : 0};
	for (uint64_t bytes = SMALLEST; bytes <= plan->limits.most_bytes; bytes *= 2) {
		add_size(plan, bytes, memory_bytes);
		if (bytes < 64 * MIB && (bytes < 64 * KIB || plan->limits.per_octave > 1))
			add_size(plan, bytes / 2 * 3, memory_bytes);
		add_threads(plan, bytes, means);
	}
	add_spots(plan, means);
}

static bool refine(struct plan *plan, struct block wanted)
{
	for (size_t i = 0; i < plan->count; i++) {
		struct block *block = &plan->blocks[i];

		if (block->kind != wanted.kind || block->prior != wanted.prior || block->threads != wanted.threads ||
		    block->bytes != wanted.bytes)
			continue;
		if (block->field == FIELD_GIVEN) /* another table's rivals join */
			block->kernels |= wanted.kernels;
		return false;
	}
	return add(plan, wanted);
}

bool plan_refine(struct plan *plan, enum pc_prior prior, unsigned threads, uint64_t bytes, uint32_t kernels)
{
	struct block block = {.kind = BLOCK_CLEAR,
	                      .field = FIELD_GIVEN,
	                      .prior = prior,
	                      .threads = threads,
	                      .bytes = bytes,
	                      .kernels = kernels | 1};
	bool added = refine(plan, block);

	block.kind = BLOCK_SINGLE;
	if (costs_asked_alone(prior, threads, bytes))
		refine(plan, block);
	return added;
}

void plan_drop_threads(struct plan *plan)
{
	plan->threads = 0;
	for (size_t i = 0; i < plan->count; i++)
		if (plan->blocks[i].threads > 1)
			plan->blocks[i].wish = plan->blocks[i].owed = plan->blocks[i].rounds = 0;
}

/* --- the budget -------------------------------------------------------------------------------------------------- */

/* Every block whose round is cheap is taken once an epoch, so that each epoch speaks of each size; the others wait
 * until enough is owed to them. */
static double due(const struct block *block, double scale, double cheap_ns)
{
	double wanted = fmin(scale * block->wish * (block->settled ? settled_share : 1), PLAN_ROUNDS_MOST);

	if (block->wish == 0)
		return 0;
	return block->round_ns < cheap_ns ? fmax(1, wanted) : wanted;
}

static double total_ns(const struct plan *plan, double scale, double cheap_ns)
{
	double sum = 0;

	for (size_t i = 0; i < plan->count; i++)
		sum += due(&plan->blocks[i], scale, cheap_ns) * plan->blocks[i].round_ns;
	return sum;
}

/* A twentieth of the epoch; less on a slow host, so that one round of everything cheap leaves half of the epoch. */
static double cheap_round_ns(const struct plan *plan, double budget_ns)
{
	double cheap_ns = budget_ns / 20;

	while (cheap_ns > 1 && total_ns(plan, 0, cheap_ns) > budget_ns / 2)
		cheap_ns /= 2;
	return cheap_ns;
}

void plan_epoch(struct plan *plan, double budget_ns)
{
	double low = 0, high = 64, cheap_ns = cheap_round_ns(plan, budget_ns);

	for (int i = 0; i < 40; i++) {
		double middle = (low + high) / 2;

		if (total_ns(plan, middle, cheap_ns) <= budget_ns)
			low = middle;
		else
			high = middle;
	}
	for (size_t i = 0; i < plan->count; i++) {
		struct block *block = &plan->blocks[i];
		double rounds = due(block, low, cheap_ns) + block->owed;

		block->rounds = (unsigned)rounds;
		block->owed = rounds - block->rounds;
	}
}

void plan_spent(struct block *block, unsigned rounds, double ns)
{
	if (rounds == 0)
		return;
	block->taken += rounds;
	block->round_ns = ns / rounds;
}

/* --- the race ---------------------------------------------------------------------------------------------------- */

static void narrow(struct block *block, uint32_t kernels)
{
	if (kernels == block->kernels)
		return;
	block->round_ns *= __builtin_popcount(kernels) / (double)kernel_count(block);
	block->kernels = kernels;
}

/* An epoch that saw nobody but libc, all else having been disturbed, chooses nobody: the next one may. Those of the
 * policy in force come along, but do not stand for a field. */
static void choose(const struct plan *plan, struct block *block, uint32_t chosen)
{
	if (chosen != 1 || plan->kernels == 1)
		narrow(block, block->kernels | chosen | (plan->keep & plan->kernels));
}

/* Several threads: of each class the best, and the winners of one alone under either prior, so that its rules can be
 * judged. The first few epochs may name them: where kernels tie each would name another one. */
static void join(const struct plan *plan, struct block *block, const struct dataset *data)
{
	uint32_t all = plan->kernels;

	if (plan->races <= JOINING)
		choose(plan, block,
		       race_classes(data, all) | race_winners(data, block->bytes, PC_CACHED, all) |
		               race_winners(data, block->bytes, PC_FLUSHED, all));
}

static uint32_t favourites(const struct block *block, const struct dataset *data, uint32_t all)
{
	if (block->field == FIELD_FINALISTS)
		return race_finalists(data, all);
	return race_champions(data, all);
}

/* Samples of 16 MiB and more are dear: four rivals of libc there. */
static uint32_t survivors(const struct dataset *data, const struct block *block)
{
	return race_survivors(data, block->bytes, block->kernels, block->bytes >= 16 * MIB ? 4 : 32);
}

void plan_race(struct plan *plan, const struct dataset *data)
{
	uint32_t all = plan->kernels, keep = plan->keep & all;

	plan->races++;
	for (size_t i = 0; i < plan->count; i++) {
		struct block *block = &plan->blocks[i];

		if (block->field == FIELD_ALL)
			narrow(block, survivors(data, block) | keep);
		else if (block->field == FIELD_WINNERS)
			narrow(block, block->kernels | race_winners(data, block->bytes, block->prior, all));
		else if (block->field == FIELD_CLASSES)
			join(plan, block, data);
		else if (block->kernels == 0)
			choose(plan, block, favourites(block, data, all));
	}
}
