/*
 * The meter of this host: what it prepares, where, what it calls and what it refuses. Kernels that spy see the memory
 * as a kernel would. No assertion on how long anything takes.
 */
#include "calibrd/meter.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrd/plan.h"
#include "tests/unit/harness.h"
#include "tests/unit/meter_stand.h"

enum { MIB = 1 << 20, TARGET = 16 * MIB, BASE = 12 * MIB, VICTIM = 4 * MIB, SMALL_ARENA = 8 * MIB };
enum { CALLS = 17000 }; /* a sample of the poorest clock has fewer */

/* --- a kernel that spies ----------------------------------------------------------------------------------------- */

static struct {
	unsigned calls;
	unsigned dirty; /* calls that found nothing but non-zero bytes */
	char *first, *low, *high;
	char *at[CALLS];
	size_t len[CALLS];
} seen;

static void spy(void *dst, size_t len)
{
	char *at = dst;

	if (seen.calls < CALLS) {
		seen.at[seen.calls] = at;
		seen.len[seen.calls] = len;
	}
	if (seen.calls++ == 0)
		seen.first = at;
	seen.dirty += all_non_zero(at, len);
	if (seen.low == NULL || at < seen.low)
		seen.low = at;
	if (at + len > seen.high)
		seen.high = at + len;
	memset(at, 0, len);
}

static const struct pc_kernel spying = {.name = "spy", .body = spy, .clear = spy};

/* --- a meter for one test ---------------------------------------------------------------------------------------- */

static void start(void)
{
	stand_start(NULL, &(struct meter_room){.target_bytes = TARGET, .base_bytes = BASE, .victim_bytes = VICTIM});
}

static int sample(struct meter_ask ask, struct meter_sample *out)
{
	memset(&seen, 0, sizeof(seen));
	memset(out, 0xff, sizeof(*out));
	return meter->ops->sample(meter, &ask, out);
}

static struct meter_ask ask_clear(uint64_t bytes, enum pc_prior prior)
{
	return (struct meter_ask){
		.kernel = &spying, .phase = PHASE_CLEAR, .prior = prior, .bytes = bytes, .passes = 3, .read = true};
}

static struct meter_ask ask_single(uint64_t bytes)
{
	return (struct meter_ask){.kernel = &spying, .phase = PHASE_SINGLE, .prior = PC_FLUSHED, .bytes = bytes};
}

static struct meter_ask ask_victim(const struct pc_kernel *kernel, enum phase phase, uint64_t bytes, uint64_t victim)
{
	return (struct meter_ask){
		.kernel = kernel, .phase = phase, .prior = PC_FLUSHED, .bytes = bytes, .victim_bytes = victim};
}

/* Every call found dirty memory, of the size asked for (below 4 KiB and above 2 MiB up to a sixteenth less, alike for
 * all), and what it cleared is clear. */
static void check_calls(uint64_t bytes)
{
	uint64_t less = bytes < 4096 || bytes > 2 * MIB ? bytes / 16 : 0;

	CU_ASSERT(seen.calls > 0);
	CU_ASSERT_EQUAL(seen.dirty, seen.calls);
	for (unsigned i = 0; i < seen.calls && i < CALLS; i++) {
		CU_ASSERT(seen.len[i] <= bytes && seen.len[i] >= bytes - less);
		CU_ASSERT_EQUAL(seen.len[i], seen.len[0]);
		CU_ASSERT(all_zero(seen.at[i], seen.len[i]));
	}
}

/* --- samples ----------------------------------------------------------------------------------------------------- */

static void check_clear(uint64_t bytes, enum pc_prior prior)
{
	struct meter_sample out;

	CU_ASSERT_EQUAL(sample(ask_clear(bytes, prior), &out), 0);
	CU_ASSERT(out.ns > 0 && out.ns < 1e12);
	CU_ASSERT(out.read_ns > 0 && out.read_ns < 1e12);
	check_calls(bytes);
}

static void check_single(uint64_t bytes)
{
	struct meter_sample out;

	CU_ASSERT_EQUAL(sample(ask_single(bytes), &out), 0);
	CU_ASSERT(out.ns > 0 && out.ns < 1e12);
	CU_ASSERT_EQUAL(out.read_ns, 0);
	check_calls(bytes);
}

static void check_scrub(uint64_t bytes)
{
	for (unsigned phase = PHASE_VICTIM_L1; phase <= PHASE_VICTIM_LLC; phase++) {
		struct meter_sample out;

		CU_ASSERT_EQUAL(
			sample(ask_victim(&spying, phase, bytes, 32768u << (2 * (phase - PHASE_VICTIM_L1))), &out), 0);
		CU_ASSERT(out.ns > 0 && out.ns < 1e12);
		CU_ASSERT_EQUAL(seen.calls, 1);
		check_calls(bytes);
	}
}

/* The whole grid as far as the arenas go, with the kinds of asks that each size gets. */
static void test_every_ask_of_the_grid(void)
{
	static struct plan plan;

	start();
	plan_build(&plan, EFFORT_THOROUGH, &(struct plan_means){.kernels = 1, .memory_bytes = TARGET});
	CU_ASSERT_FATAL(plan.count > 50);
	for (size_t i = 0; i < plan.count; i++) {
		const struct block *block = &plan.blocks[i];

		if (block->kind == BLOCK_SCRUB)
			check_scrub(block->bytes);
		else if (block->kind == BLOCK_SINGLE)
			check_single(block->bytes);
		else
			check_clear(block->bytes, block->prior);
	}
	stand_stop();
}

/* Sizes that no grid has: where layouts change, and around the ends of the arenas. */
static void test_odd_sizes(void)
{
	const uint64_t sizes[] = {1,     8,           63,      127,         128,           129,        257,
	                          4095,  4096,        4097,    8191,        8192,          8193,       65535,
	                          65536, 2 * MIB - 1, 2 * MIB, 2 * MIB + 1, TARGET - 4096, TARGET - 1, TARGET};

	start();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		check_clear(sizes[i], PC_CACHED);
		check_clear(sizes[i], PC_FLUSHED);
	}
	check_single(1);
	check_single(8191);
	check_single(65536);
	stand_stop();
}

/* Lengths of all rounds: those of one ask, least and most. */
static void find_lengths(struct meter_ask ask, size_t *least, size_t *most)
{
	struct meter_sample out;

	*least = SIZE_MAX;
	*most = 0;
	for (uint64_t seed = 0; seed < 100; seed++) {
		CU_ASSERT_EQUAL(meter->ops->round_begin(meter, seed), 0);
		seen.calls = seen.dirty = 0;
		CU_ASSERT_EQUAL(meter->ops->sample(meter, &ask, &out), 0);
		meter->ops->round_end(meter);
		*least = seen.len[0] < *least ? seen.len[0] : *least;
		*most = seen.len[0] > *most ? seen.len[0] : *most;
	}
}

/* Where powers of two are special they are not sat upon, unless that is what was asked for. */
static void test_lengths_vary(void)
{
	const uint64_t sizes[] = {128, 2048, 4096, 65536, 2 * MIB, 4 * MIB};
	size_t least, most;

	start();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		struct meter_ask ask = ask_clear(sizes[i], PC_CACHED);
		bool varies = sizes[i] == 2048 || sizes[i] == 4 * MIB;

		find_lengths(ask, &least, &most);
		CU_ASSERT(most <= sizes[i] && most > sizes[i] - sizes[i] / 64);
		CU_ASSERT(varies ? least < sizes[i] - sizes[i] / 20 && least >= sizes[i] - sizes[i] / 16
		                 : least == sizes[i]);
		ask.exact = true;
		find_lengths(ask, &least, &most);
		CU_ASSERT_EQUAL(most, sizes[i]);
		CU_ASSERT_EQUAL(least, sizes[i]);
	}
	stand_stop();
}

/* Over many places: everything that is cleared lies within one arena, and buffers of a batch do not touch. */
static void test_stays_inside(void)
{
	const uint64_t sizes[] = {1, 64, 128, 1000, 2048, 4095, 8192, 100000, 1536 << 10, 2 * MIB - 1, 3 * MIB, TARGET};

	start();
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		char *low = NULL, *high = NULL;

		for (uint64_t seed = 0; seed < (sizes[s] < MIB ? 300 : 20); seed++) {
			struct meter_ask ask = ask_clear(sizes[s], PC_FLUSHED);
			struct meter_sample out;

			ask.read = false;
			CU_ASSERT_EQUAL(meter->ops->round_begin(meter, seed), 0);
			CU_ASSERT_EQUAL(sample(ask, &out), 0);
			low = low == NULL || seen.low < low ? seen.low : low;
			high = seen.high > high ? seen.high : high;
		}
		CU_ASSERT(high - low <= (sizes[s] < 2 * MIB ? SMALL_ARENA : TARGET));
	}
	stand_stop();
}

static int compare_places(const void *a, const void *b)
{
	char *const *x = a, *const *y = b;

	return *x < *y ? -1 : *x > *y;
}

/* Buffers of a batch share no line and begin in different sets of a cache; their offsets are mixed below 4 KiB. */
static void test_batch_is_staggered(void)
{
	struct meter_sample out;
	unsigned offsets = 0;

	start();
	CU_ASSERT_EQUAL(sample(ask_clear(256, PC_CACHED), &out), 0);
	CU_ASSERT_FATAL(seen.calls >= 8 && seen.calls <= CALLS);
	for (unsigned i = 0; i < seen.calls; i++) {
		CU_ASSERT_EQUAL((uintptr_t)seen.at[i] % 16, 0);
		offsets |= 1u << (uintptr_t)seen.at[i] % 64 / 16;
	}
	CU_ASSERT(__builtin_popcount(offsets) > 1);
	qsort(seen.at, seen.calls, sizeof(seen.at[0]), compare_places);
	for (unsigned i = 1; i < seen.calls; i++) {
		uintptr_t gap = (uintptr_t)seen.at[i] / 64 - (uintptr_t)seen.at[i - 1] / 64;

		CU_ASSERT(gap == 0 || (gap > 256 / 64 && gap % 64 != 0)); /* 0: the batch came again */
	}
	stand_stop();
}

static char *place(uint64_t seed, uint64_t bytes, enum pc_prior prior)
{
	struct meter_sample out;

	CU_ASSERT_EQUAL(meter->ops->round_begin(meter, seed), 0);
	CU_ASSERT_EQUAL(sample(ask_clear(bytes, prior), &out), 0);
	return seen.first;
}

static void test_place_of_a_round(void)
{
	const uint64_t sizes[] = {256, 65536, 1 * MIB, 2 * MIB};
	struct meter_sample out;

	start();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char *first = place(1, sizes[i], PC_FLUSHED);
		unsigned others = 0;

		CU_ASSERT_EQUAL(sample(ask_clear(sizes[i], PC_FLUSHED), &out), 0);
		CU_ASSERT_PTR_EQUAL(seen.first, first);
		CU_ASSERT_EQUAL(sample(ask_clear(sizes[i], PC_CACHED), &out), 0);
		CU_ASSERT_PTR_EQUAL(seen.first, first);
		for (uint64_t seed = 2; seed < 20; seed++)
			others += place(seed, sizes[i], PC_FLUSHED) != first;
		CU_ASSERT(others >= 9);
		CU_ASSERT_PTR_EQUAL(place(1, sizes[i], PC_FLUSHED), first);
	}
	stand_stop();
}

/* Without passes nothing is written before the clear: the kernel sees what the last ask left. */
static bool left_dirty(uint64_t bytes)
{
	struct meter_ask ask = ask_clear(bytes, PC_CACHED);
	struct meter_sample out;

	ask.passes = 0;
	CU_ASSERT_EQUAL(sample(ask, &out), 0);
	return seen.dirty == 1;
}

/* --- victims ----------------------------------------------------------------------------------------------------- */

static void test_control_calls_nothing(void)
{
	struct meter_sample out;

	start();
	for (unsigned phase = PHASE_VICTIM_L1; phase <= PHASE_VICTIM_LLC; phase++) {
		CU_ASSERT_EQUAL(sample(ask_victim(NULL, phase, 65536, VICTIM), &out), 0);
		CU_ASSERT(out.ns > 0);
		CU_ASSERT_EQUAL(seen.calls, 0);
		CU_ASSERT(left_dirty(65536));
		CU_ASSERT_FALSE(left_dirty(65536)); /* that one was cleared */
	}
	stand_stop();
}

/* --- ways over the extent ---------------------------------------------------------------------------------------- */

/* That the ask's chunk and direction get to where test_meter_part.c tries them. */
static void check_way(struct meter_ask ask)
{
	struct meter_sample out;

	ask.chunk = MIB;
	ask.backward = true;
	CU_ASSERT_EQUAL(sample(ask, &out), 0);
	CU_ASSERT(out.ns > 0);
	CU_ASSERT_FATAL(seen.calls >= 4 && seen.calls % 4 == 0);
	CU_ASSERT_EQUAL(seen.dirty, seen.calls);
	for (unsigned i = 0; i < seen.calls; i++) {
		/* The last piece, which comes first, has what the extent is short of. */
		CU_ASSERT(i % 4 == 0 ? seen.len[i] > 0 && seen.len[i] <= MIB : seen.len[i] == MIB);
		CU_ASSERT(i % 4 == 0 || seen.at[i] == seen.at[i - 1] - MIB);
	}
}

static void test_chunks_backward(void)
{
	start();
	check_way(ask_clear(4 * MIB, PC_FLUSHED));
	check_way(ask_victim(&spying, PHASE_VICTIM_L2, 4 * MIB, 65536));
	stand_stop();
}

/* Whether the mapping that holds an address has that flag in smaps: "hg" and "nh" are the two advices. */
static bool has_flag(const char *address, const char *flag)
{
	char line[512];
	bool inside = false, found = false;
	FILE *file = fopen("/proc/self/smaps", "r");

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	while (fgets(line, sizeof(line), file) != NULL) {
		unsigned long from, to;

		if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
			inside = from <= (uintptr_t)address && (uintptr_t)address < to;
		else if (inside && strncmp(line, "VmFlags:", 8) == 0)
			found = strstr(line, flag) != NULL;
	}
	fclose(file);
	return found;
}

static char *place_on(uint64_t bytes, bool base_pages)
{
	struct meter_ask ask = ask_clear(bytes, PC_FLUSHED);
	struct meter_sample out;

	ask.base_pages = base_pages;
	CU_ASSERT_EQUAL(sample(ask, &out), 0);
	check_calls(bytes);
	return seen.first;
}

static void test_base_pages(void)
{
	const uint64_t sizes[] = {2 * MIB, 3 * MIB + 1, 8 * MIB, 9 * MIB, BASE};

	start();
	if (!has_flag(place_on(2 * MIB, false), " hg")) {
		unit_skip("a kernel without transparent huge pages");
		stand_stop();
		return;
	}
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++)
		for (uint64_t seed = 0; seed < 5; seed++) {
			CU_ASSERT_EQUAL(meter->ops->round_begin(meter, seed), 0);
			CU_ASSERT(has_flag(place_on(sizes[i], true), " nh"));
			CU_ASSERT(has_flag(place_on(sizes[i], false), " hg"));
		}
	CU_ASSERT(has_flag(place_on(4096, true), " nh"));
	CU_ASSERT(has_flag(place_on(4096, false), " nh"));
	stand_stop();
}

/* --- refusals ---------------------------------------------------------------------------------------------------- */

static void refused(struct meter_ask ask)
{
	struct meter_sample out;

	CU_ASSERT_EQUAL(sample(ask, &out), -EINVAL);
	CU_ASSERT_EQUAL(seen.calls, 0);
}

static void test_out_of_arena(void)
{
	const uint64_t sizes[] = {0, TARGET + 1, 2 * TARGET, UINT64_MAX / 8, UINT64_MAX - 4095, UINT64_MAX};
	struct meter_ask ask = ask_clear(BASE + 1, PC_CACHED);
	struct meter_sample out;
	double ns, loads[4];

	start();
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		refused(ask_clear(sizes[i], PC_CACHED));
		refused(ask_clear(sizes[i], PC_FLUSHED));
		refused(ask_single(sizes[i]));
		refused(ask_victim(&spying, PHASE_VICTIM_L2, sizes[i], 4096));
		CU_ASSERT_EQUAL(meter->ops->latency(meter, sizes[i], &ns), -EINVAL);
		CU_ASSERT_EQUAL(meter->ops->probe(meter, sizes[i], PC_CACHED, 4, loads, &ns), -EINVAL);
	}
	refused(ask_single(TARGET / 8)); /* eight of them */
	refused(ask_victim(&spying, PHASE_VICTIM_LLC, 4096, VICTIM + 1));
	refused(ask_victim(&spying, PHASE_VICTIM_LLC, 4096, UINT64_MAX));
	ask.base_pages = true;
	refused(ask);
	CU_ASSERT_EQUAL(meter->ops->epoch(meter, &(struct meter_room){.target_bytes = TARGET}), 0);
	ask.bytes = SMALL_ARENA + 1; /* small ones fit without any base_bytes */
	refused(ask);
	ask.bytes = SMALL_ARENA;
	CU_ASSERT_EQUAL(sample(ask, &out), 0);
	stand_stop();
}

static void test_senseless_asks(void)
{
	struct meter_ask ask = ask_clear(4096, PC_CACHED);

	start();
	ask.kernel = NULL;
	refused(ask);
	ask.phase = PHASE_SINGLE;
	refused(ask);
	ask = ask_clear(4096, PC_CACHED);
	ask.phase = PHASE_READ;
	refused(ask);
	ask.phase = PHASES;
	refused(ask);
	ask = ask_clear(4096, PC_CACHED);
	ask.threads = 2; /* without a crew there is nobody else */
	refused(ask);
	ask.threads = UINT_MAX;
	refused(ask);
	stand_stop();
}

static void test_before_the_first_epoch(void)
{
	stand_meter(NULL);
	refused(ask_clear(4096, PC_CACHED));
	stand_stop();
}

/* --- latency, probe, clock --------------------------------------------------------------------------------------- */

static void test_latency(void)
{
	double ns = -1;

	start();
	for (uint64_t bytes = 64; bytes <= TARGET; bytes *= 4) {
		CU_ASSERT_EQUAL(meter->ops->latency(meter, bytes, &ns), 0);
		CU_ASSERT(ns >= 0 && ns < 1e9);
	}
	CU_ASSERT_EQUAL(meter->ops->latency(meter, TARGET, &ns), 0);
	CU_ASSERT(ns > 0);
	stand_stop();
}

static void check_probe(uint64_t bytes, enum pc_prior prior, unsigned lines)
{
	double looks[PC_PROBE_LOOKS] = {-1, -1}, whole = -1;

	CU_ASSERT_EQUAL(meter->ops->probe(meter, bytes, prior, lines, looks, &whole), 0);
	CU_ASSERT(looks[0] > 0 && looks[0] < 1e12);
	CU_ASSERT(lines > 1 ? looks[1] > 0 && looks[1] < 1e12 : looks[1] == 0);
	CU_ASSERT(whole > 0);
}

static void test_probe(void)
{
	start();
	for (unsigned lines = 1; lines <= 20; lines++)
		check_probe(65536, PC_FLUSHED, lines);
	for (uint64_t bytes = 1; bytes <= TARGET; bytes *= 8) {
		check_probe(bytes, PC_CACHED, 4);
		check_probe(bytes, PC_FLUSHED, 4);
	}
	check_probe(TARGET, PC_FLUSHED, 4);
	stand_stop();
}

static void test_clock(void)
{
	uint64_t before, after;

	start();
	before = meter->ops->now_ns(meter);
	do
		after = meter->ops->now_ns(meter);
	while (after == before);
	CU_ASSERT(after > before);
	stand_stop();
}

/* Both clocks are the same one: what a kernel spins by CLOCK_MONOTONIC the sample holds, but for what lies around it.
 */
static uint64_t spun_ns;

static void spin(void *dst, size_t len)
{
	uint64_t start_ns = stand_ns();

	(void)dst;
	(void)len;
	do
		spun_ns = stand_ns() - start_ns;
	while (spun_ns < 100000000);
}

static const struct pc_kernel spinning = {.name = "spin", .body = spin, .clear = spin};

static void test_unit_is_nanoseconds(void)
{
	struct meter_ask ask = {.kernel = &spinning, .phase = PHASE_CLEAR, .prior = PC_CACHED, .bytes = 65536};
	struct meter_sample out;

	start();
	CU_ASSERT_EQUAL(sample(ask, &out), 0);
	CU_ASSERT(out.ns > 0.9 * (double)spun_ns);
	stand_stop();
}

/* --- epochs ------------------------------------------------------------------------------------------------------ */

static void test_epochs_again(void)
{
	start();
	for (int i = 0; i < 3; i++) {
		CU_ASSERT_EQUAL(
			meter->ops->epoch(meter, &(struct meter_room){.target_bytes = (uint64_t)(3 + i) * MIB + 1,
		                                                      .victim_bytes = 4096}),
			0);
		check_clear(4 * MIB, PC_FLUSHED);
		check_clear(4096, PC_CACHED);
		refused(ask_clear((uint64_t)(10 + i) * MIB, PC_CACHED));
	}
	stand_stop();
}

static const struct unit_test tests[] = {
	{"every ask of the grid", test_every_ask_of_the_grid},
	{"odd sizes", test_odd_sizes},
	{"lengths vary", test_lengths_vary},
	{"stays inside", test_stays_inside},
	{"batch is staggered", test_batch_is_staggered},
	{"place of a round", test_place_of_a_round},
	{"control calls nothing", test_control_calls_nothing},
	{"chunks backward", test_chunks_backward},
	{"base pages", test_base_pages},
	{"out of arena", test_out_of_arena},
	{"senseless asks", test_senseless_asks},
	{"before the first epoch", test_before_the_first_epoch},
	{"latency", test_latency},
	{"probe", test_probe},
	{"clock", test_clock},
	{"unit is nanoseconds", test_unit_is_nanoseconds},
	{"epochs again", test_epochs_again},
};

UNIT_MAIN("meter_real", tests)
