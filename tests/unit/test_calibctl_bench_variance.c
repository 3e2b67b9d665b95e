/* Where a deviation comes from: sets whose parts are known by construction. */
#include <math.h>
#include <stdlib.h>

#include "calibctl/bench_variance.h"
#include "calibrd/random.h"
#include "tests/unit/harness.h"

enum { MAPPINGS = 40, TURNS = 50, SAMPLES = MAPPINGS * TURNS };

/* Sums of twelve uniform numbers: close enough to normal, standard deviation 1. */
static double normal(struct random *random)
{
	double sum = -6;

	for (int i = 0; i < 12; i++)
		sum += random_unit(random);
	return sum;
}

/* What a set is made of: standard deviations in percent of the mean. */
struct recipe {
	double mapping, noise;
	double first;          /* how much longer the first sample of each mapping takes, in percent */
	double clock, follows; /* of the reference loop, and how much of that the values follow */
	double taint;          /* of tainted samples, every tenth, which take twice as long besides */
};

static void make(struct variance_sample *samples, const struct recipe *recipe, uint64_t seed)
{
	struct random random = {seed};

	for (unsigned m = 0; m < MAPPINGS; m++) {
		double mapping = recipe->mapping * normal(&random);

		for (unsigned t = 0; t < TURNS; t++) {
			struct variance_sample *sample = &samples[m * TURNS + t];
			double clock = recipe->clock * normal(&random);
			double percent = 100 + mapping + recipe->noise * normal(&random) + recipe->follows * clock;

			*sample = (struct variance_sample){.mapping = m, .turn = t, .reference = 5 * (100 + clock)};
			if (t == 0)
				percent += recipe->first;
			sample->tainted = recipe->taint > 0 && random_below(&random, 10) == 0;
			if (sample->tainted)
				percent += 100 + recipe->taint * normal(&random);
			sample->value = 1200 * percent;
		}
	}
}

static struct variance found_with(const struct recipe *recipe)
{
	static struct variance_sample samples[SAMPLES];
	struct variance found;
	double sum = 0;

	make(samples, recipe, 7);
	CU_ASSERT_EQUAL_FATAL(variance_find(&found, samples, SAMPLES), 0);
	CU_ASSERT_EQUAL(found.count, SAMPLES);
	CU_ASSERT_EQUAL(found.mappings, MAPPINGS);
	CU_ASSERT(found.share[VARIANCE_TAINT] >= 0 && found.share[VARIANCE_TAINT] <= 1);
	for (enum variance_part part = VARIANCE_WARM_UP; part < VARIANCE_PARTS; part++) {
		CU_ASSERT(found.share[part] >= -1e-9 && found.share[part] <= 1 + 1e-9);
		sum += found.share[part];
	}
	CU_ASSERT_DOUBLE_EQUAL(sum, 1, 1e-9);
	return found;
}

#define SHARE(found, part, expected, within) CU_ASSERT_DOUBLE_EQUAL((found).share[part], expected, within)

static void placement(void)
{
	/* 3 and 4 percent: variances 9 and 16. */
	struct variance found = found_with(&(struct recipe){.mapping = 3, .noise = 4});

	SHARE(found, VARIANCE_PLACEMENT, 9.0 / 25, 0.1);
	SHARE(found, VARIANCE_WARM_UP, 0, 0.01);
	SHARE(found, VARIANCE_TAINT, 0, 1e-9);
	SHARE(found, VARIANCE_CLOCK, 0, 0.01); /* it stands still */
	CU_ASSERT_DOUBLE_EQUAL(found.stdev / found.mean, 0.05, 0.01);
	CU_ASSERT_EQUAL(found.tainted, 0);
	CU_ASSERT_DOUBLE_EQUAL(found.clean_mean, found.mean, 1e-6);
	CU_ASSERT(isnan(found.clock_correlation));
}

/* Nothing but noise: no part is made up, however many mappings there are to fit. */
static void noise_alone(void)
{
	struct variance found = found_with(&(struct recipe){.noise = 10, .clock = 1});

	SHARE(found, VARIANCE_REST, 1, 0.02);
	SHARE(found, VARIANCE_PLACEMENT, 0, 0.02);
	CU_ASSERT_DOUBLE_EQUAL(found.clock_correlation, 0, 0.1);
}

static void warm_up(void)
{
	/* One in 50 takes 100 percent longer: a variance of 100^2 * 0.02 * 0.98 = 196 beside 25. */
	struct variance found = found_with(&(struct recipe){.noise = 5, .first = 100});

	SHARE(found, VARIANCE_WARM_UP, 196.0 / 221, 0.03);
	SHARE(found, VARIANCE_REST, 25.0 / 221, 0.03);
}

static void clock_speed(void)
{
	/* Follows it in full: 16 of 16 + 9; by half: 4 of 4 + 9. */
	struct variance found = found_with(&(struct recipe){.noise = 3, .clock = 4, .follows = 1});

	SHARE(found, VARIANCE_CLOCK, 16.0 / 25, 0.05);
	CU_ASSERT_DOUBLE_EQUAL(found.clock_correlation, 0.8, 0.03);
	found = found_with(&(struct recipe){.noise = 3, .clock = 4, .follows = 0.5});
	SHARE(found, VARIANCE_CLOCK, 4.0 / 13, 0.05);
}

/* A clock that moves by a hundredth of a percent cannot be why the values move by ten, even if they go with it; nor can
 * a slower clock make a clear faster. */
static void clock_that_cannot_be_it(void)
{
	struct variance found = found_with(&(struct recipe){.noise = 3, .clock = 0.01, .follows = 1000});

	CU_ASSERT(found.clock_correlation > 0.9);
	SHARE(found, VARIANCE_CLOCK, 0, 0.01);
	SHARE(found, VARIANCE_REST, 1, 0.02);
	found = found_with(&(struct recipe){.noise = 3, .clock = 4, .follows = -1});
	CU_ASSERT(found.clock_correlation < -0.7);
	SHARE(found, VARIANCE_CLOCK, 0, 0.01);
}

static void taint(void)
{
	/* A tenth twice as long, deviating by 50 percent: 0.09 * 100^2 + 0.1 * 50^2 = 1150 beside 16. */
	struct variance found = found_with(&(struct recipe){.noise = 4, .taint = 50});

	SHARE(found, VARIANCE_TAINT, 1150.0 / 1166, 0.02);
	CU_ASSERT(found.tainted > SAMPLES / 15 && found.tainted < SAMPLES / 7);
	CU_ASSERT_DOUBLE_EQUAL(found.clean_mean, 120000, 1200);
	CU_ASSERT_DOUBLE_EQUAL(found.mean / found.clean_mean, 1.1, 0.03);
	CU_ASSERT_DOUBLE_EQUAL(found.clean_stdev / found.clean_mean, 0.04, 0.002);
	SHARE(found, VARIANCE_REST, 1, 0.02);
	/* What the others consist of does not depend on them. */
	found = found_with(&(struct recipe){.mapping = 3, .noise = 4, .taint = 50});
	SHARE(found, VARIANCE_PLACEMENT, 9.0 / 25, 0.1);
}

static void all_together(void)
{
	/* Clean: 36 placement, 100^2 * 0.0196 = 196 warm-up, 16 clock, 9 rest. */
	struct variance found =
		found_with(&(struct recipe){.mapping = 6, .noise = 3, .first = 100, .clock = 4, .follows = 1});

	SHARE(found, VARIANCE_WARM_UP, 196.0 / 257, 0.05);
	SHARE(found, VARIANCE_PLACEMENT, 36.0 / 257, 0.05);
	SHARE(found, VARIANCE_CLOCK, 16.0 / 257, 0.03);
	SHARE(found, VARIANCE_REST, 9.0 / 257, 0.03);
}

/* --- what cannot be told ----------------------------------------------------------------------------------------- */

static void too_few(void)
{
	struct variance_sample samples[3] = {{.value = 10, .reference = 1}, {.value = 12, .reference = 1, .turn = 1}};
	struct variance found;

	CU_ASSERT_EQUAL(variance_find(&found, samples, 0), 0);
	CU_ASSERT(isnan(found.mean) && isnan(found.stdev) && isnan(found.share[VARIANCE_REST]));
	CU_ASSERT_EQUAL(variance_find(&found, samples, 1), 0);
	CU_ASSERT_DOUBLE_EQUAL(found.mean, 10, 1e-12);
	CU_ASSERT(isnan(found.stdev) && isnan(found.share[VARIANCE_REST]) && isnan(found.share[VARIANCE_TAINT]));
	CU_ASSERT_EQUAL(variance_find(&found, samples, 2), 0);
	CU_ASSERT_DOUBLE_EQUAL(found.median, 11, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(found.stdev, sqrt(2), 1e-12);
	CU_ASSERT(isnan(found.share[VARIANCE_REST]));
	samples[0].tainted = true;
	CU_ASSERT_EQUAL(variance_find(&found, samples, 2), 0);
	CU_ASSERT_DOUBLE_EQUAL(found.clean_mean, 12, 1e-12);
	CU_ASSERT(isnan(found.clean_stdev) && isnan(found.share[VARIANCE_REST]));
}

static void nothing_deviates(void)
{
	struct variance_sample samples[20];
	struct variance found;

	for (unsigned i = 0; i < 20; i++)
		samples[i] = (struct variance_sample){.value = 5, .reference = 1, .mapping = i / 5, .turn = i % 5};
	CU_ASSERT_EQUAL(variance_find(&found, samples, 20), 0);
	CU_ASSERT_EQUAL(found.stdev, 0);
	for (enum variance_part part = 0; part < VARIANCE_PARTS; part++)
		CU_ASSERT(isnan(found.share[part]));
	/* But for one that was disturbed. */
	samples[7].tainted = true;
	samples[7].value = 50;
	CU_ASSERT_EQUAL(variance_find(&found, samples, 20), 0);
	CU_ASSERT_DOUBLE_EQUAL(found.share[VARIANCE_TAINT], 1, 1e-9);
	CU_ASSERT(isnan(found.share[VARIANCE_REST]));
}

/* One mapping tells nothing of placement, samples without a reference loop nothing of the clock. */
static void unknown_parts(void)
{
	struct variance_sample samples[30];
	struct random random = {3};
	struct variance found;

	for (unsigned i = 0; i < 30; i++)
		samples[i] = (struct variance_sample){.value = 100 + normal(&random), .turn = i};
	CU_ASSERT_EQUAL(variance_find(&found, samples, 30), 0);
	CU_ASSERT(isnan(found.share[VARIANCE_PLACEMENT]));
	CU_ASSERT(isnan(found.share[VARIANCE_CLOCK]));
	CU_ASSERT_DOUBLE_EQUAL(found.share[VARIANCE_REST] + found.share[VARIANCE_WARM_UP], 1, 1e-9);
}

/* On a host so busy that most samples are disturbed they are all there is. */
static void mostly_tainted(void)
{
	static struct variance_sample samples[SAMPLES];
	struct variance found;

	make(samples, &(struct recipe){.mapping = 3, .noise = 4}, 11);
	for (unsigned i = 0; i < SAMPLES; i++)
		samples[i].tainted = i % 5 != 0;
	CU_ASSERT_EQUAL(variance_find(&found, samples, SAMPLES), 0);
	CU_ASSERT(isnan(found.share[VARIANCE_TAINT]));
	SHARE(found, VARIANCE_PLACEMENT, 9.0 / 25, 0.1);
	CU_ASSERT_EQUAL(found.tainted, SAMPLES / 5 * 4);
}

static const struct unit_test tests[] = {
	{"placement", placement},
	{"noise_alone", noise_alone},
	{"warm_up", warm_up},
	{"clock_speed", clock_speed},
	{"clock_that_cannot_be_it", clock_that_cannot_be_it},
	{"taint", taint},
	{"all_together", all_together},
	{"too_few", too_few},
	{"nothing_deviates", nothing_deviates},
	{"unknown_parts", unknown_parts},
	{"mostly_tainted", mostly_tainted},
};

UNIT_MAIN("calibctl_bench_variance", tests)
