/* Analysis of variance; see bench_variance.h. */
#include "calibctl/bench_variance.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "calibrd/stats.h"

/* The samples that are taken apart: all of the same length, in one allocation. */
struct work {
	size_t count;
	unsigned mappings;
	bool has_clock;
	double *value, *clock; /* relative to their means, centred */
	unsigned *mapping, *late;
	double *sums;   /* a group each */
	size_t *counts; /* likewise */
};

/* What a part takes of the squares, and how many of them chance alone would give it. */
struct taken {
	double squares;
	double freedom;
	bool known; /* false: the part cannot be told */
};

static double mean_of(const double *x, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[i];
	return n > 0 ? sum / (double)n : NAN;
}

static double squares_of(const double *x, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[i] * x[i];
	return sum;
}

static double product_of(const double *x, const double *y, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[i] * y[i];
	return sum;
}

static double variance_of(const double *x, size_t n)
{
	double mean = mean_of(x, n), sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (x[i] - mean) * (x[i] - mean);
	return n > 1 ? sum / (double)(n - 1) : 0;
}

/* Relative deviations from the mean; all 0 where there is none to relate to. */
static void centre(double *x, size_t n)
{
	double mean = mean_of(x, n);

	for (size_t i = 0; i < n; i++)
		x[i] = mean > 0 ? x[i] / mean - 1 : 0;
}

/* --- parts ------------------------------------------------------------------------------------------------------- */

/* Takes each group's own mean away; how many groups have any members. */
static unsigned remove_groups(struct work *work, double *x, const unsigned *group, unsigned groups)
{
	unsigned used = 0;

	for (unsigned g = 0; g < groups; g++) {
		work->sums[g] = 0;
		work->counts[g] = 0;
	}
	for (size_t i = 0; i < work->count; i++) {
		work->sums[group[i]] += x[i];
		work->counts[group[i]]++;
	}
	for (size_t i = 0; i < work->count; i++)
		x[i] -= work->sums[group[i]] / (double)work->counts[group[i]];
	for (unsigned g = 0; g < groups; g++)
		used += work->counts[g] > 0;
	return used;
}

static struct taken take_groups(struct work *work, const unsigned *group, unsigned groups)
{
	double before = squares_of(work->value, work->count);
	unsigned used = remove_groups(work, work->value, group, groups);

	return (struct taken){fmax(0, before - squares_of(work->value, work->count)), used - 1, used > 1};
}

static struct taken take_clock(struct work *work)
{
	double before = squares_of(work->value, work->count), own, slope;

	remove_groups(work, work->clock, work->late, 2); /* its warm-up has been told already */
	own = squares_of(work->clock, work->count);
	if (own <= 0) /* a clock that stands still is to blame for nothing */
		return (struct taken){0, 0, work->has_clock};
	slope = fmin(1, fmax(0, product_of(work->value, work->clock, work->count) / own));
	for (size_t i = 0; i < work->count; i++)
		work->value[i] -= slope * work->clock[i];
	return (struct taken){fmax(0, before - squares_of(work->value, work->count)), 1, true};
}

static double correlation(const struct work *work)
{
	double own = squares_of(work->value, work->count) * squares_of(work->clock, work->count);

	return own > 0 ? product_of(work->value, work->clock, work->count) / sqrt(own) : NAN;
}

static void take_apart(struct work *work, struct variance *out)
{
	double all = squares_of(work->value, work->count), rest, freedom = (double)work->count - 1;
	struct taken taken[VARIANCE_PARTS] = {{0, 0, false}};

	out->clock_correlation = correlation(work);
	taken[VARIANCE_WARM_UP] = take_groups(work, work->late, 2);
	taken[VARIANCE_CLOCK] = take_clock(work);
	taken[VARIANCE_PLACEMENT] = take_groups(work, work->mapping, work->mappings);
	rest = squares_of(work->value, work->count);
	for (enum variance_part part = VARIANCE_WARM_UP; part < VARIANCE_REST; part++)
		freedom -= taken[part].freedom;
	if (all <= 0 || freedom < 1)
		return;
	out->share[VARIANCE_REST] = 1;
	for (enum variance_part part = VARIANCE_WARM_UP; part < VARIANCE_REST; part++) {
		double by_chance = taken[part].freedom * rest / freedom;

		if (!taken[part].known)
			continue;
		out->share[part] = fmax(0, taken[part].squares - by_chance) / all;
		out->share[VARIANCE_REST] -= out->share[part];
	}
}

/* --- life -------------------------------------------------------------------------------------------------------- */

static int work_new(struct work *work, size_t count, unsigned mappings)
{
	size_t groups = mappings > 2 ? mappings : 2;

	*work = (struct work){
		.mappings = mappings,
		.value = calloc(count, sizeof(double)),
		.clock = calloc(count, sizeof(double)),
		.mapping = calloc(count, sizeof(unsigned)),
		.late = calloc(count, sizeof(unsigned)),
		.sums = calloc(groups, sizeof(double)),
		.counts = calloc(groups, sizeof(size_t)),
	};
	return work->value != NULL && work->clock != NULL && work->mapping != NULL && work->late != NULL &&
	                       work->sums != NULL && work->counts != NULL
	               ? 0
	               : -ENOMEM;
}

static void work_free(struct work *work)
{
	free(work->value);
	free(work->clock);
	free(work->mapping);
	free(work->late);
	free(work->sums);
	free(work->counts);
}

static void fill(struct work *work, const struct variance_sample *samples, size_t count, bool tainted_too)
{
	work->count = 0;
	for (size_t i = 0; i < count; i++) {
		if (samples[i].tainted && !tainted_too)
			continue;
		work->value[work->count] = samples[i].value;
		work->clock[work->count] = samples[i].reference;
		work->mapping[work->count] = samples[i].mapping;
		work->late[work->count++] = samples[i].turn > 0;
	}
}

static unsigned count_mappings(const struct variance_sample *samples, size_t count)
{
	unsigned most = 0;

	for (size_t i = 0; i < count; i++)
		if (samples[i].mapping >= most)
			most = samples[i].mapping + 1;
	return most;
}

/* What the variance loses when the tainted samples are left out; NaN where too few others remain. */
static double taint_share(struct work *work, struct variance *out, const struct variance_sample *samples)
{
	double all = out->stdev * out->stdev, clean;

	fill(work, samples, out->count, false);
	clean = variance_of(work->value, work->count);
	out->clean_mean = mean_of(work->value, work->count);
	out->clean_stdev = work->count > 1 ? sqrt(clean) : NAN;
	if (2 * work->count < out->count) {
		fill(work, samples, out->count, true);
		return NAN;
	}
	return all > 0 ? fmax(0, 1 - clean / all) : NAN;
}

static void find(struct work *work, struct variance *out, const struct variance_sample *samples)
{
	fill(work, samples, out->count, true);
	out->mean = mean_of(work->value, work->count);
	out->median = stats_median(work->value, work->count);
	out->stdev = out->count > 1 ? sqrt(variance_of(work->value, work->count)) : NAN;
	for (size_t i = 0; i < out->count; i++)
		out->tainted += samples[i].tainted;
	out->share[VARIANCE_TAINT] = taint_share(work, out, samples);
	work->has_clock = mean_of(work->clock, work->count) > 0;
	centre(work->value, work->count);
	centre(work->clock, work->count);
	take_apart(work, out);
}

int variance_find(struct variance *out, const struct variance_sample *samples, size_t count)
{
	struct work work;
	int r;

	*out = (struct variance){.count = count,
	                         .mappings = count_mappings(samples, count),
	                         .mean = NAN,
	                         .median = NAN,
	                         .stdev = NAN,
	                         .clean_mean = NAN,
	                         .clean_stdev = NAN,
	                         .clock_correlation = NAN};
	for (enum variance_part part = 0; part < VARIANCE_PARTS; part++)
		out->share[part] = NAN;
	if (count == 0)
		return 0;
	r = work_new(&work, count, out->mappings);
	if (r == 0)
		find(&work, out, samples);
	work_free(&work);
	return r;
}

/* --- words ------------------------------------------------------------------------------------------------------- */

const char *variance_part_name(enum variance_part part)
{
	static const char *const names[] = {[VARIANCE_TAINT] = "taint",
	                                    [VARIANCE_WARM_UP] = "warm_up",
	                                    [VARIANCE_CLOCK] = "clock",
	                                    [VARIANCE_PLACEMENT] = "placement",
	                                    [VARIANCE_REST] = "rest"};

	return names[part];
}

const char *variance_part_words(enum variance_part part)
{
	static const char *const words[] = {
		[VARIANCE_TAINT] = "comes with disturbed samples: scheduler, stolen time, a slow spell of the CPU",
		[VARIANCE_WARM_UP] = "is the first sample of a mapping against later ones: warm-up",
		[VARIANCE_CLOCK] = "goes with the reference loop: clock speed",
		[VARIANCE_PLACEMENT] = "lies between mappings: page placement",
		[VARIANCE_REST] = "is none of these: neighbours, interrupts, memory itself"};

	return words[part];
}
