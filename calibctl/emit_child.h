/*
 * A short-lived program that is asked something: its standard output as text.
 */
#ifndef CALIBCTL_EMIT_CHILD_H
#define CALIBCTL_EMIT_CHILD_H

#include <stddef.h>

#include "libpolicy/why.h"

struct child_ask {
	const char *program;
	char *const *arguments; /* argv, ending in NULL */
	const char *tunables;   /* its GLIBC_TUNABLES; NULL: none, whatever this process has */
	size_t most;            /* bytes of answer */
	int deadline_ms;
	const char *blame; /* how the line of its standard error begins that says why it failed; NULL: none does */
};

/* Its standard error is not shown. *text, ending in NUL, is for free(). -errno of starting it, -EIO: it failed, -EFBIG:
 * more than `most`, -ETIMEDOUT, -ENOMEM; the child is gone after all of them. */
int child_ask(const struct child_ask *ask, char **text, struct pc_why *why);

#endif
