/*
 * Plausible hosts and noises by the number: 1 to 13 kernels on piecewise curves with crossovers, plateaus, stretches
 * that are not monotone, and ties; a knee between 1 and 256 MiB; reported caches right, wrong or absent; 1, 8 or 128
 * CPUs, emulators, little memory. The same number is the same host for ever.
 */
#ifndef TESTS_RANDOM_HOST_H
#define TESTS_RANDOM_HOST_H

#include "tests/sim/meter_sim.h"

struct random_host {
	uint64_t number;
	struct sim_host host;
	struct sim_noise noise;
	uint64_t memory_bytes;
};

void random_host(struct random_host *out, uint64_t number);

/* All of it in a few lines, for a test that failed. */
void random_host_print(const struct random_host *random_host);

#endif
