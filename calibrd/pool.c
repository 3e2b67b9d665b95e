/* Many calibrations as one; see pool.h. Pure. */
#include "calibrd/pool.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "calibrd/costs.h"
#include "calibrd/plan.h"
#include "kernels/kernels.h"

/* --- who belongs together ----------------------------------------------------------------------------------------- */

static bool is_noisy(const struct calibration *calibration)
{
	return strcmp(calibration->quality, "noisy") == 0;
}

/* What nobody knows is the same as nothing. */
static bool is_same_text(const char *a, const char *b)
{
	return a != NULL && b != NULL && strcmp(a, b) == 0;
}

/* True if a policy of the older one's time failed before the newer one was done. */
static bool has_failed_since(const struct calibration *newer, const struct calibration *older,
                             const struct verification *verifications, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (!verifications[i].passed && strcmp(verifications[i].topology, newer->topology) == 0 &&
		    verifications[i].newest >= older->id && verifications[i].newest < newer->id)
			return true;
	return false;
}

bool pool_fits(const struct calibration *newer, const struct calibration *older,
               const struct verification *verifications, size_t count)
{
	enum effort effort = effort_find(older->effort), least = effort_find(newer->effort);

	return older->state == CALIBRATION_DONE && older->id < newer->id &&
	       strcmp(older->topology, newer->topology) == 0 && is_same_text(older->soft, newer->soft) &&
	       !is_noisy(newer) && strcmp(older->quality, newer->quality) == 0 && effort != EFFORTS &&
	       effort >= least && !has_failed_since(newer, older, verifications, count);
}

/* --- epochs ------------------------------------------------------------------------------------------------------- */

enum { LEFT_OUT = UINT8_MAX };

/* New numbers of one part's epochs. */
struct numbers {
	uint8_t of[UINT8_MAX + 1];
};

static size_t find_epochs(const struct dataset *part, bool *seen)
{
	size_t count = 0;

	memset(seen, 0, COST_EPOCHS * sizeof(*seen));
	for (size_t i = 0; i < part->count; i++)
		for (uint32_t j = 0; j < part->series[i].count; j++) {
			uint8_t epoch = part->series[i].rounds[j].epoch;

			if (epoch >= COST_EPOCHS || seen[epoch])
				continue;
			seen[epoch] = true;
			count++;
		}
	return count;
}

size_t pool_epochs(const struct dataset *data)
{
	bool seen[COST_EPOCHS];

	return find_epochs(data, seen);
}

/* The newest's stay as they are. Returns how many numbers are taken; *most: the epochs that are there. */
static size_t keep_numbers(struct numbers *numbers, const struct dataset *part, size_t *most)
{
	bool seen[COST_EPOCHS];
	size_t end = 0;

	for (size_t e = 0; e <= UINT8_MAX; e++)
		numbers->of[e] = (uint8_t)e;
	*most = find_epochs(part, seen);
	for (size_t e = 0; e < COST_EPOCHS; e++)
		end = seen[e] ? e + 1 : end;
	return end;
}

/* At most `most` epochs, spread over the part's time: all kernels race in the first ones, brackets are refined in the
 * last. Returns how many numbers are taken then. */
static size_t give_numbers(struct numbers *numbers, const struct dataset *part, size_t most, size_t taken)
{
	bool seen[COST_EPOCHS];
	size_t count = find_epochs(part, seen), at = 0, given = 0;

	memset(numbers, LEFT_OUT, sizeof(*numbers));
	if (most > count)
		most = count;
	if (taken + most > COST_EPOCHS)
		return taken;
	for (size_t e = 0; e < COST_EPOCHS && given < most; e++) {
		if (!seen[e] || at++ < given * count / most)
			continue;
		numbers->of[e] = (uint8_t)(taken + given++);
	}
	return taken + given;
}

/* --- sizes -------------------------------------------------------------------------------------------------------- */

/* libc's series of a part as the grid has them: a size an entry and condition. */
struct asked {
	size_t count;
	const struct series_key **keys;
};

static int find_asked(struct asked *asked, const struct dataset *part)
{
	asked->count = 0;
	asked->keys = calloc(part->count + 1, sizeof(const struct series_key *));
	for (size_t i = 0; asked->keys != NULL && i < part->count; i++)
		if (part->series[i].key.kernel == 0 && part->series[i].key.chunk == 0)
			asked->keys[asked->count++] = &part->series[i].key;
	return asked->keys != NULL ? 0 : -ENOMEM;
}

static bool is_same_question(const struct series_key *a, const struct series_key *b)
{
	return a->phase == b->phase && a->prior == b->prior && a->threads == b->threads;
}

/* True if a part measured smaller and larger sizes, but not that one. */
static bool passed_over(const struct asked *asked, const struct series_key *key)
{
	bool below = false, above = false;

	for (size_t i = 0; i < asked->count; i++) {
		const struct series_key *other = asked->keys[i];

		if (!is_same_question(other, key))
			continue;
		if (other->bytes == key->bytes)
			return false;
		below = below || other->bytes < key->bytes;
		above = above || other->bytes > key->bytes;
	}
	return below && above;
}

static bool is_wanted_size(const struct asked *asked, size_t count, const struct series_key *key)
{
	for (size_t p = 0; p < count && count > 1; p++)
		if (passed_over(&asked[p], key))
			return false;
	return true;
}

/* --- series ------------------------------------------------------------------------------------------------------- */

/* One series of one part. */
struct piece {
	const struct series *series;
	size_t part;
};

struct pieces {
	size_t count;
	struct piece *list;
};

/* What the newest measured of: bits of pc_kernels by number of threads. */
static uint32_t kernels_of(const struct dataset *newest, uint16_t threads)
{
	uint32_t kernels = 0;

	for (size_t i = 0; i < newest->count; i++)
		if (newest->series[i].key.threads == threads)
			kernels |= 1u << newest->series[i].key.kernel;
	return kernels;
}

/* Series stand sorted by condition, so that what was found for one holds for the next few. */
static void choose_pieces(struct pieces *out, const struct dataset *const *parts, const struct asked *asked,
                          size_t count, size_t part)
{
	const struct series_key *last = NULL;
	bool wanted = true;
	uint32_t kernels = 0;

	for (size_t i = 0; i < parts[part]->count; i++) {
		const struct series *series = &parts[part]->series[i];
		const struct series_key *key = &series->key;

		if (last == NULL || last->threads != key->threads)
			kernels = kernels_of(parts[0], key->threads);
		if (last == NULL || !is_same_question(last, key) || last->bytes != key->bytes ||
		    (last->chunk == 0) != (key->chunk == 0))
			wanted = key->chunk != 0 || is_wanted_size(asked, count, key);
		last = key;
		if (wanted && (kernels >> key->kernel & 1) != 0)
			out->list[out->count++] = (struct piece){series, part};
	}
}

static int by_key_and_part(const void *a, const void *b)
{
	const struct piece *left = a, *right = b;
	int order = series_compare(&left->series->key, &right->series->key);

	return order != 0 ? order : (left->part > right->part) - (left->part < right->part);
}

/* Appends what is taken of a piece; there is room for it. */
static void append(struct series *out, const struct piece *piece, const struct numbers *numbers)
{
	out->tainted += piece->series->tainted;
	for (uint32_t j = 0; j < piece->series->count; j++) {
		struct round_value value = piece->series->rounds[j];

		value.epoch = numbers[piece->part].of[value.epoch];
		if (value.epoch != LEFT_OUT)
			out->rounds[out->count++] = value;
	}
}

/* The pieces from `first` that have one key. */
static size_t same_key(const struct pieces *pieces, size_t first)
{
	size_t end = first;

	while (end < pieces->count &&
	       series_compare(&pieces->list[end].series->key, &pieces->list[first].series->key) == 0)
		end++;
	return end;
}

static int build(struct dataset *out, const struct pieces *pieces, const struct numbers *numbers)
{
	out->series = calloc(pieces->count + 1, sizeof(*out->series));
	if (out->series == NULL)
		return -ENOMEM;
	out->room = pieces->count + 1;
	for (size_t first = 0, end; first < pieces->count; first = end) {
		struct series *series = &out->series[out->count++];

		series->key = pieces->list[first].series->key;
		end = same_key(pieces, first);
		for (size_t i = first; i < end; i++)
			series->room += pieces->list[i].series->count;
		if (series->room == 0)
			series->room = 1;
		series->rounds = calloc(series->room, sizeof(*series->rounds));
		if (series->rounds == NULL)
			return -ENOMEM;
		for (size_t i = first; i < end; i++)
			append(series, &pieces->list[i], numbers);
	}
	return 0;
}

static void number_epochs(struct numbers *numbers, const struct dataset *const *parts, size_t count)
{
	size_t most, taken = keep_numbers(&numbers[0], parts[0], &most);

	for (size_t p = 1; p < count; p++)
		taken = give_numbers(&numbers[p], parts[p], most, taken);
}

int pool_join(struct dataset *out, const struct dataset *const *parts, size_t count)
{
	struct numbers numbers[POOL_MOST];
	struct asked asked[POOL_MOST] = {{0}};
	struct pieces pieces = {0};
	size_t room = 1;
	int r = 0;

	*out = (struct dataset){0};
	for (size_t p = 0; p < count && r == 0; p++) {
		room += parts[p]->count;
		r = find_asked(&asked[p], parts[p]);
	}
	pieces.list = calloc(room, sizeof(*pieces.list));
	if (r == 0 && pieces.list != NULL) {
		number_epochs(numbers, parts, count);
		for (size_t p = 0; p < count; p++)
			choose_pieces(&pieces, parts, asked, count, p);
		qsort(pieces.list, pieces.count, sizeof(*pieces.list), by_key_and_part);
	}
	r = pieces.list == NULL || r < 0 ? -ENOMEM : build(out, &pieces, numbers);
	if (r < 0)
		dataset_clear(out);
	for (size_t p = 0; p < count; p++)
		free(asked[p].keys);
	free(pieces.list);
	return r;
}
