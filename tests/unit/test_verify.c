/*
 * From sizes to a report and a verdict, against numbers that were worked out by hand. A size alone is
 * test_verify_point.c's, measuring tests/sim/test_verify.c's.
 */
#include <errno.h>

#include "tests/unit/verify_points.h"

/* --- reports ------------------------------------------------------------------------------------------------------ */

/* What fills the other series, so that a report can be had: no regret, no floor. */
static struct verify_data data_of(struct verify_point *points, size_t count)
{
	struct verify_data data = {.points = calloc(count + VERIFY_SHAPES, sizeof(*points))};

	CU_ASSERT_PTR_NOT_NULL_FATAL(data.points);
	for (size_t i = 0; i < count; i++)
		data.points[data.count++] = points[i];
	for (unsigned shape = 0; shape < VERIFY_SHAPES; shape++) {
		bool there = false;

		for (size_t i = 0; i < count; i++)
			there |= points[i].shape == shape;
		if (there)
			continue;
		data.points[data.count] = point_of(shape, 4096);
		add_rounds(&data.points[data.count++], 100, 100, 100);
	}
	return data;
}

static struct verify_series series_of(const struct verify_report *report, unsigned intent, enum pc_prior prior)
{
	for (size_t i = 0; i < report->count; i++)
		if (report->series[i].told.intent == intent && report->series[i].told.prior == prior)
			return report->series[i];
	CU_FAIL_FATAL("no such series");
	return report->series[0];
}

static struct verify_report judge(const struct verify_data *data, const struct pageclear_policy *policy,
                                  double tolerance)
{
	struct verify_report report;
	struct pc_why why;

	CU_ASSERT_EQUAL_FATAL(verify_judge(data, policy, tolerance, &report, &why), 0);
	CU_ASSERT_EQUAL(report.count, VERIFY_SERIES);
	return report;
}

static void test_a_series_adds_up(void)
{
	const struct pageclear_policy *libc = policy_for(LIBC);
	struct verify_point points[4] = {point_of(VERIFY_CACHED, 1040), point_of(VERIFY_CACHED, 5008),
	                                 point_of(VERIFY_CACHED, 9008), point_of(VERIFY_CACHED, 70000)};
	struct verify_data data;
	struct verify_report report;
	struct verify_series cold;

	/* Regrets of ln 1.1, ln 2, ln 1.25; the last size was disturbed throughout. */
	add_rounds(&points[0], 110, 100, 200);
	add_rounds(&points[1], 200, 300, 100);
	add_rounds(&points[2], 125, 100, 300);
	add_rounds(&points[3], NAN, NAN, NAN);
	data = data_of(points, 4);
	report = judge(&data, libc, 0.02);
	cold = series_of(&report, PAGECLEAR_COLD, PC_CACHED);
	CU_ASSERT_EQUAL(cold.measured, 4);
	CU_ASSERT_EQUAL(cold.told.sizes, 3);
	CU_ASSERT_DOUBLE_EQUAL(cold.told.mean, cbrt(1.1 * 2 * 1.25) - 1, near);
	/* Ordered ln 1.1, ln 1.25, ln 2: rank 0.95 x 2 = 1.9 lies nine tenths of the way from the second to the third.
	 */
	CU_ASSERT_DOUBLE_EQUAL(cold.told.p95, exp(log(1.25) + 0.9 * log(2 / 1.25)) - 1, near);
	CU_ASSERT_DOUBLE_EQUAL(cold.told.worst, 1, near);
	CU_ASSERT_EQUAL(cold.told.worst_bytes, 5008);
	CU_ASSERT_EQUAL(cold.chosen.kernel, row(LIBC));
	CU_ASSERT_EQUAL(cold.better.kernel, row(SECOND));
	CU_ASSERT_DOUBLE_EQUAL(cold.told.floor, 0, near);
	CU_ASSERT_DOUBLE_EQUAL(cold.told.gain, 1, near);
	CU_ASSERT_DOUBLE_EQUAL(cold.told.best_gain, cbrt(1.1 * 2 * 1.25), near);
	CU_ASSERT(isnan(cold.told.unhinted) && isnan(cold.told.against));
	CU_ASSERT_FALSE(cold.told.passed);
	CU_ASSERT_FALSE(report.passed);
	/* The order of the series is what people read first. */
	CU_ASSERT(report.series[0].told.intent == PAGECLEAR_HOT && report.series[0].told.prior == PC_CACHED);
	CU_ASSERT(report.series[4].told.intent == PAGECLEAR_SCRUB && report.series[4].told.prior == PC_UNKNOWN);
	CU_ASSERT(report.series[4].told.passed);
	verify_data_free(&data);
	CU_ASSERT_EQUAL(data.count, 0);
	pageclear_policy_close(libc);
}

static void test_gains_without_a_hint_and_over_another_library(void)
{
	const struct pageclear_policy *first = policy_for(FIRST), *other = policy_for(FIRST);
	struct verify_point point = point_of(VERIFY_FLUSHED, 70000);
	struct verify_data data;
	struct verify_report report;
	struct verify_series cold;

	point.entrants[EXTRA] =
		(struct verify_entrant){.kind = VERIFY_UNHINTED, .policy = first, .intent = PAGECLEAR_COLD};
	point.entrants[ENTRANTS] = (struct verify_entrant){.kind = VERIFY_AGAINST};
	point.entrant_count = ENTRANTS + 1;
	for (unsigned i = 0; i < 8; i++) {
		struct verify_cost costs[ENTRANTS + 1] = {
			[LIBC] = {120, 1, NAN, 150},  [FIRST] = {40, 1, NAN, 60},    [SECOND] = {200, 1, NAN, 200},
			[AGAIN] = {120, 1, NAN, 150}, [EXTRA] = {60, NAN, NAN, 125}, [ENTRANTS] = {100, 1, NAN, 150}};

		CU_ASSERT_EQUAL_FATAL(verify_point_add(&point, i % 2, costs), 0);
	}
	data = data_of(&point, 1);
	report = judge(&data, first, 0.02);
	cold = series_of(&report, PAGECLEAR_COLD, PC_FLUSHED);
	CU_ASSERT_DOUBLE_EQUAL(cold.told.gain, 3, near);
	CU_ASSERT_DOUBLE_EQUAL(cold.told.unhinted, 2, near);
	CU_ASSERT_DOUBLE_EQUAL(cold.told.against, 2.5, near);
	/* It was a call for cold, and of that policy. */
	CU_ASSERT(isnan(series_of(&report, PAGECLEAR_HOT, PC_FLUSHED).told.unhinted));
	report = judge(&data, other, 0.02);
	CU_ASSERT(isnan(series_of(&report, PAGECLEAR_COLD, PC_FLUSHED).told.unhinted));
	/* Small enough to be asked for alone: there libc's 150 are next to 60, 125 and 150, all worse than in a batch.
	 */
	data.points[0].bytes = 2512;
	report = judge(&data, first, 0.02);
	cold = series_of(&report, PAGECLEAR_COLD, PC_FLUSHED);
	CU_ASSERT_DOUBLE_EQUAL(cold.told.gain, 2.5, near);
	CU_ASSERT_DOUBLE_EQUAL(cold.told.unhinted, 1.2, near);
	CU_ASSERT_DOUBLE_EQUAL(cold.told.against, 2.5, near);
	verify_data_free(&data);
	pageclear_policy_close(first);
	pageclear_policy_close(other);
}

static void test_what_passes(void)
{
	const struct pageclear_policy *libc = policy_for(LIBC), *second = policy_for(SECOND);
	struct verify_point points[2] = {point_of(VERIFY_FLUSHED, 70000), point_of(VERIFY_SCRUB, 70000)};
	struct verify_data data;
	struct verify_report report;

	/* libc costs 5 % more than the first, the second 12 %. */
	add_rounds(&points[0], 105, 100, 112);
	for (unsigned i = 0; i < 8; i++) { /* likewise, in shares of libc's 100 */
		struct verify_cost costs[ENTRANTS] = {[LIBC] = {0, NAN, 100, NAN},
		                                      [FIRST] = {0, NAN, 95, NAN},
		                                      [SECOND] = {0, NAN, 107, NAN},
		                                      [AGAIN] = {0, NAN, 100, NAN}};

		CU_ASSERT_EQUAL_FATAL(verify_point_add(&points[1], i % 2, costs), 0);
	}
	data = data_of(points, 2);
	report = judge(&data, libc, 0.02);
	CU_ASSERT_FALSE(report.passed);
	CU_ASSERT_FALSE(series_of(&report, PAGECLEAR_COLD, PC_FLUSHED).told.passed);
	/* Scrub may lose three times as much. */
	CU_ASSERT(series_of(&report, PAGECLEAR_SCRUB, PC_UNKNOWN).told.passed);
	CU_ASSERT(judge(&data, libc, 0.051).passed);
	report = judge(&data, libc, 0.016);
	CU_ASSERT_FALSE(series_of(&report, PAGECLEAR_SCRUB, PC_UNKNOWN).told.passed);
	/* Whatever the mean may be, one size in twenty must not lose more than 10 %. */
	report = judge(&data, second, 1);
	CU_ASSERT_FALSE(report.passed);
	CU_ASSERT_FALSE(series_of(&report, PAGECLEAR_COLD, PC_FLUSHED).told.passed);
	verify_data_free(&data);
	pageclear_policy_close(libc);
	pageclear_policy_close(second);
}

/* A floor of 8 % lets 10 % pass at a tolerance of 2 %. */
static void test_the_floor_is_allowed_for(void)
{
	const struct verified told = {.intent = PAGECLEAR_COLD, .floor = 0.08, .floor_p95 = 0.2},
			      scrub = {.intent = PAGECLEAR_SCRUB, .floor = 0.08, .floor_p95 = 0.2};

	CU_ASSERT_DOUBLE_EQUAL(verify_mean_limit(&told, 0.02), 0.1, near);
	CU_ASSERT_DOUBLE_EQUAL(verify_mean_limit(&scrub, 0.02), 0.14, near);
	CU_ASSERT_DOUBLE_EQUAL(verify_p95_limit(&told), 0.3, near);
}

/* Beyond by 3 points of the mean, by 20 of the percentile, and by 1 of a scrub's mean: not the largest, nor the first.
 */
static void test_which_series_is_furthest_beyond(void)
{
	struct verify_report report = {.count = 4};

	report.series[0].told = (struct verified){.intent = PAGECLEAR_HOT, .mean = 0.05};
	report.series[1].told = (struct verified){.intent = PAGECLEAR_COLD, .mean = 0.01, .p95 = 0.3};
	report.series[2].told = (struct verified){.intent = PAGECLEAR_SCRUB, .mean = 0.07};
	report.series[3].told = (struct verified){.intent = PAGECLEAR_COLD, .mean = 0.4, .floor = 0.5, .passed = true};
	CU_ASSERT_PTR_EQUAL(verify_worst(&report, 0.02), &report.series[1].told);
	report.series[1].told.passed = true;
	CU_ASSERT_PTR_EQUAL(verify_worst(&report, 0.02), &report.series[0].told);
	report.series[0].told.passed = true;
	CU_ASSERT_PTR_EQUAL(verify_worst(&report, 0.02), &report.series[2].told);
	report.series[2].told.passed = true;
	CU_ASSERT_PTR_NULL(verify_worst(&report, 0.02));
}

/* A verdict rests on half of the sizes at least. */
static void test_too_little_undisturbed(void)
{
	const struct pageclear_policy *libc = policy_for(LIBC);
	struct verify_point points[3] = {point_of(VERIFY_FLUSHED, 5008), point_of(VERIFY_FLUSHED, 70000),
	                                 point_of(VERIFY_FLUSHED, 90000)};
	struct verify_report report;
	struct pc_why why = {""};
	struct verify_data data;

	add_rounds(&points[0], 100, 100, 100);
	add_rounds(&points[1], NAN, NAN, NAN);
	add_rounds(&points[2], NAN, NAN, NAN);
	data = data_of(points, 2);
	CU_ASSERT_EQUAL(verify_judge(&data, libc, 0.02, &report, &why), 0);
	data.points[0].costs = data.points[1].costs = NULL; /* the points' own, wanted again */
	verify_data_free(&data);
	data = data_of(points, 3);
	CU_ASSERT_EQUAL(verify_judge(&data, libc, 0.02, &report, &why), -ENODATA);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "only 1 of 3 sizes"));
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "hot, flushed"));
	verify_data_free(&data);
	CU_ASSERT_EQUAL(verify_judge(&data, libc, 0.02, &report, &why), -ENODATA);
	pageclear_policy_close(libc);
}

static void test_a_point_is_full_at_last(void)
{
	struct verify_point point = point_of(VERIFY_CACHED, 5000);
	struct verify_cost costs[ENTRANTS] = {{0}};

	for (unsigned i = 0; i < VERIFY_ROUNDS; i++)
		CU_ASSERT_EQUAL_FATAL(verify_point_add(&point, i % 4, costs), 0);
	CU_ASSERT_EQUAL(verify_point_add(&point, 0, costs), -E2BIG);
	CU_ASSERT_EQUAL(point.rounds, VERIFY_ROUNDS);
	free(point.costs);
}

/* --- policies ---------------------------------------------------------------------------------------------------- */

static void test_what_a_policy_names(void)
{
	const struct pageclear_policy *policy =
		open_text(policy_text(1, here(), pc_arch,
	                              "clear:\n"
	                              "  - intent: hot\n"
	                              "    when: {threads: 1, prior: unknown}\n"
	                              "    rules: [{from: 0, kernel: libc}, {from: 5000, kernel: stosb}]\n"
	                              "  - intent: scrub\n"
	                              "    when: {threads: 1}\n"
	                              "    rules: [{from: 0, kernel: libc}, {from: 1000000000000, kernel: sse2}]\n"
	                              "  - intent: cold\n"
	                              "    when: {threads: 1, prior: cached}\n"
	                              "    rules: [{from: 0, kernel: libc}]\n"
	                              "  - intent: cold\n"
	                              "    when: {threads: 8, prior: cached}\n"
	                              "    rules: [{from: 0, kernel: stosq}]\n"));
	uint32_t named = verify_named(policy);

	/* Several threads are not verified. */
	CU_ASSERT_EQUAL(named, 1u << row(LIBC) | 1u << row(FIRST) | 1u << row(SECOND));
	pageclear_policy_close(policy);
}

static void test_what_is_not_measured(void)
{
	const struct pageclear_policy *policies[VERIFY_POLICIES + 1] = {policy_for(FIRST)};
	struct verify_config config = {.effort = EFFORT_QUICK,
	                               .kernels = 1u << row(SECOND),
	                               .memory_bytes = 512 << 20,
	                               .policies = policies,
	                               .policy_count = 1};
	struct verify_data data;
	struct pc_why why = {""};

	/* A kernel that failed its trial is never run, not even since a policy says so. No meter is asked. */
	CU_ASSERT_EQUAL(verify_measure(NULL, &config, &data, &why), -ENOEXEC);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "stosb"));
	config.kernels |= 1u << row(FIRST);
	config.memory_bytes = 1 << 20;
	CU_ASSERT_EQUAL(verify_measure(NULL, &config, &data, &why), -ENOMEM);
	config.memory_bytes = 0;
	CU_ASSERT_EQUAL(verify_measure(NULL, &config, &data, &why), -ENOMEM);
	config.policy_count = VERIFY_POLICIES + 1;
	CU_ASSERT_EQUAL(verify_measure(NULL, &config, &data, &why), -E2BIG);
	pageclear_policy_close(policies[0]);
}

static const struct unit_test tests[] = {
	{"a series adds up", test_a_series_adds_up},
	{"gains without a hint and over another library", test_gains_without_a_hint_and_over_another_library},
	{"what passes", test_what_passes},
	{"the floor is allowed for", test_the_floor_is_allowed_for},
	{"which series is furthest beyond", test_which_series_is_furthest_beyond},
	{"too little undisturbed", test_too_little_undisturbed},
	{"a point is full at last", test_a_point_is_full_at_last},
	{"what a policy names", test_what_a_policy_names},
	{"what is not measured", test_what_is_not_measured},
};

UNIT_MAIN("verify", tests)
