/*
 * The simulated Zen 3 guest for tests, where this build has its kernels.
 */
#ifndef TESTS_ZEN3_H
#define TESTS_ZEN3_H

#include "tests/sim/hosts.h"
#include "tests/unit/harness.h"

/* False where the test is skipped. */
static inline bool zen3_here(struct sim_host *host)
{
	if (pc_kernel_find("clzero") == NULL) {
		unit_skip("the host is an x86 one");
		return false;
	}
	host_zen3(host);
	return true;
}

#endif
