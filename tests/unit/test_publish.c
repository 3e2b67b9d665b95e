/*
 * Publishing: what is there afterwards, whatever was there before, and whenever it was killed.
 * `test-publish --publish PATH RECORDS GAIN` publishes a policy and records it: the program that gets killed.
 */
#include "calibrd/publish.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pageclear/policy.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calibrd/export.h"
#include "libpolicy/file.h"
#include "tests/unit/harness.h"

enum { PATH_SIZE = 4096, SKIPPED = 77 };

/* --- helpers ----------------------------------------------------------------------------------------------------- */

static struct pc_rule rules[] = {{.from = 0, .kernel = "libc"}, {.from = 4096, .kernel = "movnti", .gain = 2}};
static struct pc_table table = {PAGECLEAR_COLD, PC_FLUSHED, 1, 2, rules};

/* Documents differ in their gain. */
static const struct pc_document *policy(double gain)
{
	static struct pc_document document = {.version = "0.1.0",
	                                      .written = "2026-11-30T10:42:07Z",
	                                      .quality = "good",
	                                      .topology = "3f9ac2d14b07",
	                                      .arch = "x86_64",
	                                      .cpu_count = 1,
	                                      .cpus = {"AuthenticAMD 25/1/1"},
	                                      .table_count = 1,
	                                      .tables = &table};

	rules[1].gain = gain;
	return &document;
}

static char *text_of(double gain, uint64_t generation)
{
	struct pc_document document = *policy(gain);
	char *text = NULL;
	size_t len;

	document.generation = generation;
	CU_ASSERT_EQUAL_FATAL(export_yaml(&document, &text, &len, NULL), 0);
	return text;
}

/* A fresh folder below the test's, without links in its name. */
static const char *fresh(void)
{
	static char path[PATH_SIZE], base[PATH_SIZE];
	static unsigned number;

	CU_ASSERT_PTR_NOT_NULL_FATAL(realpath(unit_folder(), base));
	snprintf(path, sizeof(path), "%.3000s/%u", base, number++);
	CU_ASSERT_EQUAL_FATAL(mkdir(path, 0755), 0);
	return path;
}

static const char *in(const char *folder, const char *name)
{
	static char paths[32][PATH_SIZE];
	static unsigned turn;
	char *path = paths[turn++ % 32];

	snprintf(path, PATH_SIZE, "%.3500s/%.500s", folder, name);
	return path;
}

static void put_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_FATAL(fputs(text, file) >= 0 && fclose(file) == 0);
}

/* For free(); NULL if there is none. */
static char *get_text(const char *path)
{
	char *text = NULL;
	size_t len = 0;

	if (pc_file_read(path, 1 << 20, &text, &len, NULL) < 0)
		return NULL;
	text[len] = '\0'; /* there is room for one byte more than was asked for */
	return text;
}

static bool holds(const char *path, const char *text)
{
	char *there = get_text(path);
	bool same = there != NULL && text != NULL && strcmp(there, text) == 0;

	free(there);
	return same;
}

static unsigned entries(const char *folder)
{
	DIR *dir = opendir(folder);
	unsigned count = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(dir);
	while (readdir(dir) != NULL)
		count++;
	closedir(dir);
	return count - 2; /* . and .. */
}

static bool is_absent(const char *path)
{
	struct stat status;

	return lstat(path, &status) < 0 && errno == ENOENT;
}

/* What a database would know. */
struct record {
	char *texts[32];
	uint64_t newest;
};

static char *recorded(void *record, uint64_t generation)
{
	struct record *known = record;

	return generation < 32 && known->texts[generation] != NULL ? strdup(known->texts[generation]) : NULL;
}

static void forget(struct record *record)
{
	for (size_t i = 0; i < 32; i++)
		free(record->texts[i]);
	*record = (struct record){0};
}

struct outcome {
	int code;
	struct publish_result result;
	struct pc_why why;
};

static struct outcome last; /* of publish_to(): its yaml is freed by the next */

static int publish_to(const char *path, const char *fallback, struct record *record, double gain)
{
	struct publish_request request = {.target = {path, fallback, recorded, record},
	                                  .document = policy(gain),
	                                  .database_generation = record->newest};

	free(last.result.yaml);
	last.why.text[0] = '\0';
	last.code = publish(&request, &last.result, &last.why);
	if (last.code == 0 && last.result.generation < 32) {
		free(record->texts[last.result.generation]);
		record->texts[last.result.generation] = strdup(last.result.yaml);
		record->newest = last.result.generation;
	}
	return last.code;
}

static bool said(const char *words)
{
	return strstr(last.result.warnings, words) != NULL;
}

/* --- what is there afterwards ------------------------------------------------------------------------------------ */

static void first_publication(void)
{
	const char *folder = fresh(), *path = in(folder, "policy.yaml");
	struct record record = {0};
	struct stat status;
	mode_t before = umask(077);
	int r = publish_to(path, NULL, &record, 2);

	umask(before);
	CU_ASSERT_EQUAL_FATAL(r, 0);
	CU_ASSERT_TRUE(last.result.written);
	CU_ASSERT_EQUAL(last.result.generation, 1);
	CU_ASSERT_STRING_EQUAL(last.result.path, path);
	CU_ASSERT_STRING_EQUAL(last.result.warnings, "");
	CU_ASSERT_FALSE(last.result.edited_kept || last.result.used_fallback);
	CU_ASSERT_TRUE(holds(path, last.result.yaml));
	CU_ASSERT_EQUAL_FATAL(stat(path, &status), 0);
	CU_ASSERT_EQUAL(status.st_mode, S_IFREG | 0644);
	CU_ASSERT_EQUAL(entries(folder), 1);
	forget(&record);
}

static void relative_path(void)
{
	const char *folder = fresh();
	struct record record = {0};
	char before[PATH_SIZE];

	CU_ASSERT_FATAL(getcwd(before, sizeof(before)) != NULL && chdir(folder) == 0);
	int r = publish_to("policy.yaml", NULL, &record, 2);
	CU_ASSERT_EQUAL_FATAL(chdir(before), 0);
	CU_ASSERT_EQUAL(r, 0);
	CU_ASSERT_TRUE(holds(in(folder, "policy.yaml"), last.result.yaml));
	forget(&record);
}

static uint64_t next_generation(const char *path, uint64_t database)
{
	struct record record = {.newest = database};

	CU_ASSERT_EQUAL(publish_to(path, NULL, &record, 1.5 + (double)(database % 100)), 0);
	CU_ASSERT_TRUE(holds(path, last.result.yaml));
	forget(&record);
	return last.result.generation;
}

static void counts_up(void)
{
	const char *path = in(fresh(), "policy.yaml");
	char *text = text_of(2, 40);
	struct record full = {.newest = INT64_MAX}, beyond = {.newest = 50};

	CU_ASSERT_EQUAL(next_generation(path, 0), 1);
	CU_ASSERT_EQUAL(next_generation(path, 7), 8);
	put_text(path, text);
	CU_ASSERT_EQUAL(next_generation(path, 8), 41);
	put_text(path, "no policy");
	CU_ASSERT_EQUAL(next_generation(path, 41), 42);
	free(text);

	/* A number written by hand can't use up all that are left. */
	text = text_of(2, UINT64_MAX);
	put_text(path, text);
	CU_ASSERT_EQUAL(publish_to(path, NULL, &beyond, 2), 0); /* not even for the same content */
	CU_ASSERT_EQUAL(last.result.generation, 51);
	CU_ASSERT_TRUE(last.result.edited_kept);
	forget(&beyond);
	free(text);
	CU_ASSERT_EQUAL(next_generation(path, INT64_MAX - 1), INT64_MAX);
	CU_ASSERT_EQUAL(publish_to(path, NULL, &full, 9), -EOVERFLOW);
	CU_ASSERT_FALSE(last.result.written);
}

static void equal_content_is_not_written(void)
{
	const char *folder = fresh(), *path = in(folder, "policy.yaml");
	struct record record = {0};

	CU_ASSERT_EQUAL(publish_to(path, NULL, &record, 2), 0);
	char *text = get_text(path);
	struct pc_identity before = pc_file_identity(path), after;
	CU_ASSERT_EQUAL(publish_to(path, NULL, &record, 2), 1);
	after = pc_file_identity(path);
	CU_ASSERT_TRUE(pc_identity_same(&before, &after));
	CU_ASSERT_FALSE(last.result.written);
	CU_ASSERT_EQUAL(last.result.generation, 1);
	CU_ASSERT_STRING_EQUAL(last.result.yaml, text);
	CU_ASSERT_STRING_EQUAL(last.result.path, path);
	CU_ASSERT_EQUAL(publish_to(path, NULL, &record, 3), 0);
	CU_ASSERT_EQUAL(last.result.generation, 2);
	CU_ASSERT_EQUAL(entries(folder), 1);
	free(text);
	forget(&record);
}

/* --- edited files ------------------------------------------------------------------------------------------------ */

static void edited_files_are_kept(void)
{
	const char *folder = fresh(), *path = in(folder, "policy.yaml");
	struct record record = {0};
	char *mine = text_of(77, 1), *other = text_of(78, 1);

	CU_ASSERT_EQUAL(publish_to(path, NULL, &record, 2), 0);
	put_text(path, mine);
	CU_ASSERT_EQUAL(publish_to(path, NULL, &record, 3), 0);
	CU_ASSERT_TRUE(last.result.edited_kept);
	CU_ASSERT_TRUE(said("policy.yaml.edited-1"));
	CU_ASSERT_TRUE(holds(in(folder, "policy.yaml.edited-1"), mine));
	CU_ASSERT_TRUE(holds(path, last.result.yaml));
	CU_ASSERT_EQUAL(last.result.generation, 2);

	put_text(path, other); /* another edit of the same generation */
	CU_ASSERT_EQUAL(publish_to(path, NULL, &record, 4), 0);
	CU_ASSERT_TRUE(holds(in(folder, "policy.yaml.edited-1"), mine));
	CU_ASSERT_TRUE(holds(in(folder, "policy.yaml.edited-1-2"), other));

	put_text(path, other); /* kept already */
	CU_ASSERT_EQUAL(publish_to(path, NULL, &record, 5), 0);
	CU_ASSERT_TRUE(said("edited-1-2"));
	CU_ASSERT_EQUAL(entries(folder), 3);

	CU_ASSERT_EQUAL(publish_to(path, NULL, &record, 6), 0); /* calibrd's own again */
	CU_ASSERT_FALSE(last.result.edited_kept);
	CU_ASSERT_STRING_EQUAL(last.result.warnings, "");
	CU_ASSERT_EQUAL(entries(folder), 3);
	free(mine);
	free(other);
	forget(&record);
}

static void what_is_no_policy_is_kept(void)
{
	const char *folder = fresh(), *path = in(folder, "policy.yaml");
	struct record record = {.newest = 9};
	char *large = malloc(200001);

	put_text(path, "");
	CU_ASSERT_EQUAL(publish_to(path, NULL, &record, 2), 0);
	CU_ASSERT_TRUE(holds(in(folder, "policy.yaml.edited-9"), ""));
	CU_ASSERT_PTR_NOT_NULL_FATAL(large);
	memset(large, 'x', 200000); /* more than readers take */
	large[200000] = '\0';
	put_text(path, large);
	CU_ASSERT_EQUAL(publish_to(path, NULL, &record, 3), 0);
	CU_ASSERT_TRUE(holds(in(folder, "policy.yaml.edited-10"), large));
	CU_ASSERT_TRUE(holds(path, last.result.yaml));
	free(large);
	forget(&record);
}

/* A new database knows nothing of the file: it may be anybody's. */
static void unknown_files_are_kept(void)
{
	const char *folder = fresh(), *path = in(folder, "policy.yaml");
	struct record record = {0};

	CU_ASSERT_EQUAL(publish_to(path, NULL, &record, 2), 0);
	forget(&record);
	CU_ASSERT_EQUAL(publish_to(path, NULL, &record, 3), 0);
	CU_ASSERT_TRUE(last.result.edited_kept);
	CU_ASSERT_EQUAL(last.result.generation, 2);
	CU_ASSERT_EQUAL(entries(folder), 2);
	forget(&record);
}

/* --- odd paths --------------------------------------------------------------------------------------------------- */

static bool is_link(const char *path)
{
	struct stat status;

	return lstat(path, &status) == 0 && S_ISLNK(status.st_mode);
}

static void links_stay_links(void)
{
	static const char *const targets[] = {"real/policy.yaml", "real/dangling.yaml"};
	struct record record = {0};
	char absolute[PATH_SIZE];

	for (unsigned i = 0; i < 4; i++) {
		const char *folder = fresh(), *path = in(folder, "policy.yaml"), *real = in(folder, targets[i % 2]);

		CU_ASSERT_EQUAL_FATAL(mkdir(in(folder, "real"), 0755), 0);
		snprintf(absolute, sizeof(absolute), "%s", real);
		if (i % 2 == 0)
			put_text(real, "old");
		CU_ASSERT_EQUAL_FATAL(symlink(i < 2 ? targets[i % 2] : absolute, in(folder, "hop")), 0);
		CU_ASSERT_EQUAL_FATAL(symlink("hop", path), 0);
		CU_ASSERT_EQUAL(publish_to(path, NULL, &record, 2 + i), 0);
		CU_ASSERT_TRUE(is_link(path));
		CU_ASSERT_TRUE(holds(real, last.result.yaml));
		CU_ASSERT_STRING_EQUAL(last.result.path, absolute);
		CU_ASSERT_EQUAL(entries(folder), 3);
		CU_ASSERT_EQUAL(entries(in(folder, "real")), i % 2 == 0 ? 2 : 1); /* "old" is kept beside */
	}
	forget(&record);
}

static void paths_that_lead_nowhere(void)
{
	const char *folder = fresh();
	struct record record = {0};
	char path[PATH_SIZE];

	CU_ASSERT_EQUAL_FATAL(symlink("b", in(folder, "a")), 0);
	CU_ASSERT_EQUAL_FATAL(symlink("a", in(folder, "b")), 0);
	CU_ASSERT_EQUAL(publish_to(in(folder, "a"), NULL, &record, 2), -ELOOP);
	memset(path, 'x', 2000);
	path[2000] = '\0';
	CU_ASSERT_EQUAL(publish_to(path, NULL, &record, 2), -ENAMETOOLONG);
	snprintf(path, sizeof(path), "%.500s/%0250d", folder, 0); /* a good name, but no room for ".XXXXXX" */
	CU_ASSERT_EQUAL(publish_to(path, NULL, &record, 2), -ENAMETOOLONG);
	CU_ASSERT_NOT_EQUAL(last.why.text[0], '\0');
}

static void only_files_are_replaced(void)
{
	const char *folder = fresh(), *sub = in(folder, "folder"), *fifo = in(folder, "fifo");
	struct record record = {0};
	struct stat status;

	CU_ASSERT_FATAL(mkdir(sub, 0755) == 0 && mkfifo(fifo, 0600) == 0);
	CU_ASSERT_EQUAL(publish_to(sub, NULL, &record, 2), -EBADMSG);
	CU_ASSERT_EQUAL(publish_to(fifo, NULL, &record, 2), -EBADMSG);
	CU_ASSERT_PTR_NOT_NULL(strstr(last.why.text, "not a regular file"));
	CU_ASSERT_EQUAL(publish_to("/dev/null", NULL, &record, 2), -EBADMSG);
	CU_ASSERT_TRUE(stat("/dev/null", &status) == 0 && S_ISCHR(status.st_mode));
	CU_ASSERT_EQUAL(entries(folder), 2);
}

static void stale_temporaries_go(void)
{
	static const char *const others[] = {".policy.yaml.abcde", ".policy.yaml.abcdefg", ".policy.yaml.abc-ef",
	                                     "policy.yaml.abcdef", ".other.yaml.abcdef"};
	const char *folder = fresh(), *path = in(folder, "policy.yaml");
	struct record record = {0};

	put_text(in(folder, ".policy.yaml.Ab12Cd"), "half of a pol");
	put_text(in(folder, ".policy.yaml.alive0"), "");
	CU_ASSERT_EQUAL_FATAL(mkdir(in(folder, ".policy.yaml.folder"), 0755), 0);
	for (size_t i = 0; i < 5; i++)
		put_text(in(folder, others[i]), "");
	int living = open(in(folder, ".policy.yaml.alive0"), O_RDWR | O_CLOEXEC);
	CU_ASSERT_FATAL(living >= 0 && flock(living, LOCK_EX) == 0);
	CU_ASSERT_EQUAL(publish_to(path, NULL, &record, 2), 0);
	CU_ASSERT_TRUE(is_absent(in(folder, ".policy.yaml.Ab12Cd")));
	CU_ASSERT_EQUAL(entries(folder), 8);
	close(living);
	CU_ASSERT_EQUAL(publish_to(path, NULL, &record, 2), 1); /* also where there is nothing to write */
	CU_ASSERT_TRUE(is_absent(in(folder, ".policy.yaml.alive0")));
	CU_ASSERT_EQUAL(entries(folder), 7);
	forget(&record);
}

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

static int withdraw_from(const char *path, const char *fallback, struct record *record, const char *topology)
{
	struct publish_target target = {path, fallback, recorded, record};

	free(last.result.yaml);
	last.why.text[0] = '\0';
	last.code = publish_withdraw(&target, topology, &last.result, &last.why);
	return last.code;
}

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

/* --- readers ----------------------------------------------------------------------------------------------------- */

/* Reads until told to stop by the file's being gone. */
static void read_on(const char *path)
{
	struct pc_document *document;

	for (;;) {
		int r = pc_document_read(&document, path, NULL);

		if (r == -ENOENT)
			_exit(0);
		if (r < 0)
			_exit(1);
		pc_document_free(document);
	}
}

static void readers_see_whole_files(void)
{
	const char *path = in(fresh(), "policy.yaml");
	struct record record = {0};
	int status = 0;

	CU_ASSERT_EQUAL_FATAL(publish_to(path, NULL, &record, 2), 0);
	fflush(stdout);
	pid_t child = fork();
	CU_ASSERT_FATAL(child >= 0);
	if (child == 0)
		read_on(path);
	for (unsigned i = 0; i < 300; i++) {
		record.newest = 1; /* the file alone counts up: the record has no room for so many */
		CU_ASSERT_EQUAL(publish_to(path, NULL, &record, 3 + i), 0);
	}
	CU_ASSERT_EQUAL(unlink(path), 0);
	CU_ASSERT_EQUAL_FATAL(waitpid(child, &status, 0), child);
	CU_ASSERT_EQUAL(status, 0);
	forget(&record);
}

/* --- killed at every step ---------------------------------------------------------------------------------------- */

/* A database of files. */
static char *recorded_in(void *records, uint64_t generation)
{
	char path[PATH_SIZE];

	snprintf(path, sizeof(path), "%s/%llu", (const char *)records, (unsigned long long)generation);
	return get_text(path);
}

static uint64_t newest_in(const char *records)
{
	uint64_t generation = 0;
	char *text;

	while ((text = recorded_in((void *)(uintptr_t)records, generation + 1)) != NULL) {
		free(text);
		generation++;
	}
	return generation;
}

static int publish_and_record(const char *path, const char *records, double gain, struct publish_result *result)
{
	struct publish_request request = {.target = {path, NULL, recorded_in, (void *)(uintptr_t)records},
	                                  .document = policy(gain),
	                                  .database_generation = newest_in(records)};
	struct pc_why why = {""};
	char name[PATH_SIZE];
	int r = publish(&request, result, &why);

	if (r < 0) {
		fprintf(stderr, "%s\n", why.text);
		return r;
	}
	snprintf(name, sizeof(name), "%s/%llu", records, (unsigned long long)result->generation);
	FILE *file = fopen(name, "w");
	if (file == NULL || fputs(result->yaml, file) < 0 || fclose(file) != 0)
		return -EIO;
	return r;
}

static int helper(char **argv)
{
	struct publish_result result;
	int r = publish_and_record(argv[2], argv[3], strtod(argv[4], NULL), &result);

	free(result.yaml);
	return r < 0 ? 1 : 0;
}

static pid_t start_strace(const char *inject, const char *path, const char *records)
{
	char self[PATH_SIZE];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	pid_t child = fork();

	if (child != 0)
		return child;
	self[len < 0 ? 0 : len] = '\0';
	setenv("ASAN_OPTIONS", "detect_leaks=0", 1); /* the leak finder can't work in a traced process */
	execlp("strace", "strace", "-f", "-o", "/dev/null", "-e", inject, self, "--publish", path, records, "3",
	       (char *)NULL);
	_exit(127);
}

/* Exit status as waitpid() tells it. */
static int run_killed(const char *call, unsigned step, const char *path, const char *records)
{
	char inject[128];
	int status = -1;

	snprintf(inject, sizeof(inject), "inject=%s:signal=KILL:when=%u", call, step);
	pid_t child = start_strace(inject, path, records);
	CU_ASSERT_FATAL(child > 0 && waitpid(child, &status, 0) == child);
	return status;
}

static bool strace_works(void)
{
	return system("strace -f -o /dev/null -e inject=/^exit_group:signal=CONT:when=99 true >/dev/null 2>&1") == 0;
}

struct sweep {
	const char *before; /* what the path holds at first */
	bool edited;        /* ... and nobody published it */
	unsigned kills, old, new;
};

static bool is_known_name(const char *name, bool edited)
{
	return name[0] == '.' || strcmp(name, "policy.yaml") == 0 ||
	       (edited && strcmp(name, "policy.yaml.edited-1") == 0);
}

static void check_names(const char *folder, bool edited)
{
	DIR *dir = opendir(folder);

	CU_ASSERT_PTR_NOT_NULL_FATAL(dir);
	for (const struct dirent *entry = readdir(dir); entry != NULL; entry = readdir(dir))
		CU_ASSERT_TRUE(is_known_name(entry->d_name, edited));
	closedir(dir);
}

/* The old or the new one, and an edit is never lost. */
static void check_after_kill(struct sweep *sweep, const char *folder)
{
	const char *path = in(folder, "policy.yaml"), *kept = in(folder, "policy.yaml.edited-1");
	char *new = text_of(3, 2);
	bool is_old = holds(path, sweep->before), is_new = holds(path, new);

	CU_ASSERT_TRUE(is_old || is_new);
	if (sweep->edited)
		CU_ASSERT_TRUE(is_old || holds(kept, sweep->before));
	if (!is_absent(kept))
		CU_ASSERT_TRUE(holds(kept, sweep->before));
	check_names(folder, sweep->edited);
	sweep->old += is_old;
	sweep->new += is_new;
	free(new);
}

static void check_recovery(const struct sweep *sweep, const char *folder, const char *records)
{
	const char *path = in(folder, "policy.yaml");
	char *new = text_of(3, 2);
	struct publish_result result;
	int r = publish_and_record(path, records, 3, &result);

	CU_ASSERT_TRUE(r == 0 || r == 1);
	free(result.yaml);
	CU_ASSERT_TRUE(holds(path, new));
	CU_ASSERT_EQUAL(entries(folder), sweep->edited ? 2 : 1);
	CU_ASSERT_EQUAL(publish_and_record(path, records, 4, &result), 0);
	CU_ASSERT_FALSE(result.edited_kept); /* calibrd knows what it wrote, killed or not */
	CU_ASSERT_EQUAL(result.generation, 3);
	free(result.yaml);
	free(new);
}

/* False once the helper survived. */
static bool sweep_step(struct sweep *sweep, const char *call, unsigned step)
{
	char folder[PATH_SIZE], records[PATH_SIZE];
	struct publish_result result;

	snprintf(folder, sizeof(folder), "%s", fresh());
	snprintf(records, sizeof(records), "%s", fresh());
	CU_ASSERT_EQUAL(publish_and_record(in(folder, "policy.yaml"), records, 2, &result), 0);
	free(result.yaml);
	if (sweep->edited)
		put_text(in(folder, "policy.yaml"), sweep->before);
	int status = run_killed(call, step, in(folder, "policy.yaml"), records);
	bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;

	CU_ASSERT_TRUE(killed || status == 0);
	check_after_kill(sweep, folder);
	check_recovery(sweep, folder, records);
	sweep->kills += killed;
	return killed;
}

static void sweep_all(struct sweep *sweep)
{
	static const char *const calls[] = {"/^openat$", "/^write$", "/^fsync$", "/^fchmod$", "/^rename",
	                                    "/^flock$",  "/^close$", "/^unlink", "/^lseek$"};

	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		unsigned step = 1;

		while (step < 200 && sweep_step(sweep, calls[i], step))
			step++;
		CU_ASSERT_TRUE(step < 200);
	}
	CU_ASSERT_TRUE(sweep->old > 10); /* killed before the rename */
	CU_ASSERT_TRUE(sweep->new > 10); /* and behind it, or not at all */
	CU_ASSERT_TRUE(sweep->kills > 20);
}

static void killed_at_every_step(void)
{
	char *old = text_of(2, 1);
	struct sweep sweep = {.before = old};

	if (strace_works())
		sweep_all(&sweep);
	else
		unit_skip("strace is missing or may not trace");
	free(old);
}

static void killed_over_an_edit(void)
{
	char *edit = text_of(55, 1);
	struct sweep sweep = {.before = edit, .edited = true};

	if (strace_works())
		sweep_all(&sweep);
	else
		unit_skip("strace is missing or may not trace");
	free(edit);
}

static const struct unit_test tests[] = {
	{"the first publication, whatever the umask", first_publication},
	{"a relative path", relative_path},
	{"generations count up from file and database", counts_up},
	{"equal content isn't written again", equal_content_is_not_written},
	{"edited files are kept beside", edited_files_are_kept},
	{"so is what is no policy", what_is_no_policy_is_kept},
	{"so is what the database doesn't know", unknown_files_are_kept},
	{"links stay links", links_stay_links},
	{"paths that lead nowhere", paths_that_lead_nowhere},
	{"only regular files are replaced", only_files_are_replaced},
	{"stale temporaries go, living ones stay", stale_temporaries_go},
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
	{"readers see whole files", readers_see_whole_files},
	{"killed at every step", killed_at_every_step},
	{"killed at every step over an edited file", killed_over_an_edit},
};

int main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "--publish") == 0)
		return helper(argv);
	int r = unit_main("publish", tests, sizeof(tests) / sizeof(tests[0]));
	free(last.result.yaml);
	return r;
}
