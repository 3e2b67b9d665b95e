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
		story_heading(&story, &story.chapters[chapter], heading);
	CU_ASSERT_STRING_EQUAL(heading, expected);
	if (strcmp(heading, expected) != 0)
		printf("\n\"%s\" is not \"%s\"\n", heading, expected);
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
	CU_ASSERT_FALSE(story.tells_threads);
	expect_heading(0, "hot, any prior");
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
	CU_ASSERT_TRUE(story.tells_threads);
	expect_heading(0, "cold, cached or flushed, 1 or 8 threads");
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
	CU_ASSERT_EQUAL(story.count, 3);
	expect_heading(0, "cold, cached, 1 or 8 threads");
	expect_heading(1, "cold, flushed, 1 thread");
	expect_heading(2, "cold, flushed, 8 threads");
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
	CU_ASSERT_EQUAL(story.chapters[0].thread_count, PC_TABLES_MAX);
	CU_ASSERT_EQUAL(story.chapters[0].threads[0], 65536 - PC_TABLES_MAX + 1);
	char heading[STORY_HEADING];
	story_heading(&story, &story.chapters[0], heading);
	CU_ASSERT_TRUE(strlen(heading) < STORY_HEADING);
}

static const struct unit_test tests[] = {
	{"all_priors_alike", all_priors_alike},
	{"intents_stay_apart", intents_stay_apart},
	{"threads_alike", threads_alike},
	{"threads_differ", threads_differ},
	{"any_difference_counts", any_difference_counts},
	{"nothing_to_tell", nothing_to_tell},
	{"as_much_as_there_can_be", as_much_as_there_can_be},
};

UNIT_MAIN("calibctl_story", tests)
