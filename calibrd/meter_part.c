/* One thread's memory and samples; see meter_part.h. */
#include "calibrd/meter_part.h"

#include <errno.h>
#include <sys/mman.h>

#include "calibrd/random.h"
#include "calibrd/touch.h"
#include "kernels/ticks.h"

enum {
	PAGE = 4096,
	WARM_BELOW = 65536, /* programs that clear small extents do it often: their code is warm */
	SINGLE_CALLS = 8,   /* separately timed, at least, and each at a place of its own */
	SINGLE_ROUNDS = 64, /* of work behind each */
};

/* --- memory ------------------------------------------------------------------------------------------------------ */

void arena_release(struct arena *arena)
{
	if (arena->base != NULL)
		munmap(arena->base, arena->bytes);
	arena->base = NULL;
}

/* Maps, advises and populates; huge arenas are aligned so that huge pages can be had. */
int arena_map(struct arena *arena)
{
	size_t align = arena->advice == MADV_HUGEPAGE ? PART_HUGE : PAGE, whole = arena->bytes + align, head;
	char *base;

	if (arena->base != NULL || arena->bytes == 0)
		return 0;
	base = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return -errno;
	head = (align - ((uintptr_t)base & (align - 1))) & (align - 1);
	if (head > 0)
		munmap(base, head);
	munmap(base + head + arena->bytes, whole - head - arena->bytes);
	arena->base = base + head;
	madvise(arena->base, arena->bytes, arena->advice); /* a wish: refused where THP is off */
	touch_dirty(arena->base, arena->bytes);
	return 0;
}

static void arena_renew(struct arena *arena, uint64_t bytes, int advice)
{
	arena_release(arena);
	*arena = (struct arena){NULL, arena_size(bytes), advice};
}

void part_renew(struct part *part, uint64_t small_bytes, uint64_t base_bytes, uint64_t large_bytes)
{
	arena_renew(&part->small, small_bytes, MADV_NOHUGEPAGE);
	arena_renew(&part->base, base_bytes, MADV_NOHUGEPAGE);
	arena_renew(&part->large, large_bytes, MADV_HUGEPAGE);
}

/* The same for every kernel of a round, another one in the next where the arena has room for more. */
int part_target(struct part *part, uint64_t bytes, bool base_pages, uint64_t place, char **at)
{
	bool huge = bytes >= PART_HUGE && !base_pages;
	struct arena *arena = huge ? &part->large : bytes <= part->small.bytes ? &part->small : &part->base;
	size_t step = huge ? PART_HUGE : PAGE;
	int r;

	if (bytes == 0 || bytes > arena->bytes)
		return -EINVAL;
	r = arena_map(arena);
	if (r < 0)
		return r;
	*at = arena->base + place % ((arena->bytes - bytes) / step + 1) * step;
	return 0;
}

void part_prepare(char *at, size_t bytes, enum pc_prior prior, unsigned passes)
{
	for (unsigned pass = 0; pass < (prior == PC_CACHED ? passes : 1); pass++)
		touch_dirty(at, bytes);
	if (prior == PC_FLUSHED)
		pc_cpu_flush(at, bytes);
}

/* --- a clear ----------------------------------------------------------------------------------------------------- */

/* As libpolicy's: the first chunk ends on a page's border, so that all later ones begin there. */
static void chunks_forward(const struct pc_kernel *kernel, char *at, size_t len, size_t chunk)
{
	size_t n = chunk - ((uintptr_t)at & (PAGE - 1));

	for (; len > n; n = chunk) {
		kernel->body(at, n);
		at += n;
		len -= n;
	}
	kernel->body(at, len);
}

/* The same chunks, the last one first. */
static void chunks_backward(const struct pc_kernel *kernel, char *at, size_t len, size_t chunk)
{
	size_t first = chunk - ((uintptr_t)at & (PAGE - 1));
	size_t from = len > first ? first + (len - first - 1) / chunk * chunk : 0;

	for (; from > 0; from = from > first ? from - chunk : 0) {
		kernel->body(at + from, len - from);
		len = from;
	}
	kernel->body(at, len);
}

/* Whatever the chunk, one fence an extent. libpolicy takes no chunk for less than a page either. */
static void clear_chunks(const struct meter_ask *ask, char *at, size_t len)
{
	size_t chunk = ask->chunk < PAGE ? PAGE : (size_t)ask->chunk;

	if (ask->backward)
		chunks_backward(ask->kernel, at, len, chunk);
	else
		chunks_forward(ask->kernel, at, len, chunk);
	if (ask->kernel->weak)
		pc_fence();
}

static bool is_whole(const struct meter_ask *ask, size_t len)
{
	return ask->chunk == 0 || ask->chunk >= len;
}

static void clear_one(const struct meter_ask *ask, char *at, size_t len)
{
	if (is_whole(ask, len))
		ask->kernel->clear(at, len);
	else
		clear_chunks(ask, at, len);
}

/* --- batches ----------------------------------------------------------------------------------------------------- */

/* The length for all kernels of a round. */
static size_t vary(const struct meter_ask *ask, struct random *random)
{
	uint64_t unit = ask->bytes < PAGE ? 16 : PAGE, shorter = ask->exact ? 0 : meter_shorter(ask->bytes);

	return (size_t)(ask->bytes - (shorter > 0 ? unit * random_below(random, shorter / unit + 1) : 0));
}

/* Places for buffers from `at` on: staggered, and those below 4 KiB at mixed 16-byte offsets. */
static void spread(char *at, uint64_t bytes, struct random *random, char **places, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		places[i] = at + (bytes < PAGE ? 16 * random_below(random, 4) : 0);
		at += ((bytes + 63) & ~(uint64_t)63) + PART_STAGGER;
	}
}

/* Small extents: several buffers under one timer. */
static int lay_out_batch(struct part *part, const struct meter_ask *ask, const struct timer *timer, uint64_t place)
{
	struct timer_batch batch = timer_batch(timer, ask->bytes);
	struct random offsets = {place};
	uint64_t bytes = ask->bytes;
	char *at;
	int r = part_target(part, batch.count > 1 ? batch.count * (bytes + PART_STAGGER + 64) : bytes, ask->base_pages,
	                    place, &at);

	if (r < 0)
		return r;
	part->batch = batch;
	part->bytes = vary(ask, &offsets);
	spread(at, bytes, &offsets, part->at, part->batch.count);
	return 0;
}

int part_lay_out(struct part *part, const struct meter_ask *ask, const struct timer *timer, uint64_t place)
{
	if (ask->phase == PHASE_CLEAR)
		return lay_out_batch(part, ask, timer, place);
	part->batch = (struct timer_batch){1, 1, 1};
	part->bytes = (size_t)ask->bytes;
	return part_target(part, ask->bytes, ask->base_pages, place, &part->at[0]);
}

/* Pass by pass over all of it, not buffer by buffer. */
static void prepare(struct part *part, enum pc_prior prior, unsigned passes)
{
	for (unsigned pass = 0; pass < (prior == PC_CACHED ? passes : 1); pass++)
		for (size_t i = 0; i < part->batch.count; i++)
			touch_dirty(part->at[i], part->bytes);
	if (prior == PC_FLUSHED)
		for (size_t i = 0; i < part->batch.count; i++)
			pc_cpu_flush(part->at[i], part->bytes);
}

static uint64_t clear_ticks(const struct part *part, const struct meter_ask *ask)
{
	void (*clear)(void *, size_t) = ask->kernel->clear;
	uint64_t before;

	if (is_whole(ask, part->bytes)) {
		before = pc_ticks();
		for (size_t i = 0; i < part->batch.count; i++)
			clear(part->at[i], part->bytes);
		return pc_ticks() - before;
	}
	before = pc_ticks();
	for (size_t i = 0; i < part->batch.count; i++)
		clear_chunks(ask, part->at[i], part->bytes);
	return pc_ticks() - before;
}

static uint64_t read_ticks(struct part *part)
{
	uint64_t before = pc_ticks(), sum = 0;

	for (size_t i = 0; i < part->batch.count; i++)
		sum += touch_read(part->at[i], part->bytes);
	part->sink += sum;
	return pc_ticks() - before;
}

/* --- samples ----------------------------------------------------------------------------------------------------- */

/* Whether the sample needs another timed region. */
static bool goes_on(const struct part *part, const struct timer *timer, struct gate *gate, uint64_t ticks,
                    unsigned done)
{
	if (gate != NULL)
		return done < part->batch.repeats && !gate_is_spoilt(gate);
	return done < part->batch.least || done < timer_enough(timer, ticks, done);
}

/* A crew that waits at every gate for a thread that has lost its CPU would take forever on a busy host. */
static void watch(const struct part *part, struct gate *gate, const struct quiet_mark *begun)
{
	if (gate != NULL && part->batch.repeats > 1 && quiet_disturbed(begun, 0) != QUIET_KEPT)
		gate_spoil(gate);
}

enum quiet_loss part_clear(struct part *part, const struct meter_ask *ask, const struct timer *timer, struct gate *gate,
                           struct meter_sample *out)
{
	double scale = (double)ask->bytes / (double)part->bytes / (double)part->batch.count;
	struct quiet_mark begun = quiet_mark();
	uint64_t cleared = 0, read = 0;
	enum quiet_loss loss;
	unsigned done = 0;

	if (ask->bytes < WARM_BELOW) {
		prepare(part, ask->prior, ask->passes);
		clear_ticks(part, ask);
	}
	do {
		prepare(part, ask->prior, ask->passes);
		gate_pass(gate);
		cleared += clear_ticks(part, ask);
		if (ask->read)
			read += read_ticks(part);
		watch(part, gate, &begun);
		gate_pass(gate);
		done++;
	} while (goes_on(part, timer, gate, cleared, done));
	out->ns = timer_ns(timer, cleared, done);
	out->read_ns = ask->read ? timer_ns(timer, read, done) : 0;
	loss = quiet_disturbed(&begun, out->ns + out->read_ns);
	out->ns *= scale / done;
	out->read_ns *= scale / done;
	return loss;
}

/* Beulich's way: a victim read warm in a stride of seven lines inside each page, so that neither prefetcher nor TLB
 * dominates; then the clear of a target that no cache holds; then the victim read again, timed. */
enum quiet_loss part_victim(struct part *part, const struct meter_ask *ask, const struct timer *timer,
                            struct gate *gate, const char *victim, struct meter_sample *out)
{
	struct quiet_mark begun = quiet_mark();
	uint64_t before;

	prepare(part, ask->prior, ask->passes > 0 ? ask->passes : 1);
	for (int i = 0; victim != NULL && i < 2; i++)
		part->sink += touch_victim(victim, ask->victim_bytes);
	gate_pass(gate);
	if (ask->kernel != NULL)
		clear_one(ask, part->at[0], part->bytes);
	gate_pass(gate);
	if (victim == NULL)
		return quiet_disturbed(&begun, 0);
	before = pc_ticks();
	part->sink += touch_victim(victim, ask->victim_bytes);
	out->ns = timer_ns(timer, pc_ticks() - before, 1);
	return quiet_disturbed(&begun, out->ns);
}

/* One call alone, with ordinary work behind it that computes and stores: what the call leaves in the store buffer is
 * paid by that work, as it would be in a program. The work's own time is in the sample, the same for every kernel. */
static uint64_t single_ticks(const struct meter_ask *ask, char *at)
{
	static uint64_t scratch[256];
	uint64_t before;

	part_prepare(at, ask->bytes, PC_FLUSHED, 1);
	touch_work(scratch, 1000);
	before = pc_ticks();
	ask->kernel->clear(at, ask->bytes);
	touch_work(scratch, SINGLE_ROUNDS);
	return pc_ticks() - before;
}

int part_single(struct part *part, const struct meter_ask *ask, const struct timer *timer, uint64_t place,
                struct meter_sample *out, enum quiet_loss *loss)
{
	struct quiet_mark begun = quiet_mark();
	unsigned done = 0;
	uint64_t ticks = 0;
	struct random offsets = {place};
	char *at, *places[SINGLE_CALLS];
	int r = part_target(part, (ask->bytes + PAGE) * SINGLE_CALLS, ask->base_pages, place, &at);

	if (r < 0)
		return r;
	spread(at, ask->bytes, &offsets, places, SINGLE_CALLS); /* apart like the buffers of a batch */
	do {
		ticks += single_ticks(ask, places[done % SINGLE_CALLS]);
		done++;
	} while (done < SINGLE_CALLS || done < timer_enough(timer, ticks, done));
	out->ns = timer_ns(timer, ticks, done);
	*loss = quiet_disturbed(&begun, out->ns);
	out->ns /= done;
	return 0;
}
