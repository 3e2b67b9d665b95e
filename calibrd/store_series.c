/* Series as rows, their rounds as blobs; see store_series.h and store.h. */
#include "calibrd/store_series.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrd/stats.h"
#include "calibrd/store_internal.h"
#include "kernels/kernels.h"
#include "libpolicy/document.h"

enum { ROUNDS_FORMAT = 1, ROUND_BYTES = 7 };

size_t store_rounds_bytes(size_t count)
{
	return 1 + count * ROUND_BYTES;
}

int store_rounds_encode(const struct series *series, unsigned char *out)
{
	*out++ = ROUNDS_FORMAT;
	for (uint32_t i = 0; i < series->count; i++, out += ROUND_BYTES) {
		const struct round_value *round = &series->rounds[i];
		uint32_t bits;
		if (!isfinite(round->ns))
			return -EINVAL;
		memcpy(&bits, &round->ns, sizeof(bits));
		out[0] = round->epoch;
		out[1] = (unsigned char)round->round;
		out[2] = (unsigned char)(round->round >> 8);
		for (int byte = 0; byte < 4; byte++)
			out[3 + byte] = (unsigned char)(bits >> (8 * byte));
	}
	return 0;
}

static struct round_value decode_one(const unsigned char *in)
{
	struct round_value round = {.epoch = in[0], .round = (uint16_t)(in[1] | in[2] << 8)};
	uint32_t bits = (uint32_t)in[3] | (uint32_t)in[4] << 8 | (uint32_t)in[5] << 16 | (uint32_t)in[6] << 24;
	memcpy(&round.ns, &bits, sizeof(bits));
	return round;
}

int store_rounds_decode(const struct sql_bytes *blob, uint32_t count, struct series *series)
{
	if (blob->len != store_rounds_bytes(count) || blob->data[0] != ROUNDS_FORMAT)
		return -EUCLEAN;
	struct round_value *rounds = calloc(count ? count : 1, sizeof(*rounds));
	if (!rounds)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++) {
		rounds[i] = decode_one(&blob->data[1 + (size_t)i * ROUND_BYTES]);
		if (!isfinite(rounds[i].ns)) {
			free(rounds);
			return -EUCLEAN;
		}
	}
	series->rounds = rounds;
	series->count = series->room = count;
	return 0;
}

/* --- writing ------------------------------------------------------------------------------------------------- */

/* Room for the longest series, used for all of them. */
struct scratch {
	double *values;
	unsigned char *blob;
};

static int scratch_new(struct scratch *scratch, const struct dataset *data)
{
	size_t most = 1;
	for (size_t i = 0; i < data->count; i++)
		most = data->series[i].count > most ? data->series[i].count : most;
	scratch->values = calloc(most, sizeof(*scratch->values));
	scratch->blob = malloc(store_rounds_bytes(most));
	return scratch->values && scratch->blob ? 0 : -ENOMEM;
}

static void summarise(const struct series *series, double *values, struct series_row *row)
{
	for (uint32_t i = 0; i < series->count; i++)
		values[i] = (double)series->rounds[i].ns;
	row->n = series->count;
	row->tainted = series->tainted;
	row->median = stats_median(values, series->count);
	row->mad = stats_mad(values, series->count);
	row->least = stats_quantile(values, series->count, 0);
}

static void name(const struct series_key *key, struct series_row *row)
{
	row->key = *key;
	row->revision = pc_kernels[key->kernel].revision;
	snprintf(row->kernel, sizeof(row->kernel), "%s", pc_kernels[key->kernel].name);
	snprintf(row->phase, sizeof(row->phase), "%s", phase_name((enum phase)key->phase));
	snprintf(row->prior, sizeof(row->prior), "%s", pc_prior_name((enum pc_prior)key->prior));
	snprintf(row->page, sizeof(row->page), "%s", page_name((enum page_kind)key->page));
	snprintf(row->direction, sizeof(row->direction), "%s", key->backward ? "backward" : "forward");
}

static int save_one(struct store *store, struct series_row *row, const struct series *series, struct scratch *scratch,
                    struct pc_why *why)
{
	const struct series_key *key = &series->key;
	if (key->kernel >= pc_kernel_count || key->phase >= PHASES || key->prior >= PC_PRIORS ||
	    key->page > PAGE_HUGE || key->backward > 1)
		return pc_why(why, -EINVAL, "a series of kernel %u, phase %u, prior %u, page %u", key->kernel,
		              key->phase, key->prior, key->page);
	if (store_rounds_encode(series, scratch->blob) < 0)
		return pc_why(why, -EINVAL, "%s at %llu bytes: a time that is no number", pc_kernels[key->kernel].name,
		              (unsigned long long)key->bytes);
	name(key, row);
	summarise(series, scratch->values, row);
	row->rounds = (struct sql_bytes){scratch->blob, store_rounds_bytes(series->count)};
	int r = sql_run(store->sql, SAVE_SERIES, row, why);
	return r < 0 ? r : sql_run(store->sql, SAVE_ROUNDS, row, why);
}

int store_series_save(struct store *store, int64_t calibration, const struct dataset *data, struct pc_why *why)
{
	struct scratch scratch;
	int r = scratch_new(&scratch, data);
	if (r < 0)
		pc_why(why, r, "database: out of memory");
	for (size_t i = 0; r >= 0 && i < data->count; i++) {
		struct series_row row = {.calibration = calibration, .number = (uint32_t)i};
		r = save_one(store, &row, &data->series[i], &scratch, why);
	}
	free(scratch.values);
	free(scratch.blob);
	return r < 0 ? r : 0;
}

/* --- reading ------------------------------------------------------------------------------------------------- */

static int phase_named(const char *name)
{
	for (int i = 0; i < PHASES; i++)
		if (!strcmp(name, phase_name((enum phase)i)))
			return i;
	return -1;
}

static int prior_named(const char *name)
{
	for (int i = 0; i < PC_PRIORS; i++)
		if (!strcmp(name, pc_prior_name((enum pc_prior)i)))
			return i;
	return -1;
}

static int page_named(const char *name)
{
	return !strcmp(name, page_name(PAGE_BASE)) ? PAGE_BASE : !strcmp(name, page_name(PAGE_HUGE)) ? PAGE_HUGE : -1;
}

/* 1: of a kernel that this program does not have. */
static int key_of(struct series_row *row)
{
	const struct pc_kernel *kernel = pc_kernel_find(row->kernel);
	int phase = phase_named(row->phase), prior = prior_named(row->prior), page = page_named(row->page);
	if (phase < 0 || prior < 0 || page < 0)
		return -EUCLEAN;
	if (!kernel)
		return 1;
	row->key.kernel = (uint8_t)pc_kernel_index(kernel);
	row->key.phase = (uint8_t)phase;
	row->key.prior = (uint8_t)prior;
	row->key.page = (uint8_t)page;
	row->key.backward = strcmp(row->direction, "backward") == 0;
	return 0;
}

typedef int take_row(void *list, const struct series_row *row);

/* Gives each row to `take`; it stops at the first error. */
static int each(struct store *store, int64_t calibration, take_row *take, void *list, struct pc_why *why)
{
	struct series_row asked = {.calibration = calibration};
	int r = sql_start(store->sql, LOAD_SERIES, &asked, why);
	while (r == 0) {
		struct series_row row = {0};
		r = sql_row(store->sql, LOAD_SERIES, &row, why);
		if (r == 0) {
			r = key_of(&row);
			if (r == 0)
				r = take(list, &row);
			if (r < 0)
				pc_why(why, r, "database: a series of calibration %lld: %s", (long long)calibration,
				       strerror(-r));
			r = r > 0 ? 0 : r;
		}
		free(row.rounds.data);
	}
	sql_stop(store->sql, LOAD_SERIES);
	return r < 0 ? r : 0;
}

/* Doubles the room of a list that is full. */
static int grow(void **list, size_t count, size_t *room, size_t size)
{
	if (count < *room)
		return 0;
	size_t more = *room ? *room * 2 : 256;
	void *grown = reallocarray(*list, more, size);
	if (!grown)
		return -ENOMEM;
	*list = grown;
	*room = more;
	return 0;
}

static int take_series(void *list, const struct series_row *row)
{
	struct dataset *data = list;
	void *all = data->series;
	int r = grow(&all, data->count, &data->room, sizeof(*data->series));
	data->series = all;
	if (r < 0)
		return r;
	struct series series = {.key = row->key, .tainted = row->tainted};
	if (row->rounds.data)
		r = store_rounds_decode(&row->rounds, row->n, &series);
	if (r == 0)
		data->series[data->count++] = series;
	return r;
}

/* Both struct series and struct series_summary begin with their key. */
static int by_key(const void *a, const void *b)
{
	return series_compare(a, b);
}

int store_series(struct store *store, int64_t calibration, struct dataset *out, struct pc_why *why)
{
	struct dataset data = {0};
	int r = each(store, calibration, take_series, &data, why);
	if (r < 0) {
		dataset_clear(&data);
		return r;
	}
	if (data.count)
		qsort(data.series, data.count, sizeof(*data.series), by_key);
	*out = data;
	return 0;
}

struct summaries {
	struct series_summary *list;
	size_t count, room;
};

static int take_summary(void *list, const struct series_row *row)
{
	struct summaries *all = list;
	void *grown = all->list;
	int r = grow(&grown, all->count, &all->room, sizeof(*all->list));
	all->list = grown;
	if (r < 0)
		return r;
	all->list[all->count++] = (struct series_summary){
		.key = row->key,
		.count = row->n,
		.tainted = row->tainted,
		.median = row->median,
		.mad = row->mad,
		.least = row->least,
	};
	return 0;
}

int store_summaries(struct store *store, int64_t calibration, struct series_summary **out, size_t *count,
                    struct pc_why *why)
{
	struct summaries all = {0};
	int r = each(store, calibration, take_summary, &all, why);
	if (r < 0) {
		free(all.list);
		return r;
	}
	if (all.count)
		qsort(all.list, all.count, sizeof(*all.list), by_key);
	*out = all.list;
	*count = all.count;
	return 0;
}
