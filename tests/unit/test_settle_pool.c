/* Policies decided from several calibrations, right after the last one and at a restart; see pool.h. */
#include "tests/unit/settle_stand.h"

static struct pc_document *last_policy;

/* One more calibration of the same host, a minute after the one before it; then settles, as right after it. */
static void calibrate_again(const struct dataset *data)
{
	int64_t before = calibration.finished;

	calibration = (struct calibration){
		.effort = "quick", .soft = topology.soft, .started = before + 60, .finished = before + 120};
	CU_ASSERT_EQUAL_FATAL(store_begin(store, &topology, &calibration, &why), 0);
	strcpy(calibration.quality, "good");
	CU_ASSERT_EQUAL_FATAL(store_finish(store, &calibration, data, &why), 0);
	calibration.state = CALIBRATION_DONE;
	pc_document_free(last_policy);
	CU_ASSERT_EQUAL_FATAL(settle_last(store, "0123456789ab", &last_policy, &why), 0);
	what.old = last_policy;
	what.data = data;
	CU_ASSERT(settle(&what, &why) >= 0);
}

static void forget_last(void)
{
	pc_document_free(last_policy);
	last_policy = NULL;
}

/* A restart decides from what the database has; 1: nothing is written. */
static int restart(void)
{
	struct dataset remembered = {0};
	struct calibration latest = {0};
	int r;

	CU_ASSERT_EQUAL_FATAL(store_latest(store, "0123456789ab", &latest, &why), 0);
	CU_ASSERT_EQUAL_FATAL(store_series(store, latest.id, &remembered, &why), 0);
	pc_document_free(last_policy);
	CU_ASSERT_EQUAL_FATAL(settle_last(store, "0123456789ab", &last_policy, &why), 0);
	what.old = last_policy;
	what.calibration = &latest;
	what.data = &remembered;
	what.source = "restart";
	r = settle(&what, &why);
	what.calibration = &calibration;
	what.source = "calibration";
	store_calibration_free(&latest);
	dataset_clear(&remembered);
	return r;
}

/* One that says the opposite of the one before it at 32 KiB moves nothing; two do. */
static void test_calibrations_together(void)
{
	struct dataset before = measured(2), data = measured(0.5);

	start(&before);
	CU_ASSERT_EQUAL(settle(&what, &why), 0);
	calibrate_again(&data);
	CU_ASSERT(rule_is(PC_FLUSHED, 32 * KIB, LIBC));
	CU_ASSERT(rule_is(PC_FLUSHED, 64 * KIB, FIRST));
	CU_ASSERT_EQUAL(restart(), 1);
	calibrate_again(&data);
	CU_ASSERT(rule_is(PC_FLUSHED, 32 * KIB, FIRST));
	CU_ASSERT_EQUAL(restart(), 1);
	forget_last();
	dataset_clear(&data);
	stop(&before);
}

/* After a failed verification the new one speaks alone, and a restart after that one changes nothing. */
static void test_a_failed_verification(void)
{
	struct dataset before = measured(2), data = measured(0.5);
	struct verification failed = {.topology = "0123456789ab", .effort = "quick", .at = 1796035327 + 30};

	start(&before);
	CU_ASSERT_EQUAL(settle(&what, &why), 0);
	CU_ASSERT_EQUAL_FATAL(store_verify(store, &failed, NULL, 0, &why), 0);
	calibrate_again(&data);
	CU_ASSERT(rule_is(PC_FLUSHED, 32 * KIB, FIRST));
	CU_ASSERT_EQUAL(restart(), 1);
	forget_last();
	dataset_clear(&data);
	stop(&before);
}

/* What faulted in the newest one is not brought back by an older one. */
static void test_faulted_since(void)
{
	struct dataset before = measured(2), data = {0};

	for (size_t i = 0; i < before.count; i++)
		for (size_t j = 0; before.series[i].key.kernel != FIRST && j < before.series[i].count; j++)
			CU_ASSERT_EQUAL(dataset_add(&data, &before.series[i].key, &before.series[i].rounds[j], false),
			                0);
	start(&before);
	CU_ASSERT_EQUAL(settle(&what, &why), 0);
	CU_ASSERT(rule_is(PC_FLUSHED, 64 * KIB, FIRST));
	calibrate_again(&data);
	CU_ASSERT(rule_is(PC_FLUSHED, 64 * KIB, LIBC));
	CU_ASSERT_EQUAL(restart(), 1);
	forget_last();
	dataset_clear(&data);
	stop(&before);
}

static const struct unit_test all_tests[] = {
	{"calibrations together", test_calibrations_together},
	{"a failed verification", test_a_failed_verification},
	{"faulted since", test_faulted_since},
};

static void test_too_few_kernels(void)
{
	unit_skip("this build has %u kernels", pc_kernel_count);
}

static const struct unit_test no_tests[] = {{"too few kernels", test_too_few_kernels}};

int main(void)
{
	if (pc_kernel_count < 3)
		return unit_main("settle_pool", no_tests, 1);
	return unit_main("settle_pool", all_tests, sizeof(all_tests) / sizeof(all_tests[0]));
}
