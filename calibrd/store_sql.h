/*
 * SQLite behind a fence: statements prepared once, parameters and columns matched with members of a record by name,
 * every return code read and turned into -errno. Knows no table of ours; store_sql.c alone includes sqlite3.h.
 */
#ifndef CALIBRD_STORE_SQL_H
#define CALIBRD_STORE_SQL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libpolicy/why.h"

enum sql_type {
	SQL_SIGNED,   /* int64_t */
	SQL_UNSIGNED, /* 1, 2, 4 or 8 bytes; above INT64_MAX is refused (-ERANGE) */
	SQL_DOUBLE,   /* NaN is NULL */
	SQL_CHARS,    /* a char array, NUL-terminated */
	SQL_STRING,   /* char *; NULL is NULL; what is read is allocated */
	SQL_BYTES,    /* struct sql_bytes; data NULL is NULL; what is read is allocated */
};

struct sql_bytes {
	unsigned char *data;
	size_t len;
};

/* A member of a record, which is bound to :name and filled from the column `name`. */
struct sql_field {
	const char *name;
	enum sql_type type;
	size_t offset, size;
};

#define SQL_FIELD(record, member, name, type)                                                                          \
	{                                                                                                              \
		name, type, offsetof(record, member), sizeof(((record *)0)->member)                                    \
	}

struct sql_statement {
	const char *text;
	const struct sql_field *fields; /* ends with a name of NULL; every parameter and column must be among them */
};

struct sql;

/* Errors of all: -EUCLEAN damaged, -ESTALE moved or removed while open, -ENOSPC, -EROFS, -EACCES, -EBUSY (a reader or
 * writer took longer than five seconds), -EAGAIN (opened read-only, and a killed writer's journal must be rolled back
 * first), -EEXIST (a key is taken), -EINVAL (a value that the schema forbids), -EBADMSG (the tables are not those that
 * the SQL is for), -EIO, -ENOMEM. */
int sql_open(struct sql **out, const char *path, bool writable, struct pc_why *why);
struct sql *sql_close(struct sql *sql);

/* Gives back the page cache and the prepared statements until something is asked again. Not within sql_start() and
 * sql_stop(). */
void sql_rest(struct sql *sql);

/* Fails with -EUCLEAN where a table or column is missing. */
int sql_prepare(struct sql *sql, const struct sql_statement *statements, size_t count, struct pc_why *why);

/* SQLite's quick check of the whole file: about 5 ms a MB. */
int sql_check(struct sql *sql, struct pc_why *why);

/* Statements without parameters or results. */
int sql_script(struct sql *sql, const char *text, struct pc_why *why);
/* The number in the first column of the first row. */
int sql_number(struct sql *sql, const char *query, int64_t *out, struct pc_why *why);

/* Opens a second database beside it, whose tables are `name`.TABLE from then on; outside of transactions. */
int sql_attach(struct sql *sql, const char *path, const char *name, struct pc_why *why);

/* Binds the record's members; it stays unchanged and in place until the last row. */
int sql_start(struct sql *sql, unsigned statement, const void *record, struct pc_why *why);
/* The next row into record. 0, 1: there is none (any more). Members whose columns were not asked for stay. */
int sql_row(struct sql *sql, unsigned statement, void *record, struct pc_why *why);
/* Ends a statement before its last row. */
void sql_stop(struct sql *sql, unsigned statement);
/* All of it: 0 with the only row in record, 1 there is none. A record may have been filled though it failed. */
int sql_run(struct sql *sql, unsigned statement, void *record, struct pc_why *why);

/* A transaction. sql_end() commits if r >= 0, else (and if that fails) takes everything back; it returns r or the
 * error. */
int sql_begin(struct sql *sql, struct pc_why *why);
int sql_end(struct sql *sql, int r, struct pc_why *why);

#endif
