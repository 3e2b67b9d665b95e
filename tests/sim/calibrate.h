/* A whole calibration of a simulated host, and short questions about what came out. */
#ifndef TESTS_CALIBRATE_H
#define TESTS_CALIBRATE_H

#include "calibrd/bench.h"
#include "calibrd/decide.h"
#include "tests/sim/meter_sim.h"

struct calibration {
	struct dataset data;
	struct decision decision;
	double seconds; /* on the simulated clock */
};

/* With up to 2 GiB of memory. 0, or what bench_run() or decide() returned; then nothing is owned. */
int calibrate(struct calibration *out, const struct sim_host *host, const struct sim_noise *noise, enum effort effort,
              uint64_t seed);
/* Decides again, with the rules of a document before it. */
int calibrate_decide(struct calibration *calibration, const struct sim_host *host, const struct pc_document *old);
void calibration_free(struct calibration *calibration);

/* NULL if nothing was decided for it. */
const struct pc_table *calibrated_table(const struct decision *decision, unsigned intent, enum pc_prior prior);

/* Row of the kernel that the decision takes for a size: libc where there is no table. */
unsigned calibrated_kernel(const struct decision *decision, unsigned intent, enum pc_prior prior, uint64_t bytes);

/* Prints a table in one line, for a test that failed. */
void calibrated_print(const struct pc_table *table);

#endif
