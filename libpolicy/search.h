/*
 * The host's policy: which files are looked at, in which order, and what was found there.
 */
#ifndef PC_SEARCH_H
#define PC_SEARCH_H

#include <limits.h>
#include <stdbool.h>

#include "libpolicy/file.h"

struct pageclear_policy;

/* $PAGECLEAR_POLICY, /run, /etc; used == PC_CANDIDATES: built-in. */
enum { PC_CANDIDATES = 3 };

struct pc_search {
	unsigned used;
	struct pc_identity seen[PC_CANDIDATES]; /* up to the one in use; later ones were not looked at */
	bool unsure;                            /* a candidate before the one in use could not be looked at */
	/* $PAGECLEAR_POLICY then, "" if it is not set or must not be believed. One byte more than a path may have: what
	 * is cut off leaves a name that the system refuses as too long, never another's. */
	char named[PATH_MAX + 1];
	char text[1536]; /* for pageclear_status: one line, without control characters */
};

/* Hidden from users, for tests: what stands for /run/pageclear/policy.yaml and /etc/pageclear/policy.yaml. */
extern const char *pc_search_paths[PC_CANDIDATES - 1];

/*
 * 0 and a policy that the caller closes, the built-in one at last. Without anything to keep, only -ENOMEM of the
 * built-in one is left: a candidate that could not be read is passed over. With `kept`, what the search found that is
 * in force, errors that say nothing about the files end the search: -ENOMEM, -EMFILE, -ENFILE, -EIO, -EAGAIN, -EINTR of
 * any candidate, -EACCES, -EPERM, -ENOSYS of the one in use.
 */
int pc_search(struct pageclear_policy **out, struct pc_search *search, const struct pc_search *kept);

/* True if a search now would find what it found then (never after an unsure one): one stat of each candidate up to the
 * one in use. */
bool pc_search_holds(const struct pc_search *search);

#endif
