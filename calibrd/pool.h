/*
 * What a policy is decided from: the epochs of the last calibrations together. One calibration is a minute of a host
 * whose neighbours come and go within hours: variance lives between calibrations as it does between epochs.
 * pool.c is pure, pool_store.c reads the database.
 */
#ifndef CALIBRD_POOL_H
#define CALIBRD_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "calibrd/samples.h"
#include "calibrd/store.h"

enum { POOL_MOST = 3 }; /* calibrations, as many as a topology's rounds are kept of */

/* --- pure --------------------------------------------------------------------------------------------------------- */

/*
 * True if what an older calibration measured still speaks for the host as the newer one found it: same topology, same
 * soft facts (kernel revisions among them) and quality, neither noisy, no less effort, and no verification that failed
 * since: whose policy lost is not asked again. Verifications after the newer one don't count: what it was decided from
 * stays the same for ever.
 */
bool pool_fits(const struct calibration *newer, const struct calibration *older,
               const struct verification *verifications, size_t count);

/* Epochs that hold an undisturbed sample. */
size_t pool_epochs(const struct dataset *data);

/*
 * Joins the samples of up to POOL_MOST calibrations, the newest first, into one dataset. The newest's epochs keep their
 * numbers, the others' follow; no calibration has more of them than the newest, so that none outweighs it. What does
 * not fit into COST_EPOCHS is left out, and so is
 * - of the older ones, what the newest has no like of: kernels, and numbers of threads;
 * - a size that one of them passed over, having measured smaller and larger ones: crossovers' brackets lie elsewhere
 * each time, and inside them one day's epochs would speak beside neighbours for which all do, so that rules came out
 * chopped. One alone is copied as it is. 0 or -ENOMEM; *out is then empty.
 */
int pool_join(struct dataset *out, const struct dataset *const *parts, size_t count);

/* --- from the database -------------------------------------------------------------------------------------------- */

/*
 * The pool of a calibration that is done: its own samples, `data`, and those of the calibrations before it that fit and
 * whose rounds are still kept. Depends on nothing that happens after it, so that a restart decides what was decided
 * right after it. *used (may be NULL): how many calibrations that are. 0, or -errno with why.
 */
int pool_collect(struct dataset *out, struct store *store, const struct calibration *calibration,
                 const struct dataset *data, unsigned *used, struct pc_why *why);

/* How many calibrations that are by their records alone, at most POOL_MOST. 0, or -errno with why. */
int pool_count(struct store *store, const struct calibration *calibration, unsigned *used, struct pc_why *why);

/* The same for whoever has no samples in hand. Without any rounds left of its own, series without rounds. */
int pool_read(struct dataset *out, struct store *store, const struct calibration *calibration, struct pc_why *why);

#endif
