/*
 * Where threads wait for each other by spinning: being woken up would show in what is timed right after.
 */
#ifndef CALIBRD_GATE_H
#define CALIBRD_GATE_H

#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "kernels/cpu.h"

/* Apart, so that those who arrive do not disturb those who wait. */
struct gate {
	unsigned threads;
	_Alignas(64) atomic_uint arrived;
	_Alignas(64) atomic_uint opened; /* how often */
	atomic_uint spoilt;              /* the opening after which all give up */
};

static inline void gate_init(struct gate *gate, unsigned threads)
{
	gate->threads = threads;
	atomic_init(&gate->arrived, 0);
	atomic_init(&gate->opened, 0);
	atomic_init(&gate->spoilt, UINT_MAX);
}

/* Returns once all have called it; what each wrote before, all see after. NULL: of one thread alone. */
static inline void gate_pass(struct gate *gate)
{
	unsigned opened;

	if (gate == NULL)
		return;
	opened = atomic_load_explicit(&gate->opened, memory_order_relaxed);
	if (atomic_fetch_add_explicit(&gate->arrived, 1, memory_order_acq_rel) + 1 == gate->threads) {
		atomic_store_explicit(&gate->arrived, 0, memory_order_relaxed);
		atomic_store_explicit(&gate->opened, opened + 1, memory_order_release);
		return;
	}
	while (atomic_load_explicit(&gate->opened, memory_order_acquire) == opened)
		pc_pause();
}

/* Before the next gate_pass(): what is being done together has lost its worth. All learn of it after that pass and none
 * before, so that they give up at the same place. */
static inline void gate_spoil(struct gate *gate)
{
	atomic_store(&gate->spoilt, atomic_load(&gate->opened) + 1);
}

static inline bool gate_is_spoilt(struct gate *gate)
{
	return gate != NULL && atomic_load(&gate->spoilt) <= atomic_load(&gate->opened);
}

#endif
