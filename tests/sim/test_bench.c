/*
 * Whole runs on simulated hosts: pairs, disturbances, errors, and the same again for the same seed (how long they take:
 * test_bench_time.c).
 */
#include "calibrd/bench.h"

#include <errno.h>

#include "tests/sim/bench_stand.h"
#include "tests/unit/harness.h"
#include "tests/unit/same_data.h"

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
