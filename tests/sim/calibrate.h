/* A whole calibration of a simulated host, and short questions about what came out. */
#ifndef TESTS_CALIBRATE_H
#define TESTS_CALIBRATE_H

#include "calibrd/bench.h"
#include "calibrd/decide.h"
#include "calibrd/pool.h"
#include "tests/sim/meter_sim.h"

struct calibrate_setting {
	const struct sim_host *host;
	const struct sim_noise *noise;
	enum effort effort;
	uint64_t seed;
	uint64_t memory_bytes;         /* 0: 2 GiB */
	const struct pc_document *old; /* the policy in force; NULL: none */
};

struct calibrated {
	struct dataset data;
	struct decision decision;
	double seconds;        /* on the simulated clock */
	uint64_t mapped_bytes; /* most that was mapped at a time */
};

/* The weight that the design chose. */
extern const double calibrate_scrub_weight;

/* 0, or what bench_run() or decide() returned; then nothing is owned. A host with curves for several threads is also
 * measured with all of its CPUs. */
int calibrate_with(struct calibrated *out, const struct calibrate_setting *setting);
/* The same with as little said. */
int calibrate(struct calibrated *out, const struct sim_host *host, const struct sim_noise *noise, enum effort effort,
              uint64_t seed);
/* Decides again, with the rules of a document before it. */
int calibrate_decide(struct calibrated *calibration, const struct sim_host *host, const struct pc_document *old);
/* Decides from several calibrations, at most POOL_MOST, the newest first, as settle() does. As calibrate_with(). */
int calibrate_together(struct decision *out, const struct sim_host *host, const struct dataset *const *parts,
                       size_t count, const struct pc_document *old);
void calibration_free(struct calibrated *calibration);

/* $PAGECLEAR_SEEDS if set, else `usual`: how many seeds a test goes through. */
unsigned calibrate_seeds(unsigned usual);

/* Of so many seeds, how many may miss what 99 of 100 must reach. */
unsigned calibrate_misses(unsigned seeds);

/* The table for exactly that many threads; NULL if nothing was decided for it. */
const struct pc_table *calibrated_threads_table(const struct decision *decision, unsigned intent, enum pc_prior prior,
                                                unsigned threads);
const struct pc_table *calibrated_table(const struct decision *decision, unsigned intent, enum pc_prior prior);

/* Row of the kernel that a table takes for a size: libc where there is no table. */
unsigned calibrated_row(const struct pc_table *table, uint64_t bytes);
/* Likewise for one thread. */
unsigned calibrated_kernel(const struct decision *decision, unsigned intent, enum pc_prior prior, uint64_t bytes);

/* Prints a table in one line, for a test that failed. */
void calibrated_print(const struct pc_table *table);

#endif
