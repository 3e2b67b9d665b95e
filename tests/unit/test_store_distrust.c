/* What the schema forbids does not go into the store, and what does not make sense any more does not come out. */
#include <math.h>

#include "calibrd/store_series.h"
#include "tests/unit/store_sample.h"

/* A key or a value out of range takes the whole calibration's end back. */
static void test_bad_series_changes_nothing(void)
{
	const struct series_key good = {.bytes = 64, .threads = 1, .prior = PC_CACHED};
	struct series_key bad[7];
	for (size_t i = 0; i < 7; i++)
		bad[i] = good;
	bad[0].kernel = 200;
	bad[1].phase = PHASES;
	bad[2].prior = PC_UNKNOWN;
	bad[3].page = 2;
	bad[4].threads = 0;
	bad[5].bytes = 0;
	bad[6].prior = 9;
	struct pc_why why;
	const char *path = sample_path("bad-series.db");
	struct store *store = sample_open(path, STORE_WRITE);
	struct calibration c = sample_begun(store);
	strcpy(c.quality, "good");
	c.finished = 1;
	for (size_t i = 0; i < 8; i++) {
		struct dataset data = {0};
		struct round_value value = {.ns = i == 7 ? INFINITY : 1};
		dataset_add(&data, &good, &value, false);
		if (i < 7)
			dataset_add(&data, &bad[i], &value, false);
		CU_ASSERT_EQUAL(store_finish(store, &c, &data, &why), -EINVAL);
		dataset_clear(&data);
		CU_ASSERT_STRING_EQUAL(sample_sql(path, "SELECT count(*) FROM series"), "0");
		CU_ASSERT_STRING_EQUAL(sample_sql(path, "SELECT state FROM calibration"), "running");
	}
	strcpy(c.quality, "superb");
	CU_ASSERT_EQUAL(store_finish(store, &c, &(struct dataset){0}, &why), -EINVAL);
	struct calibration odd = {.effort = "eager", .started = 1};
	CU_ASSERT_EQUAL(store_begin(store, &sample_topology, &odd, &why), -EINVAL);
	store_close(store);
}

static void test_rounds_are_distrusted(void)
{
	struct round_value values[2] = {{.ns = 1.5f, .round = 0x1234, .epoch = 9}, {.ns = -2}};
	struct series series = {.count = 2, .rounds = values}, read = {0};
	/* 1.5f is 0x3fc00000, -2 is 0xc0000000. */
	const unsigned char expected[15] = {1, 9, 0x34, 0x12, 0, 0, 0xc0, 0x3f, 0, 0, 0, 0, 0, 0, 0xc0};
	unsigned char blob[15];
	CU_ASSERT_EQUAL(store_rounds_bytes(2), 15);
	CU_ASSERT_EQUAL(store_rounds_encode(&series, blob), 0);
	CU_ASSERT_EQUAL(memcmp(blob, expected, 15), 0);
	CU_ASSERT_EQUAL(store_rounds_decode(&(struct sql_bytes){blob, 15}, 2, &read), 0);
	CU_ASSERT_EQUAL(read.count, 2);
	CU_ASSERT_EQUAL(read.rounds[0].round, 0x1234);
	CU_ASSERT_EQUAL(read.rounds[1].ns, -2);
	free(read.rounds);
	CU_ASSERT_EQUAL(store_rounds_decode(&(struct sql_bytes){blob, 14}, 2, &read), -EUCLEAN);
	CU_ASSERT_EQUAL(store_rounds_decode(&(struct sql_bytes){blob, 15}, 3, &read), -EUCLEAN);
	CU_ASSERT_EQUAL(store_rounds_decode(&(struct sql_bytes){blob, 0}, 0, &read), -EUCLEAN);
	blob[14] = 0x7f; /* NaN or infinity */
	blob[13] = 0x80;
	CU_ASSERT_EQUAL(store_rounds_decode(&(struct sql_bytes){blob, 15}, 2, &read), -EUCLEAN);
	blob[14] = 0;
	blob[0] = 2;
	CU_ASSERT_EQUAL(store_rounds_decode(&(struct sql_bytes){blob, 15}, 2, &read), -EUCLEAN);
}

static void test_unknown_kernels_are_left_out(void)
{
	struct pc_why why;
	const char *path = sample_path("kernels.db");
	struct store *store = sample_open(path, STORE_WRITE);
	struct dataset data = {0}, read;
	struct series_key key = {.bytes = 64, .threads = 1, .prior = PC_CACHED};
	for (key.kernel = 0; key.kernel < 2; key.kernel++)
		dataset_add(&data, &key, &(struct round_value){.ns = 1}, false);
	int64_t id = sample_done(store, &data);
	store_close(store);
	sample_change(path, "UPDATE kernel SET name = 'of-tomorrow' WHERE id = 2");
	store = sample_open(path, STORE_READ);
	CU_ASSERT_EQUAL_FATAL(store_series(store, id, &read, &why), 0);
	CU_ASSERT_EQUAL(read.count, 1);
	dataset_clear(&read);
	dataset_clear(&data);
	store_close(store);
}

static void test_flipped_yaml_is_seen(void)
{
	struct pc_why why = {""};
	struct published got;
	const char *path = sample_path("flipped.db");
	struct store *store = sample_open(path, STORE_WRITE);
	CU_ASSERT_EQUAL(sample_publish(store, 1, 0, "from: 4096\n", &why), 0);
	store_close(store);
	sample_change(path, "UPDATE published SET yaml = 'from: 4097' || char(10)");
	store = sample_open(path, STORE_READ);
	CU_ASSERT_EQUAL(store_published(store, NULL, &got, &why), -EUCLEAN);
	store_close(store);
}

static const struct unit_test tests[] = {
	{"bad series changes nothing", test_bad_series_changes_nothing},
	{"rounds are distrusted", test_rounds_are_distrusted},
	{"unknown kernels are left out", test_unknown_kernels_are_left_out},
	{"flipped yaml is seen", test_flipped_yaml_is_seen},
};

UNIT_MAIN("store_distrust", tests)
