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

/* --- threads, ways, knee ----------------------------------------------------------------------------------------- */

static struct meter_ask ask_of(unsigned threads, uint64_t bytes)
{
	return (struct meter_ask){
		.kernel = &pc_kernels[0], .prior = PC_FLUSHED, .bytes = bytes, .threads = threads, .read = true};
}

static void test_threads_have_curves_of_their_own(void)
{
	static const unsigned asked[] = {0, 1, 2, 4, 5, 8, 100};
	static const double gb_per_s[] = {10, 10, 5, 5, 2, 2, 2}; /* the fewest from there up, else the most */
	struct sim_host host;

	host_alike(&host);
	sim_point(&sim_crowd(&host, 8)->gb_per_s[0][PC_FLUSHED], 4096, 2);
	sim_point(&sim_crowd(&host, 4)->gb_per_s[0][PC_FLUSHED], 4096, 5);
	CU_ASSERT_EQUAL(host.crowds, 2);
	CU_ASSERT_EQUAL(host.crowd[0].threads, 4);
	for (size_t i = 0; i < sizeof(asked) / sizeof(asked[0]); i++) {
		struct meter_ask ask = ask_of(asked[i], 10000);

		NEAR(sim_ask_clear_ns(&host, &ask, 0), 10000 / gb_per_s[i]);
		ask.prior = PC_CACHED; /* no curve for several threads: as one */
		NEAR(sim_ask_clear_ns(&host, &ask, 0), 1000);
	}
	/* Two threads share the cache, so each finds half as much of what it cleared. */
	host.read_gb_per_s[PC_CACHED] = 40;
	host.read_gb_per_s[PC_FLUSHED] = 10;
	NEAR(sim_ask_read_ns(&host, &(struct meter_ask){.kernel = &pc_kernels[0], .bytes = 4 << 20, .threads = 2}, 0),
	     (4 << 20) / 40.0);
	NEAR(sim_ask_read_ns(&host, &(struct meter_ask){.kernel = &pc_kernels[0], .bytes = 8 << 20, .threads = 2}, 0),
	     (8 << 20) / 10.0);
	/* Both displace what they share, and each only its own. */
	NEAR(sim_ask_displaced_ns(&host, &(struct meter_ask){.kernel = &pc_kernels[0],
	                                                     .phase = PHASE_VICTIM_LLC,
	                                                     .bytes = 1 << 20,
	                                                     .threads = 2}),
	     2 * sim_displaced_ns(&host, 0, 2, 1 << 20));
	NEAR(sim_ask_displaced_ns(&host, &(struct meter_ask){.kernel = &pc_kernels[0],
	                                                     .phase = PHASE_VICTIM_L1,
	                                                     .bytes = 16384,
	                                                     .threads = 2}),
	     sim_displaced_ns(&host, 0, 0, 16384));
}

static void test_ways_over_an_extent(void)
{
	struct meter_ask ask = ask_of(1, 8 << 20);
	struct sim_host host;

	host_alike(&host);
	host.kernel[0].backward = 1.1;
	host.kernel[0].base_pages = 2;
	sim_point(&host.kernel[0].by_chunk, 4096, 3);
	sim_point(&host.kernel[0].by_chunk, 4 << 20, 6);
	ask.chunk = 4096;
	NEAR(sim_ask_clear_ns(&host, &ask, 0), 2 * (8 << 20) / 10.0);
	ask.backward = true;
	NEAR(sim_ask_clear_ns(&host, &ask, 0), 2 * 1.1 * (8 << 20) / 10.0);
	ask.chunk = 8 << 20; /* one chunk: no order, and nothing lost */
	NEAR(sim_ask_clear_ns(&host, &ask, 0), (8 << 20) / 10.0);
	ask.base_pages = true;
	NEAR(sim_ask_clear_ns(&host, &ask, 0), 2 * (8 << 20) / 10.0);
	ask = ask_of(1, 65536); /* on base pages anyway */
	ask.base_pages = true;
	NEAR(sim_ask_clear_ns(&host, &ask, 0), 65536 / 10.0);
}

/* Threads work and are made ready at the same time: the clock hardly tells eight from one. */
static void test_threads_take_no_longer_together(void)
{
	struct meter_room room = {.target_bytes = 1 << 20, .crew_bytes = 1 << 20};
	uint64_t took[2];
	struct sim_host host;
	struct meter *meter;

	host_alike(&host);
	host.cpus = 8;
	for (unsigned i = 0; i < 2; i++) {
		struct meter_ask ask = ask_of(i == 0 ? 1 : 8, 1 << 20);
		struct meter_sample out;

		CU_ASSERT_EQUAL_FATAL(meter_sim_new(&meter, &host, &sim_noise_none, 1), 0);
		CU_ASSERT_EQUAL_FATAL(meter->ops->epoch(meter, &room), 0);
		CU_ASSERT_EQUAL(meter_sim_mapped(meter), 8 << 20);
		CU_ASSERT_EQUAL(meter->ops->sample(meter, &ask, &out), 0);
		took[i] = meter->ops->now_ns(meter);
		ask.threads = 9;
		CU_ASSERT_EQUAL(meter->ops->sample(meter, &ask, &out), -EINVAL);
		meter_free(meter);
	}
	CU_ASSERT(took[1] > took[0]);
	CU_ASSERT((double)took[1] < 1.1 * (double)took[0]);
}

static void test_threads_are_noisier(void)
{
	static const struct sim_noise noise = {.within = 0.1, .crowd = 1};
	struct meter_room room = {.target_bytes = 65536, .crew_bytes = 65536};
	struct meter_ask ask = ask_of(4, 65536);
	struct meter_sample out;
	struct sim_host host;
	struct meter *meter;
	double squares = 0;

	host_alike(&host);
	CU_ASSERT_EQUAL_FATAL(meter_sim_new(&meter, &host, &noise, 3), 0);
	CU_ASSERT_EQUAL_FATAL(meter->ops->epoch(meter, &room), 0);
	for (int i = 0; i < 4000; i++) {
		CU_ASSERT_EQUAL_FATAL(meter->ops->sample(meter, &ask, &out), 0);
		squares += log(out.ns / 6553.6) * log(out.ns / 6553.6);
	}
	CU_ASSERT_DOUBLE_EQUAL(sqrt(squares / 4000), 0.2, 0.02);
	meter_free(meter);
}

/* A cache that is half an octave larger makes 16 MiB behave like 11.3; what the private caches hold stays. */
static void test_the_knee_shifts_the_curves(void)
{
	struct meter_ask ask = ask_of(1, 16 << 20);
	struct sim_host host;

	host_zen3(&host);
	NEAR(sim_ask_clear_ns(&host, &ask, 0.5),
	     (16 << 20) / sim_value(&host.kernel[0].gb_per_s[PC_FLUSHED], (uint64_t)((16 << 20) / sqrt(2))));
	NEAR(sim_latency_ns(&host, 12 << 20, 1), 11);
	ask.bytes = 65536;
	NEAR(sim_ask_clear_ns(&host, &ask, 0.5), 65536 / 9.0);
	ask.bytes = 12 << 20;
	CU_ASSERT(sim_ask_read_ns(&host, &ask, 1) < sim_ask_read_ns(&host, &ask, 0));
	for (double octave = 12; octave < 28; octave += 0.1) /* ascending, however far it is shifted */
		for (double by = -1.5; by <= 1.5; by += 3)
			CU_ASSERT(sim_latency_ns(&host, (uint64_t)exp2(octave), by) <=
			          sim_latency_ns(&host, (uint64_t)exp2(octave + 0.1), by));
}

/* Between epochs it walks by as much as was asked for, and within one by less. */
static void test_the_knee_walks(void)
{
	static const struct sim_noise noise = {.knee = 0.3};
	struct meter_room room = {.target_bytes = 16 << 20};
	struct meter_ask ask = ask_of(1, 16 << 20);
	double sum = 0, squares = 0, within = 0;
	struct meter_sample out;
	struct sim_host host;
	struct meter *meter;

	host_alike(&host);
	host.kernel[0].gb_per_s[PC_FLUSHED].count = 0; /* a speed that is the size: time tells the shift alone */
	sim_point(&host.kernel[0].gb_per_s[PC_FLUSHED], 1 << 10, 1);
	sim_point(&host.kernel[0].gb_per_s[PC_FLUSHED], 1 << 30, 1 << 20);
	CU_ASSERT_EQUAL_FATAL(meter_sim_new(&meter, &host, &noise, 8), 0);
	for (int i = 0; i < 2000; i++) {
		double octaves[2];

		CU_ASSERT_EQUAL_FATAL(meter->ops->epoch(meter, &room), 0);
		for (int j = 0; j < 2; j++) {
			CU_ASSERT_EQUAL_FATAL(meter->ops->round_begin(meter, 0), 0);
			CU_ASSERT_EQUAL_FATAL(meter->ops->sample(meter, &ask, &out), 0);
			CU_ASSERT_FALSE(meter->ops->round_end(meter));
			octaves[j] = log2(out.ns / 1024);
		}
		sum += octaves[0];
		squares += octaves[0] * octaves[0];
		within += fabs(octaves[1] - octaves[0]);
	}
	/* Two thousand epochs of so few samples are but seconds: what walks within an epoch is one value here. */
	CU_ASSERT_DOUBLE_EQUAL(sum / 2000, 0, 0.3);
	CU_ASSERT_DOUBLE_EQUAL(sqrt(squares / 2000 - sum * sum / 2000 / 2000), 0.3, 0.03);
	CU_ASSERT(within / 2000 > 0 && within / 2000 < 0.03);
	meter_free(meter);
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
	ask = (struct meter_ask){.kernel = &pc_kernels[0], .prior = PC_FLUSHED, .bytes = 65536, .threads = 2};
	CU_ASSERT_EQUAL(meter->ops->sample(meter, &ask, &out), -EINVAL); /* no room for the others */
	CU_ASSERT_EQUAL(meter->ops->epoch(meter, &(struct meter_room){.target_bytes = 4 << 20, .crew_bytes = 65536}),
	                0);
	CU_ASSERT_EQUAL(meter->ops->sample(meter, &ask, &out), 0);
	ask.phase = PHASE_SINGLE;
	CU_ASSERT_EQUAL(meter->ops->sample(meter, &ask, &out), -EINVAL);
	ask = (struct meter_ask){.kernel = &pc_kernels[0], .prior = PC_FLUSHED, .bytes = 65536, .base_pages = true};
	CU_ASSERT_EQUAL(meter->ops->sample(meter, &ask, &out), 0); /* small ones always fit */
	ask.bytes = 4 << 20;
	CU_ASSERT_EQUAL(meter->ops->sample(meter, &ask, &out), -EINVAL);
	CU_ASSERT_EQUAL(meter->ops->epoch(meter, &(struct meter_room){.target_bytes = 4 << 20, .base_bytes = 4 << 20}),
	                0);
	CU_ASSERT_EQUAL(meter->ops->sample(meter, &ask, &out), 0);
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
	{"threads have curves of their own", test_threads_have_curves_of_their_own},
	{"ways over an extent", test_ways_over_an_extent},
	{"threads take no longer together", test_threads_take_no_longer_together},
	{"threads are noisier", test_threads_are_noisier},
	{"the knee shifts the curves", test_the_knee_shifts_the_curves},
	{"the knee walks", test_the_knee_walks},
	{"what cannot be asked", test_what_cannot_be_asked},
};

UNIT_MAIN("meter_sim", tests)
