/*
 * One thread's part in a sample: its memory, and the target's preparation, clear and first read there. Whoever measures
 * alone is the only part; of a crew each thread is one.
 */
#ifndef CALIBRD_METER_PART_H
#define CALIBRD_METER_PART_H

#include "calibrd/gate.h"
#include "calibrd/meter.h"
#include "calibrd/meter_timer.h"
#include "calibrd/quiet.h"

enum {
	PART_HUGE = 2 << 20, /* from here up on huge pages, where the OS gives them */
	PART_STAGGER = 320,  /* between buffers: five lines, so that their first lines fall into different sets */
};

/* Mapped once it is needed; `bytes` says how much, a multiple of PART_HUGE. */
struct arena {
	char *base;
	size_t bytes;
	int advice;
};

struct part {
	struct arena small; /* base pages: extents below 2 MiB lie somewhere in it */
	struct arena base;  /* base pages, for those that are larger */
	struct arena large; /* huge pages where the OS gives them */
	struct timer_batch batch;
	char *at[TIMER_BATCH_MOST]; /* the batch's buffers, how long each is */
	size_t bytes;
	uint64_t sink; /* keeps reads alive */
};

/* Whole huge pages that hold so much. */
static inline size_t arena_size(uint64_t bytes)
{
	return (size_t)((bytes + PART_HUGE - 1) & ~(uint64_t)(PART_HUGE - 1));
}

/* 0 or -errno; what is mapped already stays. */
int arena_map(struct arena *arena);
void arena_release(struct arena *arena);

/* Gives up all memory; from now on these sizes, 0 is none, are what part_target() may map. */
void part_renew(struct part *part, uint64_t small_bytes, uint64_t base_bytes, uint64_t large_bytes);

/* *at is the place that `place`, any number, picks for an extent. 0, -EINVAL: there is no room for such an extent, or
 * -errno: it could not be mapped. */
int part_target(struct part *part, uint64_t bytes, bool base_pages, uint64_t place, char **at);

/* Brings memory into a prior state. */
void part_prepare(char *at, size_t bytes, enum pc_prior prior, unsigned passes);

/* Lays out buffers for an ask of PHASE_CLEAR or of a victim; as part_target(). */
int part_lay_out(struct part *part, const struct meter_ask *ask, const struct timer *timer, uint64_t place);

/* Samples of what was laid out, repeated until the clock is good enough for them; of several threads, who must agree,
 * as often as was laid out, or until one of them was disturbed. All threads of a gate start together, and none goes on
 * before the last has been timed. Returns what this thread lost.
 * victim: NULL for those who only clear. */
enum quiet_loss part_clear(struct part *part, const struct meter_ask *ask, const struct timer *timer, struct gate *gate,
                           struct meter_sample *out);
enum quiet_loss part_victim(struct part *part, const struct meter_ask *ask, const struct timer *timer,
                            struct gate *gate, const char *victim, struct meter_sample *out);

/* A sample of PHASE_SINGLE; as part_target(). */
int part_single(struct part *part, const struct meter_ask *ask, const struct timer *timer, uint64_t place,
                struct meter_sample *out, enum quiet_loss *loss);

#endif
