/*
 * One small file replaced, kept beside or removed so that neither a kill nor a power cut leaves less than the old or
 * the new one. Part of publish; knows nothing of policies.
 */
#ifndef CALIBRD_PUBLISH_FILE_H
#define CALIBRD_PUBLISH_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calibrd/publish.h"
#include "libpolicy/why.h"

/* Where path leads, its last component's links followed even if they lead nowhere yet. -ELOOP, -ENAMETOOLONG. */
int publish_file_resolve(char out[PUBLISH_PATH], const char *path, struct pc_why *why);

/* Two names of one place: the same name in the same folder, however that is spelt. */
bool publish_file_is(const char *a, const char *b);

/* The folder of path, its last component alone, for all to read. */
int publish_file_make_folder(const char *path, struct pc_why *why);

/* Removes temporaries that killed processes left beside path; those of a living one it leaves. Best effort. */
void publish_file_clean(const char *path);

/*
 * In place once this returns 0. Where the folder is missing or can't be written *folder is set beside the error; why
 * tells both. *placed: the new file is in place, even if an error follows.
 */
int publish_file_replace(const char *path, const char *text, size_t len, bool *folder, bool *placed,
                         struct pc_why *why);

/* A copy of path as PATH.edited-GENERATION, or with -2, -3 ... behind where another one has that name. *folder as
 * above. */
int publish_file_keep(const char *path, uint64_t generation, char kept[PUBLISH_PATH], bool *folder, struct pc_why *why);

/* Durably; an absent file is removed already. */
int publish_file_remove(const char *path, struct pc_why *why);

#endif
