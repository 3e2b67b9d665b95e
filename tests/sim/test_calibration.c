/* Whole calibrations of hosts whose truth is known to the last nanosecond: what is chosen must cost next to nothing
 * more than the best, whatever the seed, and nothing must be chosen where there is nothing to find. */
#include "tests/sim/calibrate.h"

#include <math.h>
#include <string.h>

#include "pageclear/policy.h"
#include "tests/sim/hosts.h"
#include "tests/sim/zen3.h"
#include "tests/unit/harness.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

enum { SEEDS = 10 };

static struct sim_host host;

static bool goes_round(unsigned kernel)
{
	return pc_kernels[kernel].family == PC_NONTEMPORAL || pc_kernels[kernel].family == PC_LINE;
}

/* --- truth ------------------------------------------------------------------------------------------------------- */

static double true_ns(unsigned kernel, unsigned intent, enum pc_prior prior, uint64_t bytes)
{
	return sim_clear_ns(&host, kernel, prior, bytes) +
	       (intent == PAGECLEAR_HOT ? sim_read_ns(&host, kernel, prior, bytes) : 0);
}

static double least_ns(unsigned intent, enum pc_prior prior, uint64_t bytes)
{
	double least = INFINITY;

	for (unsigned k = 0; k < pc_kernel_count; k++)
		if ((host.kernels >> k & 1) != 0)
			least = fmin(least, true_ns(k, intent, prior, bytes));
	return least;
}

struct regret {
	double sum, worst, loss; /* in nats: over the best kernel; the largest over libc */
	unsigned count;
};

/* From 32 KiB (below, one question is asked in two ways) to 64 MiB, at sizes on the grid and off it. */
static void add_regret(struct regret *regret, const struct decision *decision, unsigned intent, enum pc_prior prior)
{
	for (double octave = 15; octave <= 26; octave += 0.25) {
		uint64_t bytes = (uint64_t)exp2(octave);
		double chosen = true_ns(calibrated_kernel(decision, intent, prior, bytes), intent, prior, bytes);
		double over = log(chosen / least_ns(intent, prior, bytes));

		regret->sum += over;
		regret->worst = fmax(regret->worst, over);
		regret->loss = fmax(regret->loss, log(chosen / true_ns(0, intent, prior, bytes)));
		regret->count++;
	}
}

/* --- tests ------------------------------------------------------------------------------------------------------- */

/* A choice may cost 3 % (not to be libc) and a crossover may lie a size off, where curves are close. */
static void test_what_is_chosen_costs_little_more_than_the_best(void)
{
	struct regret regret = {0};

	if (!zen3_here(&host))
		return;
	for (uint64_t seed = 1; seed <= calibrate_seeds(SEEDS); seed++) {
		struct calibrated calibration;

		CU_ASSERT_EQUAL_FATAL(calibrate(&calibration, &host, &sim_noise_guest, EFFORT_STANDARD, seed), 0);
		for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED; prior++) {
			add_regret(&regret, &calibration.decision, PAGECLEAR_HOT, prior);
			add_regret(&regret, &calibration.decision, PAGECLEAR_COLD, prior);
		}
		calibration_free(&calibration);
	}
	printf("\n  regret over the best: mean %.2f %%, worst %.1f %%; worst loss to libc %.1f %%; %u questions\n",
	       100 * regret.sum / regret.count, 100 * regret.worst, 100 * regret.loss, regret.count);
	CU_ASSERT(regret.sum / regret.count < 0.03);
	CU_ASSERT(regret.loss < 0.1);
}

static unsigned asked, missed;

static void expect_side(const struct decision *decision, unsigned intent, enum pc_prior prior, uint64_t bytes,
                        bool round)
{
	bool right = goes_round(calibrated_kernel(decision, intent, prior, bytes)) == round;

	asked++;
	missed += !right;
	if (!right)
		calibrated_print(calibrated_table(decision, intent, prior));
}

/* Where the prototype's figures differ by half or more: 999 of 1000 answers are right. */
static void test_what_is_plain_is_found(void)
{
	if (!zen3_here(&host))
		return;
	asked = missed = 0;
	for (enum effort effort = EFFORT_QUICK; effort <= EFFORT_STANDARD; effort++)
		for (uint64_t seed = 1; seed <= (calibrate_seeds(SEEDS) + 1) / 2; seed++) {
			struct calibrated calibration;
			const struct decision *decision = &calibration.decision;

			CU_ASSERT_EQUAL_FATAL(calibrate(&calibration, &host, &sim_noise_guest, effort, seed), 0);
			for (uint64_t bytes = 4 * KIB; bytes <= 4 * MIB; bytes *= 4) {
				expect_side(decision, PAGECLEAR_COLD, PC_CACHED, bytes, false);
				expect_side(decision, PAGECLEAR_HOT, PC_CACHED, bytes, false);
				expect_side(decision, PAGECLEAR_COLD, PC_FLUSHED, bytes, true);
				expect_side(decision, PAGECLEAR_COLD, PC_UNKNOWN, bytes, false); /* the guard */
				if (bytes >= 16 * KIB) /* below, displacement is mostly noise */
					expect_side(decision, PAGECLEAR_SCRUB, PC_UNKNOWN, bytes, true);
			}
			expect_side(decision, PAGECLEAR_COLD, PC_CACHED, 32 * MIB, true);
			expect_side(decision, PAGECLEAR_COLD, PC_UNKNOWN, 32 * MIB, true);
			expect_side(decision, PAGECLEAR_COLD, PC_FLUSHED, 32 * MIB, true);
			expect_side(decision, PAGECLEAR_SCRUB, PC_UNKNOWN, (uint64_t)16 << 30, true);
			expect_side(decision, PAGECLEAR_COLD, PC_FLUSHED, 512, false); /* in a row libc wins by far */
			calibration_free(&calibration);
		}
	CU_ASSERT(missed <= asked / 1000);
}

/* No kernel is better than another: whoever is chosen, it is chance. */
static void test_nothing_is_found_where_there_is_nothing(void)
{
	unsigned tables = 0, found = 0;

	host_alike(&host);
	for (uint64_t seed = 1; seed <= (calibrate_seeds(SEEDS) + 1) / 2; seed++) {
		struct calibrated calibration;

		CU_ASSERT_EQUAL_FATAL(calibrate(&calibration, &host, &sim_noise_guest, EFFORT_STANDARD, seed), 0);
		CU_ASSERT_EQUAL(calibration.decision.table_count, 7);
		for (size_t i = 0; i < calibration.decision.table_count; i++)
			found += calibration.decision.tables[i].rule_count > 1;
		tables += (unsigned)calibration.decision.table_count;
		calibration_free(&calibration);
	}
	printf("\n  %u of %u tables of a host without differences name another kernel than libc\n", found, tables);
	CU_ASSERT(20 * found <= 2 * tables); /* one in twenty is the level of one test; a table asks several */
}

static void test_a_changed_host_gets_new_rules(void)
{
	struct calibrated first, second;
	struct pc_document old;

	if (!zen3_here(&host))
		return;
	asked = missed = 0;
	CU_ASSERT_EQUAL_FATAL(calibrate(&first, &host, &sim_noise_guest, EFFORT_STANDARD, 1), 0);
	for (unsigned k = 0; k < pc_kernel_count; k++) /* a microcode makes all that goes round the caches slow */
		for (size_t i = 0; goes_round(k) && i < host.kernel[k].gb_per_s[PC_FLUSHED].count; i++)
			host.kernel[k].gb_per_s[PC_FLUSHED].at[i].value /= 10;
	CU_ASSERT_EQUAL_FATAL(calibrate(&second, &host, &sim_noise_guest, EFFORT_STANDARD, 2), 0);
	old = (struct pc_document){.table_count = first.decision.table_count, .tables = first.decision.tables};
	CU_ASSERT_EQUAL_FATAL(calibrate_decide(&second, &host, &old), 0);
	for (uint64_t bytes = 64 * KIB; bytes <= 256 * MIB; bytes *= 2) {
		expect_side(&first.decision, PAGECLEAR_COLD, PC_FLUSHED, bytes, true);
		expect_side(&second.decision, PAGECLEAR_COLD, PC_FLUSHED, bytes, false);
	}
	CU_ASSERT_EQUAL(missed, 0);
	calibration_free(&first);
	calibration_free(&second);
}

static const struct unit_test tests[] = {
	{"what is chosen costs little more than the best", test_what_is_chosen_costs_little_more_than_the_best},
	{"what is plain is found", test_what_is_plain_is_found},
	{"nothing is found where there is nothing", test_nothing_is_found_where_there_is_nothing},
	{"a changed host gets new rules", test_a_changed_host_gets_new_rules},
};

UNIT_MAIN("calibration", tests)
