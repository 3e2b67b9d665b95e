/* The grid of every effort, its budget when costs are not what was thought, and what the race does to it. */
#include "calibrd/plan.h"

#include "tests/unit/by_hand.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

static struct plan plan;

static const struct block *find(enum block_kind kind, enum pc_prior prior, uint64_t bytes)
{
	for (size_t i = 0; i < plan.count; i++)
		if (plan.blocks[i].kind == kind && plan.blocks[i].prior == prior && plan.blocks[i].bytes == bytes)
			return &plan.blocks[i];
	return NULL;
}

/* What an epoch's rounds take if every round takes `factor` times its estimate. */
static double epoch_ns(double factor)
{
	double sum = 0;

	for (size_t i = 0; i < plan.count; i++)
		sum += plan.blocks[i].rounds * plan.blocks[i].round_ns * factor;
	return sum;
}

/* --- the grid ---------------------------------------------------------------------------------------------------- */

static void test_efforts(void)
{
	CU_ASSERT_EQUAL(effort_find("quick"), EFFORT_QUICK);
	CU_ASSERT_EQUAL(effort_find("standard"), EFFORT_STANDARD);
	CU_ASSERT_EQUAL(effort_find("thorough"), EFFORT_THOROUGH);
	CU_ASSERT_EQUAL(effort_find("none"), EFFORTS);
	CU_ASSERT_EQUAL(effort_find(""), EFFORTS);
	for (enum effort effort = EFFORT_QUICK; effort < EFFORTS; effort++) {
		CU_ASSERT_EQUAL(effort_find(effort_limits[effort].name), effort);
		CU_ASSERT(effort_limits[effort].epochs >= 3);
	}
}

static void test_every_grid_fits(void)
{
	for (enum effort effort = EFFORT_QUICK; effort < EFFORTS; effort++) {
		plan_build(&plan, effort, ~0u, 64 * GIB);
		CU_ASSERT(plan.count > 50);
		CU_ASSERT(plan.count < PLAN_BLOCKS); /* full would mean that some were left out */
		for (size_t i = 0; i < plan.count; i++)
			CU_ASSERT_PTR_EQUAL(find(plan.blocks[i].kind, plan.blocks[i].prior, plan.blocks[i].bytes),
			                    &plan.blocks[i]); /* none twice */
		CU_ASSERT_PTR_NOT_NULL(find(BLOCK_CLEAR, PC_FLUSHED, effort_limits[effort].most_bytes));
		CU_ASSERT_PTR_NULL(find(BLOCK_CLEAR, PC_FLUSHED, 2 * effort_limits[effort].most_bytes));
	}
}

static void test_who_is_asked_what(void)
{
	plan_build(&plan, EFFORT_STANDARD, 0x6, GIB);
	CU_ASSERT_EQUAL(plan.kernels, 0x7); /* libc is always there to compare with */
	for (size_t i = 0; i < plan.count; i++) {
		const struct block *block = &plan.blocks[i];

		CU_ASSERT(block->wish > 0 && block->round_ns > 0 && block->bytes > 0);
		CU_ASSERT_EQUAL(block->kernels, block->field == FIELD_ALL ? 0x7 : 0);
		CU_ASSERT_EQUAL(block->field == FIELD_FAMILIES, block->kind == BLOCK_SCRUB);
		CU_ASSERT_EQUAL(block->field == FIELD_FINALISTS, block->bytes > 64 * MIB);
		CU_ASSERT(block->kind != BLOCK_SINGLE || block->bytes <= 16 * KIB);
		CU_ASSERT(block->prior == PC_FLUSHED || (block->prior == PC_CACHED && block->kind == BLOCK_CLEAR));
		if (block->kind == BLOCK_CLEAR && block->bytes <= 64 * MIB)
			CU_ASSERT_PTR_NOT_NULL(find(BLOCK_CLEAR, PC_CACHED, block->bytes));
	}
	CU_ASSERT_PTR_NOT_NULL(find(BLOCK_CLEAR, PC_FLUSHED, 48 * MIB));
	CU_ASSERT_PTR_NOT_NULL(find(BLOCK_SCRUB, PC_FLUSHED, 64 * KIB));
	CU_ASSERT_PTR_NOT_NULL(find(BLOCK_SCRUB, PC_FLUSHED, 4 * KIB));
	CU_ASSERT_PTR_NULL(find(BLOCK_SCRUB, PC_FLUSHED, 2 * KIB));
	CU_ASSERT_PTR_NULL(find(BLOCK_SCRUB, PC_FLUSHED, 96 * KIB));
}

static void test_memory_is_a_limit(void)
{
	plan_build(&plan, EFFORT_STANDARD, 7, 3 * MIB);
	for (size_t i = 0; i < plan.count; i++)
		CU_ASSERT(plan.blocks[i].bytes <= 3 * MIB);
	CU_ASSERT_PTR_NOT_NULL(find(BLOCK_CLEAR, PC_CACHED, 3 * MIB));
	plan_build(&plan, EFFORT_STANDARD, 7, 0);
	CU_ASSERT_EQUAL(plan.count, 0);
	plan_epoch(&plan, 1e9); /* nothing to do is no reason to hang */
}

/* --- the budget -------------------------------------------------------------------------------------------------- */

/* Where the estimates hold, an epoch fills its budget and does not exceed it; every block is taken. */
static void test_an_epoch_fills_its_budget(void)
{
	plan_build(&plan, EFFORT_STANDARD, 0xfff, GIB);
	for (int epoch = 0; epoch < 5; epoch++) {
		double owed = 0;

		for (size_t i = 0; i < plan.count; i++)
			owed += plan.blocks[i].owed * plan.blocks[i].round_ns;
		plan_epoch(&plan, 12e9);
		CU_ASSERT(epoch_ns(1) <= 12e9 + owed);
		CU_ASSERT(epoch_ns(1) >= 0.8 * 12e9);
		for (size_t i = 0; i < plan.count; i++) {
			CU_ASSERT(plan.blocks[i].rounds >= 1 || plan.blocks[i].round_ns >= 12e9 / 20);
			CU_ASSERT(plan.blocks[i].rounds <= 121);
			CU_ASSERT(plan.blocks[i].owed >= 0 && plan.blocks[i].owed < 1);
		}
	}
}

/* A block that is too dear for each epoch gets its share in some of them. */
static void test_what_is_owed_is_paid(void)
{
	unsigned rounds = 0, idle = 0;
	struct block *dear;

	plan_build(&plan, EFFORT_STANDARD, 0xfff, GIB);
	dear = (struct block *)find(BLOCK_CLEAR, PC_CACHED, 64 * MIB);
	CU_ASSERT_PTR_NOT_NULL_FATAL(dear);
	for (int epoch = 0; epoch < 40; epoch++) {
		dear->round_ns = 1e9;
		plan_epoch(&plan, 3e9);
		rounds += dear->rounds;
		idle += dear->rounds == 0;
	}
	CU_ASSERT(idle > 0);
	CU_ASSERT(rounds > 0);
}

/* Rounds turned out to cost so many times the estimate: from then on the budget holds, and as long as a round of all
 * that is small fits into an epoch it is taken. */
static void test_costs_far_from_the_estimate(void)
{
	static const double factors[] = {0.1, 1, 10, 100, 1000};

	for (size_t f = 0; f < 5; f++) {
		plan_build(&plan, EFFORT_STANDARD, 0xfff, GIB);
		for (size_t i = 0; i < plan.count; i++) {
			plan_spent(&plan.blocks[i], 2, 2 * factors[f] * plan.blocks[i].round_ns);
			CU_ASSERT_EQUAL(plan.blocks[i].taken, 2);
		}
		plan_epoch(&plan, 12e9);
		CU_ASSERT(epoch_ns(1) <= 12e9);
		CU_ASSERT(find(BLOCK_CLEAR, PC_FLUSHED, 256)->rounds >= 1 || factors[f] > 100);
		CU_ASSERT(find(BLOCK_SINGLE, PC_FLUSHED, 256)->rounds >= 1 || factors[f] > 100);
	}
}

static void test_no_budget_no_rounds(void)
{
	plan_build(&plan, EFFORT_QUICK, 0xfff, GIB);
	plan_epoch(&plan, 0);
	CU_ASSERT_EQUAL(epoch_ns(1), 0);
}

static void test_rounds_not_taken_teach_nothing(void)
{
	struct block block = {.round_ns = 5, .taken = 3};

	plan_spent(&block, 0, 1e9);
	CU_ASSERT_EQUAL(block.round_ns, 5);
	CU_ASSERT_EQUAL(block.taken, 3);
	plan_spent(&block, 4, 400);
	CU_ASSERT_EQUAL(block.round_ns, 100);
	CU_ASSERT_EQUAL(block.taken, 7);
}

/* --- the race ---------------------------------------------------------------------------------------------------- */

static void measure(struct dataset *data, uint64_t bytes, unsigned kernel, double ns)
{
	for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED; prior++)
		for (enum phase phase = PHASE_CLEAR; phase <= PHASE_READ; phase++)
			put_rounds(data, (struct where){phase, prior, bytes}, kernel, 0, 12, ns);
}

static void test_the_race_narrows_blocks(void)
{
	struct dataset data = {0};
	double before;

	NEEDS_KERNELS(3);
	plan_build(&plan, EFFORT_STANDARD, 7, GIB);
	before = find(BLOCK_CLEAR, PC_CACHED, 4096)->round_ns;
	measure(&data, 4096, 0, 1000);
	measure(&data, 4096, 1, 1200);
	measure(&data, 4096, 2, 500);
	plan_race(&plan, &data);
	for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED; prior++)
		CU_ASSERT_EQUAL(find(BLOCK_CLEAR, prior, 4096)->kernels, 5);
	CU_ASSERT_EQUAL(find(BLOCK_SINGLE, PC_FLUSHED, 4096)->kernels, 5);
	NEAR(find(BLOCK_CLEAR, PC_CACHED, 4096)->round_ns, before * 2 / 3);
	CU_ASSERT_EQUAL(find(BLOCK_CLEAR, PC_CACHED, 8192)->kernels, 7); /* not measured: nobody leaves */
	dataset_clear(&data);
}

/* An epoch in which nothing but libc came through undisturbed must not send libc alone to the finals for ever. */
static void test_finalists_are_chosen_once_somebody_was_heard(void)
{
	struct dataset data = {0};

	NEEDS_KERNELS(3);
	plan_build(&plan, EFFORT_STANDARD, 7, GIB);
	measure(&data, MIB, 0, 1000);
	plan_race(&plan, &data);
	CU_ASSERT_EQUAL(find(BLOCK_CLEAR, PC_FLUSHED, 128 * MIB)->kernels, 0);
	CU_ASSERT_EQUAL(find(BLOCK_SCRUB, PC_FLUSHED, 64 * KIB)->kernels, 0);
	measure(&data, MIB, 1, 900);
	plan_race(&plan, &data);
	CU_ASSERT_EQUAL(find(BLOCK_CLEAR, PC_FLUSHED, 128 * MIB)->kernels, 3);
	CU_ASSERT_EQUAL(find(BLOCK_SCRUB, PC_FLUSHED, 64 * KIB)->kernels, 3);
	measure(&data, MIB, 2, 100);
	plan_race(&plan, &data); /* late: the ones compared so far go on, so that rounds stay comparable */
	CU_ASSERT_EQUAL(find(BLOCK_CLEAR, PC_FLUSHED, 128 * MIB)->kernels, 3);
	dataset_clear(&data);
}

static void test_libc_alone_is_a_field(void)
{
	struct dataset data = {0};

	plan_build(&plan, EFFORT_STANDARD, 0, GIB);
	measure(&data, MIB, 0, 1000);
	plan_race(&plan, &data);
	CU_ASSERT_EQUAL(find(BLOCK_CLEAR, PC_FLUSHED, 128 * MIB)->kernels, 1);
	dataset_clear(&data);
}

static const struct unit_test tests[] = {
	{"efforts", test_efforts},
	{"every grid fits", test_every_grid_fits},
	{"who is asked what", test_who_is_asked_what},
	{"memory is a limit", test_memory_is_a_limit},
	{"an epoch fills its budget", test_an_epoch_fills_its_budget},
	{"what is owed is paid", test_what_is_owed_is_paid},
	{"costs far from the estimate", test_costs_far_from_the_estimate},
	{"no budget no rounds", test_no_budget_no_rounds},
	{"rounds not taken teach nothing", test_rounds_not_taken_teach_nothing},
	{"the race narrows blocks", test_the_race_narrows_blocks},
	{"finalists are chosen once somebody was heard", test_finalists_are_chosen_once_somebody_was_heard},
	{"libc alone is a field", test_libc_alone_is_a_field},
};

UNIT_MAIN("plan", tests)
