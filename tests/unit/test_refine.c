/* What is still open, and which sizes a bracket gets. */
#include "calibrd/refine.h"

#include "tests/unit/by_hand.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

enum { EPOCHS = 3, ROUNDS = 40 };

static struct plan plan;

static void build(unsigned threads)
{
	plan_build(&plan, EFFORT_STANDARD,
	           &(struct plan_means){.kernels = 7,
	                                .memory_bytes = 256 * MIB,
	                                .base_bytes = 1 * MIB,
	                                .threads = threads,
	                                .crew_bytes = 64 * MIB});
}

static struct block *find(enum block_kind kind, enum pc_prior prior, uint64_t bytes)
{
	for (size_t i = 0; i < plan.count; i++)
		if (plan.blocks[i].kind == kind && plan.blocks[i].prior == prior && plan.blocks[i].bytes == bytes &&
		    plan.blocks[i].threads == 1)
			return &plan.blocks[i];
	return NULL;
}

/* libc takes 1000 ns, the kernel so many times that; spread: how far its rounds scatter about it, up and down alike. */
static void put_spread(struct dataset *data, enum phase phase, enum pc_prior prior, uint64_t bytes, unsigned kernel,
                       double factor, double spread)
{
	for (unsigned epoch = 0; epoch < EPOCHS; epoch++)
		for (unsigned round = 0; round < ROUNDS; round++)
			put(data, (struct where){phase, prior, bytes}, kernel, epoch, round,
			    1000 * factor * exp(spread * ((round % 8) - 3.5) / 3.5));
}

static void put_size(struct dataset *data, enum pc_prior prior, uint64_t bytes, double factor, double spread)
{
	for (enum phase phase = PHASE_CLEAR; phase <= PHASE_READ; phase++) {
		put_spread(data, phase, prior, bytes, 0, 1, 0);
		put_spread(data, phase, prior, bytes, 1, factor, spread);
	}
}

static void take_all(void)
{
	for (size_t i = 0; i < plan.count; i++)
		plan.blocks[i].taken = 100;
}

static void test_a_plain_difference_is_settled(void)
{
	struct dataset data = {0};

	NEEDS_KERNELS(3);
	build(0);
	for (uint64_t bytes = 64 * KIB; bytes <= MIB; bytes *= 2)
		put_size(&data, PC_FLUSHED, bytes, 0.5, 0.05);
	take_all();
	CU_ASSERT_EQUAL(refine(&plan, &data, 0.1), 0);
	for (uint64_t bytes = 64 * KIB; bytes <= MIB; bytes *= 2)
		CU_ASSERT_TRUE(find(BLOCK_CLEAR, PC_FLUSHED, bytes)->settled);
	CU_ASSERT_TRUE(refine_is_settled(&plan));
	dataset_clear(&data);
}

/* Rounds between half and twice libc's time: whether that is a gain or a loss nobody can say yet. */
static void test_a_wide_interval_is_open(void)
{
	struct dataset data = {0};

	NEEDS_KERNELS(3);
	build(0);
	for (uint64_t bytes = 64 * KIB; bytes <= MIB; bytes *= 2)
		put_size(&data, PC_FLUSHED, bytes, bytes == 256 * KIB ? 1 : 0.5, bytes == 256 * KIB ? 0.7 : 0.05);
	take_all();
	CU_ASSERT_EQUAL(refine(&plan, &data, 0.1), 0);
	CU_ASSERT_FALSE(find(BLOCK_CLEAR, PC_FLUSHED, 256 * KIB)->settled);
	CU_ASSERT_TRUE(find(BLOCK_CLEAR, PC_FLUSHED, 64 * KIB)->settled);
	CU_ASSERT_TRUE(find(BLOCK_CLEAR, PC_CACHED, 256 * KIB)->settled); /* another prior, another question */
	CU_ASSERT_FALSE(refine_is_settled(&plan));
	dataset_clear(&data);
}

static void test_what_was_hardly_taken_is_open(void)
{
	struct dataset data = {0};

	build(0);
	CU_ASSERT_EQUAL(refine(&plan, &data, 0.1), 0);
	CU_ASSERT_FALSE(refine_is_settled(&plan));
	take_all();
	CU_ASSERT_EQUAL(refine(&plan, &data, 0.1), 0);
	CU_ASSERT_TRUE(refine_is_settled(&plan)); /* nothing was measured that could be open */
	find(BLOCK_CLEAR, PC_FLUSHED, 256 * MIB)->taken = 1;
	CU_ASSERT_EQUAL(refine(&plan, &data, 0.1), 0);
	CU_ASSERT_FALSE(refine_is_settled(&plan));
	plan.count = 0;
	CU_ASSERT_FALSE(refine_is_settled(&plan)); /* nothing asked is nothing known */
}

/* Rounds that were all disturbed say nothing, however many: until there have been so many that no more will help. */
static void test_disturbed_rounds_settle_nothing(void)
{
	struct dataset data = {0};

	build(0);
	take_all();
	find(BLOCK_CLEAR, PC_FLUSHED, 64 * KIB)->taken = 10;
	CU_ASSERT_EQUAL(refine(&plan, &data, 0.1), 0);
	CU_ASSERT_FALSE(find(BLOCK_CLEAR, PC_FLUSHED, 64 * KIB)->settled);
	CU_ASSERT_TRUE(find(BLOCK_CLEAR, PC_FLUSHED, 128 * KIB)->settled);
	put_size(&data, PC_FLUSHED, 64 * KIB, 1.5, 0.05);
	CU_ASSERT_EQUAL(refine(&plan, &data, 0.1), 0);
	CU_ASSERT_TRUE(find(BLOCK_CLEAR, PC_FLUSHED, 64 * KIB)->settled);
	dataset_clear(&data);
}

/* Twice as slow up to 1 MiB, half from 2 MiB on: four sizes between, of that prior, with both rivals. */
static void test_a_bracket_is_divided(void)
{
	struct dataset data = {0};
	unsigned between = 0;
	size_t count;

	NEEDS_KERNELS(3);
	build(0);
	count = plan.count;
	for (uint64_t bytes = 64 * KIB; bytes <= 16 * MIB; bytes *= 2)
		put_size(&data, PC_FLUSHED, bytes, bytes <= MIB ? 2 : 0.5, 0.05);
	take_all();
	CU_ASSERT_EQUAL(refine(&plan, &data, 0.1), 0);
	for (size_t i = count; i < plan.count; i++) {
		const struct block *block = &plan.blocks[i];

		CU_ASSERT(block->bytes > MIB && block->bytes < 2 * MIB);
		CU_ASSERT_EQUAL(block->bytes % 4096, 0);
		CU_ASSERT_EQUAL(block->prior, PC_FLUSHED);
		CU_ASSERT_EQUAL(block->kernels, 3);
		CU_ASSERT_EQUAL(block->field, FIELD_GIVEN);
		between++;
	}
	CU_ASSERT(between >= 3 && between <= 4); /* 1.5 MiB may be one of them, which the grid has */
	count = plan.count;
	CU_ASSERT_EQUAL(refine(&plan, &data, 0.1), 0);
	CU_ASSERT_EQUAL(plan.count, count); /* the same again adds nothing */
	dataset_clear(&data);
}

/* An eighth of an octave is hardly more than what one size speaks for. */
static void test_narrow_brackets_stay(void)
{
	struct dataset data = {0};
	size_t count;

	NEEDS_KERNELS(3);
	build(0);
	count = plan.count;
	for (uint64_t eighth = 8; eighth <= 24; eighth++)
		put_size(&data, PC_FLUSHED, eighth * 128 * KIB, eighth <= 16 ? 2 : 0.5, 0.05);
	CU_ASSERT_EQUAL(refine(&plan, &data, 0.1), 0);
	CU_ASSERT_EQUAL(plan.count, count);
	dataset_clear(&data);
}

static const struct unit_test tests[] = {
	{"a plain difference is settled", test_a_plain_difference_is_settled},
	{"a wide interval is open", test_a_wide_interval_is_open},
	{"what was hardly taken is open", test_what_was_hardly_taken_is_open},
	{"disturbed rounds settle nothing", test_disturbed_rounds_settle_nothing},
	{"a bracket is divided", test_a_bracket_is_divided},
	{"narrow brackets stay", test_narrow_brackets_stay},
};

UNIT_MAIN("refine", tests)
