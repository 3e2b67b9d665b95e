/* Databases of every older version become those of this one, with all that they hold. */
#include "calibrd/store_migrate.h"
#include "calibrd/store_sql.h"
#include "tests/unit/store_sample.h"

static void test_migrations_run_from_any_version(void)
{
	static const struct store_migration steps[] = {
		{1, "0001-a.sql", "CREATE TABLE a (x INTEGER) STRICT; INSERT INTO a VALUES (1);"},
		{2, "0002-b.sql", "ALTER TABLE a ADD COLUMN y TEXT; UPDATE a SET y = 'two';"},
		{3, "0003-bad.sql", "INSERT INTO a VALUES (3, 'three'); INSERT INTO nowhere VALUES (1);"},
	};
	struct pc_why why;
	struct sql *sql;
	const char *path = sample_path("migrate.db");
	sample_write(path, "", 0);
	CU_ASSERT_EQUAL_FATAL(sql_open(&sql, path, true, &why), 0);
	CU_ASSERT_EQUAL(store_migrate(sql, steps, 1, &why), 0);
	CU_ASSERT_STRING_EQUAL(sample_sql(path, "PRAGMA user_version"), "1");
	CU_ASSERT_EQUAL(store_migrate(sql, steps, 2, &why), 0);
	CU_ASSERT_EQUAL(store_migrate(sql, steps, 2, &why), 0);
	CU_ASSERT_STRING_EQUAL(sample_sql(path, "SELECT x || y FROM a"), "1two");
	/* A step that fails in its middle leaves the version before it, whole. */
	CU_ASSERT(store_migrate(sql, steps, 3, &why) < 0);
	CU_ASSERT_STRING_EQUAL(sample_sql(path, "PRAGMA user_version"), "2");
	CU_ASSERT_STRING_EQUAL(sample_sql(path, "SELECT count(*) FROM a"), "1");
	sql_close(sql);
}

static void test_migrations_leave_no_orphans(void)
{
	static const struct store_migration steps[] = {
		{1, "0001-a.sql",
	         "CREATE TABLE a (x INTEGER PRIMARY KEY) STRICT; CREATE TABLE b (x INTEGER REFERENCES a (x)) STRICT;"
	         "INSERT INTO a VALUES (1); INSERT INTO b VALUES (1);"},
		{2, "0002-b.sql", "DELETE FROM a;"},
	};
	struct pc_why why = {""};
	struct sql *sql;
	const char *path = sample_path("orphans.db");
	sample_write(path, "", 0);
	CU_ASSERT_EQUAL_FATAL(sql_open(&sql, path, true, &why), 0);
	CU_ASSERT(store_migrate(sql, steps, 2, &why) < 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "0002-b.sql"));
	CU_ASSERT_STRING_EQUAL(sample_sql(path, "PRAGMA user_version"), "1");
	CU_ASSERT_STRING_EQUAL(sample_sql(path, "SELECT count(*) FROM a"), "1");
	sql_close(sql);
}

/* Numbered without gaps; each step of the real list applies to what the steps before it made. */
static void test_migrations_are_numbered(void)
{
	CU_ASSERT_FATAL(store_migration_count > 0);
	for (size_t i = 0; i < store_migration_count; i++) {
		CU_ASSERT_EQUAL(store_migrations[i].number, i + 1);
		CU_ASSERT_EQUAL(strtoul(store_migrations[i].name, NULL, 10), i + 1);
	}
	for (size_t first = 0; first <= store_migration_count; first++) {
		struct pc_why why;
		struct sql *sql;
		const char *path = sample_path("numbered.db");
		sample_write(path, "", 0);
		CU_ASSERT_EQUAL_FATAL(sql_open(&sql, path, true, &why), 0);
		CU_ASSERT_EQUAL(store_migrate(sql, store_migrations, first, &why), 0);
		sql_close(sql);
		store_close(sample_open(path, STORE_WRITE));
	}
}

/* A calibration of the first schema is all there after the second one: it went forward, in peace as far as it knew. */
static void test_first_schema_is_kept(void)
{
	struct pc_why why;
	struct sql *sql;
	struct calibration known;
	struct dataset data = {0};
	struct store *store;
	const char *path = sample_path("first.db");
	sample_write(path, "", 0);
	CU_ASSERT_EQUAL_FATAL(sql_open(&sql, path, true, &why), 0);
	CU_ASSERT_EQUAL_FATAL(store_migrate(sql, store_migrations, 1, &why), 0);
	sql_close(sql);
	sample_change(path, "INSERT INTO topology VALUES ('0123456789ab', 'x86_64', 'a host', 'key', NULL);"
	                    "INSERT INTO kernel VALUES (1, 'libc', 1);"
	                    "INSERT INTO calibration (topology, state, effort, quality, version, started, finished) "
	                    "VALUES ('0123456789ab', 'done', 'quick', 'good', '0.1.0', 1, 2);"
	                    "INSERT INTO series VALUES "
	                    "(1, 'clear', 'read', 'cached', 1, 'base', -1, 4096, 0, 1, 0, 0, 3, NULL, NULL, NULL)");
	store = sample_open(path, STORE_WRITE);
	CU_ASSERT_EQUAL_FATAL(store_latest(store, NULL, &known, &why), 0);
	CU_ASSERT_STRING_EQUAL(known.quality, "good");
	CU_ASSERT_PTR_NULL(known.surroundings);
	CU_ASSERT_EQUAL_FATAL(store_series(store, known.id, &data, &why), 0);
	CU_ASSERT_EQUAL_FATAL(data.count, 1);
	CU_ASSERT_EQUAL(data.series[0].key.bytes, 4096);
	CU_ASSERT_EQUAL(data.series[0].key.phase, PHASE_READ);
	CU_ASSERT_EQUAL(data.series[0].key.backward, 0);
	CU_ASSERT_EQUAL(data.series[0].tainted, 3);
	dataset_clear(&data);
	store_calibration_free(&known);
	store_close(store);
	CU_ASSERT_STRING_EQUAL(sample_sql(path, "PRAGMA integrity_check"), "ok");
}

static const struct unit_test tests[] = {
	{"migrations run from any version", test_migrations_run_from_any_version},
	{"migrations leave no orphans", test_migrations_leave_no_orphans},
	{"migrations are numbered", test_migrations_are_numbered},
	{"first schema is kept", test_first_schema_is_kept},
};

UNIT_MAIN("store_migrations", tests)
