/* What the loads and stores touch: every byte or line that they say, and none besides. */
#include "calibrd/touch.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/harness.h"

enum { LINE = 64, PAGE = 4096 };

static char *pages(size_t count)
{
	char *at = aligned_alloc(PAGE, count * PAGE);

	CU_ASSERT_PTR_NOT_NULL_FATAL(at);
	memset(at, 0, count * PAGE);
	return at;
}

static bool all_zero(const char *at, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		if (at[i] != 0)
			return false;
	return true;
}

static void test_dirty_leaves_no_zero_and_keeps_inside(void)
{
	char *at = pages(1);

	for (size_t offset = 0; offset < 17; offset++)
		for (size_t bytes = 0; bytes <= 200; bytes++) {
			memset(at, 0, PAGE);
			touch_dirty(at + 64 + offset, bytes);
			CU_ASSERT_TRUE(all_zero(at, 64 + offset));
			CU_ASSERT_PTR_NULL(memchr(at + 64 + offset, 0, bytes));
			CU_ASSERT_TRUE(all_zero(at + 64 + offset + bytes, PAGE - 64 - offset - bytes));
		}
	free(at);
}

static void test_read_sums_words_and_the_rest(void)
{
	unsigned char bytes[40];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (unsigned char)(i + 1);
	for (size_t len = 0; len <= 32; len++)
		for (size_t offset = 0; offset < 8; offset++) {
			uint64_t sum = 0;

			for (size_t i = 0; i < len; i++) /* little-endian words, as on every host here */
				sum += (uint64_t)bytes[offset + i] << 8 * (i % 8);
			CU_ASSERT_EQUAL(touch_read(bytes + offset, len), sum);
		}
}

/* A different value in each line: the sum is right only if each was read, and none twice. */
static void test_victim_reads_every_line_once(void)
{
	enum { PAGES = 3 };
	char *at = pages(PAGES);
	uint64_t expected = 0;

	for (uint64_t line = 0; line < PAGES * PAGE / LINE; line++) {
		uint64_t value = (uint64_t)1 << (line % 61) | line << 40;

		memcpy(at + line * LINE, &value, sizeof(value));
		expected += value;
	}
	CU_ASSERT_EQUAL(touch_victim(at, PAGES * PAGE), expected);
	CU_ASSERT_EQUAL(touch_victim(at, 0), 0);
	free(at);
}

/* Follows the chain and marks each line. */
static void check_chain(char *at, size_t bytes, unsigned char *seen)
{
	size_t lines = bytes / LINE;
	const char *place = at, *page = at;

	memset(seen, 0, lines);
	for (size_t i = 0; i < lines; i++) {
		size_t line = (size_t)(place - at) / LINE;

		CU_ASSERT_FATAL(place >= at && place < at + bytes);
		CU_ASSERT_EQUAL((size_t)(place - at) % LINE, 0);
		CU_ASSERT_EQUAL(seen[line]++, 0);
		CU_ASSERT(place >= page); /* pages come in order */
		page = at + (size_t)(place - at) / PAGE * PAGE;
		place = touch_chase(place, 1);
	}
	CU_ASSERT_PTR_EQUAL(place, at);
	CU_ASSERT_PTR_EQUAL(touch_chase(at, lines), at);
	CU_ASSERT_PTR_NULL(memchr(seen, 0, lines));
}

static void test_chain_visits_every_line_once(void)
{
	enum { PAGES = 9 };
	static unsigned char seen[PAGES * PAGE / LINE];
	struct random random = {3};
	char *at = pages(PAGES);

	for (size_t bytes = LINE; bytes <= PAGES * PAGE; bytes += bytes < 2 * PAGE ? LINE : PAGE / 2) {
		touch_chain(at, bytes, &random);
		check_chain(at, bytes, seen);
	}
	free(at);
}

static void test_chain_is_random_inside_a_page(void)
{
	struct random random = {3};
	char *at = pages(1);
	const char *place = at;
	unsigned neighbours = 0;

	touch_chain(at, PAGE, &random);
	for (int i = 0; i < PAGE / LINE; i++) {
		const char *next = touch_chase(place, 1);

		neighbours += next == place + LINE;
		place = next;
	}
	CU_ASSERT(neighbours < 10); /* one is expected, 63 were in order */
	free(at);
}

static void test_work_stays_in_its_buffer(void)
{
	uint64_t scratch[258] = {[256] = 5, [257] = 6}, before;

	touch_work(scratch, 1000);
	CU_ASSERT_EQUAL(scratch[256], 5);
	CU_ASSERT_EQUAL(scratch[257], 6);
	for (size_t i = 0; i < 256; i += 2)
		CU_ASSERT_EQUAL(scratch[i], ~scratch[i + 1]);
	before = scratch[0];
	touch_work(scratch, 1); /* depends on what was there */
	CU_ASSERT_NOT_EQUAL(scratch[0], before);
}

static const struct unit_test tests[] = {
	{"dirty leaves no zero and keeps inside", test_dirty_leaves_no_zero_and_keeps_inside},
	{"read sums words and the rest", test_read_sums_words_and_the_rest},
	{"victim reads every line once", test_victim_reads_every_line_once},
	{"chain visits every line once", test_chain_visits_every_line_once},
	{"chain is random inside a page", test_chain_is_random_inside_a_page},
	{"work stays in its buffer", test_work_stays_in_its_buffer},
};

UNIT_MAIN("touch", tests)
