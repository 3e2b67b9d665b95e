/*
 * A growing list of figures and what is said of one: mean, median, spread. Pure.
 */
#ifndef CALIBCTL_BENCH_VALUES_H
#define CALIBCTL_BENCH_VALUES_H

#include <stddef.h>

/* Zero-initialised = empty. */
struct bench_values {
	double *x;
	size_t count, room;
};

/* 0 or -ENOMEM. */
int bench_values_add(struct bench_values *values, double x);
void bench_values_clear(struct bench_values *values);

/* NaN where there are too few: one for a mean or median, two for a spread. */
double bench_values_mean(const struct bench_values *values);
double bench_values_median(const struct bench_values *values);
double bench_values_stdev(const struct bench_values *values); /* of a sample: over n - 1 */
double bench_values_mad(const struct bench_values *values);   /* median absolute deviation, unscaled */

#endif
