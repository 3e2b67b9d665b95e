/*
 * Publishing: what readers see meanwhile, and what is there whenever it was killed.
 * `test-publish_killed --publish PATH RECORDS GAIN` publishes a policy and records it: the program that gets killed.
 */
#include "calibrd/publish.h"

#include <signal.h>
#include <sys/wait.h>

#include "tests/unit/publish_files.h"

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
	{"readers see whole files", readers_see_whole_files},
	{"killed at every step", killed_at_every_step},
	{"killed at every step over an edited file", killed_over_an_edit},
};

int main(int argc, char **argv)
{
	if (argc == 5 && strcmp(argv[1], "--publish") == 0)
		return helper(argv);
	int r = unit_main("publish_killed", tests, sizeof(tests) / sizeof(tests[0]));
	free(last.result.yaml);
	return r;
}
