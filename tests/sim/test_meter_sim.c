/* The simulated meter keeps its promises: whoever tests with it may believe it. */
#include "tests/sim/meter_sim.h"

#include <errno.h>
#include <math.h>

#include "tests/sim/hosts.h"
#include "tests/unit/harness.h"

#define NEAR(actual, expected) CU_ASSERT_DOUBLE_EQUAL(actual, expected, 1e-9 * (expected))

static void test_curves_are_lines_in_log_log(void)
{
	struct sim_curve curve = {0};

	CU_ASSERT(isnan(sim_value(&curve, 4096)));
	sim_point(&curve, 1024, 4);
	CU_ASSERT_EQUAL(sim_value(&curve, 1), 4);
	CU_ASSERT_EQUAL(sim_value(&curve, 1 << 30), 4);
	sim_point(&curve, 4096, 1);
	CU_ASSERT_EQUAL(sim_value(&curve, 512), 4);
	NEAR(sim_value(&curve, 2048), 2);
	CU_ASSERT_EQUAL(sim_value(&curve, 8192), 1);
}

static void test_the_truth_of_a_host(void)
{
	struct sim_host host;
	unsigned round = pc_kernel_count;

	host_alike(&host);
	for (unsigned k = 0; k < pc_kernel_count; k++)
		if (pc_kernels[k].family == PC_NONTEMPORAL)
			round = k;
	NEAR(sim_clear_ns(&host, 0, PC_CACHED, 10000), 1000);
	host.read_gb_per_s[PC_CACHED] = 40;
	host.read_gb_per_s[PC_FLUSHED] = 10;
	/* What a clear left in the cache: all of it up to the cache's size, none from twice that on. */
	NEAR(sim_read_ns(&host, 0, PC_CACHED, 8 << 20), (8 << 20) / 40.0);
	NEAR(sim_read_ns(&host, 0, PC_CACHED, 16 << 20), (16 << 20) / 10.0);
	if (round < pc_kernel_count)
		NEAR(sim_read_ns(&host, round, PC_CACHED, 4096), 409.6);
	/* 65536 lines of 8 ns for 1 MiB of half the cache; more until that is gone. */
	NEAR(sim_displaced_ns(&host, 0, 2, 1 << 20), 65536 * 8);
	NEAR(sim_displaced_ns(&host, 0, 2, 1 << 19), 65536 * 4);
	NEAR(sim_displaced_ns(&host, 0, 2, 64 << 20), 65536 * 8 * 4);
	host.slower = 3;
	NEAR(sim_clear_ns(&host, 0, PC_CACHED, 10000), 3000);
}

static int sample(struct meter *meter, double *ns)
{
	struct meter_ask ask = {.kernel = &pc_kernels[0], .prior = PC_FLUSHED, .bytes = 65536};
	struct meter_sample out;
	int r = meter->ops->sample(meter, &ask, &out);

	*ns = out.ns;
	return r;
}

static void test_without_noise_it_tells_the_truth(void)
{
	struct sim_host host;
	struct meter *meter;
	uint64_t before;
	double ns;

	host_zen3(&host);
	CU_ASSERT_EQUAL_FATAL(meter_sim_new(&meter, &host, &sim_noise_none, 1), 0);
	CU_ASSERT_EQUAL_FATAL(
		meter->ops->epoch(meter, &(struct meter_room){.target_bytes = 1 << 20, .victim_bytes = 0}), 0);
	before = meter->ops->now_ns(meter);
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(sample(meter, &ns), 0);
		NEAR(ns, 65536 / 9.0);
	}
	/* 64 KiB dirtied, flushed and cleared three times. */
	CU_ASSERT(meter->ops->now_ns(meter) - before > 3 * 64 * (75 + 30) + 3 * 65536 / 9);
	meter_free(meter);
}

static void test_noise_has_the_spread_that_was_asked_for(void)
{
	static const struct sim_noise within = {.within = 0.1}, between = {.between = 0.1};
	struct sim_host host;

	host_zen3(&host);
	for (int epochs = 0; epochs < 2; epochs++) {
		double sum = 0, squares = 0, ns, last = 0;
		struct meter *meter;
		int same = 0;

		CU_ASSERT_EQUAL_FATAL(meter_sim_new(&meter, &host, epochs ? &between : &within, 5), 0);
		for (int i = 0; i < 4000; i++) {
			if (i == 0 || (epochs && i % 2 == 0))
				CU_ASSERT_EQUAL_FATAL(
					meter->ops->epoch(meter, &(struct meter_room){.target_bytes = 1 << 20,
				                                                      .victim_bytes = 0}),
					0);
			CU_ASSERT_EQUAL_FATAL(sample(meter, &ns), 0);
			ns = log(ns * 9 / 65536);
			sum += ns;
			squares += ns * ns;
			same += ns == last;
			last = ns;
		}
		CU_ASSERT_DOUBLE_EQUAL(sum / 4000, 0, 0.01);
		CU_ASSERT_DOUBLE_EQUAL(sqrt(squares / 4000), 0.1, 0.01);
		CU_ASSERT_EQUAL(same, epochs ? 2000 : 0); /* an epoch's noise stays as it is for the epoch */
		meter_free(meter);
	}
}

static void test_what_cannot_be_asked(void)
{
	struct meter_ask ask = {.kernel = &pc_kernels[0], .prior = PC_FLUSHED, .bytes = 65536};
	struct meter_sample out;
	struct sim_host host;
	struct meter *meter;
	double ns;

	host_zen3(&host);
	CU_ASSERT_EQUAL_FATAL(meter_sim_new(&meter, &host, &sim_noise_guest, 1), 0);
	CU_ASSERT_EQUAL(sample(meter, &ns), -EINVAL); /* no mappings yet */
	CU_ASSERT_EQUAL(meter->ops->epoch(meter, &(struct meter_room){.target_bytes = 65536, .victim_bytes = 4096}), 0);
	CU_ASSERT_EQUAL(sample(meter, &ns), 0);
	ask.kernel = NULL; /* a control without a victim */
	CU_ASSERT_EQUAL(meter->ops->sample(meter, &ask, &out), -EINVAL);
	ask.phase = PHASE_VICTIM_L1;
	ask.victim_bytes = 4096;
	CU_ASSERT_EQUAL(meter->ops->sample(meter, &ask, &out), 0);
	ask.victim_bytes = 8192;
	CU_ASSERT_EQUAL(meter->ops->sample(meter, &ask, &out), -EINVAL);
	CU_ASSERT_EQUAL(meter->ops->latency(meter, 65537, &ns), -EINVAL);
	host.kernels = 0;
	CU_ASSERT_EQUAL(sample(meter, &ns), -EINVAL);
	host.kernels = 1;
	meter_sim_fail(meter, 2, -EIO);
	CU_ASSERT_EQUAL(sample(meter, &ns), 0);
	CU_ASSERT_EQUAL(sample(meter, &ns), 0);
	CU_ASSERT_EQUAL(sample(meter, &ns), -EIO);
	CU_ASSERT_EQUAL(sample(meter, &ns), -EIO);
	meter_free(meter);
}

static const struct unit_test tests[] = {
	{"curves are lines in log-log", test_curves_are_lines_in_log_log},
	{"the truth of a host", test_the_truth_of_a_host},
	{"without noise it tells the truth", test_without_noise_it_tells_the_truth},
	{"noise has the spread that was asked for", test_noise_has_the_spread_that_was_asked_for},
	{"what cannot be asked", test_what_cannot_be_asked},
};

UNIT_MAIN("meter_sim", tests)
