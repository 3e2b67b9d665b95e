/*
 * Brings together what two databases of this host hold: the one that was used for a while, and the one it stood in for.
 */
#ifndef CALIBRD_STORE_ABSORB_H
#define CALIBRD_STORE_ABSORB_H

#include "calibrd/store.h"

/*
 * Takes over what the database at path (a sound one of this schema, which nobody writes meanwhile) has and the store
 * lacks: topologies, ended calibrations with their series and rounds, publications, verifications. One transaction: all
 * or nothing; done twice it changes nothing more. 0 or -errno with why.
 *
 * Calibrations get new ids, above those that are there: ids tell what is newest, not times, since clocks are set.
 * Generations keep their numbers, for the published files bear them. Where both gave one number to different texts the
 * store's own stays, and a verification of the other counts as one of an unknown policy; the highest number of both
 * stays the highest, so that the count never goes back.
 */
int store_absorb(struct store *store, const char *path, struct pc_why *why);

#endif
