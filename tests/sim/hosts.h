/* Simulated hosts that are written down in code. */
#ifndef TESTS_HOSTS_H
#define TESTS_HOSTS_H

#include "tests/sim/meter_sim.h"

/* A Zen 3 guest (EPYC Milan, 2 CPUs) as a prototype measured it: every condition differs, so every table has something
 * to find. Kernels that this build lacks are left out. */
void host_zen3(struct sim_host *host);

/* The same, but all kernels alike in every respect: nothing to find. */
void host_alike(struct sim_host *host);

/* Three levels: private caches of l2_bytes, a shared one up to llc_bytes, memory. */
void host_latency(struct sim_host *host, uint64_t l2_bytes, uint64_t llc_bytes, double l2_ns, double llc_ns,
                  double memory_ns);

#endif
