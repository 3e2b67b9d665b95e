/* Where two policies choose otherwise, and how that is told. */
#include "calibctl/diff_rules.h"

#include <string.h>

#include "pageclear/policy.h"
#include "tests/unit/harness.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

static struct pc_rule libc[] = {{.kernel = "libc"}};
static struct pc_rule lines[] = {{.kernel = "libc"}, {.from = 2 * KIB, .gain = 2, .kernel = "clzero"}};
static struct pc_rule earlier[] = {{.kernel = "libc"}, {.from = 1536, .gain = 3, .kernel = "clzero"}};

#define TABLE(i, p, t, r)                                                                                              \
	{                                                                                                              \
		.intent = (i), .prior = (p), .threads = (t), .rule_count = sizeof(r) / sizeof((r)[0]), .rules = (r)    \
	}

static struct diff_table found[DIFF_TABLES_MAX];

static void compare(struct pc_rule *a, size_t a_count, struct pc_rule *b, size_t b_count)
{
	static struct pc_table left, right;

	left = (struct pc_table){.intent = PAGECLEAR_COLD, .threads = 1, .rule_count = a_count, .rules = a};
	right = left;
	right.rules = b;
	right.rule_count = b_count;
	found[0] = (struct diff_table){.a = &left, .b = &right};
	diff_ranges(&found[0]);
}

static void expect(size_t change, const char *expected)
{
	char text[DIFF_CHANGE];

	diff_change(&found[0], change, text);
	CU_ASSERT_STRING_EQUAL(text, expected);
	if (strcmp(text, expected) != 0)
		printf("\n\"%s\" is not \"%s\"\n", text, expected);
}

static void expect_range(size_t range, uint64_t from, uint64_t to, const char *a, const char *b)
{
	CU_ASSERT_EQUAL(found[0].ranges[range].from, from);
	CU_ASSERT_EQUAL(found[0].ranges[range].to, to);
	CU_ASSERT_STRING_EQUAL(found[0].ranges[range].a->kernel, a);
	CU_ASSERT_STRING_EQUAL(found[0].ranges[range].b->kernel, b);
}

/* Gains and ranges of crossovers are no choices. */
static void the_same(void)
{
	struct pc_rule other[] = {{.kernel = "libc"},
	                          {.from = 2 * KIB, .low = 1, .high = 9999, .gain = 7, .kernel = "clzero"}};

	compare(lines, 2, other, 2);
	CU_ASSERT_EQUAL(found[0].range_count, 0);
	CU_ASSERT_EQUAL(diff_change_count(&found[0]), 0);
}

static void a_crossover_moved(void)
{
	compare(lines, 2, earlier, 2);
	CU_ASSERT_TRUE(found[0].moved);
	CU_ASSERT_EQUAL_FATAL(found[0].range_count, 1);
	expect_range(0, 1536, 2 * KIB, "libc", "clzero");
	CU_ASSERT_EQUAL_FATAL(diff_change_count(&found[0]), 1);
	expect(0, "clzero from 2 KiB -> 1.5 KiB");
}

/* Two moved, one in the middle did not. */
static void crossovers_moved(void)
{
	struct pc_rule a[] = {{.kernel = "libc"},
	                      {.from = 1 * KIB, .kernel = "avx2"},
	                      {.from = 4 * KIB, .kernel = "libc"},
	                      {.from = 8 * KIB, .kernel = "movnti"}};
	struct pc_rule b[] = {{.kernel = "libc"},
	                      {.from = 2 * KIB, .kernel = "avx2"},
	                      {.from = 4 * KIB, .kernel = "libc"},
	                      {.from = 16 * KIB, .kernel = "movnti"}};

	compare(a, 4, b, 4);
	CU_ASSERT_EQUAL(diff_change_count(&found[0]), 2);
	expect(0, "avx2 from 1 KiB -> 2 KiB");
	expect(1, "movnti from 8 KiB -> 16 KiB");
}

static void a_rule_more(void)
{
	struct pc_rule b[] = {{.kernel = "libc"},
	                      {.from = 2 * KIB, .kernel = "clzero"},
	                      {.from = 1 * MIB, .kernel = "avxnt"},
	                      {.from = 4 * MIB, .kernel = "clzero"}};

	compare(lines, 2, b, 4);
	CU_ASSERT_FALSE(found[0].moved);
	CU_ASSERT_EQUAL_FATAL(found[0].range_count, 1);
	expect(0, "1 MiB - 4 MiB: clzero -> avxnt");
	compare(b, 4, lines, 2);
	expect(0, "1 MiB - 4 MiB: avxnt -> clzero");
	compare(lines, 2, libc, 1);
	expect(0, "2 KiB - no limit: clzero -> libc");
	b[3].kernel[0] = 'C';
	compare(lines, 2, b, 4);
	CU_ASSERT_EQUAL_FATAL(found[0].range_count, 2);
	expect(1, "4 MiB - no limit: clzero -> Clzero");
}

static void chunks_and_pins(void)
{
	struct pc_rule chunk[] = {{.kernel = "clzero", .chunk = 2 * MIB}}, whole[] = {{.kernel = "clzero"}};
	struct pc_rule pinned[] = {{.kernel = "clzero", .pinned = true}};

	compare(whole, 1, chunk, 1);
	CU_ASSERT_EQUAL_FATAL(diff_change_count(&found[0]), 1);
	expect(0, "all sizes: clzero -> clzero in pieces of 2 MiB");
	compare(whole, 1, pinned, 1);
	expect(0, "all sizes: clzero -> clzero (pinned)");
}

/* Every boundary of either is one of both, at most: no more ranges than there is room for. */
static void as_many_as_there_can_be(void)
{
	static struct pc_rule a[PC_RULES_MAX], b[PC_RULES_MAX];

	for (unsigned i = 0; i < PC_RULES_MAX; i++) {
		a[i] = (struct pc_rule){.from = 2 * i, .chunk = 3 * i + 1, .kernel = "a"};
		b[i] = (struct pc_rule){.from = i == 0 ? 0 : 2 * i + 1, .chunk = 3 * i + 2, .kernel = "b"};
	}
	compare(a, PC_RULES_MAX, b, PC_RULES_MAX);
	CU_ASSERT_EQUAL(found[0].range_count, 2 * PC_RULES_MAX - 1);
	CU_ASSERT_EQUAL(found[0].ranges[found[0].range_count - 1].to, UINT64_MAX);
	for (size_t i = 1; i < found[0].range_count; i++)
		CU_ASSERT_EQUAL(found[0].ranges[i].from, found[0].ranges[i - 1].to);
}

static void expect_heading(size_t table, const char *expected)
{
	char text[DIFF_CHANGE];

	diff_heading(&found[table], text);
	CU_ASSERT_STRING_EQUAL(text, expected);
}

static void tables_come_and_go(void)
{
	struct pc_table before[] = {TABLE(PAGECLEAR_SCRUB, PC_UNKNOWN, 1, lines),
	                            TABLE(PAGECLEAR_COLD, PC_FLUSHED, 1, lines),
	                            TABLE(PAGECLEAR_HOT, PC_UNKNOWN, 1, lines)};
	struct pc_table after[] = {
		TABLE(PAGECLEAR_COLD, PC_FLUSHED, 2, lines), TABLE(PAGECLEAR_COLD, PC_CACHED, 4, earlier),
		TABLE(PAGECLEAR_COLD, PC_FLUSHED, 1, earlier), TABLE(PAGECLEAR_SCRUB, PC_UNKNOWN, 1, lines)};
	struct pc_document a = {.table_count = 3, .tables = before}, b = {.table_count = 4, .tables = after};

	CU_ASSERT_EQUAL_FATAL(diff_tables(found, &a, &b), 5);
	expect_heading(0, "hot, unknown prior");
	expect_heading(1, "cold, cached, 4 threads");
	expect_heading(2, "cold, flushed");
	expect_heading(3, "cold, flushed, 2 threads");
	expect_heading(4, "scrub");
	CU_ASSERT_TRUE(found[0].in_a && !found[0].in_b); /* gone: libc stands in */
	CU_ASSERT_STRING_EQUAL(found[0].b->rules[0].kernel, "libc");
	CU_ASSERT_EQUAL(found[0].range_count, 1);
	CU_ASSERT_TRUE(!found[1].in_a && found[1].in_b);
	CU_ASSERT_TRUE(found[2].in_a && found[2].in_b && found[2].moved);
	CU_ASSERT_TRUE(!found[3].in_a && found[3].in_b); /* new, but what held before says the same */
	CU_ASSERT_PTR_EQUAL(found[3].a, &before[1]);
	CU_ASSERT_EQUAL(found[3].range_count, 0);
	CU_ASSERT_EQUAL(found[4].range_count, 0);
}

static void expect_instead(size_t table, const char *expected)
{
	char text[DIFF_CHANGE];

	diff_instead(&found[table], text);
	CU_ASSERT_STRING_EQUAL(text, expected);
}

/* Where nothing else was there either, it is libc that held, and no table. */
static void what_stands_in(void)
{
	struct pc_table before[] = {TABLE(PAGECLEAR_COLD, PC_FLUSHED, 1, lines)};
	struct pc_table after[] = {TABLE(PAGECLEAR_HOT, PC_CACHED, 2, lines),
	                           TABLE(PAGECLEAR_COLD, PC_FLUSHED, 1, lines),
	                           TABLE(PAGECLEAR_COLD, PC_FLUSHED, 4, lines)};
	struct pc_document a = {.table_count = 1, .tables = before}, b = {.table_count = 3, .tables = after};

	CU_ASSERT_EQUAL_FATAL(diff_tables(found, &a, &b), 3);
	expect_instead(0, "libc");
	expect_instead(2, "that for 1 thread");
	CU_ASSERT_EQUAL_FATAL(diff_tables(found, &b, &a), 3);
	expect_instead(0, "libc");
	expect_instead(2, "that for 1 thread");
}

static void knee_and_probe(void)
{
	struct pc_document document = {.knee_bytes = 8 * MIB,
	                               .probe = {.from = 256 * KIB, .lines = 4, .slow_ns = 57.5}};
	char text[DIFF_CHANGE];

	diff_knee_words(&document, text);
	CU_ASSERT_STRING_EQUAL(text, "8 MiB");
	diff_probe_words(&document, text);
	CU_ASSERT_STRING_EQUAL(text, "from 256 KiB on, 4 loads, 57.5 ns");
	document = (struct pc_document){0};
	diff_knee_words(&document, text);
	CU_ASSERT_STRING_EQUAL(text, "not known");
	diff_probe_words(&document, text);
	CU_ASSERT_STRING_EQUAL(text, "none");
}

static void as_many_tables_as_there_can_be(void)
{
	static struct pc_table before[PC_TABLES_MAX], after[PC_TABLES_MAX];
	struct pc_document a = {.table_count = PC_TABLES_MAX, .tables = before};
	struct pc_document b = {.table_count = PC_TABLES_MAX, .tables = after};

	for (unsigned i = 0; i < PC_TABLES_MAX; i++) {
		before[i] = (struct pc_table)TABLE(PAGECLEAR_COLD, PC_FLUSHED, 2 * i + 1, lines);
		after[i] = (struct pc_table)TABLE(PAGECLEAR_COLD, PC_FLUSHED, 2 * i + 2, earlier);
	}
	CU_ASSERT_EQUAL_FATAL(diff_tables(found, &a, &b), DIFF_TABLES_MAX);
	for (unsigned i = 0; i < DIFF_TABLES_MAX; i++)
		CU_ASSERT_EQUAL(found[i].threads, i + 1);
}

static const struct unit_test tests[] = {
	{"the_same", the_same},
	{"a_crossover_moved", a_crossover_moved},
	{"crossovers_moved", crossovers_moved},
	{"a_rule_more", a_rule_more},
	{"chunks_and_pins", chunks_and_pins},
	{"as_many_as_there_can_be", as_many_as_there_can_be},
	{"tables_come_and_go", tables_come_and_go},
	{"what_stands_in", what_stands_in},
	{"knee_and_probe", knee_and_probe},
	{"as_many_tables_as_there_can_be", as_many_tables_as_there_can_be},
};

UNIT_MAIN("calibctl_diff_rules", tests)
