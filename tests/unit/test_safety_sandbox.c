/* Programs that shut themselves in: seccomp, chroot, no descriptors, no memory, no rights, no standard streams. What is
 * in force stays, or the built-in policy serves, and the status says why. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

#include "tests/unit/harness.h"
#include "tests/unit/safety.h"

static unsigned char bytes[70000];

static bool all_clear(void)
{
	for (size_t i = 0; i < INTENTS; i++)
		if (!clears_right(bytes, 60001, all_intents[i]))
			return false;
	return true;
}

/* Unless it is run under one, everything else happens in a child. */
static void run(int (*inside)(void))
{
	int r = in_child(inside);

	if (r == NOT_HERE)
		unit_skip("not possible here");
	else
		CU_ASSERT_EQUAL(r, 0);
	start_bare();
}

/* --- seccomp --- */

/* `listed` system calls do one thing, all others the other: SECCOMP_RET_*. False: there is no seccomp here. */
static bool filter(const int *listed, size_t count, uint32_t what, uint32_t others)
{
	struct sock_filter program[64];
	unsigned short n = 0;

	program[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
	for (size_t i = 0; i < count; i++) {
		program[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)listed[i], 0, 1);
		program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, what);
	}
	program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, others);
	const struct sock_fprog filled = {.len = n, .filter = program};
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filled) == 0;
}

static const int opening[] = {
	SYS_openat,
#ifdef SYS_open
	SYS_open,
#endif
};
static const int looking[] = {
	SYS_openat,
#ifdef SYS_open
	SYS_open,       SYS_stat,
#endif
#ifdef SYS_newfstatat
	SYS_newfstatat,
#endif
	SYS_statx,
};
#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static bool forbid(const int *calls, size_t count, int error)
{
	return filter(calls, count, SECCOMP_RET_ERRNO | (uint32_t)error, SECCOMP_RET_ALLOW);
}

/* Nothing was in force: built-in it stays. */
static int opening_is_forbidden(void)
{
	const struct pageclear_policy *policy = NULL;

	if (!forbid(opening, COUNT(opening), EPERM))
		return NOT_HERE;
	CHECK(pageclear_reload() == 0);
	CHECK(status_says(1, "built-in policy"));
	CHECK(status_says(1, "run.yaml: Operation not permitted"));
	CHECK(pageclear_policy_open(&policy, pc_search_paths[0]) == -EPERM && policy == NULL);
	CHECK(pageclear_policy_open(&policy, NULL) == 0);
	pageclear_policy_close(policy);
	CHECK(all_clear());
	return 0;
}

static void test_opening_is_forbidden(void)
{
	start_bare();
	publish(pc_search_paths[0], good_text(1));
	run(opening_is_forbidden);
}

static int forbidden_error;

/* Something was in force: that one may no longer look at it says nothing about it. */
static int looking_is_forbidden(void)
{
	char part[200];

	publish(pc_search_paths[0], good_text(2));
	if (!forbid(looking, COUNT(looking), forbidden_error))
		return NOT_HERE;
	CHECK(pageclear_reload() == -forbidden_error);
	CHECK(status_says(0, "run.yaml: generation 1,"));
	snprintf(part, sizeof(part), "; the last look since failed: %s", strerror(forbidden_error));
	CHECK(status_says(0, part));
	errno = 4711;
	CHECK(pageclear_status(NULL, 0) == 0 && errno == 4711);
	CHECK(all_clear());
	return 0;
}

static void test_looking_is_forbidden(void)
{
	static const int errors[] = {EPERM, EACCES, ENOSYS};

	for (size_t i = 0; i < COUNT(errors); i++) {
		start_bare();
		publish(pc_search_paths[0], good_text(1));
		CU_ASSERT_EQUAL(pageclear_reload(), 1);
		forbidden_error = errors[i];
		run(looking_is_forbidden);
	}
}

/* The files are as they were, and can be seen to be: no trouble at all. */
static int opening_is_not_needed(void)
{
	if (!forbid(opening, COUNT(opening), EPERM))
		return NOT_HERE;
	CHECK(pageclear_reload() == 0);
	CHECK(status_says(0, "run.yaml: generation 1,"));
	char text[1600];
	pageclear_status(text, sizeof(text));
	CHECK(strstr(text, "failed") == NULL);
	/* What is gone is gone, whatever may be opened. */
	CHECK(unlink(pc_search_paths[0]) == 0);
	CHECK(pageclear_reload() == 1);
	CHECK(status_says(1, "run.yaml: No such file"));
	return 0;
}

static void test_opening_is_not_needed(void)
{
	start_bare();
	publish(pc_search_paths[0], good_text(1));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	run(opening_is_not_needed);
}

static const struct pageclear_policy *handle;

/* Clearing and choosing, with a probe and without: not one system call, on pain of death. */
static int any_call_kills(void)
{
	static const int leaving[] = {SYS_exit_group};
	struct pageclear_query query = {.size = sizeof(query), .len = 60001};
	struct pageclear_choice choice = {.size = sizeof(choice)};

	if (!filter(leaving, COUNT(leaving), SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS))
		return NOT_HERE;
	for (size_t i = 0; i < INTENTS; i++) {
		unsigned intent = all_intents[i];
		struct iovec ranges[] = {{bytes, 30000}, {bytes + 30000, 40000}};

		query.intent = intent;
		if (!clears_right(bytes, 60001, intent) || pageclear_policy_choose(handle, &query, &choice) != 0)
			return 1;
		pageclear_policy_zero(handle, bytes, sizeof(bytes), intent);
		pageclear_zero_ranges(ranges, 2, intent);
		choice.clear(bytes, sizeof(bytes));
	}
	return 0;
}

/* What reload needs, as a sandbox's author would list it. */
static int all_but_these_kill(void)
{
	static const int needed[] = {
		SYS_openat,     SYS_read,  SYS_close,  SYS_fstat, SYS_brk,        SYS_mmap,
		SYS_munmap,     SYS_prctl, SYS_mremap, SYS_futex, SYS_exit_group,
#ifdef SYS_newfstatat
		SYS_newfstatat,
#endif
	};

	publish(pc_search_paths[0], probing_text("probe: {from: 1000, lines: 5, slow_ns: 60}\n"));
	if (!filter(needed, COUNT(needed), SECCOMP_RET_ALLOW, SECCOMP_RET_KILL_PROCESS))
		return NOT_HERE;
	if (pageclear_reload() != 1 || pageclear_reload() != 0 || pageclear_status(NULL, 0) != 0)
		return 1;
	return 0;
}

static void test_system_calls_kill(void)
{
	if (UNDER_ASAN || UNDER_TSAN) {
		unit_skip("sanitizers make system calls of their own");
		return;
	}
	start_bare();
	publish(pc_search_paths[0], probing_text("probe: {from: 1000, lines: 5, slow_ns: 60}\n"));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	handle = open_text(probing_text("probe: {from: 1000, lines: 5, slow_ns: 60}\n"));
	run(any_call_kills);
	handle = pageclear_policy_close(handle);
	run(all_but_these_kill);
}

/* --- limits --- */

static int without_descriptors(void)
{
	static struct pc_search search;
	struct pageclear_policy *policy = NULL;

	publish(pc_search_paths[0], good_text(2));
	CHECK(setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, 0}) == 0);
	CHECK(pageclear_reload() == -EMFILE);
	CHECK(status_says(0, "generation 1,"));
	CHECK(status_says(0, "; the last look since failed: Too many open files"));
	CHECK(all_clear());
	/* As at the start of a program. */
	CHECK(pc_search(&policy, &search, NULL) == 0);
	CHECK(strstr(search.text, "built-in policy") != NULL && strstr(search.text, "Too many open files") != NULL);
	pageclear_policy_close(policy);
	return 0;
}

static void test_without_descriptors(void)
{
	start_bare();
	publish(pc_search_paths[0], good_text(1));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	run(without_descriptors);
}

struct block {
	struct block *next;
	char room[4000];
};

static int without_memory(void)
{
	struct block *blocks = NULL, *block;

	publish(pc_search_paths[0], good_text(2));
	CHECK(setrlimit(RLIMIT_AS, &(struct rlimit){4096, RLIM_INFINITY}) == 0);
	while ((block = malloc(sizeof(*block))) != NULL) {
		block->next = blocks;
		blocks = block;
	}
	CHECK(pageclear_reload() == -ENOMEM);
	CHECK(status_says(0, "generation 1,"));
	CHECK(status_says(0, "; the last look since failed: Cannot allocate memory"));
	CHECK(all_clear());
	CHECK(setrlimit(RLIMIT_AS, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY}) == 0);
	for (; blocks != NULL; blocks = block) {
		block = blocks->next;
		free(blocks);
	}
	CHECK(pageclear_reload() == 1);
	CHECK(status_says(0, "generation 2,"));
	return 0;
}

static void test_without_memory(void)
{
	if (UNDER_ASAN || UNDER_TSAN) {
		unit_skip("sanitizers take all the address space");
		return;
	}
	start_bare();
	publish(pc_search_paths[0], good_text(1));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	run(without_memory);
}

/* --- places --- */

/* Nothing but an empty folder: no /proc, no /etc, no policy. */
static int in_an_empty_root(void)
{
	const char *root = in_folder("root");
	const struct pageclear_policy *policy;

	CHECK(mkdir(root, 0755) == 0 || errno == EEXIST);
	if (chroot(root) != 0)
		return NOT_HERE;
	CHECK(chdir("/") == 0);
	CHECK(pageclear_reload() == 1); /* gone, as far as anyone can tell */
	CHECK(status_says(1, "run.yaml: No such file"));
	CHECK(pageclear_policy_open(&policy, NULL) == 0);
	pageclear_policy_close(policy);
	CHECK(all_clear());
	return 0;
}

static void test_in_an_empty_root(void)
{
	start_bare();
	publish(pc_search_paths[0], good_text(1));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	run(in_an_empty_root);
}

/* A daemon that gives up its rights: the folder is closed to it from then on. */
static int as_nobody(void)
{
	if (geteuid() != 0)
		return NOT_HERE;
	CHECK(setgid(65534) == 0 && setuid(65534) == 0);
	CHECK(pageclear_reload() == -EACCES);
	CHECK(status_says(0, "generation 1,"));
	CHECK(status_says(0, "; the last look since failed: Permission denied"));
	CHECK(all_clear());
	/* Another that may not be read either is no reason to lose the one in use; nor is it used. */
	setenv("PAGECLEAR_POLICY", "builtin", 1);
	CHECK(pageclear_reload() == 1);
	CHECK(status_says(1, "PAGECLEAR_POLICY=builtin"));
	return 0;
}

static void test_as_nobody(void)
{
	start_bare();
	publish(pc_search_paths[0], good_text(1));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	run(as_nobody);
}

/* The policy's file takes the place of standard input, and must not stay there. */
static int without_streams(void)
{
	publish(pc_search_paths[0], good_text(2));
	for (int fd = 0; fd < 3; fd++)
		close(fd);
	if (pageclear_reload() != 1 || pageclear_status(NULL, 0) != 0 || !all_clear())
		return 1;
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) != -1 || errno != EBADF)
			return 2;
	return 0;
}

static void test_without_streams(void)
{
	start_bare();
	publish(pc_search_paths[0], good_text(1));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	run(without_streams);
}

static const struct unit_test tests[] = {
	{"opening_is_forbidden", test_opening_is_forbidden},
	{"looking_is_forbidden", test_looking_is_forbidden},
	{"opening_is_not_needed", test_opening_is_not_needed},
	{"system_calls_kill", test_system_calls_kill},
	{"without_descriptors", test_without_descriptors},
	{"without_memory", test_without_memory},
	{"in_an_empty_root", test_in_an_empty_root},
	{"as_nobody", test_as_nobody},
	{"without_streams", test_without_streams},
};

UNIT_MAIN("safety_sandbox", tests)
