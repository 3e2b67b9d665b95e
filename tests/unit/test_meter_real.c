/*
 * The meter of this host: what it prepares, what it calls and what it refuses (where: test_meter_place.c). Kernels that
 * spy see the memory as a kernel would. No assertion on how long anything takes.
 */
#include "calibrd/meter.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "calibrd/plan.h"
#include "tests/unit/harness.h"
#include "tests/unit/meter_spy.h"

/* --- asks -------------------------------------------------------------------------------------------------------- */

static struct meter_ask ask_single(uint64_t bytes)
{
	return (struct meter_ask){.kernel = &spying, .phase = PHASE_SINGLE, .prior = PC_FLUSHED, .bytes = bytes};
}

static struct meter_ask ask_victim(const struct pc_kernel *kernel, enum phase phase, uint64_t bytes, uint64_t victim)
{
	return (struct meter_ask){
		.kernel = kernel, .phase = phase, .prior = PC_FLUSHED, .bytes = bytes, .victim_bytes = victim};
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
	{"control calls nothing", test_control_calls_nothing},
	{"chunks backward", test_chunks_backward},
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
