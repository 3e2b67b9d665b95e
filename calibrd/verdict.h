/*
 * How far a calibration can be trusted, with the reasons in words. Pure.
 */
#ifndef CALIBRD_VERDICT_H
#define CALIBRD_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calibrd/samples.h"

struct verdict_facts {
	const struct dataset *data;
	uint32_t kernels; /* bits of pc_kernels that were measured */
	double tainted;   /* share of samples dropped */
	bool emulated;    /* no hardware behind this host: timings are those of an emulator */
};

struct verdict {
	const char *quality; /* "good", "noisy" or "emulated" */
	double spread;       /* typical standard deviation between epochs of a kernel's cost over libc's, in nats;
	                      * NaN where there are too few epochs to tell */
	char reasons[256];
};

/* Good: few samples dropped, epochs agree, and no more than a twentieth of the octaves lost: without a single round of
 * libc and a rival, or next to none and most samples dropped. Reasons name the lost sizes in any case. */
void verdict_reach(const struct verdict_facts *facts, struct verdict *out);

#endif
