/* Whatever stands where the policy should: the next candidate or the built-in policy serves, the status says why in
 * words, nothing waits, and policies that are open already go on. */
#include <errno.h>
#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "tests/unit/harness.h"
#include "tests/unit/safety.h"

/* This program's own way to read: before the n-th read of a run something may happen to the file. */
static void (*meanwhile)(void);
static unsigned reads_before;

#pragma GCC visibility push(default)
ssize_t read(int fd, void *bytes, size_t size)
{
	if (meanwhile == NULL)
		return syscall(SYS_read, fd, bytes, size);
	if (reads_before > 0) {
		reads_before--;
	} else {
		void (*happens)(void) = meanwhile;

		meanwhile = NULL;
		happens();
	}
	return syscall(SYS_read, fd, bytes, size < 100 ? size : 100);
}
#pragma GCC visibility pop

static const char *target; /* the path under test */

static void write_plainly(const char *path, const void *bytes, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CU_ASSERT_TRUE_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(write(fd, bytes, len), (ssize_t)len);
	close(fd);
}

static void make_missing(void)
{
}

static void make_empty(void)
{
	write_plainly(target, "", 0);
}

static void make_zeros(void)
{
	write_plainly(target, "\0\0\0\0", 4);
}

static void make_noise(void)
{
	unsigned char bytes[5000];
	uint32_t state = 1;

	for (size_t i = 0; i < sizeof(bytes); i++) {
		state = state * 1664525 + 1013904223;
		bytes[i] = (unsigned char)(state >> 24);
	}
	write_plainly(target, bytes, sizeof(bytes));
}

static void make_cut(void)
{
	const char *text = good_text(1);

	write_plainly(target, text, strlen(text) - 20);
}

static void make_deep(void)
{
	char bytes[60000];

	memset(bytes, '[', sizeof(bytes));
	write_plainly(target, bytes, sizeof(bytes));
}

static void make_huge(void)
{
	make_empty();
	CU_ASSERT_EQUAL(truncate(target, (off_t)1 << 36), 0);
}

static void make_newer(void)
{
	write_plainly(target, "format: 2\n", 10);
}

static void make_folder(void)
{
	CU_ASSERT_EQUAL(mkdir(target, 0755), 0);
}

static void make_pipe(void)
{
	CU_ASSERT_EQUAL(mkfifo(target, 0644), 0);
}

static void make_socket(void)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(address.sun_path, sizeof(address.sun_path), "%s", target);
	CU_ASSERT_EQUAL(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	close(fd);
}

static void make_link(const char *to)
{
	CU_ASSERT_EQUAL(symlink(to, target), 0);
}

static void make_endless_device(void)
{
	make_link("/dev/zero");
}

static void make_terminal(void)
{
	make_link("/dev/tty");
}

static void make_dangling(void)
{
	make_link("nowhere");
}

static void make_loop(void)
{
	make_link(target);
}

static void make_below_a_file(void)
{
	make_link("/etc/passwd/policy.yaml");
}

static void make_for_another(void)
{
	publish(target, policy_text(1, "GenuineNobody 6/1/1", pc_arch, some_rules));
}

static const struct {
	void (*make)(void);
	const char *words;
} kinds[] = {
	{make_missing, "No such file or directory"},
	{make_empty, "1:1: format is missing"},
	{make_zeros, "1:1: "},
	{make_noise, ": "},
	{make_cut, ": "},
	{make_deep, "deep"},
	{make_huge, "larger than 65536 bytes"},
	{make_newer, "format 2"},
	{make_folder, "not a regular file"},
	{make_pipe, "not a regular file"},
	{make_socket, "not a regular file"},
	{make_endless_device, "not a regular file"},
	{make_terminal, "not a regular file"},
	{make_dangling, "No such file or directory"},
	{make_loop, "Too many levels of symbolic links"},
	{make_below_a_file, "Not a directory"},
	{make_for_another, "made for GenuineNobody 6/1/1, this is "},
};
enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };

static unsigned char bytes[70000];

static void assert_all_clears(void)
{
	for (size_t i = 0; i < INTENTS; i++)
		CU_ASSERT_TRUE(clears_right(bytes, 60001, all_intents[i]));
}

static void remove_target(void)
{
	if (remove(target) != 0)
		CU_ASSERT_EQUAL(errno, ENOENT);
}

/* Alone, and where a good one comes behind it. */
static void assert_passed_over(size_t kind)
{
	char part[800];
	const struct pageclear_policy *policy = NULL;

	start_bare();
	setenv("PAGECLEAR_POLICY", target, 1);
	remove_target();
	kinds[kind].make();
	snprintf(part, sizeof(part), "not %s: ", target);
	CU_ASSERT_EQUAL(pageclear_reload(), 0); /* built-in before and after */
	assert_status(1, "built-in");
	assert_status(1, part);
	assert_status(1, kinds[kind].words);
	CU_ASSERT_EQUAL(pageclear_reload(), 0);
	CU_ASSERT_TRUE(pageclear_policy_open(&policy, target) < 0);
	CU_ASSERT_PTR_NULL(policy);
	assert_all_clears();

	publish(pc_search_paths[1], good_text(7));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	assert_status(0, "etc.yaml: generation 7");
	assert_all_clears();
	remove_target();
}

static void test_whatever_is_named(void)
{
	target = in_folder("named.yaml");
	for (size_t kind = 0; kind < KINDS; kind++)
		assert_passed_over(kind);
	start_bare();
}

/* What is in force is spoilt in each way in turn. */
static void test_whatever_takes_its_place(void)
{
	static const struct pageclear_query query = {.size = sizeof(query), .len = 6000, .intent = PAGECLEAR_HOT};
	struct pageclear_choice choice = {.size = sizeof(choice)};

	start_bare();
	target = pc_search_paths[0];
	const struct pageclear_policy *open_before = open_text(good_text(1));
	for (size_t kind = 0; kind < KINDS; kind++) {
		publish(target, good_text(3));
		CU_ASSERT_EQUAL(pageclear_reload(), 1);
		assert_status(0, "run.yaml: generation 3");
		remove_target();
		kinds[kind].make();
		CU_ASSERT_EQUAL(pageclear_reload(), 1);
		assert_status(1, "built-in");
		assert_status(1, kinds[kind].words);
		CU_ASSERT_EQUAL(pageclear_reload(), 0);
		CU_ASSERT_EQUAL(pageclear_policy_choose(open_before, &query, &choice), 0);
		CU_ASSERT_EQUAL(choice.from, 5000);
		remove_target();
	}
	pageclear_policy_close(open_before);
	start_bare();
}

/* Opening a device or a pipe may do something, so nobody does. */
static void test_a_pipe_is_not_even_opened(void)
{
	char event[4096];
	int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);

	start_bare();
	target = pc_search_paths[0];
	make_pipe();
	if (watch < 0 || inotify_add_watch(watch, target, IN_OPEN) < 0) {
		unit_skip("no inotify here");
	} else {
		CU_ASSERT_EQUAL(pageclear_reload(), 0);
		CU_ASSERT_EQUAL(read(watch, event, sizeof(event)), -1);
		CU_ASSERT_EQUAL(errno, EAGAIN);
		close(open(target, O_RDONLY | O_NONBLOCK | O_CLOEXEC));
		CU_ASSERT_TRUE(read(watch, event, sizeof(event)) > 0);
	}
	if (watch >= 0)
		close(watch);
	remove_target();
	start_bare();
}

/* Times whose nanoseconds no 64-bit number holds: a file may claim any. */
static void test_times_beyond_2262(void)
{
	const time_t seconds[] = {9223372037, 10000000000, INT64_C(-9223372037)};

	start_bare();
	publish(pc_search_paths[0], good_text(2));
	for (size_t i = 0; i < sizeof(seconds) / sizeof(seconds[0]); i++) {
		const struct timespec times[] = {{seconds[i], 5}, {seconds[i], 5}};

		CU_ASSERT_EQUAL(utimensat(AT_FDCWD, pc_search_paths[0], times, 0), 0);
		CU_ASSERT_EQUAL(pageclear_reload(), 1);
		CU_ASSERT_EQUAL(pageclear_reload(), 0);
	}
	start_bare();
}

/* Files that only look regular: reading fails, or never ends. */
static void test_kernel_files(void)
{
	if (access("/proc/self/mem", R_OK) != 0 || access("/proc/self/environ", R_OK) != 0) {
		unit_skip("no /proc here");
		return;
	}
	start_bare();
	publish(pc_search_paths[1], good_text(2));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	setenv("PAGECLEAR_POLICY", "/proc/self/mem", 1);
	CU_ASSERT_EQUAL(pageclear_reload(), -EIO);
	assert_status(0, "etc.yaml: generation 2");
	assert_status(0, "; the last look since failed: Input/output error");
	setenv("PAGECLEAR_POLICY", "/proc/self/environ", 1);
	CU_ASSERT_EQUAL(pageclear_reload(), 0); /* the same one as before, by another way */
	assert_status(0, "not /proc/self/environ: ");
	CU_ASSERT_EQUAL(unsetenv("PAGECLEAR_POLICY"), 0);
	CU_ASSERT_EQUAL(pageclear_reload(), 0);
	char text[1600];
	pageclear_status(text, sizeof(text));
	CU_ASSERT_PTR_NULL(strstr(text, "failed"));
	start_bare();
}

/* --- replaced while it is read --- */

static void replace(void)
{
	publish(target, good_text(22));
}

static void take_away(void)
{
	unlink(target);
}

static void cut_in_place(void)
{
	CU_ASSERT_EQUAL(truncate(target, 0), 0);
}

static void write_in_place(void)
{
	const char *text = probing_text("probe: {from: 1000, lines: 5, slow_ns: 60}\n");

	write_plainly(target, text, strlen(text));
}

static void turn_into_folder(void)
{
	unlink(target);
	make_folder();
}

/* Whatever happens, and whenever: the library says something sensible, and the next look sees what there is then. */
static void assert_survives(void (*happens)(void), unsigned before, int then, int code, const char *words)
{
	start_bare();
	remove_target();
	publish(target, good_text(21));
	meanwhile = happens;
	reads_before = before;
	CU_ASSERT_TRUE(pageclear_reload() >= 0);
	CU_ASSERT_PTR_NULL(meanwhile);
	CU_ASSERT_TRUE(pageclear_status(NULL, 0) >= 0);
	assert_all_clears();
	int r = pageclear_reload();
	CU_ASSERT_TRUE(then < 0 ? r >= 0 : r == then);
	assert_status(code, words);
	CU_ASSERT_EQUAL(pageclear_reload(), 0);
	remove_target();
}

static void test_replaced_while_it_is_read(void)
{
	start_bare();
	target = pc_search_paths[0];
	for (unsigned before = 0; before < 8; before++) {
		/* A rename leaves what is being read as it was, and so the first look finds the old one. */
		assert_survives(replace, before, 1, 0, "generation 22,");
		assert_survives(take_away, before, 1, 1, "built-in");
		assert_survives(turn_into_folder, before, 1, 1, "not a regular file");
		/* Nobody publishes like that, but editors do: the first look may find anything. */
		assert_survives(cut_in_place, before, -1, 1, "format is missing");
		assert_survives(write_in_place, before, -1, 0, "generation 1,");
	}
	meanwhile = NULL;
	start_bare();
}

/* --- one who may not read --- */

static int without_rights(void)
{
	CHECK(setgid(65534) == 0 && setuid(65534) == 0);
	CHECK(pageclear_reload() == 0);
	CHECK(status_says(1, "run.yaml: Permission denied"));
	CHECK(clears_right(bytes, 60001, PAGECLEAR_SCRUB));
	return 0;
}

static void test_unreadable(void)
{
	if (geteuid() != 0) {
		unit_skip("takes root, who may become somebody else");
		return;
	}
	start_bare();
	CU_ASSERT_EQUAL(chmod(unit_folder(), 0755), 0);
	publish(pc_search_paths[0], good_text(1));
	CU_ASSERT_EQUAL(chmod(pc_search_paths[0], 0600), 0);
	CU_ASSERT_EQUAL(in_child(without_rights), 0);
	CU_ASSERT_EQUAL(chmod(unit_folder(), 0700), 0);
	CU_ASSERT_EQUAL(in_child(without_rights), 0);
	start_bare();
}

static const struct unit_test tests[] = {
	{"whatever_is_named", test_whatever_is_named},
	{"whatever_takes_its_place", test_whatever_takes_its_place},
	{"a_pipe_is_not_even_opened", test_a_pipe_is_not_even_opened},
	{"times_beyond_2262", test_times_beyond_2262},
	{"kernel_files", test_kernel_files},
	{"replaced_while_it_is_read", test_replaced_while_it_is_read},
	{"unreadable", test_unreadable},
};

UNIT_MAIN("safety_files", tests)
