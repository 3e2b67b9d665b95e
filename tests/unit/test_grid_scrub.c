/* What a scrub costs, by hand: design section 1. */
#include "calibrd/grid.h"

#include "pageclear/policy.h"
#include "tests/unit/grids.h"

static void put_victims(struct dataset *data, unsigned kernel, const double *ns)
{
	for (unsigned epoch = 0; epoch < EPOCHS; epoch++)
		for (unsigned round = 0; round < ROUNDS; round++)
			for (unsigned v = 0; v < 3; v++)
				put(data, (struct where){PHASE_VICTIM_L1 + v, PC_FLUSHED, 65536}, kernel, epoch, round,
				    ns[v]);
}

/* The last-level victim is not asked for small extents: it counts as not displaced. */
static void test_scrub_without_the_last_level(void)
{
	struct dataset data = {0};
	struct grid grid;

	NEEDS_KERNELS(2);
	for (unsigned k = 0; k < 2; k++) {
		put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, 65536, k, 1000);
		for (unsigned round = 0; round < ROUNDS; round++) {
			put(&data, (struct where){PHASE_VICTIM_L1, PC_FLUSHED, 65536}, k, 0, round, k == 0 ? 100 : 10);
			put(&data, (struct where){PHASE_VICTIM_L2, PC_FLUSHED, 65536}, k, 0, round, 200);
		}
	}
	CU_ASSERT_EQUAL_FATAL(build(&grid, &data, PAGECLEAR_SCRUB, PC_UNKNOWN), 0);
	CU_ASSERT_DOUBLE_EQUAL(grid_cell(&grid, 0, 1)->l, -90.0 / (115 + 300), 1e-4);
	grid_free(&grid);
	dataset_clear(&data);
}

static void scrub_case(const double *libc, const double *kernel, double clear, double expected, double ratio)
{
	struct dataset data = {0};
	struct grid grid;
	struct cell *cell;

	/* Clears of 1000 and `clear` ns: medians of what put_rounds() makes of them are 1.15 times as much. */
	put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, 65536, 0, 1000 / 1.15);
	put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, 65536, 1, clear / 1.15);
	put_victims(&data, 0, libc);
	put_victims(&data, 1, kernel);
	CU_ASSERT_EQUAL_FATAL(build(&grid, &data, PAGECLEAR_SCRUB, PC_UNKNOWN), 0);
	cell = grid_cell(&grid, 0, 1);
	CU_ASSERT_DOUBLE_EQUAL(cell->l, expected, 1e-4);
	CU_ASSERT_DOUBLE_EQUAL(cell->ratio, ratio, 1e-4);
	CU_ASSERT_EQUAL(cell->forbidden, expected > 0.03);
	grid_free(&grid);
	dataset_clear(&data);
}

/* (S_k - S_libc) / (w C_libc + max(0, D_libc)) with w = 0.1. */
static void test_scrub_costs(void)
{
	NEEDS_KERNELS(2);
	/* S: 100 + 400 and 200 + 50. */
	scrub_case((double[]){100, 200, 100}, (double[]){10, 30, 10}, 2000, -250.0 / 500, 500.0 / 250);
	/* Victims that got faster: S: 100 - 60 and 200 - 300; only libc's clear is left to divide by. */
	scrub_case((double[]){-10, -30, -20}, (double[]){-100, -100, -100}, 2000, -140.0 / 100, 340.0 / 200);
	/* A slower clear that displaces as much. */
	scrub_case((double[]){100, 200, 100}, (double[]){100, 200, 100}, 2000, 100.0 / 500, 500.0 / 600);
}

/* A victim that one of the two was asked about alone, the other's rounds having been disturbed, counts for neither. */
static void test_scrub_compares_by_the_same_victims(void)
{
	static const double libc[3] = {100, 200, 1000}, better[3] = {50, 100, 900};
	struct dataset data = {0};
	struct grid grid;

	NEEDS_KERNELS(3);
	for (unsigned k = 0; k < 3; k++)
		put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, 65536, k, 1000);
	put_victims(&data, 0, libc);
	put_victims(&data, 2, better);
	put_epochs(&data, PHASE_VICTIM_L1, PC_FLUSHED, 65536, 1, 100); /* no better than libc */
	put_epochs(&data, PHASE_VICTIM_L2, PC_FLUSHED, 65536, 1, 200);
	CU_ASSERT_EQUAL_FATAL(build(&grid, &data, PAGECLEAR_SCRUB, PC_UNKNOWN), 0);
	CU_ASSERT_FALSE(grid_cell(&grid, 0, 1)->measured);
	CU_ASSERT_DOUBLE_EQUAL(grid_cell(&grid, 0, 2)->l, -250.0 / (115 + 1300), 1e-4);
	grid_free(&grid);
	dataset_clear(&data);
}

static void test_scrub_without_libcs_last_level(void)
{
	static const double kernel[3] = {100, 200, 1000};
	struct dataset data = {0};
	struct grid grid;

	NEEDS_KERNELS(2);
	for (unsigned k = 0; k < 2; k++)
		put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, 65536, k, 1000);
	put_victims(&data, 1, kernel);
	for (unsigned epoch = 0; epoch < EPOCHS; epoch++)
		for (unsigned round = 0; round < ROUNDS; round++)
			for (unsigned v = 0; v < 2; v++)
				put(&data, (struct where){PHASE_VICTIM_L1 + v, PC_FLUSHED, 65536}, 0, epoch, round,
				    kernel[v]);
	CU_ASSERT_EQUAL_FATAL(build(&grid, &data, PAGECLEAR_SCRUB, PC_UNKNOWN), 0);
	NEAR(grid_cell(&grid, 0, 1)->l, 0);
	NEAR(grid_cell(&grid, 0, 1)->ratio, 1);
	grid_free(&grid);
	dataset_clear(&data);
}

/* libc's clears take as long in each epoch, the kernel's 1000, 1000 and 400 ns more: an epoch's own median counts. */
static void test_scrub_takes_each_epochs_own_clears(void)
{
	static const double none[3] = {0, 0, 0}, more[EPOCHS] = {1000, 1000, 400};
	struct dataset data = {0};
	struct grid grid;

	NEEDS_KERNELS(2);
	put_victims(&data, 0, none);
	put_victims(&data, 1, none);
	for (unsigned epoch = 0; epoch < EPOCHS; epoch++)
		for (unsigned round = 0; round < ROUNDS; round++) {
			struct where where = {PHASE_CLEAR, PC_FLUSHED, 65536};

			put(&data, where, 0, epoch, round, 1000);
			put(&data, where, 1, epoch, round, 1000 + more[epoch]);
		}
	CU_ASSERT_EQUAL_FATAL(build(&grid, &data, PAGECLEAR_SCRUB, PC_UNKNOWN), 0);
	for (unsigned epoch = 0; epoch < EPOCHS; epoch++)
		CU_ASSERT_DOUBLE_EQUAL(grid_cell(&grid, 0, 1)->epoch[epoch], more[epoch] / 1000, 1e-4);
	grid_free(&grid);
	dataset_clear(&data);
}

/* Whatever is displaced and whatever clearing weighs, people and policy.yaml see a number. */
static void scrub_ratio_case(double weight, const double *libc, const double *kernel, double expected)
{
	struct dataset data = {0};
	struct grid grid;

	for (unsigned k = 0; k < 2; k++) {
		put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, 65536, k, 1000);
		put_victims(&data, k, k == 0 ? libc : kernel);
	}
	CU_ASSERT_EQUAL_FATAL(grid_build(&grid, &data, PAGECLEAR_SCRUB, PC_UNKNOWN, 1, 3, weight), 0);
	CU_ASSERT_TRUE(isfinite(grid_cell(&grid, 0, 1)->l));
	NEAR(grid_cell(&grid, 0, 1)->ratio, expected);
	grid_free(&grid);
	dataset_clear(&data);
}

static void test_scrub_ratios_are_numbers(void)
{
	static const double nothing[3] = {0, 0, 0}, some[3] = {1, 2, 1}, much[3] = {100, 200, 100},
			    negative[3] = {-100, -200, -100}, huge[3] = {1e6, 1e6, 1e6};

	NEEDS_KERNELS(2);
	scrub_ratio_case(0, much, nothing, 100); /* divided by nothing */
	scrub_ratio_case(0, much, much, 1);
	scrub_ratio_case(0, much, some, 100);
	scrub_ratio_case(0, some, huge, 0.01);
	scrub_ratio_case(0, much, negative, 100);
	scrub_ratio_case(1e-6, nothing, much, 0.01);
	scrub_ratio_case(1e-6, negative, much, 0.01);
}

/* Weight 0 and nothing displaced: no measure, so no cell, rather than one without a number. */
static void test_scrub_without_a_measure(void)
{
	static const double nothing[3] = {0, 0, 0}, much[3] = {100, 200, 100};
	struct dataset data = {0};
	struct grid grid;

	NEEDS_KERNELS(2);
	for (unsigned k = 0; k < 2; k++) {
		put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, 65536, k, 1000);
		put_victims(&data, k, k == 0 ? nothing : much);
	}
	CU_ASSERT_EQUAL(grid_build(&grid, &data, PAGECLEAR_SCRUB, PC_UNKNOWN, 1, 3, 0), 1);
	dataset_clear(&data);
}

static void test_scrub_needs_clear_and_victims(void)
{
	static const double none[3] = {0, 0, 0};
	struct dataset data = {0};
	struct grid grid;

	put_victims(&data, 0, none);
	CU_ASSERT_EQUAL(build(&grid, &data, PAGECLEAR_SCRUB, PC_UNKNOWN), 1);
	put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, 65536, 0, 1000);
	CU_ASSERT_EQUAL_FATAL(build(&grid, &data, PAGECLEAR_SCRUB, PC_UNKNOWN), 0);
	CU_ASSERT_EQUAL(grid.sizes, 1);
	grid_free(&grid);
	dataset_clear(&data);
}

static const struct unit_test tests[] = {
	{"scrub costs", test_scrub_costs},
	{"scrub without the last level", test_scrub_without_the_last_level},
	{"scrub compares by the same victims", test_scrub_compares_by_the_same_victims},
	{"scrub without libc's last level", test_scrub_without_libcs_last_level},
	{"scrub takes each epoch's own clears", test_scrub_takes_each_epochs_own_clears},
	{"scrub ratios are numbers", test_scrub_ratios_are_numbers},
	{"scrub without a measure", test_scrub_without_a_measure},
	{"scrub needs clear and victims", test_scrub_needs_clear_and_victims},
};

UNIT_MAIN("grid_scrub", tests)
