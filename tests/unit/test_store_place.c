/* The database at home and at its fallback: when which is used, and that nothing is lost between them. */
#include "calibrd/store_place.h"

#include <math.h>

#include "calibrd/store_absorb.h"
#include "tests/unit/store_places.h"

static struct store *opened(int expected)
{
	struct store *store = NULL;
	int r = place_open(&store);

	if (r != expected)
		printf("%d: %s\n", r, why.text);
	CU_ASSERT_EQUAL_FATAL(r, expected);
	CU_ASSERT_EQUAL(place.fallback, expected == 1);
	CU_ASSERT_STRING_EQUAL(place.path, expected == 1 ? spare : home);
	return store;
}

/* A calibration that began then, and its policy as that generation. */
static int64_t remember(struct store *store, int64_t started, uint64_t generation, char *yaml)
{
	struct dataset data = sample_data(SERIES, ROUNDS);
	struct calibration c = {.effort = "quick", .quality = "good", .started = started, .finished = started + 10};

	CU_ASSERT_EQUAL_FATAL(store_begin(store, &sample_topology, &c, &why), 0);
	CU_ASSERT_EQUAL_FATAL(store_finish(store, &c, &data, &why), 0);
	CU_ASSERT_EQUAL_FATAL(sample_publish(store, generation, c.id, yaml, &why), 0);
	dataset_clear(&data);
	return c.id;
}

static void verified(struct store *store, uint64_t generation, int64_t at)
{
	struct verification v = {
		.generation = generation, .topology = "0123456789ab", .effort = "quick", .at = at, .passed = true};
	struct verified one = {.prior = PC_CACHED,
	                       .sizes = 3,
	                       .worst_bytes = 4096,
	                       .gain = 2,
	                       .best_gain = 2,
	                       .unhinted = NAN,
	                       .against = NAN,
	                       .passed = true};

	CU_ASSERT_EQUAL_FATAL(store_verify(store, &v, &one, 1, &why), 0);
}

static void is_text(struct store *store, uint64_t generation, const char *yaml, int64_t calibration)
{
	struct published p = {0};

	CU_ASSERT_EQUAL_FATAL(store_generation(store, generation, &p, &why), 0);
	CU_ASSERT_STRING_EQUAL(p.yaml, yaml);
	CU_ASSERT_EQUAL(p.calibration, calibration);
	free(p.yaml);
}

static void is_whole(struct store *store, int64_t calibration)
{
	struct dataset data = {0};

	CU_ASSERT_EQUAL_FATAL(store_series(store, calibration, &data, &why), 0);
	CU_ASSERT_EQUAL(data.count, SERIES);
	for (size_t i = 0; i < data.count; i++)
		CU_ASSERT_EQUAL(data.series[i].count, ROUNDS);
	dataset_clear(&data);
}

static void has_calibrations(struct store *store, size_t expected)
{
	struct calibration *list = NULL;
	size_t count = 0;

	CU_ASSERT_EQUAL_FATAL(store_calibrations(store, SIZE_MAX, &list, &count, &why), 0);
	CU_ASSERT_EQUAL(count, expected);
	for (size_t i = 0; i < count; i++)
		store_calibration_free(&list[i]);
	free(list);
}

static void is_sound(const char *path)
{
	CU_ASSERT_STRING_EQUAL(sample_sql(path, "PRAGMA integrity_check"), "ok");
	CU_ASSERT_STRING_EQUAL(sample_sql(path, "PRAGMA foreign_key_check"), "");
}

/* --- which of the two -------------------------------------------------------------------------------------------- */

static void test_home_that_works(void)
{
	fresh();
	mend_home();
	store_close(opened(0));
	CU_ASSERT_STRING_EQUAL(why.text, "");
	CU_ASSERT(exists(home) && !exists(spare));
	struct store *store = opened(0);
	CU_ASSERT_EQUAL(store_place_return(&store, &place, renamed, &why), 0);
	CU_ASSERT_STRING_EQUAL(why.text, "");
	store_close(store);
}

static void test_missing_home(void)
{
	fresh();
	struct store *store = opened(1);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "lib: No such file or directory: measurements are kept in"));
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "till the next boot; make its folder"));
	int64_t id = remember(store, 1000, 7, "the: first\n");
	verified(store, 7, 1100);

	CU_ASSERT_EQUAL(store_place_return(&store, &place, renamed, &why), -ENOENT);
	CU_ASSERT(place.fallback);
	is_whole(store, id); /* and is still usable */

	mend_home();
	CU_ASSERT_EQUAL(store_place_return(&store, &place, renamed, &why), 0);
	CU_ASSERT(!place.fallback);
	CU_ASSERT_STRING_EQUAL(place.path, home);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "was brought there"));
	CU_ASSERT(!exists(spare));
	has_calibrations(store, 1);
	is_whole(store, 1);
	is_text(store, 7, "the: first\n", 1);
	remember(store, 2000, 8, "the: second\n");
	store_close(store);
	is_sound(home);
	CU_ASSERT_STRING_EQUAL(sample_sql(home, "SELECT generation || ' ' || at FROM verification"), "7 1100");
	CU_ASSERT_STRING_EQUAL(sample_sql(home, "SELECT count(*) FROM verified"), "1");
	store_close(opened(0));
	CU_ASSERT_STRING_EQUAL(why.text, "");
}

static void test_chosen_paths_have_no_fallback(void)
{
	struct store *store = NULL;

	fresh();
	CU_ASSERT_EQUAL(store_place_open(&store, &place, home, renamed, &why), -ENOENT);
	CU_ASSERT_EQUAL(store_place_between(&store, &place, home, NULL, renamed, &why), -ENOENT);
	CU_ASSERT_PTR_NULL(store);
	mend_home();
	CU_ASSERT_EQUAL(store_place_open(&store, &place, home, renamed, &why), 0);
	CU_ASSERT(!place.fallback);
	store_close(store);
}

static void test_neither(void)
{
	struct store *store = NULL;

	fresh();
	snprintf(spare, sizeof(spare), "%s/no/such/calibrd.db", unit_folder());
	CU_ASSERT_EQUAL(place_open(&store), -ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "-var/lib: No such file or directory; nor can it be in its stead: "));
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "/no/such: No such file or directory"));
	CU_ASSERT_PTR_NULL(store);
}

static void test_long_names(void)
{
	struct store *store = NULL;
	char path[5000];

	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	CU_ASSERT_EQUAL(store_place_open(&store, &place, path, renamed, &why), -ENAMETOOLONG);
	path[STORE_PATH - 1] = '\0';
	CU_ASSERT_EQUAL(store_place_open(&store, &place, path, renamed, &why), -ENAMETOOLONG);
}

/* --- one writer -------------------------------------------------------------------------------------------------- */

static void test_one_writer(void)
{
	struct store *second = NULL;

	fresh();
	struct store *first = opened(1);
	CU_ASSERT_EQUAL(place_open(&second), -EBUSY);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "is writing it"));
	/* Nor may anyone begin at home while the other is still away: two would publish. */
	mend_home();
	CU_ASSERT_EQUAL(place_open(&second), -EBUSY);
	CU_ASSERT_PTR_NULL(second);
	store_close(first);
	first = opened(0);
	CU_ASSERT(!exists(spare));
	CU_ASSERT_EQUAL(place_open(&second), -EBUSY);
	CU_ASSERT(!exists(spare));
	store_close(first);
}

/* Somebody has home at the very moment: later. */
static void test_home_is_busy_at_the_return(void)
{
	fresh();
	struct store *store = opened(1);
	int64_t id = remember(store, 1000, 1, "a: 1\n");
	mend_home();
	struct store *other = sample_open(home, STORE_WRITE);
	CU_ASSERT_EQUAL(store_place_return(&store, &place, renamed, &why), -EBUSY);
	is_whole(store, id);
	store_close(other);
	CU_ASSERT_EQUAL(store_place_return(&store, &place, renamed, &why), 0);
	has_calibrations(store, 1);
	store_close(store);
}

/* --- nothing is lost --------------------------------------------------------------------------------------------- */

static void test_leftover_is_brought(void)
{
	fresh();
	struct store *store = opened(1);
	remember(store, 1000, 3, "the: left\n");
	struct calibration running = sample_begun(store);
	(void)running;
	store_close(store); /* as if killed: away, and in the middle */
	mend_home();
	store = opened(0);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "was brought there"));
	CU_ASSERT(!exists(spare));
	has_calibrations(store, 2);
	is_whole(store, 1);
	is_text(store, 3, "the: left\n", 1);
	store_close(store);
	CU_ASSERT_STRING_EQUAL(sample_sql(home, "SELECT group_concat(state) FROM calibration"), "done,failed");
}

/* Home knew things that the fallback never saw: both histories stand, home's numbers stay, the count goes on. */
static void test_both_have_history(void)
{
	fresh();
	mend_home();
	struct store *store = opened(0);
	int64_t old = remember(store, 1000, 1, "home: 1\n");
	remember(store, 2000, 2, "home: 2\n");
	verified(store, 2, 2100);
	store_close(store);

	store = sample_open(spare, STORE_WRITE);
	remember(store, 500, 2, "away: 2\n"); /* the clock had been set back */
	remember(store, 600, 9, "away: 9\n");
	verified(store, 2, 610);
	verified(store, 9, 620);
	store_close(store);

	store = opened(0);
	has_calibrations(store, 4);
	for (int64_t id = old + 1; id < old + 4; id++) /* rounds are kept for three */
		is_whole(store, id);
	is_text(store, 1, "home: 1\n", 1);
	is_text(store, 2, "home: 2\n", 2);
	is_text(store, 9, "away: 9\n", 4);
	struct published newest = {0};
	CU_ASSERT_EQUAL(store_published(store, NULL, &newest, &why), 0);
	CU_ASSERT_EQUAL(newest.generation, 9);
	free(newest.yaml);
	struct calibration latest = {0};
	CU_ASSERT_EQUAL(store_latest(store, "0123456789ab", &latest, &why), 0);
	CU_ASSERT_EQUAL(latest.id, 4);
	CU_ASSERT_EQUAL(latest.started, 600);
	store_calibration_free(&latest);
	store_close(store);
	is_sound(home);
	CU_ASSERT_STRING_EQUAL(sample_sql(home, "SELECT group_concat(generation || '@' || at) FROM verification"),
	                       "2@2100,0@610,9@620");
}

static void test_twice_is_once(void)
{
	char before[100];

	fresh();
	struct store *store = sample_open(spare, STORE_WRITE);
	remember(store, 1000, 1, "a: 1\n");
	remember(store, 1000, 2, "a: 2\n"); /* within the same second */
	verified(store, 2, 1100);
	store_close(store);
	mend_home();
	store = sample_open(home, STORE_WRITE);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(store_absorb(store, spare, &why), 0);
		snprintf(before, sizeof(before), "%s",
		         sample_sql(home,
		                    "SELECT (SELECT count(*) FROM calibration) || ' ' || "
		                    "(SELECT count(*) FROM series) || ' ' || (SELECT count(*) FROM rounds) || ' ' "
		                    "|| (SELECT count(*) FROM published) || ' ' || (SELECT count(*) FROM verified)"));
		CU_ASSERT_STRING_EQUAL(before, "2 40 40 2 1");
	}
	store_close(store);
	is_sound(home);
}

/* Rounds are kept for three calibrations of a topology, however many come together. */
static void test_rounds_stay_bounded(void)
{
	fresh();
	mend_home();
	struct store *store = sample_open(spare, STORE_WRITE);
	for (int i = 0; i < 3; i++)
		remember(store, 5000 + i, 10 + (unsigned)i, "a: 1\n");
	store_close(store);
	store = sample_open(home, STORE_WRITE);
	for (int i = 0; i < 3; i++)
		remember(store, 1000 + i, 1 + (unsigned)i, "a: 1\n");
	CU_ASSERT_EQUAL(store_absorb(store, spare, &why), 0);
	has_calibrations(store, 6);
	is_whole(store, 6);
	store_close(store);
	CU_ASSERT_STRING_EQUAL(
		sample_sql(home, "SELECT count(DISTINCT calibration) || ' ' || min(calibration) FROM rounds"), "3 4");
	CU_ASSERT_STRING_EQUAL(sample_sql(home, "SELECT count(DISTINCT calibration) FROM series"), "6");
}

/* Another processor order of kernels, another build: their rows have other numbers. */
static void test_kernels_are_matched_by_name(void)
{
	fresh();
	mend_home();
	struct store *store = sample_open(spare, STORE_WRITE);
	remember(store, 1000, 1, "a: 1\n");
	store_close(store);
	sample_change(spare, "PRAGMA foreign_keys = OFF; UPDATE kernel SET id = 1000 - id; "
	                     "UPDATE series SET kernel = 1000 - kernel");
	store = sample_open(home, STORE_WRITE);
	CU_ASSERT_EQUAL(store_absorb(store, spare, &why), 0);
	is_whole(store, 1);
	store_close(store);
	is_sound(home);
}

/* --- what can't be brought --------------------------------------------------------------------------------------- */

static void test_leftover_that_is_damaged(void)
{
	char junk[5000], aside[600];

	fresh();
	store_close(opened(1));
	memset(junk, 'j', sizeof(junk));
	sample_write(spare, junk, sizeof(junk));
	mend_home();
	store_close(opened(0));
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "was damaged: it is kept as"));
	snprintf(aside, sizeof(aside), "%s.damaged-1", spare);
	CU_ASSERT(exists(aside) && !exists(spare));
}

static void test_leftover_of_somebody_else(void)
{
	fresh();
	store_close(opened(1));
	CU_ASSERT_EQUAL(unlink(spare), 0);
	sample_change(spare, "PRAGMA application_id = 252006674; CREATE TABLE track (x)");
	mend_home();
	store_close(opened(0));
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "is left as it is"));
	CU_ASSERT_STRING_EQUAL(sample_sql(spare, "SELECT count(*) FROM track"), "0");
}

static void test_absorbing_fails_whole(void)
{
	fresh();
	mend_home();
	struct store *store = sample_open(spare, STORE_WRITE);
	remember(store, 1000, 1, "a: 1\n");
	store_close(store);
	sample_change(spare, "PRAGMA ignore_check_constraints = ON; UPDATE published SET at = -5");
	store = sample_open(home, STORE_WRITE);
	CU_ASSERT(store_absorb(store, spare, &why) < 0);
	has_calibrations(store, 0);
	CU_ASSERT(store_absorb(store, "/nowhere/at/all.db", &why) < 0);
	remember(store, 1000, 1, "b: 1\n"); /* and goes on */
	store_close(store);
	CU_ASSERT_STRING_EQUAL(sample_sql(home, "SELECT count(*) FROM topology"), "1");
	is_sound(home);
}

/* Whoever adds a column or a table tells store_absorb.c, and then this. */
static void test_every_column_is_brought(void)
{
	static const char expected[] =
		"calibration 16, kernel 3, published 8, rounds 3, series 17, topology 5, verification 9, verified 15";

	fresh();
	mend_home();
	store_close(opened(0));
	CU_ASSERT_STRING_EQUAL(sample_sql(home,
	                                  "SELECT group_concat(t, ', ') FROM (SELECT m.name || ' ' || count(*) AS t "
	                                  "FROM sqlite_schema m JOIN pragma_table_info(m.name) WHERE m.type = 'table' "
	                                  "GROUP BY m.name ORDER BY m.name)"),
	                       expected);
}

static const struct unit_test tests[] = {
	{"home that works", test_home_that_works},
	{"missing home", test_missing_home},
	{"chosen paths have no fallback", test_chosen_paths_have_no_fallback},
	{"neither", test_neither},
	{"long names", test_long_names},
	{"one writer", test_one_writer},
	{"home is busy at the return", test_home_is_busy_at_the_return},
	{"leftover is brought", test_leftover_is_brought},
	{"both have history", test_both_have_history},
	{"twice is once", test_twice_is_once},
	{"rounds stay bounded", test_rounds_stay_bounded},
	{"kernels are matched by name", test_kernels_are_matched_by_name},
	{"leftover that is damaged", test_leftover_that_is_damaged},
	{"leftover of somebody else", test_leftover_of_somebody_else},
	{"absorbing fails whole", test_absorbing_fails_whole},
	{"every column is brought", test_every_column_is_brought},
};

UNIT_MAIN("store_place", tests)
