/* Lists of figures; see bench_values.h. */
#include "calibctl/bench_values.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "calibrd/stats.h"

int bench_values_add(struct bench_values *values, double x)
{
	if (values->count == values->room) {
		size_t room = values->room > 0 ? values->room * 2 : 16;
		double *grown = reallocarray(values->x, room, sizeof(*grown));

		if (grown == NULL)
			return -ENOMEM;
		values->x = grown;
		values->room = room;
	}
	values->x[values->count++] = x;
	return 0;
}

void bench_values_clear(struct bench_values *values)
{
	free(values->x);
	*values = (struct bench_values){0};
}

double bench_values_mean(const struct bench_values *values)
{
	double sum = 0;

	for (size_t i = 0; i < values->count; i++)
		sum += values->x[i];
	return values->count > 0 ? sum / (double)values->count : NAN;
}

double bench_values_median(const struct bench_values *values)
{
	return stats_median(values->x, values->count);
}

/* In two passes: the deviations are small against the values. */
double bench_values_stdev(const struct bench_values *values)
{
	double mean = bench_values_mean(values), sum = 0;

	for (size_t i = 0; i < values->count; i++)
		sum += (values->x[i] - mean) * (values->x[i] - mean);
	return values->count > 1 ? sqrt(sum / (double)(values->count - 1)) : NAN;
}

double bench_values_mad(const struct bench_values *values)
{
	return values->count > 1 ? stats_mad(values->x, values->count) : NAN;
}
