/*
 * Another library's memset as one more way of clearing. For a child alone: it runs whatever the library likes.
 */
#ifndef CALIBCTL_VERIFY_AGAINST_H
#define CALIBCTL_VERIFY_AGAINST_H

#include "kernels/kernels.h"
#include "libpolicy/why.h"

/* Loads it and finds a memset of its own. *out is never released. -ELIBACC: it cannot be loaded; -ENOSYS: it has none.
 */
int against_load(const struct pc_kernel **out, const char *library, struct pc_why *why);

/* Whether that memset clears what it is told to, and nothing else: a trial as each kernel has. 0, -EBADF: it does not;
 * -errno. */
int against_try(const struct pc_kernel *kernel, const char *library, struct pc_why *why);

#endif
