/* What pins do to rules. */
#include <errno.h>

#include "tests/unit/decisions.h"

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
	{"pins cut into rules", test_pins_cut_into_rules},
	{"pins upon pins", test_pins_upon_pins},
	{"pins for others", test_pins_for_others},
	{"a rule that begins after a pin keeps its range", test_a_rule_that_begins_after_a_pin_keeps_its_range},
	{"too many pins are refused", test_too_many_pins_are_refused},
};

UNIT_MAIN("decide_pins", tests)
