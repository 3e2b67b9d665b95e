/*
 * What a verification found for one intent and prior: how verify.h tells it and store.h keeps it.
 */
#ifndef CALIBRD_VERIFIED_H
#define CALIBRD_VERIFIED_H

#include <stdbool.h>
#include <stdint.h>

#include "libpolicy/document.h"

/* Regret and floor are shares (0.02: 2 %), gains factors; NaN: not told. */
struct verified {
	unsigned intent;
	enum pc_prior prior; /* PC_UNKNOWN for scrub */
	unsigned sizes;
	double mean, p95, worst; /* regret */
	uint64_t worst_bytes;
	double floor, floor_p95; /* libc against itself */
	double gain, best_gain, unhinted, against;
	bool passed;
};

#endif
