/*
 * Shared by verify*.c alone: what is planned before anything is measured.
 */
#ifndef CALIBRD_VERIFY_PARTS_H
#define CALIBRD_VERIFY_PARTS_H

#include "calibrd/verify.h"

enum { VERIFY_VICTIMS = 3 }; /* L1D, L2, half the knee */

/* Epochs are even in number: one half of them picks, the other values. */
struct verify_effort {
	double seconds;
	unsigned epochs, sizes[VERIFY_SHAPES], rounds; /* rounds: at most, of a size in an epoch */
};

extern const struct verify_effort verify_efforts[EFFORTS];

struct verify_plan {
	struct meter_room room;
	uint64_t knee_bytes, victim_bytes[VERIFY_VICTIMS];
};

/* All sizes with their entrants, and the memory they take. data is for verify_data_free() in any case. Errors as of
 * verify_measure(). */
int verify_plan(const struct verify_config *config, struct verify_data *data, struct verify_plan *plan,
                struct pc_why *why);

#endif
