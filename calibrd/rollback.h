/*
 * A policy that somebody rolled back to stands until a calibration is done after it: what the remembered one would
 * decide is what they rolled back from.
 */
#ifndef CALIBRD_ROLLBACK_H
#define CALIBRD_ROLLBACK_H

#include "calibrd/settle.h"

/* The source of what calibctl rollback publishes. */
#define ROLLBACK_SOURCE "rollback"

/*
 * Publishes the generation that the topology was rolled back to, with today's pins over it, where it stands. Returns as
 * settle(); or 2 where none does, and settle() is to be called: nobody rolled back, a calibration has been done since
 * (what->calibration is the newest that counts), or it names a kernel that may no longer be chosen, which the log
 * tells.
 */
int rollback_stand(const struct settlement *what, struct pc_why *why);

/* Bits of pc_kernels that a policy names and that a calibration found faulty, or that are excluded: no rollback brings
 * them back. */
uint32_t rollback_barred(const struct pc_document *document, const struct calibration *known, uint32_t exclude);

#endif
