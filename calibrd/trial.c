/* One child a kernel; see trial.h. */
#include "calibrd/trial.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calibrd/clock.h"

enum {
	AREA = 1 << 20,
	CANARY = 0xa5,
};

/* Where and how much: every small length at line-crossing offsets, then sizes around the shapes that kernels have. */
static const size_t offsets[] = {0, 1, 7, 8, 15, 16, 31, 33, 63};
static const size_t large[] = {511, 512, 1000, 2048, 4095, 4096, 4097, 10000, 65536, 65600, 300001, AREA - 256};

static bool is_filled(const unsigned char *at, size_t len, unsigned char value)
{
	return len == 0 || (at[0] == value && memcmp(at, at + 1, len - 1) == 0);
}

static bool clears(const struct pc_kernel *kernel, unsigned char *area, size_t offset, size_t len)
{
	unsigned char *at = area + 128 + offset;
	size_t margin = 128 + offset < 1024 ? 128 + offset : 1024;

	memset(at - margin, CANARY, margin + len + 64);
	kernel->clear(at, len);
	return is_filled(at - margin, margin, CANARY) && is_filled(at, len, 0) && is_filled(at + len, 64, CANARY);
}

static bool clears_everywhere(const struct pc_kernel *kernel, unsigned char *area)
{
	for (size_t o = 0; o < sizeof(offsets) / sizeof(offsets[0]); o++) {
		for (size_t len = 0; len <= 300; len++)
			if (!clears(kernel, area, offsets[o], len))
				return false;
		for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++)
			if (!clears(kernel, area, offsets[o], large[i] - offsets[o]))
				return false;
	}
	return true;
}

/* What begins at `end` must not be touched. */
static bool clears_up_to(const struct pc_kernel *kernel, unsigned char *end)
{
	memset(end - 4096, CANARY, 4096);
	kernel->clear(end - 1000, 1000);
	return is_filled(end - 4096, 3096, CANARY) && is_filled(end - 1000, 1000, 0);
}

/* The area ends at a page that must not be touched. Exit codes: 0 right, 1 wrong, 2 no memory. */
static void __attribute__((noreturn)) child(const struct pc_kernel *kernel, pid_t parent)
{
	const struct rlimit none = {0, 0};
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	sigset_t nothing;
	unsigned char *area = mmap(NULL, AREA + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	bool right;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it died before that: nobody would end a kernel that hangs */
		_exit(2);
	setrlimit(RLIMIT_CORE, &none);
	/* Those that the worker ignores are meant for the terminal or service, and would look like faults. */
	for (int s = 1; s < NSIG; s++)
		if (s != SIGINT && s != SIGTERM && s != SIGHUP)
			signal(s, SIG_DFL);
	sigemptyset(&nothing);
	sigprocmask(SIG_SETMASK, &nothing, NULL);
	if (area == MAP_FAILED || mprotect(area + AREA, page, PROT_NONE) < 0)
		_exit(2);
	right = clears_everywhere(kernel, area) && clears_up_to(kernel, area + AREA);
	_exit(right ? 0 : 1);
}

static int outcome(int status)
{
	if (WIFSIGNALED(status))
		return TRIAL_FAULTED;
	if (WEXITSTATUS(status) == 2)
		return -ENOMEM;
	return WEXITSTATUS(status) == 0 ? TRIAL_PASSED : TRIAL_WRONG;
}

static uint64_t now_ms(void)
{
	return clock_ns(CLOCK_MONOTONIC) / 1000000;
}

/* 1 it has ended, 0 not in time, -errno. A pidfd needs no signal handler of our own. */
static int wait_until(pid_t pid, uint64_t deadline_ms)
{
	struct pollfd ended = {.fd = (int)syscall(SYS_pidfd_open, pid, 0), .events = POLLIN};
	int ready, r;

	if (ended.fd < 0)
		return -errno;
	do {
		uint64_t now = now_ms();

		ready = poll(&ended, 1, now < deadline_ms ? (int)(deadline_ms - now) : 0);
		r = ready < 0 ? -errno : ready;
	} while (r == -EINTR);
	close(ended.fd);
	return r;
}

static int wait_for(pid_t pid, unsigned deadline_ms)
{
	int status, r = wait_until(pid, now_ms() + deadline_ms);

	if (r <= 0)
		kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -errno;
	if (r < 0)
		return r;
	return r == 0 ? TRIAL_HUNG : outcome(status);
}

int trial_run(const struct pc_kernel *kernel, unsigned deadline_ms)
{
	pid_t self = getpid(), pid = fork();

	if (pid < 0)
		return -errno;
	if (pid == 0)
		child(kernel, self);
	return wait_for(pid, deadline_ms);
}
