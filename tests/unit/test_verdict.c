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

	verdict_reach(&(struct verdict_facts){&data, 3, tainted, emulated}, &verdict);
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
};

UNIT_MAIN("verdict", tests)
