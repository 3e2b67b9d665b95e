/*
 * Whether a generation of the past may be published on this host.
 */
#ifndef CALIBCTL_ROLLBACK_CHECK_H
#define CALIBCTL_ROLLBACK_CHECK_H

#include "calibctl/where.h"
#include "calibrd/store.h"

/* where: names the database in what is said. DONE; PROBLEM: made for another topology or CPU, or it names a kernel that
 * has failed its trial since; UNREADABLE. Says why on stderr. */
enum outcome rollback_check(const struct published *row, const struct pc_document *document, struct store *store,
                            const struct where *where);

#endif
