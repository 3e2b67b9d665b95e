/*
 * What bench.c and rounds.c share: one run of the benchmark. bench.c spends the time, rounds.c takes one round of a
 * block.
 */
#ifndef CALIBRD_BENCH_PARTS_H
#define CALIBRD_BENCH_PARTS_H

#include "calibrd/bench.h"
#include "calibrd/random.h"

struct bench {
	struct meter *meter;
	const struct bench_config *config;
	struct dataset *data;
	const struct bench_sink *sink;
	struct plan plan;
	struct random random;
	uint64_t started_ns;
	double share_ns; /* of this epoch, mappings, knee and probe included */
	double late_ns;  /* since the start; what this epoch has not begun by then is left out */
	unsigned epoch;
	int sample_error;    /* of the last sample: what the meter said, 0: nothing */
	uint64_t knee_bytes; /* of this epoch; 0: not seen */
};

/* One round of a block: every entrant once, in shuffled order, each sample into the dataset and to the sink. 0,
 * -ECANCELED if stopped, or what the meter or the sink returned. */
int rounds_take(struct bench *bench, const struct block *block, unsigned number);

/* Largest array that the knee is looked for with. */
uint64_t bench_knee_top(const struct bench *bench);

/* Bytes of the victim of a phase, in whole pages. */
uint64_t rounds_victim_bytes(const struct bench *bench, enum phase phase);

bool bench_stopped(const struct bench *bench);

#endif
