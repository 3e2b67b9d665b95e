/*
 * Runs a plan on a meter: epochs, knee, shuffled rounds, probe. Knows no hardware (the meter does) and no decisions.
 */
#ifndef CALIBRD_BENCH_H
#define CALIBRD_BENCH_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "calibrd/meter.h"
#include "calibrd/plan.h"
#include "calibrd/samples.h"

struct bench_config {
	enum effort effort;
	uint32_t kernels;      /* bits of pc_kernels that passed their trial */
	uint32_t keep;         /* of these, those that the policy in force names */
	uint64_t memory_bytes; /* most that targets and victims may take together */
	unsigned threads;      /* CPUs that also clear together; 0 and 1: none. The meter must have as many */
	double scrub_weight;   /* by which a scrub's cost is judged: where more rounds would tell */
	uint64_t l1_bytes, l2_bytes,
		llc_bytes; /* as reported, 0: unknown; hints for victims and for the knee's search */
	uint64_t seed;
	const volatile sig_atomic_t *stop; /* set from outside to end early; may be NULL */
};

/* Lines of a probe. With eight a look takes most targets of which half is cached for flushed, which is right where the
 * clears differ most (tests/bench/forms.c); with four it is a matter of luck. */
enum { BENCH_PROBE_LINES = 8 };

/* One probe in one prior state. */
struct bench_probe {
	uint64_t bytes;
	enum pc_prior prior;
	double whole_ns;
	double looks[PC_PROBE_LOOKS]; /* ns */
};

/* Who listens. Every member may be NULL; a negative return ends the run and is passed up. */
struct bench_sink {
	void *context;
	int (*sample)(void *context, const struct series_key *key, const struct round_value *value, bool tainted);
	int (*knee)(void *context, unsigned epoch, uint64_t bytes);
	int (*probe)(void *context, const struct bench_probe *probe);
	int (*progress)(void *context, unsigned epoch, unsigned epochs, double share);
	int (*crew_lost)(void *context, int error); /* several threads cannot be measured: -errno says why */
};

/* data gets every sample that the sink gets. 0, -ECANCELED if stopped, or what the meter or the sink returned. */
int bench_run(struct meter *meter, const struct bench_config *config, struct dataset *data,
              const struct bench_sink *sink);

#endif
