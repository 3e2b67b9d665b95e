/* The database's home on file systems that are read-only or full: see test_store_place.c for the rest. */
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "tests/unit/store_places.h"

/* In a child with a small file system of its own where home is. */
static void with_filesystem(void (*work)(void))
{
	static char folder[300];
	int status;

	fresh();
	mend_home();
	snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(home, '/') - home), home);
	CU_ASSERT_EQUAL_FATAL(mkdir(folder, 0755), 0);
	fflush(NULL);
	pid_t child = fork();
	CU_ASSERT_FATAL(child >= 0);
	if (child == 0) {
		if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
		    mount("none", folder, "tmpfs", 0, "size=8m") < 0 || chdir(folder) < 0)
			_exit(77);
		work();
		_exit(0);
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		unit_skip("no mount namespace here");
	else
		CU_ASSERT_EQUAL(status, 0);
}

static void remount(unsigned long flags, const char *size)
{
	CHILD_CHECK(mount("none", ".", NULL, MS_REMOUNT | flags, size) == 0);
}

static int64_t child_remember(struct store *store, int64_t started, uint64_t generation, char *yaml)
{
	struct dataset data = sample_data(SERIES, ROUNDS);
	struct calibration c = {.effort = "quick", .quality = "good", .started = started, .finished = started + 10};

	CHILD_CHECK(store_begin(store, &sample_topology, &c, &why) == 0);
	CHILD_CHECK(store_finish(store, &c, &data, &why) == 0);
	CHILD_CHECK(sample_publish(store, generation, c.id, yaml, &why) == 0);
	dataset_clear(&data);
	return c.id;
}

/* With what both knew. */
static void comes_home(struct store *store)
{
	CHILD_CHECK(store_place_return(&store, &place, renamed, &why) == 0);
	store_close(store);
	CHILD_CHECK(!exists(spare));
	CHILD_CHECK(!strcmp(sample_sql(home, "SELECT group_concat(generation || ' ' || calibration) FROM published"),
	                    "4 1,5 2"));
	CHILD_CHECK(!strcmp(sample_sql(home, "PRAGMA integrity_check"), "ok"));
}

static void read_only_home(void)
{
	struct store *store = NULL;

	CHILD_CHECK(place_open(&store) == 0);
	child_remember(store, 1000, 4, "home: 4\n");
	store_close(store);
	remount(MS_RDONLY, NULL);

	/* What is known there is known here: nothing need be measured. */
	CHILD_CHECK(place_open(&store) == 1);
	CHILD_CHECK(strstr(why.text, "Read-only file system: measurements are kept in") != NULL);
	CHILD_CHECK(strstr(why.text, "without those of before") == NULL);
	CHILD_CHECK(
		!strcmp(sample_sql(spare, "SELECT count(*) FROM calibration JOIN rounds ON calibration = id"), "20"));
	child_remember(store, 2000, 5, "away: 5\n");
	CHILD_CHECK(store_place_return(&store, &place, renamed, &why) == -EROFS);
	store_close(store);
	CHILD_CHECK(place_open(&store) == 1); /* a restart */
	CHILD_CHECK(!strcmp(sample_sql(spare, "SELECT count(*) FROM calibration"), "2"));

	remount(0, NULL);
	comes_home(store);
}

static void test_read_only_home(void)
{
	with_filesystem(read_only_home);
}

/* One that is too new or not ours is refused also where it can't be written. */
static void read_only_foreign_home(void)
{
	struct store *store = NULL;

	CHILD_CHECK(place_open(&store) == 0);
	store_close(store);
	sample_change(home, "PRAGMA user_version = 999");
	remount(MS_RDONLY, NULL);
	CHILD_CHECK(place_open(&store) == -EPROTONOSUPPORT);
	CHILD_CHECK(strstr(why.text, "999") != NULL);
	CHILD_CHECK(!exists(spare));
	remount(0, NULL);
	CHILD_CHECK(place_open(&store) == -EPROTONOSUPPORT);
	sample_change(home, "PRAGMA application_id = 1");
	remount(MS_RDONLY, NULL);
	CHILD_CHECK(place_open(&store) == -EMEDIUMTYPE);
	CHILD_CHECK(!exists(spare));
}

static void test_read_only_foreign_home(void)
{
	with_filesystem(read_only_foreign_home);
}

/* Damaged where it can't be set aside: what was known is lost for now, and said to be. */
static void read_only_damaged_home(void)
{
	struct store *store = NULL;
	char junk[5000];

	CHILD_CHECK(place_open(&store) == 0);
	store_close(store);
	memset(junk, 'j', sizeof(junk));
	sample_write(home, junk, sizeof(junk));
	remount(MS_RDONLY, NULL);
	CHILD_CHECK(place_open(&store) == 1);
	CHILD_CHECK(strstr(why.text, "without those of before") != NULL);
	child_remember(store, 2000, 5, "away: 5\n");
	remount(0, NULL);
	CHILD_CHECK(store_place_return(&store, &place, renamed, &why) == 0);
	CHILD_CHECK(strstr(renamed, ".damaged-1") != NULL && exists(renamed));
	store_close(store);
	CHILD_CHECK(!strcmp(sample_sql(home, "SELECT count(*) FROM calibration"), "1"));
}

static void test_read_only_damaged_home(void)
{
	with_filesystem(read_only_damaged_home);
}

static void fill_up(void)
{
	char block[4096] = {0};
	int fd = open("filler", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	CHILD_CHECK(fd >= 0);
	while (write(fd, block, sizeof(block)) == (ssize_t)sizeof(block))
		;
	close(fd);
}

static void full_home(void)
{
	struct store *store = NULL;

	CHILD_CHECK(place_open(&store) == 0);
	child_remember(store, 1000, 4, "home: 4\n");
	fill_up();
	/* It fails while it is open: closed, opened again. */
	struct calibration c = {.effort = "quick", .started = 1500};
	CHILD_CHECK(store_begin(store, &sample_topology, &c, &why) == -ENOSPC);
	CHILD_CHECK(strstr(why.text, "make room where it is kept") != NULL);
	store_close(store);
	CHILD_CHECK(place_open(&store) == 1);
	CHILD_CHECK(strstr(why.text, "No space left on device: measurements are kept in") != NULL);
	CHILD_CHECK(strstr(why.text, "make room there") != NULL);
	CHILD_CHECK(!strcmp(sample_sql(spare, "SELECT count(*) FROM calibration"), "1"));
	child_remember(store, 2000, 5, "away: 5\n");
	CHILD_CHECK(store_place_return(&store, &place, renamed, &why) == -ENOSPC);
	CHILD_CHECK(!strcmp(sample_sql(home, "SELECT count(*) FROM calibration"), "1"));
	CHILD_CHECK(unlink("filler") == 0);
	comes_home(store);
}

static void test_full_home(void)
{
	with_filesystem(full_home);
}

/* Room enough by its rule, not enough for all that comes: nothing is half brought. */
static void home_too_small(void)
{
	struct store *store = NULL;
	static char yaml[1000001];

	memset(yaml, 'y', sizeof(yaml) - 1);
	remount(MS_RDONLY, NULL);
	CHILD_CHECK(place_open(&store) == 1);
	for (unsigned i = 1; i <= 9; i++)
		CHILD_CHECK(sample_publish(store, i, 0, yaml, &why) == 0);
	child_remember(store, 2000, 10, "away: 10\n");
	remount(0, NULL);
	CHILD_CHECK(store_place_return(&store, &place, renamed, &why) == -ENOSPC);
	CHILD_CHECK(place.fallback && exists(spare));
	CHILD_CHECK(!strcmp(sample_sql(home, "SELECT count(*) FROM published"), "0"));
	remount(0, "size=32m");
	CHILD_CHECK(store_place_return(&store, &place, renamed, &why) == 0);
	store_close(store);
	CHILD_CHECK(!strcmp(sample_sql(home, "SELECT count(*) FROM published"), "10"));
}

static void test_home_too_small(void)
{
	with_filesystem(home_too_small);
}

static const struct unit_test tests[] = {
	{"read-only home", test_read_only_home},
	{"read-only home, foreign or newer", test_read_only_foreign_home},
	{"read-only home, damaged", test_read_only_damaged_home},
	{"full home", test_full_home},
	{"home too small", test_home_too_small},
};

UNIT_MAIN("store_place_disk", tests)
