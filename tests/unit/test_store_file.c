/*
 * Files that are not as they should be: absent, empty, other people's, newer, read-only, in use (damaged:
 * test_store_damage.c).
 */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "calibrd/store_file.h"
#include "calibrd/store_migrate.h"
#include "tests/unit/store_files.h"

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

/* --- several processes ------------------------------------------------------------------------------------------- */

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

/* --- without privileges, without write access -------------------------------------------------------------------- */

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
	{"other files are left alone", test_other_files_are_left_alone},
	{"one writer", test_one_writer},
	{"lock is given back", test_lock_is_given_back},
	{"reader beside writer", test_reader_beside_writer},
	{"unprivileged reader", test_unprivileged_reader},
	{"read-only medium", test_read_only_medium},
};

UNIT_MAIN("store_file", tests)
