/*
 * Files that are not as they should be: absent, empty, damaged, other people's, newer, read-only, in use.
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "calibrd/store_file.h"
#include "calibrd/store_migrate.h"
#include "tests/unit/store_sample.h"

static pid_t in_child(void (*work)(const char *), const char *path)
{
	fflush(NULL);
	pid_t child = fork();
	CU_ASSERT_FATAL(child >= 0);
	if (child == 0) {
		work(path);
		_exit(0);
	}
	return child;
}

static int ended(pid_t child)
{
	int status = -1;
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	return status;
}

static void make_good(const char *path)
{
	struct pc_why why;
	struct store *store = sample_open(path, STORE_WRITE);
	struct dataset data = sample_data(60, 8);
	CU_ASSERT_EQUAL(sample_publish(store, 1, sample_done(store, &data), "good: yes\n", &why), 0);
	dataset_clear(&data);
	store_close(store);
}

static void check_unchanged(const char *path, const unsigned char *bytes, size_t len)
{
	size_t now;
	unsigned char *got = sample_read(path, &now);
	CU_ASSERT_EQUAL_FATAL(now, len);
	CU_ASSERT_EQUAL(memcmp(got, bytes, len), 0);
	free(got);
}

/* Both modes refuse it with this number and leave every byte. */
static void check_refused(const char *path, int expected, struct pc_why *why)
{
	size_t len;
	char renamed[512];
	unsigned char *before = sample_read(path, &len);
	CU_ASSERT_EQUAL(sample_try(path, STORE_READ, NULL, why), expected);
	CU_ASSERT_EQUAL(sample_try(path, STORE_WRITE, renamed, why), expected);
	CU_ASSERT_STRING_EQUAL(renamed, "");
	check_unchanged(path, before, len);
	free(before);
}

static int exists(const char *path, const char *end)
{
	char name[600];
	snprintf(name, sizeof(name), "%s%s", path, end);
	return access(name, F_OK) == 0;
}

static void test_absent_and_empty(void)
{
	struct pc_why why = {""};
	const char *path = sample_path("absent.db");
	CU_ASSERT_EQUAL(sample_try(path, STORE_READ, NULL, &why), -ENOENT);
	CU_ASSERT(!exists(path, "") && !exists(path, ".lock"));
	sample_write(path, "", 0);
	CU_ASSERT_EQUAL(sample_try(path, STORE_READ, NULL, &why), -ENOENT);
	CU_ASSERT(!exists(path, ".lock"));
	store_close(sample_open(path, STORE_WRITE));
	CU_ASSERT_EQUAL(sample_try(path, STORE_READ, NULL, &why), 0);
	/* A database of SQLite's without any table is as empty. */
	path = sample_path("no-table.db");
	sample_change(path, "VACUUM");
	CU_ASSERT(exists(path, ""));
	store_close(sample_open(path, STORE_WRITE));
}

static void test_places(void)
{
	struct pc_why why = {""};
	char path[600];
	const char *folder = sample_path("folder");
	snprintf(path, sizeof(path), "%s/deeper/calibrd.db", folder);
	CU_ASSERT_EQUAL(sample_try(path, STORE_WRITE, NULL, &why), -ENOENT);
	snprintf(path, sizeof(path), "%s/calibrd.db", folder);
	CU_ASSERT_EQUAL(sample_try(path, STORE_READ, NULL, &why), -ENOENT);
	CU_ASSERT(!exists(folder, ""));
	store_close(sample_open(path, STORE_WRITE));
	CU_ASSERT_EQUAL(sample_try(folder, STORE_WRITE, NULL, &why), -EISDIR);
	snprintf(path, sizeof(path), "%s/", folder);
	CU_ASSERT_EQUAL(sample_try(path, STORE_WRITE, NULL, &why), -EISDIR);
	snprintf(path, sizeof(path), "%s/fifo", folder);
	CU_ASSERT_EQUAL(mkfifo(path, 0600), 0);
	CU_ASSERT_EQUAL(sample_try(path, STORE_WRITE, NULL, &why), -EMEDIUMTYPE);
	char *longest = malloc(5000);
	memset(longest, 'x', 4999);
	longest[4999] = '\0';
	CU_ASSERT_EQUAL(sample_try(longest, STORE_WRITE, NULL, &why), -ENAMETOOLONG);
	free(longest);
}

static void test_relative_path(void)
{
	struct pc_why why = {""};
	char here[4096];
	CU_ASSERT_PTR_NOT_NULL_FATAL(getcwd(here, sizeof(here)));
	CU_ASSERT_EQUAL_FATAL(chdir(unit_folder()), 0);
	CU_ASSERT_EQUAL(sample_try("relative.db", STORE_WRITE, NULL, &why), 0);
	CU_ASSERT_EQUAL(sample_try("below/relative.db", STORE_WRITE, NULL, &why), 0);
	/* Names that mean something to SQLite are files here. */
	CU_ASSERT_EQUAL(sample_try(":memory:", STORE_WRITE, NULL, &why), 0);
	CU_ASSERT(exists(":memory:", "") && exists("relative.db", ""));
	CU_ASSERT_EQUAL_FATAL(chdir(here), 0);
}

static void test_foreign(void)
{
	struct pc_why why = {""};
	const char *path = sample_path("foreign.db");
	sample_change(path, "PRAGMA application_id = 252006674; CREATE TABLE track (x)");
	check_refused(path, -EMEDIUMTYPE, &why);
	path = sample_path("unmarked.db");
	sample_change(path, "CREATE TABLE somebody (x)");
	check_refused(path, -EMEDIUMTYPE, &why);
	/* Even one that once had tables, or only a version. */
	path = sample_path("versioned.db");
	sample_change(path, "PRAGMA user_version = 1");
	check_refused(path, -EMEDIUMTYPE, &why);
	path = sample_path("write-ahead.db");
	sample_change(path, "PRAGMA journal_mode = WAL; CREATE TABLE somebody (x)");
	check_refused(path, -EMEDIUMTYPE, &why);
	CU_ASSERT(!exists(path, "-wal") && !exists(path, "-shm"));
}

static void test_newer(void)
{
	struct pc_why why = {""};
	char newest[16];
	const char *path = sample_path("newer.db");
	make_good(path);
	sample_change(path, "PRAGMA user_version = 97");
	check_refused(path, -EPROTONOSUPPORT, &why);
	snprintf(newest, sizeof(newest), " %u", store_migrations[store_migration_count - 1].number);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "schema 97"));
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, newest));
}

static void test_older_is_told(void)
{
	struct pc_why why;
	unsigned schema = 99;
	const char *path = sample_path("older.db");
	make_good(path);
	CU_ASSERT_EQUAL(store_file_identify(path, 5, &schema, &why), 0);
	CU_ASSERT_EQUAL(schema, store_migrations[store_migration_count - 1].number);
}

static void test_damaged_is_renamed(void)
{
	struct pc_why why = {""};
	char renamed[512], expected[600];
	const char *path = sample_path("damaged.db");
	sample_was_ours(path);
	for (unsigned i = 1; i <= 3; i++) {
		char junk[3000];
		memset(junk, (int)('a' + i), sizeof(junk));
		sample_write(path, junk, sizeof(junk));
		CU_ASSERT_EQUAL(sample_try(path, STORE_READ, NULL, &why), -EUCLEAN);
		check_unchanged(path, (unsigned char *)junk, sizeof(junk));
		CU_ASSERT_EQUAL_FATAL(sample_try(path, STORE_WRITE, renamed, &why), 0);
		snprintf(expected, sizeof(expected), "%s.damaged-%u", path, i);
		CU_ASSERT_STRING_EQUAL(renamed, expected);
		check_unchanged(renamed, (unsigned char *)junk, sizeof(junk));
		/* The new one is whole; and who doesn't ask for the name needs no room for it. */
		store_close(sample_open(path, STORE_WRITE));
	}
}

/* Any other file that somebody named by mistake stays where it is, without a lock beside it. */
static void test_other_files_are_left_alone(void)
{
	struct pc_why why = {""};
	char renamed[512], lock[600];
	const char *path = sample_path("notes.txt");
	sample_write(path, "dear diary", 10);
	CU_ASSERT_EQUAL(sample_try(path, STORE_WRITE, renamed, &why), -EMEDIUMTYPE);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "left as it is"));
	check_unchanged(path, (const unsigned char *)"dear diary", 10);
	snprintf(lock, sizeof(lock), "%s.lock", path);
	CU_ASSERT_NOT_EQUAL(access(lock, F_OK), 0);
}

static void test_missing_table_is_damage(void)
{
	struct pc_why why = {""};
	char renamed[512];
	const char *path = sample_path("missing.db");
	make_good(path);
	sample_change(path, "DROP TABLE published");
	CU_ASSERT_EQUAL(sample_try(path, STORE_READ, NULL, &why), -EUCLEAN);
	CU_ASSERT_EQUAL(sample_try(path, STORE_WRITE, renamed, &why), 0);
	CU_ASSERT_STRING_NOT_EQUAL(renamed, "");
	path = sample_path("version-0.db");
	make_good(path);
	sample_change(path, "PRAGMA user_version = 0");
	CU_ASSERT_EQUAL(sample_try(path, STORE_READ, NULL, &why), -EUCLEAN);
	CU_ASSERT_EQUAL(sample_try(path, STORE_WRITE, renamed, &why), 0);
	CU_ASSERT_STRING_NOT_EQUAL(renamed, "");
}

static void test_companions_move_along(void)
{
	struct pc_why why = {""};
	char name[600], renamed[512];
	const char *path = sample_path("companions.db");
	sample_write(path, "db", 2);
	snprintf(name, sizeof(name), "%s-journal", path);
	sample_write(name, "journal", 7);
	/* Never over anything that is there, be it only a journal's name. */
	snprintf(name, sizeof(name), "%s.damaged-1-journal", path);
	sample_write(name, "older", 5);
	CU_ASSERT_EQUAL(store_file_set_aside(path, renamed, &why), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(renamed, ".damaged-2"));
	check_unchanged(renamed, (const unsigned char *)"db", 2);
	check_unchanged(name, (const unsigned char *)"older", 5);
	snprintf(name, sizeof(name), "%s-journal", renamed);
	check_unchanged(name, (const unsigned char *)"journal", 7);
	CU_ASSERT(!exists(path, "") && !exists(path, "-journal"));
}

/* Whatever the store is asked on a file that may hold anything: an answer, none, or a number. */
static void ask_everything(struct store *store)
{
	struct pc_why why;
	struct calibration c = {0};
	struct published p = {0};
	struct dataset data = {0};
	char *key = NULL, *raw = NULL;
	int r = store_latest(store, NULL, &c, &why);
	CU_ASSERT(r == 0 || r == 1 || r == -EUCLEAN);
	if (r == 0)
		store_calibration_free(&c);
	r = store_published(store, NULL, &p, &why);
	CU_ASSERT(r == 0 || r == 1 || r == -EUCLEAN);
	free(p.yaml);
	r = store_topology(store, sample_topology.id, &key, &raw, &why);
	CU_ASSERT(r == 0 || r == 1 || r == -EUCLEAN);
	free(key);
	free(raw);
	r = store_series(store, 1, &data, &why);
	CU_ASSERT(r == 0 || r == -EUCLEAN);
	dataset_clear(&data);
}

/* Opens as it is, or is renamed with its bytes; `refusable`: where the marks of other programs and versions are. */
static void try_damaged(const char *path, const unsigned char *bytes, size_t len, int refusable)
{
	struct pc_why why = {""};
	struct store *store = NULL;
	char renamed[512];
	sample_write(path, bytes, len);
	int r = store_open(&store, path, STORE_READ, NULL, &why);
	CU_ASSERT(r == 0 || r == -EUCLEAN || (r == -ENOENT && len == 0) || refusable);
	if (r == 0)
		ask_everything(store);
	store = store_close(r == 0 ? store : NULL);
	r = store_open(&store, path, STORE_WRITE, renamed, &why);
	if (r < 0 && !refusable)
		printf("%d %s\n", r, why.text);
	CU_ASSERT(r == 0 || (refusable && (r == -EMEDIUMTYPE || r == -EPROTONOSUPPORT)));
	if (r < 0)
		return;
	ask_everything(store);
	store_close(store);
	if (!*renamed)
		return;
	check_unchanged(renamed, bytes, len);
	unlink(renamed);
	CU_ASSERT_STRING_EQUAL(sample_sql(path, "PRAGMA integrity_check"), "ok");
}

static void test_flipped_bytes(void)
{
	size_t len;
	uint32_t random = 7;
	const char *path = sample_path("flipped.db");
	make_good(path);
	unsigned char *good = sample_read(path, &len);
	for (size_t i = 0; i < 260; i++) {
		random = random * 1664525 + 1013904223;
		size_t at = i < 100 ? i : (random >> 4) % len;
		unsigned char was = good[at];
		good[at] = (unsigned char)(was ^ (1u << (random >> 28 & 7)));
		/* 60-63 user_version, 68-71 application_id */
		try_damaged(path, good, len, (at >= 60 && at < 64) || (at >= 68 && at < 72));
		good[at] = was;
	}
	free(good);
}

static void test_zeroed_pages(void)
{
	size_t len;
	struct pc_why why = {""};
	const char *path = sample_path("zeroed.db");
	make_good(path);
	unsigned char *good = sample_read(path, &len), page[4096];
	for (size_t at = 0; at + 4096 <= len; at += 4096) {
		memcpy(page, good + at, 4096);
		memset(good + at, 0, 4096);
		/* Every page is in use, and opening looks at all of them. */
		sample_write(path, good, len);
		CU_ASSERT_EQUAL(sample_try(path, STORE_READ, NULL, &why), -EUCLEAN);
		try_damaged(path, good, len, 0);
		memcpy(good + at, page, 4096);
	}
	free(good);
}

static void test_truncated(void)
{
	size_t len;
	const size_t lengths[] = {0, 1, 15, 16, 50, 99, 100, 101, 511, 512, 1000, 4095, 4096, 4097, 8192, 20000};
	const char *path = sample_path("truncated.db");
	make_good(path);
	unsigned char *good = sample_read(path, &len);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths) && lengths[i] < len; i++)
		try_damaged(path, good, lengths[i], 0);
	try_damaged(path, good, len - 1, 0);
	try_damaged(path, good, len - 4096, 0);
	free(good);
}

/* --- several processes
 * ------------------------------------------------------------------------------------------------ */

static int ready[2];

static void hold(const char *path)
{
	struct store *store = NULL;
	struct pc_why why;
	CHILD_CHECK(store_open(&store, path, STORE_WRITE, NULL, &why) == 0);
	CHILD_CHECK(write(ready[1], "x", 1) == 1);
	pause();
}

static void test_one_writer(void)
{
	struct pc_why why = {""};
	char byte, holder[32], link[600];
	const char *path = sample_path("writer.db");
	CU_ASSERT_EQUAL_FATAL(pipe(ready), 0);
	pid_t child = in_child(hold, path);
	CU_ASSERT_EQUAL_FATAL(read(ready[0], &byte, 1), 1);
	CU_ASSERT_EQUAL(sample_try(path, STORE_WRITE, NULL, &why), -EBUSY);
	snprintf(holder, sizeof(holder), "process %d ", (int)child);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, holder));
	/* By another name it is the same file; readers need no lock. */
	snprintf(link, sizeof(link), "%s.link", path);
	CU_ASSERT_EQUAL(symlink(path, link), 0);
	CU_ASSERT_EQUAL(sample_try(link, STORE_WRITE, NULL, &why), -EBUSY);
	CU_ASSERT_EQUAL(sample_try(path, STORE_READ, NULL, &why), 0);
	/* The lock dies with its process. */
	CU_ASSERT_EQUAL(kill(child, SIGKILL), 0);
	CU_ASSERT(WIFSIGNALED(ended(child)));
	CU_ASSERT_EQUAL(sample_try(link, STORE_WRITE, NULL, &why), 0);
	close(ready[0]);
	close(ready[1]);
}

/* Two stores in one process exclude each other as well; closing gives the lock back. */
static void test_lock_is_given_back(void)
{
	struct pc_why why = {""};
	const char *path = sample_path("again.db");
	struct store *store = sample_open(path, STORE_WRITE);
	CU_ASSERT_EQUAL(sample_try(path, STORE_WRITE, NULL, &why), -EBUSY);
	store_close(store);
	CU_ASSERT_EQUAL(sample_try(path, STORE_WRITE, NULL, &why), 0);
}

static void hold_exclusively(const char *path)
{
	sqlite3 *db = NULL;
	CHILD_CHECK(sqlite3_open(path, &db) == SQLITE_OK);
	CHILD_CHECK(sqlite3_exec(db, "BEGIN EXCLUSIVE; DELETE FROM published", NULL, NULL, NULL) == SQLITE_OK);
	CHILD_CHECK(write(ready[1], "x", 1) == 1);
	usleep(200000);
	CHILD_CHECK(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL) == SQLITE_OK);
	sqlite3_close(db);
}

static void test_reader_beside_writer(void)
{
	struct pc_why why = {""};
	struct published got;
	char byte;
	const char *path = sample_path("beside.db");
	make_good(path);
	/* In the middle of a transaction: the reader sees what was before. */
	sqlite3 *db = NULL;
	CU_ASSERT_EQUAL_FATAL(sqlite3_open(path, &db), SQLITE_OK);
	CU_ASSERT_EQUAL_FATAL(sqlite3_exec(db, "BEGIN IMMEDIATE; DELETE FROM published", NULL, NULL, NULL), SQLITE_OK);
	struct store *store = sample_open(path, STORE_READ);
	CU_ASSERT_EQUAL_FATAL(store_published(store, NULL, &got, &why), 0);
	CU_ASSERT_EQUAL(got.generation, 1);
	free(got.yaml);
	store_close(store);
	sqlite3_close(db);
	/* While it commits: the reader waits. */
	CU_ASSERT_EQUAL_FATAL(pipe(ready), 0);
	pid_t child = in_child(hold_exclusively, path);
	CU_ASSERT_EQUAL_FATAL(read(ready[0], &byte, 1), 1);
	store = sample_open(path, STORE_READ);
	CU_ASSERT_EQUAL(store_published(store, NULL, &got, &why), 0);
	free(got.yaml);
	store_close(store);
	CU_ASSERT_EQUAL(ended(child), 0);
	close(ready[0]);
	close(ready[1]);
}

/* --- without privileges, without write access
 * -------------------------------------------------------------------------- */

static void as_nobody(const char *path)
{
	struct pc_why why = {""};
	struct store *store = NULL;
	struct published got;
	CHILD_CHECK(setgid(65534) == 0 && setuid(65534) == 0);
	CHILD_CHECK(store_open(&store, path, STORE_READ, NULL, &why) == 0);
	CHILD_CHECK(store_published(store, NULL, &got, &why) == 0);
	CHILD_CHECK(!strcmp(got.yaml, "good: yes\n"));
	free(got.yaml);
	store_close(store);
	CHILD_CHECK(store_open(&store, path, STORE_WRITE, NULL, &why) == -EACCES);
	CHILD_CHECK(strlen(why.text) > 0);
}

static void test_unprivileged_reader(void)
{
	const char *path = sample_path("root.db");
	if (getuid() != 0) {
		unit_skip("becoming nobody takes root");
		return;
	}
	CU_ASSERT_EQUAL_FATAL(chmod(unit_folder(), 0755), 0);
	make_good(path);
	CU_ASSERT_EQUAL(ended(in_child(as_nobody, path)), 0);
}

static void on_read_only_medium(const char *path)
{
	struct pc_why why = {""};
	struct store *store = NULL;
	struct published got;
	const char *folder = unit_folder();
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount(folder, folder, NULL, MS_BIND, NULL) < 0 ||
	    mount(NULL, folder, NULL, MS_BIND | MS_REMOUNT | MS_RDONLY, NULL) < 0)
		_exit(77);
	CHILD_CHECK(store_open(&store, path, STORE_WRITE, NULL, &why) == -EROFS);
	CHILD_CHECK(strstr(why.text, "Read-only"));
	CHILD_CHECK(store_open(&store, path, STORE_READ, NULL, &why) == 0);
	CHILD_CHECK(store_published(store, NULL, &got, &why) == 0);
	free(got.yaml);
	store_close(store);
}

static void test_read_only_medium(void)
{
	const char *path = sample_path("medium.db");
	make_good(path);
	int status = ended(in_child(on_read_only_medium, path));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		unit_skip("no mount namespace here");
	else
		CU_ASSERT_EQUAL(status, 0);
}

static const struct unit_test tests[] = {
	{"absent and empty", test_absent_and_empty},
	{"places", test_places},
	{"relative path", test_relative_path},
	{"foreign", test_foreign},
	{"newer", test_newer},
	{"older is told", test_older_is_told},
	{"damaged is renamed", test_damaged_is_renamed},
	{"other files are left alone", test_other_files_are_left_alone},
	{"missing table is damage", test_missing_table_is_damage},
	{"companions move along", test_companions_move_along},
	{"flipped bytes", test_flipped_bytes},
	{"zeroed pages", test_zeroed_pages},
	{"truncated", test_truncated},
	{"one writer", test_one_writer},
	{"lock is given back", test_lock_is_given_back},
	{"reader beside writer", test_reader_beside_writer},
	{"unprivileged reader", test_unprivileged_reader},
	{"read-only medium", test_read_only_medium},
};

UNIT_MAIN("store_file", tests)
