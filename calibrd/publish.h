/*
 * policy.yaml put where programs look for it: atomically, durably, and without losing what somebody wrote there by
 * hand. Knows files and texts; what was published before it learns from its caller, who keeps the database. Logs
 * nothing.
 *
 * One process publishes at a time (the database's lock sees to that); readers see the old or the new file, never less.
 * A path that is a symbolic link, even one that leads nowhere yet, stays a link: what it points to is replaced.
 */
#ifndef CALIBRD_PUBLISH_H
#define CALIBRD_PUBLISH_H

#include <stdbool.h>
#include <stdint.h>

#include "libpolicy/document.h"
#include "libpolicy/why.h"

enum { PUBLISH_PATH = 1024 };

struct publish_target {
	const char *path;     /* its folder must exist */
	const char *fallback; /* where path's folder is missing or can't be written; its folder is made. NULL: none */

	/* The exact text that was published as a generation: for free(), NULL if the record has none. A file with any
	 * other text has been edited. Tells an edited file from one left behind while its folder was read-only. */
	char *(*recorded)(void *record, uint64_t generation);
	void *record;
};

struct publish_request {
	struct publish_target target;
	const struct pc_document *document; /* all but generation */
	uint64_t database_generation;       /* newest one recorded, 0: none */
};

struct publish_result {
	char path[PUBLISH_PATH]; /* where the policy is now */
	uint64_t generation;
	bool written, edited_kept, used_fallback;
	char warnings[2 * PUBLISH_PATH]; /* for the log: sentences, a line each; "" if there is nothing to say */
	char *yaml;                      /* the text in force: for free() */
};

/*
 * 0: written, record result->yaml as result->generation.
 *
 * 1: the same content is there already and nothing was written. Record it if the database doesn't know that generation:
 * a killed calibrd may not have come to it.
 *
 * -errno with why: -EBUSY path itself is a mount, as in containers that bind one file; -EBADMSG path is no regular
 * file, or readers would refuse the document; -EOVERFLOW no generation is left; -EFBIG, -EINVAL of export_yaml();
 * -ENOSPC, -EROFS (without fallback) and others of open, write, fsync and rename. The old policy stands, except where
 * what failed came after the rename (fsync of the folder, removal of the fallback's copy): result->written is then
 * true.
 *
 * The result is always filled, and free(result->yaml) always right.
 */
int publish(const struct publish_request *request, struct publish_result *result, struct pc_why *why);

/*
 * Takes away policies made for another topology than this, from path and fallback; edited ones are kept beside. Files
 * that can't be read as a policy are no policy and stay. 0 something was withdrawn (result->path: the last), 1 nothing,
 * or -errno with why.
 */
int publish_withdraw(const struct publish_target *target, const char *topology, struct publish_result *result,
                     struct pc_why *why);

#endif
