/*
 * Verifying simulated hosts, whose truth is known: a sound policy passes, a wrong one fails and the worst is named.
 */
#include <math.h>

#include "tests/sim/calibrate.h"
#include "tests/sim/truth.h"
#include "tests/sim/verify_host.h"

enum { SEEDS = 5 };

static const struct pageclear_policy *calibrated(uint64_t seed)
{
	struct calibrated calibration;
	const struct pageclear_policy *policy;

	CU_ASSERT_EQUAL_FATAL(calibrate(&calibration, &host, &sim_noise_guest, EFFORT_STANDARD, seed), 0);
	policy = policy_of(calibration.decision.tables, calibration.decision.table_count);
	calibration_free(&calibration);
	return policy;
}

static struct verify_report judged(const struct verify_data *data, const struct pageclear_policy *policy)
{
	struct verify_report report = {0};
	struct pc_why why = {""};

	CU_ASSERT_EQUAL(verify_judge(data, policy, VERIFY_TOLERANCE / 100.0, &report, &why), 0);
	return report;
}

static const struct verify_series *series_of(const struct verify_report *report, unsigned intent, enum pc_prior prior)
{
	for (size_t i = 0; i < report->count; i++)
		if (report->series[i].told.intent == intent && report->series[i].told.prior == prior)
			return &report->series[i];
	CU_FAIL_FATAL("no such series");
	return NULL;
}

static void print_report(const struct verify_report *report)
{
	for (size_t i = 0; i < report->count; i++) {
		const struct verify_series *s = &report->series[i];

		printf("\n  %s %s: mean %.3f p95 %.3f worst %.3f at %llu, %s for %s; floor %.3f %.3f; %s",
		       pc_intent_name(s->told.intent), pc_prior_name(s->told.prior), s->told.mean, s->told.p95,
		       s->told.worst, (unsigned long long)s->told.worst_bytes, pc_kernels[s->chosen.kernel].name,
		       pc_kernels[s->better.kernel].name, s->told.floor, s->told.floor_p95,
		       s->told.passed ? "passed" : "failed");
	}
	printf("\n");
}

static void test_what_was_calibrated_passes(void)
{
	if (!zen3())
		return;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		const struct pageclear_policy *policy = calibrated(seed);
		struct verify_config config = config_of(EFFORT_STANDARD, seed + 100, &policy, 1);
		struct verify_data data = measured(&config, &sim_noise_guest, NULL);
		struct verify_report report = judged(&data, policy);

		CU_ASSERT(report.passed);
		if (!report.passed)
			print_report(&report);
		/* Clearing flushed memory is what this host's own kernel gains most at. */
		CU_ASSERT(series_of(&report, PAGECLEAR_COLD, PC_FLUSHED)->told.gain > 1.5);
		verify_data_free(&data);
		pageclear_policy_close(policy);
	}
}

/* On this host avxnt costs seven times as much as libc where small memory is cached, and about the least where large
 * memory is not. */
static void test_a_wrong_policy_fails_and_is_named(void)
{
	const struct pageclear_policy *wrong[2];

	if (!zen3())
		return;
	wrong[0] = everywhere("avxnt", 1, 0);
	wrong[1] = everywhere("movnti", 1, 0);
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct verify_config config = config_of(EFFORT_QUICK, seed, wrong, 2);
		struct verify_data data = measured(&config, &sim_noise_guest, NULL);

		for (unsigned i = 0; i < 2; i++) {
			struct verify_report report = judged(&data, wrong[i]);
			const struct verify_series *cold = series_of(&report, PAGECLEAR_COLD, PC_CACHED);

			CU_ASSERT_FALSE(report.passed);
			CU_ASSERT_FALSE(cold->told.passed);
			CU_ASSERT_FALSE(series_of(&report, PAGECLEAR_HOT, PC_CACHED)->told.passed);
			CU_ASSERT(cold->told.mean > 1 && cold->told.worst > 4);
			CU_ASSERT(cold->told.worst_bytes < 128 << 10);
			CU_ASSERT_STRING_EQUAL(pc_kernels[cold->chosen.kernel].name, i == 0 ? "avxnt" : "movnti");
			CU_ASSERT_EQUAL(cold->better.kernel, 0);
			CU_ASSERT(cold->told.gain < 0.7 && cold->told.best_gain >= 0.95);
		}
		verify_data_free(&data);
	}
	pageclear_policy_close(wrong[0]);
	pageclear_policy_close(wrong[1]);
}

static void test_without_noise_figures_are_the_tables(void)
{
	const struct pageclear_policy *policy;
	struct verify_config config;
	struct verify_data data;
	unsigned clzero;

	if (!zen3())
		return;
	policy = everywhere("clzero", 32 << 10, 0);
	config = config_of(EFFORT_QUICK, 3, &policy, 1);
	data = measured(&config, &sim_noise_none, NULL);
	clzero = pc_kernel_index(pc_kernel_find("clzero"));
	for (size_t i = 0; i < data.count; i++) {
		const struct verify_point *point = &data.points[i];
		enum pc_prior prior = point->shape == VERIFY_CACHED ? PC_CACHED : PC_FLUSHED;
		unsigned kernel = point->bytes < 32 << 10 ? 0 : clzero;
		struct verify_outcome out;
		double libc = sim_clear_ns(&host, 0, prior, point->bytes),
		       own = sim_clear_ns(&host, kernel, prior, point->bytes);

		if (point->shape == VERIFY_SCRUB)
			continue;
		CU_ASSERT(verify_point_judge(point, PAGECLEAR_COLD, policy, &out));
		CU_ASSERT_EQUAL(out.floor, 0);
		CU_ASSERT_DOUBLE_EQUAL(out.own, log(own / libc), 1e-4);
		libc += sim_read_ns(&host, 0, prior, point->bytes);
		own += sim_read_ns(&host, kernel, prior, point->bytes);
		CU_ASSERT(verify_point_judge(point, PAGECLEAR_HOT, policy, &out));
		CU_ASSERT_DOUBLE_EQUAL(out.own, log(own / libc), 1e-4);
	}
	verify_data_free(&data);
	pageclear_policy_close(policy);
}

/* --- asked for in two ways --------------------------------------------------------------------------------------- */

/* As a guest was seen: from about 1.5 KiB up whole lines and non-temporal stores beat libc in a batch, alone only from
 * some 5 KiB up. */
static void make_ways_disagree(void)
{
	for (unsigned k = 0; k < pc_kernel_count; k++) {
		struct sim_curve *alone = &host.kernel[k].single_gb_per_s;

		if ((host.kernels >> k & 1) == 0)
			continue;
		alone->count = 0;
		sim_point(alone, 256, truth_goes_round(k) ? 3 : 5);
		sim_point(alone, 4096, truth_goes_round(k) ? 4 : 5);
		sim_point(alone, 16 << 10, truth_goes_round(k) ? 30 : 5);
	}
}

static void check_regrets(const struct verify_data *data, const struct pageclear_policy *policy)
{
	const struct truth truth = {.host = &host, .intent = PAGECLEAR_COLD, .prior = PC_FLUSHED, .threads = 1};

	for (size_t i = 0; i < data->count; i++) {
		const struct verify_point *point = &data->points[i];
		struct verify_outcome out;

		if (point->shape != VERIFY_FLUSHED)
			continue;
		CU_ASSERT(verify_point_judge(point, PAGECLEAR_COLD, policy, &out));
		CU_ASSERT_EQUAL(out.floor, 0);
		CU_ASSERT_DOUBLE_EQUAL(out.own, truth_l(&truth, out.chosen.kernel, point->bytes), 1e-4);
		CU_ASSERT_DOUBLE_EQUAL(out.regret, truth_regret(&truth, out.chosen.kernel, host.kernels, point->bytes),
		                       1e-4);
	}
}

/* Of sizes at which the ways disagree: what is best, and whether a policy pays for its choice. */
static unsigned check_small(const struct verify_data *data, const struct pageclear_policy *policy, bool pays)
{
	unsigned seen = 0;

	for (size_t i = 0; i < data->count; i++) {
		const struct verify_point *point = &data->points[i];
		struct verify_outcome out;

		if (point->shape != VERIFY_FLUSHED || point->bytes < 2048 || point->bytes > 4096)
			continue;
		CU_ASSERT(
			sim_clear_ns(&host, 0, PC_FLUSHED, point->bytes) >
			1.3 * sim_clear_ns(&host, pc_kernel_index(pc_kernel_find("clzero")), PC_FLUSHED, point->bytes));
		CU_ASSERT(verify_point_judge(point, PAGECLEAR_COLD, policy, &out));
		CU_ASSERT_FALSE(truth_goes_round(out.better.kernel));
		CU_ASSERT(pays ? out.regret > 0.15 : out.regret == 0);
		seen++;
	}
	return seen;
}

static void test_small_sizes_are_valued_as_they_are_decided(void)
{
	const struct pageclear_policy *policies[2];
	struct verify_config config;
	struct verify_data data;

	if (!zen3())
		return;
	make_ways_disagree();
	policies[0] = everywhere("clzero", 8 << 10, 0);
	policies[1] = everywhere("clzero", 1, 0);
	config = config_of(EFFORT_STANDARD, 1, policies, 2);
	data = measured(&config, &sim_noise_none, NULL);
	for (unsigned i = 0; i < 2; i++) {
		check_regrets(&data, policies[i]);
		CU_ASSERT(check_small(&data, policies[i], i == 1) > 0);
		pageclear_policy_close(policies[i]);
	}
	verify_data_free(&data);
}

static void test_what_is_decided_where_ways_disagree_passes(void)
{
	if (!zen3())
		return;
	make_ways_disagree();
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		const struct pageclear_policy *policy = calibrated(seed);
		struct verify_config config = config_of(EFFORT_STANDARD, seed + 200, &policy, 1);
		struct verify_data data = measured(&config, &sim_noise_guest, NULL);
		struct verify_report report = judged(&data, policy);

		CU_ASSERT(report.passed);
		if (!report.passed)
			print_report(&report);
		CU_ASSERT_EQUAL(verify_choice(policy, VERIFY_FLUSHED, 3000, PAGECLEAR_COLD).kernel, 0);
		CU_ASSERT(truth_goes_round(verify_choice(policy, VERIFY_FLUSHED, 14000, PAGECLEAR_COLD).kernel));
		verify_data_free(&data);
		pageclear_policy_close(policy);
	}
}

static const struct unit_test tests[] = {
	{"what was calibrated passes", test_what_was_calibrated_passes},
	{"a wrong policy fails and is named", test_a_wrong_policy_fails_and_is_named},
	{"without noise figures are the tables'", test_without_noise_figures_are_the_tables},
	{"small sizes are valued as they are decided", test_small_sizes_are_valued_as_they_are_decided},
	{"what is decided where ways disagree passes", test_what_is_decided_where_ways_disagree_passes},
};

UNIT_MAIN("verify-sim", tests)
