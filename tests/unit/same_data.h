/*
 * Two datasets to the bit: what was measured, under which keys, in which order.
 */
#ifndef TESTS_SAME_DATA_H
#define TESTS_SAME_DATA_H

#include "calibrd/samples.h"

static inline bool series_same(const struct series *a, const struct series *b)
{
	if (series_compare(&a->key, &b->key) != 0 || a->count != b->count || a->tainted != b->tainted)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (a->rounds[i].ns != b->rounds[i].ns || a->rounds[i].epoch != b->rounds[i].epoch ||
		    a->rounds[i].round != b->rounds[i].round)
			return false;
	return true;
}

/* False where there is nothing to compare. */
static inline bool dataset_same(const struct dataset *a, const struct dataset *b)
{
	bool same = a->count == b->count && a->count > 0;

	for (size_t i = 0; i < a->count && same; i++)
		same = series_same(&a->series[i], &b->series[i]);
	return same;
}

#endif
