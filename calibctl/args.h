/*
 * Options and words of a command line: --name, --name VALUE, --name=VALUE, -- and words, in any order.
 * Whatever is wrong is said here, naming the culprit, and ends in USAGE.
 */
#ifndef CALIBCTL_ARGS_H
#define CALIBCTL_ARGS_H

#include <stdbool.h>
#include <stddef.h>

#include "calibctl/calibctl.h"

/* Exactly one of value and flag is set. */
struct arg_option {
	const char *name; /* with its dashes */
	const char **value;
	bool *flag;
};

struct args {
	const char *verb; /* for messages; NULL before it is known */
	char **next;      /* ends in NULL */
};

struct arg_words {
	const char *word[4]; /* NULL behind the last */
	size_t least, most;  /* at most 3 */
	const char *names;   /* as usage shows them, for messages */
};

/* A verb's own options (ending in a row without a name; NULL: none) besides those of struct calibctl. DONE or USAGE. */
enum outcome args_parse(struct args *args, struct calibctl *ctl, const struct arg_option *own, struct arg_words *words);

/* Options before the verb; stops at the first word. */
enum outcome args_parse_leading(struct args *args, struct calibctl *ctl);

/* Says what is wrong with the command line, and where to read on. Always USAGE. */
enum outcome args_misused(const struct args *args, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
