/*
 * A static program that shuts itself in and starts anew, so that the library's constructor meets it like that:
 *     alone report          prints the status, and clears by every intent; exit status 0 calibrated, 1 built-in
 *     alone WAY [MORE]      the same as its own successor, without what WAY names; memory: all but so many KiB
 *     alone silent CODE     what a successor without streams does: the exit status is 0 if that was the status' code
 */
#include <errno.h>
#include <fcntl.h>
#include <pageclear/policy.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/filter.h>
#include <linux/seccomp.h>

enum { SIZE = 70000, BROKEN = 3, NOT_HERE = 77 };

static unsigned char bytes[SIZE + 2];

/* Before any constructor of the library's, which is linked in behind it. */
__attribute__((constructor(101))) static void early(void)
{
	memset(bytes, 1, sizeof(bytes));
	pageclear_zero(bytes + 1, SIZE, PAGECLEAR_SCRUB);
	for (size_t i = 1; i <= SIZE; i++)
		if (bytes[i] != 0)
			_exit(BROKEN);
}

static int is_cleared(size_t len)
{
	for (size_t i = 1; i <= len; i++)
		if (bytes[i] != 0)
			return 0;
	return bytes[0] == 1 && bytes[len + 1] == 1;
}

static void clear_all(void)
{
	static const unsigned intents[] = {0, 1, 2, 17, 33, 50, 64};

	for (size_t i = 0; i < sizeof(intents) / sizeof(intents[0]); i++)
		for (size_t len = i; len <= SIZE; len += 1 + len / 2) {
			memset(bytes, 1, sizeof(bytes));
			pageclear_zero(bytes + 1, len, intents[i]);
			if (!is_cleared(len))
				_exit(BROKEN);
		}
}

static int report(void)
{
	char text[1600];
	int code = pageclear_status(text, sizeof(text));

	clear_all();
	puts(text);
	return code;
}

static int silent(int expected)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) != -1 || errno != EBADF)
			return BROKEN;
	clear_all();
	return pageclear_status(NULL, 0) != expected;
}

static int forbid_opening(void)
{
	struct sock_filter program[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filled = {.len = sizeof(program) / sizeof(program[0]), .filter = program};

	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filled) != 0;
}

static int shut_in(const char *way, const char *more)
{
	const rlim_t kib = more == NULL ? 0 : (rlim_t)atoi(more);

	if (strcmp(way, "opening") == 0)
		return forbid_opening();
	if (strcmp(way, "descriptors") == 0)
		return setrlimit(RLIMIT_NOFILE, &(struct rlimit){0, 0});
	if (strcmp(way, "memory") == 0)
		return setrlimit(RLIMIT_DATA, &(struct rlimit){kib << 10, kib << 10});
	if (strcmp(way, "streams") == 0)
		return close(0) || close(1) || close(2);
	return 1;
}

int main(int argc, char **argv)
{
	alarm(60);
	if (argc == 2 && strcmp(argv[1], "report") == 0)
		return report();
	if (argc == 3 && strcmp(argv[1], "silent") == 0)
		return silent(atoi(argv[2]));
	if (argc < 2 || shut_in(argv[1], argv[2]) != 0)
		return NOT_HERE;
	if (strcmp(argv[1], "streams") == 0)
		execl(argv[0], argv[0], "silent", argc > 2 ? argv[2] : "1", (char *)NULL);
	else
		execl(argv[0], argv[0], "report", (char *)NULL);
	return NOT_HERE;
}
