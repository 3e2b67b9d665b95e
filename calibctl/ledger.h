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

/* The newest done calibration of a topology (NULL: of any) and its series (data may be NULL).
 * 0, 1 no database or no such calibration, -errno; why as above. The caller releases both. */
int ledger_latest(const struct where *where, const char *topology, struct calibration *out, struct dataset *data,
                  struct pc_why *why);

#endif
