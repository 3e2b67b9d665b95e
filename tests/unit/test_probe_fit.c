/* Threshold and smallest size of the probe, from loads and costs made by hand. */
#include "calibrd/probe_fit.h"

#include <math.h>
#include <string.h>

#include "pageclear/policy.h"
#include "tests/unit/by_hand.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)

enum { LIBC = 0, RIVAL = 1 };

/* --- a host by hand ---------------------------------------------------------------------------------------------- */

static struct pc_rule only_libc[] = {{.kernel = "libc"}};
static struct pc_rule only_rival[] = {{.from = 0}};

/* Cold memory: libc where it is cached, the rival where it is flushed, libc where nobody knows. */
static struct decision decided(void)
{
	struct decision decision = {
		.table_count = 3,
		.tables = {{PAGECLEAR_COLD, PC_CACHED, 1, 1, only_libc},
	                   {PAGECLEAR_COLD, PC_FLUSHED, 1, 1, only_rival},
	                   {PAGECLEAR_COLD, PC_UNKNOWN, 1, 1, only_libc}},
	};

	strcpy(only_rival[0].kernel, pc_kernels[RIVAL].name);
	return decision;
}

/* Cached libc 40 B/ns, the rival 10; flushed libc 10, the rival 30. */
static struct dataset measured(uint64_t most)
{
	struct dataset data = {0};

	for (uint64_t bytes = 16 * KIB; bytes <= most; bytes *= 2) {
		struct where cached = {PHASE_CLEAR, PC_CACHED, bytes}, flushed = {PHASE_CLEAR, PC_FLUSHED, bytes};

		put(&data, cached, LIBC, 0, 0, (double)bytes / 40);
		put(&data, cached, RIVAL, 0, 0, (double)bytes / 10);
		put(&data, flushed, LIBC, 0, 0, (double)bytes / 10);
		put(&data, flushed, RIVAL, 0, 0, (double)bytes / 30);
	}
	return data;
}

/* The first `odd` looks take something else. */
static void add(struct probe_set *set, uint64_t bytes, enum pc_prior prior, double look, unsigned odd, double odd_look)
{
	struct bench_probe probe = {.bytes = bytes, .prior = prior};

	for (unsigned i = 0; i < PC_PROBE_LOOKS; i++) {
		probe.looks[i] = i < odd ? odd_look : look;
		probe.whole_ns += prior == PC_CACHED && i > 0 ? 0 : probe.looks[i];
	}
	CU_ASSERT_EQUAL_FATAL(probe_set_add(set, &probe), 0);
}

/* Ten probes a size and prior, looks within 10 % of what is given. */
static struct probe_set clouds(uint64_t most, double cached_ns, double flushed_ns)
{
	struct probe_set set = {0};

	for (uint64_t bytes = 16 * KIB; bytes <= most; bytes *= 2)
		for (unsigned i = 0; i < 10; i++) {
			double wobble = 0.9 + 0.02 * i;

			add(&set, bytes, PC_CACHED, cached_ns * wobble, 0, 0);
			add(&set, bytes, PC_FLUSHED, flushed_ns * wobble, 0, 0);
		}
	return set;
}

/* Fits and releases set and data. */
static struct probe_fit fit_to(struct probe_set *set, struct dataset data, const struct decision *decision,
                               uint64_t knee)
{
	struct probe_fit fit;

	probe_fit(set, &data, decision, knee, &fit);
	probe_set_clear(set);
	dataset_clear(&data);
	return fit;
}

static struct probe_fit fit_clouds(double cached_ns, double flushed_ns, uint64_t knee)
{
	struct decision decision = decided();
	struct probe_set set = clouds(16 * MIB, cached_ns, flushed_ns);

	return fit_to(&set, measured(16 * MIB), &decision, knee);
}

/* --- the threshold ----------------------------------------------------------------------------------------------- */

static void test_between_two_clouds(void)
{
	struct probe_fit fit = fit_clouds(10, 100, 0);

	CU_ASSERT(fit.from > 0);
	CU_ASSERT_EQUAL(fit.lines, BENCH_PROBE_LINES);
	CU_ASSERT(fit.slow_ns > 10.8 && fit.slow_ns < 90);
	CU_ASSERT_DOUBLE_EQUAL(fit.slow_ns, sqrt(10.8 * 90), 2); /* as far from the one as from the other */
	CU_ASSERT_EQUAL(fit.wrong, 0);
}

static void test_overlapping_clouds(void)
{
	struct probe_fit fit = fit_clouds(60, 60, 0);

	CU_ASSERT_EQUAL(fit.from, 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(fit.reason, "do not tell"));
}

/* A clock in steps of a microsecond shows nothing at all. */
static void test_coarse_clock(void)
{
	CU_ASSERT_EQUAL(fit_clouds(0, 0, 0).from, 0);
	CU_ASSERT_EQUAL(fit_clouds(1000, 1000, 0).from, 0);
}

/* Flushed memory that answers faster than cached memory is no probe either. */
static void test_reversed_clouds(void)
{
	CU_ASSERT_EQUAL(fit_clouds(100, 10, 0).from, 0);
}

/* Two ranges equally good, 10 to 30 and 70 to 200, and a worse one between them: the middle of all three lies there. */
static void test_ranges_apart(void)
{
	struct decision decision = decided();
	struct probe_set set = {0};
	struct probe_fit fit;

	for (unsigned i = 0; i < 20; i++) {
		add(&set, 4 * MIB, PC_CACHED, 10, i < 4, 70);
		add(&set, 4 * MIB, PC_FLUSHED, 200, i < 4, 30);
	}
	fit = fit_to(&set, measured(4 * MIB), &decision, 0);
	CU_ASSERT(fit.from > 0);
	CU_ASSERT(fit.slow_ns > 10 && fit.slow_ns < 30);
}

static void test_nothing_probed(void)
{
	struct decision decision = decided();
	struct probe_set set = {0};
	struct probe_fit fit = fit_to(&set, measured(MIB), &decision, 8 * MIB);

	CU_ASSERT_EQUAL(fit.from, 0);
	add(&set, MIB, PC_CACHED, 10, 0, 0); /* one prior alone */
	CU_ASSERT_EQUAL(fit_to(&set, measured(MIB), &decision, 8 * MIB).from, 0);
}

/* --- the knee ---------------------------------------------------------------------------------------------------- */

/* Beyond the knee "cached" memory answers like flushed memory: it says nothing of caches. */
static void test_sizes_beyond_the_knee_are_ignored(void)
{
	struct decision decision = decided();
	struct probe_set set = clouds(2 * MIB, 10, 100);
	struct probe_fit fit;

	for (uint64_t bytes = 4 * MIB; bytes <= 16 * MIB; bytes *= 2)
		for (unsigned i = 0; i < 10; i++) {
			add(&set, bytes, PC_CACHED, 100, 0, 0);
			add(&set, bytes, PC_FLUSHED, 100, 0, 0);
		}
	fit = fit_to(&set, measured(16 * MIB), &decision, 4 * MIB);
	CU_ASSERT(fit.from > 0 && fit.from <= 2 * MIB);
	CU_ASSERT_EQUAL(fit.wrong, 0);
	/* Who takes them for cached finds no probe that holds up to the largest size. */
	set = clouds(2 * MIB, 10, 100);
	for (unsigned i = 0; i < 10; i++) {
		add(&set, 4 * MIB, PC_CACHED, 100, 0, 0);
		add(&set, 4 * MIB, PC_FLUSHED, 100, 0, 0);
	}
	CU_ASSERT_EQUAL(fit_to(&set, measured(16 * MIB), &decision, 0).from, 0);
}

static void test_knee_below_all_sizes(void)
{
	CU_ASSERT_EQUAL(fit_clouds(10, 100, 16 * KIB).from, 0);
}

/* --- the smallest size ------------------------------------------------------------------------------------------- */

/* What the fitted probe adds to cached memory, relative to libc. */
static double loss_at(uint64_t bytes, double probe_ns)
{
	return probe_ns / ((double)bytes / 40);
}

/* One look of 40 ns: less than 6 % of cached libc from 27 KB on, so from 32 KiB at the grid's octaves. */
static void test_smallest_size(void)
{
	struct probe_fit fit = fit_clouds(40, 80, 0);

	CU_ASSERT_EQUAL(fit.from, 32 * KIB);
	CU_ASSERT(loss_at(fit.from, 40) <= 0.06);
	CU_ASSERT(loss_at(fit.from / 2, 40) > 0.06);
}

/* Where every answer is right and cached memory pays nearly nothing, it is what two slow looks weigh in a target of
 * which a quarter is cached: of 16 KiB 1/40 x 1/4 + 1/10 x 3/4 a byte by libc, 1/10 x 1/4 + 1/30 x 3/4 by the rival,
 * the less. */
static void test_looks_weigh(void)
{
	for (uint64_t from = 16 * KIB; from <= 4 * MIB; from *= 2) {
		double tenth = (double)from * (1 / 40.0 + 1 / 40.0) / 10;

		CU_ASSERT_EQUAL(fit_clouds(1, 0.98 * tenth / 2 / 1.08, 0).from, from);
		CU_ASSERT_EQUAL(fit_clouds(1, 1.05 * tenth / 2, 0).from, 2 * from);
	}
}

/* The dearer the looks, the later they pay, until they never do. */
static void test_dear_looks(void)
{
	uint64_t last = 0;

	for (double ns = 8; ns <= 4096; ns *= 2) {
		struct probe_fit fit = fit_clouds(ns / 4, ns, 0);

		CU_ASSERT(fit.from == 0 || fit.from >= last);
		CU_ASSERT(last == UINT64_MAX ? fit.from == 0 : 1);
		last = fit.from == 0 ? UINT64_MAX : fit.from;
		if (fit.from > 0)
			CU_ASSERT(loss_at(fit.from, ns / 4) <= 0.0601);
	}
}

/* Probes that take cached memory for flushed send it to the kernel that is four times slower there. */
static void test_wrong_answers_cost(void)
{
	struct decision decision = decided();
	struct probe_set set = {0};
	struct probe_fit fit;

	for (uint64_t bytes = 16 * KIB; bytes <= 16 * MIB; bytes *= 2)
		for (unsigned i = 0; i < 20; i++) {
			bool wrong = i == 0 && bytes <= MIB; /* one of twenty, up to 1 MiB */

			add(&set, bytes, PC_CACHED, wrong ? 100 : 10, 0, 0);
			add(&set, bytes, PC_FLUSHED, 100, 0, 0);
		}
	fit = fit_to(&set, measured(16 * MIB), &decision, 0);
	CU_ASSERT_EQUAL(fit.from, 2 * MIB);
	CU_ASSERT_EQUAL(fit.wrong, 0);
}

/* One of a dozen, at one size alone, counts by what its neighbours say too. */
static void test_one_wrong_answer_is_chance(void)
{
	struct decision decision = decided();
	struct probe_set set = {0};

	for (uint64_t bytes = 16 * KIB; bytes <= 16 * MIB; bytes *= 2)
		for (unsigned i = 0; i < 24; i++) {
			add(&set, bytes, PC_CACHED, i == 0 && bytes == MIB ? 100 : 10, 0, 0);
			add(&set, bytes, PC_FLUSHED, 100, 0, 0);
		}
	CU_ASSERT_EQUAL(fit_to(&set, measured(16 * MIB), &decision, 0).from, 64 * KIB);
}

/* One slow look is no wrong answer; flushed memory that is taken for cached only loses its gain. */
static void test_share_of_wrong_answers(void)
{
	struct decision decision = decided();
	struct probe_set set = {0};
	struct probe_fit fit;

	for (uint64_t bytes = MIB; bytes <= 4 * MIB; bytes *= 2)
		for (unsigned i = 0; i < 20; i++) {
			add(&set, bytes, PC_CACHED, 10, i < 4, 100);
			/* One of two is fast, at 4 MiB alone. */
			add(&set, bytes, PC_FLUSHED, 100, bytes == 4 * MIB && i < 6, 10);
		}
	fit = fit_to(&set, measured(4 * MIB), &decision, 0);
	CU_ASSERT_EQUAL(fit.from, MIB);
	/* Of three sizes and two priors one has 6 wrong of 20. */
	NEAR(fit.wrong, 6 / 20.0 / 6);
}

/* The rule for cached memory may lie behind libc by a little of its own: that is not the probe's fault. */
static void test_imprecise_rule(void)
{
	struct decision decision = decided();
	struct probe_set set = clouds(4 * MIB, 40, 48);
	struct dataset data = {0};

	decision.tables[0].rules = only_rival;
	for (uint64_t bytes = 16 * KIB; bytes <= 4 * MIB; bytes *= 2) {
		struct where cached = {PHASE_CLEAR, PC_CACHED, bytes}, flushed = {PHASE_CLEAR, PC_FLUSHED, bytes};

		put(&data, cached, LIBC, 0, 0, (double)bytes / 40);
		put(&data, cached, RIVAL, 0, 0, (double)bytes / 40 * 1.025);
		put(&data, flushed, LIBC, 0, 0, (double)bytes / 10);
		put(&data, flushed, RIVAL, 0, 0, (double)bytes / 30);
	}
	CU_ASSERT_EQUAL(fit_to(&set, data, &decision, 0).from, 32 * KIB);
}

/* Where the rule for cached memory is far better than libc, its gain does not pay for loads. */
static void test_gain_of_the_rule_is_not_spent(void)
{
	struct decision decision = decided();
	struct probe_set set = clouds(4 * MIB, 40, 48);
	struct dataset data = measured(4 * MIB);

	decision.tables[0].rules = only_rival;
	for (size_t i = 0; i < data.count; i++)
		if (data.series[i].key.kernel == RIVAL)
			data.series[i].rounds[0].ns =
				(float)data.series[i].key.bytes / (data.series[i].key.prior == PC_CACHED ? 60 : 20);
	CU_ASSERT_EQUAL(fit_to(&set, data, &decision, 0).from, 64 * KIB);
}

/* --- nothing to choose from -------------------------------------------------------------------------------------- */

static void test_without_tables(void)
{
	struct decision none = {0}, decision = decided();
	struct probe_set set = clouds(16 * MIB, 10, 100);
	struct probe_fit fit = fit_to(&set, measured(16 * MIB), &none, 0);

	CU_ASSERT_EQUAL(fit.from, 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(fit.reason, "no size"));
	decision.tables[0].intent = decision.tables[1].intent = PAGECLEAR_HOT; /* cold without cached and flushed */
	set = clouds(16 * MIB, 10, 100);
	CU_ASSERT_EQUAL(fit_to(&set, measured(16 * MIB), &decision, 0).from, 0);
}

/* Where the unknown prior is served as well already, loads earn nothing. */
static void test_same_choice_either_way(void)
{
	struct decision decision = decided();
	struct probe_set set = clouds(16 * MIB, 10, 100);

	decision.tables[1].rules = only_libc;
	CU_ASSERT_EQUAL(fit_to(&set, measured(16 * MIB), &decision, 0).from, 0);
}

static void test_unmeasured_costs(void)
{
	struct decision decision = decided();
	struct probe_set set = clouds(16 * MIB, 10, 100);

	CU_ASSERT_EQUAL(fit_to(&set, (struct dataset){0}, &decision, 0).from, 0);
	/* The largest probed size has no costs: nothing from there down is known to hold. */
	set = clouds(16 * MIB, 10, 100);
	CU_ASSERT_EQUAL(fit_to(&set, measured(8 * MIB), &decision, 0).from, 0);
}

static void test_unknown_kernel_counts_as_libc(void)
{
	struct decision decision = decided();
	struct probe_set set = clouds(16 * MIB, 10, 100);

	strcpy(only_rival[0].kernel, "warp");
	CU_ASSERT_EQUAL(fit_to(&set, measured(16 * MIB), &decision, 0).from, 0);
}

static void test_set_grows(void)
{
	struct probe_set set = {0};
	struct bench_probe probe = {.bytes = 1};

	for (uint64_t i = 0; i < 1000; i++) {
		probe.bytes = i;
		CU_ASSERT_EQUAL_FATAL(probe_set_add(&set, &probe), 0);
	}
	CU_ASSERT_EQUAL(set.count, 1000);
	for (uint64_t i = 0; i < 1000; i++)
		CU_ASSERT_EQUAL(set.probes[i].bytes, i);
	probe_set_clear(&set);
	CU_ASSERT_EQUAL(set.count, 0);
	probe_set_clear(&set);
}

static const struct unit_test all_tests[] = {
	{"between two clouds", test_between_two_clouds},
	{"overlapping clouds", test_overlapping_clouds},
	{"coarse clock", test_coarse_clock},
	{"reversed clouds", test_reversed_clouds},
	{"ranges apart", test_ranges_apart},
	{"nothing probed", test_nothing_probed},
	{"sizes beyond the knee are ignored", test_sizes_beyond_the_knee_are_ignored},
	{"knee below all sizes", test_knee_below_all_sizes},
	{"smallest size", test_smallest_size},
	{"looks weigh", test_looks_weigh},
	{"dear looks", test_dear_looks},
	{"wrong answers cost", test_wrong_answers_cost},
	{"one wrong answer is chance", test_one_wrong_answer_is_chance},
	{"share of wrong answers", test_share_of_wrong_answers},
	{"imprecise rule", test_imprecise_rule},
	{"gain of the rule is not spent", test_gain_of_the_rule_is_not_spent},
	{"without tables", test_without_tables},
	{"same choice either way", test_same_choice_either_way},
	{"unmeasured costs", test_unmeasured_costs},
	{"unknown kernel counts as libc", test_unknown_kernel_counts_as_libc},
	{"set grows", test_set_grows},
};

/* A build with libc alone has no rival to send flushed memory to. */
static void test_no_rival(void)
{
	unit_skip("this build has %u kernel", pc_kernel_count);
}

static const struct unit_test no_tests[] = {{"no rival", test_no_rival}};

int main(void)
{
	if (pc_kernel_count < 2)
		return unit_main("probe_fit", no_tests, 1);
	return unit_main("probe_fit", all_tests, sizeof(all_tests) / sizeof(all_tests[0]));
}
