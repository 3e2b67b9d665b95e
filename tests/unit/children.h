/* Children that may die, and how they tell what they found. */
#ifndef TESTS_CHILDREN_H
#define TESTS_CHILDREN_H

#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/harness.h"

enum { NOT_HERE = 77 }; /* of a child: this host cannot run it */

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

/* For children, whose CUnit counts nobody sees: says what failed and where, and makes the child return 1. */
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

#endif
