/* What a difference between rules costs, on measurements made by hand. */
#include "calibctl/diff_cost.h"

#include <string.h>

#include "pageclear/policy.h"
#include "tests/unit/by_hand.h"

#define KIB UINT64_C(1024)

enum { LIBC, FIRST, SECOND, EPOCHS = 3, ROUNDS = 7 };

static struct dataset data;
static struct diff_cost cost;

/* Cold and flushed, alike in all epochs but for `spread`: epoch e costs (1 + spread)^(e - 1) times as much. */
static void measure(unsigned kernel, uint64_t bytes, double ns, double spread, unsigned epochs)
{
	for (unsigned e = 0; e < epochs; e++)
		put_rounds(&data, (struct where){PHASE_CLEAR, PC_FLUSHED, bytes}, kernel, e, ROUNDS,
		           ns * pow(1 + spread, (int)e - 1));
}

/* Sizes 1, 2, 4 ... 64 KiB: FIRST costs half of libc, SECOND a quarter; each with its spread. */
static void measure_all(double spread)
{
	for (uint64_t bytes = KIB; bytes <= 64 * KIB; bytes *= 2) {
		measure(LIBC, bytes, (double)bytes, 0, EPOCHS);
		measure(FIRST, bytes, (double)bytes / 2, spread, EPOCHS);
		measure(SECOND, bytes, (double)bytes / 4, 0, EPOCHS);
	}
}

/* libc below `at`, then a kernel. */
struct sample_table {
	struct pc_rule rules[2];
	struct pc_table table;
};

static void sample(struct sample_table *out, uint64_t at, const char *kernel)
{
	*out = (struct sample_table){.rules = {{.kernel = "libc"}, {.from = at}},
	                             .table = {PAGECLEAR_COLD, PC_FLUSHED, 1, 2, out->rules}};
	snprintf(out->rules[1].kernel, sizeof(out->rules[1].kernel), "%s", kernel);
}

static void compare(struct sample_table *a, struct sample_table *b)
{
	static struct diff_table table;

	table = (struct diff_table){
		.intent = PAGECLEAR_COLD, .prior = PC_FLUSHED, .threads = 1, .a = &a->table, .b = &b->table};
	diff_ranges(&table);
	CU_ASSERT_EQUAL_FATAL(diff_cost(&cost, &data, &table), 0);
}

static void compare_kernels(uint64_t at_a, const char *a, uint64_t at_b, const char *b)
{
	struct sample_table left, right;

	sample(&left, at_a, a);
	sample(&right, at_b, b);
	compare(&left, &right);
}

static const char *name(unsigned kernel)
{
	return pc_kernels[kernel].name;
}

/* From 4 KiB to the last size, 64 KiB: four octaves; beyond that nothing was measured. */
static void half_the_cost(void)
{
	NEEDS_KERNELS(3);
	measure_all(0);
	compare_kernels(4 * KIB, "libc", 4 * KIB, name(FIRST));
	CU_ASSERT_DOUBLE_EQUAL(cost.octaves, 4, 1e-9);
	NEAR(cost.share, -0.5);
	NEAR(cost.least, -0.5);
	NEAR(cost.most, -0.5);
	CU_ASSERT_EQUAL(cost.epochs, EPOCHS);
	CU_ASSERT_EQUAL(cost.verdict, DIFF_LESS);
	CU_ASSERT_TRUE(cost.beyond);
	CU_ASSERT_EQUAL(cost.unmeasured, 0);
	compare_kernels(4 * KIB, name(FIRST), 4 * KIB, "libc");
	NEAR(cost.share, 1);
	CU_ASSERT_EQUAL(cost.verdict, DIFF_MORE);
	dataset_clear(&data);
}

/* Two kernels that are not libc are compared through it: a quarter over a half. */
static void neither_is_libc(void)
{
	NEEDS_KERNELS(3);
	measure_all(0);
	compare_kernels(0, name(FIRST), 0, name(SECOND));
	NEAR(cost.share, -0.5);
	CU_ASSERT_DOUBLE_EQUAL(cost.octaves, 6, 1e-9);
	dataset_clear(&data);
}

/* A crossover that moved between two measured sizes is told by what was measured on both sides. */
static void between_sizes(void)
{
	NEEDS_KERNELS(3);
	measure(LIBC, 4 * KIB, 4096, 0, EPOCHS);
	measure(LIBC, 16 * KIB, 16384, 0, EPOCHS);
	measure(FIRST, 4 * KIB, 4096, 0, EPOCHS);
	measure(FIRST, 16 * KIB, 16384.0 / 4, 0, EPOCHS);
	compare_kernels(8 * KIB, name(FIRST), 8 * KIB, name(FIRST));
	CU_ASSERT_EQUAL(cost.octaves, 0);
	CU_ASSERT_EQUAL(cost.verdict, DIFF_UNKNOWN);
	compare_kernels(8 * KIB, name(FIRST), 4 * KIB, name(FIRST));
	CU_ASSERT_DOUBLE_EQUAL(cost.octaves, 1, 1e-9);
	CU_ASSERT_FALSE(cost.beyond);
	/* l runs from 0 at 4 KiB to -ln 4 two octaves on: a quarter of that in the mean over the first of them. */
	NEAR(cost.share, exp(-log(4) / 4) - 1);
	dataset_clear(&data);
}

/* Epochs half, as dear, twice as dear as libc: nobody knows. */
static void within_the_noise(void)
{
	NEEDS_KERNELS(3);
	for (uint64_t bytes = KIB; bytes <= 8 * KIB; bytes *= 2) {
		measure(LIBC, bytes, (double)bytes, 0, EPOCHS);
		measure(FIRST, bytes, (double)bytes * 1.01, 0.1, EPOCHS);
	}
	compare_kernels(KIB, "libc", KIB, name(FIRST));
	NEAR(cost.share, 0.01);
	NEAR(cost.least, 1.01 / 1.1 - 1);
	NEAR(cost.most, 1.01 * 1.1 - 1);
	CU_ASSERT_EQUAL(cost.verdict, DIFF_NOISE);
	dataset_clear(&data);
}

static void one_epoch_tells_no_noise(void)
{
	NEEDS_KERNELS(3);
	for (uint64_t bytes = KIB; bytes <= 8 * KIB; bytes *= 2) {
		measure(LIBC, bytes, (double)bytes, 0, 1);
		measure(FIRST, bytes, (double)bytes / 2, 0, 1);
	}
	compare_kernels(KIB, "libc", KIB, name(FIRST));
	NEAR(cost.share, -0.5);
	CU_ASSERT_EQUAL(cost.epochs, 1);
	CU_ASSERT_EQUAL(cost.verdict, DIFF_UNKNOWN);
	dataset_clear(&data);
}

/* A kernel that was dropped at large sizes: half an octave behind the last one that it was measured at counts. */
static void partly_measured(void)
{
	NEEDS_KERNELS(3);
	for (uint64_t bytes = KIB; bytes <= 1024 * KIB; bytes *= 2) {
		measure(LIBC, bytes, (double)bytes, 0, EPOCHS);
		measure(SECOND, bytes, (double)bytes, 0, EPOCHS);
		if (bytes <= 4 * KIB)
			measure(FIRST, bytes, (double)bytes / 2, 0, EPOCHS);
	}
	compare_kernels(KIB, "libc", KIB, name(FIRST));
	NEAR(cost.share, -0.5);
	CU_ASSERT_DOUBLE_EQUAL(cost.octaves, 2.5, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(cost.unmeasured, 7.5, 1e-9);
	dataset_clear(&data);
}

/* Scrub's costs are differences: an epoch that has none must not count as one that costs nothing. */
static void scrub_epochs(void)
{
	static struct diff_table table;
	struct sample_table a, b;

	NEEDS_KERNELS(3);
	for (uint64_t bytes = 64 * KIB; bytes <= 256 * KIB; bytes *= 2)
		for (unsigned k = LIBC; k <= FIRST; k++)
			for (unsigned e = 0; e < EPOCHS; e++) {
				put_rounds(&data, (struct where){PHASE_CLEAR, PC_FLUSHED, bytes}, k, e, ROUNDS, 1000);
				for (enum phase phase = PHASE_VICTIM_L1; phase <= PHASE_VICTIM_LLC; phase++)
					put_rounds(&data, (struct where){phase, PC_FLUSHED, bytes}, k, e, ROUNDS,
					           k == LIBC ? 1000 : 100);
			}
	sample(&a, 64 * KIB, "libc");
	sample(&b, 64 * KIB, name(FIRST));
	table = (struct diff_table){
		.intent = PAGECLEAR_SCRUB, .prior = PC_UNKNOWN, .threads = 1, .a = &a.table, .b = &b.table};
	diff_ranges(&table);
	CU_ASSERT_EQUAL_FATAL(diff_cost(&cost, &data, &table), 0);
	CU_ASSERT_EQUAL(cost.epochs, EPOCHS);
	CU_ASSERT(cost.share < -0.5 && cost.share > -0.95);
	dataset_clear(&data);
}

static void nothing_measured(void)
{
	compare_kernels(KIB, "libc", KIB, "movnti");
	CU_ASSERT_EQUAL(cost.octaves, 0);
	CU_ASSERT_TRUE(isnan(cost.share));
	CU_ASSERT_TRUE(cost.beyond);
	CU_ASSERT_EQUAL(cost.verdict, DIFF_UNKNOWN);
}

/* Chunks are measured by spot checks alone, pins change nothing. */
static void chunks_and_pins(void)
{
	struct sample_table a, b;

	NEEDS_KERNELS(3);
	measure_all(0);
	sample(&a, 4 * KIB, name(FIRST));
	sample(&b, 4 * KIB, name(FIRST));
	b.rules[1].chunk = 4096;
	compare(&a, &b);
	CU_ASSERT_EQUAL(cost.octaves, 0);
	CU_ASSERT_DOUBLE_EQUAL(cost.unmeasured, 4, 1e-9);
	b.rules[1].chunk = 0;
	b.rules[1].pinned = true;
	compare(&a, &b);
	CU_ASSERT_EQUAL(cost.unmeasured, 0);
	CU_ASSERT_FALSE(cost.beyond);
	dataset_clear(&data);
}

/* libc stands in for what this version does not know: no difference, measured. */
static void unknown_kernels(void)
{
	NEEDS_KERNELS(3);
	measure_all(0);
	compare_kernels(4 * KIB, name(FIRST), 4 * KIB, "unheard_of");
	NEAR(cost.share, 1);
	dataset_clear(&data);
}

static const struct unit_test tests[] = {
	{"half_the_cost", half_the_cost},
	{"neither_is_libc", neither_is_libc},
	{"between_sizes", between_sizes},
	{"within_the_noise", within_the_noise},
	{"one_epoch_tells_no_noise", one_epoch_tells_no_noise},
	{"partly_measured", partly_measured},
	{"scrub_epochs", scrub_epochs},
	{"nothing_measured", nothing_measured},
	{"chunks_and_pins", chunks_and_pins},
	{"unknown_kernels", unknown_kernels},
};

UNIT_MAIN("calibctl_diff_cost", tests)
