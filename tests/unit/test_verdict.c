/* Good, noisy and emulated calibrations, made by hand. */
#include "calibrd/verdict.h"

#include <math.h>
#include <string.h>

#include "tests/unit/by_hand.h"

enum { ROUNDS = 6 };

/* Epochs in which kernel 1 costs half of libc, by turns a spread less, just that, a spread more. */
static struct dataset measured(unsigned epochs, double spread)
{
	struct dataset data = {0};

	for (uint64_t bytes = 64 << 10; bytes <= 1 << 20; bytes *= 2)
		for (unsigned epoch = 0; epoch < epochs; epoch++) {
			struct where where = {PHASE_CLEAR, PC_FLUSHED, bytes};

			put_rounds(&data, where, 0, epoch, ROUNDS, (double)bytes);
			put_rounds(&data, where, 1, epoch, ROUNDS,
			           (double)bytes * 0.5 * exp(spread * ((int)(epoch % 3) - 1)));
		}
	return data;
}

static struct verdict verdict_on(struct dataset data, double tainted, bool emulated)
{
	struct verdict verdict;

	verdict_reach(&(struct verdict_facts){&data, 3, tainted, emulated, NULL, NULL}, &verdict);
	dataset_clear(&data);
	return verdict;
}

static void test_good(void)
{
	struct verdict verdict = verdict_on(measured(5, 0.05), 0.02, false);

	CU_ASSERT_STRING_EQUAL(verdict.quality, "good");
	CU_ASSERT(verdict.spread > 0 && verdict.spread < 0.25);
	CU_ASSERT_PTR_NOT_NULL(strstr(verdict.reasons, "2.0 % of samples dropped"));
	CU_ASSERT_PTR_NOT_NULL(strstr(verdict.reasons, "epochs differ by"));
}

static void test_still_good(void)
{
	CU_ASSERT_STRING_EQUAL(verdict_on(measured(5, 0), 0.25, false).quality, "good");
	CU_ASSERT_STRING_EQUAL(verdict_on(measured(3, 0), 0, false).quality, "good");
}

static void test_epochs_differ(void)
{
	struct verdict verdict = verdict_on(measured(6, 0.5), 0, false);

	CU_ASSERT_STRING_EQUAL(verdict.quality, "noisy");
	CU_ASSERT(verdict.spread > 0.25);
}

static void test_many_tainted(void)
{
	struct verdict verdict = verdict_on(measured(5, 0), 0.3, false);

	CU_ASSERT_STRING_EQUAL(verdict.quality, "noisy");
	CU_ASSERT_PTR_NOT_NULL(strstr(verdict.reasons, "30.0 %"));
}

/* No evidence is no good evidence, and is said in words. */
static void test_too_little(void)
{
	for (unsigned epochs = 0; epochs < 3; epochs++) {
		struct verdict verdict = verdict_on(measured(epochs, 0), 0, false);

		CU_ASSERT_STRING_EQUAL(verdict.quality, "noisy");
		CU_ASSERT(isnan(verdict.spread));
		CU_ASSERT_PTR_NOT_NULL(strstr(verdict.reasons, "too few epochs"));
		CU_ASSERT_PTR_NULL(strstr(verdict.reasons, "nan"));
	}
}

/* An emulator is one, however quiet or noisy. */
static void test_emulated(void)
{
	CU_ASSERT_STRING_EQUAL(verdict_on(measured(5, 0), 0, true).quality, "emulated");
	CU_ASSERT_STRING_EQUAL(verdict_on(measured(5, 0.5), 0.9, true).quality, "emulated");
	CU_ASSERT_STRING_EQUAL(verdict_on(measured(0, 0), 0, true).quality, "emulated");
	CU_ASSERT_PTR_NOT_NULL(strstr(verdict_on(measured(5, 0), 0, true).reasons, "emulated"));
}

/* --- spread of the other tables ---------------------------------------------------------------------------------- */

/* Octaves from 64 KiB up in which all is steady when flushed, and kernel 1 costs by turns more and less when cached. */
static struct dataset unsteady_cached(unsigned sizes, enum phase phase)
{
	struct dataset data = measured(6, 0);

	for (unsigned size = 0; size < sizes; size++)
		for (unsigned epoch = 0; epoch < 6; epoch++) {
			uint64_t bytes = (uint64_t)65536 << size;
			double other = exp((int)(epoch % 3) - 1);

			put_rounds(&data, (struct where){PHASE_CLEAR, PC_CACHED, bytes}, 0, epoch, ROUNDS, 1000);
			put_rounds(&data, (struct where){PHASE_CLEAR, PC_CACHED, bytes}, 1, epoch, ROUNDS,
			           phase == PHASE_CLEAR ? 1000 * other : 1000);
			put_rounds(&data, (struct where){PHASE_READ, PC_CACHED, bytes}, 0, epoch, ROUNDS, 9000);
			put_rounds(&data, (struct where){PHASE_READ, PC_CACHED, bytes}, 1, epoch, ROUNDS,
			           phase == PHASE_READ ? 9000 * other : 9000);
		}
	return data;
}

static void test_the_worst_table_counts(void)
{
	struct verdict verdict = verdict_on(unsteady_cached(5, PHASE_CLEAR), 0, false);

	CU_ASSERT_STRING_EQUAL(verdict.quality, "noisy");
	CU_ASSERT_PTR_NOT_NULL(strstr(verdict.reasons, "%: cold, cached"));
	verdict = verdict_on(unsteady_cached(5, PHASE_READ), 0, false);
	CU_ASSERT_STRING_EQUAL(verdict.quality, "noisy");
	CU_ASSERT_PTR_NOT_NULL(strstr(verdict.reasons, "%: hot, cached"));
}

/* Of four sizes the typical one is nearly the worst. */
static void test_a_small_table_does_not_count(void)
{
	struct verdict verdict = verdict_on(unsteady_cached(4, PHASE_CLEAR), 0, false);

	CU_ASSERT_STRING_EQUAL(verdict.quality, "good");
	CU_ASSERT(verdict.spread < 0.01);
}

/* Five sizes, three epochs, and no size in all three of them: a spread of 0 would be a lie. */
static void test_scattered_epochs(void)
{
	struct dataset data = {0};
	struct verdict verdict;

	for (unsigned i = 0; i < 10; i++)
		for (unsigned kernel = 0; kernel < 2; kernel++)
			put_rounds(&data, (struct where){PHASE_CLEAR, PC_FLUSHED, (uint64_t)65536 << i % 5}, kernel,
			           i / 4, ROUNDS, 1000);
	verdict = verdict_on(data, 0, false);
	CU_ASSERT_STRING_EQUAL(verdict.quality, "noisy");
	CU_ASSERT(isnan(verdict.spread));
}

/* --- what else went on ------------------------------------------------------------------------------------------- */

/* A host of which nothing is known. */
static struct surroundings unknown(void)
{
	struct surroundings around = {.turbo = -1, .mains = -1};

	around.seconds = 10;
	around.busy_core = around.busy_cache = around.busy_host = around.stolen = around.throttled = NAN;
	around.quota = around.load_before = around.load_after = around.mhz = around.most_mhz = NAN;
	for (unsigned i = 0; i < PRESSURES; i++)
		around.some[i] = around.full[i] = NAN;
	return around;
}

/* A quiet one: all that can be known is known, and just within its limit. */
static struct surroundings quiet(void)
{
	struct surroundings around = unknown();

	around.busy_core = around.busy_cache = 0.33;
	around.busy_host = 0.5;
	around.stolen = 0.02;
	around.throttled = 0.01;
	around.quota = 2;
	around.some[PRESSURE_MEMORY] = 0.05;
	around.some[PRESSURE_CPU] = around.some[PRESSURE_IO] =
		0.9; /* the CPU's is in the samples, files are no matter */
	return around;
}

static struct verdict verdict_in(const struct surroundings *around, const struct taints *taints)
{
	struct dataset data = measured(5, 0);
	struct verdict verdict;

	verdict_reach(&(struct verdict_facts){.data = &data, .kernels = 3, .taints = taints, .surroundings = around},
	              &verdict);
	dataset_clear(&data);
	return verdict;
}

static bool says(const struct verdict *verdict, const char *part)
{
	if (strstr(verdict->reasons, part) == NULL)
		printf("\n'%s' does not hold '%s'\n", verdict->reasons, part);
	return strstr(verdict->reasons, part) != NULL;
}

/* Noisy, and for that reason alone. */
static bool is_noisy_for(const struct surroundings *around, const char *reason)
{
	struct verdict verdict = verdict_in(around, NULL);

	return says(&verdict, reason) && strchr(strchr(verdict.reasons, ';') + 1, ';') == NULL &&
	       strcmp(verdict.quality, "noisy") == 0;
}

static void test_a_quiet_host(void)
{
	struct surroundings around = quiet();
	struct verdict verdict = verdict_in(&around, &(struct taints){.samples = 100, .rounds = 10, .slow = 2});

	CU_ASSERT_STRING_EQUAL(verdict.quality, "good");
	CU_ASSERT_PTR_NULL(strchr(verdict.reasons, ';'));
	around = unknown();
	verdict = verdict_in(&around, NULL);
	CU_ASSERT_STRING_EQUAL(verdict.quality, "good");
	CU_ASSERT_PTR_NULL(strchr(verdict.reasons, ';'));
	CU_ASSERT_PTR_NULL(strstr(verdict.reasons, "nan"));
}

#define NOISY_WITH(member, value, reason)                                                                              \
	do {                                                                                                           \
		struct surroundings with = quiet();                                                                    \
		with.member = (value);                                                                                 \
		CU_ASSERT(is_noisy_for(&with, reason));                                                                \
	} while (0)

static void test_each_disturbance_is_noisy_and_named(void)
{
	NOISY_WITH(busy_core, 0.4, "; other processes kept the other threads of this core busy for 40 % of the time");
	NOISY_WITH(busy_cache, 0.35, "; other processes kept the other CPUs of this cache busy for 35 % of the time");
	NOISY_WITH(busy_host, 0.6, "; other processes kept the other CPUs busy for 60 % of the time");
	NOISY_WITH(stolen, 0.031, "; the hypervisor took 3.1 % of the time");
	NOISY_WITH(throttled, 0.48, "; a CPU quota of 2 CPUs stopped this group of processes for 48 % of the time");
	NOISY_WITH(some[PRESSURE_MEMORY], 0.07, "; processes waited for memory for 7 % of the time");
}

/* Who is busy beside us on core or cache is counted among the host's, too: said once. */
static void test_busy_is_said_once(void)
{
	struct surroundings around = quiet();

	around.busy_core = around.busy_cache = around.busy_host = 1;
	CU_ASSERT(is_noisy_for(&around, "the other threads of this core busy for 100 %"));
	around.busy_core = NAN;
	CU_ASSERT(is_noisy_for(&around, "the other CPUs of this cache busy for 100 %"));
}

/* Any CPU may share the cache where that is not told. */
static void test_unknown_cache(void)
{
	struct surroundings around = quiet();

	around.busy_cache = NAN;
	CU_ASSERT(is_noisy_for(&around, "the other CPUs busy for 50 %"));
	around.busy_host = 0.3;
	CU_ASSERT_STRING_EQUAL(verdict_in(&around, NULL).quality, "good");
}

/* The group above has another quota than what can be seen from inside. */
static void test_a_quota_from_outside(void)
{
	struct surroundings around = quiet();

	around.throttled = 0.3;
	around.quota = INFINITY;
	CU_ASSERT(is_noisy_for(&around, "; a CPU quota stopped this group"));
}

static void test_a_clock_that_moves(void)
{
	struct taints taints = {.samples = 100, .rounds = 100, .slow = 21};
	struct verdict verdict = verdict_in(NULL, &taints);

	CU_ASSERT_STRING_EQUAL(verdict.quality, "noisy");
	CU_ASSERT(says(&verdict, "; the CPU ran slower than its best in 21 % of the rounds"));
	taints.slow = 20;
	CU_ASSERT_STRING_EQUAL(verdict_in(NULL, &taints).quality, "good");
}

/* Stopped for a while: every sample that is there is as good as any. */
static void test_lost_time(void)
{
	struct taints taints = {.samples = 1000, .lost = 1, .rounds = 100, .passed_ms = 10000, .lost_ms = 3000};
	struct verdict verdict = verdict_in(NULL, &taints);

	CU_ASSERT_STRING_EQUAL(verdict.quality, "noisy");
	CU_ASSERT(says(&verdict, "; the measuring thread did not run for 30 % of the time"));
	taints.lost_ms = 1000;
	CU_ASSERT_STRING_EQUAL(verdict_in(NULL, &taints).quality, "good");
}

static void test_what_samples_were_dropped_for(void)
{
	struct taints taints = {
		.samples = 1000, .lost = 30, .moved = 6, .rounds = 100, .strayed = 1, .stolen = 2, .slow = 0};
	struct verdict verdict = verdict_in(NULL, &taints);

	CU_ASSERT(
		says(&verdict, " of samples dropped (lost time 3.0 %, another CPU 1.6 %, stolen time 2.0 %), epochs"));
	taints = (struct taints){.samples = 1000, .lost = 4, .rounds = 100};
	verdict = verdict_in(NULL, &taints);
	CU_ASSERT(says(&verdict, " of samples dropped, epochs"));
	taints = (struct taints){.cpu = -1};
	verdict = verdict_in(NULL, &taints);
	CU_ASSERT(says(&verdict, " of samples dropped, epochs"));
}

/* No reason for anything, and said wherever it is known. */
static void test_clock_is_told(void)
{
	struct surroundings around = unknown();
	struct verdict verdict;

	strcpy(around.governor, "powersave");
	verdict = verdict_in(&around, NULL);
	CU_ASSERT_STRING_EQUAL(verdict.quality, "good");
	CU_ASSERT(says(&verdict, "; governor powersave"));
	around.turbo = 1;
	around.mains = 0;
	verdict = verdict_in(&around, NULL);
	CU_ASSERT(says(&verdict, "; governor powersave, turbo on; on battery"));
	around.governor[0] = '\0';
	around.turbo = 0;
	around.mains = 1;
	verdict = verdict_in(&around, NULL);
	CU_ASSERT(says(&verdict, "; turbo off"));
	CU_ASSERT_PTR_NULL(strstr(verdict.reasons, "battery"));
}

/* All that can go wrong at once still fits. */
static void test_all_at_once(void)
{
	struct taints taints = {.samples = 100,
	                        .lost = 90,
	                        .moved = 5,
	                        .rounds = 100,
	                        .stolen = 30,
	                        .slow = 40,
	                        .strayed = 20,
	                        .passed_ms = 10,
	                        .lost_ms = 9};
	struct surroundings around = unknown();
	struct dataset data = {0};
	struct verdict verdict;

	around.busy_cache = around.busy_host = around.stolen = around.throttled = around.some[PRESSURE_MEMORY] = 1;
	around.quota = 0.25;
	around.turbo = around.mains = 0;
	memset(around.governor, 'g', sizeof(around.governor) - 1);
	verdict_reach(&(struct verdict_facts){&data, 3, 1, true, &taints, &around}, &verdict);
	CU_ASSERT(says(&verdict, "; other processes"));
	CU_ASSERT(says(&verdict, "; on battery"));
	CU_ASSERT(strlen(verdict.reasons) + 200 < sizeof(verdict.reasons)); /* room for the names of sizes */
}

/* --- sizes that were lost ---------------------------------------------------------------------------------------- */

/* libc and row 1 at one size: so many rounds kept and dropped of each. */
static void put_size(struct dataset *data, uint64_t bytes, enum pc_prior prior, unsigned kept, unsigned dropped)
{
	for (unsigned kernel = 0; kernel < 2; kernel++)
		for (unsigned epoch = 0; epoch < 3; epoch++)
			for (unsigned round = 0; round < kept + dropped; round++) {
				struct series_key key = {.bytes = bytes,
				                         .threads = 1,
				                         .kernel = (uint8_t)kernel,
				                         .prior = (uint8_t)prior};
				struct round_value value = {kernel == 0 ? 1000 : 500, (uint16_t)round, (uint8_t)epoch};

				CU_ASSERT_EQUAL_FATAL(dataset_add(data, &key, &value, round >= kept), 0);
			}
}

/* 1 KiB to 64 MiB; of both priors the sizes from `first` to `last` lose all. */
static struct dataset with_hole(uint64_t first, uint64_t last)
{
	struct dataset data = {0};

	for (uint64_t bytes = 1 << 10; bytes <= 64 << 20; bytes *= 2)
		for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED; prior++) {
			bool lost = bytes >= first && bytes <= last;

			put_size(&data, bytes, prior, lost ? 0 : 60, lost ? 40 : 1);
		}
	return data;
}

/* 4 % of all samples, and yet nothing is known about the largest sizes. */
static void test_lost_sizes_are_noisy_and_named(void)
{
	struct verdict verdict = verdict_on(with_hole(32 << 20, 64 << 20), 0.04, false);

	CU_ASSERT_STRING_EQUAL(verdict.quality, "noisy");
	CU_ASSERT_PTR_NOT_NULL(strstr(verdict.reasons, "; nothing usable at 32 MiB and 64 MiB"));
	verdict = verdict_on(with_hole(UINT64_MAX, 0), 0.02, false);
	CU_ASSERT_STRING_EQUAL(verdict.quality, "good");
	CU_ASSERT_PTR_NULL(strstr(verdict.reasons, "nothing usable"));
}

/* The largest sizes are asked about flushed alone: they count as much as any other. */
static void test_lost_sizes_of_one_prior(void)
{
	struct dataset data = with_hole(UINT64_MAX, 0);
	struct verdict verdict;

	put_size(&data, 128 << 20, PC_FLUSHED, 0, 3);
	put_size(&data, 256 << 20, PC_FLUSHED, 0, 3);
	verdict = verdict_on(data, 0.01, false);
	CU_ASSERT_STRING_EQUAL(verdict.quality, "noisy");
	CU_ASSERT_PTR_NOT_NULL(strstr(verdict.reasons, "; nothing usable at 128 MiB and 256 MiB"));
}

/* Half an octave in a range of sixteen, of one prior: said, and no harm. */
static void test_one_lost_size_is_named(void)
{
	struct dataset data = with_hole(UINT64_MAX, 0);
	struct verdict verdict;

	put_size(&data, 3 << 20, PC_CACHED, 0, 5);
	verdict = verdict_on(data, 0.02, false);
	CU_ASSERT_STRING_EQUAL(verdict.quality, "good");
	CU_ASSERT_PTR_NOT_NULL(strstr(verdict.reasons, "; nothing usable at 3 MiB"));
	data = with_hole(UINT64_MAX, 0);
	put_size(&data, 3 << 20, PC_CACHED, 0, 5);
	put_size(&data, 3 << 20, PC_FLUSHED, 5, 0);
	verdict = verdict_on(data, 0.02, false);
	CU_ASSERT_PTR_NOT_NULL(strstr(verdict.reasons, "; nothing usable at 3 MiB (cached)"));
}

/* Three rounds of libc and a rival are enough for a size, whatever share of it they are; fewer if most came through. */
static void test_few_rounds_may_be_enough(void)
{
	static const struct {
		unsigned kept, dropped;
		bool lost;
	} cases[] = {{0, 1, true}, {1, 20, false}, {1, 0, false}};

	for (size_t i = 0; i < 3; i++) {
		struct dataset data = with_hole(UINT64_MAX, 0);

		put_size(&data, 3 << 20, PC_FLUSHED, cases[i].kept, cases[i].dropped); /* in each of three epochs */
		CU_ASSERT_EQUAL(strstr(verdict_on(data, 0.02, false).reasons, "3 MiB") != NULL, cases[i].lost);
	}
}

/* All of libc's rounds, none of anybody else's. */
static void test_libc_alone_is_lost(void)
{
	struct dataset data = with_hole(UINT64_MAX, 0);

	put_rounds(&data, (struct where){PHASE_CLEAR, PC_FLUSHED, 3 << 20}, 0, 0, ROUNDS, 1000);
	CU_ASSERT_PTR_NOT_NULL(strstr(verdict_on(data, 0.02, false).reasons, "3 MiB"));
}

/* Too many to name: the text still ends properly. */
static void test_many_lost_sizes(void)
{
	struct dataset data = with_hole(1, 16 << 20);
	struct verdict verdict = verdict_on(data, 1, true);
	size_t length = strlen(verdict.reasons);

	CU_ASSERT(length < sizeof(verdict.reasons) - 1);
	CU_ASSERT_STRING_EQUAL(verdict.reasons + length - 18, " and 11 more sizes");
}

static const struct unit_test tests[] = {
	{"lost sizes are noisy and named", test_lost_sizes_are_noisy_and_named},
	{"lost sizes of one prior", test_lost_sizes_of_one_prior},
	{"one lost size is named", test_one_lost_size_is_named},
	{"few rounds may be enough", test_few_rounds_may_be_enough},
	{"libc alone is lost", test_libc_alone_is_lost},
	{"many lost sizes", test_many_lost_sizes},
	{"good", test_good},
	{"still good", test_still_good},
	{"epochs differ", test_epochs_differ},
	{"many tainted", test_many_tainted},
	{"too little", test_too_little},
	{"emulated", test_emulated},
	{"the worst table counts", test_the_worst_table_counts},
	{"a small table does not count", test_a_small_table_does_not_count},
	{"scattered epochs", test_scattered_epochs},
	{"a quiet host", test_a_quiet_host},
	{"each disturbance is noisy and named", test_each_disturbance_is_noisy_and_named},
	{"busy is said once", test_busy_is_said_once},
	{"unknown cache", test_unknown_cache},
	{"a quota from outside", test_a_quota_from_outside},
	{"a clock that moves", test_a_clock_that_moves},
	{"lost time", test_lost_time},
	{"what samples were dropped for", test_what_samples_were_dropped_for},
	{"clock is told", test_clock_is_told},
	{"all at once", test_all_at_once},
};

UNIT_MAIN("verdict", tests)
