/* Tables that say the same are told once, and only those. */
#include <string.h>

#include "calibctl/story.h"
#include "pageclear/policy.h"
#include "tests/unit/harness.h"

static struct pc_rule libc[] = {{.from = 0, .kernel = "libc"}};
static struct pc_rule lines[] = {{.from = 0, .kernel = "libc"}, {.from = 4096, .gain = 2, .kernel = "clzero"}};
static struct pc_rule later[] = {{.from = 0, .kernel = "libc"}, {.from = 8192, .gain = 2, .kernel = "clzero"}};

#define TABLE(i, p, t, r)                                                                                              \
	{                                                                                                              \
		.intent = (i), .prior = (p), .threads = (t), .rule_count = sizeof(r) / sizeof((r)[0]), .rules = (r)    \
	}

static struct story story;

static void tell(struct pc_table *tables, size_t count)
{
	story_tell(&story, &(struct pc_document){.table_count = count, .tables = tables});
}

static void expect_heading(size_t chapter, const char *expected)
{
	char heading[STORY_HEADING] = "no such chapter";

	if (chapter < story.count)
		story_heading(&story.chapters[chapter], heading);
	CU_ASSERT_STRING_EQUAL(heading, expected);
	if (strcmp(heading, expected) != 0)
		printf("\n\"%s\" is not \"%s\"\n", heading, expected);
}

static void expect_threads(size_t chapter, const char *expected)
{
	static char text[STORY_THREADS];

	strcpy(text, "no such chapter");
	if (chapter < story.count)
		story_threads(&story.chapters[chapter], text);
	CU_ASSERT_STRING_EQUAL(text, expected);
	if (strcmp(text, expected) != 0)
		printf("\n\"%s\" is not \"%s\"\n", text, expected);
}

static void all_priors_alike(void)
{
	struct pc_table tables[] = {
		TABLE(PAGECLEAR_HOT, PC_UNKNOWN, 1, libc),
		TABLE(PAGECLEAR_HOT, PC_FLUSHED, 1, libc),
		TABLE(PAGECLEAR_HOT, PC_CACHED, 1, libc),
	};

	tell(tables, 3);
	CU_ASSERT_EQUAL(story.count, 1);
	expect_heading(0, "hot, any prior");
	expect_threads(0, "");
}

/* Not even the same rules make one chapter of two intents. */
static void intents_stay_apart(void)
{
	struct pc_table tables[] = {
		TABLE(PAGECLEAR_SCRUB, PC_UNKNOWN, 1, libc), TABLE(PAGECLEAR_COLD, PC_FLUSHED, 1, lines),
		TABLE(PAGECLEAR_COLD, PC_CACHED, 1, libc),   TABLE(PAGECLEAR_COLD, PC_UNKNOWN, 1, libc),
		TABLE(PAGECLEAR_HOT, PC_FLUSHED, 1, libc),
	};

	tell(tables, 5);
	CU_ASSERT_EQUAL(story.count, 4);
	expect_heading(0, "hot, flushed");
	expect_heading(1, "cold, cached or unknown prior");
	expect_heading(2, "cold, flushed");
	expect_heading(3, "scrub");
}

static void threads_alike(void)
{
	struct pc_table tables[] = {
		TABLE(PAGECLEAR_COLD, PC_CACHED, 8, libc),
		TABLE(PAGECLEAR_COLD, PC_CACHED, 1, libc),
		TABLE(PAGECLEAR_COLD, PC_FLUSHED, 1, libc),
		TABLE(PAGECLEAR_COLD, PC_FLUSHED, 8, libc),
	};

	tell(tables, 4);
	CU_ASSERT_EQUAL(story.count, 1);
	expect_heading(0, "cold, cached or flushed");
	expect_threads(0, "the same with 8 threads\n");
}

/* Of more threads choices alone count: what they gain always differs a little. */
static void gains_of_more_threads_differ(void)
{
	struct pc_rule gains[] = {{.from = 0, .kernel = "libc"},
	                          {.from = 4096, .low = 1, .high = 2, .gain = 5, .kernel = "clzero"}};
	struct pc_table tables[] = {
		TABLE(PAGECLEAR_COLD, PC_FLUSHED, 1, lines), TABLE(PAGECLEAR_COLD, PC_FLUSHED, 2, lines),
		TABLE(PAGECLEAR_COLD, PC_CACHED, 1, lines),  TABLE(PAGECLEAR_COLD, PC_CACHED, 4, gains),
		TABLE(PAGECLEAR_COLD, PC_CACHED, 2, gains),  TABLE(PAGECLEAR_COLD, PC_FLUSHED, 4, lines),
	};

	tell(tables, 6);
	CU_ASSERT_EQUAL(story.count, 1);
	expect_heading(0, "cold, cached or flushed");
	expect_threads(0, "the same with 2 or 4 threads\n");
}

/* A chapter is a product: what differs for some threads is not joined for the others. */
static void threads_differ(void)
{
	struct pc_table tables[] = {
		TABLE(PAGECLEAR_COLD, PC_CACHED, 1, lines),
		TABLE(PAGECLEAR_COLD, PC_CACHED, 8, lines),
		TABLE(PAGECLEAR_COLD, PC_FLUSHED, 1, lines),
		TABLE(PAGECLEAR_COLD, PC_FLUSHED, 8, later),
	};

	tell(tables, 4);
	CU_ASSERT_EQUAL(story.count, 2);
	expect_heading(0, "cold, cached");
	expect_threads(0, "the same with 8 threads\n");
	expect_heading(1, "cold, flushed");
	expect_threads(1, "with 8 threads otherwise: libc for 4 KiB - 8 KiB\n");
}

/* What one thread says of a range does not cut what more of them choose there. */
static void more_threads_in_their_own_words(void)
{
	struct pc_rule one[] = {
		{.from = 0, .kernel = "libc"}, {.from = 4096, .kernel = "avx2"}, {.from = 8192, .kernel = "libc"}};
	struct pc_rule many[] = {{.from = 0, .kernel = "libc"}, {.from = 2048, .chunk = 65536, .kernel = "movnti"}};
	struct pc_table tables[] = {
		TABLE(PAGECLEAR_COLD, PC_CACHED, 1, one),
		TABLE(PAGECLEAR_COLD, PC_CACHED, 2, one),
		TABLE(PAGECLEAR_COLD, PC_CACHED, 8, many),
	};

	tell(tables, 3);
	expect_threads(0, "the same with 2 threads\n"
	                  "with 8 threads otherwise: movnti in pieces of 64 KiB from 2 KiB on\n");
}

static void one_kernel_for_more_threads(void)
{
	struct pc_table tables[] = {TABLE(PAGECLEAR_COLD, PC_CACHED, 1, lines),
	                            TABLE(PAGECLEAR_COLD, PC_CACHED, 2, libc)};

	tell(tables, 2);
	expect_threads(0, "with 2 threads: libc for all sizes\n");
}

/* Old policies of other hosts may have no table for one thread. */
static void fewest_are_not_one(void)
{
	struct pc_table tables[] = {TABLE(PAGECLEAR_SCRUB, PC_UNKNOWN, 16, lines),
	                            TABLE(PAGECLEAR_SCRUB, PC_UNKNOWN, 8, lines)};

	tell(tables, 2);
	expect_heading(0, "scrub, 8 threads");
	expect_threads(0, "the same with 16 threads\n");
}

/* However much there is to say, no line is wider than a terminal. */
static void long_lines_are_broken(void)
{
	static struct pc_rule many[PC_RULES_MAX];
	struct pc_table tables[] = {TABLE(PAGECLEAR_COLD, PC_CACHED, 1, libc),
	                            TABLE(PAGECLEAR_COLD, PC_CACHED, 2, many)};
	static char text[STORY_THREADS];
	size_t lines_seen = 0;
	char *rest = NULL;

	for (unsigned i = 0; i < PC_RULES_MAX; i++) {
		many[i] = (struct pc_rule){.from = i * 1024, .chunk = 4096};
		strcpy(many[i].kernel, i % 2 == 0 ? "libc" : "unheard_of");
	}
	tell(tables, 2);
	story_threads(&story.chapters[0], text);
	for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest)) {
		CU_ASSERT_TRUE(strlen(line) < 96);
		lines_seen++;
	}
	CU_ASSERT_TRUE(lines_seen > 2);
}

/* Every member of a rule counts. */
static void any_difference_counts(void)
{
	struct pc_rule base = {.from = 4096, .low = 1, .high = 2, .chunk = 4, .gain = 2, .kernel = "sse2"};
	struct pc_rule others[] = {base, base, base, base, base, base, base};

	others[0].from++;
	others[1].low++;
	others[2].high++;
	others[3].chunk++;
	others[4].gain = 3;
	others[5].pinned = true;
	strcpy(others[6].kernel, "avx2");
	for (size_t i = 0; i < 7; i++) {
		struct pc_table tables[] = {
			{.intent = PAGECLEAR_HOT, .prior = PC_CACHED, .threads = 1, .rule_count = 1, .rules = &base},
			{.intent = PAGECLEAR_HOT,
		         .prior = PC_FLUSHED,
		         .threads = 1,
		         .rule_count = 1,
		         .rules = &others[i]},
		};

		tell(tables, 2);
		CU_ASSERT_EQUAL(story.count, 2);
	}
}

static void nothing_to_tell(void)
{
	tell(NULL, 0);
	CU_ASSERT_EQUAL(story.count, 0);
}

static void as_much_as_there_can_be(void)
{
	static struct pc_table tables[PC_TABLES_MAX];

	for (unsigned i = 0; i < PC_TABLES_MAX; i++)
		tables[i] = (struct pc_table)TABLE(PAGECLEAR_COLD, PC_CACHED, 65536 - i, libc);
	tell(tables, PC_TABLES_MAX);
	CU_ASSERT_EQUAL(story.count, 1);
	CU_ASSERT_EQUAL(story.chapters[0].other_count, PC_TABLES_MAX - 1);
	CU_ASSERT_EQUAL(story.chapters[0].table->threads, 65536 - PC_TABLES_MAX + 1);
	CU_ASSERT_EQUAL(story.chapters[0].others[PC_TABLES_MAX - 2]->threads, 65536);
}

static const struct unit_test tests[] = {
	{"all_priors_alike", all_priors_alike},
	{"intents_stay_apart", intents_stay_apart},
	{"threads_alike", threads_alike},
	{"gains_of_more_threads_differ", gains_of_more_threads_differ},
	{"threads_differ", threads_differ},
	{"more_threads_in_their_own_words", more_threads_in_their_own_words},
	{"one_kernel_for_more_threads", one_kernel_for_more_threads},
	{"fewest_are_not_one", fewest_are_not_one},
	{"long_lines_are_broken", long_lines_are_broken},
	{"any_difference_counts", any_difference_counts},
	{"nothing_to_tell", nothing_to_tell},
	{"as_much_as_there_can_be", as_much_as_there_can_be},
};

UNIT_MAIN("calibctl_story", tests)
