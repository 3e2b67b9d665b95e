/*
 * What verify and bench make sure of before they time anything in this process or a child of it: which kernels can be
 * trusted, and how much memory may be taken.
 */
#ifndef CALIBCTL_TRIED_H
#define CALIBCTL_TRIED_H

#include <stdint.h>

#include "calibrd/trial.h"
#include "libpolicy/why.h"

struct tried {
	uint32_t passed, lacking;          /* bits of pc_kernels; lacking: this CPU or OS has not what they need */
	enum trial outcome[PC_KERNEL_MAX]; /* of those asked for that are not lacking */
};

/* Tries each kernel of a set in a child, as calibrd does. 0 or -errno with why. */
int tried_kernels(struct tried *out, uint32_t kernels, struct pc_why *why);

/* Most bytes that mappings may take together: a quarter of what is available, as for a calibration, without what the
 * meter takes besides; 0: not even that is there. */
uint64_t tried_memory(void);

#endif
