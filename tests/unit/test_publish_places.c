/* Publishing: which of two places a policy goes to, what is taken away, and file systems that refuse. */
#include "calibrd/publish.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "tests/unit/publish_files.h"

enum { SKIPPED = 77 };

/* --- the fallback ------------------------------------------------------------------------------------------------ */

static void falls_back_and_returns(void)
{
	const char *folder = fresh();
	char path[PATH_SIZE], fallback[PATH_SIZE];
	struct record record = {0};
	struct stat status;

	snprintf(path, sizeof(path), "%.1000s/etc/policy.yaml", folder);
	snprintf(fallback, sizeof(fallback), "%.1000s/run/policy.yaml", folder);
	CU_ASSERT_EQUAL(publish_to(path, NULL, &record, 2), -ENOENT);
	mode_t before = umask(077);
	CU_ASSERT_EQUAL(publish_to(path, fallback, &record, 2), 0);
	umask(before);
	CU_ASSERT_TRUE(last.result.used_fallback && last.result.written);
	CU_ASSERT_STRING_EQUAL(last.result.path, fallback);
	CU_ASSERT_TRUE(said("etc: No such file or directory: published as"));
	CU_ASSERT_TRUE(said(fallback));
	CU_ASSERT_TRUE(stat(in(folder, "run"), &status) == 0 && status.st_mode == (S_IFDIR | 0755));
	CU_ASSERT_TRUE(stat(fallback, &status) == 0 && status.st_mode == (S_IFREG | 0644));

	CU_ASSERT_EQUAL(publish_to(path, fallback, &record, 2), 1);
	CU_ASSERT_TRUE(last.result.used_fallback && said("published as"));
	CU_ASSERT_EQUAL(last.result.generation, 1);
	CU_ASSERT_EQUAL(publish_to(path, fallback, &record, 3), 0);
	CU_ASSERT_EQUAL(last.result.generation, 2);
	CU_ASSERT_TRUE(holds(fallback, last.result.yaml));

	/* The folder is back: the same content moves there, as a publication of its own. */
	CU_ASSERT_EQUAL_FATAL(mkdir(in(folder, "etc"), 0755), 0);
	CU_ASSERT_EQUAL(publish_to(path, fallback, &record, 3), 0);
	CU_ASSERT_FALSE(last.result.used_fallback);
	CU_ASSERT_STRING_EQUAL(last.result.warnings, "");
	CU_ASSERT_EQUAL(last.result.generation, 3);
	CU_ASSERT_TRUE(holds(path, last.result.yaml));
	CU_ASSERT_TRUE(is_absent(fallback));
	forget(&record);
}

/* A new database, and only the fallback tells how far the generations have come. */
static void fallback_counts(void)
{
	const char *folder = fresh(), *path = in(folder, "policy.yaml"), *fallback = in(folder, "run.yaml");
	struct record record = {0};
	char *text = text_of(2, 20);

	put_text(fallback, text);
	CU_ASSERT_EQUAL(publish_to(path, fallback, &record, 3), 0);
	CU_ASSERT_EQUAL(last.result.generation, 21);
	CU_ASSERT_TRUE(is_absent(fallback));
	free(text);
	forget(&record);
}

/* What path held while its folder was read-only is an older publication, not an edit. */
static void older_is_not_edited(void)
{
	const char *folder = fresh(), *path = in(folder, "policy.yaml"), *fallback = in(folder, "run.yaml");
	struct record record = {0};

	CU_ASSERT_EQUAL(publish_to(path, NULL, &record, 2), 0);
	CU_ASSERT_EQUAL(publish_to(fallback, NULL, &record, 3), 0);
	CU_ASSERT_EQUAL(last.result.generation, 2);
	CU_ASSERT_EQUAL(publish_to(path, fallback, &record, 4), 0);
	CU_ASSERT_EQUAL(last.result.generation, 3);
	CU_ASSERT_STRING_EQUAL(last.result.warnings, "");
	CU_ASSERT_EQUAL(entries(folder), 1);

	/* Back to what path holds, but readers see the newer fallback: a new generation all the same. */
	CU_ASSERT_EQUAL(publish_to(fallback, NULL, &record, 5), 0);
	CU_ASSERT_EQUAL(last.result.generation, 4);
	CU_ASSERT_EQUAL(publish_to(path, fallback, &record, 4), 0);
	CU_ASSERT_EQUAL(last.result.generation, 5);
	CU_ASSERT_EQUAL(entries(folder), 1);
	forget(&record);
}

/* Killed between the two: path has the newer one, the fallback still hides it. */
static void leftover_fallback_goes(void)
{
	const char *folder = fresh(), *path = in(folder, "policy.yaml"), *fallback = in(folder, "run.yaml");
	struct record record = {0};

	CU_ASSERT_EQUAL(publish_to(fallback, NULL, &record, 2), 0);
	CU_ASSERT_EQUAL(publish_to(path, NULL, &record, 3), 0);
	CU_ASSERT_EQUAL(publish_to(path, fallback, &record, 3), 1);
	CU_ASSERT_EQUAL(last.result.generation, 2);
	CU_ASSERT_TRUE(is_absent(fallback));

	put_text(fallback, "by hand"); /* in the way, but somebody's */
	CU_ASSERT_EQUAL(publish_to(path, fallback, &record, 3), 1);
	CU_ASSERT_TRUE(last.result.edited_kept);
	CU_ASSERT_TRUE(is_absent(fallback));
	CU_ASSERT_TRUE(holds(in(folder, "run.yaml.edited-2"), "by hand"));
	forget(&record);
}

/* path: /run/pageclear/policy.yaml in calibrd.yaml, however spelt. */
static void fallback_may_be_the_path(void)
{
	const char *folder = fresh(), *path = in(folder, "policy.yaml");
	char other[PATH_SIZE];
	struct record record = {0};

	snprintf(other, sizeof(other), "%.1000s/../%s/./policy.yaml", folder, strrchr(folder, '/') + 1);
	CU_ASSERT_EQUAL(publish_to(path, path, &record, 2), 0);
	CU_ASSERT_TRUE(holds(path, last.result.yaml));
	CU_ASSERT_EQUAL(publish_to(path, other, &record, 3), 0);
	CU_ASSERT_TRUE(holds(path, last.result.yaml));
	CU_ASSERT_EQUAL(publish_to(path, other, &record, 3), 1);
	CU_ASSERT_TRUE(holds(path, last.result.yaml));
	CU_ASSERT_EQUAL(entries(folder), 1);
	forget(&record);
}

/* --- withdrawing ------------------------------------------------------------------------------------------------- */

static void foreign_policies_go(void)
{
	const char *folder = fresh(), *path = in(folder, "policy.yaml"), *fallback = in(folder, "run.yaml");
	struct record record = {0};

	CU_ASSERT_EQUAL(withdraw_from(path, fallback, &record, "000000000000"), 1);
	CU_ASSERT_EQUAL(publish_to(path, NULL, &record, 2), 0);
	CU_ASSERT_EQUAL(publish_to(fallback, NULL, &record, 3), 0);
	CU_ASSERT_EQUAL(withdraw_from(path, fallback, &record, "3f9ac2d14b07"), 1);
	CU_ASSERT_EQUAL(entries(folder), 2);
	CU_ASSERT_EQUAL(withdraw_from(path, fallback, &record, "000000000000"), 0);
	CU_ASSERT_STRING_EQUAL(last.result.path, path);
	CU_ASSERT_STRING_EQUAL(last.result.warnings, "");
	CU_ASSERT_EQUAL(entries(folder), 0);

	CU_ASSERT_EQUAL(publish_to(path, NULL, &record, 4), 0);
	CU_ASSERT_EQUAL(withdraw_from(path, NULL, &record, "000000000000"), 0);
	CU_ASSERT_EQUAL(entries(folder), 0);
	CU_ASSERT_EQUAL(withdraw_from(in(folder, "no/policy.yaml"), NULL, &record, "000000000000"), 1);
	forget(&record);
}

static void edits_survive_withdrawal(void)
{
	const char *folder = fresh(), *path = in(folder, "policy.yaml");
	struct record record = {0};
	char *mine = text_of(9, 6);

	put_text(path, "no policy");
	CU_ASSERT_EQUAL(withdraw_from(path, NULL, &record, "000000000000"), 1);
	CU_ASSERT_TRUE(holds(path, "no policy"));
	put_text(path, mine);
	CU_ASSERT_EQUAL(withdraw_from(path, NULL, &record, "000000000000"), 0);
	CU_ASSERT_TRUE(last.result.edited_kept && said("edited-6"));
	CU_ASSERT_TRUE(is_absent(path));
	CU_ASSERT_TRUE(holds(in(folder, "policy.yaml.edited-6"), mine));
	free(mine);
}

/* --- hostile file systems: each in a child with mounts of its own ---------------------------------------------------
 */

#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			printf("\n%s:%d: %s (%d: %s; %s)\n", __FILE__, __LINE__, #condition, last.code, last.why.text, \
			       last.result.warnings);                                                                  \
			fflush(stdout);                                                                                \
			_exit(1);                                                                                      \
		}                                                                                                      \
	} while (0)

static void own_mounts(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) < 0)
		_exit(SKIPPED);
}

static void in_child(void (*body)(const char *folder), const char *needs)
{
	const char *folder = fresh();
	int status = 0;

	fflush(stdout);
	pid_t child = fork();
	CU_ASSERT_FATAL(child >= 0);
	if (child == 0) {
		body(folder);
		_exit(0);
	}
	CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED)
		unit_skip("needs %s", needs);
	else
		CU_ASSERT_EQUAL(status, 0);
}

static void read_only_body(const char *folder)
{
	const char *etc = in(folder, "etc"), *path = in(folder, "etc/policy.yaml"),
		   *fallback = in(folder, "run/policy.yaml");
	struct record record = {0};

	own_mounts();
	CHECK(mkdir(etc, 0755) == 0 && mount("tmpfs", etc, "tmpfs", 0, "mode=0755") == 0);
	CHECK(publish_to(path, fallback, &record, 2) == 0 && !last.result.used_fallback);
	put_text(in(folder, "etc/.policy.yaml.stale0"), ""); /* can't be cleaned: no reason to fail */
	CHECK(mount("none", etc, "none", MS_REMOUNT | MS_RDONLY, NULL) == 0);
	CHECK(publish_to(path, fallback, &record, 2) == 1 && !last.result.used_fallback);
	CHECK(publish_to(path, NULL, &record, 3) == -EROFS);
	CHECK(publish_to(path, fallback, &record, 3) == 0 && last.result.used_fallback);
	CHECK(said("etc: Read-only file system: published as"));
	CHECK(holds(fallback, last.result.yaml) && last.result.generation == 2);
	CHECK(withdraw_from(path, NULL, &record, "000000000000") == -EROFS);
	CHECK(strstr(last.why.text, path) != NULL);
	CHECK(mount("none", etc, "none", MS_REMOUNT, NULL) == 0);
	CHECK(publish_to(path, fallback, &record, 3) == 0 && !last.result.used_fallback);
	CHECK(holds(path, last.result.yaml) && is_absent(fallback));
	CHECK(entries(etc) == 1);
}

static void full_disk_body(const char *folder)
{
	const char *etc = in(folder, "etc"), *path = in(folder, "etc/policy.yaml");
	struct record record = {0};
	char block[4096] = {1};

	own_mounts();
	CHECK(mkdir(etc, 0755) == 0 && mount("tmpfs", etc, "tmpfs", 0, "size=64k") == 0);
	CHECK(publish_to(path, NULL, &record, 2) == 0);
	char *text = get_text(path);
	FILE *fill = fopen(in(folder, "etc/fill"), "w");
	CHECK(fill != NULL && setvbuf(fill, NULL, _IONBF, 0) == 0);
	while (fwrite(block, 1, sizeof(block), fill) == sizeof(block))
		;
	fclose(fill);
	CHECK(publish_to(path, in(folder, "run.yaml"), &record, 3) == -ENOSPC);
	CHECK(!last.result.written && strstr(last.why.text, "No space left") != NULL);
	CHECK(holds(path, text) && entries(etc) == 2 && is_absent(in(folder, "run.yaml")));
	put_text(path, ""); /* an edit that can't be kept isn't replaced */
	CHECK(unlink(in(folder, "etc/fill")) == 0);
	CHECK(publish_to(path, NULL, &record, 3) == 0 && last.result.edited_kept);
}

static void bound_file_body(const char *folder)
{
	const char *etc = in(folder, "etc"), *path = in(folder, "etc/policy.yaml"), *source = in(folder, "source.yaml");
	struct record record = {0};

	own_mounts();
	CHECK(mkdir(etc, 0755) == 0);
	CHECK(publish_to(source, NULL, &record, 2) == 0);
	char *text = get_text(source);
	put_text(path, "");
	CHECK(mount(source, path, "none", MS_BIND, NULL) == 0);
	CHECK(publish_to(path, in(folder, "run.yaml"), &record, 2) == 1);
	CHECK(publish_to(path, in(folder, "run.yaml"), &record, 3) == -EBUSY);
	CHECK(strstr(last.why.text, "mount its folder instead") != NULL);
	CHECK(holds(path, text) && entries(etc) == 1);
	CHECK(withdraw_from(path, NULL, &record, "000000000000") == -EBUSY);
	free(text);
}

/* As somebody who may not write there. */
static void denied_body(const char *folder)
{
	const char *path = in(folder, "etc/policy.yaml"), *fallback = in(folder, "run/policy.yaml");
	struct record record = {0};

	CHECK(mkdir(in(folder, "etc"), 0755) == 0 && mkdir(in(folder, "run"), 0777) == 0);
	CHECK(publish_to(path, NULL, &record, 2) == 0);
	CHECK(chmod(in(folder, "run"), 0777) == 0 && chmod(in(folder, "etc"), 0555) == 0);
	CHECK(chmod(unit_folder(), 0755) == 0);
	CHECK(geteuid() != 0 || setuid(65534) == 0);
	if (access(fallback, F_OK) == 0 || access(in(folder, "run"), W_OK) < 0)
		_exit(SKIPPED);
	CHECK(publish_to(path, NULL, &record, 3) == -EACCES);
	CHECK(publish_to(path, fallback, &record, 3) == 0 && last.result.used_fallback);
	CHECK(said("Permission denied: published as") && holds(fallback, last.result.yaml));
}

static void read_only(void)
{
	in_child(read_only_body, "root and mounts of its own");
}

static void full_disk(void)
{
	in_child(full_disk_body, "root and mounts of its own");
}

static void bound_file(void)
{
	in_child(bound_file_body, "root and mounts of its own");
}

static void denied(void)
{
	in_child(denied_body, "a temporary folder that others can reach");
}

static const struct unit_test tests[] = {
	{"falls back without the folder, and returns", falls_back_and_returns},
	{"the fallback's generation counts", fallback_counts},
	{"an older publication is no edit", older_is_not_edited},
	{"a leftover in the fallback goes", leftover_fallback_goes},
	{"the fallback may be the path itself", fallback_may_be_the_path},
	{"policies of another topology go", foreign_policies_go},
	{"edits survive withdrawal", edits_survive_withdrawal},
	{"a read-only file system", read_only},
	{"a full disk", full_disk},
	{"a file that is a mount", bound_file},
	{"a folder of somebody else", denied},
};

int main(void)
{
	int r = unit_main("publish_places", tests, sizeof(tests) / sizeof(tests[0]));

	free(last.result.yaml);
	return r;
}
