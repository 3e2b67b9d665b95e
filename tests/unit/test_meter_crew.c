/* Several threads of the meter: that all do the same together, each on memory of its own, and what they refuse. */
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>

#include "tests/unit/harness.h"
#include "tests/unit/meter_crew_stand.h"

/* --- samples ----------------------------------------------------------------------------------------------------- */

static struct meter_ask ask_victim(unsigned threads, const struct pc_kernel *kernel, uint64_t bytes)
{
	return (struct meter_ask){.kernel = kernel,
	                          .phase = PHASE_VICTIM_L2,
	                          .prior = PC_FLUSHED,
	                          .bytes = bytes,
	                          .victim_bytes = MIB,
	                          .threads = threads};
}

static void test_all_clear_together(void)
{
	const uint64_t sizes[] = {1, 64, 1000, 4096, 8192, 65536, 100000, MIB, 2 * MIB - 1, 2 * MIB, 3 * MIB + 1, CREW};

	if (!start())
		return;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		check_clear((unsigned)crew.count, sizes[i], PC_CACHED);
		check_clear((unsigned)crew.count, sizes[i], PC_FLUSHED);
		CU_ASSERT_EQUAL(meter->ops->round_begin(meter, i), 0);
	}
	stand_stop();
}

/* From few to many and back: those who are not asked for sleep. */
static void test_numbers_of_threads(void)
{
	if (!start())
		return;
	for (unsigned threads = 1; threads <= crew.count; threads++)
		check_clear(threads, 65536, PC_FLUSHED);
	for (unsigned threads = (unsigned)crew.count; threads > 0; threads--)
		check_clear(threads, 65536, PC_FLUSHED);
	stand_stop();
}

/* Without passes nothing is written before the clear, in any thread: each sees what its last one left. */
static void test_every_thread_prepares(void)
{
	struct meter_ask ask;
	struct meter_sample out;

	if (!start())
		return;
	ask = ask_clear((unsigned)crew.count, 3 * MIB, PC_CACHED);
	check_clear(ask.threads, 3 * MIB, PC_CACHED);
	ask.passes = 0;
	CU_ASSERT_EQUAL(sample(ask, &out), 0);
	CU_ASSERT_EQUAL(atomic_load(&known), ask.threads);
	for (unsigned i = 0; i < ask.threads; i++) {
		CU_ASSERT(witnesses[i].calls > 0);
		CU_ASSERT_EQUAL(witnesses[i].dirty, 0);
	}
	stand_stop();
}

static void test_victims(void)
{
	struct meter_sample out;

	if (!start())
		return;
	for (uint64_t bytes = 64; bytes <= CREW; bytes *= 8) {
		CU_ASSERT_EQUAL(sample(ask_victim((unsigned)crew.count, &spying, bytes), &out), 0);
		CU_ASSERT(out.ns > 0 && out.ns < 1e12);
		CU_ASSERT_EQUAL(out.read_ns, 0);
		check_witnesses((unsigned)crew.count);
		CU_ASSERT_EQUAL(witnesses[0].calls, 1);
		CU_ASSERT_EQUAL(sample(ask_victim((unsigned)crew.count, NULL, bytes), &out), 0);
		CU_ASSERT(out.ns > 0);
		CU_ASSERT_EQUAL(atomic_load(&known), 0);
	}
	stand_stop();
}

static void test_ways_in_every_thread(void)
{
	struct meter_ask ask;
	struct meter_sample out;

	if (!start())
		return;
	ask = ask_clear((unsigned)crew.count, BASE, PC_FLUSHED);
	ask.chunk = MIB;
	ask.backward = true;
	ask.base_pages = true;
	CU_ASSERT_EQUAL(sample(ask, &out), 0);
	check_witnesses(ask.threads);
	for (unsigned i = 0; i < ask.threads; i++) {
		CU_ASSERT(witnesses[i].calls >= 4);
		CU_ASSERT(witnesses[i].high - witnesses[i].low <= BASE);
		CU_ASSERT(witnesses[i].high - witnesses[i].low >= BASE - BASE / 16);
	}
	stand_stop();
}

static void test_epochs(void)
{
	struct meter_room other = room;

	if (!start())
		return;
	for (unsigned i = 1; i <= 3; i++) {
		other.crew_bytes = (uint64_t)i * 2 * MIB;
		CU_ASSERT_EQUAL(meter->ops->epoch(meter, &other), 0);
		check_clear((unsigned)crew.count, i * 2 * MIB, PC_FLUSHED);
		check_clear((unsigned)crew.count, 512, PC_CACHED);
	}
	stand_stop();
}

/* Moved away from those whose cache it shares: what they would measure together is another host's. */
static void test_outside_the_crew(void)
{
	struct meter_sample out;
	struct crew others;
	cpu_set_t mine;

	if (!start())
		return;
	stand_stop();
	CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof(mine), &mine), 0);
	CU_ASSERT_EQUAL_FATAL(crew_pin(crew.cpus[0]), 0);
	others = (struct crew){2, {crew.cpus[1], crew.cpus[1]}};
	stand_start(&others, &room);
	CU_ASSERT_EQUAL(sample(ask_clear(2, 65536, PC_FLUSHED), &out), -EINVAL);
	CU_ASSERT_EQUAL(sample(ask_clear(1, 65536, PC_FLUSHED), &out), 0);
	stand_stop();
	CU_ASSERT_EQUAL(sched_setaffinity(0, sizeof(mine), &mine), 0);
}

/* More threads than CPUs, in turns: wherever they are, each has its own memory, and all meet. */
static void test_crowded(void)
{
	struct meter_sample out;
	cpu_set_t mine;

	if (!start())
		return;
	stand_stop();
	CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof(mine), &mine), 0);
	CU_ASSERT_EQUAL_FATAL(crew_pin(crew.cpus[0]), 0);
	crew = (struct crew){5, {crew.cpus[0], crew.cpus[1], crew.cpus[1], crew.cpus[1], crew.cpus[1]}};
	stand_start(&crew, &room);
	CU_ASSERT_EQUAL(sample(ask_clear(5, 65536, PC_FLUSHED), &out), 0);
	CU_ASSERT_EQUAL(atomic_load(&alone), 0);
	CU_ASSERT_EQUAL(atomic_load(&known), 5);
	for (unsigned i = 0; i < 5; i++) {
		CU_ASSERT_EQUAL(witnesses[i].dirty, witnesses[0].calls);
		for (unsigned k = 0; k < i; k++)
			CU_ASSERT(witnesses[i].low >= witnesses[k].high || witnesses[i].high <= witnesses[k].low);
	}
	stand_stop();
	CU_ASSERT_EQUAL(sched_setaffinity(0, sizeof(mine), &mine), 0);
}

/* The caller on another CPU than when the crew was found: that one's thread goes elsewhere. */
static void test_caller_was_moved(void)
{
	if (!start())
		return;
	for (size_t i = 0; i < crew.count; i++) {
		CU_ASSERT_EQUAL(crew_pin(crew.cpus[i]), 0);
		CU_ASSERT_EQUAL(meter->ops->round_begin(meter, i), 0);
		check_clear((unsigned)crew.count, 65536, PC_FLUSHED);
	}
	stand_stop();
}

/* --- refusals ---------------------------------------------------------------------------------------------------- */

static void refused(struct meter_ask ask)
{
	struct meter_sample out;

	CU_ASSERT_EQUAL(sample(ask, &out), -EINVAL);
	CU_ASSERT_EQUAL(atomic_load(&known), 0);
}

static void test_refusals(void)
{
	struct meter_ask ask;
	unsigned threads;

	if (!start())
		return;
	threads = (unsigned)crew.count;
	refused(ask_clear(threads + 1, 65536, PC_CACHED));
	refused(ask_clear(UINT_MAX, 65536, PC_CACHED));
	refused(ask_victim(threads + 1, &spying, 65536));
	refused(ask_clear(threads, 0, PC_CACHED));
	refused(ask_clear(threads, CREW + 1, PC_CACHED));
	refused(ask_clear(threads, UINT64_MAX, PC_CACHED));
	refused(ask_victim(threads, &spying, CREW + 1));
	ask = ask_clear(threads, BASE + 1, PC_CACHED);
	ask.base_pages = true;
	refused(ask);
	ask = ask_clear(threads, 4096, PC_FLUSHED);
	ask.phase = PHASE_SINGLE;
	refused(ask);
	CU_ASSERT_EQUAL(meter->ops->epoch(meter, &(struct meter_room){.target_bytes = TARGET}), 0);
	refused(ask_clear(threads, 4096, PC_CACHED)); /* no room for others at all */
	check_clear(1, TARGET, PC_CACHED);
	CU_ASSERT_EQUAL(meter->ops->epoch(meter, &room), 0);
	check_clear(threads, 4096, PC_CACHED);
	stand_stop();
}

/* Memory that cannot be had in the other threads only: an error for the caller, and the next sample is as good as any.
 */
static void test_no_memory_in_a_thread(void)
{
	struct meter_room huge = room;
	struct meter_sample out;

	if (!start())
		return;
	huge.crew_bytes = (uint64_t)1 << 60;
	CU_ASSERT_EQUAL(meter->ops->epoch(meter, &huge), 0);
	CU_ASSERT_EQUAL(sample(ask_clear((unsigned)crew.count, 2 * MIB, PC_FLUSHED), &out), -ENOMEM);
	CU_ASSERT_EQUAL(atomic_load(&known), 0);
	check_clear((unsigned)crew.count, 65536, PC_FLUSHED);
	CU_ASSERT_EQUAL(meter->ops->epoch(meter, &room), 0);
	check_clear((unsigned)crew.count, 2 * MIB, PC_FLUSHED);
	stand_stop();
}

/* A CPU that is not there. */
static void test_no_such_cpu(void)
{
	struct meter_sample out;

	if (!start())
		return;
	stand_stop();
	crew.count = 2;
	crew.cpus[0] = crew.cpus[1] = 8191;
	stand_start(&crew, &room);
	CU_ASSERT_EQUAL(sample(ask_clear(2, 65536, PC_FLUSHED), &out), -EINVAL);
	CU_ASSERT_EQUAL(atomic_load(&known), 0);
	CU_ASSERT_EQUAL(sample(ask_clear(1, 65536, PC_FLUSHED), &out), 0);
	stand_stop();
}

static const struct unit_test tests[] = {
	{"all clear together", test_all_clear_together},       {"numbers of threads", test_numbers_of_threads},
	{"every thread prepares", test_every_thread_prepares}, {"victims", test_victims},
	{"ways in every thread", test_ways_in_every_thread},   {"epochs", test_epochs},
	{"outside the crew", test_outside_the_crew},           {"crowded", test_crowded},
	{"caller was moved", test_caller_was_moved},           {"refusals", test_refusals},
	{"no memory in a thread", test_no_memory_in_a_thread}, {"no such CPU", test_no_such_cpu},
};

UNIT_MAIN("meter_crew", tests)
