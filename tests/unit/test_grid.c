/* Cells by hand: the costs of design section 1 and the limits of section 7. */
#include "calibrd/grid.h"

#include "pageclear/policy.h"
#include "tests/unit/grids.h"

/* --- sizes ------------------------------------------------------------------------------------------------------- */

static void test_nothing_measured_is_no_grid(void)
{
	struct dataset data = {0};
	struct grid grid;

	CU_ASSERT_EQUAL(build(&grid, &data, PAGECLEAR_COLD, PC_FLUSHED), 1);
	put_epochs(&data, PHASE_CLEAR, PC_CACHED, 4096, 0, 100);
	CU_ASSERT_EQUAL(build(&grid, &data, PAGECLEAR_COLD, PC_FLUSHED), 1);
	CU_ASSERT_EQUAL(build(&grid, &data, PAGECLEAR_COLD, PC_UNKNOWN), 1);
	CU_ASSERT_EQUAL(build(&grid, &data, PAGECLEAR_HOT, PC_CACHED), 1);
	CU_ASSERT_EQUAL(build(&grid, &data, PAGECLEAR_SCRUB, PC_UNKNOWN), 1);
	CU_ASSERT_EQUAL_FATAL(build(&grid, &data, PAGECLEAR_COLD, PC_CACHED), 0);
	CU_ASSERT_EQUAL(grid.sizes, 1);
	CU_ASSERT_EQUAL(grid.width[0], 1);
	grid_free(&grid);
	dataset_clear(&data);
}

/* Series are sorted by phase and prior first: sizes must come out ascending and once all the same. */
static void test_sizes_ascend(void)
{
	static const uint64_t sizes[] = {1024, 2048, 4096, 6144, 8192, 16384};
	struct dataset data = {0};
	struct grid grid;

	for (size_t i = 0; i < 6; i++) {
		put_epochs(&data, PHASE_CLEAR, i % 2 ? PC_CACHED : PC_FLUSHED, sizes[i], 0, 100);
		put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, sizes[5 - i], 0, 100);
		put_epochs(&data, PHASE_READ, PC_FLUSHED, sizes[i], 0, 100);
	}
	CU_ASSERT_EQUAL_FATAL(build(&grid, &data, PAGECLEAR_COLD, PC_FLUSHED), 0);
	CU_ASSERT_EQUAL_FATAL(grid.sizes, 6);
	for (size_t i = 0; i < 6; i++)
		CU_ASSERT_EQUAL(grid.bytes[i], sizes[i]);
	grid_free(&grid);
	CU_ASSERT_EQUAL_FATAL(build(&grid, &data, PAGECLEAR_COLD, PC_UNKNOWN), 0);
	CU_ASSERT_EQUAL(grid.sizes, 3);
	CU_ASSERT_EQUAL(grid.bytes[2], 16384);
	grid_free(&grid);
	dataset_clear(&data);
}

/* Octaves to both neighbours, halved; an end reaches as far out as it does in. */
static void test_widths(void)
{
	static const uint64_t sizes[] = {1024, 2048, 16384, 32768};
	struct dataset data = {0};
	struct grid grid;

	for (size_t i = 0; i < 4; i++)
		put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, sizes[i], 0, 100);
	CU_ASSERT_EQUAL_FATAL(build(&grid, &data, PAGECLEAR_COLD, PC_FLUSHED), 0);
	NEAR(grid.width[0], 1);
	NEAR(grid.width[1], 2);
	NEAR(grid.width[2], 2);
	NEAR(grid.width[3], 1);
	grid_free(&grid);
	dataset_clear(&data);
}

/* --- cells ------------------------------------------------------------------------------------------------------- */

static void test_l_is_the_median_epoch(void)
{
	static const double ratio[EPOCHS] = {0.5, 0.8, 0.25};
	struct dataset data = {0};
	struct where where = {PHASE_CLEAR, PC_FLUSHED, 4096};
	struct grid grid;

	NEEDS_KERNELS(3);
	put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, 4096, 0, 1000);
	for (unsigned epoch = 0; epoch < EPOCHS; epoch++)
		put_rounds(&data, where, 1, epoch, ROUNDS, 1000 * ratio[epoch]);
	CU_ASSERT_EQUAL_FATAL(build(&grid, &data, PAGECLEAR_COLD, PC_FLUSHED), 0);
	NEAR(grid_cell(&grid, 0, 1)->l, log(0.5));
	NEAR(grid_cell(&grid, 0, 1)->ratio, 2);
	NEAR(grid_cell(&grid, 0, 1)->epoch[2], log(0.25));
	CU_ASSERT(isnan(grid_cell(&grid, 0, 1)->epoch[3]));
	CU_ASSERT_EQUAL(grid_cell(&grid, 0, 1)->count, EPOCHS * ROUNDS);
	CU_ASSERT_EQUAL(grid_cell(&grid, 0, 0)->l, 0);
	CU_ASSERT_FALSE(grid_cell(&grid, 0, 2)->measured);
	CU_ASSERT_EQUAL(grid.epochs, EPOCHS);
	/* Deviations from ln 0.5: 0, 0.470, 0.693; 1.4826 times their median. */
	NEAR(grid.sigma, 1.4826 * log(0.8 / 0.5));
	grid_free(&grid);
	dataset_clear(&data);
}

/* A size at which libc alone, or with too few rounds of anyone else, was measured decides nothing. */
static void test_sizes_without_rivals_are_left_out(void)
{
	struct dataset data = {0};
	struct grid grid;

	NEEDS_KERNELS(2);
	for (uint64_t bytes = 1024; bytes <= 8192; bytes *= 2)
		put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, bytes, 0, 1000);
	put_rounds(&data, (struct where){PHASE_CLEAR, PC_FLUSHED, 1024}, 1, 0, 3, 500);
	put_rounds(&data, (struct where){PHASE_CLEAR, PC_FLUSHED, 4096}, 1, 0, 2, 500);
	put_rounds(&data, (struct where){PHASE_CLEAR, PC_FLUSHED, 8192}, 1, 0, 4, 250);
	CU_ASSERT_EQUAL_FATAL(build(&grid, &data, PAGECLEAR_COLD, PC_FLUSHED), 0);
	CU_ASSERT_EQUAL_FATAL(grid.sizes, 2);
	CU_ASSERT_EQUAL(grid.bytes[1], 8192);
	NEAR(grid_cell(&grid, 0, 1)->l, log(0.5));
	NEAR(grid_cell(&grid, 1, 1)->l, log(0.25));
	NEAR(grid.width[1], 3);
	grid_free(&grid);
	dataset_clear(&data);
}

static void test_only_kernels_of_the_mask(void)
{
	struct dataset data = {0};
	struct grid grid;

	NEEDS_KERNELS(3);
	for (unsigned k = 0; k < 3; k++)
		put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, 4096, k, 1000);
	CU_ASSERT_EQUAL_FATAL(grid_build(&grid, &data, PAGECLEAR_COLD, PC_FLUSHED, 1, 4, 0.1), 0);
	CU_ASSERT_TRUE(grid_cell(&grid, 0, 0)->measured);
	CU_ASSERT_FALSE(grid_cell(&grid, 0, 1)->measured);
	CU_ASSERT_TRUE(grid_cell(&grid, 0, 2)->measured);
	grid_free(&grid);
	dataset_clear(&data);
}

static void test_surely_slower_is_forbidden(void)
{
	struct dataset data = {0};
	struct grid grid;

	NEEDS_KERNELS(4);
	put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, 4096, 0, 1000);
	put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, 4096, 1, 1020);
	put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, 4096, 2, 1040);
	/* Five pairs cannot be sure of anything at 95 %. */
	put_rounds(&data, (struct where){PHASE_CLEAR, PC_FLUSHED, 4096}, 3, 0, 5, 2000);
	CU_ASSERT_EQUAL_FATAL(build(&grid, &data, PAGECLEAR_COLD, PC_FLUSHED), 0);
	CU_ASSERT_FALSE(grid_cell(&grid, 0, 1)->forbidden);
	CU_ASSERT_TRUE(grid_cell(&grid, 0, 2)->forbidden);
	CU_ASSERT_FALSE(grid_cell(&grid, 0, 3)->forbidden);
	grid_free(&grid);
	dataset_clear(&data);
}

/* Twice as fast as libc, which at such a size is less than a look-up takes: no new rule, measured or interpolated. */
static void test_small_sizes_are_libcs(void)
{
	static const uint64_t sizes[] = {256, 512, 1000, 1024, 4096};
	struct dataset data = {0};
	struct grid grid;

	NEEDS_KERNELS(3);
	for (size_t i = 0; i < 5; i++) {
		put_epochs(&data, PHASE_CLEAR, PC_CACHED, sizes[i], 0, 100);
		put_epochs(&data, PHASE_CLEAR, PC_CACHED, sizes[i], 1, 50);
		if (i == 0 || i == 3) /* interpolated between */
			put_epochs(&data, PHASE_CLEAR, PC_CACHED, sizes[i], 2, 50);
	}
	CU_ASSERT_EQUAL_FATAL(build(&grid, &data, PAGECLEAR_COLD, PC_CACHED), 0);
	CU_ASSERT_EQUAL_FATAL(grid.sizes, 5);
	for (size_t i = 0; i < 5; i++) {
		CU_ASSERT_EQUAL(grid_cell(&grid, i, 1)->doubtful, sizes[i] < 1024);
		CU_ASSERT_FALSE(grid_cell(&grid, i, 1)->forbidden);
		CU_ASSERT_FALSE(grid_cell(&grid, i, 0)->doubtful);
	}
	CU_ASSERT_TRUE(grid_cell(&grid, 1, 2)->interpolated && grid_cell(&grid, 1, 2)->doubtful);
	grid_free(&grid);
	dataset_clear(&data);
}

/* --- interpolation ----------------------------------------------------------------------------------------------- */

/* Rows 0 and 1 everywhere, row 2 at 4 and 16 KiB alone: it takes `below` and `above` of libc's time there. */
static void put_gap(struct dataset *data, double below, double above)
{
	static const uint64_t sizes[] = {4096, 6144, 8192, 16384};

	for (size_t i = 0; i < 4; i++)
		for (unsigned k = 0; k < 2; k++)
			put_epochs(data, PHASE_CLEAR, PC_FLUSHED, sizes[i], k, 1000);
	put_epochs(data, PHASE_CLEAR, PC_FLUSHED, 4096, 2, 1000 * below);
	put_epochs(data, PHASE_CLEAR, PC_FLUSHED, 16384, 2, 1000 * above);
}

static void test_gaps_are_interpolated(void)
{
	const double share = log2(1.5) / 2; /* 6 KiB between 4 and 16 */
	struct dataset data = {0};
	struct grid grid;
	const struct cell *cell;

	NEEDS_KERNELS(4);
	put_gap(&data, 0.8, 0.2);
	put_rounds(&data, (struct where){PHASE_CLEAR, PC_FLUSHED, 4096}, 0, EPOCHS, ROUNDS, 1000);
	put_rounds(&data, (struct where){PHASE_CLEAR, PC_FLUSHED, 4096}, 2, EPOCHS, ROUNDS, 800);
	CU_ASSERT_EQUAL_FATAL(grid_build(&grid, &data, PAGECLEAR_COLD, PC_FLUSHED, 1, 15, 0.1), 0);
	CU_ASSERT_EQUAL_FATAL(grid.sizes, 4);
	cell = grid_cell(&grid, 1, 2);
	CU_ASSERT_TRUE(cell->measured && cell->interpolated);
	CU_ASSERT_FALSE(cell->forbidden || cell->doubtful || cell->unproven);
	CU_ASSERT_EQUAL(cell->count, 0);
	CU_ASSERT_PTR_NULL(cell->pairs);
	NEAR(cell->l, log(0.8) + share * log(0.25));
	NEAR(cell->ratio, exp(-cell->l));
	NEAR(cell->epoch[0], cell->l);
	CU_ASSERT(isnan(cell->epoch[EPOCHS])); /* seen on one side alone */
	NEAR(cell->interval.low, log(0.2));
	NEAR(cell->interval.high, log(0.8));
	NEAR(grid_cell(&grid, 2, 2)->l, log(0.4));
	CU_ASSERT_FALSE(grid_cell(&grid, 0, 2)->interpolated);
	CU_ASSERT_FALSE(grid_cell(&grid, 0, 3)->measured); /* nowhere measured, nowhere interpolated */
	grid_free(&grid);
	dataset_clear(&data);
}

static void test_no_interpolation_beyond_what_was_measured(void)
{
	struct dataset data = {0};
	struct grid grid;

	NEEDS_KERNELS(3);
	for (uint64_t bytes = 1024; bytes <= 65536; bytes *= 2)
		for (unsigned k = 0; k < 2; k++)
			put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, bytes, k, 1000);
	put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, 2048, 2, 500);
	put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, 16384, 2, 500);
	CU_ASSERT_EQUAL_FATAL(build(&grid, &data, PAGECLEAR_COLD, PC_FLUSHED), 0);
	for (size_t i = 0; i < grid.sizes; i++) /* three octaves are too far, and outside there is nothing */
		CU_ASSERT_EQUAL(grid_cell(&grid, i, 2)->measured, grid.bytes[i] == 2048 || grid.bytes[i] == 16384);
	grid_free(&grid);
	dataset_clear(&data);
}

static void test_interpolated_is_forbidden_only_between_two(void)
{
	NEEDS_KERNELS(3);
	for (int both = 0; both < 2; both++) {
		struct dataset data = {0};
		struct grid grid;

		put_gap(&data, 1.5, both ? 1.2 : 0.5);
		CU_ASSERT_EQUAL_FATAL(build(&grid, &data, PAGECLEAR_COLD, PC_FLUSHED), 0);
		CU_ASSERT_TRUE(grid_cell(&grid, 0, 2)->forbidden);
		CU_ASSERT_EQUAL(grid_cell(&grid, 1, 2)->forbidden, both);
		grid_free(&grid);
		dataset_clear(&data);
	}
}

/* Epochs that differ for the interpolated kernel at its own sizes count once, there. */
static void test_interpolation_adds_no_noise(void)
{
	double sigma[2];

	NEEDS_KERNELS(3);
	for (int gap = 0; gap < 2; gap++) {
		struct dataset data = {0};
		struct grid grid;

		for (uint64_t bytes = 4096; bytes <= 16384; bytes *= 2)
			for (unsigned e = 0; e < EPOCHS; e++) {
				struct where where = {PHASE_CLEAR, PC_FLUSHED, bytes};

				put_rounds(&data, where, 0, e, ROUNDS, 1000);
				put_rounds(&data, where, 1, e, ROUNDS, 1000 * exp(0.01 * e * e));
				if (bytes != 8192)
					put_rounds(&data, where, 2, e, ROUNDS, 1000 * exp(0.5 * e * e));
			}
		CU_ASSERT_EQUAL_FATAL(grid_build(&grid, &data, PAGECLEAR_COLD, PC_FLUSHED, 1, gap ? 7 : 3, 0.1), 0);
		CU_ASSERT_EQUAL(grid_cell(&grid, 1, 2)->interpolated, gap);
		sigma[gap] = grid.sigma;
		grid_free(&grid);
		dataset_clear(&data);
	}
	NEAR(sigma[0], 1.4826 * 0.01);
	NEAR(sigma[1], 1.4826 * 0.01); /* the median of 3 x 0.01 and 2 x 0.5, not of 3 and 3 */
}

/* --- the hot intent ---------------------------------------------------------------------------------------------- */

/* Twice as fast to clear, but the reader pays for it. */
static void test_hot_pays_for_the_first_read(void)
{
	struct dataset data = {0};
	struct grid grid;

	NEEDS_KERNELS(2);
	put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, 4096, 0, 1000);
	put_epochs(&data, PHASE_READ, PC_FLUSHED, 4096, 0, 500);
	put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, 4096, 1, 500);
	put_epochs(&data, PHASE_READ, PC_FLUSHED, 4096, 1, 2500);
	CU_ASSERT_EQUAL_FATAL(build(&grid, &data, PAGECLEAR_COLD, PC_FLUSHED), 0);
	NEAR(grid_cell(&grid, 0, 1)->l, log(0.5));
	grid_free(&grid);
	CU_ASSERT_EQUAL_FATAL(build(&grid, &data, PAGECLEAR_HOT, PC_FLUSHED), 0);
	NEAR(grid_cell(&grid, 0, 1)->l, log(2));
	CU_ASSERT_TRUE(grid_cell(&grid, 0, 1)->forbidden);
	grid_free(&grid);
	dataset_clear(&data);
}

/* --- asked in two ways ------------------------------------------------------------------------------------------- */

static void test_a_single_call_can_veto(void)
{
	struct dataset data = {0};
	struct grid grid;

	NEEDS_KERNELS(3);
	put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, 512, 0, 100);
	put_epochs(&data, PHASE_SINGLE, PC_FLUSHED, 512, 0, 300);
	put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, 512, 1, 50); /* wins in a row, loses alone */
	put_epochs(&data, PHASE_SINGLE, PC_FLUSHED, 512, 1, 450);
	put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, 512, 2, 80); /* wins both ways */
	put_epochs(&data, PHASE_SINGLE, PC_FLUSHED, 512, 2, 100);
	CU_ASSERT_EQUAL_FATAL(build(&grid, &data, PAGECLEAR_COLD, PC_FLUSHED), 0);
	NEAR(grid_cell(&grid, 0, 1)->l, log(1.5));
	CU_ASSERT_TRUE(grid_cell(&grid, 0, 1)->forbidden);
	NEAR(grid_cell(&grid, 0, 2)->l, log(0.8));
	CU_ASSERT_FALSE(grid_cell(&grid, 0, 2)->forbidden);
	CU_ASSERT_EQUAL(grid_cell(&grid, 0, 0)->l, 0);
	grid_free(&grid);
	dataset_clear(&data);
}

/* --- unknown prior ----------------------------------------------------------------------------------------------- */

static void unknown_case(double cached, double flushed, bool forbidden)
{
	struct dataset data = {0};
	struct grid grid;

	put_epochs(&data, PHASE_CLEAR, PC_CACHED, 4096, 0, 100);
	put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, 4096, 0, 1000);
	put_epochs(&data, PHASE_CLEAR, PC_CACHED, 4096, 1, 100 * cached);
	put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, 4096, 1, 1000 * flushed);
	CU_ASSERT_EQUAL_FATAL(build(&grid, &data, PAGECLEAR_COLD, PC_UNKNOWN), 0);
	NEAR(grid_cell(&grid, 0, 1)->l, (log(cached) + log(flushed)) / 2);
	CU_ASSERT_EQUAL(grid_cell(&grid, 0, 1)->forbidden, forbidden);
	CU_ASSERT_FALSE(grid_cell(&grid, 0, 1)->doubtful);
	grid_free(&grid);
	dataset_clear(&data);
}

/* Cached it takes twice libc's time at 4 KiB and 0.9 of it at 16, flushed 0.3: the guard is interpolated, not the mean.
 */
static void test_the_guard_is_interpolated(void)
{
	static const uint64_t sizes[] = {4096, 6144, 8192, 14336, 16384};
	struct dataset data = {0};
	struct grid grid;

	NEEDS_KERNELS(3);
	for (size_t i = 0; i < 5; i++)
		for (unsigned k = 0; k < 3; k++) {
			if (k == 2 && i > 0 && i < 4)
				continue;
			put_epochs(&data, PHASE_CLEAR, PC_CACHED, sizes[i], k, k < 2 ? 100 : i == 0 ? 200 : 90);
			put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, sizes[i], k, k < 2 ? 1000 : 300);
		}
	CU_ASSERT_EQUAL_FATAL(build(&grid, &data, PAGECLEAR_COLD, PC_UNKNOWN), 0);
	CU_ASSERT_TRUE(grid_cell(&grid, 0, 2)->forbidden);
	for (size_t i = 1; i < 4; i++) {
		CU_ASSERT_TRUE(grid_cell(&grid, i, 2)->interpolated);
		CU_ASSERT(grid_cell(&grid, i, 2)->l < 0);
		CU_ASSERT_FALSE(grid_cell(&grid, i, 2)->forbidden);
		CU_ASSERT_EQUAL(grid_cell(&grid, i, 2)->doubtful, i < 3);
	}
	NEAR(grid_cell(&grid, 2, 2)->worse, (log(2) + log(0.9)) / 2);
	grid_free(&grid);
	dataset_clear(&data);
}

/* Cached it takes 8 % longer, but for a round in three: that is no sure loss. */
static void test_a_guard_that_may_be_broken_is_a_doubt(void)
{
	struct dataset data = {0};
	struct grid grid;

	NEEDS_KERNELS(2);
	for (unsigned k = 0; k < 2; k++)
		put_epochs(&data, PHASE_CLEAR, PC_FLUSHED, 4096, k, k == 0 ? 1000 : 300);
	for (unsigned epoch = 0; epoch < EPOCHS; epoch++)
		for (unsigned round = 0; round < ROUNDS; round++) {
			struct where where = {PHASE_CLEAR, PC_CACHED, 4096};

			put(&data, where, 0, epoch, round, 100);
			put(&data, where, 1, epoch, round, round % 3 == 0 ? 90 : 108);
		}
	CU_ASSERT_EQUAL_FATAL(build(&grid, &data, PAGECLEAR_COLD, PC_UNKNOWN), 0);
	CU_ASSERT_TRUE(grid_cell(&grid, 0, 1)->doubtful);
	CU_ASSERT_FALSE(grid_cell(&grid, 0, 1)->forbidden);
	grid_free(&grid);
	dataset_clear(&data);
}

static void test_unknown_guards_each_prior(void)
{
	NEEDS_KERNELS(2);
	unknown_case(1.04, 0.3, false);
	unknown_case(1.06, 0.3, true);
	unknown_case(0.3, 1.06, true);
	unknown_case(0.9, 0.9, false);
}

/* Rounds of one prior in one epoch, of the other in another hold no pairs: no size is left to decide, unless libc has
 * no rivals anyway. */
static void test_unknown_without_a_common_epoch(void)
{
	struct dataset data = {0};
	struct grid grid;

	NEEDS_KERNELS(2);
	for (unsigned k = 0; k < 2; k++) {
		put_rounds(&data, (struct where){PHASE_CLEAR, PC_CACHED, 4096}, k, 0, ROUNDS, 100);
		put_rounds(&data, (struct where){PHASE_CLEAR, PC_FLUSHED, 4096}, k, 1, ROUNDS, 100);
	}
	CU_ASSERT_EQUAL(build(&grid, &data, PAGECLEAR_COLD, PC_UNKNOWN), 1);
	CU_ASSERT_EQUAL_FATAL(grid_build(&grid, &data, PAGECLEAR_COLD, PC_UNKNOWN, 1, 1, 0.1), 0);
	CU_ASSERT_TRUE(grid_cell(&grid, 0, 0)->measured);
	CU_ASSERT_EQUAL(grid_cell(&grid, 0, 0)->l, 0);
	CU_ASSERT_EQUAL(grid_cell(&grid, 0, 0)->ratio, 1);
	grid_free(&grid);
	dataset_clear(&data);
}

static const struct unit_test tests[] = {
	{"nothing measured is no grid", test_nothing_measured_is_no_grid},
	{"sizes ascend", test_sizes_ascend},
	{"widths", test_widths},
	{"l is the median epoch", test_l_is_the_median_epoch},
	{"sizes without rivals are left out", test_sizes_without_rivals_are_left_out},
	{"only kernels of the mask", test_only_kernels_of_the_mask},
	{"surely slower is forbidden", test_surely_slower_is_forbidden},
	{"small sizes are libc's", test_small_sizes_are_libcs},
	{"gaps are interpolated", test_gaps_are_interpolated},
	{"no interpolation beyond what was measured", test_no_interpolation_beyond_what_was_measured},
	{"interpolated is forbidden only between two", test_interpolated_is_forbidden_only_between_two},
	{"interpolation adds no noise", test_interpolation_adds_no_noise},
	{"hot pays for the first read", test_hot_pays_for_the_first_read},
	{"a single call can veto", test_a_single_call_can_veto},
	{"unknown guards each prior", test_unknown_guards_each_prior},
	{"the guard is interpolated", test_the_guard_is_interpolated},
	{"a guard that may be broken is a doubt", test_a_guard_that_may_be_broken_is_a_doubt},
	{"unknown without a common epoch", test_unknown_without_a_common_epoch},
};

UNIT_MAIN("grid", tests)
