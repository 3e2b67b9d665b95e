/*
 * The process's own policy where the system gives trouble: no memory, errors that pass, a fork in the midst of a
 * reload.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <sys/prctl.h>
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

/* --- what is in force stays -------------------------------------------------------------------------------------- */

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

/* --- the clock --------------------------------------------------------------------------------------------------- */

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

/* --- children forked beside a reload ----------------------------------------------------------------------------- */

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
	{"status_of_a_child_forked_beside_a_reload", test_status_of_a_child_forked_beside_a_reload},
};

UNIT_MAIN("process_trouble", tests)
