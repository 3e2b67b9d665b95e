/*
 * The meter that times this host: one pinned thread, explicit cache states, nothing but the call in the timed region.
 * How a sample is taken is design; the reasons stand at each step.
 */
#include "calibrd/meter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "calibrd/quiet.h"
#include "calibrd/random.h"
#include "calibrd/touch.h"
#include "kernels/cpu.h"
#include "kernels/ticks.h"
#include "libpolicy/probe.h"

enum {
	HUGE_BYTES = 2 << 20,
	BASE_ARENA = 8 << 20, /* targets below 2 MiB lie somewhere in it, on base pages */
	BATCH_MAX = 64,       /* buffers under one timer */
	BATCH_BYTES = 8192,   /* of all buffers of a batch, so that a cached batch stays in the smallest L1D */
	BATCH_REPEAT = 4,     /* batches a sample, below 64 KiB */
	SINGLE_CALLS = 8,     /* separately timed calls a PHASE_SINGLE sample */
	STAGGER = 320,        /* between buffers: five lines, so that their first lines fall into different sets */
};

struct arena {
	char *base;
	size_t bytes;
};

struct real_meter {
	struct meter meter;
	struct quiet quiet;
	double ns_per_tick;
	uint64_t overhead_ticks; /* of an empty timed region */
	struct arena small;      /* base pages */
	struct arena large;      /* huge pages where the OS gives them */
	struct arena victim;
	struct random random;
	uint64_t place; /* random number that picks this round's place in an arena */
	uint64_t sink;  /* keeps reads alive */
};

/* --- clock ------------------------------------------------------------------------------------------------------- */

static uint64_t real_now(struct meter *meter)
{
	(void)meter;
	return quiet_clock_ns(CLOCK_MONOTONIC);
}

/* Rate of pc_ticks() over 20 ms, and the least time that an empty region shows. */
static void calibrate_clock(struct real_meter *real)
{
	uint64_t t0 = pc_ticks(), n0 = quiet_clock_ns(CLOCK_MONOTONIC), n1, least = UINT64_MAX;

	do
		n1 = quiet_clock_ns(CLOCK_MONOTONIC);
	while (n1 - n0 < 20000000);
	real->ns_per_tick = (double)(n1 - n0) / (double)(pc_ticks() - t0);
	for (int i = 0; i < 1000; i++) {
		uint64_t before = pc_ticks(), gap = pc_ticks() - before;

		if (gap < least)
			least = gap;
	}
	real->overhead_ticks = least;
}

static double elapsed_ns(const struct real_meter *real, uint64_t ticks)
{
	return ticks > real->overhead_ticks ? (double)(ticks - real->overhead_ticks) * real->ns_per_tick : 0;
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

static void arena_free(struct arena *arena)
{
	if (arena->base != NULL)
		munmap(arena->base, arena->bytes);
	*arena = (struct arena){0};
}

/* Maps, advises and populates; huge arenas are aligned so that huge pages can be had. */
static int arena_new(struct arena *arena, size_t bytes, int advice)
{
	size_t align = advice == MADV_HUGEPAGE ? HUGE_BYTES : 4096, whole, head;
	char *base;

	bytes = (bytes + HUGE_BYTES - 1) & ~(size_t)(HUGE_BYTES - 1);
	whole = bytes + align;
	base = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return -errno;
	head = (align - ((uintptr_t)base & (align - 1))) & (align - 1);
	if (head > 0)
		munmap(base, head);
	munmap(base + head + bytes, whole - head - bytes);
	*arena = (struct arena){base + head, bytes};
	madvise(arena->base, bytes, advice); /* a wish: refused where THP is off */
	touch_dirty(arena->base, bytes);
	return 0;
}

static int real_epoch(struct meter *meter, const struct meter_room *room)
{
	struct real_meter *real = (struct real_meter *)meter;
	int r;

	quiet_epoch(&real->quiet);
	arena_free(&real->small);
	arena_free(&real->large);
	arena_free(&real->victim);
	r = arena_new(&real->small, BASE_ARENA, MADV_NOHUGEPAGE);
	if (r == 0)
		r = arena_new(&real->large, room->target_bytes, MADV_HUGEPAGE);
	if (r == 0)
		r = arena_new(&real->victim, room->victim_bytes, MADV_HUGEPAGE);
	return r;
}

/* This round's place for an extent: same for every kernel of the round, another one in the next where the arena has
 * room for more. NULL: no such extent here. */
static char *target(struct real_meter *real, uint64_t bytes)
{
	struct arena *arena = bytes < HUGE_BYTES ? &real->small : &real->large;
	size_t step = bytes < HUGE_BYTES ? 4096 : HUGE_BYTES, places;

	if (bytes == 0 || bytes > arena->bytes)
		return NULL;
	places = (arena->bytes - bytes) / step + 1;
	return arena->base + real->place % places * step;
}

/* --- samples ----------------------------------------------------------------------------------------------------- */

struct batch {
	size_t count;
	char *at[BATCH_MAX];
	size_t bytes;
};

/* Small extents: several staggered buffers under one timer. Below 4 KiB at mixed 16-byte offsets, and up to a sixteenth
 * shorter, the same for every kernel of the round: powers of two are what some kernels like best and programs ask for
 * least. */
static int batch_lay_out(struct real_meter *real, uint64_t bytes, struct batch *batch)
{
	struct random offsets = {real->place};
	size_t count = bytes < BATCH_BYTES ? BATCH_BYTES / (size_t)bytes : 1;
	char *at;

	batch->bytes = (size_t)bytes;
	if (bytes >= 256 && bytes < 4096)
		batch->bytes -= 16 * random_below(&offsets, bytes / 256 + 1);
	batch->count = count < BATCH_MAX ? count : BATCH_MAX;
	at = target(real, batch->count > 1 ? batch->count * (bytes + STAGGER + 64) : bytes);
	if (at == NULL)
		return -EINVAL;
	for (size_t i = 0; i < batch->count; i++) {
		batch->at[i] = at + (bytes < 4096 ? 16 * random_below(&offsets, 4) : 0);
		at += ((bytes + 63) & ~(uint64_t)63) + STAGGER;
	}
	return 0;
}

static void batch_prepare(const struct batch *batch, enum pc_prior prior, unsigned passes)
{
	for (unsigned pass = 0; pass < (prior == PC_CACHED ? passes : 1); pass++)
		for (size_t i = 0; i < batch->count; i++)
			touch_dirty(batch->at[i], batch->bytes);
	if (prior == PC_FLUSHED)
		for (size_t i = 0; i < batch->count; i++)
			pc_cpu_flush(batch->at[i], batch->bytes);
}

static uint64_t batch_clear(const struct batch *batch, void (*clear)(void *, size_t))
{
	uint64_t before = pc_ticks();

	for (size_t i = 0; i < batch->count; i++)
		clear(batch->at[i], batch->bytes);
	return pc_ticks() - before;
}

static uint64_t batch_read(struct real_meter *real, const struct batch *batch)
{
	uint64_t before = pc_ticks(), sum = 0;

	for (size_t i = 0; i < batch->count; i++)
		sum += touch_read(batch->at[i], batch->bytes);
	real->sink += sum;
	return pc_ticks() - before;
}

static int sample_clear(struct real_meter *real, const struct meter_ask *ask, struct meter_sample *out)
{
	unsigned repeat = ask->bytes < 65536 ? BATCH_REPEAT : 1;
	struct batch batch;
	int r = batch_lay_out(real, ask->bytes, &batch);

	if (r < 0)
		return r;
	if (repeat > 1) {
		/* Once for nothing: programs that clear small extents do it often, so the code is warm. */
		batch_prepare(&batch, ask->prior, ask->passes);
		batch_clear(&batch, ask->kernel->clear);
	}
	for (unsigned i = 0; i < repeat; i++) {
		batch_prepare(&batch, ask->prior, ask->passes);
		out->ns += elapsed_ns(real, batch_clear(&batch, ask->kernel->clear));
		if (ask->read)
			out->read_ns += elapsed_ns(real, batch_read(real, &batch));
	}
	out->ns *= (double)ask->bytes / (double)batch.bytes / repeat / (double)batch.count;
	out->read_ns *= (double)ask->bytes / (double)batch.bytes / repeat / (double)batch.count;
	return 0;
}

/* One call alone, with ordinary work behind it that computes and stores: what the call leaves in the store buffer is
 * paid by that work, as it would be in a program. The work's own time is in the sample, the same for every kernel. */
static int sample_single(struct real_meter *real, const struct meter_ask *ask, struct meter_sample *out)
{
	static uint64_t scratch[256];
	char *at = target(real, (ask->bytes + 4096) * SINGLE_CALLS);

	if (at == NULL)
		return -EINVAL;
	for (unsigned i = 0; i < SINGLE_CALLS; i++, at += ask->bytes + STAGGER) {
		uint64_t before;

		touch_dirty(at, ask->bytes);
		pc_cpu_flush(at, ask->bytes);
		touch_work(scratch, 1000);
		before = pc_ticks();
		ask->kernel->clear(at, ask->bytes);
		touch_work(scratch, 64);
		out->ns += elapsed_ns(real, pc_ticks() - before);
	}
	out->ns /= SINGLE_CALLS;
	return 0;
}

/* Beulich's way: a victim read warm in a stride of seven lines inside each page, so that neither prefetcher nor TLB
 * dominates; then the clear of a target that no cache holds; then the victim read again, timed. */
static int sample_victim(struct real_meter *real, const struct meter_ask *ask, struct meter_sample *out)
{
	char *at = target(real, ask->bytes);
	uint64_t before;

	touch_dirty(at, ask->bytes);
	pc_cpu_flush(at, ask->bytes);
	for (int i = 0; i < 2; i++)
		real->sink += touch_victim(real->victim.base, ask->victim_bytes);
	if (ask->kernel != NULL)
		ask->kernel->clear(at, ask->bytes);
	before = pc_ticks();
	real->sink += touch_victim(real->victim.base, ask->victim_bytes);
	out->ns = elapsed_ns(real, pc_ticks() - before);
	return 0;
}

static bool is_sound(struct real_meter *real, const struct meter_ask *ask)
{
	bool victim = ask->phase == PHASE_VICTIM_L1 || ask->phase == PHASE_VICTIM_L2 || ask->phase == PHASE_VICTIM_LLC;

	if (victim ? ask->victim_bytes > real->victim.bytes : ask->kernel == NULL)
		return false;
	return (victim || ask->phase == PHASE_CLEAR || ask->phase == PHASE_SINGLE) && target(real, ask->bytes) != NULL;
}

static int real_sample(struct meter *meter, const struct meter_ask *ask, struct meter_sample *out)
{
	struct real_meter *real = (struct real_meter *)meter;
	struct quiet_mark before;
	int r;

	*out = (struct meter_sample){0};
	if (!is_sound(real, ask))
		return -EINVAL;
	before = quiet_mark();
	if (ask->phase == PHASE_CLEAR)
		r = sample_clear(real, ask, out);
	else if (ask->phase == PHASE_SINGLE)
		r = sample_single(real, ask, out);
	else
		r = sample_victim(real, ask, out);
	out->tainted = quiet_disturbed(&before, out->ns + out->read_ns);
	return r;
}

static int real_round_begin(struct meter *meter, uint64_t seed)
{
	struct real_meter *real = (struct real_meter *)meter;
	struct random random = {seed};

	real->place = random_next(&random);
	return quiet_round_begin(&real->quiet);
}

static bool real_round_end(struct meter *meter)
{
	return quiet_round_end(&((struct real_meter *)meter)->quiet);
}

/* --- latency and probe ------------------------------------------------------------------------------------------- */

static int real_latency(struct meter *meter, uint64_t bytes, double *ns)
{
	struct real_meter *real = (struct real_meter *)meter;
	size_t loads = (size_t)bytes / 64 < 200000 ? (size_t)bytes / 64 : 200000;
	uint64_t before;

	if (bytes > real->large.bytes || loads == 0)
		return -EINVAL;
	touch_chain(real->large.base, (size_t)bytes, &real->random);
	before = pc_ticks();
	real->sink += (uintptr_t)touch_chase(real->large.base, loads);
	*ns = elapsed_ns(real, pc_ticks() - before) / (double)loads;
	return 0;
}

static int real_probe(struct meter *meter, uint64_t bytes, enum pc_prior prior, unsigned lines, double *loads,
                      double *whole_ns)
{
	struct real_meter *real = (struct real_meter *)meter;
	char *at = target(real, bytes);
	struct batch batch = {1, {at}, bytes};
	struct iovec range = {at, (size_t)bytes};
	uint64_t before, last;

	if (at == NULL)
		return -EINVAL;
	batch_prepare(&batch, prior, 3);
	last = pc_ticks();
	for (unsigned i = 0; i < lines; i++)
		loads[i] = (double)pc_probe_load(at + pc_probe_offset((size_t)bytes, i), &last) * real->ns_per_tick;
	/* As a whole: with the threshold that gives the right answer whatever the loads take. */
	batch_prepare(&batch, prior, 3);
	before = pc_ticks();
	real->sink += pc_probe_flushed(&range, (size_t)bytes, lines, prior == PC_CACHED ? UINT64_MAX : 0);
	*whole_ns = elapsed_ns(real, pc_ticks() - before);
	return 0;
}

/* --- life -------------------------------------------------------------------------------------------------------- */

static void real_free(struct meter *meter)
{
	struct real_meter *real = (struct real_meter *)meter;

	arena_free(&real->small);
	arena_free(&real->large);
	arena_free(&real->victim);
	quiet_stop(&real->quiet);
	free(real);
}

static const struct meter_ops real_ops = {
	.now_ns = real_now,
	.epoch = real_epoch,
	.latency = real_latency,
	.round_begin = real_round_begin,
	.sample = real_sample,
	.round_end = real_round_end,
	.probe = real_probe,
	.free = real_free,
};

int meter_real_new(struct meter **out, const struct crew *crew, struct pc_why *why)
{
	struct real_meter *real = calloc(1, sizeof(*real));
	int r;

	(void)crew;
	if (real == NULL)
		return pc_why(why, -ENOMEM, "no memory for the meter");
	r = quiet_start(&real->quiet);
	if (r < 0) {
		free(real);
		return pc_why(why, r, "cannot stay on one CPU: %s", strerror(-r));
	}
	real->meter.ops = &real_ops;
	real->random.state = quiet_clock_ns(CLOCK_MONOTONIC);
	calibrate_clock(real);
	*out = &real->meter;
	return 0;
}
