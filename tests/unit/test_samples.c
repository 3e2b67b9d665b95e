/*
 * The dataset against the plainest model of it: samples in any order end up in sorted series, in the order taken.
 */
#include "calibrd/samples.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/harness.h"

static const struct series_key base_key = {.bytes = 4096, .threads = 1, .kernel = 2, .prior = 1, .phase = PHASE_CLEAR};

static void test_empty(void)
{
	struct dataset data = {0};
	CU_ASSERT_PTR_NULL(dataset_find(&data, &base_key));
	dataset_clear(&data);
	CU_ASSERT_EQUAL(data.count, 0);
}

static void test_keeps_order_and_taint(void)
{
	struct dataset data = {0};
	for (uint16_t i = 0; i < 100; i++) {
		struct round_value value = {.ns = (float)i, .round = i, .epoch = (uint8_t)(i / 40)};
		CU_ASSERT_EQUAL(dataset_add(&data, &base_key, &value, i % 10 == 3), 0);
	}
	const struct series *found = dataset_find(&data, &base_key);
	CU_ASSERT_PTR_NOT_NULL_FATAL(found);
	CU_ASSERT_EQUAL(data.count, 1);
	CU_ASSERT_EQUAL(found->count, 90);
	CU_ASSERT_EQUAL(found->tainted, 10);
	for (uint32_t i = 0; i < found->count; i++) {
		uint32_t taken = i / 9 * 10 + (i % 9 < 3 ? i % 9 : i % 9 + 1);
		CU_ASSERT_EQUAL(found->rounds[i].round, taken);
		CU_ASSERT_EQUAL(found->rounds[i].ns, (float)taken);
		CU_ASSERT_EQUAL(found->rounds[i].epoch, taken / 40);
	}
	dataset_clear(&data);
}

static void test_only_tainted_is_still_a_series(void)
{
	struct dataset data = {0};
	CU_ASSERT_EQUAL(dataset_add(&data, &base_key, &(struct round_value){.ns = 1}, true), 0);
	const struct series *found = dataset_find(&data, &base_key);
	CU_ASSERT_PTR_NOT_NULL_FATAL(found);
	CU_ASSERT_EQUAL(found->count, 0);
	CU_ASSERT_EQUAL(found->tainted, 1);
	dataset_clear(&data);
}

/* Each member by itself makes another series, and the comparison is antisymmetric. */
static void test_every_member_is_in_the_key(void)
{
	struct series_key other[7];
	for (size_t i = 0; i < 7; i++)
		other[i] = base_key;
	other[0].bytes = UINT64_C(1) << 40;
	other[1].chunk++;
	other[2].threads++;
	other[3].kernel++;
	other[4].prior++;
	other[5].phase++;
	other[6].page++;
	struct dataset data = {0};
	CU_ASSERT_EQUAL(dataset_add(&data, &base_key, &(struct round_value){.ns = 7}, false), 0);
	CU_ASSERT_EQUAL(series_compare(&base_key, &base_key), 0);
	for (size_t i = 0; i < 7; i++) {
		CU_ASSERT_EQUAL(series_compare(&base_key, &other[i]), -1);
		CU_ASSERT_EQUAL(series_compare(&other[i], &base_key), 1);
		CU_ASSERT_PTR_NULL(dataset_find(&data, &other[i]));
		CU_ASSERT_EQUAL(dataset_add(&data, &other[i], &(struct round_value){.ns = (float)i}, false), 0);
	}
	CU_ASSERT_EQUAL(data.count, 8);
	CU_ASSERT_EQUAL(dataset_find(&data, &base_key)->rounds[0].ns, 7.0f);
	dataset_clear(&data);
}

/* As large as the largest calibration: 100 000 samples over 3000 series, in no order. */
static void test_many(void)
{
	enum { SERIES = 3000, SAMPLES = 100000 };
	struct dataset data = {0};
	uint32_t expected[SERIES] = {0}, random = 1;
	for (unsigned i = 0; i < SAMPLES; i++) {
		random = random * 1664525 + 1013904223;
		unsigned which = (random >> 8) % SERIES;
		struct series_key key = base_key;
		key.bytes = UINT64_C(64) << (which % 30);
		key.kernel = (uint8_t)(which / 30 % 10);
		key.phase = (uint8_t)(which / 300 % PHASES);
		key.prior = (uint8_t)(which / 300 / PHASES);
		expected[which]++;
		CU_ASSERT_EQUAL_FATAL(dataset_add(&data, &key, &(struct round_value){.ns = (float)which}, false), 0);
	}
	CU_ASSERT_EQUAL_FATAL(data.count, SERIES);
	for (size_t i = 0; i < data.count; i++) {
		const struct series *s = &data.series[i];
		CU_ASSERT_EQUAL(s->count, expected[(unsigned)s->rounds[0].ns]);
		CU_ASSERT_PTR_EQUAL(dataset_find(&data, &s->key), s);
		CU_ASSERT(i == 0 || series_compare(&data.series[i - 1].key, &s->key) < 0);
	}
	dataset_clear(&data);
}

static void test_names(void)
{
	CU_ASSERT_STRING_EQUAL(phase_name(PHASE_CLEAR), "clear");
	CU_ASSERT_STRING_EQUAL(phase_name(PHASE_VICTIM_L1), "victim-l1");
	CU_ASSERT_STRING_EQUAL(phase_name(PHASE_VICTIM_LLC), "victim-llc");
	CU_ASSERT_STRING_EQUAL(phase_name(PHASES), "unknown");
	for (int i = 0; i < PHASES; i++)
		for (int j = 0; j < i; j++)
			CU_ASSERT_STRING_NOT_EQUAL(phase_name((enum phase)i), phase_name((enum phase)j));
	CU_ASSERT_STRING_EQUAL(page_name(PAGE_BASE), "base");
	CU_ASSERT_STRING_EQUAL(page_name(PAGE_HUGE), "huge");
}

static const struct unit_test tests[] = {
	{"empty", test_empty},
	{"keeps order and taint", test_keeps_order_and_taint},
	{"only tainted is still a series", test_only_tainted_is_still_a_series},
	{"every member is in the key", test_every_member_is_in_the_key},
	{"many", test_many},
	{"names", test_names},
};

UNIT_MAIN("samples", tests)
