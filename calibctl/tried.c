/* Trials and memory before anything is timed; see tried.h. */
#include "calibctl/tried.h"

#include <string.h>

#include "calibrd/memory.h"
#include "calibrd/meter.h"

int tried_kernels(struct tried *out, uint32_t kernels, struct pc_why *why)
{
	*out = (struct tried){0};
	for (unsigned k = 0; k < pc_kernel_count; k++) {
		if ((kernels >> k & 1) == 0)
			continue;
		if (!pc_kernel_runs(&pc_kernels[k])) {
			out->lacking |= 1u << k;
			continue;
		}
		int trial = trial_run(&pc_kernels[k], TRIAL_DEADLINE_MS);
		if (trial < 0)
			return pc_why(why, trial, "cannot try %s: %s", pc_kernels[k].name, strerror(-trial));
		out->outcome[k] = (enum trial)trial;
		if (trial == TRIAL_PASSED)
			out->passed |= 1u << k;
	}
	return 0;
}

uint64_t tried_memory(void)
{
	uint64_t share = memory_available(NULL) / 4;

	return share > METER_OVERHEAD ? share - METER_OVERHEAD : 0;
}
