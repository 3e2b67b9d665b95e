/*
 * The database as verbs read it: briefly, and without needing it.
 */
#ifndef CALIBCTL_LEDGER_H
#define CALIBCTL_LEDGER_H

#include "calibctl/where.h"
#include "calibrd/store.h"

/* Opens it for reading. 0, 1 there is none and none was asked for, -errno; why is set save for 0, with the path in it.
 * *out belongs to the caller: store_close(). */
int ledger_open(struct store **out, const struct where *where, struct pc_why *why);

/* r, with a reason of the database's as why: the path in front where it is not in there. */
int ledger_why(int r, const struct where *where, const struct pc_why *reason, struct pc_why *why);

/* The same where the reason may as well be a file's: only what says "database: " is changed. */
int ledger_why_mixed(int r, const struct where *where, const struct pc_why *reason, struct pc_why *why);

/* A generation that there is not: 1 with why, which names those that there are; or -errno with why. */
int ledger_lacks(struct store *store, const struct where *where, uint64_t generation, struct pc_why *why);

/* The newest done calibration of a topology (NULL: of any), and the samples that its policy was decided from: its own
 * and those that calibrd pools with them (pool.h). data may be NULL.
 * 0, 1 no database or no such calibration, -errno; why as above. The caller releases both. */
int ledger_latest(const struct where *where, const char *topology, struct calibration *out, struct dataset *data,
                  struct pc_why *why);

#endif
