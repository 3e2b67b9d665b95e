/*
 * A small file as one piece of text, and a cheap way to tell later whether a path still leads to the same contents.
 */
#ifndef PC_FILE_H
#define PC_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libpolicy/why.h"

/* Of whatever a path leads to. */
struct pc_identity {
	int error; /* errno of the stat, and all else 0; 0: it leads somewhere */
	uint64_t device, inode, size;
	uint64_t changed_ns, modified_ns; /* since 1970, modulo 2^64 */
};

/* *text belongs to the caller: free(). Errors: -errno of open and read (-EIO for ESTALE), -EBADMSG not a regular file,
 * -EFBIG, -ENOMEM.
 */
int pc_file_read(const char *path, size_t most, char **text, size_t *len, struct pc_why *why);

/* One stat. Taken before a read it errs on the safe side: a file replaced in between shows up as changed next time. */
struct pc_identity pc_file_identity(const char *path);
bool pc_identity_same(const struct pc_identity *a, const struct pc_identity *b);

#endif
