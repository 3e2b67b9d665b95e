/* SQLite's interface, once; see store_sql.h. */
#include "calibrd/store_sql.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

/* How long a reader waits for a commit, and a commit for readers. */
enum { BUSY_MS = 5000 };

struct sql {
	sqlite3 *db;
	bool writable;
	const struct sql_statement *table;
	sqlite3_stmt **prepared;
	size_t count;
};

static int io_errno(sqlite3 *db)
{
	int number = sqlite3_system_errno(db);
	return number > 0 ? -number : -EIO;
}

static int errno_of(sqlite3 *db, int code)
{
	if (code == SQLITE_READONLY_ROLLBACK)
		return -EAGAIN;
	if (code == SQLITE_READONLY_DBMOVED)
		return -ESTALE;
	if (code == SQLITE_CONSTRAINT_PRIMARYKEY || code == SQLITE_CONSTRAINT_UNIQUE)
		return -EEXIST;
	switch (code & 0xff) {
	case SQLITE_ERROR:
		return -EBADMSG;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
		return -EUCLEAN;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_READONLY:
		return -EROFS;
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return -EACCES;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_CONSTRAINT:
		return -EINVAL;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_TOOBIG:
		return -E2BIG;
	case SQLITE_CANTOPEN:
	case SQLITE_IOERR:
		return io_errno(db);
	default:
		return -EIO;
	}
}

/* What to do about it, for those who can. */
static const char *remedy(int code)
{
	switch (code) {
	case -ENOSPC:
		return ": make room where it is kept";
	case -EUCLEAN:
		return ": calibrd keeps it beside and begins a new one when it next opens it";
	case -EROFS:
		return ": let it be written where it is kept, or keep it elsewhere";
	case -ESTALE:
		return ": it was moved or removed while it was open; calibrd opens it anew";
	default:
		return "";
	}
}

static int fail(struct sql *sql, const char *doing, struct pc_why *why)
{
	int code = errno_of(sql->db, sqlite3_extended_errcode(sql->db));
	if (code == -EAGAIN)
		return pc_why(why, code,
		              "database: a writer was killed in the middle of a change; calibrd takes it back at its "
		              "next start");
	return pc_why(why, code, "database: %s: %s%s", doing, sqlite3_errmsg(sql->db), remedy(code));
}

/* What is in the file is not trusted: no views, no triggers, no functions with side effects from its schema. */
static int configure(struct sql *sql, struct pc_why *why)
{
	static const struct {
		int option, value;
	} wanted[] = {
		{SQLITE_DBCONFIG_DEFENSIVE, 1},
		{SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
		{SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
		{SQLITE_DBCONFIG_ENABLE_VIEW, 0},
	};
	for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++)
		if (sqlite3_db_config(sql->db, wanted[i].option, wanted[i].value, NULL) != SQLITE_OK)
			return fail(sql, "configure", why);
	if (sqlite3_busy_timeout(sql->db, BUSY_MS) != SQLITE_OK)
		return fail(sql, "busy timeout", why);
	return sql_script(sql, "PRAGMA cell_size_check = ON", why);
}

static int configure_writer(struct sql *sql, struct pc_why *why)
{
	/* SQLite quietly opens for reading what it may not write. */
	if (sqlite3_db_readonly(sql->db, "main"))
		return pc_why(why, -EROFS, "database: the file cannot be written");
	return sql_script(sql, "PRAGMA journal_mode = DELETE; PRAGMA synchronous = FULL", why);
}

int sql_open(struct sql **out, const char *path, bool writable, struct pc_why *why)
{
	struct sql *sql = calloc(1, sizeof(*sql));
	if (!sql)
		return pc_why(why, -ENOMEM, "database: out of memory");
	sql->writable = writable;
	int flags = writable ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY, r;
	/* Nothing in advance that sql_rest() could not give back. Of no effect from the second database on. */
	sqlite3_config(SQLITE_CONFIG_PAGECACHE, NULL, 0, 0);
	sqlite3_config(SQLITE_CONFIG_LOOKASIDE, 0, 0);
	if (sqlite3_open_v2(path, &sql->db, flags | SQLITE_OPEN_EXRESCODE, NULL) != SQLITE_OK)
		r = fail(sql, "open", why);
	else
		r = configure(sql, why);
	if (r >= 0 && writable)
		r = configure_writer(sql, why);
	if (r < 0) {
		sql_close(sql);
		return r;
	}
	*out = sql;
	return 0;
}

static void forget(struct sql *sql)
{
	for (size_t i = 0; i < sql->count; i++) {
		sqlite3_finalize(sql->prepared[i]); /* repeats the error of the last step, which was reported then */
		sql->prepared[i] = NULL;
	}
}

struct sql *sql_close(struct sql *sql)
{
	if (!sql)
		return NULL;
	forget(sql);
	free(sql->prepared);
	sqlite3_close_v2(sql->db);
	free(sql);
	return NULL;
}

void sql_rest(struct sql *sql)
{
	forget(sql);
	sqlite3_db_release_memory(sql->db);
}

static int prepare(struct sql *sql, size_t statement, struct pc_why *why)
{
	int code;
	if (sql->prepared[statement])
		return 0;
	code = sqlite3_prepare_v3(sql->db, sql->table[statement].text, -1, SQLITE_PREPARE_PERSISTENT,
	                          &sql->prepared[statement], NULL);
	if (code == SQLITE_ERROR)
		return pc_why(why, -EUCLEAN, "database: its tables are not what its version says: %s",
		              sqlite3_errmsg(sql->db));
	return code == SQLITE_OK ? 0 : fail(sql, "prepare", why);
}

int sql_prepare(struct sql *sql, const struct sql_statement *statements, size_t count, struct pc_why *why)
{
	int r = 0;
	sql->prepared = calloc(count, sizeof(sqlite3_stmt *));
	if (!sql->prepared)
		return pc_why(why, -ENOMEM, "database: out of memory");
	sql->table = statements;
	sql->count = count;
	for (size_t i = 0; r >= 0 && i < count; i++)
		r = prepare(sql, i, why);
	return r;
}

int sql_check(struct sql *sql, struct pc_why *why)
{
	sqlite3_stmt *check = NULL;
	/* The schema's CHECKs over every row would take eight times as long; readers distrust each row anyway. */
	int r = sql_script(sql, "PRAGMA ignore_check_constraints = ON", why);
	if (r < 0)
		return r;
	if (sqlite3_prepare_v2(sql->db, "PRAGMA quick_check(1)", -1, &check, NULL) != SQLITE_OK ||
	    sqlite3_step(check) != SQLITE_ROW)
		r = fail(sql, "check", why);
	else if (strcmp((const char *)sqlite3_column_text(check, 0), "ok"))
		r = pc_why(why, -EUCLEAN, "database: damaged: %s", (const char *)sqlite3_column_text(check, 0));
	sqlite3_finalize(check);
	if (r >= 0)
		r = sql_script(sql, "PRAGMA ignore_check_constraints = OFF", why);
	/* sql_open() saw that it may be written: now the header forbids it (fileformat2, 1.3.3). */
	if (r >= 0 && sql->writable && sqlite3_db_readonly(sql->db, "main"))
		r = pc_why(why, -EUCLEAN, "database: damaged: of a write version that does not exist");
	return r;
}

int sql_script(struct sql *sql, const char *text, struct pc_why *why)
{
	return sqlite3_exec(sql->db, text, NULL, NULL, NULL) == SQLITE_OK ? 0 : fail(sql, "change", why);
}

int sql_number(struct sql *sql, const char *query, int64_t *out, struct pc_why *why)
{
	sqlite3_stmt *statement = NULL;
	int r = 0;
	if (sqlite3_prepare_v2(sql->db, query, -1, &statement, NULL) != SQLITE_OK ||
	    sqlite3_step(statement) != SQLITE_ROW)
		r = fail(sql, "query", why);
	else
		*out = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return r;
}

int sql_attach(struct sql *sql, const char *path, const char *name, struct pc_why *why)
{
	sqlite3_stmt *statement = NULL;
	int r = 0;
	if (sqlite3_prepare_v2(sql->db, "ATTACH :path AS :name", -1, &statement, NULL) != SQLITE_OK ||
	    sqlite3_bind_text(statement, 1, path, -1, SQLITE_STATIC) != SQLITE_OK ||
	    sqlite3_bind_text(statement, 2, name, -1, SQLITE_STATIC) != SQLITE_OK ||
	    sqlite3_step(statement) != SQLITE_DONE)
		r = fail(sql, "attach", why);
	sqlite3_finalize(statement);
	return r;
}

/* --- records ------------------------------------------------------------------------------------------------- */

/* SQL's names know no case, and a column is called what the schema's text says. */
static const struct sql_field *field_named(const struct sql_field *fields, const char *name)
{
	while (fields->name && (!name || sqlite3_stricmp(fields->name, name)))
		fields++;
	return fields->name ? fields : NULL;
}

static uint64_t load_unsigned(const void *at, size_t size)
{
	switch (size) {
	case 1:
		return *(const uint8_t *)at;
	case 2:
		return *(const uint16_t *)at;
	case 4:
		return *(const uint32_t *)at;
	default:
		return *(const uint64_t *)at;
	}
}

static int bind_unsigned(sqlite3_stmt *statement, int i, const struct sql_field *field, const void *at)
{
	uint64_t value = load_unsigned(at, field->size);
	return value > INT64_MAX ? SQLITE_RANGE : sqlite3_bind_int64(statement, i, (int64_t)value);
}

static int bind_field(sqlite3_stmt *statement, int i, const struct sql_field *field, const void *record)
{
	const void *at = (const char *)record + field->offset;
	const struct sql_bytes *bytes = at;
	switch (field->type) {
	case SQL_SIGNED:
		return sqlite3_bind_int64(statement, i, *(const int64_t *)at);
	case SQL_UNSIGNED:
		return bind_unsigned(statement, i, field, at);
	case SQL_DOUBLE:
		return sqlite3_bind_double(statement, i, *(const double *)at);
	case SQL_CHARS:
		return sqlite3_bind_text(statement, i, at, (int)strnlen(at, field->size), SQLITE_STATIC);
	case SQL_STRING:
		return sqlite3_bind_text(statement, i, *(char *const *)at, -1, SQLITE_STATIC);
	case SQL_BYTES:
		return sqlite3_bind_blob64(statement, i, bytes->data, bytes->len, SQLITE_STATIC);
	}
	return SQLITE_MISUSE;
}

int sql_start(struct sql *sql, unsigned statement, const void *record, struct pc_why *why)
{
	int r = prepare(sql, statement, why);
	if (r < 0)
		return r;
	sqlite3_stmt *prepared = sql->prepared[statement];
	int count = sqlite3_bind_parameter_count(prepared);
	for (int i = 1; i <= count; i++) {
		const char *name = sqlite3_bind_parameter_name(prepared, i);
		const struct sql_field *field = field_named(sql->table[statement].fields, name ? name + 1 : NULL);
		int code = field ? bind_field(prepared, i, field, record) : SQLITE_MISUSE;
		if (code == SQLITE_OK)
			continue;
		sql_stop(sql, statement);
		if (code == SQLITE_RANGE)
			return pc_why(why, -ERANGE, "database: %s does not fit 63 bits", field->name);
		return pc_why(why, code == SQLITE_NOMEM ? -ENOMEM : -EINVAL, "database: cannot bind %s",
		              name ? name : "?");
	}
	return 0;
}

static int store_unsigned(void *at, size_t size, int64_t value)
{
	if (value < 0 || (size < 8 && (uint64_t)value >> (8 * size)))
		return -EUCLEAN;
	if (size == 1)
		*(uint8_t *)at = (uint8_t)value;
	else if (size == 2)
		*(uint16_t *)at = (uint16_t)value;
	else if (size == 4)
		*(uint32_t *)at = (uint32_t)value;
	else
		*(uint64_t *)at = (uint64_t)value;
	return 0;
}

static int copy_chars(char *at, size_t size, const char *text, size_t len)
{
	if (len >= size || (len && memchr(text, 0, len)))
		return -EUCLEAN;
	memset(at, 0, size);
	if (len)
		memcpy(at, text, len);
	return 0;
}

static int copy_bytes(struct sql_bytes *at, const void *data, size_t len)
{
	at->data = malloc(len ? len : 1);
	if (!at->data)
		return -ENOMEM;
	at->len = len;
	if (len)
		memcpy(at->data, data, len);
	return 0;
}

static int copy_string(char **at, const char *text, size_t len)
{
	if (len && memchr(text, 0, len))
		return -EUCLEAN;
	*at = strndup(text ? text : "", len);
	return *at ? 0 : -ENOMEM;
}

/* NULL leaves the pointer types NULL and makes numbers 0, texts empty and doubles NaN. */
static int fetch(sqlite3_stmt *statement, int i, const struct sql_field *field, void *record)
{
	void *at = (char *)record + field->offset;
	bool null = sqlite3_column_type(statement, i) == SQLITE_NULL;
	if (null && (field->type == SQL_STRING || field->type == SQL_BYTES)) {
		memset(at, 0, field->size);
		return 0;
	}
	if (field->type == SQL_SIGNED)
		*(int64_t *)at = sqlite3_column_int64(statement, i);
	else if (field->type == SQL_UNSIGNED)
		return store_unsigned(at, field->size, sqlite3_column_int64(statement, i));
	else if (field->type == SQL_DOUBLE)
		*(double *)at = null ? __builtin_nan("") : sqlite3_column_double(statement, i);
	else {
		/* The pointer before the length: SQLite converts first. */
		const void *data = field->type == SQL_BYTES ? sqlite3_column_blob(statement, i)
		                                            : sqlite3_column_text(statement, i);
		size_t len = (size_t)sqlite3_column_bytes(statement, i);
		if (!data && len)
			return -ENOMEM;
		if (field->type == SQL_CHARS)
			return copy_chars(at, field->size, data, len);
		if (field->type == SQL_STRING)
			return copy_string(at, data, len);
		return copy_bytes(at, data, len);
	}
	return 0;
}

static int fetch_all(struct sql *sql, unsigned statement, void *record, struct pc_why *why)
{
	sqlite3_stmt *prepared = sql->prepared[statement];
	for (int i = 0; i < sqlite3_column_count(prepared); i++) {
		const char *name = sqlite3_column_name(prepared, i);
		const struct sql_field *field = field_named(sql->table[statement].fields, name);
		int r = field ? fetch(prepared, i, field, record) : -EINVAL;
		if (r < 0) {
			r = pc_why(why, r, "database: column %s holds what it must not", name ? name : "?");
			sql_stop(sql, statement);
			return r;
		}
	}
	return 0;
}

int sql_row(struct sql *sql, unsigned statement, void *record, struct pc_why *why)
{
	int code = sqlite3_step(sql->prepared[statement]);
	if (code == SQLITE_ROW)
		return fetch_all(sql, statement, record, why);
	int r = code == SQLITE_DONE ? 1 : fail(sql, "step", why);
	sql_stop(sql, statement);
	return r;
}

void sql_stop(struct sql *sql, unsigned statement)
{
	sqlite3_reset(sql->prepared[statement]); /* repeats the step's error, reported by then */
	sqlite3_clear_bindings(sql->prepared[statement]);
}

int sql_run(struct sql *sql, unsigned statement, void *record, struct pc_why *why)
{
	int r = sql_start(sql, statement, record, why);
	if (r == 0)
		r = sql_row(sql, statement, record, why);
	if (r != 0)
		return r;
	/* On to the end: there a change that stands alone is committed, or fails. */
	int code = sqlite3_step(sql->prepared[statement]);
	if (code == SQLITE_ROW)
		r = pc_why(why, -EIO, "database: several rows where one was meant");
	else if (code != SQLITE_DONE)
		r = fail(sql, "end", why);
	sql_stop(sql, statement);
	return r;
}

int sql_begin(struct sql *sql, struct pc_why *why)
{
	return sql_script(sql, "BEGIN IMMEDIATE", why);
}

int sql_end(struct sql *sql, int r, struct pc_why *why)
{
	if (r >= 0) {
		int committed = sql_script(sql, "COMMIT", why);
		if (committed >= 0)
			return r;
		r = committed;
	}
	/* SQLite may have rolled back by itself. Should this fail too, the journal stays and the next opening rolls
	 * back. */
	if (!sqlite3_get_autocommit(sql->db))
		sql_script(sql, "ROLLBACK", NULL);
	return r;
}
