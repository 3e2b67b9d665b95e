/* Whole runs on simulated hosts: time, pairs, disturbances, errors, and the same again for the same seed. */
#include "calibrd/bench.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "calibrd/stats.h"
#include "tests/sim/hosts.h"
#include "tests/unit/harness.h"
#include "tests/unit/same_data.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

/* Listens to a run, and may end it. */
struct listener {
	size_t samples, tainted, probes[PC_PRIORS], progress;
	size_t knees;
	double knee[16];
	double slow[PC_PRIORS]; /* sums of the probes' looks */
	double share;
	bool backwards;
	size_t stop_after; /* samples; 0: never */
	volatile sig_atomic_t stop;
	size_t after_stop;
	int sample_error, knee_error, probe_error, progress_error;
};

static int on_sample(void *context, const struct series_key *key, const struct round_value *value, bool tainted)
{
	struct listener *listener = context;

	(void)key;
	(void)value;
	listener->samples++;
	listener->tainted += tainted;
	listener->after_stop += listener->stop != 0;
	if (listener->samples == listener->stop_after)
		listener->stop = 1;
	return listener->sample_error;
}

static int on_knee(void *context, unsigned epoch, uint64_t bytes)
{
	struct listener *listener = context;

	CU_ASSERT_EQUAL(epoch, listener->knees);
	listener->knee[listener->knees++] = (double)bytes;
	return listener->knee_error;
}

static int on_probe(void *context, const struct bench_probe *probe)
{
	struct listener *listener = context;

	CU_ASSERT(probe->bytes >= 16 * KIB && probe->bytes <= 16 * MIB);
	CU_ASSERT(probe->whole_ns > 0);
	listener->probes[probe->prior]++;
	for (int i = 0; i < PC_PROBE_LOOKS; i++)
		listener->slow[probe->prior] += probe->looks[i] / PC_PROBE_LOOKS;
	return listener->probe_error;
}

static int on_progress(void *context, unsigned epoch, unsigned epochs, double share)
{
	struct listener *listener = context;

	CU_ASSERT(epoch < epochs && share >= 0 && share <= 1);
	listener->backwards |= share < listener->share;
	listener->share = share;
	listener->progress++;
	return listener->progress_error;
}

struct outcome {
	int r;
	double seconds;
	struct dataset data;
	struct listener listener;
};

struct setting {
	const struct sim_host *host;
	const struct sim_noise *noise;
	enum effort effort;
	uint64_t seed, memory_bytes;
	int meter_error;
};

static struct outcome *run(const struct setting *setting, struct listener listener)
{
	static struct outcome outcome;
	struct bench_config config = {
		.effort = setting->effort,
		.kernels = setting->host->kernels,
		.memory_bytes = setting->memory_bytes > 0 ? setting->memory_bytes : 2048 * MIB,
		.l1_bytes = setting->host->l1_bytes,
		.l2_bytes = setting->host->l2_bytes,
		.llc_bytes = setting->host->llc_bytes,
		.threads = setting->host->crowds > 0 ? setting->host->cpus : 0,
		.scrub_weight = 0.1,
		.seed = setting->seed,
		.stop = &outcome.listener.stop,
	};
	struct bench_sink sink = {.context = &outcome.listener,
	                          .sample = on_sample,
	                          .knee = on_knee,
	                          .probe = on_probe,
	                          .progress = on_progress};
	struct meter *meter;

	outcome = (struct outcome){.listener = listener};
	CU_ASSERT_EQUAL_FATAL(meter_sim_new(&meter, setting->host, setting->noise, setting->seed), 0);
	if (setting->meter_error != 0)
		meter_sim_fail(meter, 500, setting->meter_error);
	outcome.r = bench_run(meter, &config, &outcome.data, &sink);
	outcome.seconds = (double)meter->ops->now_ns(meter) / 1e9;
	meter_free(meter);
	return &outcome;
}

static struct sim_host zen3;

static struct setting quick(void)
{
	host_zen3(&zen3);
	return (struct setting){.host = &zen3, .noise = &sim_noise_guest, .effort = EFFORT_QUICK, .seed = 1};
}

/* --- time -------------------------------------------------------------------------------------------------------- */

/* However fast the host: at most a fifth more than the effort says, and not idle either where there is enough to do. */
static void test_the_budget_is_kept(void)
{
	static const double slower[] = {0.2, 1, 3, 10, 30, 100};
	struct setting setting = quick();

	for (setting.effort = EFFORT_QUICK; setting.effort <= EFFORT_STANDARD; setting.effort++)
		for (size_t i = 0; i < sizeof(slower) / sizeof(slower[0]); i++) {
			double budget = effort_limits[setting.effort].seconds;
			struct outcome *outcome;

			zen3.slower = slower[i];
			outcome = run(&setting, (struct listener){0});
			CU_ASSERT_EQUAL(outcome->r, 0);
			CU_ASSERT(outcome->seconds <= 1.2 * budget);
			CU_ASSERT(outcome->seconds >= 0.8 * budget || slower[i] < 1);
			/* A hundred times slower, ten seconds are gone before the first round. */
			CU_ASSERT(outcome->data.count > 0 || slower[i] > 30);
			CU_ASSERT_FALSE(outcome->listener.backwards);
			CU_ASSERT(outcome->listener.share > 0.75 || slower[i] < 1);
			if (outcome->seconds > 1.2 * budget)
				printf("\n  %s, %g times slower: %.1f s, %zu series\n",
				       effort_limits[setting.effort].name, slower[i], outcome->seconds,
				       outcome->data.count);
			dataset_clear(&outcome->data);
		}
}

static bool has_threads(const struct dataset *data, unsigned threads)
{
	for (size_t i = 0; i < data->count; i++)
		if (data->series[i].key.threads == threads && data->series[i].count >= 6)
			return true;
	return false;
}

/* As each effort says on hosts with 1, 8 and 128 CPUs, as fast as a guest and twenty times slower. */
static void test_the_budget_is_kept_by_many_cpus(void)
{
	static const unsigned cpus[] = {1, 8, 128};
	struct setting setting = quick();

	setting.memory_bytes = (uint64_t)64 << 30;
	for (setting.effort = EFFORT_QUICK; setting.effort < EFFORTS; setting.effort++)
		for (size_t i = 0; i < 6; i++) {
			double budget = effort_limits[setting.effort].seconds;
			struct outcome *outcome;

			host_zen3(&zen3);
			zen3.cpus = cpus[i % 3];
			zen3.slower = i < 3 ? 1 : 20;
			if (zen3.cpus > 1)
				sim_crowd(&zen3, zen3.cpus);
			outcome = run(&setting, (struct listener){0});
			CU_ASSERT_EQUAL(outcome->r, 0);
			CU_ASSERT(outcome->seconds <= 1.2 * budget);
			if (outcome->seconds > 1.2 * budget)
				printf("\n  %s, %u CPUs, %g times slower: %.1f s\n", effort_limits[setting.effort].name,
				       zen3.cpus, zen3.slower, outcome->seconds);
			CU_ASSERT(has_threads(&outcome->data, zen3.cpus) || zen3.slower > 1 ||
			          setting.effort == EFFORT_QUICK);
			dataset_clear(&outcome->data);
		}
}

/* Kernels that differ by half and more everywhere, and next to no noise: nothing is open after a few epochs. A guest's
 * noise leaves enough to do. */
static void test_an_easy_host_is_done_early(void)
{
	static const struct sim_noise little = {.within = 0.01, .round = 0.01, .victim = 0.002};
	struct setting setting = quick();
	struct outcome *outcome;

	for (unsigned k = 1; k < pc_kernel_count; k++)
		for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED; prior++) {
			struct sim_curve *curve = &zen3.kernel[k].gb_per_s[prior];

			curve->count = 0;
			sim_point(curve, 4096, k == pc_kernel_count - 1 ? 60 : 10.0 / k);
		}
	for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED; prior++) {
		zen3.kernel[0].gb_per_s[prior].count = 0;
		sim_point(&zen3.kernel[0].gb_per_s[prior], 4096, 20);
	}
	for (setting.effort = EFFORT_STANDARD; setting.effort < EFFORTS; setting.effort++) {
		double budget = effort_limits[setting.effort].seconds;

		setting.noise = &little;
		outcome = run(&setting, (struct listener){0});
		CU_ASSERT_EQUAL(outcome->r, 0);
		CU_ASSERT(outcome->seconds < 0.85 * budget);
		printf("\n  %s: an easy host takes %.1f s of %.0f", effort_limits[setting.effort].name,
		       outcome->seconds, budget);
		dataset_clear(&outcome->data);
	}
}

/* Which epochs a series has rounds of. */
static unsigned epochs_of(const struct series *series)
{
	unsigned seen = 0;

	for (size_t i = 0; i < series->count; i++)
		seen |= 1u << series->rounds[i].epoch;
	return (unsigned)__builtin_popcount(seen);
}

/* On the grid from the first epoch on: two sizes an octave, one thread, no way over the extent but the usual one. */
static bool is_grid(const struct series_key *key)
{
	uint64_t odd = key->bytes >> __builtin_ctzll(key->bytes);

	return key->threads == 1 && key->chunk == 0 && (odd == 1 || odd == 3);
}

static void test_every_epoch_speaks_of_every_size(void)
{
	struct setting setting = quick();
	struct outcome *outcome;
	size_t sizes = 0;

	setting.effort = EFFORT_STANDARD;
	setting.noise = &sim_noise_none;
	outcome = run(&setting, (struct listener){0});
	CU_ASSERT_EQUAL(outcome->r, 0);
	for (size_t i = 0; i < outcome->data.count; i++) {
		const struct series *series = &outcome->data.series[i];

		if (series->key.kernel != 0 || !is_grid(&series->key))
			continue;
		sizes += series->key.phase == PHASE_CLEAR && series->key.prior == PC_FLUSHED;
		CU_ASSERT_EQUAL(epochs_of(series), outcome->listener.knees);
	}
	CU_ASSERT(outcome->listener.knees >= 3); /* an easy host may be done before its five */
	CU_ASSERT(sizes >= 35);
	dataset_clear(&outcome->data);
}

/* --- pairs ------------------------------------------------------------------------------------------------------- */

/* Every round of a kernel has its round of libc, unless that very sample was disturbed. */
static size_t unpaired(const struct dataset *data)
{
	size_t count = 0;

	for (size_t i = 0; i < data->count; i++) {
		const struct series *series = &data->series[i], *libc;
		struct series_key key = series->key;
		size_t j = 0;

		key.kernel = 0;
		if (key.chunk != 0) { /* a spot check: libc is there on base pages at least */
			key.chunk = key.bytes;
			key.page = PAGE_BASE;
			key.backward = 0;
		}
		libc = dataset_find(data, &key);
		CU_ASSERT_PTR_NOT_NULL_FATAL(libc);
		for (size_t k = 0; k < series->count; k++) {
			while (j < libc->count && (libc->rounds[j].epoch < series->rounds[k].epoch ||
			                           (libc->rounds[j].epoch == series->rounds[k].epoch &&
			                            libc->rounds[j].round < series->rounds[k].round)))
				j++;
			count += j == libc->count || libc->rounds[j].epoch != series->rounds[k].epoch ||
			         libc->rounds[j].round != series->rounds[k].round;
		}
	}
	return count;
}

static size_t counted(const struct dataset *data, bool tainted)
{
	size_t count = 0;

	for (size_t i = 0; i < data->count; i++)
		count += tainted ? data->series[i].tainted : data->series[i].count;
	return count;
}

static void test_rounds_are_pairs(void)
{
	static const struct sim_noise rounds_only = {.within = 0.1, .steal = 0.2};
	struct setting setting = quick();
	struct outcome *outcome;

	setting.noise = &rounds_only;
	outcome = run(&setting, (struct listener){0});
	CU_ASSERT_EQUAL(outcome->r, 0);
	CU_ASSERT_EQUAL(unpaired(&outcome->data), 0);
	dataset_clear(&outcome->data);
}

/* Without other noise, every sample that was kept is the truth: none of the lengthened ones is among them, nor a victim
 * that was compared with a lengthened control. */
static void expect_truth(const struct series *series)
{
	const struct series_key *key = &series->key;
	double truth;

	if (key->phase == PHASE_CLEAR)
		truth = sim_clear_ns(&zen3, key->kernel, key->prior, key->bytes);
	else if (key->phase >= PHASE_VICTIM_L1)
		truth = sim_displaced_ns(&zen3, key->kernel, key->phase - PHASE_VICTIM_L1, key->bytes);
	else
		return;
	for (size_t i = 0; i < series->count; i++)
		CU_ASSERT_DOUBLE_EQUAL((double)series->rounds[i].ns, truth, 1e-3 * truth + 2);
}

static void test_tainted_rounds_are_counted_not_used(void)
{
	static const struct sim_noise steal = {.steal = 0.3}, switches = {.switches = 0.1};
	struct setting setting = quick();

	for (int i = 0; i < 2; i++) {
		struct outcome *outcome;
		double share;

		setting.noise = i == 0 ? &steal : &switches;
		outcome = run(&setting, (struct listener){0});
		CU_ASSERT_EQUAL(outcome->r, 0);
		CU_ASSERT_EQUAL(counted(&outcome->data, true), outcome->listener.tainted);
		CU_ASSERT_EQUAL(counted(&outcome->data, false), outcome->listener.samples - outcome->listener.tainted);
		share = (double)outcome->listener.tainted / (double)outcome->listener.samples;
		CU_ASSERT_DOUBLE_EQUAL(share, i == 0 ? 0.3 : 0.1, 0.05);
		for (size_t s = 0; s < outcome->data.count; s++)
			expect_truth(&outcome->data.series[s]);
		dataset_clear(&outcome->data);
	}
}

/* --- knee and probe ---------------------------------------------------------------------------------------------- */

static void test_knee_and_probe_are_told(void)
{
	struct setting setting = quick();
	struct outcome *outcome;

	outcome = run(&setting, (struct listener){0});
	CU_ASSERT_EQUAL(outcome->r, 0);
	CU_ASSERT_EQUAL(outcome->listener.knees, 3);
	for (size_t i = 0; i < 3; i++)
		CU_ASSERT(outcome->listener.knee[i] >= 6 * MIB && outcome->listener.knee[i] <= 12 * MIB);
	CU_ASSERT(outcome->listener.probes[PC_CACHED] > 100);
	CU_ASSERT(outcome->listener.probes[PC_FLUSHED] > 100);
	CU_ASSERT_EQUAL(outcome->listener.probes[PC_UNKNOWN], 0);
	CU_ASSERT(outcome->listener.slow[PC_FLUSHED] / (double)outcome->listener.probes[PC_FLUSHED] > 100);
	CU_ASSERT(outcome->listener.slow[PC_CACHED] / (double)outcome->listener.probes[PC_CACHED] < 20);
	dataset_clear(&outcome->data);
}

/* Reports of caches are hints: none, or absurd ones, are no reason to fail. */
static void test_strange_reports(void)
{
	struct setting setting = quick();
	const uint64_t llc_bytes = zen3.llc_bytes;

	for (uint64_t reported = 0; reported <= (uint64_t)1 << 40; reported += (uint64_t)1 << 38) {
		struct sim_host strange = zen3;
		struct outcome *outcome;

		strange.l1_bytes = strange.l2_bytes = 0;
		strange.llc_bytes = reported > 0 ? reported : llc_bytes;
		setting.host = &strange;
		outcome = run(&setting, (struct listener){0});
		CU_ASSERT_EQUAL(outcome->r, 0);
		CU_ASSERT(outcome->data.count > 0);
		dataset_clear(&outcome->data);
	}
}

/* --- little to work with ----------------------------------------------------------------------------------------- */

static void test_little_memory(void)
{
	static const uint64_t memory[] = {1, 64 * KIB, MIB, 3 * MIB, 8 * MIB, 24 * MIB, 100 * MIB};
	struct setting setting = quick();

	for (size_t i = 0; i < sizeof(memory) / sizeof(memory[0]); i++) {
		struct outcome *outcome;

		setting.memory_bytes = memory[i];
		outcome = run(&setting, (struct listener){0});
		CU_ASSERT_EQUAL(outcome->r, 0);
		for (size_t s = 0; s < outcome->data.count; s++)
			CU_ASSERT(outcome->data.series[s].key.bytes <= memory[i] / 2);
		CU_ASSERT((outcome->data.count > 0) == (memory[i] >= MIB || memory[i] == 64 * KIB));
		dataset_clear(&outcome->data);
	}
}

static void test_libc_alone(void)
{
	struct setting setting = quick();
	struct outcome *outcome;

	zen3.kernels = 1;
	outcome = run(&setting, (struct listener){0});
	CU_ASSERT_EQUAL(outcome->r, 0);
	CU_ASSERT(outcome->data.count > 0);
	for (size_t i = 0; i < outcome->data.count; i++)
		CU_ASSERT_EQUAL(outcome->data.series[i].key.kernel, 0);
	dataset_clear(&outcome->data);
}

/* --- ends -------------------------------------------------------------------------------------------------------- */

static void test_stop_ends_it_within_a_round(void)
{
	static const size_t after[] = {1, 1000, 5000};
	struct setting setting = quick();

	for (size_t i = 0; i < 3; i++) {
		struct outcome *outcome = run(&setting, (struct listener){.stop_after = after[i]});

		CU_ASSERT_EQUAL(outcome->r, -ECANCELED);
		CU_ASSERT(outcome->listener.after_stop <= 2 * PC_KERNEL_MAX);
		CU_ASSERT_EQUAL(counted(&outcome->data, false) + counted(&outcome->data, true),
		                outcome->listener.samples);
		dataset_clear(&outcome->data);
	}
}

static void test_stop_ends_it_before_the_first_round(void)
{
	struct setting setting = quick();
	struct outcome *outcome = run(&setting, (struct listener){.stop = 1});

	CU_ASSERT_EQUAL(outcome->r, -ECANCELED);
	CU_ASSERT_EQUAL(outcome->listener.samples, 0);
	CU_ASSERT(outcome->seconds < 1);
	dataset_clear(&outcome->data);
}

static void test_errors_are_passed_up(void)
{
	static const struct listener listeners[] = {
		{.sample_error = -EPIPE}, {.knee_error = -EPIPE}, {.probe_error = -EPIPE}, {.progress_error = -EPIPE}};
	struct setting setting = quick();
	struct outcome *outcome;

	for (size_t i = 0; i < sizeof(listeners) / sizeof(listeners[0]); i++) {
		outcome = run(&setting, listeners[i]);
		CU_ASSERT_EQUAL(outcome->r, -EPIPE);
		CU_ASSERT(outcome->listener.samples <= 1);
		dataset_clear(&outcome->data);
	}
	setting.meter_error = -EIO;
	outcome = run(&setting, (struct listener){0});
	CU_ASSERT_EQUAL(outcome->r, -EIO);
	CU_ASSERT(counted(&outcome->data, false) > 0);
	dataset_clear(&outcome->data);
}

static void test_the_same_seed_gives_the_same_run(void)
{
	struct setting setting = quick();
	struct dataset first = run(&setting, (struct listener){0})->data;
	struct outcome *second = run(&setting, (struct listener){0});

	CU_ASSERT_TRUE(dataset_same(&first, &second->data));
	dataset_clear(&second->data);
	setting.seed = 2;
	second = run(&setting, (struct listener){0});
	CU_ASSERT_FALSE(dataset_same(&first, &second->data));
	dataset_clear(&second->data);
	dataset_clear(&first);
}

static const struct unit_test tests[] = {
	{"the budget is kept", test_the_budget_is_kept},
	{"the budget is kept by many CPUs", test_the_budget_is_kept_by_many_cpus},
	{"an easy host is done early", test_an_easy_host_is_done_early},
	{"every epoch speaks of every size", test_every_epoch_speaks_of_every_size},
	{"rounds are pairs", test_rounds_are_pairs},
	{"tainted rounds are counted, not used", test_tainted_rounds_are_counted_not_used},
	{"knee and probe are told", test_knee_and_probe_are_told},
	{"strange reports", test_strange_reports},
	{"little memory", test_little_memory},
	{"libc alone", test_libc_alone},
	{"stop ends it within a round", test_stop_ends_it_within_a_round},
	{"stop ends it before the first round", test_stop_ends_it_before_the_first_round},
	{"errors are passed up", test_errors_are_passed_up},
	{"the same seed gives the same run", test_the_same_seed_gives_the_same_run},
};

UNIT_MAIN("bench", tests)
