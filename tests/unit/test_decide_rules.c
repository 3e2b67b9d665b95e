/* From choices over a grid to rules: where they begin, how sure that is, what they gain, how far they hold. */
#include "calibrd/solve.h"
#include "tests/unit/decisions.h"

/* --- rules of a grid --------------------------------------------------------------------------------------------- */

static void check_rules(const struct grid *grid, const unsigned *choice, const struct pc_rule *rules, size_t count)
{
	struct pc_table table = {.rule_count = count, .rules = (struct pc_rule *)rules};

	CU_ASSERT_FATAL(count >= 1 && count < PC_RULES_MAX);
	CU_ASSERT_EQUAL(rules[0].from, 0);
	CU_ASSERT_STRING_EQUAL(rules[0].kernel, "libc");
	for (size_t i = 1; i < count; i++) {
		CU_ASSERT(rules[i].from > rules[i - 1].from);
		CU_ASSERT(rules[i].from == 2 * grid->bytes[grid->sizes - 1] ||
		          (rules[i].low <= rules[i].from && rules[i].from <= rules[i].high));
	}
	/* A crossover lies in its bracket exactly if every measured size gets what was chosen for it. */
	for (size_t i = 0; i < grid->sizes; i++)
		CU_ASSERT_STRING_EQUAL(pc_table_rule(&table, grid->bytes[i])->kernel, name(choice[i]));
}

/* Sizes that are no eighths of an octave, as refining makes them. */
static void odd_sizes(struct grid *grid, struct random *random)
{
	double octaves = 8;

	for (size_t i = 0; i < grid->sizes; i++) {
		octaves += uniform(random, 0.05, 1);
		grid->bytes[i] = (uint64_t)exp2(octaves) + i;
	}
}

static void test_rules_ascend_and_say_what_was_chosen(void)
{
	struct random random = {11};
	size_t switches = 0;

	NEEDS_KERNELS(4);
	for (int n = 0; n < 2000; n++) {
		struct pc_rule rules[PC_RULES_MAX];
		unsigned choice[GRID_SIZES];
		struct grid grid;
		size_t count;

		grid_by_hand(&grid, 1 + random_below(&random, 12), EPOCHS);
		odd_sizes(&grid, &random);
		for (size_t i = 0; i < grid.sizes; i++) {
			set_cell(&grid, i, 0, 0, 9);
			for (unsigned k = 1; k < 4; k++)
				set_cell(&grid, i, k, uniform(&random, -1, 0.5), 9);
			for (unsigned e = 0; e < EPOCHS; e++)
				grid_cell(&grid, i, 1)->epoch[e] += uniform(&random, -0.3, 0.3);
		}
		solve_grid(&grid, 0.06, choice);
		count = decide_rules(&grid, choice, rules);
		check_rules(&grid, choice, rules, count);
		switches += count - 1;
		grid_free(&grid);
	}
	CU_ASSERT(switches > 2000);
}

/* 1 to 16 KiB: row 1's l changes from `left` to `right` between 4 and 8 KiB and stays there. */
static void one_step(struct grid *grid, double left, double right)
{
	grid_by_hand(grid, 5, EPOCHS);
	for (size_t i = 0; i < 5; i++) {
		set_cell(grid, i, 0, 0, 9);
		set_cell(grid, i, 1, i < 3 ? left : right, 9);
	}
}

/* libc below it, row 1 above. */
static size_t one_crossover(struct grid *grid, double left, double right, struct pc_rule *rules)
{
	unsigned choice[GRID_SIZES] = {0, 0, 0, 1, 1};

	one_step(grid, left, right);
	return decide_rules(grid, choice, rules);
}

static void test_crossovers_are_interpolated(void)
{
	struct pc_rule rules[PC_RULES_MAX];
	struct grid grid;

	NEEDS_KERNELS(2);
	/* Half an octave above 4096 is 5793; the next eighth of the octave is 6144. */
	CU_ASSERT_EQUAL_FATAL(one_crossover(&grid, 0.3, -0.3, rules), 2);
	CU_ASSERT_TRUE(holds(&rules[1], 6144, 1));
	NEAR(rules[1].gain, exp(0.3));
	CU_ASSERT_EQUAL(rules[1].low, 4096);
	CU_ASSERT_EQUAL(rules[1].high, 8192);
	grid_free(&grid);
	CU_ASSERT_EQUAL_FATAL(one_crossover(&grid, 1e-9, -0.3, rules), 2);
	CU_ASSERT_TRUE(holds(&rules[1], 4608, 1));
	grid_free(&grid);
	CU_ASSERT_EQUAL_FATAL(one_crossover(&grid, 0.3, -1e-9, rules), 2);
	CU_ASSERT_TRUE(holds(&rules[1], 8192, 1));
	grid_free(&grid);
	/* It won before as well, by less than it takes: right behind, as in between it wins by more. */
	CU_ASSERT_EQUAL_FATAL(one_crossover(&grid, -0.01, -0.3, rules), 2);
	CU_ASSERT_TRUE(holds(&rules[1], 4608, 1));
	grid_free(&grid);
	/* It won by what it takes, and was not chosen all the same: nobody knows why it should be in between. */
	CU_ASSERT_EQUAL_FATAL(one_crossover(&grid, -0.1, -0.3, rules), 2);
	CU_ASSERT_TRUE(holds(&rules[1], 8192, 1));
	grid_free(&grid);
}

/* 1.1 eighths of an octave apart, l falls from 0.04 to -0.8: 0.04 / 0.84 of the way is 4111 bytes. A step of an eighth
 * of the octave, or the bracket's end, would leave most of what the cliff costs. */
static void test_crossovers_are_close_to_cliffs(void)
{
	unsigned choice[GRID_SIZES] = {0, 0, 0, 1, 1};
	struct pc_rule rules[PC_RULES_MAX];
	struct grid grid;

	NEEDS_KERNELS(2);
	one_step(&grid, 0.04, -0.8);
	grid.bytes[3] = 4424;
	CU_ASSERT_EQUAL_FATAL(decide_rules(&grid, choice, rules), 2);
	CU_ASSERT_TRUE(holds(&rules[1], 4128, 1));
	/* Next to each other: there is but one place. */
	grid.bytes[3] = 4097;
	CU_ASSERT_EQUAL_FATAL(decide_rules(&grid, choice, rules), 2);
	CU_ASSERT_TRUE(holds(&rules[1], 4097, 1));
	grid_free(&grid);
}

/* Row 1 over libc from 8 KiB on; at 4 KiB its mean of both priors is as given, and the worse of the two. */
static uint64_t guarded_crossover(enum pc_prior prior, double l, double worse)
{
	unsigned choice[GRID_SIZES] = {0, 0, 0, 1, 1};
	struct pc_rule rules[PC_RULES_MAX];
	struct grid grid;

	one_step(&grid, l, -0.3);
	grid.prior = prior;
	for (size_t i = 0; i < 5; i++) {
		grid_cell(&grid, i, 1)->worse = i < 3 ? worse : 0;
		grid_cell(&grid, i, 1)->forbidden = i < 3;
	}
	CU_ASSERT_EQUAL_FATAL(decide_rules(&grid, choice, rules), 2);
	grid_free(&grid);
	return rules[1].from;
}

/* 5 % is what either prior may lose: of 20 % at 4 KiB and none at 8 KiB that is left 0.756 octaves up, at 6918 bytes,
 * however good the mean of the two may be. */
static void test_no_rule_begins_where_a_prior_forbids(void)
{
	NEEDS_KERNELS(2);
	CU_ASSERT_EQUAL(guarded_crossover(PC_UNKNOWN, -0.005, 0.2), 7168);
	CU_ASSERT_EQUAL(guarded_crossover(PC_UNKNOWN, 0.3, 0.2), 7168); /* the mean's own is at 5793 */
	CU_ASSERT_EQUAL(guarded_crossover(PC_CACHED, 0.3, 0.3), 6144);  /* surely slower: that is what crossovers are */
	CU_ASSERT_EQUAL(guarded_crossover(PC_CACHED, -0.005, -0.005),
	                8192); /* on base pages, of which its cost tells nothing */
}

/* The other way round: row 1 has 4 KiB, but at 8 KiB one prior forbids it. */
static void test_no_rule_goes_on_where_a_prior_forbids(void)
{
	unsigned choice[GRID_SIZES] = {1, 1, 1, 0, 0};
	struct pc_rule rules[PC_RULES_MAX];
	struct grid grid;

	NEEDS_KERNELS(2);
	one_step(&grid, -0.3, -0.1);
	grid.prior = PC_UNKNOWN;
	for (size_t i = 0; i < 5; i++) {
		grid_cell(&grid, i, 1)->worse = i < 3 ? 0 : 0.2;
		grid_cell(&grid, i, 1)->forbidden = i >= 3;
	}
	CU_ASSERT_EQUAL_FATAL(decide_rules(&grid, choice, rules), 3);
	CU_ASSERT_TRUE(holds(&rules[2], 5120, 0)); /* 0.244 octaves up, 4851 bytes, is 5 % */
	for (size_t i = 3; i < 5; i++)
		grid_cell(&grid, i, 1)->worse = -0.1;
	CU_ASSERT_EQUAL_FATAL(decide_rules(&grid, choice, rules), 3);
	CU_ASSERT_TRUE(holds(&rules[2], 4608, 0)); /* for another reason than cost: as soon as may be */
	grid_free(&grid);
}

static void test_range_of_a_crossover_is_that_of_the_epochs(void)
{
	unsigned choice[GRID_SIZES] = {0, 0, 0, 1, 1, 1};
	struct pc_rule rules[PC_RULES_MAX];
	struct grid grid;

	NEEDS_KERNELS(2);
	grid_by_hand(&grid, 6, 4);
	for (size_t i = 0; i < 6; i++) {
		set_cell(&grid, i, 0, 0, 9);
		set_cell(&grid, i, 1, i < 3 ? 0.2 : -0.2, 9);
	}
	grid_cell(&grid, 2, 1)->epoch[1] = -0.1; /* one epoch would begin at 4 KiB, */
	grid_cell(&grid, 3, 1)->epoch[2] = 0.1;  /* one at 16 KiB, */
	for (size_t i = 0; i < 6; i++)
		grid_cell(&grid, i, 1)->epoch[3] = NAN; /* and one says nothing */
	CU_ASSERT_EQUAL_FATAL(decide_rules(&grid, choice, rules), 2);
	CU_ASSERT_EQUAL(rules[1].low, 2048);
	CU_ASSERT_EQUAL(rules[1].high, 16384);
	grid_free(&grid);
}

/* Sizes inside a bracket are added late: `early` epochs know the octaves alone. All epochs see row 1 cheaper from 12
 * KiB up; where they agree the range is the finest bracket that anyone saw. */
static void refined_bracket(unsigned early, unsigned dissenters, struct pc_rule *rules)
{
	static const uint64_t bytes[] = {2048, 4096, 8192, 10240, 12288, 14336, 16384, 32768};
	unsigned choice[GRID_SIZES] = {0, 0, 0, 0, 1, 1, 1, 1};
	struct grid grid;

	grid_by_hand(&grid, 8, EPOCHS);
	for (size_t i = 0; i < 8; i++) {
		grid.bytes[i] = bytes[i];
		set_cell(&grid, i, 0, 0, 9);
		set_cell(&grid, i, 1, bytes[i] < 12288 ? 0.2 : -0.2, 9);
		for (unsigned e = 0; e < early && (i >= 3 && i <= 5); e++)
			grid_cell(&grid, i, 1)->epoch[e] = NAN;
	}
	for (unsigned e = 0; e < dissenters; e++) /* not before 32 KiB */
		grid_cell(&grid, 6, 1)->epoch[e] = 0.5;
	CU_ASSERT_EQUAL_FATAL(decide_rules(&grid, choice, rules), 2);
	grid_free(&grid);
}

static void test_a_refined_bracket_is_narrower(void)
{
	struct pc_rule rules[PC_RULES_MAX];

	NEEDS_KERNELS(2);
	for (unsigned early = 0; early < EPOCHS; early++) {
		refined_bracket(early, 0, rules);
		CU_ASSERT_EQUAL(rules[1].low, 10240);
		CU_ASSERT_EQUAL(rules[1].high, 12288);
		CU_ASSERT(rules[1].from > 10240 && rules[1].from <= 12288);
	}
	refined_bracket(2, 1, rules); /* one of the early ones disagrees */
	CU_ASSERT_EQUAL(rules[1].low, 10240);
	CU_ASSERT_EQUAL(rules[1].high, 32768);
}

/* Interpolated on one side: what stands between two octaves is no gain that anybody measured. */
static void test_gains_are_those_measured_by_octaves(void)
{
	unsigned choice[GRID_SIZES] = {0, 1, 1, 1};
	struct pc_rule rules[PC_RULES_MAX];
	struct grid grid;

	NEEDS_KERNELS(2);
	grid_by_hand(&grid, 4, EPOCHS);
	for (size_t i = 0; i < 4; i++)
		set_cell(&grid, i, 0, 0, 9);
	set_cell(&grid, 0, 1, 0.5, 9);
	set_cell(&grid, 1, 1, -0.1, 9);
	set_interpolated(&grid, 2, 1, -0.75);
	set_cell(&grid, 3, 1, -0.7, 9);
	grid.width[1] = 0.5;
	CU_ASSERT_EQUAL_FATAL(decide_rules(&grid, choice, rules), 2);
	NEAR(rules[1].gain, exp((0.5 * 0.1 + 0.7) / 1.5));
	grid_free(&grid);
}

/* However finely the end of the grid is divided, what counts is whether gains fall over the last half octave. */
static void test_the_last_step_is_half_an_octave(void)
{
	unsigned choice[GRID_SIZES] = {0, 1, 1, 1, 1};
	struct pc_rule rules[PC_RULES_MAX];
	struct grid grid;

	NEEDS_KERNELS(2);
	grid_by_hand(&grid, 5, EPOCHS);
	for (size_t i = 0; i < 5; i++) {
		set_cell(&grid, i, 0, 0, 9);
		set_cell(&grid, i, 1, i == 0 ? 0.5 : -0.9 + 0.08 * (double)i, 9);
	}
	grid.bytes[3] = 8192 - 1024;
	grid.bytes[4] = 8192;
	CU_ASSERT_EQUAL_FATAL(decide_rules(&grid, choice, rules),
	                      3); /* 0.08 in the last step, 0.16 in half an octave */
	CU_ASSERT_TRUE(holds(&rules[2], 16384, 0));
	grid_free(&grid);
}

/* More segments than rules: what is left goes to libc, not to whoever came last. */
static void test_rules_that_run_out(void)
{
	unsigned choice[GRID_SIZES];
	struct pc_rule rules[PC_RULES_MAX];
	struct pc_table table = {.rules = rules};
	struct grid grid;

	NEEDS_KERNELS(2);
	grid_by_hand(&grid, 100, 1);
	for (size_t i = 0; i < 100; i++) {
		grid.bytes[i] = 1024 + 64 * i;
		set_cell(&grid, i, 0, 0, 9);
		set_cell(&grid, i, 1, i % 2 == 0 ? -0.5 : 0.5, 9);
		grid_cell(&grid, i, 1)->forbidden = i % 2 != 0;
		choice[i] = i % 2 == 0;
	}
	table.rule_count = decide_rules(&grid, choice, rules);
	CU_ASSERT_FATAL(table.rule_count <= PC_RULES_MAX);
	CU_ASSERT_PTR_NULL(decide_against(&table, &grid));
	CU_ASSERT_STRING_EQUAL(rules[table.rule_count - 1].kernel, "libc");
	grid_free(&grid);
}

static void test_what_goes_against_a_loss_is_seen(void)
{
	struct pc_rule rules[] = {{.from = 0, .kernel = "libc"}, {.from = 2048}, {.from = 4096, .kernel = "libc"}};
	struct pc_table table = {.rule_count = 3, .rules = rules};
	struct grid grid;

	NEEDS_KERNELS(2);
	strcpy(rules[1].kernel, name(1));
	grid_by_hand(&grid, 3, 1);
	for (size_t i = 0; i < 3; i++)
		set_cell(&grid, i, 1, 0.5, 9);
	grid_cell(&grid, 0, 1)->forbidden = grid_cell(&grid, 2, 1)->forbidden = true;
	CU_ASSERT_PTR_NULL(decide_against(&table, &grid));
	grid_cell(&grid, 1, 1)->forbidden = true;
	CU_ASSERT_PTR_EQUAL(decide_against(&table, &grid), &rules[1]);
	rules[1].pinned = true;
	CU_ASSERT_PTR_NULL(decide_against(&table, &grid));
	grid_free(&grid);
}

static void test_beyond_the_grid(void)
{
	unsigned choice[GRID_SIZES] = {0, 1, 1};
	struct pc_rule rules[PC_RULES_MAX];
	struct grid grid;

	NEEDS_KERNELS(2);
	grid_by_hand(&grid, 3, EPOCHS);
	for (size_t i = 0; i < 3; i++)
		set_cell(&grid, i, 0, 0, 9);
	set_cell(&grid, 0, 1, 0.5, 9);
	set_cell(&grid, 1, 1, -0.5, 9);
	set_cell(&grid, 2, 1, -0.45, 9);
	CU_ASSERT_EQUAL(decide_rules(&grid, choice, rules), 2); /* as good at the end as before it: holds for ever */
	set_cell(&grid, 2, 1, -0.3, 9);
	CU_ASSERT_EQUAL_FATAL(decide_rules(&grid, choice, rules), 3); /* waning: who knows */
	CU_ASSERT_TRUE(holds(&rules[2], 8192, 0));
	CU_ASSERT_EQUAL(rules[2].gain, 0);
	grid_free(&grid);
}

/* The built-in policy is non-temporal for all larger sizes: a measured one is not libc there either. */
static void test_scrub_holds_beyond_the_grid(void)
{
	unsigned choice[GRID_SIZES] = {0, 1, 1};
	struct pc_rule rules[PC_RULES_MAX];
	struct grid grid;

	NEEDS_KERNELS(2);
	grid_by_hand(&grid, 3, EPOCHS);
	grid.intent = PAGECLEAR_SCRUB;
	for (size_t i = 0; i < 3; i++)
		set_cell(&grid, i, 0, 0, 9);
	set_cell(&grid, 0, 1, 0.5, 9);
	set_cell(&grid, 1, 1, -0.8, 9);
	set_cell(&grid, 2, 1, -0.2, 9);
	CU_ASSERT_EQUAL_FATAL(decide_rules(&grid, choice, rules), 2);
	CU_ASSERT_STRING_EQUAL(rules[1].kernel, name(1));
	grid_free(&grid);
}

static const struct unit_test tests[] = {
	{"rules ascend and say what was chosen", test_rules_ascend_and_say_what_was_chosen},
	{"crossovers are interpolated", test_crossovers_are_interpolated},
	{"crossovers are close to cliffs", test_crossovers_are_close_to_cliffs},
	{"no rule begins where a prior forbids", test_no_rule_begins_where_a_prior_forbids},
	{"no rule goes on where a prior forbids", test_no_rule_goes_on_where_a_prior_forbids},
	{"range of a crossover is that of the epochs", test_range_of_a_crossover_is_that_of_the_epochs},
	{"a refined bracket is narrower", test_a_refined_bracket_is_narrower},
	{"gains are those measured, by octaves", test_gains_are_those_measured_by_octaves},
	{"the last step is half an octave", test_the_last_step_is_half_an_octave},
	{"rules that run out", test_rules_that_run_out},
	{"what goes against a loss is seen", test_what_goes_against_a_loss_is_seen},
	{"beyond the grid", test_beyond_the_grid},
	{"scrub holds beyond the grid", test_scrub_holds_beyond_the_grid},
};

UNIT_MAIN("decide_rules", tests)
