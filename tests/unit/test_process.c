/* The process's own policy: where it comes from, reload, and the words that tell of it. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "tests/unit/allocations.h"
#include "tests/unit/harness.h"
#include "tests/unit/policy_files.h"

/* This program's own ways into the system, which can be told to fail for files whose path contains a word. */
static struct {
	const char *path;
	int open_error, read_error, fd;
} trouble = {.fd = -1};
static atomic_uint clock_questions;
static sem_t asked, answer;
static atomic_bool hold_clock;

#pragma GCC visibility push(default)
int open(const char *path, int flags, ...)
{
	va_list arguments;
	bool meant = trouble.path != NULL && strstr(path, trouble.path) != NULL;

	va_start(arguments, flags);
	mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
	va_end(arguments);
	if (meant && trouble.open_error != 0) {
		errno = trouble.open_error;
		return -1;
	}
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
	if (meant || fd == trouble.fd)
		trouble.fd = meant ? fd : -1; /* descriptors are used again */
	return fd;
}

ssize_t read(int fd, void *bytes, size_t size)
{
	if (trouble.path != NULL && trouble.read_error != 0 && fd == trouble.fd) {
		errno = trouble.read_error;
		return -1;
	}
	return syscall(SYS_read, fd, bytes, size);
}

int prctl(int option, ...)
{
	unsigned long values[4];
	va_list arguments;

	va_start(arguments, option);
	for (int i = 0; i < 4; i++)
		values[i] = va_arg(arguments, unsigned long);
	va_end(arguments);
	if (option == PR_GET_TSC) {
		clock_questions++;
		if (atomic_exchange(&hold_clock, false)) {
			sem_post(&asked);
			sem_wait(&answer);
		}
	}
	return (int)syscall(SYS_prctl, option, values[0], values[1], values[2], values[3]);
}
#pragma GCC visibility pop

static void make_trouble(const char *path, int open_error, int read_error)
{
	trouble.path = path;
	trouble.open_error = open_error;
	trouble.read_error = read_error;
	trouble.fd = -1;
}

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
static void test_no_memory_keeps_what_is_in_force(void)
{
	if (!sees_allocations()) {
		unit_skip("malloc is somebody else's");
		return;
	}
	start_bare();
	publish(pc_search_paths[1], good_text(1));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	publish(pc_search_paths[1], good_text(2));
	refuse_at = allocations + 1;
	CU_ASSERT_EQUAL(pageclear_reload(), -ENOMEM);
	assert_status(0, "generation 1,");
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	assert_status(0, "generation 2,");
	start_bare();
}

/* Errors that say nothing about the file keep what is in force, and the next reload looks again. */
static void test_passing_errors_keep_what_is_in_force(void)
{
	static const int passing[] = {EIO, EAGAIN, EINTR, EMFILE, ENFILE, ENOMEM};

	start_bare();
	publish(pc_search_paths[0], good_text(1));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++) {
		publish(pc_search_paths[0], good_text((unsigned)i + 2));
		make_trouble("run.yaml", passing[i], 0);
		CU_ASSERT_EQUAL(pageclear_reload(), -passing[i]);
		assert_status(0, i == 0 ? "generation 1," : "generation ");
		if (passing[i] != EINTR) { /* of read: done again */
			make_trouble("run.yaml", 0, passing[i]);
			CU_ASSERT_EQUAL(pageclear_reload(), -passing[i]);
		}
		make_trouble(NULL, 0, 0);
		CU_ASSERT_EQUAL(pageclear_reload(), 1);
	}
	assert_status(0, "generation 7,");
	start_bare();
}

/* A server that lost the file is no other CPU. */
static void test_stale_handles_are_trouble(void)
{
	const struct pageclear_policy *policy = NULL;

	start_bare();
	publish(pc_search_paths[0], good_text(1));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	publish(pc_search_paths[0], good_text(2));
	make_trouble("run.yaml", ESTALE, 0);
	CU_ASSERT_EQUAL(pageclear_policy_open(&policy, pc_search_paths[0]), -EIO);
	CU_ASSERT_EQUAL(pageclear_reload(), -EIO);
	make_trouble("run.yaml", 0, ESTALE);
	CU_ASSERT_EQUAL(pageclear_policy_open(&policy, pc_search_paths[0]), -EIO);
	make_trouble(NULL, 0, 0);
	CU_ASSERT_PTR_NULL(policy);
	assert_status(0, "generation 1,");
	start_bare();
}

/* Where nothing is in force yet the next candidate has its turn, and the first is looked at again later. */
static void test_first_look_goes_on(void)
{
	static struct pc_search search, kept = {.used = PC_CANDIDATES};
	struct pageclear_policy *policy = NULL;

	start_bare();
	publish(pc_search_paths[0], good_text(1));
	publish(pc_search_paths[1], good_text(2));
	make_trouble("run.yaml", 0, EIO);
	CU_ASSERT_EQUAL(pc_search(&policy, &search, &kept), -EIO);
	CU_ASSERT_EQUAL_FATAL(pc_search(&policy, &search, NULL), 0);
	CU_ASSERT_EQUAL(search.used, 2);
	CU_ASSERT_PTR_NOT_NULL(strstr(search.text, "etc.yaml: generation 2"));
	CU_ASSERT_PTR_NOT_NULL(strstr(search.text, "not "));
	CU_ASSERT_PTR_NOT_NULL(strstr(search.text, "run.yaml: Input/output error"));
	CU_ASSERT_FALSE(pc_search_holds(&search));
	pageclear_policy_close(policy);

	make_trouble(".yaml", EIO, 0);
	CU_ASSERT_EQUAL_FATAL(pc_search(&policy, &search, NULL), 0);
	CU_ASSERT_EQUAL(search.used, PC_CANDIDATES);
	CU_ASSERT_FALSE(pc_search_holds(&search));
	pageclear_policy_close(policy);

	make_trouble(NULL, 0, 0);
	CU_ASSERT_EQUAL_FATAL(pc_search(&policy, &search, NULL), 0);
	CU_ASSERT_EQUAL(search.used, 1);
	CU_ASSERT_TRUE(pc_search_holds(&search));
	pageclear_policy_close(policy);
	start_bare();
}

/* The clock, which takes a system call, is asked only for a policy that probes. */
static void test_clock_is_asked_for_probes_only(void)
{
	const struct pageclear_policy *policy;

	start_bare();
	unsigned before = clock_questions;
	CU_ASSERT_EQUAL(pageclear_reload(), 0);
	publish(pc_search_paths[0], "nonsense");
	publish(pc_search_paths[1], good_text(1));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	CU_ASSERT_EQUAL(pageclear_policy_open(&policy, in_folder("missing")), -ENOENT);
	CU_ASSERT_EQUAL(clock_questions, before);
	pageclear_policy_close(open_text(probing_text("probe: {from: 1000, lines: 5, slow_ns: 60}\n")));
	CU_ASSERT_NOT_EQUAL(clock_questions, before);
	start_bare();
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

static void *reload_once(void *unused)
{
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	return unused;
}

/* What status says in a child that was forked while a reload of another thread held the lock: 0 as it should be. */
static int status_in_child(int code, const char *begin)
{
	char text[200];
	int status;
	pid_t child = fork();

	if (child == 0) {
		alarm(30);
		if (pageclear_status(text, sizeof(text)) != code || strncmp(text, begin, strlen(begin)) != 0)
			_exit(1);
		if (pageclear_reload() != 1 || pageclear_status(text, sizeof(text)) != 0)
			_exit(2);
		_exit(strstr(text, "generation 1,") == NULL ? 3 : 0);
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void fork_beside_reload(int code, const char *begin)
{
	pthread_t thread;

	publish(pc_search_paths[0], probing_text("probe: {from: 1000, lines: 5, slow_ns: 60}\n"));
	hold_clock = true;
	CU_ASSERT_EQUAL_FATAL(pthread_create(&thread, NULL, reload_once, NULL), 0);
	while (sem_wait(&asked) != 0)
		;
	CU_ASSERT_EQUAL(status_in_child(code, begin), 0);
	sem_post(&answer);
	pthread_join(thread, NULL);
}

static void test_status_of_a_child_forked_beside_a_reload(void)
{
	if (UNDER_TSAN) {
		unit_skip("ThreadSanitizer has no say in a child of threads");
		return;
	}
	sem_init(&asked, 0, 0);
	sem_init(&answer, 0, 0);
	start_bare();
	fork_beside_reload(1, "built-in policy (libc");
	publish(pc_search_paths[0], good_text(9));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	fork_beside_reload(0, pc_search_paths[0]);
	start_bare();
}

static const struct unit_test tests[] = {
	{"no_memory_keeps_what_is_in_force", test_no_memory_keeps_what_is_in_force},
	{"passing_errors_keep_what_is_in_force", test_passing_errors_keep_what_is_in_force},
	{"stale_handles_are_trouble", test_stale_handles_are_trouble},
	{"first_look_goes_on", test_first_look_goes_on},
	{"clock_is_asked_for_probes_only", test_clock_is_asked_for_probes_only},
	{"names_are_never_cut", test_names_are_never_cut},
	{"paths_are_shown_harmlessly", test_paths_are_shown_harmlessly},
	{"status_of_a_child_forked_beside_a_reload", test_status_of_a_child_forked_beside_a_reload},
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
