/*
 * Tries each kernel in a child before anyone times it: it may be illegal here (SIGILL), fault, hang, or clear wrongly,
 * whatever CPUID says (prohibited DC ZVA, emulators with odd line sizes).
 */
#ifndef CALIBRD_TRIAL_H
#define CALIBRD_TRIAL_H

#include "kernels/kernels.h"

enum trial {
	TRIAL_PASSED,
	TRIAL_FAULTED, /* killed by a signal */
	TRIAL_WRONG,   /* left bytes, or touched what lies beside */
	TRIAL_HUNG,    /* not done within the deadline */
};

/* What a trial may take: a thousand times what it takes on hardware, enough for an emulator on a busy host. */
enum { TRIAL_DEADLINE_MS = 5000 };

/* One of enum trial, or -errno if no child could be had. The kernel must pass pc_kernel_runs(). */
int trial_run(const struct pc_kernel *kernel, unsigned deadline_ms);

#endif
