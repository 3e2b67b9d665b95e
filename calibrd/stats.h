/*
 * Order statistics for skewed timings. Pure. Inputs are not changed; NaN must not occur.
 * Sources: the order-statistic (sign-test) interval of a median, e.g. Conover, Practical Nonparametric Statistics, 3.2.
 */
#ifndef CALIBRD_STATS_H
#define CALIBRD_STATS_H

#include <stddef.h>

struct interval {
	double low, high;
};

/* NaN for n = 0. The mean of the two middle values for even n. */
double stats_median(const double *x, size_t n);

/* Median absolute deviation from the median, unscaled. */
double stats_mad(const double *x, size_t n);

/* The q-quantile (0..1) by linear interpolation between order statistics; NaN for n = 0. */
double stats_quantile(const double *x, size_t n, double q);

/* P(X <= k) of a binomial with n trials of probability 1/2. */
double stats_binomial_half(size_t k, size_t n);

/* Distribution-free interval of the median with at least `confidence` (two-sided, e.g. 0.95) coverage.
 * Infinite on both sides where n is too small for that (n < 6 at 0.95). */
struct interval stats_median_interval(const double *x, size_t n, double confidence);

/* One-sided p-value of "the median is not below bound": the chance of so many values below it were the median at it.
 * Values equal to bound count for neither side. 1 for n = 0. */
double stats_sign_below(const double *x, size_t n, double bound);

#endif
