/*
 * Verifications go into the store and come back; what the schema forbids does not go in.
 */
#include <math.h>
#include <pageclear/policy.h>

#include "tests/unit/store_sample.h"

static struct verification sample_verification(uint64_t generation, char *against)
{
	return (struct verification){.generation = generation,
	                             .topology = "0123456789ab",
	                             .effort = "quick",
	                             .at = 1700000100,
	                             .passed = generation % 2 == 1,
	                             .against = against};
}

static const struct verified sample_series[] = {
	{.intent = PAGECLEAR_HOT,
         .prior = PC_CACHED,
         .sizes = 12,
         .mean = 0.01,
         .p95 = 0.05,
         .worst = 0.06,
         .worst_bytes = (uint64_t)1 << 40,
         .floor = 0.004,
         .floor_p95 = 0.02,
         .gain = 1.25,
         .best_gain = 1.3,
         .unhinted = 1.1,
         .against = 0.75,
         .passed = true},
	{.intent = PAGECLEAR_COLD,
         .prior = PC_FLUSHED,
         .sizes = 1,
         .mean = -0.01,
         .p95 = -0.01,
         .worst = -0.01,
         .worst_bytes = 4112,
         .gain = 3,
         .best_gain = 3,
         .unhinted = 2,
         .against = 5},
	{.intent = PAGECLEAR_SCRUB,
         .prior = PC_UNKNOWN,
         .sizes = 8,
         .mean = 0.1,
         .p95 = 0.3,
         .worst = 0.4,
         .worst_bytes = 70000,
         .floor = 0.08,
         .floor_p95 = 0.2,
         .gain = 3,
         .best_gain = 3,
         .unhinted = NAN,
         .against = NAN,
         .passed = true},
};

enum { SERIES = sizeof(sample_series) / sizeof(sample_series[0]) };

static int64_t verified(struct store *store, struct verification row)
{
	struct pc_why why = {""};
	int r = store_verify(store, &row, sample_series, SERIES, &why);

	if (r < 0)
		printf("%s\n", why.text);
	CU_ASSERT_EQUAL_FATAL(r, 0);
	CU_ASSERT(row.id > 0);
	return row.id;
}

static bool same_number(double a, double b)
{
	return a == b || (isnan(a) && isnan(b));
}

static void check_same(const struct verified *a, const struct verified *b)
{
	CU_ASSERT(a->intent == b->intent && a->prior == b->prior && a->sizes == b->sizes);
	CU_ASSERT(a->mean == b->mean && a->p95 == b->p95 && a->worst == b->worst && a->worst_bytes == b->worst_bytes);
	CU_ASSERT(a->floor == b->floor && a->floor_p95 == b->floor_p95);
	CU_ASSERT(a->gain == b->gain && a->best_gain == b->best_gain);
	CU_ASSERT(same_number(a->unhinted, b->unhinted) && same_number(a->against, b->against));
	CU_ASSERT_EQUAL(a->passed, b->passed);
}

static void test_a_verification_comes_back(void)
{
	const char *path = sample_path("comes-back.db");
	struct store *store = sample_open(path, STORE_WRITE);
	struct verification *list = NULL;
	struct verified *series = NULL;
	struct pc_why why = {""};
	size_t count = 0;
	char library[] = "/usr/lib/l\303\244rm.so";

	CU_ASSERT_EQUAL(store_verifications(store, 5, &list, &count, &why), 0);
	CU_ASSERT_EQUAL(count, 0);
	free(list);
	int64_t first = verified(store, sample_verification(7, library));
	int64_t second = verified(store, sample_verification(0, NULL));
	store_close(store);

	store = sample_open(path, STORE_READ);
	CU_ASSERT_EQUAL_FATAL(store_verifications(store, 5, &list, &count, &why), 0);
	CU_ASSERT_EQUAL_FATAL(count, 2);
	CU_ASSERT(list[0].id == second && list[1].id == first);
	CU_ASSERT(list[0].generation == 0 && !list[0].passed);
	CU_ASSERT_PTR_NULL(list[0].against);
	CU_ASSERT(list[1].generation == 7 && list[1].passed && list[1].at == 1700000100);
	CU_ASSERT_STRING_EQUAL(list[1].topology, "0123456789ab");
	CU_ASSERT_STRING_EQUAL(list[1].effort, "quick");
	CU_ASSERT_STRING_EQUAL(list[1].against, library);
	for (size_t i = 0; i < count; i++)
		store_verification_free(&list[i]);
	free(list);

	CU_ASSERT_EQUAL_FATAL(store_verified(store, first, &series, &count, &why), 0);
	CU_ASSERT_EQUAL_FATAL(count, SERIES);
	for (size_t i = 0; i < SERIES; i++)
		for (size_t j = 0; j < count; j++)
			if (series[j].intent == sample_series[i].intent)
				check_same(&series[j], &sample_series[i]);
	free(series);
	CU_ASSERT_EQUAL(store_verified(store, 99, &series, &count, &why), 0);
	CU_ASSERT_EQUAL(count, 0);
	free(series);
	store_close(store);
}

static void test_the_newest_come_first_and_no_more_than_asked_for(void)
{
	struct store *store = sample_open(sample_path("newest.db"), STORE_WRITE);
	struct verification *list = NULL;
	struct pc_why why = {""};
	size_t count = 0;

	for (uint64_t generation = 1; generation <= 4; generation++)
		verified(store, sample_verification(generation, NULL));
	CU_ASSERT_EQUAL_FATAL(store_verifications(store, 2, &list, &count, &why), 0);
	CU_ASSERT_EQUAL_FATAL(count, 2);
	CU_ASSERT(list[0].generation == 4 && list[1].generation == 3);
	free(list);
	CU_ASSERT_EQUAL_FATAL(store_verifications(store, SIZE_MAX, &list, &count, &why), 0);
	CU_ASSERT_EQUAL(count, 4);
	free(list);
	store_close(store);
}

/* All of it or nothing. */
static void test_what_the_schema_forbids(void)
{
	const char *path = sample_path("forbidden.db");
	struct store *store = sample_open(path, STORE_WRITE);
	struct verification row = sample_verification(1, NULL);
	struct verified series[2] = {sample_series[0], sample_series[0]};
	struct pc_why why = {""};

	/* One intent and prior twice. */
	CU_ASSERT(store_verify(store, &row, series, 2, &why) < 0);
	CU_ASSERT_EQUAL(row.id, 0);
	series[1] = sample_series[1];
	series[1].sizes = 0;
	CU_ASSERT_EQUAL(store_verify(store, &row, series, 2, &why), -EINVAL);
	series[1] = sample_series[1];
	series[1].mean = NAN;
	CU_ASSERT_EQUAL(store_verify(store, &row, series, 2, &why), -EINVAL);
	strcpy(row.topology, "nowhere");
	CU_ASSERT_EQUAL(store_verify(store, &row, sample_series, SERIES, &why), -EINVAL);
	row = sample_verification(UINT64_MAX, NULL);
	CU_ASSERT_EQUAL(store_verify(store, &row, sample_series, SERIES, &why), -ERANGE);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "generation"));
	/* The store is still of use. */
	verified(store, sample_verification(1, NULL));
	store_close(store);
	CU_ASSERT_STRING_EQUAL(sample_sql(path, "SELECT count(*) FROM verification"), "1");
	CU_ASSERT_STRING_EQUAL(sample_sql(path, "SELECT count(*) FROM verified"), "3");
}

static void test_a_reader_writes_nothing(void)
{
	const char *path = sample_path("reader.db");
	struct verification row = sample_verification(1, NULL);
	struct pc_why why = {""};

	store_close(sample_open(path, STORE_WRITE));
	struct store *store = sample_open(path, STORE_READ);
	CU_ASSERT(store_verify(store, &row, sample_series, SERIES, &why) < 0);
	CU_ASSERT_EQUAL(row.id, 0);
	store_close(store);
	CU_ASSERT_STRING_EQUAL(sample_sql(path, "SELECT count(*) FROM verification"), "0");
}

/* Who changes the file by hand may put anything where the schema's checks are off. */
static void test_words_that_are_none(void)
{
	const char *path = sample_path("words.db");
	struct store *store = sample_open(path, STORE_WRITE);
	struct verified *series = NULL;
	struct pc_why why = {""};
	size_t count = 0;
	int64_t id = verified(store, sample_verification(1, NULL));

	store_close(store);
	sample_change(path, "PRAGMA ignore_check_constraints = 1; UPDATE verified SET intent = 'warm' "
	                    "WHERE intent = 'hot'");
	store = sample_open(path, STORE_READ);
	CU_ASSERT_EQUAL(store_verified(store, id, &series, &count, &why), -EUCLEAN);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "warm"));
	store_close(store);
	sample_change(path, "PRAGMA ignore_check_constraints = 1; UPDATE verified SET intent = 'hot', prior = 'wet' "
	                    "WHERE intent = 'warm'");
	store = sample_open(path, STORE_READ);
	CU_ASSERT_EQUAL(store_verified(store, id, &series, &count, &why), -EUCLEAN);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "wet"));
	store_close(store);
}

static const struct unit_test tests[] = {
	{"a verification comes back", test_a_verification_comes_back},
	{"the newest come first and no more than asked for", test_the_newest_come_first_and_no_more_than_asked_for},
	{"what the schema forbids", test_what_the_schema_forbids},
	{"a reader writes nothing", test_a_reader_writes_nothing},
	{"words that are none", test_words_that_are_none},
};

UNIT_MAIN("store_verification", tests)
