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

static const struct unit_test tests[] = {
	{"good", test_good},
	{"still good", test_still_good},
	{"epochs differ", test_epochs_differ},
	{"many tainted", test_many_tainted},
	{"too little", test_too_little},
	{"emulated", test_emulated},
};

UNIT_MAIN("verdict", tests)
