/*
 * Series in one sorted array: a few thousand of them, so moving the tail for a new one costs less than a tree would.
 */
#include "calibrd/samples.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ORDER(member)                                                                                                  \
	if (a->member != b->member)                                                                                    \
	return a->member < b->member ? -1 : 1

/* The kernel comes last: rivals under one condition stand side by side. */
int series_compare(const struct series_key *a, const struct series_key *b)
{
	ORDER(phase);
	ORDER(prior);
	ORDER(threads);
	ORDER(page);
	ORDER(bytes);
	ORDER(chunk);
	ORDER(backward);
	ORDER(kernel);
	return 0;
}

/* The first series that is not before the key; data->count if there is none. */
static size_t lower_bound(const struct dataset *data, const struct series_key *key)
{
	size_t low = 0, high = data->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (series_compare(&data->series[middle].key, key) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static int insert(struct dataset *data, size_t at, const struct series_key *key)
{
	if (data->count == data->room) {
		size_t room = data->room ? data->room * 2 : 64;
		struct series *series = reallocarray(data->series, room, sizeof(*series));
		if (!series)
			return -ENOMEM;
		data->series = series;
		data->room = room;
	}
	memmove(&data->series[at + 1], &data->series[at], (data->count - at) * sizeof(*data->series));
	data->series[at] = (struct series){.key = *key};
	data->count++;
	return 0;
}

static int append(struct series *series, const struct round_value *value)
{
	if (series->count == series->room) {
		uint32_t room = series->room ? series->room * 2 : 16;
		struct round_value *rounds = reallocarray(series->rounds, room, sizeof(*rounds));
		if (!rounds)
			return -ENOMEM;
		series->rounds = rounds;
		series->room = room;
	}
	series->rounds[series->count++] = *value;
	return 0;
}

int dataset_add(struct dataset *data, const struct series_key *key, const struct round_value *value, bool tainted)
{
	size_t at = lower_bound(data, key);
	if (at == data->count || series_compare(&data->series[at].key, key)) {
		int r = insert(data, at, key);
		if (r < 0)
			return r;
	}
	if (tainted) {
		data->series[at].tainted++;
		return 0;
	}
	return append(&data->series[at], value);
}

const struct series *dataset_find(const struct dataset *data, const struct series_key *key)
{
	size_t at = lower_bound(data, key);
	if (at == data->count || series_compare(&data->series[at].key, key))
		return NULL;
	return &data->series[at];
}

void dataset_clear(struct dataset *data)
{
	for (size_t i = 0; i < data->count; i++)
		free(data->series[i].rounds);
	free(data->series);
	*data = (struct dataset){0};
}

const char *phase_name(enum phase phase)
{
	static const char *const names[PHASES] = {
		[PHASE_CLEAR] = "clear",         [PHASE_READ] = "read",           [PHASE_SINGLE] = "single",
		[PHASE_VICTIM_L1] = "victim-l1", [PHASE_VICTIM_L2] = "victim-l2", [PHASE_VICTIM_LLC] = "victim-llc",
	};
	return (unsigned)phase < PHASES ? names[phase] : "unknown";
}

const char *page_name(enum page_kind page)
{
	return page == PAGE_BASE ? "base" : page == PAGE_HUGE ? "huge" : "unknown";
}

enum page_kind page_usual(uint64_t bytes)
{
	return bytes < 2 << 20 ? PAGE_BASE : PAGE_HUGE;
}
