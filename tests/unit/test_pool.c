/* Calibrations joined into one: who belongs together, whose epochs are taken, which sizes speak. */
#include "calibrd/pool.h"

#include <string.h>

#include "calibrd/costs.h"
#include "tests/unit/allocations.h"
#include "tests/unit/by_hand.h"
#include "tests/unit/same_data.h"

enum { LIBC, FIRST, SECOND, ROUNDS = 6 };

#define KIB ((uint64_t)1024)

/* --- who belongs together ----------------------------------------------------------------------------------------- */

static char software[] = "libc=2.36\n", newer_software[] = "libc=2.37\n";

static struct calibration done(int64_t id, int64_t finished)
{
	return (struct calibration){.id = id,
	                            .state = CALIBRATION_DONE,
	                            .topology = "0123456789ab",
	                            .effort = "standard",
	                            .quality = "good",
	                            .soft = software,
	                            .started = finished - 60,
	                            .finished = finished};
}

static void test_alike_fit(void)
{
	struct calibration newer = done(7, 2000), older = done(3, 1000);

	CU_ASSERT(pool_fits(&newer, &older, NULL, 0));
	strcpy(older.effort, "thorough");
	CU_ASSERT(pool_fits(&newer, &older, NULL, 0));
	strcpy(newer.quality, "emulated");
	strcpy(older.quality, "emulated");
	CU_ASSERT(pool_fits(&newer, &older, NULL, 0));
}

/* Each of them alone is enough. */
static void test_others_do_not_fit(void)
{
	const struct calibration newer = done(7, 2000);
	struct calibration older[10];
	enum { COUNT = sizeof(older) / sizeof(older[0]) };

	for (size_t i = 0; i < COUNT; i++)
		older[i] = done(3, 1000);
	older[0].state = CALIBRATION_FAILED;
	older[1].state = CALIBRATION_RUNNING;
	older[2].id = 7;
	older[3].id = 8;
	strcpy(older[4].topology, "ba9876543210");
	older[5].soft = newer_software;
	older[6].soft = NULL;
	strcpy(older[7].effort, "quick");
	strcpy(older[8].quality, "noisy");
	strcpy(older[9].effort, "hasty");
	for (size_t i = 0; i < COUNT; i++)
		CU_ASSERT_FALSE(pool_fits(&newer, &older[i], NULL, 0));
}

/* Noisy ones differ by what went on beside them. */
static void test_noisy_ones_stay_alone(void)
{
	struct calibration newer = done(7, 2000), older = done(3, 1000);

	strcpy(newer.quality, "noisy");
	CU_ASSERT_FALSE(pool_fits(&newer, &older, NULL, 0));
	strcpy(older.quality, "noisy");
	CU_ASSERT_FALSE(pool_fits(&newer, &older, NULL, 0));
}

static void test_unknown_software_is_not_the_same(void)
{
	struct calibration newer = done(7, 2000), older = done(3, 1000);

	newer.soft = older.soft = NULL;
	CU_ASSERT_FALSE(pool_fits(&newer, &older, NULL, 0));
}

/* newest: the newest calibration when it was verified; the clock has nothing to say. */
static bool fit_after(const char *topology, int64_t newest, bool passed)
{
	struct calibration newer = done(7, 2000), older = done(3, 1000);
	struct verification verifications[] = {{.topology = "0123456789ab", .newest = 4, .passed = true},
	                                       {.at = 5000, .newest = newest, .passed = passed},
	                                       {.topology = "0123456789ab", .at = 1500, .newest = 2}};

	strcpy(verifications[1].topology, topology);
	return pool_fits(&newer, &older, verifications, 3);
}

/* Only what failed between the two tells them apart. */
static void test_a_failed_verification_parts(void)
{
	CU_ASSERT_FALSE(fit_after("0123456789ab", 3, false));
	CU_ASSERT_FALSE(fit_after("0123456789ab", 5, false));
	CU_ASSERT_FALSE(fit_after("0123456789ab", 6, false));
	CU_ASSERT(fit_after("0123456789ab", 5, true));
	CU_ASSERT(fit_after("ba9876543210", 5, false));
	CU_ASSERT(fit_after("0123456789ab", 2, false));
	CU_ASSERT(fit_after("0123456789ab", 7, false));
}

/* --- joining ------------------------------------------------------------------------------------------------------ */

static struct dataset pool;

static void join(const struct dataset *a, const struct dataset *b, const struct dataset *c)
{
	const struct dataset *parts[] = {a, b, c};

	dataset_clear(&pool);
	CU_ASSERT_EQUAL_FATAL(pool_join(&pool, parts, c != NULL ? 3 : b != NULL ? 2 : 1), 0);
}

/* libc and another kernel at a size; that one's share of libc's cost. */
static void put_size(struct dataset *data, uint64_t bytes, unsigned epoch, unsigned kernel, double share)
{
	struct where where = {PHASE_CLEAR, PC_FLUSHED, bytes};

	put_rounds(data, where, LIBC, epoch, ROUNDS, (double)bytes);
	put_rounds(data, where, kernel, epoch, ROUNDS, (double)bytes * share);
}

/* Two sizes, 1 KiB and 64 KiB. */
static struct dataset calibration(unsigned epochs, double share)
{
	struct dataset data = {0};

	for (unsigned e = 0; e < epochs; e++) {
		put_size(&data, KIB, e, FIRST, share);
		put_size(&data, 64 * KIB, e, FIRST, share);
	}
	return data;
}

static const struct series *found(uint64_t bytes, unsigned kernel)
{
	struct series_key key = plain_key((struct where){PHASE_CLEAR, PC_FLUSHED, bytes}, kernel);

	return dataset_find(&pool, &key);
}

static void test_alone_it_stays_as_it_is(void)
{
	struct dataset data = calibration(3, 0.5);

	NEEDS_KERNELS(3);
	put_size(&data, 8 * KIB, 2, SECOND, 1); /* asked about late */
	put_rounds(&data, (struct where){PHASE_CLEAR, PC_FLUSHED, 16 * KIB}, FIRST, 0, ROUNDS, 1); /* without libc */
	join(&data, NULL, NULL);
	CU_ASSERT(dataset_same(&pool, &data));
	dataset_clear(&data);
}

static void test_nothing_is_nothing(void)
{
	struct dataset nothing = {0}, data = calibration(3, 0.5);

	join(&nothing, NULL, NULL);
	CU_ASSERT_EQUAL(pool.count, 0);
	join(&nothing, &data, &nothing); /* nothing that the newest has the like of */
	CU_ASSERT_EQUAL(pool.count, 0);
	join(&data, &nothing, NULL);
	CU_ASSERT_EQUAL(pool_epochs(&pool), 3);
	dataset_clear(&data);
}

/* Rounds of the same numbers in both would pair with each other if epochs shared theirs. */
static void test_epochs_follow_each_other(void)
{
	struct dataset newest = calibration(3, 0.5), older = calibration(3, 0.25), oldest = calibration(3, 2);
	struct cost_key key = {COST_CLEAR, PC_FLUSHED, KIB, 1};
	static struct cost_points points;
	double epochs[COST_EPOCHS];

	NEEDS_KERNELS(2);
	join(&newest, &older, &oldest);
	CU_ASSERT_EQUAL(pool_epochs(&pool), 9);
	costs_paired(&pool, &key, FIRST, LIBC, &points);
	CU_ASSERT_EQUAL(points.count, 9 * ROUNDS);
	NEAR(costs_centre(&points, epochs), log(0.5));
	for (size_t e = 0; e < 9; e++)
		NEAR(epochs[e], log(e < 3 ? 0.5 : e < 6 ? 0.25 : 2));
	CU_ASSERT(isnan(epochs[9]));
	dataset_clear(&newest);
	dataset_clear(&older);
	dataset_clear(&oldest);
}

/* None has more epochs than the newest; which of them are taken is spread over its time, the first among them. */
static void test_none_outweighs_the_newest(void)
{
	struct dataset newest = calibration(3, 0.5), older = {0};
	const struct series *series;

	NEEDS_KERNELS(2);
	for (unsigned e = 0; e < 15; e++)
		put_size(&older, KIB, e, FIRST, 1 + e);
	join(&newest, &older, NULL);
	CU_ASSERT_EQUAL(pool_epochs(&pool), 6);
	series = found(KIB, FIRST);
	CU_ASSERT_PTR_NOT_NULL_FATAL(series);
	CU_ASSERT_EQUAL_FATAL(series->count, 6 * ROUNDS);
	NEAR(series->rounds[3 * ROUNDS].ns, KIB);
	NEAR(series->rounds[4 * ROUNDS].ns, 6 * KIB);
	NEAR(series->rounds[5 * ROUNDS].ns, 11 * KIB);
	CU_ASSERT_EQUAL(series->rounds[5 * ROUNDS].epoch, 5);
	dataset_clear(&newest);
	dataset_clear(&older);
}

/* COST_EPOCHS hold two of thirty and not a third: it is left out as a whole. */
static void test_room_for_epochs(void)
{
	struct dataset newest = calibration(30, 0.5), older = calibration(30, 0.25), oldest = calibration(30, 2);
	struct dataset full = calibration(COST_EPOCHS, 0.5);

	NEEDS_KERNELS(2);
	join(&newest, &older, &oldest);
	CU_ASSERT_EQUAL(pool_epochs(&pool), 60);
	join(&full, &older, NULL);
	CU_ASSERT_EQUAL(pool_epochs(&pool), COST_EPOCHS);
	CU_ASSERT_EQUAL(found(KIB, FIRST)->count, COST_EPOCHS * ROUNDS);
	dataset_clear(&newest);
	dataset_clear(&older);
	dataset_clear(&oldest);
	dataset_clear(&full);
}

/* A kernel that is excluded now, or faulted, or a number of threads that there is no room for any more. */
static void test_what_the_newest_lacks(void)
{
	struct dataset newest = calibration(3, 0.5), older = calibration(3, 0.5);
	struct series_key crew = plain_key((struct where){PHASE_CLEAR, PC_FLUSHED, KIB}, FIRST);

	NEEDS_KERNELS(3);
	put_size(&older, KIB, 0, SECOND, 0.1);
	crew.threads = 4;
	put_key_rounds(&older, &crew, 0, ROUNDS, 1);
	join(&newest, &older, NULL);
	CU_ASSERT_PTR_NULL(found(KIB, SECOND));
	CU_ASSERT_PTR_NULL(dataset_find(&pool, &crew));
	CU_ASSERT_EQUAL(found(KIB, FIRST)->count, 6 * ROUNDS);
	dataset_clear(&newest);
	dataset_clear(&older);
}

static struct dataset with_size(uint64_t bytes)
{
	struct dataset data = calibration(3, 0.5);

	put_size(&data, bytes, 1, FIRST, 0.5);
	return data;
}

/* 8 KiB lies between the sizes that all have, 128 KiB above them, 512 below. */
static void test_sizes_that_others_passed_over(void)
{
	struct dataset plain = calibration(3, 0.5), inside = with_size(8 * KIB), above = with_size(128 * KIB),
		       below = with_size(512);

	NEEDS_KERNELS(2);
	join(&inside, &plain, NULL);
	CU_ASSERT_PTR_NULL(found(8 * KIB, FIRST));
	CU_ASSERT_PTR_NULL(found(8 * KIB, LIBC));
	join(&plain, &inside, NULL);
	CU_ASSERT_PTR_NULL(found(8 * KIB, FIRST));
	join(&inside, &plain, &inside);
	CU_ASSERT_PTR_NULL(found(8 * KIB, FIRST));
	join(&inside, &inside, &inside);
	CU_ASSERT_EQUAL(found(8 * KIB, FIRST)->count, 3 * ROUNDS);
	join(&plain, &above, &below);
	CU_ASSERT_EQUAL(found(128 * KIB, FIRST)->count, ROUNDS);
	CU_ASSERT_EQUAL(found(512, FIRST)->count, ROUNDS);
	CU_ASSERT_EQUAL(found(64 * KIB, FIRST)->count, 9 * ROUNDS);
	dataset_clear(&plain);
	dataset_clear(&inside);
	dataset_clear(&above);
	dataset_clear(&below);
}

/* Disturbed is not passed over: it was asked about. Spot checks have sizes of their own. */
static void test_sizes_that_stay(void)
{
	struct dataset newest = with_size(8 * KIB), older = calibration(3, 0.5);
	struct series_key lost = plain_key((struct where){PHASE_CLEAR, PC_FLUSHED, 8 * KIB}, LIBC), spot = lost;
	struct round_value value = {.ns = 1};

	NEEDS_KERNELS(2);
	CU_ASSERT_EQUAL(dataset_add(&older, &lost, &value, true), 0);
	spot.bytes = spot.chunk = 4 * KIB;
	put_key_rounds(&newest, &spot, 0, ROUNDS, 1);
	join(&newest, &older, NULL);
	CU_ASSERT_EQUAL(found(8 * KIB, FIRST)->count, ROUNDS);
	CU_ASSERT_EQUAL(found(8 * KIB, LIBC)->tainted, 1);
	CU_ASSERT_PTR_NOT_NULL(dataset_find(&pool, &spot));
	dataset_clear(&newest);
	dataset_clear(&older);
}

/* Whatever goes in, what comes out is in order, and the newest's rounds come first. */
static struct dataset random_part(struct random *random)
{
	struct dataset data = {0};
	unsigned epochs = 1 + (unsigned)(random_next(random) % 20);

	for (unsigned i = 0; i < 200; i++) {
		struct series_key key = {.bytes = KIB << random_next(random) % 6,
		                         .threads = (uint16_t)(1 + random_next(random) % 2),
		                         .kernel = (uint8_t)(random_next(random) % pc_kernel_count),
		                         .prior = (uint8_t)(PC_CACHED + random_next(random) % 2),
		                         .phase = (uint8_t)(random_next(random) % PHASES)};
		bool tainted = random_next(random) % 8 == 0, known = dataset_find(&data, &key) != NULL;

		for (unsigned e = 0; e < epochs && !known; e++)
			if (random_next(random) % 4 != 0)
				for (unsigned r = 0; r < 3; r++)
					CU_ASSERT_EQUAL(
						dataset_add(&data, &key,
					                    &(struct round_value){(float)i, (uint16_t)r, (uint8_t)e},
					                    tainted),
						0);
	}
	return data;
}

static void check_order(const struct series *series)
{
	for (size_t i = 1; i < series->count; i++) {
		const struct round_value *a = &series->rounds[i - 1], *b = &series->rounds[i];

		CU_ASSERT(a->epoch < b->epoch || (a->epoch == b->epoch && a->round < b->round));
		CU_ASSERT(b->epoch < COST_EPOCHS);
	}
}

static void check_pool(const struct dataset *newest)
{
	for (size_t i = 0; i < pool.count; i++) {
		const struct series *own = dataset_find(newest, &pool.series[i].key);

		CU_ASSERT(i == 0 || series_compare(&pool.series[i - 1].key, &pool.series[i].key) < 0);
		check_order(&pool.series[i]);
		CU_ASSERT(own == NULL || own->count <= pool.series[i].count);
		for (size_t j = 0; own != NULL && j < own->count; j++)
			CU_ASSERT(own->rounds[j].ns == pool.series[i].rounds[j].ns &&
			          own->rounds[j].epoch == pool.series[i].rounds[j].epoch);
	}
}

static void test_any_three(void)
{
	struct random random = {20};

	for (unsigned turn = 0; turn < 100; turn++) {
		struct dataset a = random_part(&random), b = random_part(&random), c = random_part(&random);

		join(&a, &b, &c);
		check_pool(&a);
		CU_ASSERT(pool_epochs(&pool) <= 3 * pool_epochs(&a));
		dataset_clear(&a);
		dataset_clear(&b);
		dataset_clear(&c);
	}
}

/* Each allocation refused in turn: said, and nothing left behind. */
static void test_no_memory(void)
{
	struct dataset newest, older, out;
	const struct dataset *parts[] = {&newest, &older};
	unsigned refusals = 0;
	int r = -ENOMEM;

	if (!sees_allocations()) {
		unit_skip("allocations can't be refused here");
		return;
	}
	newest = calibration(3, 0.5);
	older = calibration(3, 0.25);
	while (r == -ENOMEM && refusals < 1000) {
		long before = live;

		refuse_at = allocations + ++refusals;
		r = pool_join(&out, parts, 2);
		refuse_at = 0;
		if (r == -ENOMEM)
			CU_ASSERT(out.count == 0 && live == before);
	}
	CU_ASSERT_EQUAL(r, 0);
	CU_ASSERT(refusals > 4);
	dataset_clear(&out);
	dataset_clear(&newest);
	dataset_clear(&older);
}

static void test_end(void)
{
	dataset_clear(&pool);
	CU_ASSERT_EQUAL(pool_epochs(&pool), 0);
}

static const struct unit_test tests[] = {
	{"alike fit", test_alike_fit},
	{"others do not fit", test_others_do_not_fit},
	{"noisy ones stay alone", test_noisy_ones_stay_alone},
	{"unknown software is not the same", test_unknown_software_is_not_the_same},
	{"a failed verification parts", test_a_failed_verification_parts},
	{"alone it stays as it is", test_alone_it_stays_as_it_is},
	{"nothing is nothing", test_nothing_is_nothing},
	{"epochs follow each other", test_epochs_follow_each_other},
	{"none outweighs the newest", test_none_outweighs_the_newest},
	{"room for epochs", test_room_for_epochs},
	{"what the newest lacks", test_what_the_newest_lacks},
	{"sizes that others passed over", test_sizes_that_others_passed_over},
	{"sizes that stay", test_sizes_that_stay},
	{"any three", test_any_three},
	{"no memory", test_no_memory},
	{"end", test_end},
};

UNIT_MAIN("pool", tests)
