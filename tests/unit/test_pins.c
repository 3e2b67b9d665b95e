/* Pinned ranges over rules. */
#include "calibrd/pins.h"

#include <errno.h>
#include <string.h>

#include "pageclear/policy.h"
#include "tests/unit/harness.h"

enum { LIBC, FIRST, SECOND };

static struct pc_rule rules[PC_RULES_MAX];
static struct pc_table table;

/* libc below 1000, FIRST from there, libc again from 9000. */
static void start(void)
{
	table = (struct pc_table){PAGECLEAR_COLD, PC_FLUSHED, 2, 3, rules};
	rules[0] = (struct pc_rule){.from = 0};
	rules[1] = (struct pc_rule){.from = 1000, .low = 900, .high = 1100, .gain = 2};
	rules[2] = (struct pc_rule){.from = 9000, .low = 8000, .high = 9500};
	strcpy(rules[0].kernel, "libc");
	strcpy(rules[1].kernel, pc_kernels[FIRST].name);
	strcpy(rules[2].kernel, "libc");
}

static bool rule_is(size_t i, uint64_t from, unsigned kernel, bool pinned)
{
	return i < table.rule_count && rules[i].from == from && rules[i].pinned == pinned &&
	       strcmp(rules[i].kernel, pc_kernels[kernel].name) == 0;
}

static void in_the_middle(void)
{
	struct pin pin = {PAGECLEAR_COLD, PC_FLUSHED, false, 2000, 3000, LIBC};

	start();
	CU_ASSERT_EQUAL(pins_apply(&table, &pin, 1), 0);
	CU_ASSERT_EQUAL(table.rule_count, 5);
	CU_ASSERT_TRUE(rule_is(1, 1000, FIRST, false));
	CU_ASSERT_TRUE(rule_is(2, 2000, LIBC, true));
	CU_ASSERT_TRUE(rule_is(3, 3000, FIRST, false));
	CU_ASSERT_EQUAL(rules[3].high, 0); /* a cut is no crossover */
	CU_ASSERT_TRUE(rule_is(4, 9000, LIBC, false));
	CU_ASSERT_EQUAL(rules[4].high, 9500);
}

static void everything(void)
{
	struct pin pin = {PAGECLEAR_COLD, PC_UNKNOWN, true, 0, UINT64_MAX, FIRST};

	start();
	CU_ASSERT_EQUAL(pins_apply(&table, &pin, 1), 0);
	CU_ASSERT_EQUAL(table.rule_count, 1);
	CU_ASSERT_TRUE(rule_is(0, 0, FIRST, true));
}

static void up_to_a_crossover(void)
{
	struct pin pin = {PAGECLEAR_COLD, PC_FLUSHED, false, 1000, 9000, LIBC};

	start();
	CU_ASSERT_EQUAL(pins_apply(&table, &pin, 1), 0);
	CU_ASSERT_EQUAL(table.rule_count, 3);
	CU_ASSERT_TRUE(rule_is(1, 1000, LIBC, true));
	CU_ASSERT_TRUE(rule_is(2, 9000, LIBC, false));
	CU_ASSERT_EQUAL(rules[2].low, 8000);
}

static void for_others(void)
{
	struct pin pins[] = {{PAGECLEAR_HOT, PC_FLUSHED, false, 0, 5000, FIRST},
	                     {PAGECLEAR_COLD, PC_CACHED, false, 0, 5000, FIRST},
	                     {PAGECLEAR_COLD, PC_FLUSHED, false, 5000, 5000, FIRST}};

	start();
	CU_ASSERT_EQUAL(pins_apply(&table, pins, 3), 0);
	CU_ASSERT_EQUAL(table.rule_count, 3);
	CU_ASSERT_TRUE(rule_is(0, 0, LIBC, false));
}

static void the_later_one_wins(void)
{
	struct pin pins[] = {{PAGECLEAR_COLD, PC_FLUSHED, false, 0, 5000, FIRST},
	                     {PAGECLEAR_COLD, PC_FLUSHED, false, 0, 2000, LIBC}};

	start();
	CU_ASSERT_EQUAL(pins_apply(&table, pins, 2), 0);
	CU_ASSERT_TRUE(rule_is(0, 0, LIBC, true));
	CU_ASSERT_TRUE(rule_is(1, 2000, FIRST, true));
	CU_ASSERT_TRUE(rule_is(2, 5000, FIRST, false));
}

static void too_many(void)
{
	struct pin pins[PC_RULES_MAX];

	start();
	for (unsigned i = 0; i < PC_RULES_MAX; i++)
		pins[i] = (struct pin){PAGECLEAR_COLD, PC_FLUSHED, false, 2 * i + 2, 2 * i + 3, FIRST};
	CU_ASSERT_EQUAL(pins_apply(&table, pins, PC_RULES_MAX), -E2BIG);
	CU_ASSERT_TRUE(table.rule_count <= PC_RULES_MAX);
}

static const struct unit_test tests[] = {
	{"in the middle", in_the_middle},           {"everything", everything},
	{"up to a crossover", up_to_a_crossover},   {"for others", for_others},
	{"the later one wins", the_later_one_wins}, {"too many", too_many},
};

UNIT_MAIN("pins", tests)
