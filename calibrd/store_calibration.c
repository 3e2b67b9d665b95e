/* Calibrations, and the topology and kernels that they refer to; see store.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "calibrd/store_internal.h"
#include "calibrd/store_series.h"
#include "calibrd/topology.h"
#include "kernels/kernels.h"

static const char *const state_names[] = {
	[CALIBRATION_RUNNING] = "running",
	[CALIBRATION_DONE] = "done",
	[CALIBRATION_FAILED] = "failed",
};

static int save_topology(struct sql *sql, const struct topology *topology, struct pc_why *why)
{
	struct topology_row row = {
		.id = topology->id,
		.arch = topology->arch,
		.name = topology->name,
		.key = topology->key,
		.raw = topology->raw,
	};
	return sql_run(sql, SAVE_TOPOLOGY, &row, why);
}

static int save_kernels(struct sql *sql, struct pc_why *why)
{
	int r = 0;
	for (unsigned i = 0; r >= 0 && i < pc_kernel_count; i++) {
		struct kernel_row row = {.name = pc_kernels[i].name, .revision = pc_kernels[i].revision};
		r = sql_run(sql, SAVE_KERNEL, &row, why);
	}
	return r;
}

static int begin(struct store *store, const struct topology *topology, struct calibration_row *row, struct pc_why *why)
{
	int r = save_topology(store->sql, topology, why);
	if (r >= 0)
		r = save_kernels(store->sql, why);
	if (r >= 0)
		r = sql_run(store->sql, BEGIN_CALIBRATION, row, why);
	return r;
}

int store_begin(struct store *store, const struct topology *topology, struct calibration *calibration,
                struct pc_why *why)
{
	struct calibration_row row = {.c = *calibration, .version = PAGECLEAR_VERSION};
	memcpy(row.c.topology, topology->id, sizeof(row.c.topology));
	row.c.started = store_time(row.c.started);
	if (!row.c.soft)
		row.c.soft = topology->soft;
	int r = sql_begin(store->sql, why);
	if (r >= 0)
		r = sql_end(store->sql, begin(store, topology, &row, why), why);
	if (r < 0)
		return r;
	calibration->id = row.c.id;
	calibration->state = CALIBRATION_RUNNING;
	memcpy(calibration->topology, topology->id, sizeof(calibration->topology));
	return 0;
}

static int end(struct store *store, const struct calibration *calibration, enum calibration_state state,
               struct pc_why *why)
{
	struct calibration_row row = {.c = *calibration};
	strcpy(row.state, state_names[state]);
	row.c.finished = store_time(row.c.finished);
	int r = sql_run(store->sql, END_CALIBRATION, &row, why);
	if (r == 1)
		return pc_why(why, -ESRCH, "calibration %lld is not running", (long long)calibration->id);
	return r;
}

static int finish(struct store *store, const struct calibration *calibration, const struct dataset *data,
                  struct pc_why *why)
{
	int r = end(store, calibration, CALIBRATION_DONE, why);
	if (r >= 0)
		r = store_series_save(store, calibration->id, data, why);
	if (r >= 0)
		r = sql_run(store->sql, FORGET_ROUNDS, NULL, why);
	return r < 0 ? r : 0;
}

int store_finish(struct store *store, const struct calibration *calibration, const struct dataset *data,
                 struct pc_why *why)
{
	int r = sql_begin(store->sql, why);
	return r < 0 ? r : sql_end(store->sql, finish(store, calibration, data, why), why);
}

int store_fault(struct store *store, int64_t id, const char *faulted, struct pc_why *why)
{
	char *copy = strdup(faulted);
	if (!copy)
		return pc_why(why, -ENOMEM, "database: out of memory");
	struct calibration_row row = {.c = {.id = id, .faulted = copy}};
	int r = sql_run(store->sql, FAULT_CALIBRATION, &row, why);
	free(copy);
	if (r == 1)
		return pc_why(why, -ESRCH, "calibration %lld is not known", (long long)id);
	return r;
}

int store_fail(struct store *store, int64_t id, const char *reasons, struct pc_why *why)
{
	char *copy = strdup(reasons);
	if (!copy)
		return pc_why(why, -ENOMEM, "database: out of memory");
	struct calibration row = {.id = id, .reasons = copy, .finished = store_now()};
	int r = end(store, &row, CALIBRATION_FAILED, why);
	free(copy);
	return r;
}

static int state_of(struct calibration_row *row, struct pc_why *why)
{
	for (int i = CALIBRATION_RUNNING; i <= CALIBRATION_FAILED; i++) {
		if (strcmp(row->state, state_names[i]))
			continue;
		row->c.state = (enum calibration_state)i;
		return 0;
	}
	return pc_why(why, -EUCLEAN, "database: a calibration is \"%s\"", row->state);
}

static int load(struct store *store, enum statement statement, struct calibration_row *row, struct calibration *out,
                struct pc_why *why)
{
	int r = sql_run(store->sql, statement, row, why);
	if (r == 0)
		r = state_of(row, why);
	if (r == 0)
		*out = row->c;
	else
		store_calibration_free(&row->c);
	return r;
}

int store_latest(struct store *store, const char *topology, struct calibration *out, struct pc_why *why)
{
	return load(store, LOAD_LATEST, &(struct calibration_row){.wanted = topology}, out, why);
}

int store_calibration(struct store *store, int64_t id, struct calibration *out, struct pc_why *why)
{
	return load(store, LOAD_CALIBRATION, &(struct calibration_row){.c.id = id}, out, why);
}

/* Takes over what the row owns, also when it fails. */
static int keep(struct calibration **list, size_t *count, struct calibration_row *row, struct pc_why *why)
{
	int r = state_of(row, why);
	struct calibration *grown = r < 0 ? NULL : reallocarray(*list, *count + 1, sizeof(**list));
	if (grown) {
		*list = grown;
		grown[(*count)++] = row->c;
		return 0;
	}
	store_calibration_free(&row->c);
	return r < 0 ? r : pc_why(why, -ENOMEM, "database: out of memory");
}

int store_calibrations(struct store *store, size_t most, struct calibration **out, size_t *count, struct pc_why *why)
{
	struct calibration_row asked = {.most = store_limit(most)};
	struct calibration *list = NULL;
	size_t n = 0;
	int r = sql_start(store->sql, LIST_CALIBRATIONS, &asked, why);
	while (r == 0) {
		struct calibration_row row = {0};
		r = sql_row(store->sql, LIST_CALIBRATIONS, &row, why);
		if (r == 0)
			r = keep(&list, &n, &row, why);
		else
			store_calibration_free(&row.c);
	}
	sql_stop(store->sql, LIST_CALIBRATIONS);
	if (r < 0) {
		for (size_t i = 0; i < n; i++)
			store_calibration_free(&list[i]);
		free(list);
		return r;
	}
	*out = list;
	*count = n;
	return 0;
}

void store_calibration_free(struct calibration *calibration)
{
	free(calibration->reasons);
	free(calibration->soft);
	free(calibration->faulted);
	free(calibration->surroundings);
	calibration->reasons = calibration->soft = calibration->faulted = calibration->surroundings = NULL;
}

int store_topology(struct store *store, const char *topology, char **key, char **raw, struct pc_why *why)
{
	struct topology_row row = {.id = topology};
	int r = sql_run(store->sql, LOAD_TOPOLOGY, &row, why);
	if (r == 0) {
		*key = row.key;
		*raw = row.raw;
		return 0;
	}
	free(row.key);
	free(row.raw);
	return r;
}
