/*
 * A guest whose share of the cache comes and goes within hours, calibrated every few days: policies decided from the
 * last calibrations together change less than those of each alone, and cost no more. And one that changed for good.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "calibrd/random.h"
#include "pageclear/policy.h"
#include "tests/sim/calibrate.h"
#include "tests/sim/hosts.h"
#include "tests/sim/truth_parts.h"
#include "tests/sim/zen3.h"
#include "tests/unit/harness.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

/* TURNS: recalibrations with few seeds; with many MOST of them, for WALKS walks. FIRST: before so many a pool is not
 * full. */
enum { TURNS = 16, MOST = 50, WALKS = 3, FIRST = 3, HOURS = 12 };

static struct sim_host host;

static bool many_seeds(void)
{
	return calibrate_seeds(1) >= 100;
}

/* --- policies ----------------------------------------------------------------------------------------------------- */

/* What one way of deciding has said so far. */
struct policy {
	struct decision decision;
	unsigned changes; /* of tables, once the pool is full */
	double regret;    /* sum over hours from then on, in nats */
};

static struct pc_document document(struct policy *policy)
{
	return (struct pc_document){.table_count = policy->decision.table_count, .tables = policy->decision.tables};
}

static bool is_same(const struct pc_table *a, const struct pc_table *b)
{
	bool same = a->rule_count == b->rule_count;

	for (size_t i = 0; same && i < a->rule_count; i++)
		same = a->rules[i].from == b->rules[i].from && a->rules[i].chunk == b->rules[i].chunk &&
		       strcmp(a->rules[i].kernel, b->rules[i].kernel) == 0;
	return same;
}

/* From `count` of the `turn` + 1 calibrations there are, the newest first. */
static void decide_anew(struct policy *policy, const struct dataset *data, unsigned turn, size_t count)
{
	const struct dataset *parts[POOL_MOST];
	struct pc_document old = document(policy);
	struct decision decision;

	if (count > turn + 1)
		count = turn + 1;
	for (size_t i = 0; i < count; i++)
		parts[i] = &data[turn - i];
	CU_ASSERT_EQUAL_FATAL(calibrate_together(&decision, &host, parts, count, old.table_count > 0 ? &old : NULL), 0);
	for (size_t i = 0; turn >= FIRST && i < old.table_count && i < decision.table_count; i++)
		policy->changes += !is_same(&policy->decision.tables[i], &decision.tables[i]);
	decision_free(&policy->decision);
	policy->decision = decision;
}

static void measure(struct dataset *out, const struct sim_noise *noise, uint64_t seed, struct policy *in_force)
{
	struct pc_document old = document(in_force);
	struct calibrated calibrated;

	CU_ASSERT_EQUAL_FATAL(
		calibrate_with(&calibrated, &(struct calibrate_setting){.host = &host,
	                                                                .noise = noise,
	                                                                .effort = EFFORT_STANDARD,
	                                                                .seed = seed,
	                                                                .old = old.table_count > 0 ? &old : NULL}),
		0);
	decision_free(&calibrated.decision);
	*out = calibrated.data;
}

/* --- a knee that wanders ------------------------------------------------------------------------------------------ */

struct walk {
	struct random random;
	double normal; /* loses half of itself an hour */
};

/* Octaves by which the cache is larger than it says: from 2/3 to 4/3 of that, each as likely. */
static double next_hour(struct walk *walk)
{
	double radius = sqrt(-2 * log(random_unit(&walk->random)));

	walk->normal = walk->normal / 2 + sqrt(0.75) * radius * cos(2 * M_PI * random_unit(&walk->random));
	return log2(2.0 / 3 + 2.0 / 3 * erfc(-walk->normal / sqrt(2)) / 2);
}

/* What a table's choice costs more than the best kernel at that moment; mean over sizes. */
static double table_regret(const struct truth *truth, const struct pc_table *table, double octaves)
{
	double sum = 0;
	unsigned sizes = 0;

	for (uint64_t octave = 64 * KIB; octave < 64 * MIB; octave *= 2)
		for (uint64_t bytes = octave; bytes < 2 * octave; bytes += octave / 4, sizes++) {
			double least = 0;

			for (unsigned k = 1; k < pc_kernel_count; k++)
				if ((host.kernels >> k & 1) != 0)
					least = fmin(least, truth_shifted_l(truth, k, bytes, octaves));
			sum += truth_shifted_l(truth, calibrated_row(table, bytes), bytes, octaves) - least;
		}
	return sum / sizes;
}

/* Of the tables whose prior is told. */
static double regret(const struct decision *decision, double octaves)
{
	struct truth truth = {.host = &host, .threads = 1};
	double sum = 0;

	for (truth.intent = PAGECLEAR_HOT; truth.intent <= PAGECLEAR_COLD; truth.intent++)
		for (truth.prior = PC_CACHED; truth.prior <= PC_FLUSHED; truth.prior++)
			sum += table_regret(&truth, calibrated_table(decision, truth.intent, truth.prior), octaves);
	return sum / 4;
}

/* alone and together see the same calibrations. */
static void walk_on(struct policy *alone, struct policy *together, unsigned turns, uint64_t seed)
{
	struct sim_noise noise = sim_noise_guest;
	struct walk walk = {.random = {seed * 77777}};
	struct dataset data[MOST] = {{0}};

	noise.knee = 0.08; /* within the minute that a calibration takes */
	for (unsigned turn = 0; turn < turns; turn++) {
		noise.shift = next_hour(&walk);
		measure(&data[turn], &noise, 1000 * seed + turn, together);
		decide_anew(alone, data, turn, 1);
		decide_anew(together, data, turn, POOL_MOST);
		for (unsigned hour = 0; hour < HOURS; hour++) {
			double octaves = next_hour(&walk);

			alone->regret += turn + 1 >= FIRST ? regret(&alone->decision, octaves) : 0;
			together->regret += turn + 1 >= FIRST ? regret(&together->decision, octaves) : 0;
		}
	}
	for (unsigned turn = 0; turn < turns; turn++)
		dataset_clear(&data[turn]);
}

/*
 * In 3 x 50 recalibrations 149 changes instead of 248, and a regret of 0.45 % instead of 0.50 %. A few say less: there
 * it is only seen that neither grows out of hand. (With the caution that suits the epochs of one calibration the regret
 * would be larger than that of each alone: DECIDE_MANY.)
 */
static void test_together_they_stand_firm(void)
{
	unsigned turns = many_seeds() ? MOST : TURNS, walks = many_seeds() ? WALKS : 1;
	struct policy alone = {.changes = 0}, together = {.changes = 0};
	double hours = (double)walks * (turns - FIRST + 1) * HOURS;

	if (!zen3_here(&host))
		return;
	for (uint64_t seed = 1; seed <= walks; seed++) {
		walk_on(&alone, &together, turns, seed);
		decision_free(&alone.decision);
		decision_free(&together.decision);
	}
	printf("\n  %u x %u recalibrations, each alone: %u changes, regret %.2f %%; three together: %u, %.2f %%\n",
	       walks, turns, alone.changes, 100 * alone.regret / hours, together.changes,
	       100 * together.regret / hours);
	CU_ASSERT(together.changes < (many_seeds() ? 2.0 / 3 : 1) * alone.changes);
	CU_ASSERT(together.regret < (many_seeds() ? 1.1 : 1.5) * alone.regret);
}

/* --- a host that changes for good --------------------------------------------------------------------------------- */

/* From now on the cache is so many times as large: what happened at 8 MiB happens at 8 * factor. */
static void grow_cache(double factor)
{
	for (unsigned k = 0; k < pc_kernel_count; k++)
		for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED; prior++) {
			struct sim_curve *curve = &host.kernel[k].gb_per_s[prior];

			for (size_t i = 0; i < curve->count; i++)
				if (curve->at[i].bytes > MIB)
					curve->at[i].bytes = (uint64_t)((double)curve->at[i].bytes * factor);
		}
	host.llc_bytes = (uint64_t)((double)host.llc_bytes * factor);
	host_latency(&host, host.l2_bytes, host.llc_bytes, 4, 11, 130);
}

static unsigned wrong_sides(const struct policy *policy, const struct dataset *newest)
{
	struct truth truth = {.host = &host, .threads = 1};
	unsigned wrong = 0;

	for (truth.intent = PAGECLEAR_HOT; truth.intent <= PAGECLEAR_COLD; truth.intent++)
		for (truth.prior = PC_CACHED; truth.prior <= PC_FLUSHED; truth.prior++)
			for (uint64_t bytes = MIB; bytes <= 64 * MIB; bytes *= 2) {
				enum truth_side side = truth_side(&truth, &sim_noise_guest, newest, bytes);
				bool round = truth_goes_round(
					calibrated_kernel(&policy->decision, truth.intent, truth.prior, bytes));

				wrong += (side == TRUTH_ROUND && !round) || (side == TRUTH_TEMPORAL && round);
			}
	return wrong;
}

enum { CALM = 3, AFTER = 3 }; /* calibrations before the change, and after it */

/* The number of calibrations after which all sides are right; AFTER + 1: not even then. first: of those before the
 * change that are pooled; CALM: none, as after a failed verification. */
static unsigned calibrations_needed(double factor, unsigned first, uint64_t seed)
{
	struct dataset data[CALM + AFTER] = {{0}};
	struct policy policy = {.changes = 0};
	unsigned needed = 0;

	host_zen3(&host);
	for (unsigned turn = 0; turn < CALM + AFTER && (turn < CALM || needed == 0); turn++) {
		if (turn == CALM)
			grow_cache(factor);
		measure(&data[turn], &sim_noise_guest, 100 * seed + turn, &policy);
		decide_anew(&policy, turn < CALM ? data : data + first, turn < CALM ? turn : turn - first, POOL_MOST);
		if (turn >= CALM && wrong_sides(&policy, &data[turn]) == 0)
			needed = turn - CALM + 1;
	}
	for (unsigned turn = 0; turn < CALM + AFTER; turn++)
		dataset_clear(&data[turn]);
	decision_free(&policy.decision);
	return needed > 0 ? needed : AFTER + 1;
}

/* True if most seeds need so many calibrations at most. */
static void expect_new_rules(double factor, unsigned first, unsigned most)
{
	unsigned seeds = (calibrate_seeds(8) + 2) / 3, needed[AFTER + 2] = {0}, good = 0;

	for (uint64_t seed = 1; seed <= seeds; seed++)
		needed[calibrations_needed(factor, first, seed)]++;
	for (unsigned n = 0; n <= most; n++)
		good += needed[n];
	printf("\n  cache times %g%s: right after 1 calibration %u, 2: %u, 3: %u, later %u", factor,
	       first == CALM ? ", found by a verification" : "", needed[1], needed[2], needed[3], needed[4]);
	CU_ASSERT(3 * good >= 2 * seeds);
}

static void test_a_cache_that_grew(void)
{
	if (zen3_here(&host))
		expect_new_rules(2.5, 0, 3);
}

static void test_a_cache_that_shrank(void)
{
	if (zen3_here(&host))
		expect_new_rules(0.4, 0, 2);
}

/* What failed a verification is not asked again. */
static void test_a_change_that_a_verification_found(void)
{
	if (zen3_here(&host)) {
		expect_new_rules(2.5, CALM, 2);
		expect_new_rules(0.4, CALM, 1);
	}
}

static const struct unit_test tests[] = {
	{"together they stand firm", test_together_they_stand_firm},
	{"a cache that grew", test_a_cache_that_grew},
	{"a cache that shrank", test_a_cache_that_shrank},
	{"a change that a verification found", test_a_change_that_a_verification_found},
};

UNIT_MAIN("wander", tests)
