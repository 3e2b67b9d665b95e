/*
 * A writer that is killed at any step, or finds the disk full, leaves the old state or the new one. The killer is
 * ptrace: it counts the calls that change files and kills at the entry of the nth, so that n = 1, 2, ... visits every
 * step.
 */
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
/* Last: glibc's and the kernel's header both define some requests. */
#include <linux/ptrace.h>

#include "tests/unit/store_sample.h"

static const long changing[] = {
	SYS_pwrite64, SYS_write,    SYS_fsync,     SYS_fdatasync, SYS_ftruncate,
	SYS_openat,   SYS_unlinkat, SYS_renameat2, SYS_fchmod,
#ifdef SYS_unlink
	SYS_unlink,   SYS_rename,   SYS_mkdir,
#endif
};

/* Whether the stopped child is about to make a call that changes files. */
static int at_change(pid_t child)
{
	struct __ptrace_syscall_info info;
	if (ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info), &info) <= 0 || info.op != PTRACE_SYSCALL_INFO_ENTRY)
		return 0;
	for (size_t i = 0; i < sizeof(changing) / sizeof(*changing); i++)
		if ((long)info.entry.nr == changing[i])
			return 1;
	return 0;
}

enum outcome { KILLED, SURVIVED, WRONG, UNTRACED };

static enum outcome follow(pid_t child, unsigned n)
{
	int status;
	if (ptrace(PTRACE_SETOPTIONS, child, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) < 0)
		return UNTRACED;
	for (unsigned seen = 0;;) {
		if (ptrace(PTRACE_SYSCALL, child, NULL, NULL) < 0 || waitpid(child, &status, 0) != child)
			return WRONG;
		if (WIFEXITED(status))
			return WEXITSTATUS(status) ? WRONG : SURVIVED;
		if (!WIFSTOPPED(status) || WSTOPSIG(status) != (SIGTRAP | 0x80))
			return WRONG;
		if (at_change(child) && ++seen == n)
			return kill(child, SIGKILL) == 0 && waitpid(child, &status, 0) == child ? KILLED : WRONG;
	}
}

/* Lets `work` run in a child up to its nth change. */
static enum outcome run_until(void (*work)(const char *), const char *path, unsigned n)
{
	int status;
	fflush(NULL);
	pid_t child = fork();
	CU_ASSERT_FATAL(child >= 0);
	if (child == 0) {
		if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
			_exit(77);
		raise(SIGSTOP);
		work(path);
		_exit(0);
	}
	CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
	return WIFSTOPPED(status) ? follow(child, n) : UNTRACED;
}

static void nothing(const char *path)
{
	(void)path;
}

static int can_trace(void)
{
	if (run_until(nothing, "", 1) == SURVIVED)
		return 1;
	unit_skip("ptrace is not permitted");
	return 0;
}

/* --- the work
 * ---------------------------------------------------------------------------------------------------------- */

enum { SERIES = 40, ROUNDS = 12 };

static struct dataset data; /* made before the fork */

static void calibrate_and_publish(const char *path)
{
	struct store *store = NULL;
	struct pc_why why = {""};
	struct calibration c = {.effort = "quick", .quality = "good", .started = 1, .finished = 2};
	CHILD_CHECK(store_open(&store, path, STORE_WRITE, NULL, &why) == 0);
	CHILD_CHECK(store_begin(store, &sample_topology, &c, &why) == 0);
	CHILD_CHECK(store_finish(store, &c, &data, &why) == 0);
	CHILD_CHECK(sample_publish(store, 2, c.id, "the: new\n", &why) == 0);
	store_close(store);
}

static void open_and_close(const char *path)
{
	struct store *store = NULL;
	struct pc_why why = {""};
	CHILD_CHECK(store_open(&store, path, STORE_WRITE, NULL, &why) == 0);
	store_close(store);
}

/* The old calibration, and of the new one nothing, a failed beginning, or all; its policy only with it. */
static void check_old_or_new(const char *path, int64_t old, int finished)
{
	struct pc_why why = {""};
	struct calibration c = {0};
	struct published p = {0};
	struct dataset read = {0};
	struct store *store = sample_open(path, STORE_WRITE);
	CU_ASSERT_EQUAL_FATAL(store_latest(store, NULL, &c, &why), 0);
	CU_ASSERT_EQUAL_FATAL(store_series(store, c.id, &read, &why), 0);
	CU_ASSERT_EQUAL(read.count, SERIES);
	for (size_t i = 0; i < read.count; i++)
		CU_ASSERT_EQUAL(read.series[i].count, ROUNDS);
	CU_ASSERT_EQUAL_FATAL(store_published(store, NULL, &p, &why), 0);
	CU_ASSERT_STRING_EQUAL(p.yaml, p.generation == 2 ? "the: new\n" : "the: old\n");
	CU_ASSERT(p.calibration == old || p.calibration == c.id);
	CU_ASSERT(!finished || p.generation == 2);
	store_calibration_free(&c);
	dataset_clear(&read);
	free(p.yaml);
	store_close(store);
	CU_ASSERT_STRING_EQUAL(sample_sql(path, "PRAGMA integrity_check"), "ok");
	CU_ASSERT_STRING_EQUAL(sample_sql(path, "SELECT count(*) FROM series WHERE calibration IN "
	                                        "(SELECT id FROM calibration WHERE state <> 'done')"),
	                       "0");
	CU_ASSERT_STRING_EQUAL(sample_sql(path, "SELECT count(*) FROM calibration WHERE state = 'running'"), "0");
}

static void test_killed_at_every_step(void)
{
	struct pc_why why = {""};
	const char *path = sample_path("killed.db");
	unsigned n = 0, unfinished = 0;
	size_t len;
	enum outcome outcome = KILLED;
	if (!can_trace())
		return;
	data = sample_data(SERIES, ROUNDS);
	struct store *store = sample_open(path, STORE_WRITE);
	int64_t old = sample_done(store, &data);
	CU_ASSERT_EQUAL(sample_publish(store, 1, old, "the: old\n", &why), 0);
	store_close(store);
	unsigned char *before = sample_read(path, &len);
	while (outcome == KILLED && n < 400) {
		sample_write(path, before, len);
		outcome = run_until(calibrate_and_publish, path, ++n);
		/* A reader is told that a change must be taken back first; it takes nothing back itself. */
		int r = sample_try(path, STORE_READ, NULL, &why);
		CU_ASSERT(r == 0 || r == -EAGAIN);
		unfinished += r == -EAGAIN;
		check_old_or_new(path, old, outcome == SURVIVED);
	}
	CU_ASSERT_EQUAL(outcome, SURVIVED);
	/* Three transactions at the least, each with a journal, its syncs, the pages and their sync. */
	CU_ASSERT(n > 20);
	CU_ASSERT(unfinished > 5);
	printf("\nkilled at %u steps, %u of them with a journal to roll back\n", n - 1, unfinished);
	free(before);
	dataset_clear(&data);
}

static void test_killed_while_it_begins(void)
{
	unsigned n = 0;
	enum outcome outcome = KILLED;
	if (!can_trace())
		return;
	while (outcome == KILLED && n < 400) {
		const char *path = sample_path("begins/calibrd.db");
		outcome = run_until(open_and_close, path, ++n);
		store_close(sample_open(path, STORE_WRITE));
		CU_ASSERT_STRING_EQUAL(sample_sql(path, "PRAGMA integrity_check"), "ok");
	}
	CU_ASSERT_EQUAL(outcome, SURVIVED);
	CU_ASSERT(n > 8);
}

/* Junk is renamed and never lost, wherever the writer is killed while it renames and begins anew. */
static void test_killed_while_it_renames(void)
{
	char junk[5000], aside[600];
	unsigned n = 0;
	enum outcome outcome = KILLED;
	if (!can_trace())
		return;
	memset(junk, 'j', sizeof(junk));
	while (outcome == KILLED && n < 400) {
		struct pc_why why = {""};
		struct store *store = NULL;
		size_t len = 0;
		const char *path = sample_path("renames.db");
		sample_was_ours(path);
		sample_write(path, junk, sizeof(junk));
		outcome = run_until(open_and_close, path, ++n);
		CU_ASSERT_EQUAL(store_open(&store, path, STORE_WRITE, NULL, &why), 0);
		store_close(store);
		snprintf(aside, sizeof(aside), "%s.damaged-1", path);
		unsigned char *got = sample_read(aside, &len);
		CU_ASSERT_EQUAL_FATAL(len, sizeof(junk));
		CU_ASSERT_EQUAL(memcmp(got, junk, len), 0);
		free(got);
		snprintf(aside, sizeof(aside), "%s.damaged-2", path);
		CU_ASSERT(access(aside, F_OK) < 0);
	}
	CU_ASSERT_EQUAL(outcome, SURVIVED);
	CU_ASSERT(n > 10);
}

static void as_nobody(const char *path)
{
	struct pc_why why = {""};
	struct store *store = NULL;
	CHILD_CHECK(setgid(65534) == 0 && setuid(65534) == 0);
	CHILD_CHECK(store_open(&store, path, STORE_READ, NULL, &why) == -EAGAIN);
	CHILD_CHECK(strstr(why.text, "killed"));
}

static void test_unprivileged_reader_of_a_hot_journal(void)
{
	const char *path = sample_path("hot.db");
	struct pc_why why = {""};
	unsigned n = 0;
	int status;
	if (getuid() != 0) {
		unit_skip("becoming nobody takes root");
		return;
	}
	if (!can_trace())
		return;
	data = sample_data(SERIES, ROUNDS);
	CU_ASSERT_EQUAL_FATAL(chmod(unit_folder(), 0755), 0);
	store_close(sample_open(path, STORE_WRITE));
	do {
		CU_ASSERT_EQUAL_FATAL(run_until(calibrate_and_publish, path, ++n), KILLED);
	} while (sample_try(path, STORE_READ, NULL, &why) != -EAGAIN);
	fflush(NULL);
	pid_t child = fork();
	CU_ASSERT_FATAL(child >= 0);
	if (child == 0) {
		as_nobody(path);
		_exit(0);
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	CU_ASSERT_EQUAL(status, 0);
	store_close(sample_open(path, STORE_WRITE));
	CU_ASSERT_EQUAL(sample_try(path, STORE_READ, NULL, &why), 0);
	dataset_clear(&data);
}

/* Of a change that was killed before its journal counted: nothing to take back, and nothing to leave lying there. */
static void test_journal_that_never_counted(void)
{
	static const unsigned char zeros[9000];
	struct pc_why why = {""};
	char journal[600];
	const char *path = sample_path("journal.db");
	for (size_t len = 0; len <= sizeof(zeros); len += sizeof(zeros)) {
		unlink(path);
		struct store *store = sample_open(path, STORE_WRITE);
		CU_ASSERT_EQUAL(sample_publish(store, 1, 0, "the: old\n", &why), 0);
		store_close(store);
		snprintf(journal, sizeof(journal), "%s-journal", path);
		sample_write(journal, zeros, len);
		store_close(sample_open(path, STORE_READ));
		CU_ASSERT_EQUAL(access(journal, F_OK), 0);
		store_close(sample_open(path, STORE_WRITE));
		CU_ASSERT(access(journal, F_OK) < 0);
		CU_ASSERT_STRING_EQUAL(sample_sql(path, "SELECT count(*) FROM published"), "1");
		CU_ASSERT_STRING_EQUAL(sample_sql(path, "PRAGMA integrity_check"), "ok");
	}
}

/* --- a full disk
 * -------------------------------------------------------------------------------------------------------- */

static void fill(const char *path, int fill_up)
{
	char block[4096] = {0};
	if (!fill_up) {
		CHILD_CHECK(unlink(path) == 0);
		return;
	}
	FILE *file = fopen(path, "wb");
	CHILD_CHECK(file);
	setbuf(file, NULL);
	while (fwrite(block, 1, sizeof(block), file) == sizeof(block))
		;
	fclose(file);
}

static void begins_on_full_disk(const char *path, const char *filler)
{
	struct pc_why why = {""};
	struct store *store = NULL;
	fill(filler, 1);
	CHILD_CHECK(store_open(&store, path, STORE_WRITE, NULL, &why) == -ENOSPC);
	CHILD_CHECK(strlen(why.text) > 0);
	fill(filler, 0);
	CHILD_CHECK(store_open(&store, path, STORE_WRITE, NULL, &why) == 0);
	store_close(store);
}

/* Publishes until there is no room; what was published stays readable; the last generation. */
static uint64_t publish_until_full(struct store *store)
{
	struct pc_why why = {""};
	struct published got = {0};
	static char yaml[9001];
	memset(yaml, 'y', sizeof(yaml) - 1);
	uint64_t generation = 1;
	int r;
	while ((r = sample_publish(store, generation, 0, yaml, &why)) == 0)
		generation++;
	CHILD_CHECK(r == -ENOSPC && generation > 2);
	CHILD_CHECK(store_published(store, NULL, &got, &why) == 0);
	CHILD_CHECK(got.generation == generation - 1 && !strcmp(got.yaml, yaml));
	free(got.yaml);
	return generation;
}

static void on_full_disk(const char *folder)
{
	struct pc_why why = {""};
	struct store *store = NULL;
	struct calibration c = {.effort = "quick", .quality = "good", .started = 1, .finished = 2};
	char path[600], filler[600];
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", folder, "tmpfs", 0, "size=512k") < 0)
		_exit(77);
	snprintf(path, sizeof(path), "%s/calibrd.db", folder);
	snprintf(filler, sizeof(filler), "%s/filler", folder);
	begins_on_full_disk(path, filler);

	CHILD_CHECK(store_open(&store, path, STORE_WRITE, NULL, &why) == 0);
	CHILD_CHECK(store_begin(store, &sample_topology, &c, &why) == 0);
	fill(filler, 1);
	CHILD_CHECK(store_finish(store, &c, &data, &why) == -ENOSPC);
	fill(filler, 0);
	CHILD_CHECK(store_finish(store, &c, &data, &why) == 0);
	uint64_t generation = publish_until_full(store);
	fill(filler, 1);
	store_close(store);

	/* What is there can be opened and read, even by a writer; and serves again once there is room. */
	CHILD_CHECK(store_open(&store, path, STORE_READ, NULL, &why) == 0);
	store_close(store);
	CHILD_CHECK(store_open(&store, path, STORE_WRITE, NULL, &why) == 0);
	CHILD_CHECK(store_latest(store, NULL, &c, &why) == 0);
	store_calibration_free(&c);
	CHILD_CHECK(sample_publish(store, generation, 0, "a: 1\n", &why) == -ENOSPC);
	fill(filler, 0);
	CHILD_CHECK(mount("none", folder, "tmpfs", MS_REMOUNT, "size=2m") == 0);
	CHILD_CHECK(sample_publish(store, generation, 0, "a: 1\n", &why) == 0);
	store_close(store);
	CHILD_CHECK(!strcmp(sample_sql(path, "PRAGMA integrity_check"), "ok"));
}

static void test_full_disk(void)
{
	int status;
	const char *folder = sample_path("full");
	CU_ASSERT_EQUAL_FATAL(mkdir(folder, 0755), 0);
	data = sample_data(SERIES, ROUNDS);
	fflush(NULL);
	pid_t child = fork();
	CU_ASSERT_FATAL(child >= 0);
	if (child == 0) {
		on_full_disk(folder);
		_exit(0);
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		unit_skip("no mount namespace here");
	else
		CU_ASSERT_EQUAL(status, 0);
	dataset_clear(&data);
}

static const struct unit_test tests[] = {
	{"killed at every step", test_killed_at_every_step},
	{"killed while it begins", test_killed_while_it_begins},
	{"killed while it renames", test_killed_while_it_renames},
	{"unprivileged reader of a hot journal", test_unprivileged_reader_of_a_hot_journal},
	{"journal that never counted", test_journal_that_never_counted},
	{"full disk", test_full_disk},
};

UNIT_MAIN("store_crash", tests)
