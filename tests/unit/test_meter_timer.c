/* How much the clock makes it take: by hand, against clocks that are simulated, and with this host's. */
#include "calibrd/meter_timer.h"

#include <math.h>
#include <string.h>

#include "calibrd/random.h"
#include "tests/unit/harness.h"

/* --- by hand ----------------------------------------------------------------------------------------------------- */

static void test_ns(void)
{
	const struct timer timer = {.ns_per_tick = 0.5, .overhead_ticks = 60.5};

	CU_ASSERT_DOUBLE_EQUAL(timer_ns(&timer, 1000, 1), 469.75, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(timer_ns(&timer, 1000, 4), 379, 1e-9);
	CU_ASSERT_EQUAL(timer_ns(&timer, 60, 1), 0);
	CU_ASSERT_EQUAL(timer_ns(&timer, 0, 1000), 0);
	CU_ASSERT_EQUAL(timer_ns(&timer, 1000, 0), 500);
}

/* (jitter / (1 % of what is expected))^2, jitter at least a tick / sqrt(6). */
static void test_repeats(void)
{
	CU_ASSERT_EQUAL(timer_repeats(0.4, 4, 400, 64), 1);
	CU_ASSERT_EQUAL(timer_repeats(0.4, 4, 399, 64), 2);
	CU_ASSERT_EQUAL(timer_repeats(0.4, 4, 200, 64), 4);
	CU_ASSERT_EQUAL(timer_repeats(0.4, 4, 100, 64), 16);
	CU_ASSERT_EQUAL(timer_repeats(0.4, 4, 10, 64), 64);
	CU_ASSERT_EQUAL(timer_repeats(0.4, 4, 10, 2000), 1600);
	CU_ASSERT_EQUAL(timer_repeats(40, 0, 1634, 64), 1); /* 40 / sqrt(6) = 16.33 */
	CU_ASSERT_EQUAL(timer_repeats(40, 0, 1632, 64), 2);
	CU_ASSERT_EQUAL(timer_repeats(40, 0, 1000, 64), 3);
	CU_ASSERT_EQUAL(timer_repeats(40, 30, 1000, 64), 9);
}

static void test_repeats_of_nonsense(void)
{
	CU_ASSERT_EQUAL(timer_repeats(0.4, 4, 0, 64), 64);
	CU_ASSERT_EQUAL(timer_repeats(0.4, NAN, 100, 64), 1); /* the resolution alone */
	CU_ASSERT_EQUAL(timer_repeats(0.4, 4, NAN, 64), 64);
	CU_ASSERT_EQUAL(timer_repeats(0.4, 4, INFINITY, 64), 1);
	CU_ASSERT_EQUAL(timer_repeats(0.4, INFINITY, 100, 64), 64);
	CU_ASSERT_EQUAL(timer_repeats(0, 0, 100, 64), 1);
	CU_ASSERT_EQUAL(timer_repeats(0, 0, 0, 64), 64);
}

/* 1000 ticks less 200 of overhead in 4 regions, 100 ns each: a jitter of 4 ns takes 16 of them. */
static void test_enough(void)
{
	struct timer timer = {.ns_per_tick = 0.5, .overhead_ticks = 50, .jitter_ns = 4};

	CU_ASSERT_EQUAL(timer_enough(&timer, 1000, 4), 16);
	CU_ASSERT_EQUAL(timer_enough(&timer, 200, 4), TIMER_REPEATS_MOST);
	CU_ASSERT_EQUAL(timer_enough(&timer, 0, 1), TIMER_REPEATS_MOST);
	CU_ASSERT_EQUAL(timer_enough(&timer, 1000000, 1), 1);
}

/* --- layouts ----------------------------------------------------------------------------------------------------- */

/* Clocks from good to poor: a Skylake's TSC; a Zen's, which steps by 10 ns; arm64's at 100, 54 and 25 MHz. */
static const struct timer clocks[] = {
	{.ns_per_tick = 0.5, .overhead_ticks = 40, .jitter_ns = 0.6},
	{.ns_per_tick = 0.4, .overhead_ticks = 61, .jitter_ns = 4.1},
	{.ns_per_tick = 10, .overhead_ticks = 2, .jitter_ns = 4.1},
	{.ns_per_tick = 18.5, .overhead_ticks = 1.6, .jitter_ns = 7.6},
	{.ns_per_tick = 40, .overhead_ticks = 0.7, .jitter_ns = 16.4},
};
enum { CLOCKS = sizeof(clocks) / sizeof(clocks[0]) };

static const uint64_t sizes[] = {1,
                                 2,
                                 7,
                                 64,
                                 65,
                                 96,
                                 128,
                                 256,
                                 384,
                                 1000,
                                 1024,
                                 2048,
                                 4095,
                                 4096,
                                 6144,
                                 8191,
                                 8192,
                                 12288,
                                 16384,
                                 24576,
                                 32768,
                                 49152,
                                 65535,
                                 65536,
                                 98304,
                                 131072,
                                 1 << 20,
                                 64 << 20,
                                 (uint64_t)1 << 40};
enum { SIZES = sizeof(sizes) / sizeof(sizes[0]) };

/* 64 bytes a ns and 1 ns a call: about the fastest there is. */
static double length_ns(unsigned count, uint64_t bytes)
{
	return count * (1 + (double)bytes / 64);
}

/* A good clock needs what 8 KiB give, four times below 64 KiB and once from there up; one buffer from 4097 bytes. */
static void test_good_clock(void)
{
	for (unsigned i = 0; i < SIZES; i++) {
		struct timer_batch batch = timer_batch(&clocks[0], sizes[i]);
		uint64_t fit = 8192 / sizes[i];

		CU_ASSERT_EQUAL(batch.count, fit > 64 ? 64 : fit > 1 ? fit : 1);
		CU_ASSERT_EQUAL(batch.least, sizes[i] < 65536 ? 4 : 1);
		CU_ASSERT_EQUAL(batch.repeats, batch.least);
	}
}

/* What is measured depends on the batch: jitter, which comes and goes, must not change it. */
static void test_jitter_changes_no_batch(void)
{
	for (unsigned c = 0; c < CLOCKS; c++)
		for (unsigned i = 0; i < SIZES; i++) {
			struct timer shaky = clocks[c];

			shaky.jitter_ns = 100;
			CU_ASSERT_EQUAL(timer_batch(&shaky, sizes[i]).count, timer_batch(&clocks[c], sizes[i]).count);
			CU_ASSERT(timer_batch(&shaky, sizes[i]).repeats >= timer_batch(&clocks[c], sizes[i]).repeats);
		}
}

static void test_bounds(void)
{
	for (unsigned c = 0; c < CLOCKS; c++)
		for (unsigned i = 0; i < SIZES; i++) {
			struct timer_batch batch = timer_batch(&clocks[c], sizes[i]);

			CU_ASSERT(batch.count >= 1 && batch.count <= TIMER_BATCH_MOST);
			CU_ASSERT(batch.least >= 1 && batch.repeats >= batch.least);
			CU_ASSERT(batch.repeats <= TIMER_REPEATS_MOST);
			CU_ASSERT(batch.count == 1 || batch.count * sizes[i] <= 16384); /* in the smallest L1D */
		}
}

static void test_poorer_clocks_take_more(void)
{
	for (unsigned c = 1; c < CLOCKS; c++)
		for (unsigned i = 0; i < SIZES; i++) {
			struct timer good = clocks[c], poor = clocks[c];
			struct timer_batch few = timer_batch(&good, sizes[i]), many;

			poor.ns_per_tick *= 3;
			poor.jitter_ns *= 3;
			many = timer_batch(&poor, sizes[i]);
			CU_ASSERT(many.count >= few.count);
			CU_ASSERT(many.count * many.repeats >= few.count * few.repeats);
		}
}

/* --- simulated clocks -------------------------------------------------------------------------------------------- */

/* What a clock with steps of that length shows of a region that begins anywhere. */
static double shown_ns(struct random *random, double step_ns, double length)
{
	double start = random_unit(random) * step_ns;

	return (floor((start + length) / step_ns) - floor(start / step_ns)) * step_ns;
}

/* Standard deviation of samples as they are laid out, against what they should show. */
static double sample_error(struct random *random, const struct timer *timer, double step_ns, double length,
                           unsigned repeats)
{
	double squares = 0;

	for (unsigned i = 0; i < 2000; i++) {
		double sum = 0;

		for (unsigned k = 0; k < repeats; k++)
			sum += shown_ns(random, step_ns, length + timer->overhead_ticks * timer->ns_per_tick);
		sum = sum / repeats - timer->overhead_ticks * timer->ns_per_tick;
		squares += (sum - length) * (sum - length);
	}
	return sqrt(squares / 2000) / length;
}

/* Over regions of many lengths around what is expected, the error is below 1 % in the mean of squares (a single length
 * may be worse by a factor of up to 1.22: sqrt(f (1 - f)) instead of its mean over all f). */
static void check_error(const struct timer *timer, double step_ns, double length, unsigned repeats)
{
	struct random random = {17};
	double squares = 0;

	for (unsigned i = 0; i < 20; i++)
		squares += pow(sample_error(&random, timer, step_ns, length * (1 + i * 0.013), repeats), 2);
	CU_ASSERT(sqrt(squares / 20) < 0.0103); /* 2000 samples tell it to a few hundredths */
}

static void test_error_below_one_percent(void)
{
	const double steps[CLOCKS] = {0.5, 10, 10, 18.5, 40};

	for (unsigned c = 0; c < CLOCKS; c++)
		for (unsigned i = 0; i < SIZES; i++) {
			struct timer_batch batch = timer_batch(&clocks[c], sizes[i]);

			check_error(&clocks[c], steps[c], length_ns(batch.count, sizes[i]), batch.repeats);
		}
}

/* One timed region less would not do, wherever the clock decides. */
static void test_no_more_than_needed(void)
{
	unsigned decided = 0;

	for (unsigned i = 0; i < SIZES; i++) {
		struct timer_batch batch = timer_batch(&clocks[4], sizes[i]);
		double length = length_ns(batch.count, sizes[i]);

		if (batch.repeats <= 4)
			continue;
		decided++;
		CU_ASSERT(clocks[4].jitter_ns / sqrt(batch.repeats - 1) > 0.01 * length);
	}
	CU_ASSERT(decided > 5);
}

/* --- this host --------------------------------------------------------------------------------------------------- */

static void test_this_host(void)
{
	struct timer timer;

	memset(&timer, 0xff, sizeof(timer));
	timer_calibrate(&timer);
	CU_ASSERT(timer.ns_per_tick > 0.05 && timer.ns_per_tick < 1100); /* 20 GHz to just under 1 MHz */
	CU_ASSERT(timer.overhead_ticks >= 0 && isfinite(timer.overhead_ticks));
	CU_ASSERT(timer.jitter_ns >= 0 && isfinite(timer.jitter_ns));
	CU_ASSERT(timer_batch(&timer, 64).count >= 64);
}

static const struct unit_test tests[] = {
	{"ns", test_ns},
	{"repeats", test_repeats},
	{"repeats of nonsense", test_repeats_of_nonsense},
	{"enough", test_enough},
	{"good clock", test_good_clock},
	{"jitter changes no batch", test_jitter_changes_no_batch},
	{"bounds", test_bounds},
	{"poorer clocks take more", test_poorer_clocks_take_more},
	{"error below one percent", test_error_below_one_percent},
	{"no more than needed", test_no_more_than_needed},
	{"this host", test_this_host},
};

UNIT_MAIN("meter_timer", tests)
