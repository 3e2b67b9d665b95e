/*
 * Several threads of the meter. The kernels write down who was called where, on which CPU and what it found, and let
 * nobody end a call before all have begun theirs: by meeting, with a deadline for when somebody does not come.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "tests/unit/harness.h"
#include "tests/unit/meter_stand.h"

enum { MIB = 1 << 20, TARGET = 8 * MIB, CREW = 6 * MIB, BASE = 4 * MIB, VICTIM = 4 * MIB };
enum { THREADS = 8, DEADLINE_S = 20 };

/* --- kernels that write down and meet ---------------------------------------------------------------------------- */

struct witness {
	pid_t tid;
	int cpu; /* -1: not always the same */
	unsigned calls, dirty;
	char *low, *high;
	bool blocks_signals;
};

static struct witness witnesses[THREADS];
static atomic_uint known, met, alone;
static unsigned expected; /* threads that are to meet at every call; 0: nobody waits */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct witness *witness_here(void)
{
	pid_t tid = gettid();
	unsigned i = 0;

	while (i < atomic_load(&known) && witnesses[i].tid != tid)
		i++;
	if (i == atomic_load(&known) && i < THREADS) {
		witnesses[i] = (struct witness){.tid = tid, .cpu = sched_getcpu()};
		atomic_store(&known, i + 1);
	}
	return i < THREADS ? &witnesses[i] : NULL;
}

static void note(struct witness *witness, char *at, size_t len)
{
	sigset_t blocked;

	if (sched_getcpu() != witness->cpu)
		witness->cpu = -1;
	witness->calls++;
	witness->dirty += all_non_zero(at, len);
	if (witness->low == NULL || at < witness->low)
		witness->low = at;
	if (at + len > witness->high)
		witness->high = at + len;
	pthread_sigmask(SIG_SETMASK, NULL, &blocked);
	witness->blocks_signals = sigismember(&blocked, SIGTERM) && sigismember(&blocked, SIGALRM);
}

/* The n-th call of one thread ends after the n-th of all others has begun. */
static void meet(unsigned calls)
{
	uint64_t late = stand_ns() + DEADLINE_S * 1000000000ull;

	atomic_fetch_add(&met, 1);
	while (atomic_load(&met) < expected * calls && atomic_load(&alone) == 0)
		if (stand_ns() > late)
			atomic_fetch_add(&alone, 1);
		else
			sched_yield();
}

static void spy(void *dst, size_t len)
{
	struct witness *witness;
	unsigned calls = 0;

	pthread_mutex_lock(&lock);
	witness = witness_here();
	if (witness != NULL) {
		note(witness, dst, len);
		calls = witness->calls;
	}
	pthread_mutex_unlock(&lock);
	meet(calls);
	memset(dst, 0, len);
}

static const struct pc_kernel spying = {.name = "spy", .body = spy, .clear = spy};

static void forget(unsigned threads)
{
	memset(witnesses, 0, sizeof(witnesses));
	atomic_store(&known, 0);
	atomic_store(&met, 0);
	atomic_store(&alone, 0);
	expected = threads;
}

/* --- a crew for one test ----------------------------------------------------------------------------------------- */

static struct crew crew;
static const struct meter_room room = {
	.target_bytes = TARGET, .base_bytes = BASE, .crew_bytes = CREW, .victim_bytes = VICTIM};

/* This host's, of a few threads; false: it has but one CPU. */
static bool start(void)
{
	if (stand_lacks_crew(&crew))
		return false;
	if (crew.count > THREADS / 2)
		crew.count = THREADS / 2;
	stand_start(&crew, &room);
	return true;
}

static int sample(struct meter_ask ask, struct meter_sample *out)
{
	forget(ask.threads == 0 ? 1 : ask.threads);
	memset(out, 0xff, sizeof(*out));
	return meter->ops->sample(meter, &ask, out);
}

static struct meter_ask ask_clear(unsigned threads, uint64_t bytes, enum pc_prior prior)
{
	return (struct meter_ask){.kernel = &spying,
	                          .phase = PHASE_CLEAR,
	                          .prior = prior,
	                          .bytes = bytes,
	                          .threads = threads,
	                          .passes = 3,
	                          .read = true};
}

static struct meter_ask ask_victim(unsigned threads, const struct pc_kernel *kernel, uint64_t bytes)
{
	return (struct meter_ask){.kernel = kernel,
	                          .phase = PHASE_VICTIM_L2,
	                          .prior = PC_FLUSHED,
	                          .bytes = bytes,
	                          .victim_bytes = MIB,
	                          .threads = threads};
}

static bool in_crew(int cpu)
{
	for (size_t i = 0; i < crew.count; i++)
		if (crew.cpus[i] == cpu)
			return true;
	return false;
}

/* Every thread did the same, with dirty memory, on a CPU of its own, within memory of its own. */
static void check_witnesses(unsigned threads)
{
	CU_ASSERT_EQUAL(atomic_load(&alone), 0);
	CU_ASSERT_EQUAL_FATAL(atomic_load(&known), threads);
	for (unsigned i = 0; i < threads; i++) {
		const struct witness *witness = &witnesses[i];

		CU_ASSERT(witness->calls > 0);
		CU_ASSERT_EQUAL(witness->calls, witnesses[0].calls);
		CU_ASSERT_EQUAL(witness->dirty, witness->calls);
		CU_ASSERT(in_crew(witness->cpu));
		CU_ASSERT(witness->tid == getpid() || witness->blocks_signals);
		for (unsigned k = 0; k < i; k++) {
			CU_ASSERT(witness->cpu != witnesses[k].cpu);
			CU_ASSERT(witness->low >= witnesses[k].high || witness->high <= witnesses[k].low);
		}
	}
}

/* --- samples ----------------------------------------------------------------------------------------------------- */

static void check_clear(unsigned threads, uint64_t bytes, enum pc_prior prior)
{
	struct meter_sample out;

	CU_ASSERT_EQUAL(sample(ask_clear(threads, bytes, prior), &out), 0);
	CU_ASSERT(out.ns > 0 && out.ns < 1e12);
	CU_ASSERT(out.read_ns > 0 && out.read_ns < 1e12);
	check_witnesses(threads);
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

/* --- sleep and death --------------------------------------------------------------------------------------------- */

/* Of this process; other threads may be the sanitizers'. */
static unsigned count_threads(void)
{
	DIR *folder = opendir("/proc/self/task");
	unsigned count = 0;

	if (folder == NULL)
		return 0;
	for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
		count += entry->d_name[0] != '.';
	closedir(folder);
	return count;
}

/* State of a thread and the time it has run, as the scheduler says. '-': it is gone. */
static char state_of(pid_t tid, unsigned long long *ran_ns)
{
	char path[64], state = '-';
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	file = fopen(path, "r");
	if (file == NULL)
		return '-';
	if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
		state = '-';
	fclose(file);
	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", (int)tid);
	file = fopen(path, "r");
	if (file != NULL) {
		if (fscanf(file, "%llu", ran_ns) != 1)
			state = '-';
		fclose(file);
	}
	return state;
}

static char wait_for_state(pid_t tid, char state, unsigned long long *ran_ns)
{
	uint64_t late = stand_ns() + DEADLINE_S * 1000000000ull;

	while (state_of(tid, ran_ns) != state && stand_ns() < late)
		sched_yield();
	return state_of(tid, ran_ns);
}

static void test_sleep_between_asks(void)
{
	unsigned long long before[THREADS] = {0}, after[THREADS] = {0};
	unsigned others = 0;
	pid_t tids[THREADS];

	if (!start())
		return;
	check_clear((unsigned)crew.count, 65536, PC_FLUSHED);
	for (unsigned i = 0; i < crew.count; i++)
		if (witnesses[i].tid != getpid())
			tids[others++] = witnesses[i].tid;
	CU_ASSERT_EQUAL(others, crew.count - 1);
	for (unsigned i = 0; i < others; i++)
		CU_ASSERT_EQUAL(wait_for_state(tids[i], 'S', &before[i]), 'S');
	for (unsigned k = 0; k < 50; k++)
		check_clear(1, 65536, PC_CACHED);
	for (unsigned i = 0; i < others; i++) {
		CU_ASSERT_EQUAL(state_of(tids[i], &after[i]), 'S');
		CU_ASSERT_EQUAL(after[i], before[i]); /* not for a moment */
	}
	stand_stop();
	for (unsigned i = 0; i < others; i++)
		CU_ASSERT_EQUAL(wait_for_state(tids[i], '-', &after[i]), '-');
}

static void test_started_when_asked_for(void)
{
	unsigned before = count_threads();

	if (!start())
		return;
	check_clear(1, 65536, PC_CACHED);
	CU_ASSERT_EQUAL(count_threads(), before);
	check_clear(2, 65536, PC_CACHED);
	CU_ASSERT_EQUAL(count_threads(), before + 1);
	check_clear(2, 65536, PC_CACHED);
	check_clear((unsigned)crew.count, 65536, PC_CACHED);
	CU_ASSERT_EQUAL(count_threads(), before + crew.count - 1);
	stand_stop();
}

static const struct unit_test tests[] = {
	{"all clear together", test_all_clear_together},       {"numbers of threads", test_numbers_of_threads},
	{"every thread prepares", test_every_thread_prepares}, {"victims", test_victims},
	{"ways in every thread", test_ways_in_every_thread},   {"epochs", test_epochs},
	{"outside the crew", test_outside_the_crew},           {"crowded", test_crowded},
	{"caller was moved", test_caller_was_moved},           {"refusals", test_refusals},
	{"no memory in a thread", test_no_memory_in_a_thread}, {"no such CPU", test_no_such_cpu},
	{"sleep between asks", test_sleep_between_asks},       {"started when asked for", test_started_when_asked_for},
};

UNIT_MAIN("meter_crew", tests)
