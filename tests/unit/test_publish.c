/* Publishing: what is there afterwards, whatever was there before. */
#include "calibrd/publish.h"

#include <fcntl.h>
#include <limits.h>
#include <sys/file.h>

#include "tests/unit/publish_files.h"

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
};

int main(void)
{
	int r = unit_main("publish", tests, sizeof(tests) / sizeof(tests[0]));

	free(last.result.yaml);
	return r;
}
