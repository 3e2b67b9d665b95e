/*
 * Several threads of the meter, for one test. The kernels write down who was called where, on which CPU and what it
 * found, and let nobody end a call before all have begun theirs: by meeting, with a deadline for when somebody does not
 * come.
 */
#ifndef TESTS_METER_CREW_STAND_H
#define TESTS_METER_CREW_STAND_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
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

static inline struct witness *witness_here(void)
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

static inline void note(struct witness *witness, char *at, size_t len)
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
static inline void meet(unsigned calls)
{
	uint64_t late = stand_ns() + DEADLINE_S * 1000000000ull;

	atomic_fetch_add(&met, 1);
	while (atomic_load(&met) < expected * calls && atomic_load(&alone) == 0)
		if (stand_ns() > late)
			atomic_fetch_add(&alone, 1);
		else
			sched_yield();
}

static inline void spy(void *dst, size_t len)
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

static inline void forget(unsigned threads)
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
static inline bool start(void)
{
	if (stand_lacks_crew(&crew))
		return false;
	if (crew.count > THREADS / 2)
		crew.count = THREADS / 2;
	stand_start(&crew, &room);
	return true;
}

static inline int sample(struct meter_ask ask, struct meter_sample *out)
{
	forget(ask.threads == 0 ? 1 : ask.threads);
	memset(out, 0xff, sizeof(*out));
	return meter->ops->sample(meter, &ask, out);
}

static inline struct meter_ask ask_clear(unsigned threads, uint64_t bytes, enum pc_prior prior)
{
	return (struct meter_ask){.kernel = &spying,
	                          .phase = PHASE_CLEAR,
	                          .prior = prior,
	                          .bytes = bytes,
	                          .threads = threads,
	                          .passes = 3,
	                          .read = true};
}

static inline bool in_crew(int cpu)
{
	for (size_t i = 0; i < crew.count; i++)
		if (crew.cpus[i] == cpu)
			return true;
	return false;
}

/* Every thread did the same, with dirty memory, on a CPU of its own, within memory of its own. */
static inline void check_witnesses(unsigned threads)
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

static inline void check_clear(unsigned threads, uint64_t bytes, enum pc_prior prior)
{
	struct meter_sample out;

	CU_ASSERT_EQUAL(sample(ask_clear(threads, bytes, prior), &out), 0);
	CU_ASSERT(out.ns > 0 && out.ns < 1e12);
	CU_ASSERT(out.read_ns > 0 && out.read_ns < 1e12);
	check_witnesses(threads);
}

#endif
