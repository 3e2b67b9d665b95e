/* From series to costs and pairs: what is added to what, what is left out, and the two-level median. */
#include "calibrd/costs.h"

#include "calibrd/plan.h"
#include "calibrd/pool.h"
#include "calibrd/stats.h"
#include "tests/unit/by_hand.h"

static struct cost_points points;

static const struct where clear = {PHASE_CLEAR, PC_FLUSHED, 4096}, read_after = {PHASE_READ, PC_FLUSHED, 4096},
			  single = {PHASE_SINGLE, PC_FLUSHED, 4096};

static struct cost_key key(enum cost_kind kind)
{
	return (struct cost_key){kind, PC_FLUSHED, 4096, 1};
}

static void test_nothing_was_measured(void)
{
	struct dataset data = {0};
	struct cost_key wanted = key(COST_HOT);

	costs_of(&data, &wanted, 0, &points);
	CU_ASSERT_EQUAL(points.count, 0);
	costs_paired(&data, &wanted, 0, 0, &points);
	CU_ASSERT_EQUAL(points.count, 0);
	CU_ASSERT(isnan(costs_ns(&data, &wanted, 0)));
}

static void test_hot_is_clear_and_read_of_the_same_round(void)
{
	struct dataset data = {0};
	struct cost_key hot = key(COST_HOT), cold = key(COST_CLEAR);

	put(&data, clear, 0, 0, 0, 100);
	put(&data, clear, 0, 0, 1, 200); /* its read is missing */
	put(&data, clear, 0, 0, 3, 300);
	put(&data, clear, 0, 1, 0, 400);
	put(&data, read_after, 0, 0, 0, 1);
	put(&data, read_after, 0, 0, 2, 2); /* its clear is missing */
	put(&data, read_after, 0, 0, 3, 3);
	put(&data, read_after, 0, 1, 0, 4);
	costs_of(&data, &hot, 0, &points);
	CU_ASSERT_EQUAL_FATAL(points.count, 3);
	CU_ASSERT_EQUAL(points.value[0], 101);
	CU_ASSERT_EQUAL(points.value[1], 303);
	CU_ASSERT_EQUAL(points.value[2], 404);
	CU_ASSERT_EQUAL(points.round[1], 3);
	CU_ASSERT_EQUAL(points.epoch[2], 1);
	costs_of(&data, &cold, 0, &points);
	CU_ASSERT_EQUAL(points.count, 4);
	dataset_clear(&data);
}

static void test_conditions_are_kept_apart(void)
{
	struct dataset data = {0};
	struct cost_key wanted = key(COST_CLEAR);

	put(&data, clear, 0, 0, 0, 100);
	put(&data, single, 0, 0, 0, 700);
	put(&data, (struct where){PHASE_CLEAR, PC_CACHED, 4096}, 0, 0, 0, 10);
	put(&data, (struct where){PHASE_CLEAR, PC_FLUSHED, 8192}, 0, 0, 0, 200);
	CU_ASSERT_EQUAL(costs_ns(&data, &wanted, 0), 100);
	wanted.kind = COST_SINGLE;
	CU_ASSERT_EQUAL(costs_ns(&data, &wanted, 0), 700);
	wanted = (struct cost_key){COST_CLEAR, PC_CACHED, 4096, 1};
	CU_ASSERT_EQUAL(costs_ns(&data, &wanted, 0), 10);
	wanted.threads = 2;
	CU_ASSERT(isnan(costs_ns(&data, &wanted, 0)));
	dataset_clear(&data);
}

static void test_huge_pages_stand_in_for_base_ones(void)
{
	struct dataset data = {0};
	struct series_key huge = {
		.bytes = 4096, .threads = 1, .prior = PC_FLUSHED, .phase = PHASE_CLEAR, .page = PAGE_HUGE};
	struct round_value value = {50, 0, 0};
	struct cost_key wanted = key(COST_CLEAR);

	CU_ASSERT_EQUAL_FATAL(dataset_add(&data, &huge, &value, false), 0);
	CU_ASSERT_EQUAL(costs_ns(&data, &wanted, 0), 50);
	put(&data, clear, 0, 0, 0, 100);
	CU_ASSERT_EQUAL(costs_ns(&data, &wanted, 0), 100);
	dataset_clear(&data);
}

static void test_pairs_are_of_one_round(void)
{
	struct dataset data = {0};
	struct cost_key wanted = key(COST_CLEAR);

	NEEDS_KERNELS(2);
	put(&data, clear, 0, 0, 0, 100);
	put(&data, clear, 0, 0, 2, 100);
	put(&data, clear, 0, 1, 0, 100);
	put(&data, clear, 1, 0, 0, 50);
	put(&data, clear, 1, 0, 1, 1);
	put(&data, clear, 1, 1, 0, 200);
	put(&data, clear, 1, 1, 1, 1);
	costs_paired(&data, &wanted, 1, 0, &points);
	CU_ASSERT_EQUAL_FATAL(points.count, 2);
	NEAR(points.value[0], -M_LN2);
	NEAR(points.value[1], M_LN2);
	CU_ASSERT_EQUAL(points.epoch[1], 1);
	costs_paired(&data, &wanted, 0, 1, &points);
	NEAR(points.value[0], M_LN2);
	dataset_clear(&data);
}

/* A time of 0 (below what the clock resolves) has no logarithm. */
static void test_zeros_are_left_out(void)
{
	struct dataset data = {0};
	struct cost_key wanted = key(COST_CLEAR);

	NEEDS_KERNELS(2);
	for (unsigned round = 0; round < 3; round++) {
		put(&data, clear, 0, 0, round, round == 0 ? 0 : 100);
		put(&data, clear, 1, 0, round, round == 1 ? 0 : 100);
	}
	costs_paired(&data, &wanted, 1, 0, &points);
	CU_ASSERT_EQUAL(points.count, 1);
	NEAR(points.value[0], 0);
	dataset_clear(&data);
}

/* Median of the epochs' medians: an epoch with many rounds weighs no more than one with few. */
static void test_centre_is_a_median_of_medians(void)
{
	struct dataset data = {0};
	struct cost_key wanted = key(COST_CLEAR);
	double by_epoch[COST_EPOCHS];

	for (unsigned round = 0; round < 50; round++)
		put(&data, clear, 0, 0, round, 1000);
	put(&data, clear, 0, 2, 0, 10);
	put(&data, clear, 0, 2, 1, 20);
	put(&data, clear, 0, 2, 2, 90);
	put(&data, clear, 0, 5, 0, 30);
	costs_of(&data, &wanted, 0, &points);
	CU_ASSERT_EQUAL(costs_centre(&points, by_epoch), 30);
	CU_ASSERT_EQUAL(by_epoch[0], 1000);
	CU_ASSERT(isnan(by_epoch[1]));
	CU_ASSERT_EQUAL(by_epoch[2], 20);
	CU_ASSERT_EQUAL(by_epoch[5], 30);
	CU_ASSERT(isnan(by_epoch[6]) && isnan(by_epoch[COST_EPOCHS - 1]));
	CU_ASSERT_EQUAL(costs_ns(&data, &wanted, 0), 30);
	dataset_clear(&data);
}

/* Whatever the calibrations that a policy is decided from hold of one series. */
static void test_all_that_is_pooled_fits(void)
{
	for (unsigned effort = 0; effort < EFFORTS; effort++) {
		CU_ASSERT(POOL_MOST * effort_limits[effort].epochs * (PLAN_ROUNDS_MOST + 1) <= COST_POINTS);
		CU_ASSERT(POOL_MOST * effort_limits[effort].epochs <= COST_EPOCHS);
	}
}

/* More rounds than there is room for, and more epochs: the first ones count, nothing is overrun. */
static void test_more_than_fits(void)
{
	struct dataset data = {0};
	struct cost_key wanted = key(COST_CLEAR);

	for (unsigned i = 0; i < COST_POINTS + 100; i++)
		put(&data, clear, 0, i / 50, i % 50, 100);
	costs_of(&data, &wanted, 0, &points);
	CU_ASSERT_EQUAL(points.count, COST_POINTS);
	CU_ASSERT_EQUAL(costs_centre(&points, NULL), 100);
	dataset_clear(&data);
}

static const struct unit_test tests[] = {
	{"nothing was measured", test_nothing_was_measured},
	{"all that is pooled fits", test_all_that_is_pooled_fits},
	{"hot is clear and read of the same round", test_hot_is_clear_and_read_of_the_same_round},
	{"conditions are kept apart", test_conditions_are_kept_apart},
	{"huge pages stand in for base ones", test_huge_pages_stand_in_for_base_ones},
	{"pairs are of one round", test_pairs_are_of_one_round},
	{"zeros are left out", test_zeros_are_left_out},
	{"centre is a median of medians", test_centre_is_a_median_of_medians},
	{"more than fits", test_more_than_fits},
};

UNIT_MAIN("costs", tests)
