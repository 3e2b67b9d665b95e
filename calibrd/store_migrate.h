/*
 * Brings a database from any older schema to the newest, one transaction a step. The steps are schema/NNNN-*.sql,
 * compiled in by schema/embed.sh.
 */
#ifndef CALIBRD_STORE_MIGRATE_H
#define CALIBRD_STORE_MIGRATE_H

#include <stddef.h>

#include "libpolicy/why.h"

/* "pgcl", as SQLite's application_id: this file is ours. */
enum { STORE_APPLICATION_ID = 0x7067636c };

struct sql;

struct store_migration {
	unsigned number; /* the schema (user_version) that it leads to */
	const char *name;
	const char *sql;
};

/* Ascending, without gaps, from 1. */
extern const struct store_migration store_migrations[];
extern const size_t store_migration_count;

/* 0 if the database has the newest schema now. After an error it has the schema of the last step that worked. */
int store_migrate(struct sql *sql, const struct store_migration *migrations, size_t count, struct pc_why *why);

#endif
