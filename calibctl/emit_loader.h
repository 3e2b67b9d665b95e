/*
 * What the dynamic loader itself says of its tunables: names, ranges, and the values in force.
 */
#ifndef CALIBCTL_EMIT_LOADER_H
#define CALIBCTL_EMIT_LOADER_H

#include <stdbool.h>
#include <stdint.h>

#include "libpolicy/why.h"

struct loader_tunable {
	bool listed;
	uint64_t present, least, most;
};

/* True if the list (`ld.so --list-tunables`) holds a number of that name. Pure. */
bool loader_find(const char *list, const char *name, struct loader_tunable *out);

/* Asks a loader (NULL: the one that loaded this program) for its list, with no tunable set; *list is for free().
 * -ENOENT: this program has none; errors of child_ask(). */
int loader_list(const char *loader, char **list, struct pc_why *why);

#endif
