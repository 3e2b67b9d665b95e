/*
 * A meter that answers from a table instead of from hardware: a host is a set of curves, noise is seeded, and its own
 * clock moves on by what the real thing would have taken. Same host, noise and seed: same answers, to the bit.
 */
#ifndef TESTS_METER_SIM_H
#define TESTS_METER_SIM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calibrd/meter.h"

enum { SIM_POINTS = 12, SIM_VICTIMS = 3 };

/* Values over bytes, ascending; between them straight lines in log-log, beyond them the nearest value holds. */
struct sim_curve {
	size_t count; /* 0: nothing is known */
	struct {
		uint64_t bytes;
		double value; /* positive */
	} at[SIM_POINTS];
};

struct sim_kernel {
	struct sim_curve gb_per_s[PC_PRIORS]; /* of the clear with its fence, by size; PC_CACHED, PC_FLUSHED */
	double single_ns;                 /* what one call alone, with work behind it, takes more than a batched one */
	struct sim_curve single_gb_per_s; /* if known it is used for single calls instead of the flushed curve */
	/* By victim: how much longer it takes to read again, in ns, after a clear of `bytes`; less in proportion for
	 * smaller clears, more in proportion for larger ones until the victim is gone. */
	struct {
		uint64_t bytes;
		double ns;
	} displaces[SIM_VICTIMS];
};

struct sim_host {
	const char *name;
	uint64_t l1_bytes, l2_bytes; /* as reported to the benchmark */
	uint64_t llc_bytes;          /* as it is: what a clear can leave behind for the first read */
	uint32_t kernels;            /* rows of pc_kernels with curves: all that may be asked for */
	struct sim_kernel kernel[PC_KERNEL_MAX];
	double read_gb_per_s[PC_PRIORS]; /* first forward read from the last-level cache; from memory */
	struct sim_curve latency_ns;     /* of dependent loads */
	double load_ns[PC_PRIORS];       /* of one load of the probe */
	double victim_ns[SIM_VICTIMS];   /* reading a victim that is still there; 0: its lines' latency */
	double slower;                   /* everything takes so many times as long as the tables say; 0: 1 */
};

/* Lognormal spreads as standard deviations of the logarithm. */
struct sim_noise {
	double within;   /* sample by sample */
	double round;    /* common to a round: what pairing takes out */
	double victim;   /* of one reading of a victim: many lines, so less than a clear's */
	double between;  /* of each kernel, size and prior from epoch to epoch: what repeating in one epoch cannot see;
	                  * of victims as a whole, as all kernels meet the same mapping */
	double drift;    /* amplitude of a slow sine over the clock, a period a minute, common to all */
	double spikes;   /* share of samples that take ten times as long, unnoticed */
	double steal;    /* share of rounds during which time is stolen: slower by half, and noticed */
	double switches; /* share of samples that a switch of context lengthens by half, noticed */
};

/* The moderate noise of a shared guest (background: paired MAD about 8 %). */
extern const struct sim_noise sim_noise_guest;
extern const struct sim_noise sim_noise_none;

/* Keeps the pointers to host and noise. 0 or -ENOMEM. Asking for what an epoch's mappings cannot hold, or a kernel
 * without a curve, is answered -EINVAL. */
int meter_sim_new(struct meter **out, const struct sim_host *host, const struct sim_noise *noise, uint64_t seed);

/* The next `calls` samples are answered, all after them with this error. */
void meter_sim_fail(struct meter *meter, unsigned calls, int error);

/* The true cost in ns, without noise: what a calibration should find out. NaN without a curve. */
double sim_clear_ns(const struct sim_host *host, unsigned kernel, enum pc_prior prior, uint64_t bytes);
double sim_read_ns(const struct sim_host *host, unsigned kernel, enum pc_prior prior, uint64_t bytes);
double sim_displaced_ns(const struct sim_host *host, unsigned kernel, unsigned victim, uint64_t bytes);

/* NaN for an empty curve. */
double sim_value(const struct sim_curve *curve, uint64_t bytes);
void sim_point(struct sim_curve *curve, uint64_t bytes, double value);

/* Row of a kernel by name; adds it to the host's kernels. pc_kernel_count if this build has none of that name. */
unsigned sim_kernel(struct sim_host *host, const char *name);

#endif
