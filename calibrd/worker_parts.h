/*
 * Shared by worker*.c alone: how the child talks, and what calibrating and verifying both begin with.
 */
#ifndef CALIBRD_WORKER_PARTS_H
#define CALIBRD_WORKER_PARTS_H

#include "calibrd/worker.h"

/* Records leave in batches, so that a sample is not followed by a system call each time. */
enum { WORKER_BATCH = 256 };

struct worker {
	int out;
	uint32_t number;
	struct taints taints;
	unsigned epoch;
	int percent; /* of epoch, that was said last */
	size_t held;
	struct record records[WORKER_BATCH];
};

/* 0 or -errno: the parent is gone. */
int worker_say(struct worker *worker, struct record record);

/* Anything larger than a record, in pieces. */
int worker_say_whole(struct worker *worker, enum record_kind kind, const void *whole, size_t size);

/* As struct bench_sink and struct verify_config have it: every whole per cent reaches the parent, and with it all
 * records before it. */
int worker_say_progress(void *worker, unsigned epoch, unsigned epochs, double share);

/* Bits of the kernels that run here and passed their trial; says how each trial went, as soon as it is known. */
int worker_try_kernels(struct worker *worker, uint32_t excluded, uint32_t *passed, struct pc_why *why);

/* A meter of this host that rests as it was ordered to; crew: as meter_real_new() has it. NULL after an error. */
int worker_new_meter(struct meter **out, const struct order *order, const struct crew *crew, struct pc_why *why);

/* Ends a meter, which may be NULL, and keeps what it has counted. */
void worker_free_meter(struct worker *worker, struct meter *meter);

/* Measures, and sends every sample. 0 or -errno with why. */
int worker_calibrate(struct worker *worker, const struct order *order, struct pc_why *why);

#endif
