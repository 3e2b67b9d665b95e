/* Which calibrations of a real database are decided from together. */
#include "calibrd/pool.h"

#include <string.h>

#include "tests/unit/by_hand.h"
#include "tests/unit/same_data.h"
#include "tests/unit/store_sample.h"

enum { EPOCHS = 3, ROUNDS = 6, BYTES = 4096, FIRST_DONE = 1700000000 };

static struct store *store;
static struct pc_why why;
static char path[512];

/* One size, libc and another kernel; its cost tells calibrations apart. */
static struct dataset measured(double ns)
{
	struct dataset data = {0};

	for (unsigned epoch = 0; epoch < EPOCHS; epoch++) {
		put_rounds(&data, (struct where){PHASE_CLEAR, PC_FLUSHED, BYTES}, 0, epoch, ROUNDS, 1000);
		put_rounds(&data, (struct where){PHASE_CLEAR, PC_FLUSHED, BYTES}, 1, epoch, ROUNDS, ns);
	}
	return data;
}

static void start(void)
{
	snprintf(path, sizeof(path), "%s", sample_path("db"));
	store = sample_open(path, STORE_WRITE);
}

static void stop(void)
{
	store = store_close(store);
}

/* The n-th calibration, an hour after the one before it, which cost n. Its soft facts are the topology's. */
static struct calibration calibrated(const char *quality, unsigned n)
{
	struct calibration c = {
		.effort = "quick", .soft = sample_topology.soft, .started = FIRST_DONE + 3600 * (int64_t)n - 10};
	struct dataset data = measured(n);

	CU_ASSERT_EQUAL_FATAL(store_begin(store, &sample_topology, &c, &why), 0);
	strcpy(c.quality, quality);
	c.finished = c.started + 10;
	CU_ASSERT_EQUAL_FATAL(store_finish(store, &c, &data, &why), 0);
	c.state = CALIBRATION_DONE;
	dataset_clear(&data);
	return c;
}

static void verified(bool passed, double hours)
{
	struct verification row = {.topology = "0123456789ab",
	                           .effort = "quick",
	                           .at = FIRST_DONE + (int64_t)(3600 * hours),
	                           .passed = passed};
	struct verified series = {.intent = 1,
	                          .prior = PC_FLUSHED,
	                          .sizes = 1,
	                          .worst_bytes = BYTES,
	                          .gain = 1,
	                          .best_gain = 1,
	                          .unhinted = NAN,
	                          .against = NAN,
	                          .passed = passed};

	CU_ASSERT_EQUAL_FATAL(store_verify(store, &row, &series, 1, &why), 0);
}

static bool is_there(const struct dataset *pool, unsigned n)
{
	struct series_key key = plain_key((struct where){PHASE_CLEAR, PC_FLUSHED, BYTES}, 1);
	const struct series *series = dataset_find(pool, &key);

	for (size_t i = 0; series != NULL && i < series->count; i++)
		if (series->rounds[i].ns == (float)n)
			return true;
	return false;
}

/* Bit n: the n-th calibration is in the pool of that one, which is read from the database as at a restart. */
static unsigned pooled(const struct calibration *calibration)
{
	struct dataset data = {0}, pool;
	unsigned bits = 0, used = 99;

	CU_ASSERT_EQUAL_FATAL(store_series(store, calibration->id, &data, &why), 0);
	CU_ASSERT_EQUAL_FATAL(pool_collect(&pool, store, calibration, &data, &used, &why), 0);
	for (unsigned n = 1; n < 16; n++)
		bits |= is_there(&pool, n) ? 1u << n : 0;
	CU_ASSERT_EQUAL(used, (unsigned)__builtin_popcount(bits));
	CU_ASSERT_EQUAL(pool_epochs(&pool), EPOCHS * used);
	dataset_clear(&data);
	dataset_clear(&pool);
	return bits;
}

static void test_the_last_three(void)
{
	struct calibration c;

	start();
	c = calibrated("good", 1);
	CU_ASSERT_EQUAL(pooled(&c), 1u << 1);
	c = calibrated("good", 2);
	CU_ASSERT_EQUAL(pooled(&c), 1u << 2 | 1u << 1);
	c = calibrated("good", 3);
	CU_ASSERT_EQUAL(pooled(&c), 1u << 3 | 1u << 2 | 1u << 1);
	c = calibrated("good", 4);
	CU_ASSERT_EQUAL(pooled(&c), 1u << 4 | 1u << 3 | 1u << 2);
	stop();
}

static void test_noisy_and_failed_ones_are_passed_over(void)
{
	struct calibration c, failed = {.effort = "quick", .started = FIRST_DONE};

	start();
	calibrated("good", 1);
	calibrated("noisy", 2);
	CU_ASSERT_EQUAL_FATAL(store_begin(store, &sample_topology, &failed, &why), 0);
	CU_ASSERT_EQUAL_FATAL(store_fail(store, failed.id, "stopped", &why), 0);
	c = calibrated("good", 3);
	CU_ASSERT_EQUAL(pooled(&c), 1u << 3 | 1u << 1);
	c = calibrated("noisy", 4);
	CU_ASSERT_EQUAL(pooled(&c), 1u << 4);
	stop();
}

static void test_new_software_begins_anew(void)
{
	char *before = sample_topology.soft, after[] = "microcode 0x2\n";
	struct calibration c;

	start();
	calibrated("good", 1);
	sample_topology.soft = after;
	c = calibrated("good", 2);
	CU_ASSERT_EQUAL(pooled(&c), 1u << 2);
	c = calibrated("good", 3);
	CU_ASSERT_EQUAL(pooled(&c), 1u << 3 | 1u << 2);
	sample_topology.soft = before;
	c = calibrated("good", 4); /* back again, but of the first one no rounds are left */
	CU_ASSERT_EQUAL(pooled(&c), 1u << 4);
	stop();
}

static unsigned counted(const struct calibration *calibration)
{
	unsigned used = 0;

	CU_ASSERT_EQUAL(pool_count(store, calibration, &used, &why), 0);
	return used;
}

static void test_counted_by_their_records(void)
{
	struct calibration c;

	start();
	c = calibrated("good", 1);
	CU_ASSERT_EQUAL(counted(&c), 1);
	calibrated("noisy", 2);
	c = calibrated("good", 3);
	CU_ASSERT_EQUAL(counted(&c), 2);
	calibrated("good", 4);
	c = calibrated("good", 5);
	CU_ASSERT_EQUAL(counted(&c), POOL_MOST);
	verified(false, 5.5);
	c = calibrated("good", 6);
	CU_ASSERT_EQUAL(counted(&c), 1);
	stop();
}

static void test_a_failed_verification_begins_anew(void)
{
	struct calibration second, third, fourth;

	start();
	calibrated("good", 1);
	verified(true, 1.5);
	second = calibrated("good", 2);
	verified(false, 2.5);
	third = calibrated("good", 3);
	CU_ASSERT_EQUAL(pooled(&third), 1u << 3);
	fourth = calibrated("good", 4);
	CU_ASSERT_EQUAL(pooled(&fourth), 1u << 4 | 1u << 3);
	CU_ASSERT_EQUAL(pooled(&second), 1u << 2); /* the first one's rounds are gone */
	stop();
}

/* What comes after a calibration changes nothing about what it was decided from: a restart must not. */
static void test_what_comes_after_does_not_count(void)
{
	struct calibration second;

	start();
	calibrated("good", 1);
	second = calibrated("good", 2);
	verified(false, 2.5);
	calibrated("noisy", 3);
	CU_ASSERT_EQUAL(pooled(&second), 1u << 2 | 1u << 1);
	stop();
}

/* The samples in hand right after a calibration, and those that a restart reads. */
static void test_fresh_and_remembered_are_the_same(void)
{
	struct dataset fresh = measured(2), remembered = {0}, one, other;
	struct calibration second;

	start();
	calibrated("good", 1);
	second = calibrated("good", 2);
	CU_ASSERT_EQUAL_FATAL(pool_collect(&one, store, &second, &fresh, NULL, &why), 0);
	stop();
	store = sample_open(path, STORE_WRITE);
	CU_ASSERT_EQUAL_FATAL(store_series(store, second.id, &remembered, &why), 0);
	CU_ASSERT_EQUAL_FATAL(pool_collect(&other, store, &second, &remembered, NULL, &why), 0);
	CU_ASSERT(dataset_same(&one, &other));
	dataset_clear(&fresh);
	dataset_clear(&remembered);
	dataset_clear(&one);
	dataset_clear(&other);
	stop();
}

/* An older one's rounds that can't be read are no reason to decide nothing; its own are not the pool's to judge. */
static void test_a_damaged_older_one_is_left_out(void)
{
	struct calibration second;

	start();
	calibrated("good", 1);
	second = calibrated("good", 2);
	sample_change(path, "UPDATE rounds SET rounds = x'00' WHERE calibration = 1");
	CU_ASSERT_EQUAL(pooled(&second), 1u << 2);
	sample_change(path, "DELETE FROM rounds WHERE calibration = 1");
	CU_ASSERT_EQUAL(pooled(&second), 1u << 2);
	stop();
}

/* Whoever reads the database alone, as calibctl, gets the same. */
static void test_a_reader(void)
{
	struct calibration second;

	start();
	calibrated("good", 1);
	second = calibrated("good", 2);
	stop();
	store = sample_open(path, STORE_READ);
	CU_ASSERT_EQUAL(pooled(&second), 1u << 2 | 1u << 1);
	stop();
}

static const struct unit_test all_tests[] = {
	{"the last three", test_the_last_three},
	{"noisy and failed ones are passed over", test_noisy_and_failed_ones_are_passed_over},
	{"new software begins anew", test_new_software_begins_anew},
	{"counted by their records", test_counted_by_their_records},
	{"a failed verification begins anew", test_a_failed_verification_begins_anew},
	{"what comes after does not count", test_what_comes_after_does_not_count},
	{"fresh and remembered are the same", test_fresh_and_remembered_are_the_same},
	{"a damaged older one is left out", test_a_damaged_older_one_is_left_out},
	{"a reader", test_a_reader},
};

static void test_too_few_kernels(void)
{
	unit_skip("this build has %u kernels", pc_kernel_count);
}

static const struct unit_test no_tests[] = {{"too few kernels", test_too_few_kernels}};

int main(void)
{
	if (pc_kernel_count < 2)
		return unit_main("pool_store", no_tests, 1);
	return unit_main("pool_store", all_tests, sizeof(all_tests) / sizeof(all_tests[0]));
}
