/* Whole decisions, and what old rules do to them. */
#include "tests/unit/decisions.h"

/* --- whole decisions --------------------------------------------------------------------------------------------- */

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
	CU_ASSERT_FALSE(stays(&data, unknown, 1));
	CU_ASSERT_FALSE(stays(&data, pinned, 1));
	CU_ASSERT_FALSE(stays(&data, lost, 1));
	dataset_clear(&data);
}

/* One table is carried over beside the one that was measured: with two threads nothing was. */
static void test_other_threads_hold_nothing_up(void)
{
	static const double l[][8] = {{-0.2, -0.2}, {-0.9, -0.9}};
	struct dataset data = {0};
	struct pc_rule old_rule = rule(0, 1);
	struct pc_table old_table = {
		.intent = PAGECLEAR_COLD, .prior = PC_FLUSHED, .threads = 2, .rule_count = 1, .rules = &old_rule};
	struct pc_document old = {.table_count = 1, .tables = &old_table};
	struct decide_input input = input_of(&data);
	struct decision decision;

	NEEDS_KERNELS(3);
	cold_data(&data, 2, 3, l);
	input.old = &old;
	CU_ASSERT_EQUAL_FATAL(decide(&input, &decision), 0);
	CU_ASSERT_EQUAL_FATAL(decision.table_count, 2);
	CU_ASSERT_EQUAL(decision.tables[0].threads, 1);
	CU_ASSERT_FALSE(decision.kept[0]);
	CU_ASSERT_EQUAL(decision.tables[1].threads, 2);
	CU_ASSERT_TRUE(decision.kept[1]);
	decision_free(&decision);
	dataset_clear(&data);
}

/* Old rules: row 1 from 2 KiB up. Decides; the rules that came out, beside what was expected. */
static void expect_mended(const double l[][8], size_t sizes, const uint64_t *from, const unsigned *kernels,
                          size_t rules)
{
	struct pc_rule old_rules[] = {rule(0, 0), rule(2048, 1)};
	struct pc_table old_table = {
		.intent = PAGECLEAR_COLD, .prior = PC_FLUSHED, .threads = 1, .rule_count = 2, .rules = old_rules};
	struct pc_document old = {.table_count = 1, .tables = &old_table};
	struct dataset data = {0};
	struct decide_input input = input_of(&data);
	const struct pc_table *table;
	struct decision decision;

	cold_data(&data, sizes, 2, l);
	old_rules[0].chunk = old_rules[1].chunk = 0;
	input.kernels = 3;
	input.old = &old;
	table = decided(&decision, &input);
	CU_ASSERT_FALSE(decision.kept[0]);
	CU_ASSERT_EQUAL_FATAL(table->rule_count, rules);
	for (size_t i = 0; i < rules; i++)
		CU_ASSERT_TRUE(holds(&table->rules[i], from[i], kernels[i]));
	for (size_t i = 1; i < rules; i++)
		CU_ASSERT(table->rules[i].high == 0 || table->rules[i].high >= table->rules[i].from);
	decision_free(&decision);
	dataset_clear(&data);
}

#define MENDED(l, sizes, ...)                                                                                          \
	expect_mended(l, sizes, (const uint64_t[]){__VA_ARGS__}, (const unsigned[]){0, 1, 0, 1, 0},                    \
	              sizeof((const uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t))

/* Sizes from 4 KiB, an octave apart. What the data forbid goes to libc, and no more than that: the data alone would
 * begin in between. */
static void test_old_rules_are_mended(void)
{
	static const double edge[][8] = {{0.2, -0.2, -0.2, -0.2}}, hole[][8] = {{-0.2, -0.2, 0.2, -0.2, -0.2}},
			    end[][8] = {{-0.2, -0.2, -0.2, 0.2}}, wide[][8] = {{0.2, 0.2, -0.2, -0.2}};

	NEEDS_KERNELS(2);
	MENDED(edge, 4, 0, 8192);
	MENDED(hole, 5, 0, 2048, 16384, 32768);
	MENDED(end, 4, 0, 2048, 32768);
	MENDED(wide, 4, 0, 12288); /* two octaves are no edge: anew, where the curves cross */
}

/* Inside a crossover's bracket sizes stand close: a loss of 15 % at one of them is one over an eighth of an octave. */
static bool stays_on_a_cliff(size_t first, size_t last)
{
	static const uint64_t bytes[] = {4096, 5120, 5632, 6144, 8192, 16384};
	struct dataset data = {0};
	bool kept;

	for (size_t i = 0; i < 6; i++)
		for (unsigned epoch = 0; epoch < EPOCHS; epoch++) {
			struct where where = {PHASE_CLEAR, PC_FLUSHED, bytes[i]};

			put_rounds(&data, where, 0, epoch, ROUNDS, 1000);
			put_rounds(&data, where, 1, epoch, ROUNDS, 1000 * exp(i >= first && i <= last ? -0.35 : -0.5));
			put_rounds(&data, where, 2, epoch, ROUNDS, 1000 * exp(-0.5));
		}
	kept = stays(&data, rule(0, 1), 1);
	dataset_clear(&data);
	return kept;
}

static void test_a_loss_on_a_cliff_replaces_nothing(void)
{
	NEEDS_KERNELS(3);
	CU_ASSERT_TRUE(stays_on_a_cliff(2, 2));  /* 0.13 octaves */
	CU_ASSERT_FALSE(stays_on_a_cliff(1, 2)); /* 0.36: 0.054 nat-octaves, less than a switch */
}

/* Cached it loses 8 % in seven rounds of twelve: no new rule names it there, but an old one stays. */
static void test_a_doubt_replaces_nothing(void)
{
	struct dataset data = {0};
	struct decide_input input = input_of(&data);
	struct pc_rule old_rule = rule(0, 1);
	struct pc_table old_table = {.intent = PAGECLEAR_COLD, .threads = 1, .rule_count = 1, .rules = &old_rule};
	struct pc_document old = {.table_count = 1, .tables = &old_table};
	struct decision decision;

	NEEDS_KERNELS(2);
	input.kernels = 3;
	for (size_t i = 0; i < 4; i++)
		for (unsigned epoch = 0; epoch < EPOCHS; epoch++)
			for (unsigned round = 0; round < ROUNDS; round++) {
				struct where where = {PHASE_CLEAR, PC_FLUSHED, (uint64_t)4096 << i};

				put(&data, where, 0, epoch, round, 1000);
				put(&data, where, 1, epoch, round, 700);
				where.prior = PC_CACHED;
				put(&data, where, 0, epoch, round, 100);
				put(&data, where, 1, epoch, round, i == 2 && (round == 0 || round % 2 != 0) ? 108 : 90);
			}
	for (int known = 0; known < 2; known++) {
		const char *expected = known ? name(1) : "libc";

		input.old = known ? &old : NULL;
		CU_ASSERT_EQUAL_FATAL(decide(&input, &decision), 0);
		CU_ASSERT_EQUAL_FATAL(decision.table_count, 3);
		CU_ASSERT_EQUAL(decision.kept[2], known);
		CU_ASSERT_STRING_EQUAL(pc_table_rule(&decision.tables[2], 16384)->kernel, expected);
		decision_free(&decision);
	}
	dataset_clear(&data);
}

static const struct unit_test tests[] = {
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
	{"old rules are mended", test_old_rules_are_mended},
	{"a loss on a cliff replaces nothing", test_a_loss_on_a_cliff_replaces_nothing},
	{"a doubt replaces nothing", test_a_doubt_replaces_nothing},
	{"other threads hold nothing up", test_other_threads_hold_nothing_up},
	{"old rules that cannot be kept", test_old_rules_that_cannot_be_kept},
};

UNIT_MAIN("decide", tests)
