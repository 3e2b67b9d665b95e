/*
 * Which policy and which database a verb looks at, and by whose word.
 */
#ifndef CALIBCTL_WHERE_H
#define CALIBCTL_WHERE_H

#include <limits.h>
#include <stdbool.h>

#include "calibctl/calibctl.h"

enum where_source {
	WHERE_NOWHERE,     /* not found: the path is the last place looked at */
	WHERE_OPTION,      /* --policy, --database: taken at its word, there or not */
	WHERE_ENVIRONMENT, /* $PAGECLEAR_POLICY, likewise; the word `builtin` is the off switch */
	WHERE_TREE,        /* run/ beside the folder that the program was built in */
	WHERE_HOST,        /* where calibrd puts it */
};

/* The paths point into the hints or into the struct itself: it is not to be copied. */
struct where {
	enum where_source policy_source, database_source;
	const char *policy, *database;
	char policy_found[PATH_MAX], database_found[PATH_MAX];
};

/* What the search depends on; members may be NULL. */
struct where_hints {
	const char *policy, *database; /* the options */
	const char *environment;       /* $PAGECLEAR_POLICY */
	const char *program;           /* path of the running program */
	const char *root;              /* prefix of /run, /etc and /var, for tests */
};

void where_find(struct where *out, const struct where_hints *hints);

/* For this process. */
void where_here(struct where *out, const struct calibctl *ctl);

/* True if the policy is $PAGECLEAR_POLICY's word `builtin`: no file is in use. */
bool where_is_off(const struct where *where);

/* True if it is this host's own that is looked at: it was found there, or is nowhere and would be. */
bool where_is_hosts(enum where_source source);

/* "--policy", "$PAGECLEAR_POLICY", "source tree", "this host". */
const char *where_policy_origin(const struct where *where);

#endif
