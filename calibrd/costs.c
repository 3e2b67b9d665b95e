/* Costs and paired comparisons; see costs.h. */
#include "calibrd/costs.h"

#include <math.h>
#include <stdlib.h>

#include "calibrd/stats.h"

static const enum phase phase_of[] = {
	[COST_CLEAR] = PHASE_CLEAR,         [COST_HOT] = PHASE_CLEAR,           [COST_SINGLE] = PHASE_SINGLE,
	[COST_VICTIM_L1] = PHASE_VICTIM_L1, [COST_VICTIM_L2] = PHASE_VICTIM_L2, [COST_VICTIM_LLC] = PHASE_VICTIM_LLC,
};

static const struct series *series_of(const struct dataset *data, const struct cost_key *key,
                                      const struct cost_way *way, enum phase phase)
{
	struct series_key wanted = {
		.bytes = key->bytes,
		.chunk = way->chunk,
		.threads = (uint16_t)key->threads,
		.kernel = (uint8_t)way->kernel,
		.prior = (uint8_t)key->prior,
		.phase = (uint8_t)phase,
		.page = (uint8_t)(way->base_pages ? PAGE_BASE : page_usual(key->bytes)),
		.backward = way->backward,
	};
	const struct series *found = dataset_find(data, &wanted);

	if (found != NULL || way->chunk != 0)
		return found;
	wanted.page = wanted.page == PAGE_BASE ? PAGE_HUGE : PAGE_BASE; /* a grid lies on one kind at each size */
	return dataset_find(data, &wanted);
}

static int compare_when(unsigned epoch_a, unsigned round_a, unsigned epoch_b, unsigned round_b)
{
	if (epoch_a != epoch_b)
		return epoch_a < epoch_b ? -1 : 1;
	return round_a < round_b ? -1 : round_a > round_b;
}

static void copy_series(const struct series *series, struct cost_points *out)
{
	out->count = 0;
	for (size_t i = 0; series != NULL && i < series->count && i < COST_POINTS; i++) {
		out->value[i] = (double)series->rounds[i].ns;
		out->epoch[i] = series->rounds[i].epoch;
		out->round[i] = series->rounds[i].round;
		out->count++;
	}
}

/* Adds a second phase to the rounds that hold both, and drops the others. */
static void add_series(const struct series *series, struct cost_points *out)
{
	size_t kept = 0, j = 0;

	for (size_t i = 0; series != NULL && i < out->count; i++) {
		while (j < series->count &&
		       compare_when(series->rounds[j].epoch, series->rounds[j].round, out->epoch[i], out->round[i]) < 0)
			j++;
		if (j == series->count)
			break;
		if (compare_when(series->rounds[j].epoch, series->rounds[j].round, out->epoch[i], out->round[i]) != 0)
			continue;
		out->value[kept] = out->value[i] + (double)series->rounds[j].ns;
		out->epoch[kept] = out->epoch[i];
		out->round[kept++] = out->round[i];
	}
	out->count = kept;
}

static void costs_of_way(const struct dataset *data, const struct cost_key *key, const struct cost_way *way,
                         struct cost_points *out)
{
	copy_series(series_of(data, key, way, phase_of[key->kind]), out);
	if (key->kind == COST_HOT)
		add_series(series_of(data, key, way, PHASE_READ), out);
}

void costs_of(const struct dataset *data, const struct cost_key *key, unsigned kernel, struct cost_points *out)
{
	costs_of_way(data, key, &(struct cost_way){.kernel = kernel}, out);
}

void costs_paired(const struct dataset *data, const struct cost_key *key, unsigned kernel, unsigned other,
                  struct cost_points *out)
{
	costs_paired_ways(data, key, &(struct cost_way){.kernel = kernel}, &(struct cost_way){.kernel = other}, out);
}

void costs_paired_ways(const struct dataset *data, const struct cost_key *key, const struct cost_way *way,
                       const struct cost_way *other, struct cost_points *out)
{
	struct cost_points base;
	size_t kept = 0, j = 0;

	costs_of_way(data, key, way, out);
	costs_of_way(data, key, other, &base);
	for (size_t i = 0; i < out->count; i++) {
		while (j < base.count && compare_when(base.epoch[j], base.round[j], out->epoch[i], out->round[i]) < 0)
			j++;
		if (j == base.count)
			break;
		if (compare_when(base.epoch[j], base.round[j], out->epoch[i], out->round[i]) != 0 ||
		    out->value[i] <= 0 || base.value[j] <= 0)
			continue;
		out->value[kept] = log(out->value[i] / base.value[j]);
		out->epoch[kept] = out->epoch[i];
		out->round[kept++] = out->round[i];
	}
	out->count = kept;
}

double costs_centre(const struct cost_points *points, double *by_epoch)
{
	double medians[COST_EPOCHS];
	size_t count = 0;

	for (size_t e = 0; by_epoch != NULL && e < COST_EPOCHS; e++)
		by_epoch[e] = NAN;
	for (size_t i = 0, end; i < points->count; i = end) {
		for (end = i; end < points->count && points->epoch[end] == points->epoch[i]; end++)
			;
		if (points->epoch[i] >= COST_EPOCHS || count == COST_EPOCHS)
			break;
		medians[count++] = stats_median(points->value + i, end - i);
		if (by_epoch != NULL)
			by_epoch[points->epoch[i]] = medians[count - 1];
	}
	return stats_median(medians, count);
}

double costs_ns(const struct dataset *data, const struct cost_key *key, unsigned kernel)
{
	struct cost_points points;

	costs_of(data, key, kernel, &points);
	return costs_centre(&points, NULL);
}
