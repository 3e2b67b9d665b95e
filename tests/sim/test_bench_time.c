/* Whole runs on simulated hosts: how long they take, and that every epoch speaks of every size. */
#include "calibrd/bench.h"

#include <stdio.h>

#include "tests/sim/bench_stand.h"
#include "tests/unit/harness.h"

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

static const struct unit_test tests[] = {
	{"the budget is kept", test_the_budget_is_kept},
	{"the budget is kept by many CPUs", test_the_budget_is_kept_by_many_cpus},
	{"an easy host is done early", test_an_easy_host_is_done_early},
	{"every epoch speaks of every size", test_every_epoch_speaks_of_every_size},
};

UNIT_MAIN("bench_time", tests)
