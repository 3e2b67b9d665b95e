/* The grid of every effort, its budget when costs are not what was thought, and what the race does to it. */
#include "calibrd/plan.h"

#include "tests/unit/by_hand.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

static struct plan plan;

/* One thread, as much memory on base pages as there is. */
static void build(enum effort effort, uint32_t kernels, uint64_t memory_bytes)
{
	plan_build(&plan, effort,
	           &(struct plan_means){.kernels = kernels, .memory_bytes = memory_bytes, .base_bytes = memory_bytes});
}

static const struct block *find_threads(enum block_kind kind, enum pc_prior prior, unsigned threads, uint64_t bytes)
{
	for (size_t i = 0; i < plan.count; i++)
		if (plan.blocks[i].kind == kind && plan.blocks[i].prior == prior && plan.blocks[i].bytes == bytes &&
		    plan.blocks[i].threads == threads)
			return &plan.blocks[i];
	return NULL;
}

static const struct block *find(enum block_kind kind, enum pc_prior prior, uint64_t bytes)
{
	return find_threads(kind, prior, 1, bytes);
}

/* What an epoch's rounds take if every round takes `factor` times its estimate. */
static double epoch_ns(double factor)
{
	double sum = 0;

	for (size_t i = 0; i < plan.count; i++)
		sum += plan.blocks[i].rounds * plan.blocks[i].round_ns * factor;
	return sum;
}

#define crew_of(n)                                                                                                     \
	((struct plan_means){                                                                                          \
		.kernels = ~0u, .memory_bytes = 64 * GIB, .base_bytes = GIB, .threads = (n), .crew_bytes = 16 * MIB})

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
		plan_build(&plan, effort, &crew_of(8));
		CU_ASSERT(plan.count > 100);
		CU_ASSERT(plan.count + 2 * 80 <
		          PLAN_BLOCKS); /* full would mean that some were left out; brackets want room too */
		for (size_t i = 0; i < plan.count; i++)
			CU_ASSERT_PTR_EQUAL(find_threads(plan.blocks[i].kind, plan.blocks[i].prior,
			                                 plan.blocks[i].threads, plan.blocks[i].bytes),
			                    &plan.blocks[i]); /* none twice */
		CU_ASSERT_PTR_NOT_NULL(find(BLOCK_CLEAR, PC_FLUSHED, effort_limits[effort].most_bytes));
		CU_ASSERT_PTR_NULL(find(BLOCK_CLEAR, PC_FLUSHED, 2 * effort_limits[effort].most_bytes));
	}
}

static void test_who_is_asked_what(void)
{
	build(EFFORT_STANDARD, 0x6, GIB);
	CU_ASSERT_EQUAL(plan.kernels, 0x7); /* libc is always there to compare with */
	for (size_t i = 0; i < plan.count; i++) {
		const struct block *block = &plan.blocks[i];

		CU_ASSERT(block->wish > 0 && block->round_ns > 0 && block->bytes > 0);
		CU_ASSERT_EQUAL(block->kernels, block->field == FIELD_ALL ? 0x7 : 0);
		CU_ASSERT_EQUAL(block->field == FIELD_FAMILIES, block->kind == BLOCK_SCRUB);
		CU_ASSERT_EQUAL(block->field == FIELD_WINNERS, block->kind == BLOCK_SPOT);
		CU_ASSERT(block->threads == 1 && !block->settled);
		CU_ASSERT_EQUAL(block->field == FIELD_FINALISTS, block->bytes > 64 * MIB);
		CU_ASSERT(block->kind != BLOCK_SINGLE || block->bytes <= 16 * KIB);
		CU_ASSERT(block->prior == PC_FLUSHED ||
		          (block->prior == PC_CACHED && (block->kind == BLOCK_CLEAR || block->kind == BLOCK_SPOT)));
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
	build(EFFORT_STANDARD, 7, 3 * MIB);
	for (size_t i = 0; i < plan.count; i++)
		CU_ASSERT(plan.blocks[i].bytes <= 3 * MIB);
	CU_ASSERT_PTR_NOT_NULL(find(BLOCK_CLEAR, PC_CACHED, 3 * MIB));
	build(EFFORT_STANDARD, 7, 0);
	CU_ASSERT_EQUAL(plan.count, 0);
	plan_epoch(&plan, 1e9); /* nothing to do is no reason to hang */
}

/* Three classes, every octave that the crew's memory allows; scrub where it leaves the private caches. */
static void test_several_threads(void)
{
	plan_build(&plan, EFFORT_STANDARD, &crew_of(36));
	CU_ASSERT_EQUAL(plan.threads, 36);
	for (uint64_t bytes = 256; bytes <= 16 * MIB; bytes *= 2)
		for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED; prior++) {
			const struct block *block = find_threads(BLOCK_CLEAR, prior, 36, bytes);

			CU_ASSERT_PTR_NOT_NULL_FATAL(block);
			CU_ASSERT_EQUAL(block->field, FIELD_CLASSES);
			CU_ASSERT_EQUAL(block->kernels, 0);
		}
	CU_ASSERT_PTR_NOT_NULL(find_threads(BLOCK_SCRUB, PC_FLUSHED, 36, MIB));
	CU_ASSERT_PTR_NULL(find_threads(BLOCK_CLEAR, PC_FLUSHED, 36, 32 * MIB)); /* more than the crew may take */
	CU_ASSERT_PTR_NULL(find_threads(BLOCK_CLEAR, PC_FLUSHED, 36, 384));
	CU_ASSERT_PTR_NULL(find_threads(BLOCK_SINGLE, PC_FLUSHED, 36, 1024));
	for (unsigned threads = 0; threads < 2; threads++) { /* one alone is what there is anyway */
		plan_build(&plan, EFFORT_STANDARD, &crew_of(threads));
		CU_ASSERT_EQUAL(plan.threads, 0);
		for (size_t i = 0; i < plan.count; i++)
			CU_ASSERT_EQUAL(plan.blocks[i].threads, 1);
	}
}

static void test_threads_are_dropped(void)
{
	unsigned dropped = 0;

	plan_build(&plan, EFFORT_STANDARD, &crew_of(8));
	plan_epoch(&plan, 6e9);
	plan_drop_threads(&plan);
	for (int again = 0; again < 2; again++) {
		for (size_t i = 0; i < plan.count; i++)
			if (plan.blocks[i].threads > 1) {
				CU_ASSERT_EQUAL(plan.blocks[i].rounds, 0);
				dropped++;
			}
		plan_epoch(&plan, 6e9);
	}
	CU_ASSERT(dropped > 20);
	CU_ASSERT_EQUAL(plan.threads, 0);
	CU_ASSERT(find(BLOCK_CLEAR, PC_FLUSHED, MIB)->rounds > 0);
}

static void test_spot_checks(void)
{
	build(EFFORT_STANDARD, 7, GIB);
	for (uint64_t bytes = 2 * MIB; bytes <= 32 * MIB; bytes *= 4) {
		CU_ASSERT_PTR_NOT_NULL(find(BLOCK_SPOT, PC_CACHED, bytes));
		CU_ASSERT_PTR_NOT_NULL(find(BLOCK_SPOT, PC_FLUSHED, bytes));
	}
	plan_build(&plan, EFFORT_STANDARD, &(struct plan_means){7, GIB, 4 * MIB, 0, 0});
	CU_ASSERT_PTR_NOT_NULL(find(BLOCK_SPOT, PC_CACHED, 2 * MIB));
	CU_ASSERT_PTR_NULL(find(BLOCK_SPOT, PC_CACHED, 8 * MIB)); /* base pages have less memory than that */
	build(EFFORT_QUICK, 7, GIB);
	CU_ASSERT_PTR_NULL(find(BLOCK_SPOT, PC_CACHED, 2 * MIB)); /* ten seconds have no time for them */
}

static void test_sizes_are_added(void)
{
	size_t before;
	const struct block *added;

	build(EFFORT_STANDARD, 0xf, GIB);
	before = plan.count;
	CU_ASSERT_TRUE(plan_refine(&plan, PC_CACHED, 1, 5 * MIB, 0xc));
	CU_ASSERT_EQUAL(plan.count, before + 1);
	added = find(BLOCK_CLEAR, PC_CACHED, 5 * MIB);
	CU_ASSERT_PTR_NOT_NULL_FATAL(added);
	CU_ASSERT_EQUAL(added->kernels, 0xd); /* and libc, to compare with */
	CU_ASSERT(added->wish > 0 && added->round_ns > 0);
	CU_ASSERT_FALSE(plan_refine(&plan, PC_CACHED, 1, 5 * MIB, 0x2));
	CU_ASSERT_EQUAL(plan.count, before + 1);
	CU_ASSERT_EQUAL(added->kernels, 0xf);                            /* another table's rivals */
	CU_ASSERT_FALSE(plan_refine(&plan, PC_CACHED, 1, 4 * MIB, 0x2)); /* of the grid: measured by all as it is */
	CU_ASSERT_EQUAL(find(BLOCK_CLEAR, PC_CACHED, 4 * MIB)->kernels, 0xf);
	CU_ASSERT_TRUE(plan_refine(&plan, PC_FLUSHED, 1, 5 * KIB, 0x2));
	CU_ASSERT_PTR_NOT_NULL(find(BLOCK_SINGLE, PC_FLUSHED, 5 * KIB)); /* small flushed ones: both ways of asking */
	CU_ASSERT_TRUE(plan_refine(&plan, PC_CACHED, 1, 5 * KIB, 0x2));
	CU_ASSERT_PTR_NULL(find(BLOCK_SINGLE, PC_CACHED, 5 * KIB));
	for (unsigned i = 0; plan.count < PLAN_BLOCKS; i++)
		plan_refine(&plan, PC_CACHED, 1, 6 * MIB + 64 * KIB * i, 0x2);
	CU_ASSERT_FALSE(plan_refine(&plan, PC_CACHED, 1, 5 * MIB + 4096, 0x2)); /* full */
}

/* --- the budget -------------------------------------------------------------------------------------------------- */

/* Where the estimates hold, an epoch fills its budget and does not exceed it; every block is taken. */
static void test_an_epoch_fills_its_budget(void)
{
	build(EFFORT_STANDARD, 0xfff, GIB);
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

	build(EFFORT_STANDARD, 0xfff, GIB);
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
		build(EFFORT_STANDARD, 0xfff, GIB);
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

/* What is settled leaves its time to what is not; one round an epoch remains of what costs little. */
static void test_time_goes_where_decisions_are_open(void)
{
	unsigned before, settled = 0;

	build(EFFORT_STANDARD, 0xfff, GIB);
	plan_epoch(&plan, 6e9);
	before = find(BLOCK_CLEAR, PC_CACHED, 8 * MIB)->rounds;
	for (size_t i = 0; i < plan.count; i++) {
		plan.blocks[i].settled = plan.blocks[i].bytes != 8 * MIB;
		plan.blocks[i].owed = 0;
	}
	plan_epoch(&plan, 6e9);
	CU_ASSERT(find(BLOCK_CLEAR, PC_CACHED, 8 * MIB)->rounds >= 2 * before);
	CU_ASSERT(epoch_ns(1) <= 6e9);
	for (size_t i = 0; i < plan.count; i++)
		if (plan.blocks[i].settled && plan.blocks[i].bytes <= MIB) {
			settled++;
			CU_ASSERT(plan.blocks[i].rounds >= 1);
		}
	CU_ASSERT(settled > 20);
}

static void test_no_budget_no_rounds(void)
{
	build(EFFORT_QUICK, 0xfff, GIB);
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
	build(EFFORT_STANDARD, 7, GIB);
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
	build(EFFORT_STANDARD, 7, GIB);
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

/* Whoever wins at a spot check's size in any epoch goes on being checked: pairs of several epochs are what proves it.
 */
static void test_winners_are_spot_checked(void)
{
	struct dataset data = {0};

	NEEDS_KERNELS(3);
	build(EFFORT_STANDARD, 7, GIB);
	plan_race(&plan, &data);
	CU_ASSERT_EQUAL(find(BLOCK_SPOT, PC_CACHED, 2 * MIB)->kernels, 0); /* nobody measured, nobody checked */
	measure(&data, 2 * MIB, 0, 1000);
	measure(&data, 2 * MIB, 1, 1200);
	plan_race(&plan, &data);
	CU_ASSERT_EQUAL(find(BLOCK_SPOT, PC_CACHED, 2 * MIB)->kernels, 1);
	measure(&data, 2 * MIB, 2, 500);
	plan_race(&plan, &data);
	CU_ASSERT_EQUAL(find(BLOCK_SPOT, PC_CACHED, 2 * MIB)->kernels, 5);
	CU_ASSERT_EQUAL(find(BLOCK_SPOT, PC_CACHED, 8 * MIB)->kernels, 0);
	dataset_clear(&data);
}

/* Everything disturbed but libc: the kernels of the policy in force do not make a field of it. */
static void test_the_policys_kernels_are_no_field(void)
{
	struct dataset data = {0};

	NEEDS_KERNELS(3);
	build(EFFORT_STANDARD, 7, GIB);
	plan.keep = 2;
	measure(&data, MIB, 0, 1000);
	plan_race(&plan, &data);
	CU_ASSERT_EQUAL(find(BLOCK_CLEAR, PC_FLUSHED, 128 * MIB)->kernels, 0);
	CU_ASSERT_EQUAL(find(BLOCK_SCRUB, PC_FLUSHED, 64 * KIB)->kernels, 0);
	measure(&data, MIB, 2, 900);
	plan_race(&plan, &data);
	CU_ASSERT_EQUAL(find(BLOCK_CLEAR, PC_FLUSHED, 128 * MIB)->kernels, 7); /* they come along */
	dataset_clear(&data);
}

static void test_libc_alone_is_a_field(void)
{
	struct dataset data = {0};

	build(EFFORT_STANDARD, 0, GIB);
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
	{"several threads", test_several_threads},
	{"threads are dropped", test_threads_are_dropped},
	{"spot checks", test_spot_checks},
	{"sizes are added", test_sizes_are_added},
	{"an epoch fills its budget", test_an_epoch_fills_its_budget},
	{"what is owed is paid", test_what_is_owed_is_paid},
	{"costs far from the estimate", test_costs_far_from_the_estimate},
	{"time goes where decisions are open", test_time_goes_where_decisions_are_open},
	{"no budget no rounds", test_no_budget_no_rounds},
	{"rounds not taken teach nothing", test_rounds_not_taken_teach_nothing},
	{"the race narrows blocks", test_the_race_narrows_blocks},
	{"finalists are chosen once somebody was heard", test_finalists_are_chosen_once_somebody_was_heard},
	{"winners are spot checked", test_winners_are_spot_checked},
	{"the policy's kernels are no field", test_the_policys_kernels_are_no_field},
	{"libc alone is a field", test_libc_alone_is_a_field},
};

UNIT_MAIN("plan", tests)
