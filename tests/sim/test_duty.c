/*
 * Calibrating and verifying simulated hosts for a share of the time only: budgets are of busy time, the clock on the
 * wall shows the rest of it, and what is measured is what would have been measured without a rest.
 */
#include "calibrd/rest.h"

#include <math.h>
#include <string.h>

#include "calibrd/bench.h"
#include "calibrd/verify.h"
#include "libpolicy/policy.h"
#include "tests/sim/hosts.h"
#include "tests/unit/harness.h"
#include "tests/unit/same_data.h"

#define MIB ((uint64_t)1 << 20)

static const unsigned duties[] = {10, 30, 75};

enum { DUTIES = 3 };

static struct sim_host host;
static struct sim_noise noise;

/* A guest that drifts with the hour would be another one after a rest. */
static void prepare(double slower)
{
	host_zen3(&host);
	host.slower = slower;
	noise = sim_noise_guest;
	noise.drift = 0;
}

/* What the run's own clock says, and the one on the wall. */
struct times {
	double busy, wall;
};

static struct times calibrate_with(unsigned duty_percent, enum effort effort, struct dataset *data)
{
	struct bench_config config = {.effort = effort,
	                              .kernels = host.kernels,
	                              .memory_bytes = 1024 * MIB,
	                              .scrub_weight = 0.1,
	                              .llc_bytes = host.llc_bytes,
	                              .seed = 1};
	struct meter *sim, *meter;
	struct pc_why why;
	struct times times;

	*data = (struct dataset){0};
	CU_ASSERT_EQUAL_FATAL(meter_sim_new(&sim, &host, &noise, 1), 0);
	CU_ASSERT_EQUAL_FATAL(rest_new(&meter, sim, duty_percent, &why), 0);
	CU_ASSERT_EQUAL(bench_run(meter, &config, data, NULL), 0);
	times = (struct times){(double)meter->ops->now_ns(meter) / 1e9, (double)sim->ops->now_ns(sim) / 1e9};
	meter_free(meter);
	return times;
}

static void expect_times(const struct times *times, unsigned duty_percent, double budget)
{
	double period = REST_PERIOD_MS / 1000.0;

	CU_ASSERT(times->busy <= 1.2 * budget);
	CU_ASSERT(times->busy >= 0.8 * budget);
	/* It may end just before a rest, and each rest is rounded up. */
	CU_ASSERT(times->wall <= rest_wall_seconds(times->busy, duty_percent) * 1.001);
	CU_ASSERT(times->wall >= rest_wall_seconds(times->busy, duty_percent) - 2 * period);
}

static void test_budgets_are_of_busy_time(void)
{
	static const double slower[] = {1, 10};

	for (enum effort effort = EFFORT_QUICK; effort <= EFFORT_STANDARD; effort++)
		for (size_t i = 0; i < 2 * DUTIES; i++) {
			unsigned duty_percent = duties[i % DUTIES];
			struct dataset data;
			struct times times;

			prepare(slower[i / DUTIES]);
			times = calibrate_with(duty_percent, effort, &data);
			expect_times(&times, duty_percent, effort_limits[effort].seconds);
			dataset_clear(&data);
		}
}

/* Who plans cannot tell that there were rests: to the bit. */
static void test_the_same_is_measured(void)
{
	struct dataset whole;

	prepare(1);
	calibrate_with(100, EFFORT_QUICK, &whole);
	for (size_t i = 0; i < DUTIES; i++) {
		struct dataset data;

		calibrate_with(duties[i], EFFORT_QUICK, &data);
		CU_ASSERT_TRUE(dataset_same(&whole, &data));
		dataset_clear(&data);
	}
	dataset_clear(&whole);
}

/* --- verifications ----------------------------------------------------------------------------------------------- */

static struct times verify_with(unsigned duty_percent, const struct pageclear_policy *policy, struct verify_report *out)
{
	struct verify_config config = {.effort = EFFORT_QUICK,
	                               .kernels = host.kernels,
	                               .memory_bytes = 1024 * MIB,
	                               .knee_bytes = host.llc_bytes,
	                               .seed = 1,
	                               .policies = &policy,
	                               .policy_count = 1};
	struct verify_data data = {0};
	struct meter *sim, *meter;
	struct pc_why why;
	struct times times;

	CU_ASSERT_EQUAL_FATAL(meter_sim_new(&sim, &host, &noise, 1), 0);
	CU_ASSERT_EQUAL_FATAL(rest_new(&meter, sim, duty_percent, &why), 0);
	CU_ASSERT_EQUAL_FATAL(verify_measure(meter, &config, &data, &why), 0);
	times = (struct times){(double)meter->ops->now_ns(meter) / 1e9, (double)sim->ops->now_ns(sim) / 1e9};
	CU_ASSERT_EQUAL(verify_judge(&data, policy, 0.02, out, &why), 0);
	verify_data_free(&data);
	meter_free(meter);
	return times;
}

static void test_verifications(void)
{
	const struct pageclear_policy *policy;
	struct verify_report whole, report;

	prepare(1);
	CU_ASSERT_EQUAL_FATAL(pageclear_policy_builtin(&policy), 0);
	verify_with(100, policy, &whole);
	for (size_t i = 0; i < DUTIES; i++) {
		struct times times = verify_with(duties[i], policy, &report);

		expect_times(&times, duties[i], verify_seconds(EFFORT_QUICK));
		CU_ASSERT_EQUAL(report.passed, whole.passed);
		for (size_t s = 0; s < VERIFY_SERIES; s++) {
			CU_ASSERT_EQUAL(report.series[s].told.mean, whole.series[s].told.mean);
			CU_ASSERT_EQUAL(report.series[s].told.gain, whole.series[s].told.gain);
		}
	}
	pageclear_policy_close(policy);
}

static const struct unit_test tests[] = {
	{"budgets are of busy time", test_budgets_are_of_busy_time},
	{"the same is measured", test_the_same_is_measured},
	{"verifications", test_verifications},
};

UNIT_MAIN("duty", tests)
