/*
 * Known values: binomial tables, hand-made medians, and every pattern of signs for the interval's coverage.
 */
#include "calibrd/stats.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/harness.h"

#define NEAR(actual, expected, tolerance) CU_ASSERT_DOUBLE_EQUAL(actual, expected, tolerance)
#define MEDIAN(...) stats_median((const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* xorshift64: the same numbers on every run. */
static uint64_t next(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void test_median(void)
{
	CU_ASSERT(isnan(stats_median(NULL, 0)));
	CU_ASSERT_EQUAL(MEDIAN(5), 5);
	CU_ASSERT_EQUAL(MEDIAN(3, 1), 2);
	CU_ASSERT_EQUAL(MEDIAN(9, 1, 4), 4);
	CU_ASSERT_EQUAL(MEDIAN(4, 1, 3, 2), 2.5);
	CU_ASSERT_EQUAL(MEDIAN(7, 7, 7, 7, 1), 7);
	CU_ASSERT_EQUAL(MEDIAN(-3, -1, -2), -2);
	CU_ASSERT_EQUAL(MEDIAN(-INFINITY, 2, INFINITY), 2);
}

static void test_mad(void)
{
	/* Deviations from 2: 1 1 0 0 2 4 7; their median is 1. */
	const double x[] = {1, 1, 2, 2, 4, 6, 9};
	CU_ASSERT_EQUAL(stats_mad(x, 7), 1);
	CU_ASSERT_EQUAL(x[6], 9);
	CU_ASSERT_EQUAL(stats_mad((const double[]){-4, 10}, 2), 7);
	CU_ASSERT_EQUAL(stats_mad((const double[]){3}, 1), 0);
	CU_ASSERT(isnan(stats_mad(NULL, 0)));
}

static void test_quantile(void)
{
	const double x[] = {40, 10, 30, 20};
	CU_ASSERT_EQUAL(stats_quantile(x, 4, 0), 10);
	CU_ASSERT_EQUAL(stats_quantile(x, 4, 1), 40);
	NEAR(stats_quantile(x, 4, 0.5), 25, 1e-12);
	NEAR(stats_quantile(x, 4, 0.95), 38.5, 1e-12);
	NEAR(stats_quantile(x, 4, 0.1), 13, 1e-12);
	CU_ASSERT_EQUAL(stats_quantile(x, 1, 0.3), 40);
	CU_ASSERT(isnan(stats_quantile(NULL, 0, 0.5)));
}

/* Every rank of small and large inputs, distinct, with ties, all equal: against a sorted copy. */
static void test_ranks_agree_with_sorting(void)
{
	enum { MOST = 3000 };
	static double x[MOST], sorted[MOST];
	uint64_t state = 42;
	const size_t sizes[] = {1, 2, 3, 10, 511, 512, 513, 1024, MOST};
	const uint64_t spans[] = {1, 3, 50, 1u << 30};
	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		for (size_t j = 0; j < sizeof(spans) / sizeof(*spans); j++) {
			size_t n = sizes[i];
			for (size_t k = 0; k < n; k++)
				x[k] = sorted[k] = ((double)(next(&state) % spans[j]) - (double)spans[j] / 2) * 0.37;
			qsort(sorted, n, sizeof(*sorted), ascending);
			for (size_t k = 0; k < n; k += 1 + n / 40)
				NEAR(stats_quantile(x, n, n > 1 ? (double)k / (double)(n - 1) : 0), sorted[k],
				     1e-6 * (double)spans[j]);
			CU_ASSERT_EQUAL(stats_median(x, n), (sorted[(n - 1) / 2] + sorted[n / 2]) / 2);
		}
	}
}

static void test_signed_zeros_are_equal(void)
{
	static double x[2000];
	for (size_t i = 0; i < 2000; i++)
		x[i] = i % 2 ? 0.0 : -0.0;
	CU_ASSERT_EQUAL(stats_median(x, 2000), 0);
	CU_ASSERT_EQUAL(stats_mad(x, 2000), 0);
}

static void test_binomial(void)
{
	/* Cumulative binomial, p = 1/2: n = 6, 10, 20 as in any printed table (Conover, table A3). */
	NEAR(stats_binomial_half(0, 6), 0.0156, 5e-5);
	NEAR(stats_binomial_half(1, 6), 0.1094, 5e-5);
	NEAR(stats_binomial_half(3, 6), 0.6562, 6e-5);
	NEAR(stats_binomial_half(1, 10), 0.0107, 5e-5);
	NEAR(stats_binomial_half(2, 10), 0.0547, 5e-5);
	NEAR(stats_binomial_half(7, 10), 0.9453, 5e-5);
	NEAR(stats_binomial_half(5, 20), 0.0207, 5e-5);
	NEAR(stats_binomial_half(10, 20), 0.5881, 5e-5);
	/* By hand: (1 + 12 + 66) / 4096. */
	CU_ASSERT_EQUAL(stats_binomial_half(2, 12), 79.0 / 4096);
	CU_ASSERT_EQUAL(stats_binomial_half(12, 12), 1);
	CU_ASSERT_EQUAL(stats_binomial_half(0, 0), 1);
}

static void test_binomial_large(void)
{
	/* An odd n is symmetric: exactly half. Far tails and huge n neither overflow nor vanish early. */
	NEAR(stats_binomial_half(499, 999), 0.5, 1e-12);
	NEAR(stats_binomial_half(50000, 100001), 0.5, 1e-9);
	CU_ASSERT_EQUAL(stats_binomial_half(0, 1000), ldexp(1, -1000));
	/* De Moivre-Laplace with continuity correction: Phi((4900.5 - 5000) / 50) = Phi(-1.99) = 0.0233. */
	NEAR(stats_binomial_half(4900, 10000), 0.0233, 1e-4);
	for (size_t k = 1; k < 200; k++)
		CU_ASSERT(stats_binomial_half(k, 200) >= stats_binomial_half(k - 1, 200));
}

/* Ranks of the 95 % interval of a median, from 1: Conover, Practical Nonparametric Statistics, 3rd ed., 3.2 with table
 * A3. The lower one less 1 is the critical value of the two-sided sign test at 5 %: 0 for n = 6, 5 for 20, 9 for 30,
 * 13 for 40, 17 for 50, 39 for 100 (Dixon and Mood, The Statistical Sign Test, JASA 41, 1946). */
static void test_interval_ranks(void)
{
	static const struct {
		size_t n, low, high;
	} known[] = {{6, 1, 6},   {7, 1, 7},   {8, 1, 8},   {9, 2, 8},    {10, 2, 9},   {12, 3, 10},  {15, 4, 12},
	             {17, 5, 13}, {20, 6, 15}, {25, 8, 18}, {30, 10, 21}, {40, 14, 27}, {50, 18, 33}, {100, 40, 61}};
	double x[100];
	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		size_t n = known[i].n;
		for (size_t k = 0; k < n; k++) /* 7 and n have no common factor: all of 1..n, shuffled */
			x[k] = (double)((k * (n % 7 ? 7 : 3)) % n + 1);
		struct interval got = stats_median_interval(x, n, 0.95);
		CU_ASSERT_EQUAL(got.low, (double)known[i].low);
		CU_ASSERT_EQUAL(got.high, (double)known[i].high);
	}
}

static void test_interval_needs_values(void)
{
	const double x[] = {1, 2, 3, 4, 5, 6};
	for (size_t n = 0; n < 6; n++) {
		struct interval got = stats_median_interval(x, n, 0.95);
		CU_ASSERT(isinf(got.low) && got.low < 0);
		CU_ASSERT(isinf(got.high) && got.high > 0);
	}
	CU_ASSERT(isinf(stats_median_interval(x, 6, 0.99).low));
	/* 2 / 64 is missed exactly: allowed. */
	CU_ASSERT_EQUAL(stats_median_interval(x, 6, 0.96875).low, 1);
	CU_ASSERT(isinf(stats_median_interval(x, 6, 0.96876).low));
}

/* All 2^n equally likely patterns of signs about a median of 0: how many intervals hold it. */
static double coverage(size_t n, double confidence)
{
	size_t held = 0;
	double x[16];
	for (unsigned pattern = 0; pattern < 1u << n; pattern++) {
		for (size_t i = 0; i < n; i++)
			x[i] = (pattern >> i & 1) ? 1.0 + (double)i : -1.0 - (double)i;
		struct interval got = stats_median_interval(x, n, confidence);
		held += got.low <= 0 && got.high >= 0;
	}
	return (double)held / (double)(1u << n);
}

static void test_interval_covers(void)
{
	for (size_t n = 6; n <= 13; n++) {
		double got = coverage(n, 0.95);
		CU_ASSERT(got >= 0.95);
		CU_ASSERT(got < 1);
		/* Not wider than it must be: asking for what it has gives the same, asking for more does not. */
		CU_ASSERT_EQUAL(coverage(n, got), got);
		CU_ASSERT(coverage(n, got + 1e-9) > got);
	}
	CU_ASSERT(coverage(10, 0.5) < 0.9);
}

static void test_sign(void)
{
	const double low[] = {-1, -2, -3, -4, -5, -6, -7, -8, -9, 4};
	/* 9 of 10 below: P(X >= 9) = 11 / 1024. */
	NEAR(stats_sign_below(low, 10, 0), 11.0 / 1024, 1e-15);
	/* Ties drop out: 3 below, none above: 1 / 8. */
	CU_ASSERT_EQUAL(stats_sign_below((const double[]){0, 0, -1, -1, -1}, 5, 0), 0.125);
	CU_ASSERT_EQUAL(stats_sign_below((const double[]){1, 2, 3}, 3, 0), 1);
	CU_ASSERT_EQUAL(stats_sign_below((const double[]){2, 2}, 2, 2), 1);
	CU_ASSERT_EQUAL(stats_sign_below(NULL, 0, 0), 1);
	/* The bound counts, not zero. */
	CU_ASSERT_EQUAL(stats_sign_below(low, 10, -9), 1);
}

static const struct unit_test tests[] = {
	{"median", test_median},
	{"mad", test_mad},
	{"quantile", test_quantile},
	{"ranks agree with sorting", test_ranks_agree_with_sorting},
	{"signed zeros are equal", test_signed_zeros_are_equal},
	{"binomial tables", test_binomial},
	{"binomial of large n", test_binomial_large},
	{"interval ranks", test_interval_ranks},
	{"interval needs values", test_interval_needs_values},
	{"interval covers", test_interval_covers},
	{"sign test", test_sign},
};

UNIT_MAIN("stats", tests)
