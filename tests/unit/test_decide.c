/* From grids to rules, and what old rules and pins do to them. */
#include "calibrd/decide.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "calibrd/solve.h"
#include "pageclear/policy.h"
#include "tests/unit/by_hand.h"

enum { EPOCHS = 5, ROUNDS = 12 };

static const char *name(unsigned kernel)
{
	return pc_kernels[kernel].name;
}

static bool holds(const struct pc_rule *rule, uint64_t from, unsigned kernel)
{
	return rule->from == from && strcmp(rule->kernel, name(kernel)) == 0;
}

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

/* libc below, row 1 above: l falls from `left` to `right` between 4 and 8 KiB and stays there. */
static size_t one_crossover(struct grid *grid, double left, double right, struct pc_rule *rules)
{
	unsigned choice[GRID_SIZES] = {0, 0, 0, 1, 1};

	grid_by_hand(grid, 5, EPOCHS);
	for (size_t i = 0; i < 5; i++) {
		set_cell(grid, i, 0, 0, 9);
		set_cell(grid, i, 1, i < 3 ? left : right, 9);
	}
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
	/* It won before as well, but not enough: then from where it was chosen. */
	CU_ASSERT_EQUAL_FATAL(one_crossover(&grid, -0.01, -0.3, rules), 2);
	CU_ASSERT_TRUE(holds(&rules[1], 8192, 1));
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

/* --- whole decisions --------------------------------------------------------------------------------------------- */

/* Cold, flushed, octaves from 4 KiB up: row k takes 1000 exp(l[k - 1][size]) ns. */
static void cold_data(struct dataset *data, size_t sizes, unsigned kernels, const double l[][8])
{
	for (size_t i = 0; i < sizes; i++)
		for (unsigned k = 0; k < kernels; k++)
			for (unsigned epoch = 0; epoch < EPOCHS; epoch++)
				put_rounds(data, (struct where){PHASE_CLEAR, PC_FLUSHED, (uint64_t)4096 << i}, k, epoch,
				           ROUNDS, 1000 * (k == 0 ? 1 : exp(l[k - 1][i])));
}

static struct decide_input input_of(const struct dataset *data)
{
	return (struct decide_input){.data = data, .kernels = 7, .scrub_weight = 0.1};
}

/* The one table that cold_data() is enough for. */
static const struct pc_table *decided(struct decision *decision, const struct decide_input *input)
{
	CU_ASSERT_EQUAL_FATAL(decide(input, decision), 0);
	CU_ASSERT_EQUAL_FATAL(decision->table_count, 1);
	CU_ASSERT_EQUAL(decision->tables[0].intent, PAGECLEAR_COLD);
	CU_ASSERT_EQUAL(decision->tables[0].prior, PC_FLUSHED);
	CU_ASSERT_EQUAL(decision->tables[0].threads, 1);
	return &decision->tables[0];
}

static void test_nothing_measured_is_no_table(void)
{
	struct dataset data = {0};
	struct decide_input input = input_of(&data);
	struct decision decision;

	CU_ASSERT_EQUAL_FATAL(decide(&input, &decision), 0);
	CU_ASSERT_EQUAL(decision.table_count, 0);
	decision_free(&decision);
}

static void test_a_table_for_each_intent_and_prior(void)
{
	struct dataset data = {0};
	struct decide_input input = input_of(&data);
	struct decision decision;

	NEEDS_KERNELS(3);
	for (unsigned k = 0; k < 3; k++)
		for (unsigned epoch = 0; epoch < EPOCHS; epoch++)
			for (enum phase phase = PHASE_CLEAR; phase <= PHASE_VICTIM_LLC; phase++)
				for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED; prior++)
					put_rounds(&data, (struct where){phase, prior, 65536}, k, epoch, ROUNDS, 100);
	CU_ASSERT_EQUAL_FATAL(decide(&input, &decision), 0);
	CU_ASSERT_EQUAL(decision.table_count, 7);
	for (size_t i = 0; i < decision.table_count; i++) {
		CU_ASSERT_EQUAL(decision.tables[i].rule_count, 1);
		CU_ASSERT_TRUE(holds(&decision.tables[i].rules[0], 0, 0));
		CU_ASSERT_EQUAL(decision.tables[i].rules[0].gain, 1);
		CU_ASSERT_FALSE(decision.kept[i]);
		CU_ASSERT(decision.tables[i].intent != PAGECLEAR_SCRUB || decision.tables[i].prior == PC_UNKNOWN);
	}
	decision_free(&decision);
	dataset_clear(&data);
}

/* Kernel 1 wins from 16 KiB on in three epochs, from 64 KiB on in two: libc keeps what the epochs quarrel about. Where
 * they agree nothing moves. */
static void test_simpler_has_the_benefit_of_the_doubt(void)
{
	static const unsigned from[2][EPOCHS] = {{4, 4, 4, 4, 4}, {4, 4, 4, 6, 6}};

	for (unsigned quarrel = 0; quarrel < 2; quarrel++) {
		struct dataset data = {0};
		struct decide_input input = input_of(&data);
		struct decision decision;
		const struct pc_table *table;

		for (unsigned size = 0; size < 10; size++)
			for (unsigned e = 0; e < EPOCHS; e++) {
				struct where where = {PHASE_CLEAR, PC_FLUSHED, (uint64_t)1024 << size};

				put_rounds(&data, where, 0, e, ROUNDS, 100);
				put_rounds(&data, where, 1, e, ROUNDS, size < from[quarrel][e] ? 150 : 50);
			}
		table = decided(&decision, &input);
		CU_ASSERT_EQUAL_FATAL(table->rule_count, 2);
		CU_ASSERT_STRING_EQUAL(pc_table_rule(table, 8 * 1024)->kernel, "libc");
		CU_ASSERT_STRING_EQUAL(pc_table_rule(table, 16 * 1024)->kernel, quarrel ? "libc" : pc_kernels[1].name);
		CU_ASSERT_STRING_EQUAL(pc_table_rule(table, 32 * 1024)->kernel, quarrel ? "libc" : pc_kernels[1].name);
		CU_ASSERT_STRING_EQUAL(pc_table_rule(table, 64 * 1024)->kernel, pc_kernels[1].name);
		CU_ASSERT(quarrel == 0 || (table->rules[1].low < 32 * 1024 && table->rules[1].high >= 64 * 1024));
		decision_free(&decision);
		dataset_clear(&data);
	}
}

static void test_a_win_becomes_a_rule(void)
{
	static const double l[][8] = {{0.5, 0.5, -0.5, -0.5}, {0.6, 0.6, -0.5, -0.5}};
	struct dataset data = {0};
	struct decide_input input = input_of(&data);
	struct decision decision;
	const struct pc_table *table;

	NEEDS_KERNELS(3);
	cold_data(&data, 4, 3, l);
	table = decided(&decision, &input);
	CU_ASSERT_EQUAL_FATAL(table->rule_count, 2);
	CU_ASSERT_TRUE(holds(&table->rules[0], 0, 0));
	CU_ASSERT_TRUE(holds(&table->rules[1], 12288, 1)); /* the simpler of two equals */
	CU_ASSERT_DOUBLE_EQUAL(table->rules[1].gain, exp(0.5), 1e-4);
	decision_free(&decision);
	input.kernels = 4; /* row 1 must not be chosen */
	table = decided(&decision, &input);
	CU_ASSERT_TRUE(holds(&table->rules[1], 12288, 2));
	decision_free(&decision);
	dataset_clear(&data);
}

/* --- hysteresis -------------------------------------------------------------------------------------------------- */

static struct pc_rule rule(uint64_t from, unsigned kernel)
{
	struct pc_rule made = {.from = from, .low = from / 2, .high = from * 2, .gain = 1.5, .chunk = 7};

	strcpy(made.kernel, name(kernel));
	return made;
}

/* Decides with one old rule for all sizes; true if it stayed, unchanged. */
static bool stays(const struct dataset *data, struct pc_rule old_rule, unsigned threads)
{
	struct pc_table old_table = {
		.intent = PAGECLEAR_COLD, .prior = PC_FLUSHED, .threads = threads, .rule_count = 1, .rules = &old_rule};
	struct pc_document old = {.table_count = 1, .tables = &old_table};
	struct decide_input input = input_of(data);
	const struct pc_table *table;
	struct decision decision;
	bool kept;

	input.old = &old;
	table = decided(&decision, &input);
	kept = decision.kept[0];
	if (kept) {
		CU_ASSERT_EQUAL(table->rule_count, 1);
		CU_ASSERT_EQUAL(memcmp(&table->rules[0], &old_rule, sizeof(old_rule)), 0);
	}
	decision_free(&decision);
	return kept;
}

static bool stays_under(const double l[][8], size_t sizes, unsigned old_kernel)
{
	struct dataset data = {0};
	bool kept;

	cold_data(&data, sizes, 3, l);
	kept = stays(&data, rule(0, old_kernel), 1);
	dataset_clear(&data);
	return kept;
}

/* Four sizes of an octave each; a switch costs 0.06 nat-octaves. */
static void test_old_rules_stay_until_they_lose(void)
{
	static const double near[][8] = {{-0.2, -0.2, -0.2, -0.2}, {-0.21, -0.21, -0.21, -0.21}},
			    far[][8] = {{-0.2, -0.2, -0.2, -0.2}, {-0.25, -0.25, -0.25, -0.25}},
			    back[][8] = {{-0.02, -0.02, -0.02, -0.02}, {0.1, 0.1, 0.1, 0.1}};

	NEEDS_KERNELS(3);
	CU_ASSERT_TRUE(stays_under(near, 4, 1));
	CU_ASSERT_FALSE(stays_under(far, 4, 1));
	CU_ASSERT_TRUE(stays_under(far, 4, 2));
	CU_ASSERT_FALSE(stays_under(far, 4, 0));
	CU_ASSERT_TRUE(stays_under(back, 4, 1)); /* no gain that one would switch for, but it loses nothing */
	CU_ASSERT_FALSE(stays_under(back, 4, 2));
}

/* Row 1 takes so much of libc's time but for one size, half an octave wide, where it is slower by so much; row 2 is as
 * good as row 1 is elsewhere. */
static bool stays_with_a_hole(double l, double loss)
{
	static const uint64_t sizes[] = {4096, 6144, 8192, 12288, 16384};
	struct dataset data = {0};
	bool kept;

	for (size_t i = 0; i < 5; i++)
		for (unsigned epoch = 0; epoch < EPOCHS; epoch++) {
			struct where where = {PHASE_CLEAR, PC_FLUSHED, sizes[i]};

			put_rounds(&data, where, 0, epoch, ROUNDS, 1000);
			put_rounds(&data, where, 1, epoch, ROUNDS, 1000 * exp(i == 2 ? l + loss : l));
			put_rounds(&data, where, 2, epoch, ROUNDS, 1000 * exp(l));
		}
	kept = stays(&data, rule(0, 1), 1);
	dataset_clear(&data);
	return kept;
}

static void test_a_sure_loss_in_one_cell_replaces_old_rules(void)
{
	NEEDS_KERNELS(3);
	CU_ASSERT_TRUE(stays_with_a_hole(-0.2, 0.09));  /* 0.045 nat-octaves */
	CU_ASSERT_FALSE(stays_with_a_hole(-0.2, 0.11)); /* 0.055, less than a switch, but more than 10 % somewhere */
}

/* What no new rule may do no old one may go on doing: be significantly more than 3 % slower than libc. */
static void test_a_forbidden_cell_replaces_old_rules(void)
{
	NEEDS_KERNELS(3);
	CU_ASSERT_TRUE(stays_with_a_hole(0, 0.02));
	CU_ASSERT_FALSE(stays_with_a_hole(0, 0.04));
}

/* A gain of 2 % can be proven by no test that asks for 3: that alone condemns no old rule. */
static void test_unproven_is_not_forbidden(void)
{
	static const double l[][8] = {{-0.2, -0.025, -0.025, -0.2}, {0.2, 0.2, 0.2, 0.2}};

	NEEDS_KERNELS(3);
	CU_ASSERT_TRUE(stays_under(l, 4, 1));
}

/* Cold, unknown prior: row 1 wins twofold if flushed and loses 8 % if cached. */
static void test_the_broken_guard_replaces_old_rules(void)
{
	NEEDS_KERNELS(2);
	for (int broken = 0; broken < 2; broken++) {
		struct dataset data = {0};
		struct decide_input input = input_of(&data);
		struct pc_rule old_rule = rule(0, 1);
		struct pc_table old_table = {
			.intent = PAGECLEAR_COLD, .threads = 1, .rule_count = 1, .rules = &old_rule};
		struct pc_document old = {.table_count = 1, .tables = &old_table};
		struct decision decision;

		for (size_t i = 0; i < 4; i++)
			for (unsigned epoch = 0; epoch < EPOCHS; epoch++) {
				struct where where = {PHASE_CLEAR, PC_FLUSHED, (uint64_t)4096 << i};

				put_rounds(&data, where, 0, epoch, ROUNDS, 1000);
				put_rounds(&data, where, 1, epoch, ROUNDS, 500);
				where.prior = PC_CACHED;
				put_rounds(&data, where, 0, epoch, ROUNDS, 100);
				put_rounds(&data, where, 1, epoch, ROUNDS, broken && i == 2 ? 108 : 100);
			}
		input.old = &old;
		CU_ASSERT_EQUAL_FATAL(decide(&input, &decision), 0);
		CU_ASSERT_EQUAL_FATAL(decision.table_count, 3);
		CU_ASSERT_EQUAL(decision.tables[2].prior, PC_UNKNOWN);
		CU_ASSERT_EQUAL(decision.kept[2], !broken);
		decision_free(&decision);
		dataset_clear(&data);
	}
}

/* Old tables for scrub (rows 1 and 2) and for what was measured; decides and says how many tables came out. */
static size_t tables_after(const struct decide_input *input, struct pc_rule *scrub, struct decision *decision)
{
	struct pc_rule cold = rule(0, 1);
	struct pc_table tables[2] = {
		{.intent = PAGECLEAR_SCRUB, .threads = 1, .rule_count = 2, .rules = scrub},
		{.intent = PAGECLEAR_COLD, .prior = PC_FLUSHED, .threads = 1, .rule_count = 1, .rules = &cold}};
	struct pc_document old = {.table_count = 2, .tables = tables};
	struct decide_input with = *input;

	with.old = &old;
	CU_ASSERT_EQUAL_FATAL(decide(&with, decision), 0);
	return decision->table_count;
}

static void test_what_was_not_measured_is_carried_over(void)
{
	static const double l[][8] = {{-0.2, -0.2}, {-0.2, -0.2}};
	const struct pin pin = {.intent = PAGECLEAR_SCRUB, .from = 65536, .to = UINT64_MAX, .kernel = 0};
	struct dataset data = {0};
	struct decide_input input = input_of(&data);
	struct pc_rule scrub[2] = {rule(0, 1), rule(8192, 2)};
	struct decision decision;

	NEEDS_KERNELS(3);
	cold_data(&data, 2, 3, l);
	CU_ASSERT_EQUAL_FATAL(tables_after(&input, scrub, &decision), 2);
	CU_ASSERT_EQUAL(decision.tables[1].intent, PAGECLEAR_SCRUB);
	CU_ASSERT_EQUAL(decision.tables[1].threads, 1);
	CU_ASSERT_TRUE(decision.kept[1]);
	CU_ASSERT_EQUAL_FATAL(decision.tables[1].rule_count, 2);
	CU_ASSERT_EQUAL(memcmp(decision.tables[1].rules, scrub, sizeof(scrub)), 0);
	decision_free(&decision);
	input.pins = &pin;
	input.pin_count = 1;
	CU_ASSERT_EQUAL_FATAL(tables_after(&input, scrub, &decision), 2);
	CU_ASSERT_EQUAL(decision.tables[1].rule_count, 3);
	decision_free(&decision);
	input.kernels = 3; /* row 2 may not be chosen any more */
	CU_ASSERT_EQUAL(tables_after(&input, scrub, &decision), 1);
	decision_free(&decision);
	dataset_clear(&data);
}

/* The median epoch is for the new choice, two of five are against it. */
static void test_epochs_that_disagree_replace_nothing(void)
{
	static const double by_epoch[EPOCHS] = {-0.4, -0.4, -0.4, -0.1, -0.1},
			    agreed[EPOCHS] = {-0.4, -0.4, -0.4, -0.4, -0.25};

	NEEDS_KERNELS(3);
	for (int agree = 0; agree < 2; agree++) {
		struct dataset data = {0};

		for (size_t i = 0; i < 4; i++)
			for (unsigned epoch = 0; epoch < EPOCHS; epoch++) {
				struct where where = {PHASE_CLEAR, PC_FLUSHED, (uint64_t)4096 << i};

				put_rounds(&data, where, 0, epoch, ROUNDS, 1000);
				put_rounds(&data, where, 1, epoch, ROUNDS, 1000 * exp(-0.2));
				put_rounds(&data, where, 2, epoch, ROUNDS,
				           1000 * exp(agree ? agreed[epoch] : by_epoch[epoch]));
			}
		CU_ASSERT_EQUAL(stays(&data, rule(0, 1), 1), !agree);
		dataset_clear(&data);
	}
}

static void test_old_rules_that_cannot_be_kept(void)
{
	static const double l[][8] = {{-0.2, -0.2}, {-0.2, -0.2}};
	struct dataset data = {0};
	struct pc_rule unknown = rule(0, 1), pinned = rule(0, 1), lost = rule(0, 1);

	NEEDS_KERNELS(4);
	cold_data(&data, 2, 3, l);
	strcpy(unknown.kernel, "nosuch");
	pinned.pinned = true;
	strcpy(lost.kernel, name(3)); /* not in the mask any more */
	CU_ASSERT_TRUE(stays(&data, rule(0, 1), 1));
	CU_ASSERT_FALSE(stays(&data, rule(0, 1), 2)); /* measured with other threads */
	CU_ASSERT_FALSE(stays(&data, unknown, 1));
	CU_ASSERT_FALSE(stays(&data, pinned, 1));
	CU_ASSERT_FALSE(stays(&data, lost, 1));
	dataset_clear(&data);
}

/* --- pins -------------------------------------------------------------------------------------------------------- */

/* Without pins: libc, row 1 from 12288. */
static const struct pc_table *pinned_table(struct decision *decision, struct dataset *data, const struct pin *pins,
                                           size_t count)
{
	static const double l[][8] = {{0.5, 0.5, -0.5, -0.5}, {0.6, 0.6, 0.5, 0.5}};
	struct decide_input input = input_of(data);

	cold_data(data, 4, 3, l);
	input.pins = pins;
	input.pin_count = count;
	return decided(decision, &input);
}

struct expected {
	uint64_t from;
	unsigned kernel;
	bool pinned;
};

static void pin_case(const struct pin *pins, size_t count, const struct expected *expected, size_t rules)
{
	struct dataset data = {0};
	struct decision decision;
	const struct pc_table *table = pinned_table(&decision, &data, pins, count);

	CU_ASSERT_EQUAL_FATAL(table->rule_count, rules);
	for (size_t i = 0; i < rules; i++) {
		CU_ASSERT_TRUE(holds(&table->rules[i], expected[i].from, expected[i].kernel));
		CU_ASSERT_EQUAL(table->rules[i].pinned, expected[i].pinned);
	}
	decision_free(&decision);
	dataset_clear(&data);
}

#define PIN(from_bytes, to_bytes, row)                                                                                 \
	{                                                                                                              \
		.intent = PAGECLEAR_COLD, .prior = PC_FLUSHED, .from = (from_bytes), .to = (to_bytes), .kernel = (row) \
	}
#define PINS(...) (const struct pin[]){__VA_ARGS__}, sizeof((const struct pin[]){__VA_ARGS__}) / sizeof(struct pin)
#define RULES(...)                                                                                                     \
	(const struct expected[]){__VA_ARGS__}, sizeof((const struct expected[]){__VA_ARGS__}) / sizeof(struct expected)

static void test_pins_cut_into_rules(void)
{
	NEEDS_KERNELS(3);
	pin_case(NULL, 0, RULES({0, 0, false}, {12288, 1, false}));
	pin_case(PINS(PIN(0, 8192, 2)), RULES({0, 2, true}, {8192, 0, false}, {12288, 1, false}));
	pin_case(PINS(PIN(1024, 2048, 2)), RULES({0, 0, false}, {1024, 2, true}, {2048, 0, false}, {12288, 1, false}));
	/* Up to a rule, over a rule, from a rule, all of one. */
	pin_case(PINS(PIN(8192, 12288, 2)), RULES({0, 0, false}, {8192, 2, true}, {12288, 1, false}));
	pin_case(PINS(PIN(8192, 16384, 2)), RULES({0, 0, false}, {8192, 2, true}, {16384, 1, false}));
	pin_case(PINS(PIN(12288, 16384, 2)), RULES({0, 0, false}, {12288, 2, true}, {16384, 1, false}));
	pin_case(PINS(PIN(12288, UINT64_MAX, 2)), RULES({0, 0, false}, {12288, 2, true}));
	pin_case(PINS(PIN(0, UINT64_MAX, 2)), RULES({0, 2, true}));
	pin_case(PINS(PIN(65536, UINT64_MAX, 0)), RULES({0, 0, false}, {12288, 1, false}, {65536, 0, true}));
}

static void test_pins_upon_pins(void)
{
	NEEDS_KERNELS(3);
	pin_case(PINS(PIN(0, 4096, 2), PIN(4096, 8192, 1)),
	         RULES({0, 2, true}, {4096, 1, true}, {8192, 0, false}, {12288, 1, false}));
	pin_case(PINS(PIN(4096, 8192, 1), PIN(0, 4096, 2)),
	         RULES({0, 2, true}, {4096, 1, true}, {8192, 0, false}, {12288, 1, false}));
	/* The later one wins where they overlap. */
	pin_case(PINS(PIN(0, UINT64_MAX, 2), PIN(4096, 8192, 1)),
	         RULES({0, 2, true}, {4096, 1, true}, {8192, 2, true}));
	pin_case(PINS(PIN(4096, 8192, 1), PIN(0, UINT64_MAX, 2)), RULES({0, 2, true}));
	pin_case(PINS(PIN(4096, 8192, 1), PIN(6144, 16384, 2)),
	         RULES({0, 0, false}, {4096, 1, true}, {6144, 2, true}, {16384, 1, false}));
}

static void test_pins_for_others(void)
{
	struct pin hot = PIN(0, 4096, 2), cached = PIN(0, 4096, 2), any = PIN(0, 4096, 2);

	NEEDS_KERNELS(3);
	hot.intent = PAGECLEAR_HOT;
	cached.prior = any.prior = PC_CACHED;
	any.any_prior = true;
	pin_case(PINS(hot, cached), RULES({0, 0, false}, {12288, 1, false}));
	pin_case(PINS(any), RULES({0, 2, true}, {4096, 0, false}, {12288, 1, false}));
	pin_case(PINS(PIN(4096, 4096, 2), PIN(8192, 4096, 2)), RULES({0, 0, false}, {12288, 1, false})); /* empty */
}

static void test_a_rule_that_begins_after_a_pin_keeps_its_range(void)
{
	struct dataset data = {0};
	struct decision decision;
	const struct pin pins[] = {PIN(8192, 12288, 2), PIN(1024, 2048, 2)};
	const struct pc_table *table;

	NEEDS_KERNELS(3);
	table = pinned_table(&decision, &data, pins, 2);
	CU_ASSERT_EQUAL_FATAL(table->rule_count, 5);
	CU_ASSERT_TRUE(holds(&table->rules[2], 2048, 0));
	CU_ASSERT_EQUAL(table->rules[2].high, 0); /* a cut is no crossover */
	CU_ASSERT_TRUE(holds(&table->rules[4], 12288, 1));
	CU_ASSERT_EQUAL(table->rules[4].low, 8192);
	CU_ASSERT_EQUAL(table->rules[4].high, 16384);
	decision_free(&decision);
	dataset_clear(&data);
}

static void test_too_many_pins_are_refused(void)
{
	static const double l[][8] = {{0, 0}};
	struct pin pins[40];
	struct dataset data = {0};
	struct decide_input input = input_of(&data);
	struct decision decision = {.table_count = 99};

	NEEDS_KERNELS(2);
	cold_data(&data, 2, 2, l);
	for (unsigned i = 0; i < 40; i++)
		pins[i] = (struct pin)PIN(1000 * (i + 1), 1000 * (i + 1) + 10, 1);
	input.pins = pins;
	input.pin_count = 40;
	CU_ASSERT_EQUAL(decide(&input, &decision), -E2BIG);
	CU_ASSERT_EQUAL(decision.table_count, 99);
	input.pin_count = 31; /* one rule and two more each */
	CU_ASSERT_EQUAL_FATAL(decide(&input, &decision), 0);
	CU_ASSERT_EQUAL(decision.tables[0].rule_count, 63);
	decision_free(&decision);
	dataset_clear(&data);
}

static const struct unit_test tests[] = {
	{"rules ascend and say what was chosen", test_rules_ascend_and_say_what_was_chosen},
	{"crossovers are interpolated", test_crossovers_are_interpolated},
	{"range of a crossover is that of the epochs", test_range_of_a_crossover_is_that_of_the_epochs},
	{"beyond the grid", test_beyond_the_grid},
	{"scrub holds beyond the grid", test_scrub_holds_beyond_the_grid},
	{"a forbidden cell replaces old rules", test_a_forbidden_cell_replaces_old_rules},
	{"unproven is not forbidden", test_unproven_is_not_forbidden},
	{"the broken guard replaces old rules", test_the_broken_guard_replaces_old_rules},
	{"what was not measured is carried over", test_what_was_not_measured_is_carried_over},
	{"nothing measured is no table", test_nothing_measured_is_no_table},
	{"a table for each intent and prior", test_a_table_for_each_intent_and_prior},
	{"a win becomes a rule", test_a_win_becomes_a_rule},
	{"simpler has the benefit of the doubt", test_simpler_has_the_benefit_of_the_doubt},
	{"old rules stay until they lose", test_old_rules_stay_until_they_lose},
	{"a sure loss in one cell replaces old rules", test_a_sure_loss_in_one_cell_replaces_old_rules},
	{"epochs that disagree replace nothing", test_epochs_that_disagree_replace_nothing},
	{"old rules that cannot be kept", test_old_rules_that_cannot_be_kept},
	{"pins cut into rules", test_pins_cut_into_rules},
	{"pins upon pins", test_pins_upon_pins},
	{"pins for others", test_pins_for_others},
	{"a rule that begins after a pin keeps its range", test_a_rule_that_begins_after_a_pin_keeps_its_range},
	{"too many pins are refused", test_too_many_pins_are_refused},
};

UNIT_MAIN("decide", tests)
