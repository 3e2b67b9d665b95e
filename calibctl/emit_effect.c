/* The meter's word on a tunable; see emit_effect.h. */
#include "calibctl/emit_effect.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibctl/emit_child.h"
#include "calibrd/stats.h"

enum { ANSWER_MOST = 1 << 18, DEADLINE_MS = 60000 };

/* [point][turn], GB/s; NaN where a turn has none. */
struct turns {
	double before[EFFECT_POINTS][EFFECT_TURNS], after[EFFECT_POINTS][EFFECT_TURNS];
};

static int broken(struct pc_why *why)
{
	return pc_why(why, -EBADMSG, "calibctl bench does not answer as expected");
}

/* The cells' order is the points' own: by prior, then by size. */
static int read_cells(struct effect *out, double (*rates)[EFFECT_TURNS], unsigned turn, const json_t *cells)
{
	for (size_t i = 0; i < out->count; i++) {
		const json_t *cell = json_array_get(cells, i), *rate = json_object_get(cell, "gb_per_s");
		const char *prior = json_string_value(json_object_get(cell, "prior"));
		json_int_t bytes = json_integer_value(json_object_get(cell, "size_bytes"));

		if (prior == NULL || bytes <= 0 || strcmp(prior, pc_prior_name(out->points[i].prior)) != 0 ||
		    (uint64_t)bytes != out->points[i].bytes)
			return -EBADMSG;
		rates[i][turn] = json_is_number(rate) ? json_number_value(rate) : NAN;
	}
	return 0;
}

static int take_turn(struct effect *out, double (*rates)[EFFECT_TURNS], unsigned turn, char *sizes,
                     const char *tunables, struct pc_why *why)
{
	char *arguments[] = {"calibctl", "bench",  "table", "--kernels", "libc", "--sizes",
	                     sizes,      "--runs", "1",     "--format",  "json", NULL};
	const struct child_ask ask = {.program = "/proc/self/exe",
	                              .arguments = arguments,
	                              .tunables = tunables,
	                              .most = ANSWER_MOST,
	                              .deadline_ms = DEADLINE_MS,
	                              .blame = "calibctl"};
	char *text = NULL;
	int r = child_ask(&ask, &text, why);

	if (r < 0)
		return r;
	json_t *root = json_loads(text, 0, NULL);
	const json_t *cells = json_object_get(root, "cells");
	r = json_array_size(cells) != out->count ? -EBADMSG : read_cells(out, rates, turn, cells);
	json_decref(root);
	free(text);
	return r < 0 ? broken(why) : 0;
}

/* Of the turns that have one. */
static double median(const double *values)
{
	double kept[EFFECT_TURNS];
	size_t count = 0;

	for (unsigned t = 0; t < EFFECT_TURNS; t++)
		if (isfinite(values[t]))
			kept[count++] = values[t];
	return stats_median(kept, count);
}

static void judge(struct effect_point *point, const double *before, const double *after)
{
	double ratios[EFFECT_TURNS];

	for (unsigned t = 0; t < EFFECT_TURNS; t++)
		ratios[t] = after[t] / before[t];
	point->before = median(before);
	point->after = median(after);
	point->gain = median(ratios);
}

static void lay_out(struct effect *out, const uint64_t *sizes, size_t count)
{
	*out = (struct effect){0};
	for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED; prior++)
		for (size_t i = 0; i < count; i++)
			out->points[out->count++] = (struct effect_point){.prior = prior, .bytes = sizes[i]};
}

int effect_measure(struct effect *out, const char *tunables, const uint64_t *sizes, size_t count, struct pc_why *why)
{
	static struct turns turns;
	char list[EFFECT_SIZES * 24] = "";
	int r = 0;

	lay_out(out, sizes, count);
	for (size_t i = 0; i < count; i++)
		snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s%" PRIu64, i > 0 ? "," : "", sizes[i]);
	for (unsigned turn = 0; turn < EFFECT_TURNS && r == 0; turn++) {
		r = take_turn(out, turns.before, turn, list, NULL, why);
		if (r == 0)
			r = take_turn(out, turns.after, turn, list, tunables, why);
	}
	for (size_t i = 0; i < out->count && r == 0; i++)
		judge(&out->points[i], turns.before[i], turns.after[i]);
	return r;
}
