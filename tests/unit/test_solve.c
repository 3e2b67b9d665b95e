/* The dynamic programme against every sequence there is, and the proof that each segment owes. */
#include "calibrd/solve.h"

#include "pageclear/policy.h"
#include "tests/unit/by_hand.h"

/* --- against brute force ----------------------------------------------------------------------------------------- */

/* What design section 7 minimises, written down once more. */
static double sequence_cost(const struct grid *grid, const unsigned *choice, double switch_cost)
{
	double cost = 0;
	unsigned before = 0;

	for (size_t i = 0; i < grid->sizes; before = choice[i++]) {
		const struct cell *cell = grid_cell(grid, i, choice[i]);

		if (!cell->measured || cell->forbidden || cell->doubtful)
			return INFINITY;
		cost += grid->width[i] * (cell->l + (choice[i] != 0 ? 0.03 : 0)) +
		        (choice[i] != before ? switch_cost : 0);
	}
	return cost;
}

static double cheapest_sequence(const struct grid *grid, unsigned kernels, double switch_cost)
{
	unsigned choice[GRID_SIZES] = {0};
	double best = INFINITY;
	size_t i;

	do {
		best = fmin(best, sequence_cost(grid, choice, switch_cost));
		for (i = 0; i < grid->sizes && ++choice[i] == kernels; i++)
			choice[i] = 0;
	} while (i < grid->sizes);
	return best;
}

static void random_grid(struct grid *grid, struct random *random, unsigned kernels)
{
	grid_by_hand(grid, 1 + random_below(random, 5), 3);
	for (size_t i = 0; i < grid->sizes; i++) {
		grid->width[i] = uniform(random, 0.25, 2);
		set_cell(grid, i, 0, 0, 9);
		for (unsigned k = 1; k < kernels; k++) {
			if (random_below(random, 8) == 0)
				continue;
			if (random_below(random, 4) == 0)
				set_interpolated(grid, i, k, uniform(random, -0.4, 0.3));
			else
				set_cell(grid, i, k, uniform(random, -0.4, 0.3), 9);
			grid_cell(grid, i, k)->forbidden = random_below(random, 8) == 0;
			grid_cell(grid, i, k)->doubtful = random_below(random, 16) == 0;
		}
	}
}

static void test_no_sequence_is_cheaper(void)
{
	struct random random = {1};
	unsigned choice[GRID_SIZES], other = 0;

	NEEDS_KERNELS(4);
	for (int n = 0; n < 1000; n++) {
		struct grid grid;
		double switch_cost = uniform(&random, 0, 0.3);

		random_grid(&grid, &random, 4);
		solve_grid(&grid, switch_cost, choice);
		NEAR(sequence_cost(&grid, choice, switch_cost), cheapest_sequence(&grid, 4, switch_cost));
		for (size_t i = 0; i < grid.sizes; i++)
			other += choice[i] != 0;
		grid_free(&grid);
	}
	CU_ASSERT(other > 500); /* the grids were worth solving */
}

/* --- single rules ------------------------------------------------------------------------------------------------ */

static void test_ties_go_to_the_simpler_kernel(void)
{
	struct grid grid;
	unsigned choice[GRID_SIZES];

	NEEDS_KERNELS(3);
	grid_by_hand(&grid, 4, 3);
	for (size_t i = 0; i < 4; i++) {
		set_cell(&grid, i, 0, 0, 9);
		set_cell(&grid, i, 1, -0.5, 9);
		set_cell(&grid, i, 2, -0.5, 9);
	}
	solve_grid(&grid, 0.06, choice);
	for (size_t i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(choice[i], 1);
	/* What the penalties eat up is a tie with libc. */
	for (size_t i = 0; i < 4; i++)
		set_cell(&grid, i, 1, -0.03 - 0.0625 / 4, 9), set_cell(&grid, i, 2, 0, 9);
	solve_grid(&grid, 0.0625, choice);
	for (size_t i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(choice[i], 0);
	grid_free(&grid);
}

static void test_a_switch_costs_more_where_epochs_disagree(void)
{
	CU_ASSERT_EQUAL(solve_switch_cost(&(struct grid){.sigma = 0}), 0.06);
	CU_ASSERT_EQUAL(solve_switch_cost(&(struct grid){.sigma = 0.12}), 0.06);
	NEAR(solve_switch_cost(&(struct grid){.sigma = 0.5}), 0.25);
}

static void test_segment_end(void)
{
	const unsigned choice[] = {0, 0, 2, 2, 2, 1};
	struct grid grid = {.sizes = 6};

	CU_ASSERT_EQUAL(solve_segment_end(&grid, choice, 0), 1);
	CU_ASSERT_EQUAL(solve_segment_end(&grid, choice, 1), 1);
	CU_ASSERT_EQUAL(solve_segment_end(&grid, choice, 2), 4);
	CU_ASSERT_EQUAL(solve_segment_end(&grid, choice, 5), 5);
}

/* --- proof ------------------------------------------------------------------------------------------------------- */

/* Signs alone: 1/8 for three pairs of one cell, 1/64 for six of two. */
static void test_pairs_are_pooled(void)
{
	struct grid grid;

	NEEDS_KERNELS(2);
	grid_by_hand(&grid, 2, 3);
	set_cell(&grid, 0, 1, -0.5, 3);
	set_cell(&grid, 1, 1, -0.5, 3);
	CU_ASSERT_FALSE(solve_is_proven(&grid, 1, 0, 0));
	CU_ASSERT_TRUE(solve_is_proven(&grid, 1, 0, 1));
	grid_free(&grid);
}

static void test_a_gain_within_the_margin_proves_nothing(void)
{
	struct grid grid;

	NEEDS_KERNELS(2);
	grid_by_hand(&grid, 1, 3);
	set_cell(&grid, 0, 1, -0.02, 500);
	CU_ASSERT_FALSE(solve_is_proven(&grid, 1, 0, 0));
	set_cell(&grid, 0, 1, -0.04, 500);
	CU_ASSERT_TRUE(solve_is_proven(&grid, 1, 0, 0));
	grid_free(&grid);
}

static void test_one_lucky_epoch_proves_nothing(void)
{
	struct grid grid;
	struct cell *cell;

	NEEDS_KERNELS(2);
	grid_by_hand(&grid, 1, 3);
	set_cell(&grid, 0, 1, -0.5, 60);
	cell = grid_cell(&grid, 0, 1);
	cell->epoch[1] = 0.01;
	CU_ASSERT_TRUE(solve_is_proven(&grid, 1, 0, 0));
	cell->epoch[2] = 0.01;
	CU_ASSERT_FALSE(solve_is_proven(&grid, 1, 0, 0));
	cell->epoch[2] = NAN; /* an epoch without a word counts for neither side: one of two is not two thirds */
	CU_ASSERT_FALSE(solve_is_proven(&grid, 1, 0, 0));
	cell->epoch[1] = NAN;
	CU_ASSERT_TRUE(solve_is_proven(&grid, 1, 0, 0));
	grid_free(&grid);
}

/* Its neighbours prove a segment and it may be part of it; alone it proves nothing, and no epoch agrees with it. */
static void test_what_is_interpolated_proves_nothing(void)
{
	struct grid grid;

	NEEDS_KERNELS(2);
	grid_by_hand(&grid, 3, 3);
	set_cell(&grid, 0, 1, -0.5, 9);
	set_interpolated(&grid, 1, 1, -0.5);
	set_cell(&grid, 2, 1, 0.1, 9);
	CU_ASSERT_TRUE(solve_is_proven(&grid, 1, 0, 1));
	CU_ASSERT_FALSE(solve_is_proven(&grid, 1, 1, 1));
	for (unsigned e = 0; e < 3; e++)
		grid_cell(&grid, 0, 1)->epoch[e] = 0.01;
	CU_ASSERT_FALSE(solve_is_proven(&grid, 1, 0, 1));
	grid_free(&grid);
}

/* Six pairs are 1/64: enough for one question, not for the best of four sizes. */
static void test_scrub_must_beat_chance_at_every_size(void)
{
	struct grid grid;

	NEEDS_KERNELS(2);
	grid_by_hand(&grid, 4, 3);
	set_cell(&grid, 0, 1, -0.5, 6);
	CU_ASSERT_TRUE(solve_is_proven(&grid, 1, 0, 0));
	grid.intent = PAGECLEAR_SCRUB;
	CU_ASSERT_FALSE(solve_is_proven(&grid, 1, 0, 0));
	set_cell(&grid, 0, 1, -0.5, 7);
	CU_ASSERT_TRUE(solve_is_proven(&grid, 1, 0, 0));
	grid_free(&grid);
}

static void test_what_is_not_proven_is_forbidden_and_the_next_best_taken(void)
{
	struct grid grid;
	unsigned choice[GRID_SIZES];

	NEEDS_KERNELS(3);
	grid_by_hand(&grid, 3, 3);
	for (size_t i = 0; i < 3; i++) {
		set_cell(&grid, i, 0, 0, 9);
		set_cell(&grid, i, 1, -0.3, 9);
		set_cell(&grid, i, 2, -0.9, 1); /* three pairs in all */
	}
	solve_grid(&grid, solve_switch_cost(&grid), choice);
	CU_ASSERT_EQUAL(choice[1], 2);
	solve_proven(&grid, choice);
	for (size_t i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(choice[i], 1);
		CU_ASSERT_TRUE(grid_cell(&grid, i, 2)->unproven);
		CU_ASSERT_FALSE(grid_cell(&grid, i, 2)->forbidden); /* that is what the data say */
		CU_ASSERT_FALSE(grid_cell(&grid, i, 1)->unproven);
	}
	grid_free(&grid);
}

static void test_libc_is_left_when_nothing_is_proven(void)
{
	struct grid grid;
	unsigned choice[GRID_SIZES];

	grid_by_hand(&grid, 3, 3);
	for (size_t i = 0; i < 3; i++)
		for (unsigned k = 0; k < pc_kernel_count; k++)
			set_cell(&grid, i, k, k == 0 ? 0 : -0.3, k == 0 ? 9 : 1);
	solve_proven(&grid, choice);
	for (size_t i = 0; i < 3; i++)
		CU_ASSERT_EQUAL(choice[i], 0);
	grid_free(&grid);
}

/* The end of a segment that would spoil the proof of all of it goes back to libc; the rest stays. */
static void test_what_is_not_proven_is_shortened(void)
{
	struct grid grid;
	unsigned choice[GRID_SIZES];

	NEEDS_KERNELS(2);
	grid_by_hand(&grid, 4, 3);
	for (size_t i = 0; i < 4; i++) {
		set_cell(&grid, i, 0, 0, 9);
		set_cell(&grid, i, 1, -0.3, 9);
	}
	set_cell(&grid, 3, 1, 0, 60);     /* many pairs that are no gain, */
	grid_cell(&grid, 3, 1)->l = -0.1; /* though the median epoch sees one */
	solve_grid(&grid, solve_switch_cost(&grid), choice);
	CU_ASSERT_EQUAL(choice[3], 1);
	CU_ASSERT_FALSE(solve_is_proven(&grid, 1, 0, 3));
	solve_proven(&grid, choice);
	for (size_t i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(choice[i], i < 3 ? 1 : 0);
	grid_free(&grid);
}

/* Pairs and epochs that scatter, so that proofs fail now and then. */
static void scattered_grid(struct grid *grid, struct random *random, unsigned kernels)
{
	random_grid(grid, random, kernels);
	grid->sigma = uniform(random, 0, 0.6);
	for (size_t i = 0; i < grid->sizes * pc_kernel_count; i++) {
		struct cell *cell = &grid->cells[i];

		for (size_t j = 0; i % pc_kernel_count != 0 && j < cell->count; j++)
			cell->pairs[j] += uniform(random, -0.4, 0.4);
		for (unsigned e = 0; e < grid->epochs; e++)
			cell->epoch[e] += uniform(random, -0.3, 0.3);
		if (!cell->interpolated)
			cell->interval = stats_median_interval(cell->pairs, cell->count, 0.95);
	}
}

static void test_every_segment_is_proven(void)
{
	struct random random = {5};
	unsigned choice[GRID_SIZES], unproven = 0, other = 0;

	NEEDS_KERNELS(4);
	for (int n = 0; n < 1000; n++) {
		struct grid grid;

		scattered_grid(&grid, &random, 4);
		solve_proven(&grid, choice);
		for (size_t first = 0, end; first < grid.sizes; first = end + 1) {
			end = solve_segment_end(&grid, choice, first);
			other += choice[first] != 0;
			CU_ASSERT_TRUE(choice[first] == 0 || solve_is_proven(&grid, choice[first], first, end));
			for (size_t i = first; i <= end; i++)
				CU_ASSERT_FALSE(grid_cell(&grid, i, choice[first])->forbidden ||
				                grid_cell(&grid, i, choice[first])->doubtful);
		}
		for (size_t i = 0; i < grid.sizes * pc_kernel_count; i++)
			unproven += grid.cells[i].unproven;
		grid_free(&grid);
	}
	CU_ASSERT(other > 300 && unproven > 300); /* there was something to prove, and to refuse */
}

static void test_never_and_several_intervals(void)
{
	static const double l[] = {-0.5, 0.4, 0.4, -0.5, -0.5};
	struct grid grid;
	unsigned choice[GRID_SIZES];

	NEEDS_KERNELS(3);
	grid_by_hand(&grid, 5, 3);
	for (size_t i = 0; i < 5; i++) {
		set_cell(&grid, i, 0, 0, 9);
		set_cell(&grid, i, 1, l[i], 9);
		set_cell(&grid, i, 2, 0.1, 9);
	}
	solve_proven(&grid, choice);
	for (size_t i = 0; i < 5; i++)
		CU_ASSERT_EQUAL(choice[i], l[i] < 0 ? 1 : 0);
	grid_free(&grid);
}

/* Each is better by 2.5 % on its half: together more than a switch costs, yet no win that counts. */
static void test_neighbours_that_tie_become_one(void)
{
	struct grid grid;
	unsigned choice[GRID_SIZES];

	NEEDS_KERNELS(3);
	grid_by_hand(&grid, 6, 3);
	for (size_t i = 0; i < 6; i++) {
		set_cell(&grid, i, 0, 0, 9);
		set_cell(&grid, i, 1, i < 3 ? -0.400 : -0.425, 9);
		set_cell(&grid, i, 2, i < 3 ? -0.425 : -0.400, 9);
	}
	solve_grid(&grid, solve_switch_cost(&grid), choice);
	CU_ASSERT_EQUAL(choice[0], 2);
	CU_ASSERT_EQUAL(choice[5], 1);
	solve_proven(&grid, choice);
	for (size_t i = 0; i < 6; i++)
		CU_ASSERT_EQUAL(choice[i], 1);
	grid_free(&grid);
}

/* 2.5 % an octave are no win that counts; over eight octaves they are more than two switches cost. */
static void test_what_adds_up_is_no_tie(void)
{
	struct grid grid;
	unsigned choice[GRID_SIZES];

	NEEDS_KERNELS(3);
	grid_by_hand(&grid, 16, 3);
	for (size_t i = 0; i < 16; i++) {
		set_cell(&grid, i, 0, 0, 9);
		set_cell(&grid, i, 1, i < 8 ? -0.400 : -0.425, 9);
		set_cell(&grid, i, 2, i < 8 ? -0.425 : -0.400, 9);
	}
	solve_proven(&grid, choice);
	for (size_t i = 0; i < 16; i++)
		CU_ASSERT_EQUAL(choice[i], i < 8 ? 2 : 1);
	grid_free(&grid);
}

/* Where epochs disagree a tie may hide much: not a sure loss of 12 % in a cell, though. */
static void tie_with_a_loss(double loss, unsigned expected)
{
	struct grid grid;
	unsigned choice[GRID_SIZES];

	grid_by_hand(&grid, 6, 3);
	grid.sigma = 0.4; /* a switch costs 0.2 nat-octaves, as an octave may in a tie */
	for (size_t i = 0; i < 6; i++) {
		set_cell(&grid, i, 0, 0, 9);
		set_cell(&grid, i, 1, i < 3 ? -0.5 + (i == 1 ? loss : 0.06) : -0.5, 9);
		set_cell(&grid, i, 2, i < 3 ? -0.5 : -0.3, 9);
	}
	solve_proven(&grid, choice);
	CU_ASSERT_EQUAL(choice[0], expected);
	CU_ASSERT_EQUAL(choice[1], expected);
	CU_ASSERT_EQUAL(choice[5], 1);
	grid_free(&grid);
}

static void test_a_sure_loss_in_one_cell_is_no_tie(void)
{
	NEEDS_KERNELS(3);
	tie_with_a_loss(0.09, 1);
	tie_with_a_loss(0.12, 2);
}

/* Where the better one of two neighbours was not measured any further, the other one may take over its part, or both
 * stay where the difference counts. */
static void test_neighbours_of_which_one_was_not_measured(void)
{
	struct grid grid;
	unsigned choice[GRID_SIZES];

	NEEDS_KERNELS(3);
	grid_by_hand(&grid, 6, 3);
	for (size_t i = 0; i < 6; i++) {
		set_cell(&grid, i, 0, 0, 9);
		set_cell(&grid, i, 2, -0.40, 9);
		if (i < 3)
			set_cell(&grid, i, 1, -0.42, 9);
	}
	solve_proven(&grid, choice);
	for (size_t i = 0; i < 6; i++)
		CU_ASSERT_EQUAL(choice[i], 2);
	for (size_t i = 0; i < 3; i++)
		set_cell(&grid, i, 1, -0.5, 9);
	solve_proven(&grid, choice);
	for (size_t i = 0; i < 6; i++)
		CU_ASSERT_EQUAL(choice[i], i < 3 ? 1 : 2);
	grid_free(&grid);
}

static const struct unit_test tests[] = {
	{"no sequence is cheaper", test_no_sequence_is_cheaper},
	{"ties go to the simpler kernel", test_ties_go_to_the_simpler_kernel},
	{"a switch costs more where epochs disagree", test_a_switch_costs_more_where_epochs_disagree},
	{"segment end", test_segment_end},
	{"pairs are pooled", test_pairs_are_pooled},
	{"a gain within the margin proves nothing", test_a_gain_within_the_margin_proves_nothing},
	{"one lucky epoch proves nothing", test_one_lucky_epoch_proves_nothing},
	{"what is interpolated proves nothing", test_what_is_interpolated_proves_nothing},
	{"scrub must beat chance at every size", test_scrub_must_beat_chance_at_every_size},
	{"what is not proven is forbidden", test_what_is_not_proven_is_forbidden_and_the_next_best_taken},
	{"what is not proven is shortened", test_what_is_not_proven_is_shortened},
	{"every segment is proven", test_every_segment_is_proven},
	{"what adds up is no tie", test_what_adds_up_is_no_tie},
	{"a sure loss in one cell is no tie", test_a_sure_loss_in_one_cell_is_no_tie},
	{"libc is left when nothing is proven", test_libc_is_left_when_nothing_is_proven},
	{"never and several intervals", test_never_and_several_intervals},
	{"neighbours that tie become one", test_neighbours_that_tie_become_one},
	{"neighbours of which one was not measured", test_neighbours_of_which_one_was_not_measured},
};

UNIT_MAIN("solve", tests)
