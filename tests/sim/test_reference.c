/*
 * What the authors of published tables concluded must come out of decide(): from their own figures, and from whole
 * calibrations of simulated hosts that behave as their tables say, under noise, for many seeds.
 */
#include "tests/sim/reference.h"

#include <math.h>
#include <string.h>

#include "calibrd/stats.h"
#include "pageclear/policy.h"
#include "tests/sim/calibrate.h"
#include "tests/sim/truth.h"
#include "tests/unit/harness.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

enum { SEEDS = 8 };

/* Stores that go round the caches: MOVNTI, VMOVNTDQ, CLZERO. The others, libc's included, are the authors' rep stos
 * side. */
#define goes_round truth_goes_round

static bool has_kernels(void)
{
	return pc_kernel_find("movnti") != NULL && pc_kernel_find("stosq") != NULL;
}

static bool load(struct reference *reference, int (*read)(struct reference *))
{
	int r;

	if (!has_kernels()) {
		unit_skip("the tables are of x86 kernels");
		return false;
	}
	r = read(reference);
	if (r == 1)
		unit_skip("no reference tables here");
	CU_ASSERT(r == 0 || r == 1);
	return r == 0;
}

/* Decides on the figures as they stand. */
static void decide_figures(const struct reference *reference, unsigned host, struct calibrated *out)
{
	*out = (struct calibrated){.seconds = 0};
	CU_ASSERT_EQUAL_FATAL(reference_samples(reference, host, &out->data), 0);
	CU_ASSERT_EQUAL_FATAL(calibrate_decide(out, &reference->host[host], NULL), 0);
}

/* --- calibrations ------------------------------------------------------------------------------------------------ */

/* What a host's figures demand of a calibration, and what became of it. */
struct tally {
	unsigned round, temporal, either, wrong; /* questions */
};

/* One size of one table: the side that the figures demand, where their effect exceeds the noise. */
static void ask(struct tally *tally, const struct calibrated *calibration, const struct truth *truth, uint64_t bytes)
{
	const struct pc_table *table = calibrated_table(&calibration->decision, truth->intent, truth->prior);
	enum truth_side side = truth_side(truth, &sim_noise_guest, &calibration->data, bytes);
	bool round = goes_round(calibrated_row(table, bytes));

	tally->round += side == TRUTH_ROUND;
	tally->temporal += side == TRUTH_TEMPORAL;
	tally->either += side == TRUTH_EITHER;
	if ((side == TRUTH_ROUND && !round) || (side == TRUTH_TEMPORAL && round)) {
		tally->wrong++;
		printf("\n  %s, %llu bytes:", truth->host->name, (unsigned long long)bytes);
		calibrated_print(table);
	}
}

typedef void asking(struct tally *tally, const struct calibrated *calibration, const struct sim_host *host);

/* A calibration for each seed: in 99 of 100 all questions come out as the figures demand. */
static void expect_in_calibrations(const struct sim_host *host, asking *questions, bool never)
{
	unsigned seeds = calibrate_seeds(SEEDS), good = 0;
	struct tally all = {0};

	for (uint64_t seed = 1; seed <= seeds; seed++) {
		struct calibrated calibration;
		unsigned wrong = all.wrong;

		CU_ASSERT_EQUAL_FATAL(calibrate(&calibration, host, &sim_noise_guest, EFFORT_STANDARD, seed), 0);
		questions(&all, &calibration, host);
		good += all.wrong == wrong;
		if (all.wrong != wrong)
			printf("  with seed %llu\n", (unsigned long long)seed);
		calibration_free(&calibration);
	}
	printf("\n  %-28s %u of %u seeds; a seed: %u sizes round the caches, %u through them, %u below the noise",
	       host->name, good, seeds, all.round / seeds, all.temporal / seeds, all.either / seeds);
	CU_ASSERT(good + calibrate_misses(seeds) >= seeds);
	CU_ASSERT(all.round + all.temporal >= 2 * seeds); /* a noise that excused everything would be no test */
	CU_ASSERT(never ? all.round == 0 : all.round >= seeds);
}

/* --- Arora: MOVNTI from about the size of the LLC, or never ------------------------------------------------------ */

/* By the figures alone. Icelake-X: "rep stosb wins at 2 MB and 16 MB, MOVNTI from 128 MB". Skylake-X: MOVNTI never
 * wins. Broadwell and Rome: as the figures say, between 16 and 128 MiB. */
static bool never_wins(const struct sim_host *host)
{
	return strncmp(host->name, "Skylake", 7) == 0;
}

static bool arora_concluded(const struct sim_host *host, const struct decision *decision)
{
	for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED; prior++)
		for (uint64_t bytes = 64 * KIB; bytes <= 256 * MIB; bytes *= 2) {
			bool round = goes_round(calibrated_kernel(decision, PAGECLEAR_COLD, prior, bytes));

			if (round && (never_wins(host) || bytes <= 16 * MIB))
				return false;
			if (!round && !never_wins(host) && bytes >= 128 * MIB)
				return false;
		}
	return true;
}

static void test_arora_figures(void)
{
	struct reference reference;

	if (!load(&reference, reference_arora))
		return;
	CU_ASSERT_EQUAL(reference.hosts, 4);
	for (unsigned host = 0; host < reference.hosts; host++) {
		struct calibrated decided;
		const struct pc_table *table;

		decide_figures(&reference, host, &decided);
		table = calibrated_table(&decided.decision, PAGECLEAR_COLD, PC_FLUSHED);
		CU_ASSERT_PTR_NOT_NULL_FATAL(table);
		CU_ASSERT_TRUE(arora_concluded(&reference.host[host], &decided.decision));
		CU_ASSERT_PTR_NULL(calibrated_table(&decided.decision, PAGECLEAR_HOT, PC_FLUSHED)); /* no reads there */
		CU_ASSERT_PTR_NULL(calibrated_table(&decided.decision, PAGECLEAR_SCRUB, PC_UNKNOWN));
		if (table->rule_count > 1) {
			CU_ASSERT_EQUAL(table->rule_count, 2);
			CU_ASSERT(table->rules[1].from > 16 * MIB && table->rules[1].from <= 128 * MIB);
		}
		calibration_free(&decided);
	}
	reference_free(&reference);
}

/* At the sizes of the tables: what lies between is this simulator's line, not the author's figure. Cached memory is
 * tried up to 64 MiB, flushed up to 256. */
static void arora_questions(struct tally *tally, const struct calibrated *calibration, const struct sim_host *host)
{
	static const uint64_t sizes[] = {2 * MIB, 16 * MIB, 128 * MIB, 256 * MIB};
	struct truth truth = {.host = host, .intent = PAGECLEAR_COLD, .threads = 1};

	for (truth.prior = PC_CACHED; truth.prior <= PC_FLUSHED; truth.prior++)
		for (size_t i = 0; i < (truth.prior == PC_CACHED ? 2 : 4); i++)
			ask(tally, calibration, &truth, sizes[i]);
}

static void test_arora_calibrations(void)
{
	struct reference reference;

	if (!load(&reference, reference_arora))
		return;
	for (unsigned host = 0; host < reference.hosts; host++)
		expect_in_calibrations(&reference.host[host], arora_questions, never_wins(&reference.host[host]));
	reference_free(&reference);
}

/* --- Beulich: clearing is rep stos's, scrubbing is not ----------------------------------------------------------- */

static double median_ns(const struct reference *reference, unsigned host, unsigned kernel, enum phase phase,
                        enum pc_prior prior, uint64_t bytes)
{
	const struct reference_cell *cell = reference_find(reference, host, kernel, phase, prior, bytes);

	return cell != NULL ? stats_median(cell->ns, cell->repeats) : NAN;
}

/* The least that any kernel of one side costs by the figures; with a victim's phase: of a scrub, weight 0.1. */
static double least_ns(const struct reference *reference, unsigned host, bool round, enum phase phase,
                       enum pc_prior prior, uint64_t bytes)
{
	double least = INFINITY;

	for (unsigned k = 0; k < pc_kernel_count; k++) {
		double ns = median_ns(reference, host, k, PHASE_CLEAR, prior, bytes);

		if (phase != PHASE_CLEAR)
			ns = 0.1 * ns + median_ns(reference, host, k, phase, prior, bytes);
		if (goes_round(k) == round)
			least = fmin(least, ns);
	}
	return least;
}

/* The two sizes that a machine's table has: half of its L1D and half of its L2. */
static uint64_t measured_bytes(const struct reference *reference, unsigned host, int which)
{
	const struct sim_host *of = &reference->host[host];

	return (which == 0 ? of->l1_bytes : of->l2_bytes) / 2;
}

static bool chose_round(const struct decision *decision, unsigned intent, enum pc_prior prior, uint64_t bytes)
{
	/* The smallest scrub that a calibration tries. */
	if (intent == PAGECLEAR_SCRUB && calibrated_kernel(decision, intent, prior, bytes) == 0 && bytes < 4 * KIB)
		bytes = 4 * KIB;
	return goes_round(calibrated_kernel(decision, intent, prior, bytes));
}

/* "REP STOS has the lower latency, above all with warm caches": clearing what is cached, to be used or not. */
static bool warm_concluded(const struct reference *reference, unsigned host, const struct decision *decision)
{
	for (int which = 0; which < 2; which++) {
		uint64_t bytes = measured_bytes(reference, host, which);

		if (chose_round(decision, PAGECLEAR_COLD, PC_CACHED, bytes) ||
		    chose_round(decision, PAGECLEAR_HOT, PC_CACHED, bytes))
			return false;
	}
	return true;
}

/* Flushed memory: whichever side the figures favour by more than 15 %. */
static bool flushed_concluded(const struct reference *reference, unsigned host, const struct decision *decision)
{
	for (int which = 0; which < 2; which++) {
		uint64_t bytes = measured_bytes(reference, host, which);
		double l = log(least_ns(reference, host, true, PHASE_CLEAR, PC_FLUSHED, bytes) /
		               least_ns(reference, host, false, PHASE_CLEAR, PC_FLUSHED, bytes));

		if (fabs(l) > 0.15 && chose_round(decision, PAGECLEAR_COLD, PC_FLUSHED, bytes) != (l < 0))
			return false;
	}
	return true;
}

/* "Tell clearing from scrubbing": MOVNTI's or CLZERO's side, for both victims of all machines. */
static bool scrub_concluded(const struct reference *reference, unsigned host, const struct decision *decision)
{
	return chose_round(decision, PAGECLEAR_SCRUB, PC_UNKNOWN, measured_bytes(reference, host, 0)) &&
	       chose_round(decision, PAGECLEAR_SCRUB, PC_UNKNOWN, measured_bytes(reference, host, 1));
}

static void test_beulich_figures(void)
{
	struct reference reference;

	if (!load(&reference, reference_beulich))
		return;
	CU_ASSERT_EQUAL(reference.hosts, 8);
	for (unsigned host = 0; host < reference.hosts; host++) {
		struct calibrated decided;

		decide_figures(&reference, host, &decided);
		CU_ASSERT_PTR_NOT_NULL(calibrated_table(&decided.decision, PAGECLEAR_COLD, PC_CACHED));
		CU_ASSERT_PTR_NOT_NULL(calibrated_table(&decided.decision, PAGECLEAR_SCRUB, PC_UNKNOWN));
		CU_ASSERT_PTR_NULL(calibrated_table(&decided.decision, PAGECLEAR_HOT, PC_CACHED)); /* no reads there */
		CU_ASSERT_TRUE(warm_concluded(&reference, host, &decided.decision));
		CU_ASSERT_TRUE(flushed_concluded(&reference, host, &decided.decision));
		CU_ASSERT_TRUE(scrub_concluded(&reference, host, &decided.decision));
		calibration_free(&decided);
	}
	reference_free(&reference);
}

/* With the weight that the design chose no cell of the sixteen is rep stos's. */
static void test_scrub_weight(void)
{
	struct reference reference;

	if (!load(&reference, reference_beulich))
		return;
	for (unsigned host = 0; host < reference.hosts; host++)
		for (int which = 0; which < 2; which++) {
			enum phase victim = which == 0 ? PHASE_VICTIM_L1 : PHASE_VICTIM_L2;
			uint64_t bytes = measured_bytes(&reference, host, which);

			CU_ASSERT(least_ns(&reference, host, true, victim, PC_FLUSHED, bytes) <
			          least_ns(&reference, host, false, victim, PC_FLUSHED, bytes));
		}
	reference_free(&reference);
}

/* At the two sizes of its table: clear what is cached, what is flushed, to use it or not; scrub. The smallest scrub
 * that a calibration tries is 4 KiB. */
static void beulich_questions(struct tally *tally, const struct calibrated *calibration, const struct sim_host *host)
{
	struct truth truth = {.host = host, .threads = 1, .scrub_weight = calibrate_scrub_weight};

	for (int which = 0; which < 2; which++) {
		uint64_t bytes = (which == 0 ? host->l1_bytes : host->l2_bytes) / 2;

		for (truth.prior = PC_CACHED; truth.prior <= PC_FLUSHED; truth.prior++) {
			truth.intent = PAGECLEAR_COLD;
			ask(tally, calibration, &truth, bytes);
			truth.intent = PAGECLEAR_HOT;
			ask(tally, calibration, &truth, bytes);
		}
		truth.intent = PAGECLEAR_SCRUB;
		truth.prior = PC_UNKNOWN;
		ask(tally, calibration, &truth, bytes < 4 * KIB ? 4 * KIB : bytes);
	}
}

static void test_beulich_calibrations(void)
{
	struct reference reference;

	if (!load(&reference, reference_beulich))
		return;
	for (unsigned host = 0; host < reference.hosts; host++)
		expect_in_calibrations(&reference.host[host], beulich_questions, false);
	reference_free(&reference);
}

static const struct unit_test tests[] = {
	{"Arora's figures", test_arora_figures},
	{"Arora's hosts calibrated", test_arora_calibrations},
	{"Beulich's figures", test_beulich_figures},
	{"scrub weight", test_scrub_weight},
	{"Beulich's hosts calibrated", test_beulich_calibrations},
};

UNIT_MAIN("reference", tests)
