/*
 * What goes into the store comes out of it. See also test_store_distrust.c (what does not go in, or comes out wrong),
 * test_store_migrations.c, test_store_file.c (other people's files), test_store_damage.c and test_store_crash.c (killed
 * writers, full disks).
 */
#include <math.h>
#include <stdint.h>
#include <sys/stat.h>

#include "calibrd/store_migrate.h"
#include "tests/unit/same_data.h"
#include "tests/unit/store_sample.h"

static void test_new_database(void)
{
	struct stat info;
	char newest[16];
	const char *path = sample_path("new.db");
	umask(077);
	store_close(sample_open(path, STORE_WRITE));
	umask(022);
	CU_ASSERT_EQUAL(stat(path, &info), 0);
	CU_ASSERT_EQUAL(info.st_mode & 0777, 0644);
	CU_ASSERT_STRING_EQUAL(sample_sql(path, "PRAGMA application_id"), "1885823852");
	snprintf(newest, sizeof(newest), "%u", store_migrations[store_migration_count - 1].number);
	CU_ASSERT_STRING_EQUAL(sample_sql(path, "PRAGMA user_version"), newest);
	CU_ASSERT_STRING_EQUAL(sample_sql(path, "PRAGMA journal_mode"), "delete");
	/* Every table is STRICT. */
	CU_ASSERT_STRING_EQUAL(sample_sql(path, "SELECT count(*) FROM pragma_table_list "
	                                        "WHERE NOT strict AND name NOT LIKE 'sqlite_%'"),
	                       "0");
	/* Opening it again changes nothing. */
	size_t before, after;
	unsigned char *a = sample_read(path, &before);
	store_close(sample_open(path, STORE_WRITE));
	unsigned char *b = sample_read(path, &after);
	CU_ASSERT_EQUAL_FATAL(before, after);
	CU_ASSERT_EQUAL(memcmp(a, b, before), 0);
	free(a);
	free(b);
}

static void test_nothing_yet(void)
{
	struct calibration c;
	struct published p;
	struct dataset data;
	char *key, *raw;
	struct pc_why why;
	struct store *store = sample_open(sample_path("nothing.db"), STORE_WRITE);
	CU_ASSERT_EQUAL(store_latest(store, NULL, &c, &why), 1);
	CU_ASSERT_EQUAL(store_calibration(store, 1, &c, &why), 1);
	CU_ASSERT_EQUAL(store_published(store, NULL, &p, &why), 1);
	CU_ASSERT_EQUAL(store_generation(store, 1, &p, &why), 1);
	CU_ASSERT_EQUAL(store_topology(store, "0123456789ab", &key, &raw, &why), 1);
	CU_ASSERT_EQUAL(store_series(store, 1, &data, &why), 0);
	CU_ASSERT_EQUAL(data.count, 0);
	dataset_clear(&data);
	store_close(store);
}

static void test_calibration_comes_back(void)
{
	struct pc_why why = {""};
	const char *path = sample_path("comes-back.db");
	struct store *store = sample_open(path, STORE_WRITE);
	struct dataset data = sample_data(100, 9), read = {0};
	struct calibration c = sample_begun(store), got = {0};
	CU_ASSERT(c.id > 0);
	CU_ASSERT_EQUAL(c.state, CALIBRATION_RUNNING);
	CU_ASSERT_STRING_EQUAL(c.topology, sample_topology.id);
	CU_ASSERT_EQUAL(store_latest(store, NULL, &got, &why), 1); /* not done yet */
	strcpy(c.quality, "noisy");
	c.reasons = "a busy \"host\"; it's 5 % off";
	c.faulted = "avx512 movdir64b";
	c.surroundings = "seconds=10\nbusy_cache=0.25\n";
	c.knee_bytes = UINT64_C(5) << 20;
	c.probe_from = 65536;
	c.probe_lines = 4;
	c.probe_slow_ns = 57.25;
	c.finished = 1700000042;
	CU_ASSERT_EQUAL(store_finish(store, &c, &data, &why), 0);
	store_close(store);

	store = sample_open(path, STORE_READ);
	CU_ASSERT_EQUAL_FATAL(store_latest(store, sample_topology.id, &got, &why), 0);
	CU_ASSERT_EQUAL(got.id, c.id);
	CU_ASSERT_EQUAL(got.state, CALIBRATION_DONE);
	CU_ASSERT_STRING_EQUAL(got.topology, sample_topology.id);
	CU_ASSERT_STRING_EQUAL(got.effort, "quick");
	CU_ASSERT_STRING_EQUAL(got.quality, "noisy");
	CU_ASSERT_STRING_EQUAL(got.reasons, c.reasons);
	CU_ASSERT_STRING_EQUAL(got.faulted, c.faulted);
	CU_ASSERT_STRING_EQUAL(got.surroundings, c.surroundings);
	CU_ASSERT_STRING_EQUAL(got.soft, sample_topology.soft);
	CU_ASSERT_EQUAL(got.started, 1700000000);
	CU_ASSERT_EQUAL(got.finished, 1700000042);
	CU_ASSERT_EQUAL(got.knee_bytes, UINT64_C(5) << 20);
	CU_ASSERT_EQUAL(got.probe_from, 65536);
	CU_ASSERT_EQUAL(got.probe_lines, 4);
	CU_ASSERT_EQUAL(got.probe_slow_ns, 57.25);
	store_calibration_free(&got);
	CU_ASSERT_EQUAL(store_latest(store, "ffffffffffff", &got, &why), 1);
	CU_ASSERT_EQUAL_FATAL(store_series(store, c.id, &read, &why), 0);
	CU_ASSERT(dataset_same(&data, &read));
	dataset_clear(&read);
	dataset_clear(&data);
	store_close(store);
}

static void test_topology_comes_back(void)
{
	struct pc_why why;
	char *key, *raw;
	struct store *store = sample_open(sample_path("topology.db"), STORE_WRITE);
	sample_begun(store);
	CU_ASSERT_EQUAL_FATAL(store_topology(store, sample_topology.id, &key, &raw, &why), 0);
	CU_ASSERT_STRING_EQUAL(key, sample_topology.key);
	CU_ASSERT_STRING_EQUAL(raw, sample_topology.raw);
	free(key);
	free(raw);
	/* A later run without a dump keeps the one there is. */
	struct topology again = sample_topology;
	struct calibration c = {.effort = "quick", .started = 1};
	again.raw = NULL;
	CU_ASSERT_EQUAL(store_begin(store, &again, &c, &why), 0);
	CU_ASSERT_EQUAL_FATAL(store_topology(store, sample_topology.id, &key, &raw, &why), 0);
	CU_ASSERT_STRING_EQUAL(raw, sample_topology.raw);
	free(key);
	free(raw);
	store_close(store);
}

static void test_summaries_outlive_rounds(void)
{
	struct pc_why why;
	const char *path = sample_path("rounds.db");
	struct store *store = sample_open(path, STORE_WRITE);
	struct dataset data = sample_data(40, 7), read;
	int64_t ids[5];
	for (int i = 0; i < 5; i++) {
		ids[i] = sample_done(store, &data);
		/* Failed ones do not count among the three. */
		struct calibration failed = sample_begun(store);
		CU_ASSERT_EQUAL(store_fail(store, failed.id, "cancelled", &why), 0);
	}
	for (int i = 0; i < 5; i++) {
		struct series_summary *list;
		size_t count;
		CU_ASSERT_EQUAL_FATAL(store_series(store, ids[i], &read, &why), 0);
		CU_ASSERT_EQUAL_FATAL(read.count, 40);
		CU_ASSERT_EQUAL(read.series[7].count, i < 2 ? 0 : 7);
		CU_ASSERT_EQUAL_FATAL(store_summaries(store, ids[i], &list, &count, &why), 0);
		CU_ASSERT_EQUAL_FATAL(count, 40);
		for (size_t j = 0; j < count; j++) {
			const struct series *s = &data.series[j];
			CU_ASSERT_EQUAL(series_compare(&list[j].key, &s->key), 0);
			CU_ASSERT_EQUAL(list[j].count, 7);
			CU_ASSERT_EQUAL(list[j].tainted, s->tainted);
			/* Rounds of the sample ascend by 1/7. */
			CU_ASSERT_EQUAL(list[j].median, (double)s->rounds[3].ns);
			CU_ASSERT_EQUAL(list[j].least, (double)s->rounds[0].ns);
			CU_ASSERT_DOUBLE_EQUAL(list[j].mad, 2.0 / 7, 1e-2);
		}
		free(list);
		dataset_clear(&read);
	}
	dataset_clear(&data);
	store_close(store);
	CU_ASSERT_STRING_EQUAL(sample_sql(path, "PRAGMA integrity_check"), "ok");
}

/* Finishes a calibration of that topology and quality; its id. */
static int64_t done_as(struct store *store, const char *topology, const char *quality, const struct dataset *data)
{
	struct topology host = sample_topology;
	struct calibration c = {.effort = "quick", .started = 1700000000};
	struct pc_why why;
	snprintf(host.id, sizeof(host.id), "%s", topology);
	CU_ASSERT_EQUAL_FATAL(store_begin(store, &host, &c, &why), 0);
	snprintf(c.quality, sizeof(c.quality), "%s", quality);
	c.finished = 1700000060;
	CU_ASSERT_EQUAL_FATAL(store_finish(store, &c, data, &why), 0);
	return c.id;
}

/* A host that changes its shape and changes back, and one that has had noisy days since, find what they knew. */
static void test_rounds_of_each_topology(void)
{
	struct pc_why why;
	struct store *store = sample_open(sample_path("shapes.db"), STORE_WRITE);
	struct dataset data = sample_data(3, 7), read;
	struct calibration latest;
	int64_t first = done_as(store, "aaaaaaaaaaaa", "good", &data);
	for (int i = 0; i < 4; i++) {
		done_as(store, "bbbbbbbbbbbb", "good", &data);
		done_as(store, "aaaaaaaaaaaa", "noisy", &data);
	}
	CU_ASSERT_EQUAL_FATAL(store_series(store, first, &read, &why), 0);
	CU_ASSERT_EQUAL_FATAL(read.count, 3);
	CU_ASSERT_EQUAL(read.series[0].count, 7);
	dataset_clear(&read);
	CU_ASSERT_EQUAL_FATAL(store_latest(store, "aaaaaaaaaaaa", &latest, &why), 0);
	CU_ASSERT_EQUAL(latest.id, first);
	store_calibration_free(&latest);
	dataset_clear(&data);
	store_close(store);
}

static void test_series_without_rounds(void)
{
	struct pc_why why;
	struct store *store = sample_open(sample_path("tainted.db"), STORE_WRITE);
	struct dataset data = {0}, read;
	struct series_key key = {.bytes = 64, .threads = 1, .prior = PC_CACHED};
	CU_ASSERT_EQUAL(dataset_add(&data, &key, &(struct round_value){0}, true), 0);
	int64_t id = sample_done(store, &data);
	CU_ASSERT_EQUAL_FATAL(store_series(store, id, &read, &why), 0);
	CU_ASSERT_EQUAL_FATAL(read.count, 1);
	CU_ASSERT_EQUAL(read.series[0].count, 0);
	CU_ASSERT_EQUAL(read.series[0].tainted, 1);
	struct series_summary *list;
	size_t count;
	CU_ASSERT_EQUAL_FATAL(store_summaries(store, id, &list, &count, &why), 0);
	CU_ASSERT(isnan(list[0].median));
	free(list);
	dataset_clear(&read);
	dataset_clear(&data);
	store_close(store);
}

static void test_states(void)
{
	struct pc_why why;
	struct calibration got = {0};
	struct dataset none = {0};
	struct store *store = sample_open(sample_path("states.db"), STORE_WRITE);
	struct calibration c = sample_begun(store);
	strcpy(c.quality, "good");
	c.finished = 5; /* before it started: clocks are set */
	CU_ASSERT_EQUAL(store_finish(store, &c, &none, &why), 0);
	/* Ends only once, and only what began. */
	CU_ASSERT_EQUAL(store_finish(store, &c, &none, &why), -ESRCH);
	CU_ASSERT_EQUAL(store_fail(store, c.id, "late", &why), -ESRCH);
	CU_ASSERT_EQUAL(store_fail(store, 999, "unknown", &why), -ESRCH);
	struct calibration second = sample_begun(store);
	CU_ASSERT_EQUAL(store_fail(store, second.id, "no time", &why), 0);
	CU_ASSERT_EQUAL_FATAL(store_calibration(store, second.id, &got, &why), 0);
	CU_ASSERT_EQUAL(got.state, CALIBRATION_FAILED);
	CU_ASSERT_STRING_EQUAL(got.reasons, "no time");
	CU_ASSERT(got.finished > 1700000000);
	store_calibration_free(&got);
	CU_ASSERT_EQUAL_FATAL(store_latest(store, NULL, &got, &why), 0);
	CU_ASSERT_EQUAL(got.id, c.id);
	store_calibration_free(&got);
	store_close(store);
}

static void test_interrupted_is_failed(void)
{
	struct pc_why why;
	struct calibration got = {0};
	const char *path = sample_path("interrupted.db");
	struct store *store = sample_open(path, STORE_WRITE);
	int64_t id = sample_begun(store).id;
	store_close(store);
	store = sample_open(path, STORE_READ);
	CU_ASSERT_EQUAL_FATAL(store_calibration(store, id, &got, &why), 0);
	CU_ASSERT_EQUAL(got.state, CALIBRATION_RUNNING);
	store_calibration_free(&got);
	store_close(store);
	store = sample_open(path, STORE_WRITE);
	CU_ASSERT_EQUAL_FATAL(store_calibration(store, id, &got, &why), 0);
	CU_ASSERT_EQUAL(got.state, CALIBRATION_FAILED);
	CU_ASSERT_PTR_NOT_NULL_FATAL(got.reasons);
	CU_ASSERT_PTR_NOT_NULL(strstr(got.reasons, "interrupted"));
	store_calibration_free(&got);
	store_close(store);
}

static void test_history(void)
{
	struct pc_why why;
	struct calibration *list;
	struct published *published;
	size_t count;
	struct dataset none = {0};
	struct store *store = sample_open(sample_path("history.db"), STORE_WRITE);
	for (uint64_t i = 1; i <= 4; i++)
		CU_ASSERT_EQUAL(sample_publish(store, i * 10, sample_done(store, &none), "x: 1\n", &why), 0);
	CU_ASSERT_EQUAL_FATAL(store_calibrations(store, SIZE_MAX, &list, &count, &why), 0);
	CU_ASSERT_EQUAL_FATAL(count, 4);
	CU_ASSERT_EQUAL(list[0].id, 4);
	CU_ASSERT_EQUAL(list[3].id, 1);
	for (size_t i = 0; i < count; i++)
		store_calibration_free(&list[i]);
	free(list);
	CU_ASSERT_EQUAL_FATAL(store_calibrations(store, 1, &list, &count, &why), 0);
	CU_ASSERT_EQUAL_FATAL(count, 1);
	store_calibration_free(&list[0]);
	free(list);
	CU_ASSERT_EQUAL_FATAL(store_publications(store, 3, &published, &count, &why), 0);
	CU_ASSERT_EQUAL_FATAL(count, 3);
	CU_ASSERT_EQUAL(published[0].generation, 40);
	CU_ASSERT_EQUAL(published[2].generation, 20);
	CU_ASSERT_EQUAL(published[2].calibration, 2);
	CU_ASSERT_PTR_NULL(published[2].yaml);
	free(published);
	store_close(store);
}

static void test_published(void)
{
	struct pc_why why = {""};
	struct published got;
	struct dataset none = {0};
	struct store *store = sample_open(sample_path("published.db"), STORE_WRITE);
	int64_t id = sample_done(store, &none);
	CU_ASSERT_EQUAL(sample_publish(store, 7, id, "format: 1\n# it's \"exact\"\n", &why), 0);
	struct published imported = {
		.generation = 8, .at = 9, .source = "import", .topology = "aaaaaaaaaaaa", .yaml = "b\n"};
	CU_ASSERT_EQUAL(store_publish(store, &imported, &why), 0);
	CU_ASSERT_EQUAL_FATAL(store_published(store, NULL, &got, &why), 0);
	CU_ASSERT_EQUAL(got.generation, 8);
	CU_ASSERT_EQUAL(got.calibration, 0);
	free(got.yaml);
	CU_ASSERT_EQUAL_FATAL(store_published(store, sample_topology.id, &got, &why), 0);
	CU_ASSERT_EQUAL(got.generation, 7);
	CU_ASSERT_EQUAL(got.calibration, id);
	CU_ASSERT_EQUAL(got.at, 1700000061);
	CU_ASSERT_STRING_EQUAL(got.source, "calibration");
	CU_ASSERT_STRING_EQUAL(got.yaml, "format: 1\n# it's \"exact\"\n");
	free(got.yaml);
	CU_ASSERT_EQUAL(store_published(store, "bbbbbbbbbbbb", &got, &why), 1);
	CU_ASSERT_EQUAL_FATAL(store_generation(store, 7, &got, &why), 0);
	CU_ASSERT_EQUAL(got.generation, 7);
	free(got.yaml);
	store_close(store);
}

static void test_published_is_refused(void)
{
	struct pc_why why = {""};
	struct store *store = sample_open(sample_path("refused.db"), STORE_WRITE);
	CU_ASSERT_EQUAL(sample_publish(store, 1, 0, "a: 1\n", &why), 0);
	CU_ASSERT_EQUAL(sample_publish(store, 1, 0, "a: 2\n", &why), -EEXIST);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "generation 1"));
	CU_ASSERT_EQUAL(sample_publish(store, 2, 12345, "a: 2\n", &why), -EINVAL); /* no such calibration */
	CU_ASSERT_EQUAL(sample_publish(store, 0, 0, "a: 2\n", &why), -EINVAL);
	CU_ASSERT_EQUAL(sample_publish(store, UINT64_MAX, 0, "a: 2\n", &why), -ERANGE);
	CU_ASSERT_EQUAL(sample_publish(store, 3, 0, "", &why), -EINVAL);
	CU_ASSERT_EQUAL(sample_publish(store, 3, 0, NULL, &why), -EINVAL);
	struct published bad = {.generation = 4, .at = 1, .source = "hearsay", .topology = "0123456789ab", .yaml = "a"};
	CU_ASSERT_EQUAL(store_publish(store, &bad, &why), -EINVAL);
	strcpy(bad.source, "import");
	strcpy(bad.topology, "0123456789AB");
	CU_ASSERT_EQUAL(store_publish(store, &bad, &why), -EINVAL);
	store_close(store);
}

static void test_readers_change_nothing(void)
{
	struct pc_why why;
	const char *path = sample_path("reader.db");
	struct store *store = sample_open(path, STORE_WRITE);
	int64_t id = sample_begun(store).id;
	store_close(store);
	store = sample_open(path, STORE_READ);
	CU_ASSERT_EQUAL(sample_publish(store, 1, 0, "a: 1\n", &why), -EROFS);
	CU_ASSERT_EQUAL(store_fail(store, id, "no", &why), -EROFS);
	store_close(store);
}

/* The size of a standard calibration; growth stays bounded because rounds are dropped after three. */
static void test_growth(void)
{
	struct stat info;
	const char *path = sample_path("growth.db");
	struct store *store = sample_open(path, STORE_WRITE);
	struct dataset data = sample_data(1200, 30);
	CU_ASSERT_EQUAL(data.count, 1200);
	off_t sizes[12];
	for (int i = 0; i < 12; i++) {
		sample_done(store, &data);
		CU_ASSERT_EQUAL(stat(path, &info), 0);
		sizes[i] = info.st_size;
	}
	printf("\n%lld bytes after 1 calibration, %lld after 3, %lld a further one\n", (long long)sizes[0],
	       (long long)sizes[2], (long long)(sizes[11] - sizes[3]) / 8);
	CU_ASSERT(sizes[0] < 1 << 20);
	CU_ASSERT((sizes[11] - sizes[3]) / 8 < 256 << 10);
	dataset_clear(&data);
	store_close(store);
}

static const struct unit_test tests[] = {
	{"new database", test_new_database},
	{"nothing yet", test_nothing_yet},
	{"calibration comes back", test_calibration_comes_back},
	{"topology comes back", test_topology_comes_back},
	{"summaries outlive rounds", test_summaries_outlive_rounds},
	{"rounds of each topology", test_rounds_of_each_topology},
	{"series without rounds", test_series_without_rounds},
	{"states", test_states},
	{"interrupted is failed", test_interrupted_is_failed},
	{"history", test_history},
	{"published", test_published},
	{"published is refused", test_published_is_refused},
	{"readers change nothing", test_readers_change_nothing},
	{"growth", test_growth},
};

UNIT_MAIN("store", tests)
