/*
 * Judging against numbers that were worked out by hand. Measuring is tests/sim/test_verify.c's.
 */
#include "calibrd/verify.h"

#include <errno.h>
#include <math.h>

#include "tests/unit/policy_files.h"

enum { LIBC, FIRST, SECOND, AGAIN, EXTRA, ENTRANTS };

static const double near = 1e-6; /* costs are kept as floats */

static const char *const names[] = {"libc", "stosb", "sse2"};

static unsigned row(unsigned entrant)
{
	return pc_kernel_index(pc_kernel_find(names[entrant]));
}

/* --- policies ---------------------------------------------------------------------------------------------------- */

static const struct pageclear_policy *policy_of(const char *rules)
{
	char clear[4096] = "clear:\n";
	static const char *const when[][2] = {{"hot", ", prior: cached"},
	                                      {"hot", ", prior: flushed"},
	                                      {"cold", ", prior: cached"},
	                                      {"cold", ", prior: flushed"},
	                                      {"scrub", ""}};

	for (size_t i = 0; i < 5; i++)
		snprintf(clear + strlen(clear), sizeof(clear) - strlen(clear),
		         "  - intent: %s\n    when: {threads: 1%s}\n    rules: [%s]\n", when[i][0], when[i][1], rules);
	return open_text(policy_text(1, here(), pc_arch, clear));
}

static const struct pageclear_policy *policy_for(unsigned entrant)
{
	char rules[64];

	snprintf(rules, sizeof(rules), "{from: 0, kernel: %s}", names[entrant]);
	return policy_of(rules);
}

/* --- measurements ------------------------------------------------------------------------------------------------ */

static struct verify_point point_of(enum verify_shape shape, uint64_t bytes)
{
	struct verify_point point = {.shape = shape, .bytes = bytes, .entrant_count = AGAIN + 1};

	for (unsigned e = LIBC; e <= SECOND; e++)
		point.entrants[e] = (struct verify_entrant){.kind = VERIFY_KERNEL, .way = {.kernel = row(e)}};
	point.entrants[AGAIN].kind = VERIFY_AGAIN;
	return point;
}

/* A clear alone; libc's second time as its first. */
static void add_round(struct verify_point *point, unsigned epoch, double libc, double first, double second)
{
	struct verify_cost costs[ENTRANTS] = {[LIBC] = {.clear = (float)libc},
	                                      [FIRST] = {.clear = (float)first},
	                                      [SECOND] = {.clear = (float)second},
	                                      [AGAIN] = {.clear = (float)libc}};

	CU_ASSERT_EQUAL_FATAL(verify_point_add(point, epoch, costs), 0);
}

/* The same in every round: three of each of four epochs. */
static void add_rounds(struct verify_point *point, double libc, double first, double second)
{
	for (unsigned i = 0; i < 12; i++)
		add_round(point, i / 3, libc, first, second);
}

static struct verify_outcome outcome_of(const struct verify_point *point, unsigned intent,
                                        const struct pageclear_policy *policy, bool can_be_told)
{
	struct verify_outcome out;

	CU_ASSERT_EQUAL(verify_point_judge(point, intent, policy, &out), can_be_told);
	return out;
}

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

/* --- one size ---------------------------------------------------------------------------------------------------- */

static void test_the_best_is_picked_on_one_half_and_valued_on_the_other(void)
{
	const struct pageclear_policy *libc = policy_for(LIBC);
	struct verify_point point = point_of(VERIFY_CACHED, 5000);
	struct verify_outcome out;

	/* Even epochs would pick the first kernel, odd ones the second. */
	for (unsigned i = 0; i < 6; i++) {
		add_round(&point, 0, 100, 50, 60);
		add_round(&point, 1, 100, 80, 70);
	}
	out = outcome_of(&point, PAGECLEAR_COLD, libc, true);
	/* The first valued on odd epochs: 100/80; the second on even ones: 100/60. */
	CU_ASSERT_DOUBLE_EQUAL(out.regret, (log(100.0 / 80) + log(100.0 / 60)) / 2, near);
	CU_ASSERT_DOUBLE_EQUAL(out.best, (log(0.8) + log(0.6)) / 2, near);
	CU_ASSERT_DOUBLE_EQUAL(out.own, 0, near);
	CU_ASSERT_DOUBLE_EQUAL(out.floor, 0, near);
	CU_ASSERT(isnan(out.unhinted) && isnan(out.against));
	CU_ASSERT_EQUAL(out.chosen.kernel, row(LIBC));
	/* Over all rounds both have a median pair of ln 0.65; ties go to the earlier one. */
	CU_ASSERT_EQUAL(out.better.kernel, row(FIRST));
	free(point.costs);
	pageclear_policy_close(libc);
}

static void test_no_regret_where_the_choice_is_the_best(void)
{
	const struct pageclear_policy *first = policy_for(FIRST);
	struct verify_point point = point_of(VERIFY_FLUSHED, 5000);

	for (unsigned i = 0; i < 40; i++) /* noisy, and never in favour of another */
		add_round(&point, i % 4, 90 + i, 40 + i * 7 % 11, 80 + i * 3 % 7);
	for (unsigned intent = PAGECLEAR_HOT; intent <= PAGECLEAR_COLD; intent++)
		CU_ASSERT_EQUAL(outcome_of(&point, intent, first, true).regret, 0);
	free(point.costs);
	pageclear_policy_close(first);
}

/* A kernel that loses to the choice on the rounds it was not picked on makes negative regret: else noise would always
 * look like a loss. */
static void test_regret_may_be_negative(void)
{
	const struct pageclear_policy *libc = policy_for(LIBC);
	struct verify_point point = point_of(VERIFY_CACHED, 5000);

	for (unsigned i = 0; i < 6; i++) {
		add_round(&point, 0, 100, 90, 130);
		add_round(&point, 1, 100, 120, 130);
	}
	CU_ASSERT_DOUBLE_EQUAL(outcome_of(&point, PAGECLEAR_COLD, libc, true).regret, log(100.0 / 120) / 2, near);
	free(point.costs);
	pageclear_policy_close(libc);
}

static void test_hot_counts_the_first_read(void)
{
	const struct pageclear_policy *first = policy_for(FIRST);
	struct verify_point point = point_of(VERIFY_FLUSHED, 5000);
	struct verify_outcome hot, cold;

	for (unsigned i = 0; i < 8; i++) {
		struct verify_cost costs[ENTRANTS] = {[LIBC] = {100, 50, NAN},
		                                      [FIRST] = {40, 160, NAN},
		                                      [SECOND] = {90, 50, NAN},
		                                      [AGAIN] = {100, 50, NAN}};

		CU_ASSERT_EQUAL_FATAL(verify_point_add(&point, i % 2, costs), 0);
	}
	cold = outcome_of(&point, PAGECLEAR_COLD, first, true);
	hot = outcome_of(&point, PAGECLEAR_HOT, first, true);
	CU_ASSERT_EQUAL(cold.regret, 0);
	CU_ASSERT_DOUBLE_EQUAL(cold.own, log(0.4), near);
	CU_ASSERT_DOUBLE_EQUAL(hot.regret, log(200.0 / 140), near);
	CU_ASSERT_DOUBLE_EQUAL(hot.own, log(200.0 / 150), near);
	CU_ASSERT_EQUAL(hot.better.kernel, row(SECOND));
	free(point.costs);
	pageclear_policy_close(first);
}

/* The median of pairs, so one wild round moves nothing; disturbed ones do not count. */
static void test_disturbed_rounds(void)
{
	const struct pageclear_policy *first = policy_for(FIRST);
	struct verify_point point = point_of(VERIFY_CACHED, 5000);
	struct verify_outcome out;

	for (unsigned i = 0; i < 20; i++)
		add_round(&point, i % 2, 100, i == 4 ? 9000 : 50, i % 3 == 0 ? NAN : 25);
	out = outcome_of(&point, PAGECLEAR_COLD, first, true);
	CU_ASSERT_DOUBLE_EQUAL(out.regret, log(2), near);
	CU_ASSERT_DOUBLE_EQUAL(out.own, log(0.5), near);
	free(point.costs);

	/* One undisturbed round in a half is too few. */
	point = point_of(VERIFY_CACHED, 5000);
	for (unsigned i = 0; i < 20; i++)
		add_round(&point, i % 2, 100, i == 1 || i % 2 == 0 ? 50 : NAN, 100);
	out = outcome_of(&point, PAGECLEAR_COLD, first, false);
	CU_ASSERT(isnan(out.regret));
	free(point.costs);
	pageclear_policy_close(first);
}

static void test_floor_is_libc_against_itself(void)
{
	const struct pageclear_policy *libc = policy_for(LIBC);
	struct verify_point point = point_of(VERIFY_CACHED, 5000);

	for (unsigned i = 0; i < 12; i++) {
		struct verify_cost costs[ENTRANTS] = {[LIBC] = {.clear = 100},
		                                      [FIRST] = {.clear = 200},
		                                      [SECOND] = {.clear = 200},
		                                      [AGAIN] = {.clear = i % 2 == 0 ? 90 : 104}};

		CU_ASSERT_EQUAL_FATAL(verify_point_add(&point, i % 2, costs), 0);
	}
	/* Its sign says nothing: |ln 0.9 + ln 1.04| / 2. */
	CU_ASSERT_DOUBLE_EQUAL(outcome_of(&point, PAGECLEAR_COLD, libc, true).floor, -(log(0.9) + log(1.04)) / 2, near);
	free(point.costs);
	pageclear_policy_close(libc);
}

static void test_a_choice_in_chunks_has_samples_of_its_own(void)
{
	const struct pageclear_policy *chunked = policy_of("{from: 0, kernel: stosb, chunk: 65536}");
	struct verify_point point = point_of(VERIFY_FLUSHED, 65537);
	struct verify_outcome out;

	/* Nobody measured it so. */
	add_rounds(&point, 100, 50, 100);
	outcome_of(&point, PAGECLEAR_COLD, chunked, false);
	free(point.costs);
	point.costs = NULL;
	point.rounds = 0;

	point.entrants[EXTRA] =
		(struct verify_entrant){.kind = VERIFY_KERNEL, .way = {.kernel = row(FIRST), .chunk = 65536}};
	point.entrant_count = ENTRANTS;
	for (unsigned i = 0; i < 8; i++) {
		struct verify_cost costs[ENTRANTS] = {[LIBC] = {.clear = 100},
		                                      [FIRST] = {.clear = 50},
		                                      [SECOND] = {.clear = 100},
		                                      [AGAIN] = {.clear = 100},
		                                      [EXTRA] = {.clear = 40}};

		CU_ASSERT_EQUAL_FATAL(verify_point_add(&point, i % 2, costs), 0);
	}
	out = outcome_of(&point, PAGECLEAR_COLD, chunked, true);
	CU_ASSERT_EQUAL(out.regret, 0);
	CU_ASSERT_DOUBLE_EQUAL(out.own, log(0.4), near);
	CU_ASSERT(out.chosen.kernel == row(FIRST) && out.chosen.chunk == 65536);
	CU_ASSERT_EQUAL(out.better.chunk, 65536);

	/* A chunk that holds the extent is no chunk. */
	point.bytes = 65536;
	out = outcome_of(&point, PAGECLEAR_COLD, chunked, true);
	CU_ASSERT_EQUAL(out.chosen.chunk, 0);
	CU_ASSERT_DOUBLE_EQUAL(out.own, log(0.5), near);
	CU_ASSERT_DOUBLE_EQUAL(out.regret, log(50.0 / 40), near);
	free(point.costs);
	pageclear_policy_close(chunked);
}

static void test_scrub_is_compared_by_differences(void)
{
	const struct pageclear_policy *first = policy_for(FIRST);
	struct verify_point point = point_of(VERIFY_SCRUB, 65536);
	struct verify_outcome out;

	for (unsigned i = 0; i < 8; i++) {
		struct verify_cost costs[ENTRANTS] = {[LIBC] = {1000, NAN, 300},
		                                      [FIRST] = {2000, NAN, 0},
		                                      [SECOND] = {2000, NAN, -40},
		                                      [AGAIN] = {1000, NAN, 310}};

		CU_ASSERT_EQUAL_FATAL(verify_point_add(&point, i % 2, costs), 0);
	}
	/* w C + max(0, D) of libc: 0.1 x 1000 + 300 = 400. Its S is 400, theirs 200 and 160. */
	out = outcome_of(&point, PAGECLEAR_SCRUB, first, true);
	CU_ASSERT_DOUBLE_EQUAL(out.own, -0.5, near);
	CU_ASSERT_DOUBLE_EQUAL(out.best, -0.6, near);
	CU_ASSERT_DOUBLE_EQUAL(out.regret, 0.1, near);
	CU_ASSERT_DOUBLE_EQUAL(out.floor, 0.025, near);
	free(point.costs);

	/* A displacement below nothing counts as nothing in the denominator alone. */
	point = point_of(VERIFY_SCRUB, 65536);
	for (unsigned i = 0; i < 8; i++) {
		struct verify_cost costs[ENTRANTS] = {[LIBC] = {1000, NAN, -50},
		                                      [FIRST] = {2000, NAN, -100},
		                                      [SECOND] = {2000, NAN, 0},
		                                      [AGAIN] = {1000, NAN, -50}};

		CU_ASSERT_EQUAL_FATAL(verify_point_add(&point, i % 2, costs), 0);
	}
	out = outcome_of(&point, PAGECLEAR_SCRUB, first, true);
	CU_ASSERT_DOUBLE_EQUAL(out.own, (100.0 - 50) / 100, near);
	free(point.costs);
	pageclear_policy_close(first);
}

/* --- reports ----------------------------------------------------------------------------------------------------- */

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
			[LIBC] = {120, 1, NAN},  [FIRST] = {40, 1, NAN},   [SECOND] = {200, 1, NAN},
			[AGAIN] = {120, 1, NAN}, [EXTRA] = {60, NAN, NAN}, [ENTRANTS] = {100, 1, NAN}};

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
		struct verify_cost costs[ENTRANTS] = {[LIBC] = {0, NAN, 100},
		                                      [FIRST] = {0, NAN, 95},
		                                      [SECOND] = {0, NAN, 107},
		                                      [AGAIN] = {0, NAN, 100}};

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
	{"the best is picked on one half and valued on the other",
         test_the_best_is_picked_on_one_half_and_valued_on_the_other},
	{"no regret where the choice is the best", test_no_regret_where_the_choice_is_the_best},
	{"regret may be negative", test_regret_may_be_negative},
	{"hot counts the first read", test_hot_counts_the_first_read},
	{"disturbed rounds", test_disturbed_rounds},
	{"floor is libc against itself", test_floor_is_libc_against_itself},
	{"a choice in chunks has samples of its own", test_a_choice_in_chunks_has_samples_of_its_own},
	{"scrub is compared by differences", test_scrub_is_compared_by_differences},
	{"a series adds up", test_a_series_adds_up},
	{"gains without a hint and over another library", test_gains_without_a_hint_and_over_another_library},
	{"what passes", test_what_passes},
	{"the floor is allowed for", test_the_floor_is_allowed_for},
	{"too little undisturbed", test_too_little_undisturbed},
	{"a point is full at last", test_a_point_is_full_at_last},
	{"what a policy names", test_what_a_policy_names},
	{"what is not measured", test_what_is_not_measured},
};

UNIT_MAIN("verify", tests)
