/*
 * A meter that answers from a simulated host's curves instead of from hardware: noise is seeded, and its own clock
 * moves on by what the real thing would have taken. Same host, noise and seed: same answers, to the bit.
 */
#ifndef TESTS_METER_SIM_H
#define TESTS_METER_SIM_H

#include "tests/sim/sim_host.h"

/* Lognormal spreads as standard deviations of the logarithm. */
struct sim_noise {
	double within;   /* sample by sample */
	double round;    /* common to a round: what pairing takes out */
	double victim;   /* of one reading of a victim: many lines, so less than a clear's */
	double between;  /* of each kernel, size, prior, number of threads and way over the extent from epoch to epoch:
	                  * what repeating in one epoch cannot see; of victims as a whole, as all kernels meet the same
	                  * mapping */
	double crowd;    /* by what share within, round and between are larger for asks with several threads */
	double drift;    /* amplitude of a slow sine over the clock, a period a minute, common to all */
	double spikes;   /* share of samples that take ten times as long, unnoticed */
	double steal;    /* share of rounds during which time is stolen: slower by half, and noticed */
	double switches; /* share of samples that a switch of context lengthens by half, noticed */
	double shift;    /* octaves by which the last-level cache is larger than it says, all the time: what a neighbour
	                  * that stays for hours leaves of it */
	double knee; /* octaves by which it is larger or smaller than that: it walks from epoch to epoch, half of the
	              * way back each time, and a third as far within one */
};

/* The moderate noise of a shared guest (background: paired MAD about 8 %). */
extern const struct sim_noise sim_noise_guest;
/* Half of that and nothing stolen: a server of one's own. */
extern const struct sim_noise sim_noise_server;
extern const struct sim_noise sim_noise_none;

/* Keeps the pointers to host and noise. 0 or -ENOMEM. Asking for what an epoch's mappings cannot hold, a kernel without
 * a curve, more threads than the host has CPUs or single calls of several, is answered -EINVAL. */
int meter_sim_new(struct meter **out, const struct sim_host *host, const struct sim_noise *noise, uint64_t seed);

/* The next `calls` samples are answered, all after them with this error. */
void meter_sim_fail(struct meter *meter, unsigned calls, int error);

/* The most bytes that the mappings of one epoch held together, with one crew's share for each CPU but the first. */
uint64_t meter_sim_mapped(const struct meter *meter);

#endif
