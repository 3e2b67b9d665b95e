/* What verifications found; see store.h. */
#include <errno.h>
#include <pageclear/policy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrd/store_internal.h"

static int save_series(struct store *store, int64_t verification, const struct verified *series, struct pc_why *why)
{
	struct verified_row row = {.verification = verification, .v = *series, .passed = series->passed};
	snprintf(row.intent, sizeof(row.intent), "%s", pc_intent_name(series->intent));
	snprintf(row.prior, sizeof(row.prior), "%s", pc_prior_name(series->prior));
	return sql_run(store->sql, SAVE_VERIFIED, &row, why);
}

static int save(struct store *store, struct verification_row *row, const struct verified *series, size_t count,
                struct pc_why *why)
{
	int r = sql_run(store->sql, SAVE_VERIFICATION, row, why);
	for (size_t i = 0; r >= 0 && i < count; i++)
		r = save_series(store, row->v.id, &series[i], why);
	return r < 0 ? r : 0;
}

int store_verify(struct store *store, struct verification *verification, const struct verified *series, size_t count,
                 struct pc_why *why)
{
	struct verification_row row = {.v = *verification, .passed = verification->passed};
	row.v.at = store_time(row.v.at);
	int r = sql_begin(store->sql, why);
	if (r >= 0)
		r = sql_end(store->sql, save(store, &row, series, count, why), why);
	if (r < 0)
		return r;
	verification->id = row.v.id;
	return 0;
}

/* Takes over what the row owns, also when it fails. */
static int keep(struct verification **list, size_t *count, struct verification_row *row, struct pc_why *why)
{
	struct verification *grown = reallocarray(*list, *count + 1, sizeof(**list));
	row->v.passed = row->passed != 0;
	if (!grown) {
		store_verification_free(&row->v);
		return pc_why(why, -ENOMEM, "database: out of memory");
	}
	*list = grown;
	grown[(*count)++] = row->v;
	return 0;
}

int store_verifications(struct store *store, size_t most, struct verification **out, size_t *count, struct pc_why *why)
{
	struct verification_row asked = {.most = store_limit(most)};
	struct verification *list = NULL;
	size_t n = 0;
	int r = sql_start(store->sql, LIST_VERIFICATIONS, &asked, why);
	while (r == 0) {
		struct verification_row row = {0};
		r = sql_row(store->sql, LIST_VERIFICATIONS, &row, why);
		if (r == 0)
			r = keep(&list, &n, &row, why);
		else
			store_verification_free(&row.v);
	}
	sql_stop(store->sql, LIST_VERIFICATIONS);
	if (r < 0) {
		for (size_t i = 0; i < n; i++)
			store_verification_free(&list[i]);
		free(list);
		return r;
	}
	*out = list;
	*count = n;
	return 0;
}

static int intent_of(const char *name, unsigned *intent, struct pc_why *why)
{
	for (unsigned i = PAGECLEAR_HOT; i <= PAGECLEAR_SCRUB; i++) {
		if (strcmp(name, pc_intent_name(i)))
			continue;
		*intent = i;
		return 0;
	}
	return pc_why(why, -EUCLEAN, "database: an intent is \"%s\"", name);
}

static int prior_of(const char *name, enum pc_prior *prior, struct pc_why *why)
{
	for (unsigned i = 0; i < PC_PRIORS; i++) {
		if (strcmp(name, pc_prior_name(i)))
			continue;
		*prior = i;
		return 0;
	}
	return pc_why(why, -EUCLEAN, "database: a prior is \"%s\"", name);
}

static int understand(struct verified_row *row, struct pc_why *why)
{
	int r = intent_of(row->intent, &row->v.intent, why);
	row->v.passed = row->passed != 0;
	return r < 0 ? r : prior_of(row->prior, &row->v.prior, why);
}

int store_verified(struct store *store, int64_t verification, struct verified **out, size_t *count, struct pc_why *why)
{
	struct verified_row asked = {.verification = verification};
	struct verified *list = NULL;
	size_t n = 0;
	int r = sql_start(store->sql, LOAD_VERIFIED, &asked, why);
	while (r == 0) {
		struct verified_row row = {0};
		r = sql_row(store->sql, LOAD_VERIFIED, &row, why);
		if (r == 0)
			r = understand(&row, why);
		if (r != 0)
			break;
		struct verified *grown = reallocarray(list, n + 1, sizeof(*list));
		if (grown) {
			list = grown;
			list[n++] = row.v;
		} else {
			r = pc_why(why, -ENOMEM, "database: out of memory");
		}
	}
	sql_stop(store->sql, LOAD_VERIFIED);
	if (r < 0) {
		free(list);
		return r;
	}
	*out = list;
	*count = n;
	return 0;
}

void store_verification_free(struct verification *verification)
{
	free(verification->against);
	free(verification->soft);
	verification->against = verification->soft = NULL;
}
