/*
 * How far a calibration can be trusted, with the reasons in words. Pure.
 */
#ifndef CALIBRD_VERDICT_H
#define CALIBRD_VERDICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calibrd/samples.h"
#include "calibrd/surroundings.h"
#include "calibrd/taints.h"

struct verdict_facts {
	const struct dataset *data;
	uint32_t kernels;                        /* bits of pc_kernels that were measured */
	double tainted;                          /* share of samples dropped */
	bool emulated;                           /* no hardware behind this host: timings are those of an emulator */
	const struct taints *taints;             /* NULL: unknown */
	const struct surroundings *surroundings; /* NULL: unknown */
};

struct verdict {
	const char *quality; /* "good", "noisy" or "emulated" */
	double spread; /* typical standard deviation between epochs of a kernel's cost over libc's, in nats, of the
	                * table where it is largest; NaN where there are too few epochs to tell */
	char reasons[1024];
};

/*
 * Good: few samples dropped, epochs agree, no more than a twentieth of the octaves lost (without a single round of libc
 * and a rival, or next to none and most samples dropped), the clock steady, and nothing else on the host that took the
 * CPU, the caches or the memory for long: the limits stand in verdict*.c. Reasons name the lost sizes in any case, and
 * governor and turbo where they are known.
 */
void verdict_reach(const struct verdict_facts *facts, struct verdict *out);

#endif
