/*
 * A host as a set of curves: what each kernel costs by size, prior, threads, chunk and page, without any noise. The
 * truth that a calibration should find out.
 */
#ifndef TESTS_SIM_HOST_H
#define TESTS_SIM_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calibrd/meter.h"

enum { SIM_POINTS = 12, SIM_VICTIMS = 3, SIM_CROWDS = 5 };

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
	struct sim_curve by_chunk; /* any unit of speed by the bytes that one call covers: of an extent in chunks only
	                            * its quotient with the speed at the extent's size counts; empty: all alike */
	double backward;           /* times as long with the chunks in descending order; 0: 1 */
	double base_pages;         /* times as long on base pages where huge ones are usual; 0: 1 */
};

/* That many CPUs clearing at the same time. What has no curve here behaves as with one. */
struct sim_crowd {
	unsigned threads;
	struct sim_curve gb_per_s[PC_KERNEL_MAX][PC_PRIORS]; /* of each thread */
	double read_gb_per_s[PC_PRIORS];                     /* likewise; 0: as one thread's */
};

struct sim_host {
	const char *name;
	uint64_t l1_bytes, l2_bytes;
	uint64_t llc_bytes; /* what a clear can leave behind for the first read */
	bool misreports;    /* the benchmark is told the next three instead */
	uint64_t reported_l1_bytes, reported_l2_bytes, reported_llc_bytes;
	unsigned cpus;    /* that share the cache: most threads that can be asked for; 0: any number */
	uint32_t kernels; /* rows of pc_kernels with curves: all that may be asked for */
	struct sim_kernel kernel[PC_KERNEL_MAX];
	size_t crowds;
	struct sim_crowd crowd[SIM_CROWDS]; /* ascending in threads */
	double read_gb_per_s[PC_PRIORS];    /* first forward read from the last-level cache; from memory */
	struct sim_curve latency_ns;        /* of dependent loads */
	double load_ns[PC_PRIORS];          /* of one load of the probe */
	double victim_ns[SIM_VICTIMS];      /* reading a victim that is still there; 0: its lines' latency */
	double slower;                      /* everything takes so many times as long as the tables say; 0: 1 */
};

/* --- building ---------------------------------------------------------------------------------------------------- */

/* NaN for an empty curve. */
double sim_value(const struct sim_curve *curve, uint64_t bytes);
void sim_point(struct sim_curve *curve, uint64_t bytes, double value);

/* Row of a kernel by name; adds it to the host's kernels. pc_kernel_count if this build has none of that name. */
unsigned sim_kernel(struct sim_host *host, const char *name);

/* The host's entry for exactly that many threads, made where there is none. */
struct sim_crowd *sim_crowd(struct sim_host *host, unsigned threads);

/* --- the truth: true costs in ns; NaN without a curve ------------------------------------------------------------ */

double sim_clear_ns(const struct sim_host *host, unsigned kernel, enum pc_prior prior, uint64_t bytes);
double sim_read_ns(const struct sim_host *host, unsigned kernel, enum pc_prior prior, uint64_t bytes);
double sim_displaced_ns(const struct sim_host *host, unsigned kernel, unsigned victim, uint64_t bytes);

/* What each thread of an ask takes for its clear (single calls too) and its first read: kernel, phase, prior, bytes,
 * chunk, threads, backward and base_pages count. octaves: by how much the last-level cache is larger than it says at
 * the moment; sizes around it then behave like smaller ones. */
double sim_ask_clear_ns(const struct sim_host *host, const struct meter_ask *ask, double octaves);
double sim_ask_read_ns(const struct sim_host *host, const struct meter_ask *ask, double octaves);

/* How much longer the ask's victim takes to read again. */
double sim_ask_displaced_ns(const struct sim_host *host, const struct meter_ask *ask);

double sim_latency_ns(const struct sim_host *host, uint64_t bytes, double octaves);

/* How many times as long as its tables say everything takes. */
double sim_slowness(const struct sim_host *host);

#endif
