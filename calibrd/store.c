/* Opening and closing the database; see store.h. */
#include "calibrd/store.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "calibrd/store_file.h"
#include "calibrd/store_internal.h"
#include "calibrd/store_migrate.h"

static unsigned newest_schema(void)
{
	return store_migrations[store_migration_count - 1].number;
}

int64_t store_now(void)
{
	return store_time((int64_t)time(NULL));
}

int64_t store_time(int64_t seconds)
{
	return seconds < 1 ? 1 : seconds;
}

/* Only a killed process can have left one running: the lock is ours. */
static int fail_interrupted(struct store *store, struct pc_why *why)
{
	char reasons[] = "interrupted: calibrd ended before it was done";
	struct calibration_row row = {.c.reasons = reasons, .c.finished = store_now()};
	int r = sql_run(store->sql, FAIL_INTERRUPTED, &row, why);
	return r < 0 ? r : 0;
}

/* A change whose writer was killed before it reached the database needs no taking back, but its journal lies there
 * until the next change: here it is. It does no harm where that can't be done. */
static void clear_journal(struct store *store, const char *path)
{
	struct pc_why unread;
	char text[64];
	if (!store_file_has_journal(path))
		return;
	snprintf(text, sizeof(text), "PRAGMA user_version = %u", newest_schema());
	sql_script(store->sql, text, &unread);
}

/* The check comes before all that trusts the tables. */
static int open_database(struct store *store, const char *path, bool writable, struct pc_why *why)
{
	int r = sql_open(&store->sql, path, writable, why);
	if (r >= 0)
		r = sql_check(store->sql, why);
	if (r >= 0 && writable)
		r = store_migrate(store->sql, store_migrations, store_migration_count, why);
	if (r >= 0)
		r = sql_prepare(store->sql, store_statements, STATEMENTS, why);
	if (r >= 0 && writable)
		r = fail_interrupted(store, why);
	if (r >= 0 && writable)
		clear_journal(store, path);
	if (r < 0)
		store->sql = sql_close(store->sql);
	return r;
}

static int open_reader(struct store *store, const char *path, struct pc_why *why)
{
	unsigned schema, newest = newest_schema();
	int r = store_file_identify(path, newest, &schema, why);
	if (r < 0)
		return r;
	if (r == 1)
		return pc_why(why, -ENOENT, "%s: no calibration has been recorded yet", path);
	if (r == 2)
		return pc_why(why, -EUCLEAN, "%s: damaged: not a database", path);
	if (schema < newest)
		return pc_why(why, -EPROTONOSUPPORT,
		              "%s: made by an older version (schema %u; this one reads schema %u): calibrd brings it "
		              "up to date",
		              path, schema, newest);
	return open_database(store, path, false, why);
}

/* A file without header may be a database of ours that is damaged, or anything that somebody named by mistake. Ours has
 * had its lock beside it since it was made. */
static int check_ours(const char *path, struct pc_why *why)
{
	unsigned schema;
	if (store_file_has_lock(path))
		return 0;
	int r = store_file_identify(path, newest_schema(), &schema, why);
	if (r != 2)
		return r < 0 ? r : 0;
	return pc_why(why, -EMEDIUMTYPE,
	              "%s: no database, and not known to be a damaged one of ours (there is no %s.lock): "
	              "left as it is",
	              path, path);
}

static int open_writer(struct store *store, const char *path, char renamed[512], struct pc_why *why)
{
	unsigned schema;
	int r = store_file_writable(path, why);
	if (r >= 0)
		r = check_ours(path, why);
	if (r >= 0)
		r = store->lock = store_file_lock(path, why);
	if (r >= 0)
		r = store_file_identify(path, newest_schema(), &schema, why);
	if (r < 0)
		return r;
	r = store_file_create(path, why);
	if (r >= 0)
		r = open_database(store, path, true, why);
	if (r != -EUCLEAN)
		return r;
	r = store_file_set_aside(path, renamed, why);
	if (r >= 0)
		r = store_file_create(path, why);
	return r < 0 ? r : open_database(store, path, true, why);
}

int store_open(struct store **out, const char *path, enum store_mode mode, char renamed[512], struct pc_why *why)
{
	char real[STORE_PATH], unread[512];
	char *aside = renamed ? renamed : unread;
	*aside = '\0';
	int r = store_file_locate(real, path, mode == STORE_WRITE, why);
	if (r < 0)
		return r;
	struct store *store = malloc(sizeof(*store));
	if (!store)
		return pc_why(why, -ENOMEM, "database: out of memory");
	*store = (struct store){.lock = -1};
	r = mode == STORE_WRITE ? open_writer(store, real, aside, why) : open_reader(store, real, why);
	if (r < 0) {
		store_close(store);
		return r;
	}
	*out = store;
	return 0;
}

struct store *store_close(struct store *store)
{
	if (!store)
		return NULL;
	sql_close(store->sql);
	if (store->lock >= 0)
		close(store->lock);
	free(store);
	return NULL;
}

void store_rest(const struct store *store)
{
	if (store != NULL)
		sql_rest(store->sql);
}
