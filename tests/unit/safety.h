/*
 * What the tests of libpolicy's safety share: children that may die, memory with nothing around it, policies that name
 * one kernel for everything.
 */
#ifndef TESTS_SAFETY_H
#define TESTS_SAFETY_H

#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "tests/unit/policy_files.h"

enum { NOT_HERE = 77 };

/* Runs in a child; what it returns, or -signal. It neither hangs nor dumps. */
static inline int in_child(int (*run)(void))
{
	int status;

	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
		alarm(60);
		_exit(run());
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* For children, whose CUnit counts nobody sees: the line that failed, modulo 256 and never 0 or NOT_HERE. */
#define CHECK(condition)                                                                                               \
	do {                                                                                                           \
		if (!(condition))                                                                                      \
			return say_line(__LINE__, #condition);                                                         \
	} while (0)

static inline int say_line(int line, const char *condition)
{
	char text[300];
	int n = snprintf(text, sizeof(text), "\nin a child, line %d: %s\n", line, condition);
	ssize_t written = write(STDERR_FILENO, text, (size_t)n);

	(void)written;
	return 1;
}

/* size bytes, a multiple of the page's, between pages that may not be touched: `around` bytes on each side. */
static inline unsigned char *guarded(size_t size, size_t around)
{
	unsigned char *map =
		mmap(NULL, size + 2 * around, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	CU_ASSERT_TRUE_FATAL(map != MAP_FAILED);
	CU_ASSERT_EQUAL_FATAL(mprotect(map + around, size, PROT_READ | PROT_WRITE), 0);
	return map + around;
}

static inline void guarded_free(unsigned char *bytes, size_t size, size_t around)
{
	munmap(bytes - around, size + 2 * around);
}

/* One kernel for every size, intent and prior, by chunks. */
static inline const char *kernel_text(unsigned generation, const char *kernel, size_t chunk)
{
	static const char *const priors[] = {", prior: unknown", ", prior: cached", ", prior: flushed"};
	char clear[4096] = "clear:\n";

	for (unsigned i = 0; i < PC_ROWS; i++) {
		static const char *const intents[] = {"hot", "cold", "scrub"};
		size_t used = strlen(clear);

		snprintf(clear + used, sizeof(clear) - used,
		         "  - intent: %s\n    when: {threads: 1%s}\n    rules: [{from: 0, kernel: %s, chunk: %zu}]\n",
		         intents[i / 3], i == PC_ROW_SCRUB ? "" : priors[i % 3], kernel, chunk);
	}
	return policy_text(generation, here(), pc_arch, clear);
}

static inline bool is_all(const unsigned char *at, size_t len, unsigned char byte)
{
	return len == 0 || (at[0] == byte && memcmp(at, at + 1, len - 1) == 0);
}

/* A clear of the middle of a buffer touches that and no more. */
static inline bool clears_right(unsigned char *bytes, size_t len, unsigned intent)
{
	memset(bytes, 0xA5, len + 2);
	pageclear_zero(bytes + 1, len, intent);
	return bytes[0] == 0xA5 && is_all(bytes + 1, len, 0) && bytes[len + 1] == 0xA5;
}

/* True if the status is of that code and holds that part. */
static inline bool status_says(int code, const char *part)
{
	char text[1600];
	bool right = pageclear_status(text, sizeof(text)) == code && strstr(text, part) != NULL;

	if (!right)
		fprintf(stderr, "\n'%s' is not in '%s'\n", part, text);
	return right;
}

#endif
