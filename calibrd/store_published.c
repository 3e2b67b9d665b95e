/* What was published, word for word; see store.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrd/store_internal.h"

/* FNV-1a, 64 bits: sees the flipped bit in a text that SQLite's own check cannot. */
static void hash_text(const char *text, char out[17])
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	snprintf(out, 17, "%016" PRIx64, hash);
}

int store_publish(struct store *store, const struct published *published, struct pc_why *why)
{
	struct published_row row = {.p = *published};
	if (!published->yaml)
		return pc_why(why, -EINVAL, "a publication without its text");
	hash_text(published->yaml, row.hash);
	row.p.at = store_time(row.p.at);
	int r = sql_run(store->sql, SAVE_PUBLISHED, &row, why);
	if (r == -EEXIST)
		return pc_why(why, r, "generation %" PRIu64 " has been published before", published->generation);
	return r < 0 ? r : 0;
}

int store_retract(struct store *store, uint64_t generation, struct pc_why *why)
{
	int r = sql_run(store->sql, RETRACT_PUBLISHED, &(struct published_row){.p.generation = generation}, why);
	return r < 0 ? r : 0;
}

static int load(struct store *store, enum statement statement, struct published_row *row, struct published *out,
                struct pc_why *why)
{
	char hash[17];
	int r = sql_run(store->sql, statement, row, why);
	if (r == 0) {
		hash_text(row->p.yaml ? row->p.yaml : "", hash);
		if (strcmp(hash, row->hash))
			r = pc_why(why, -EUCLEAN, "database: the text of generation %" PRIu64 " is damaged",
			           row->p.generation);
	}
	if (r == 0)
		*out = row->p;
	else
		free(row->p.yaml);
	return r;
}

int store_published(struct store *store, const char *topology, struct published *out, struct pc_why *why)
{
	return load(store, LOAD_PUBLISHED, &(struct published_row){.wanted = topology}, out, why);
}

int store_generation(struct store *store, uint64_t generation, struct published *out, struct pc_why *why)
{
	return load(store, LOAD_GENERATION, &(struct published_row){.p.generation = generation}, out, why);
}

int store_publications(struct store *store, size_t most, struct published **out, size_t *count, struct pc_why *why)
{
	struct published_row asked = {.most = store_limit(most)};
	struct published *list = NULL;
	size_t n = 0;
	int r = sql_start(store->sql, LIST_PUBLISHED, &asked, why);
	while (r == 0) {
		struct published_row row = {0};
		r = sql_row(store->sql, LIST_PUBLISHED, &row, why);
		if (r != 0)
			break;
		struct published *grown = reallocarray(list, n + 1, sizeof(*list));
		if (grown) {
			list = grown;
			list[n++] = row.p;
		} else {
			r = pc_why(why, -ENOMEM, "database: out of memory");
		}
	}
	sql_stop(store->sql, LIST_PUBLISHED);
	if (r < 0) {
		free(list);
		return r;
	}
	*out = list;
	*count = n;
	return 0;
}
