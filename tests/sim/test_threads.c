/*
 * Hosts on which it matters how many CPUs clear at the same time, or how much one call covers: tables for one thread
 * and for all must differ exactly where it pays.
 */
#include <math.h>

#include "pageclear/policy.h"
#include "tests/sim/calibrate.h"
#include "tests/sim/hosts.h"
#include "tests/sim/reference.h"
#include "tests/sim/truth.h"
#include "tests/unit/harness.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

enum { SEEDS = 5 };

static struct reference reference;

static bool load(int (*read)(struct reference *))
{
	int r;

	if (pc_kernel_find("avxnt") == NULL || pc_kernel_find("clzero") == NULL) {
		unit_skip("the tables are of x86 kernels");
		return false;
	}
	r = read(&reference);
	if (r == 1)
		unit_skip("no reference tables here");
	CU_ASSERT(r == 0 || r == 1);
	return r == 0;
}

/* Enough for 64 MiB of each of 36 threads: a two-socket server has it. */
static int calibrate_server(struct calibrated *out, const struct sim_host *host, uint64_t seed)
{
	return calibrate_with(out, &(struct calibrate_setting){.host = host,
	                                                       .noise = &sim_noise_server,
	                                                       .effort = EFFORT_STANDARD,
	                                                       .seed = seed,
	                                                       .memory_bytes = (uint64_t)32 << 30});
}

/* --- threads ----------------------------------------------------------------------------------------------------- */

struct tally {
	unsigned round, temporal, either, wrong;
};

/* The table's three sizes, the last one as far as it is measured. */
static void ask_threads(struct tally *tally, const struct calibrated *calibration, const struct truth *truth)
{
	static const uint64_t sizes[] = {512 * KIB, 8 * MIB, 64 * MIB};
	const struct pc_table *table =
		calibrated_threads_table(&calibration->decision, truth->intent, truth->prior, truth->threads);

	CU_ASSERT_PTR_NOT_NULL(table);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		enum truth_side side = truth_side(truth, &sim_noise_server, &calibration->data, sizes[i]);
		bool round = truth_goes_round(calibrated_row(table, sizes[i])), wrong;

		wrong = (side == TRUTH_ROUND && !round) || (side == TRUTH_TEMPORAL && round);
		tally->round += side == TRUTH_ROUND;
		tally->temporal += side == TRUTH_TEMPORAL;
		tally->either += side == TRUTH_EITHER;
		tally->wrong += wrong;
		if (wrong)
			calibrated_print(table);
	}
}

static void ask_both(struct tally *one, struct tally *all, const struct calibrated *calibration,
                     const struct sim_host *host)
{
	struct truth truth = {.host = host, .intent = PAGECLEAR_COLD};

	for (truth.prior = PC_CACHED; truth.prior <= PC_FLUSHED; truth.prior++) {
		truth.threads = 1;
		ask_threads(one, calibration, &truth);
		truth.threads = host->cpus;
		ask_threads(all, calibration, &truth);
	}
}

/* "NT never wins with 1 thread, wins from 4-16 MiB with 4-36": by the figures at 8 MiB from 8 threads on. */
static unsigned expect_threads(struct sim_host *host, unsigned threads)
{
	unsigned seeds = calibrate_seeds(SEEDS), good = 0;
	struct tally one = {0}, all = {0};

	host->cpus = threads;
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		struct calibrated calibration;
		unsigned wrong = one.wrong + all.wrong;

		CU_ASSERT_EQUAL_FATAL(calibrate_server(&calibration, host, seed), 0);
		ask_both(&one, &all, &calibration, host);
		good += one.wrong + all.wrong == wrong;
		if (one.wrong + all.wrong != wrong)
			printf("  %u threads, seed %llu\n", threads, (unsigned long long)seed);
		calibration_free(&calibration);
	}
	printf("\n  %2u threads: %u of %u seeds; round the caches: alone %u, together %u questions of %u a seed",
	       threads, good, seeds, one.round / seeds, all.round / seeds, 6);
	CU_ASSERT_EQUAL(one.round, 0);
	CU_ASSERT(all.temporal >= 2 * seeds); /* 512 KiB is nobody's but the caches' */
	CU_ASSERT(threads < 8 || all.round >= 2 * seeds);
	return good;
}

static void test_tables_differ_where_it_pays(void)
{
	unsigned all = 0, good = 0;
	static const unsigned threads[] = {4, 8, 16, 36};

	if (!load(reference_threads))
		return;
	CU_ASSERT_EQUAL(reference.hosts, 1);
	CU_ASSERT_EQUAL(reference.host[0].crowds, 4);
	for (size_t i = 0; i < sizeof(threads) / sizeof(threads[0]); i++) {
		good += expect_threads(&reference.host[0], threads[i]);
		all += calibrate_seeds(SEEDS);
	}
	reference_free(&reference);
	CU_ASSERT(good + calibrate_misses(all) >= all); /* of one host, however many threads */
}

/* Where threads do not change the order of kernels, no choice may differ but by chance. */
static void test_tables_agree_where_threads_do_not_matter(void)
{
	static struct sim_host host;
	unsigned seeds = calibrate_seeds(SEEDS), differ = 0, asked = 0;

	if (pc_kernel_find("clzero") == NULL) {
		unit_skip("the host is an x86 one");
		return;
	}
	host_zen3(&host);
	host.cpus = 4;
	sim_crowd(&host, 4); /* no curves of its own: as with one */
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		struct calibrated calibration;

		CU_ASSERT_EQUAL_FATAL(calibrate_server(&calibration, &host, seed), 0);
		for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED; prior++)
			for (uint64_t bytes = 4 * KIB; bytes <= 64 * MIB; bytes *= 4, asked++) {
				struct truth truth = {
					.host = &host, .intent = PAGECLEAR_COLD, .prior = prior, .threads = 4};
				enum truth_side side = truth_side(&truth, &sim_noise_server, &calibration.data, bytes);
				unsigned row =
					calibrated_row(calibrated_threads_table(&calibration.decision, PAGECLEAR_COLD,
				                                                prior, host.cpus),
				                       bytes);

				differ += (side == TRUTH_ROUND && !truth_goes_round(row)) ||
				          (side == TRUTH_TEMPORAL && truth_goes_round(row));
			}
		calibration_free(&calibration);
	}
	printf("\n  %u of %u choices for four threads are on the wrong side\n", differ, asked);
	CU_ASSERT(differ <= calibrate_misses(seeds));
}

/* Little memory: a crew that could not have its regions takes no part, and that is no error. */
static void test_a_crew_without_memory(void)
{
	static struct sim_host host;
	struct calibrate_setting setting = {
		.host = &host, .noise = &sim_noise_server, .effort = EFFORT_QUICK, .seed = 1};

	host_alike(&host);
	host.cpus = 128;
	sim_crowd(&host, 128);
	for (setting.memory_bytes = MIB; setting.memory_bytes <= (uint64_t)16 << 30; setting.memory_bytes *= 16) {
		struct calibrated calibration;
		bool together;

		CU_ASSERT_EQUAL_FATAL(calibrate_with(&calibration, &setting), 0);
		CU_ASSERT(calibration.mapped_bytes <= setting.memory_bytes);
		together = calibrated_threads_table(&calibration.decision, PAGECLEAR_COLD, PC_FLUSHED, 128) != NULL;
		CU_ASSERT(!together || setting.memory_bytes >= 128 * 2 * MIB);
		CU_ASSERT(together || setting.memory_bytes < (uint64_t)4 << 30);
		calibration_free(&calibration);
	}
}

/* --- chunks ------------------------------------------------------------------------------------------------------ */

static unsigned chunked(const struct decision *decision)
{
	unsigned count = 0;

	for (size_t t = 0; t < decision->table_count; t++)
		for (size_t i = 0; i < decision->tables[t].rule_count; i++)
			count += decision->tables[t].rules[i].chunk != 0;
	return count;
}

/* On Milan rep stos gains from one instruction that covers all, on Icelake nothing depends on the chunk: either way
 * whole extents are best or as good. */
static void test_no_chunks_where_whole_is_best(void)
{
	unsigned seeds = calibrate_seeds(SEEDS), rules = 0;

	if (!load(reference_chunk))
		return;
	CU_ASSERT_EQUAL(reference.hosts, 2);
	for (unsigned host = 0; host < reference.hosts; host++)
		for (uint64_t seed = 1; seed <= seeds; seed++) {
			struct calibrated calibration;

			CU_ASSERT_EQUAL_FATAL(calibrate(&calibration, &reference.host[host], &sim_noise_server,
			                                EFFORT_STANDARD, seed),
			                      0);
			rules += chunked(&calibration.decision);
			calibration_free(&calibration);
		}
	printf("\n  %u rules with a chunk in %u calibrations\n", rules, 2 * seeds);
	CU_ASSERT(rules <= calibrate_misses(seeds));
	reference_free(&reference);
}

/* A kernel that is the best of all from 1 MiB on, and half as fast again when a call covers 64 KiB. */
static void test_chunks_where_they_pay(void)
{
	static struct sim_host host;
	unsigned seeds = calibrate_seeds(SEEDS), found = 0;

	if (pc_kernel_find("clzero") == NULL) {
		unit_skip("the host is an x86 one");
		return;
	}
	host_zen3(&host);
	for (unsigned k = 0; k < pc_kernel_count; k++) {
		host.kernel[k].by_chunk.count = 0;
		sim_point(&host.kernel[k].by_chunk, 64 * KIB, 1.5);
		sim_point(&host.kernel[k].by_chunk, 2 * MIB, 1);
	}
	for (uint64_t seed = 1; seed <= seeds; seed++) {
		struct calibrated calibration;
		const struct pc_table *table;

		CU_ASSERT_EQUAL_FATAL(calibrate(&calibration, &host, &sim_noise_server, EFFORT_STANDARD, seed), 0);
		table = calibrated_table(&calibration.decision, PAGECLEAR_COLD, PC_FLUSHED);
		CU_ASSERT_PTR_NOT_NULL_FATAL(table);
		found += pc_table_rule(table, 16 * MIB)->chunk == 64 * KIB;
		calibration_free(&calibration);
	}
	printf("\n  %u of %u calibrations found the chunk\n", found, seeds);
	CU_ASSERT(20 * found >=
	          19 * seeds); /* what is no chunk's gain must not be taken for one: so some gains are missed */
}

static const struct unit_test tests[] = {
	{"tables differ where it pays", test_tables_differ_where_it_pays},
	{"tables agree where threads do not matter", test_tables_agree_where_threads_do_not_matter},
	{"a crew without memory", test_a_crew_without_memory},
	{"no chunks where whole is best", test_no_chunks_where_whole_is_best},
	{"chunks where they pay", test_chunks_where_they_pay},
};

UNIT_MAIN("threads", tests)
