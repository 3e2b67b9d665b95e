/*
 * The process's own policy: where it comes from, reload, and the words that tell of it. test_process_trouble.c has what
 * goes wrong.
 */
#include <errno.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "tests/unit/harness.h"
#include "tests/unit/policy_files.h"

static void test_search_order(void)
{
	const char *named = in_folder("named.yaml");

	start_bare();
	assert_status(1, "built-in");
	assert_status(1, "etc.yaml: No such file or directory");

	publish(pc_search_paths[1], good_text(1));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	assert_status(0, "etc.yaml: generation 1, quality good");
	CU_ASSERT_EQUAL(pageclear_reload(), 0);

	publish(pc_search_paths[0], good_text(2));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	assert_status(0, "run.yaml: generation 2");

	publish(named, good_text(3));
	setenv("PAGECLEAR_POLICY", named, 1);
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	assert_status(0, "named.yaml: generation 3");
	CU_ASSERT_EQUAL(pageclear_reload(), 0);

	setenv("PAGECLEAR_POLICY", "builtin", 1);
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	assert_status(1, "PAGECLEAR_POLICY=builtin");
	CU_ASSERT_EQUAL(pageclear_reload(), 0);

	setenv("PAGECLEAR_POLICY", "", 1);
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	assert_status(0, "run.yaml: generation 2");
	start_bare();
}

static void test_reload_follows_the_files(void)
{
	start_bare();
	publish(pc_search_paths[1], good_text(1));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	publish(pc_search_paths[1], good_text(2));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	assert_status(0, "generation 2");
	CU_ASSERT_EQUAL(pageclear_reload(), 0);

	/* Gone: the next candidate, here none. */
	unlink(pc_search_paths[1]);
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	assert_status(1, "built-in");
	CU_ASSERT_EQUAL(pageclear_reload(), 0);

	/* Spoilt: likewise, and the reason is told. */
	publish(pc_search_paths[1], good_text(3));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	publish(pc_search_paths[1], "format: 1\n");
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	assert_status(1, "etc.yaml: 1:1: host is missing");
	CU_ASSERT_EQUAL(pageclear_reload(), 0);
	publish(pc_search_paths[1], "format: 1\n\n");
	CU_ASSERT_EQUAL(pageclear_reload(), 0); /* spoilt in another way: still built-in */
	start_bare();
}

static void test_candidates_that_are_passed_over(void)
{
	start_bare();
	publish(pc_search_paths[1], good_text(1));
	setenv("PAGECLEAR_POLICY", in_folder("missing.yaml"), 1);
	publish(pc_search_paths[0], policy_text(5, "GenuineNobody 6/1/1", pc_arch, some_rules));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	assert_status(0, "etc.yaml: generation 1");
	assert_status(0, "missing.yaml: No such file");
	assert_status(0, "run.yaml: made for GenuineNobody 6/1/1, this is ");

	/* Put right, the earlier one is noticed. */
	publish(pc_search_paths[0], good_text(6));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	assert_status(0, "run.yaml: generation 6");
	start_bare();
}

static void test_open_null_is_the_search(void)
{
	struct pageclear_query query = {.size = sizeof(query), .len = 6000, .intent = PAGECLEAR_HOT};
	struct pageclear_choice choice = {.size = sizeof(choice)};
	const struct pageclear_policy *policy;

	start_bare();
	CU_ASSERT_EQUAL_FATAL(pageclear_policy_open(&policy, NULL), 0);
	pageclear_policy_choose(policy, &query, &choice);
	CU_ASSERT_STRING_EQUAL(choice.kernel, "libc");
	CU_ASSERT_EQUAL(choice.from, 0);
	pageclear_policy_close(policy);

	publish(pc_search_paths[1], good_text(1));
	CU_ASSERT_EQUAL_FATAL(pageclear_policy_open(&policy, NULL), 0);
	pageclear_policy_choose(policy, &query, &choice);
	CU_ASSERT_EQUAL(choice.from, 5000);
	pageclear_policy_close(policy);
	start_bare();
}

static void test_status_text(void)
{
	char text[40], whole[1600];

	start_bare();
	publish(pc_search_paths[1], good_text(1));
	pageclear_reload();
	CU_ASSERT_EQUAL(pageclear_status(NULL, 0), 0);
	CU_ASSERT_EQUAL(pageclear_status(NULL, 1), -EINVAL);
	pageclear_status(whole, sizeof(whole));
	CU_ASSERT_PTR_NULL(strchr(whole, '\n'));
	memset(text, 'x', sizeof(text));
	CU_ASSERT_EQUAL(pageclear_status(text, 10), 0);
	CU_ASSERT_EQUAL(strlen(text), 9);
	CU_ASSERT_EQUAL(strncmp(text, whole, 9), 0);
	CU_ASSERT_EQUAL(text[10], 'x');
	CU_ASSERT_EQUAL(pageclear_status(text, 0), 0);
	CU_ASSERT_EQUAL(pageclear_status(text, 1), 0);
	CU_ASSERT_STRING_EQUAL(text, "");
	start_bare();
}

static void test_long_names_end_in_words(void)
{
	char name[6000];

	start_bare();
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	setenv("PAGECLEAR_POLICY", name, 1);
	CU_ASSERT_EQUAL(pageclear_reload(), 0);
	assert_status(1, "built-in");
	start_bare();
}

/* This program again, as itself or set-uid: what it prints is its status. */
static void run_status(const char *program, const char *policy, char *text, size_t size)
{
	char command[2000];

	snprintf(command, sizeof(command), "PAGECLEAR_POLICY='%s' '%s' --status", policy, program);
	FILE *pipe = popen(command, "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(pipe);
	if (fgets(text, (int)size, pipe) == NULL)
		text[0] = '\0';
	CU_ASSERT_EQUAL(pclose(pipe), 0);
}

static void test_constructor_loads_and_set_uid_ignores(void)
{
	const char *policy = in_folder("mine.yaml"), *copy = in_folder("set-uid");
	char text[1600], command[1400];
	struct statvfs filesystem;

	publish(policy, good_text(42));
	snprintf(command, sizeof(command), "cp '%s' %s", program_invocation_name, copy);
	CU_ASSERT_EQUAL(system(command), 0);
	run_status(copy, policy, text, sizeof(text));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "generation 42"));
	run_status(copy, "builtin", text, sizeof(text));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "PAGECLEAR_POLICY=builtin"));

	if (geteuid() != 0) {
		unit_skip("set-uid programs need root to be made");
		return;
	}
	if (statvfs(unit_folder(), &filesystem) < 0 || (filesystem.f_flag & ST_NOSUID) != 0) {
		unit_skip("%s takes no set-uid programs", unit_folder());
		return;
	}
	CU_ASSERT_EQUAL(chmod(unit_folder(), 0755), 0);
	CU_ASSERT_EQUAL(chown(copy, 65534, 65534), 0);
	CU_ASSERT_EQUAL(chmod(copy, 04755), 0);
	run_status(copy, policy, text, sizeof(text));
	CU_ASSERT_PTR_NULL(strstr(text, "mine.yaml"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "policy"));
	run_status(copy, "builtin", text, sizeof(text));
	CU_ASSERT_PTR_NULL(strstr(text, "PAGECLEAR_POLICY=builtin"));
}

/* Cut to what a path may have, this one would lead to a good policy. */
static void test_names_are_never_cut(void)
{
	const char *path = in_folder("named.yaml"), *base = strrchr(path, '/');
	char name[PATH_MAX + 20];
	size_t folder = (size_t)(base - path), tail = strlen(base), at = folder;

	start_bare();
	publish(path, good_text(5));
	memcpy(name, path, folder);
	while (at < PATH_MAX - 1 - tail)
		name[at++] = '/';
	strcpy(name + at, base);
	CU_ASSERT_EQUAL(strlen(name), PATH_MAX - 1);
	setenv("PAGECLEAR_POLICY", name, 1);
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	assert_status(0, "generation 5");

	strcat(name, "x");
	setenv("PAGECLEAR_POLICY", name, 1);
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	assert_status(1, "File name too long");
	strcat(name, "yz");
	setenv("PAGECLEAR_POLICY", name, 1);
	CU_ASSERT_EQUAL(pageclear_reload(), 0);
	assert_status(1, "File name too long");
	start_bare();
}

/* Whatever bytes the path has, the status is one line that does nothing to a terminal. */
static void test_paths_are_shown_harmlessly(void)
{
	char text[1600];

	start_bare();
	setenv("PAGECLEAR_POLICY",
	       "/a\nb\033[2Jc\xc2\x9b"
	       "d\xe2\x80\xae-\x7f-\xc3\xa9",
	       1);
	CU_ASSERT_EQUAL(pageclear_reload(), 0);
	/* Built-in before and after, so nothing was replaced; the words are new all the same. */
	assert_status(1, "not /a?b?[2Jc?d?-?-\xc3\xa9: No such file");
	pageclear_status(text, sizeof(text));
	for (const char *at = text; *at != '\0'; at++)
		CU_ASSERT_EQUAL(pc_control(at), 0);
	start_bare();
}

static const struct unit_test tests[] = {
	{"names_are_never_cut", test_names_are_never_cut},
	{"paths_are_shown_harmlessly", test_paths_are_shown_harmlessly},
	{"search_order", test_search_order},
	{"reload_follows_the_files", test_reload_follows_the_files},
	{"candidates_that_are_passed_over", test_candidates_that_are_passed_over},
	{"open_null_is_the_search", test_open_null_is_the_search},
	{"status_text", test_status_text},
	{"long_names_end_in_words", test_long_names_end_in_words},
	{"constructor_loads_and_set_uid_ignores", test_constructor_loads_and_set_uid_ignores},
};

int main(int argc, char **argv)
{
	char text[1600];

	if (argc > 1 && strcmp(argv[1], "--status") == 0) {
		pageclear_status(text, sizeof(text));
		puts(text);
		fflush(stdout);
		_exit(0); /* past LeakSanitizer, which can't look into a set-uid program */
	}
	return unit_main("process", tests, sizeof(tests) / sizeof(tests[0]));
}
