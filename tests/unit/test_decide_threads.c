/* Tables for several threads: their own data, their own hysteresis, and room for all of them. */
#include <stdlib.h>

#include "calibrd/export.h"
#include "tests/unit/decisions.h"

/* Octaves from 4 KiB, cold, flushed: libc 1000 ns, row 1 exp(l) of it from 32 KiB on, exp(0.3) below. */
static void put_threads(struct dataset *data, unsigned threads, double l)
{
	for (size_t i = 0; i < 6; i++)
		for (unsigned k = 0; k < 2; k++)
			for (unsigned e = 0; e < EPOCHS; e++) {
				struct series_key key =
					plain_key((struct where){PHASE_CLEAR, PC_FLUSHED, (uint64_t)4096 << i}, k);

				key.threads = (uint16_t)threads;
				put_key_rounds(data, &key, e, ROUNDS, k == 0 ? 1000 : 1000 * exp(i < 3 ? 0.3 : l));
			}
}

static struct decide_input input_for(const struct dataset *data)
{
	struct decide_input input = input_of(data);

	input.kernels = 3;
	return input;
}

static void expect_rule(const struct pc_table *table, unsigned threads, uint64_t bytes, unsigned kernel)
{
	CU_ASSERT_EQUAL(table->threads, threads);
	CU_ASSERT_STRING_EQUAL(pc_table_rule(table, bytes)->kernel, name(kernel));
}

/* As many tables as numbers of threads, ascending, the one thread first: also where they say the same. */
static void test_each_number_has_its_tables(void)
{
	struct dataset data = {0};
	struct decide_input input = input_for(&data);
	struct decision decision;

	NEEDS_KERNELS(2);
	put_threads(&data, 8, -0.5);
	put_threads(&data, 1, 0.2);
	put_threads(&data, 4, -0.5);
	put_threads(&data, 2, 0.2);
	CU_ASSERT_EQUAL_FATAL(decide(&input, &decision), 0);
	CU_ASSERT_EQUAL_FATAL(decision.table_count, 4);
	expect_rule(&decision.tables[0], 1, 65536, 0);
	expect_rule(&decision.tables[1], 2, 65536, 0);
	expect_rule(&decision.tables[2], 4, 65536, 1);
	expect_rule(&decision.tables[3], 8, 65536, 1);
	expect_rule(&decision.tables[3], 8, 8192, 0);
	decision_free(&decision);
	dataset_clear(&data);
}

/* Together a kernel gains 2 % where alone it gains half: no proof of either side, so what one thread does stands, with
 * the gain that was measured together. Where all together lose by it, libc it is. */
static void test_one_threads_rules_stand_until_they_lose(void)
{
	static const double together[] = {-0.02, 0.3};

	NEEDS_KERNELS(2);
	for (size_t i = 0; i < 2; i++) {
		struct dataset data = {0};
		struct decide_input input = input_for(&data);
		struct decision decision;

		put_threads(&data, 1, -0.7);
		put_threads(&data, 8, together[i]);
		CU_ASSERT_EQUAL_FATAL(decide(&input, &decision), 0);
		CU_ASSERT_EQUAL_FATAL(decision.table_count, 2);
		expect_rule(&decision.tables[0], 1, 65536, 1);
		expect_rule(&decision.tables[1], 8, 65536, i == 0 ? 1 : 0);
		if (i == 0) {
			CU_ASSERT_EQUAL(decision.tables[1].rules[1].from, decision.tables[0].rules[1].from);
			CU_ASSERT_DOUBLE_EQUAL(decision.tables[1].rules[1].gain, exp(0.02), 0.001);
		}
		decision_free(&decision);
		dataset_clear(&data);
	}
}

/* A pin somewhere else does not keep several threads from taking over what one does; and deciding again by the same
 * data, with what came out before, changes nothing. */
static void test_pins_disturb_nothing_else(void)
{
	const struct pin pin = {.intent = PAGECLEAR_COLD,
	                        .prior = PC_FLUSHED,
	                        .from = UINT64_C(1) << 34,
	                        .to = UINT64_MAX,
	                        .kernel = 0};
	struct dataset data = {0};
	struct decide_input input = input_for(&data);
	struct decision first, second;
	struct pc_document old;

	NEEDS_KERNELS(2);
	put_threads(&data, 1, -0.7);
	put_threads(&data, 8, -0.02);
	input.pins = &pin;
	input.pin_count = 1;
	CU_ASSERT_EQUAL_FATAL(decide(&input, &first), 0);
	CU_ASSERT_EQUAL_FATAL(first.table_count, 2);
	expect_rule(&first.tables[1], 8, 65536, 1);
	old = (struct pc_document){.table_count = first.table_count, .tables = first.tables};
	input.old = &old;
	CU_ASSERT_EQUAL_FATAL(decide(&input, &second), 0);
	CU_ASSERT_EQUAL_FATAL(second.table_count, 2);
	for (size_t t = 0; t < 2; t++) {
		CU_ASSERT_EQUAL_FATAL(second.tables[t].rule_count, first.tables[t].rule_count);
		for (size_t i = 0; i < first.tables[t].rule_count; i++)
			CU_ASSERT_EQUAL(
				memcmp(&second.tables[t].rules[i], &first.tables[t].rules[i], sizeof(struct pc_rule)),
				0);
	}
	decision_free(&first);
	decision_free(&second);
	dataset_clear(&data);
}

static void test_pins_hold_for_any_number(void)
{
	const struct pin pin = {.intent = PAGECLEAR_COLD, .prior = PC_FLUSHED, .from = 8192, .to = 16384, .kernel = 1};
	struct dataset data = {0};
	struct decide_input input = input_for(&data);
	struct decision decision;

	NEEDS_KERNELS(2);
	put_threads(&data, 1, 0.2);
	put_threads(&data, 8, -0.5);
	input.pins = &pin;
	input.pin_count = 1;
	CU_ASSERT_EQUAL_FATAL(decide(&input, &decision), 0);
	CU_ASSERT_EQUAL_FATAL(decision.table_count, 2);
	for (size_t i = 0; i < 2; i++) {
		CU_ASSERT_TRUE(pc_table_rule(&decision.tables[i], 8192)->pinned);
		CU_ASSERT_STRING_EQUAL(pc_table_rule(&decision.tables[i], 8192)->kernel, name(1));
	}
	decision_free(&decision);
	dataset_clear(&data);
}

/* The old 8-thread rule is as good as ever, the 1-thread one loses: each is judged by its own data. */
static void test_hysteresis_is_each_tables_own(void)
{
	struct pc_rule rules[] = {{.from = 0, .gain = 1.5}};
	struct pc_table tables[] = {
		{.intent = PAGECLEAR_COLD, .prior = PC_FLUSHED, .threads = 1, .rule_count = 1, .rules = rules},
		{.intent = PAGECLEAR_COLD, .prior = PC_FLUSHED, .threads = 8, .rule_count = 1, .rules = rules}};
	struct pc_document old = {.table_count = 2, .tables = tables};
	struct dataset data = {0};
	struct decide_input input = input_for(&data);
	struct decision decision;

	NEEDS_KERNELS(2);
	strcpy(rules[0].kernel, "libc");
	put_threads(&data, 1, -0.5);
	put_threads(&data, 8, -0.02);
	input.old = &old;
	CU_ASSERT_EQUAL_FATAL(decide(&input, &decision), 0);
	CU_ASSERT_EQUAL_FATAL(decision.table_count, 2);
	CU_ASSERT_FALSE(decision.kept[0]);
	CU_ASSERT_TRUE(decision.kept[1]);
	decision_free(&decision);
	dataset_clear(&data);
}

/* Old tables of 8 threads stay while nothing is measured with more than one, and go when 4 are: hosts' affinities
 * change, and policies must not grow for ever. */
static void test_old_numbers_are_forgotten(void)
{
	struct pc_rule rules[] = {{.from = 0, .kernel = "libc"}};
	struct pc_table tables[] = {
		{.intent = PAGECLEAR_COLD, .prior = PC_FLUSHED, .threads = 8, .rule_count = 1, .rules = rules}};
	struct pc_document old = {.table_count = 1, .tables = tables};

	NEEDS_KERNELS(2);
	for (int more = 0; more < 2; more++) {
		struct dataset data = {0};
		struct decide_input input = input_for(&data);
		struct decision decision;

		put_threads(&data, 1, -0.5);
		if (more)
			put_threads(&data, 4, -0.5);
		input.old = &old;
		CU_ASSERT_EQUAL_FATAL(decide(&input, &decision), 0);
		CU_ASSERT_EQUAL_FATAL(decision.table_count, 2);
		CU_ASSERT_EQUAL(decision.tables[1].threads, more ? 4 : 8);
		decision_free(&decision);
		dataset_clear(&data);
	}
}

/* The text of a decision as policy.yaml; 0 if it can't be written. */
static size_t exported_bytes(const struct decision *decision)
{
	struct pc_document document = {
		.generation = 1000,
		.version = "0.1.0",
		.written = "2026-11-30T10:42:07Z",
		.quality = "good",
		.topology = "3f9ac2d14b07",
		.arch = "x86_64",
		.cpu_count = 1,
		.cpus = {"AuthenticAMD 25/1/1"},
		.name = "AMD EPYC 7B13 64-Core Processor",
		.knee_bytes = 33554432,
		.table_count = decision->table_count,
		.tables = (struct pc_table *)decision->tables,
	};
	struct pc_why why = {""};
	char *text = NULL;
	size_t len = 0;

	if (export_yaml(&document, &text, &len, &why) != 0)
		return 0;
	free(text);
	return len;
}

/* Row 1 wins at every other size of 32, for so many numbers of threads: what finds no room is left out, the largest
 * numbers first, and what is there can be written. */
static size_t tables_of(unsigned numbers, size_t *bytes)
{
	struct dataset data = {0};
	struct decide_input input = input_for(&data);
	struct decision decision;
	size_t tables;

	for (unsigned threads = 1; threads <= numbers; threads++)
		for (size_t i = 0; i < 32; i++)
			for (unsigned k = 0; k < 2; k++)
				for (unsigned e = 0; e < 3; e++) {
					struct where where = {PHASE_CLEAR, PC_FLUSHED,
					                      ((uint64_t)3 + i % 2) << (9 + i / 2)};
					struct series_key key = plain_key(where, k);

					key.threads = (uint16_t)threads;
					put_key_rounds(&data, &key, e, 6, k == 0 || i % 2 != 0 ? 1000 : 300);
					key.phase = PHASE_READ;
					put_key_rounds(&data, &key, e, 6, 100);
				}
	CU_ASSERT_EQUAL_FATAL(decide(&input, &decision), 0);
	CU_ASSERT_EQUAL(decision.tables[0].rule_count, 33);
	for (size_t i = 0; i < decision.table_count; i++)
		CU_ASSERT_EQUAL(decision.tables[i].threads, 1 + i / 2); /* hot and cold */
	*bytes = exported_bytes(&decision);
	tables = decision.table_count;
	decision_free(&decision);
	dataset_clear(&data);
	return tables;
}

static void test_what_finds_no_room_is_left_out(void)
{
	size_t bytes;

	NEEDS_KERNELS(2);
	CU_ASSERT_EQUAL(tables_of(1, &bytes), 2);
	CU_ASSERT(bytes > 0);
	CU_ASSERT_EQUAL(tables_of(2, &bytes), 4);
	CU_ASSERT(bytes > 0);
	CU_ASSERT_EQUAL(tables_of(12, &bytes), 4);
	CU_ASSERT(bytes > 0 && bytes < EXPORT_MAX_BYTES);
}

/* More numbers of threads than there is room for tables. */
static void test_many_numbers(void)
{
	struct dataset data = {0};
	struct decide_input input = input_for(&data);
	struct decision decision;

	NEEDS_KERNELS(2);
	for (unsigned threads = 40; threads >= 1; threads--)
		put_threads(&data, threads, -0.5);
	CU_ASSERT_EQUAL_FATAL(decide(&input, &decision), 0);
	CU_ASSERT_EQUAL_FATAL(decision.table_count, PC_TABLES_MAX / DECIDE_QUESTIONS);
	for (size_t i = 0; i < decision.table_count; i++)
		CU_ASSERT_EQUAL(decision.tables[i].threads, i + 1);
	CU_ASSERT(exported_bytes(&decision) > 0);
	decision_free(&decision);
	dataset_clear(&data);
}

static const struct unit_test tests[] = {
	{"each number has its tables", test_each_number_has_its_tables},
	{"one thread's rules stand until they lose", test_one_threads_rules_stand_until_they_lose},
	{"pins disturb nothing else", test_pins_disturb_nothing_else},
	{"pins hold for any number", test_pins_hold_for_any_number},
	{"hysteresis is each table's own", test_hysteresis_is_each_tables_own},
	{"old numbers are forgotten", test_old_numbers_are_forgotten},
	{"what finds no room is left out", test_what_finds_no_room_is_left_out},
	{"many numbers", test_many_numbers},
};

UNIT_MAIN("decide_threads", tests)
