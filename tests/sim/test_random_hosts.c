/*
 * Properties that hold on any host: what a published policy really costs more than the best, budget, memory, and never
 * a rule against a measured loss. $PAGECLEAR_HOST=N looks at one host only, $PAGECLEAR_SEEDS says how many otherwise.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "calibrd/costs.h"
#include "calibrd/stats.h"
#include "pageclear/policy.h"
#include "tests/sim/calibrate.h"
#include "tests/sim/random_host.h"
#include "tests/sim/truth.h"
#include "tests/unit/harness.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

enum { HOSTS = 16 };

/* Regrets of all tables of all hosts, in nats. */
struct distribution {
	size_t count, room;
	double *excess; /* a table's mean regret less what noise explains */
	double regret, explained;
	unsigned sizes, unheard;
	unsigned beyond; /* tables whose regret is neither small nor explained */
};

static struct random_host random_one;

static void add(struct distribution *all, double excess)
{
	if (all->count == all->room) {
		all->room = all->room * 2 + 64;
		all->excess = reallocarray(all->excess, all->room, sizeof(*all->excess));
		CU_ASSERT_PTR_NOT_NULL_FATAL(all->excess);
	}
	all->excess[all->count++] = excess;
}

/* --- regret ------------------------------------------------------------------------------------------------------ */

/* Means over sizes. */
struct cost {
	double regret, designed;   /* designed: see truth_designed() */
	double explained, excused; /* by noise, to the best decision; to a careful one */
	unsigned sizes, unheard;   /* that count; of libc and too few pairs for a sign test, that do not */
};

static void add_size(struct cost *cost, const struct truth_known *known, unsigned row, uint64_t bytes)
{
	uint32_t heard = truth_heard(known, bytes);

	if (row == 0 && truth_pairs(known, bytes) < 6) { /* six pairs are the least that proves anything */
		cost->unheard++;
		return;
	}
	cost->sizes++;
	cost->regret += truth_regret(known->truth, row, heard, bytes);
	cost->explained += truth_explained(known, TRUTH_BEST, heard, bytes);
	cost->excused += truth_explained(known, TRUTH_CAREFUL, heard, bytes);
}

/* Five sizes an octave, so that most of them are not the grid's. For scrub those of the grid: its cost jumps where an
 * extent begins to be asked about the last level's victim, which no table can know to lie between two sizes. */
static struct cost cost_of(const struct truth_known *known, const struct pc_table *table)
{
	const double step = table->intent == PAGECLEAR_SCRUB ? 1 : 0.2;
	double first = log2((double)known->at[0].bytes), last = log2((double)known->at[known->sizes - 1].bytes);
	struct cost cost = {.sizes = 0};

	for (double octave = first; octave <= last; octave += step) {
		uint64_t bytes = (uint64_t)exp2(octave);

		add_size(&cost, known, calibrated_row(table, bytes), bytes);
	}
	if (cost.sizes > 0) {
		cost.regret /= cost.sizes;
		cost.explained /= cost.sizes;
		cost.excused /= cost.sizes;
	}
	return cost;
}

/* "true regret <= 3 % plus the share that the injected noise explains", on the mean over a table's sizes: to the
 * careful, and 3 % or what the design gives away on purpose. What noise explains is an expectation, so look_at_hosts()
 * asks it of 99 of 100 tables. */
static void add_regret(const struct calibrated *calibration, const struct pc_table *table, struct distribution *all)
{
	struct truth truth = {.host = &random_one.host,
	                      .intent = table->intent,
	                      .prior = table->prior,
	                      .threads = table->threads,
	                      .scrub_weight = calibrate_scrub_weight};
	struct truth_known known;
	struct cost cost;

	truth_find_last_level(&truth, &calibration->data);
	if (!truth_learn(&known, &truth, &random_one.noise, &calibration->data))
		return;
	cost = cost_of(&known, table);
	all->sizes += cost.sizes + cost.unheard;
	all->unheard += cost.unheard;
	if (cost.sizes == 0)
		return;
	add(all, cost.regret - cost.explained);
	all->regret += cost.regret;
	all->explained += cost.explained;
	CU_ASSERT_EQUAL_FATAL(truth_designed(&known, &cost.designed), 0);
	if (cost.regret <= fmax(0.03, cost.designed) + fmax(cost.explained, cost.excused))
		return;
	all->beyond++;
	printf("\n  host %llu: regret %.1f %%, the design's %.1f %%, noise explains %.1f %%, to the careful %.1f %%",
	       (unsigned long long)random_one.number, 100 * cost.regret, 100 * cost.designed, 100 * cost.explained,
	       100 * cost.excused);
	calibrated_print(table);
}

/* --- losses ------------------------------------------------------------------------------------------------------ */

/* True if the samples say surely that a kernel is more than 3 % slower than libc at a size: at 98 %, since there are
 * hundreds of sizes and kernels, and in three of four epochs, since rounds of one are alike. */
static bool surely_loses(const struct calibrated *calibration, const struct pc_table *table, enum pc_prior prior,
                         unsigned kernel, uint64_t bytes)
{
	static struct cost_points pairs;
	struct cost_key key = {table->intent == PAGECLEAR_HOT ? COST_HOT : COST_CLEAR, prior, bytes, table->threads};
	double epochs[COST_EPOCHS];
	unsigned seen = 0, losses = 0;

	costs_paired(&calibration->data, &key, kernel, 0, &pairs);
	if (pairs.count == 0 || !(stats_median_interval(pairs.value, pairs.count, 0.98).low > 0.03))
		return false;
	costs_centre(&pairs, epochs);
	for (size_t e = 0; e < COST_EPOCHS; e++) {
		if (isnan(epochs[e]))
			continue;
		seen++;
		if (epochs[e] > 0)
			losses++;
	}
	return 4 * losses >= 3 * seen;
}

/* "never a rule against a loss that was measured", at every size that was. */
static bool no_rule_against_a_loss(const struct calibrated *calibration, const struct pc_table *table)
{
	bool well = true;

	for (size_t i = 0; i < calibration->data.count && table->intent != PAGECLEAR_SCRUB; i++) {
		const struct series_key *key = &calibration->data.series[i].key;
		unsigned kernel = calibrated_row(table, key->bytes);

		if (kernel == 0 || key->kernel != kernel || key->phase != PHASE_CLEAR || key->chunk != 0 ||
		    key->threads != table->threads || table->prior == PC_UNKNOWN || key->prior != table->prior)
			continue;
		if (surely_loses(calibration, table, table->prior, kernel, key->bytes)) {
			well = false;
			printf("\n  %s loses at %llu bytes", pc_kernels[kernel].name, (unsigned long long)key->bytes);
			calibrated_print(table);
		}
	}
	return well;
}

/* --- all together ------------------------------------------------------------------------------------------------ */

static bool keeps_its_limits(const struct calibrated *calibration, enum effort effort)
{
	bool time = calibration->seconds <= 1.2 * effort_limits[effort].seconds;
	bool memory = calibration->mapped_bytes <= random_one.memory_bytes;

	if (!time || !memory)
		printf("\n  %s took %.1f s and %llu KiB", effort_limits[effort].name, calibration->seconds,
		       (unsigned long long)(calibration->mapped_bytes / KIB));
	return time && memory;
}

static bool is_sound(struct distribution *all, enum effort effort)
{
	struct calibrated calibration;
	bool well = true;
	int r = calibrate_with(&calibration, &(struct calibrate_setting){.host = &random_one.host,
	                                                                 .noise = &random_one.noise,
	                                                                 .effort = effort,
	                                                                 .seed = random_one.number,
	                                                                 .memory_bytes = random_one.memory_bytes});

	if (r < 0) {
		printf("\n  %s is refused: %d", effort_limits[effort].name, r);
		return false;
	}
	well &= keeps_its_limits(&calibration, effort);
	for (size_t i = 0; i < calibration.decision.table_count; i++) {
		add_regret(&calibration, &calibration.decision.tables[i], all);
		well &= no_rule_against_a_loss(&calibration, &calibration.decision.tables[i]);
	}
	calibration_free(&calibration);
	return well;
}

static void print_distribution(const struct distribution *all, const char *effort)
{
	size_t n = all->count;

	printf("\n  %s: %zu tables; mean regret %.2f %%, of it by noise %.2f %%; the rest: p50 %.2f %%, p95 %.2f %%, "
	       "worst %.2f %%; %u tables beyond; %u of %u sizes unheard\n",
	       effort, n, 100 * all->regret / (double)n, 100 * all->explained / (double)n,
	       100 * stats_quantile(all->excess, n, 0.5), 100 * stats_quantile(all->excess, n, 0.95),
	       100 * stats_quantile(all->excess, n, 1), all->beyond, all->unheard, all->sizes);
}

/* Every host is sound; 99 of 100 tables are explained (of quick ones 96: ten seconds hear several threads and
 * displacement a few times, at every other octave). Over all tables the best decision's noise leaves next to nothing to
 * explain, and of 20 tables 19 are within 3 % of it. */
static void look_at_hosts(enum effort effort, unsigned hosts, size_t of_hundred)
{
	const char *only = getenv("PAGECLEAR_HOST");
	struct distribution all = {.count = 0};
	unsigned unsound = 0;

	for (uint64_t number = 1; number <= (only != NULL ? 1 : hosts); number++) {
		bool well;

		random_host(&random_one, only != NULL ? strtoull(only, NULL, 10) : number);
		well = is_sound(&all, effort);
		unsound += !well;
		if (!well)
			random_host_print(&random_one);
	}
	CU_ASSERT_FATAL(all.count > 0);
	print_distribution(&all, effort_limits[effort].name);
	CU_ASSERT_EQUAL(unsound, 0);
	CU_ASSERT(all.beyond <= (of_hundred * all.count + 99) / 100);
	if (all.count >= 100) { /* fewer tables have no 95th percentile to speak of */
		CU_ASSERT(all.regret - all.explained <= 0.01 * (double)all.count);
		CU_ASSERT(stats_quantile(all.excess, all.count, 0.95) <= 0.03);
	}
	free(all.excess);
}

static void test_standard(void)
{
	look_at_hosts(EFFORT_STANDARD, calibrate_seeds(HOSTS), 1);
}

static void test_quick(void)
{
	look_at_hosts(EFFORT_QUICK, calibrate_seeds(HOSTS), 4);
}

static void test_thorough(void)
{
	look_at_hosts(EFFORT_THOROUGH, (calibrate_seeds(HOSTS) + 9) / 10, 1);
}

static const struct unit_test tests[] = {
	{"standard calibrations", test_standard},
	{"quick calibrations", test_quick},
	{"thorough calibrations", test_thorough},
};

UNIT_MAIN("random_hosts", tests)
