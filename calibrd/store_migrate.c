/* Runs migrations; see store_migrate.h. */
#include "calibrd/store_migrate.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>

#include "calibrd/store_sql.h"

static int apply(struct sql *sql, const struct store_migration *migration, struct pc_why *why)
{
	char marks[96];
	int64_t orphans;
	snprintf(marks, sizeof(marks), "PRAGMA application_id = %d; PRAGMA user_version = %u;", STORE_APPLICATION_ID,
	         migration->number);
	int r = sql_script(sql, migration->sql, why);
	/* The steps are right: then the number that says which one is next is not. */
	if (r == -EBADMSG)
		return pc_why(why, -EUCLEAN, "database: damaged: its tables are not what its version says (schema %s)",
		              migration->name);
	if (r >= 0)
		r = sql_script(sql, marks, why);
	if (r >= 0)
		r = sql_number(sql, "SELECT count(*) FROM pragma_foreign_key_check", &orphans, why);
	if (r >= 0 && orphans)
		r = pc_why(why, -EIO, "schema %s leaves %lld rows that refer to nothing", migration->name,
		           (long long)orphans);
	return r;
}

/* The version is written together with the first tables: one without the other is damage. */
static int check_start(struct sql *sql, int64_t version, struct pc_why *why)
{
	int64_t tables;
	int r = sql_number(sql, "SELECT count(*) FROM sqlite_schema", &tables, why);
	if (r >= 0 && version == 0 && tables)
		r = pc_why(why, -EUCLEAN, "database: %lld tables, but no schema number", (long long)tables);
	return r;
}

int store_migrate(struct sql *sql, const struct store_migration *migrations, size_t count, struct pc_why *why)
{
	int64_t version = 0;
	/* Off, so that a step may build a table anew; SQLite ignores the switch inside a transaction. */
	int r = sql_script(sql, "PRAGMA foreign_keys = OFF", why);
	if (r >= 0)
		r = sql_number(sql, "PRAGMA user_version", &version, why);
	if (r >= 0)
		r = check_start(sql, version, why);
	for (size_t i = 0; r >= 0 && i < count; i++) {
		if ((int64_t)migrations[i].number <= version)
			continue;
		r = sql_begin(sql, why);
		if (r >= 0)
			r = sql_end(sql, apply(sql, &migrations[i], why), why);
	}
	if (r >= 0)
		r = sql_script(sql, "PRAGMA foreign_keys = ON", why);
	return r;
}
