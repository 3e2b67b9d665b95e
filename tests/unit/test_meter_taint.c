/*
 * Disturbances, provoked: each kernel here has something happen to it in the middle, and knows that it did happen
 * before it returns. No assertion on how long anything takes.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/harness.h"
#include "tests/unit/meter_stand.h"

enum { BYTES = 65536, DEADLINE_S = 20 };

static const struct meter_room room = {.target_bytes = 2 << 20, .crew_bytes = 2 << 20, .victim_bytes = 2 << 20};

static uint64_t deadline(void)
{
	return stand_ns() + DEADLINE_S * 1000000000ull;
}

static atomic_bool first; /* call of a sample */

static struct taints taints(void)
{
	struct taints taints;

	meter->ops->taints(meter, &taints);
	return taints;
}

/* A sample with a kernel that is to be disturbed; counts it as what it is: lost or moved. */
static void disturbed(void (*clear)(void *, size_t), unsigned threads, bool moved)
{
	const struct pc_kernel kernel = {.name = "disturbed", .body = clear, .clear = clear};
	const enum phase phases[] = {PHASE_CLEAR, PHASE_SINGLE, PHASE_VICTIM_L1};

	for (unsigned i = 0; i < 3; i++) {
		struct meter_ask ask = {.kernel = &kernel,
		                        .phase = phases[i],
		                        .prior = PC_FLUSHED,
		                        .bytes = BYTES,
		                        .victim_bytes = 4096,
		                        .threads = threads};
		struct taints before = taints(), after;
		struct meter_sample out = {.tainted = false};

		if (phases[i] == PHASE_SINGLE && threads > 1)
			continue;
		CU_ASSERT_EQUAL(meter->ops->round_begin(meter, i), 0);
		atomic_store(&first, true);
		CU_ASSERT_EQUAL(meter->ops->sample(meter, &ask, &out), 0);
		CU_ASSERT(out.tainted);
		after = taints();
		CU_ASSERT_EQUAL(after.samples, before.samples + 1);
		CU_ASSERT_EQUAL(after.moved, before.moved + moved);
		CU_ASSERT_EQUAL(after.lost, before.lost + !moved);
	}
}

/* --- another thread wants the CPU -------------------------------------------------------------------------------- */

static atomic_bool busy;

static void *compete(void *cpu)
{
	crew_pin(*(int *)cpu);
	while (atomic_load(&busy))
		;
	return NULL;
}

static pthread_t competitor;

static void start_competitor(void)
{
	static int cpu;

	cpu = sched_getcpu();
	atomic_store(&busy, true);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&competitor, NULL, compete, &cpu), 0);
}

static void stop_competitor(void)
{
	atomic_store(&busy, false);
	pthread_join(competitor, NULL);
}

static uint64_t ran_ns(void)
{
	struct timespec ran;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ran);
	return (uint64_t)ran.tv_sec * 1000000000u + (uint64_t)ran.tv_nsec;
}

/* Until the competitor has had 5 ms of it. */
static void go_on_until_lost(void *dst, size_t len, bool yield)
{
	uint64_t late = deadline(), wall = stand_ns(), ran = ran_ns();

	memset(dst, 0, len);
	while (stand_ns() - wall < 5000000 + ran_ns() - ran && stand_ns() < late)
		if (yield)
			sched_yield();
	CU_ASSERT(stand_ns() < late);
}

static void yields(void *dst, size_t len)
{
	go_on_until_lost(dst, len, true);
}

static void spins(void *dst, size_t len)
{
	go_on_until_lost(dst, len, false);
}

static void test_yield(void)
{
	stand_start(NULL, &room);
	start_competitor();
	disturbed(yields, 1, false);
	stop_competitor();
	stand_stop();
}

static void test_competitor(void)
{
	stand_start(NULL, &room);
	start_competitor();
	disturbed(spins, 1, false);
	stop_competitor();
	stand_stop();
}

/* --- sleep ------------------------------------------------------------------------------------------------------- */

static void sleeps(void *dst, size_t len)
{
	memset(dst, 0, len);
	nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static void test_sleep(void)
{
	stand_start(NULL, &room);
	disturbed(sleeps, 1, false);
	stand_stop();
}

/* --- migration --------------------------------------------------------------------------------------------------- */

static int another_cpu(void)
{
	int here = sched_getcpu();

	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (cpu != here && CPU_ISSET((size_t)cpu, &allowed))
			return cpu;
	return -1;
}

/* Once a sample: twice would be back on the first CPU at its end. */
static void moves(void *dst, size_t len)
{
	memset(dst, 0, len);
	if (atomic_exchange(&first, false))
		CU_ASSERT_EQUAL(crew_pin(another_cpu()), 0);
}

static atomic_int victim, destination; /* a thread to move, 0: none, -1: no more; and where to */

static void *move_others(void *nothing)
{
	pid_t tid;

	while ((tid = atomic_load(&victim)) >= 0)
		if (tid > 0 && atomic_compare_exchange_strong(&victim, &tid, 0)) {
			cpu_set_t set;

			CPU_ZERO(&set);
			CPU_SET((size_t)atomic_load(&destination), &set);
			sched_setaffinity(tid, sizeof(set), &set);
		}
	return nothing;
}

/* Runs on until it finds itself elsewhere. */
static void is_moved(void *dst, size_t len)
{
	uint64_t late = deadline();
	int here = sched_getcpu();

	memset(dst, 0, len);
	if (!atomic_exchange(&first, false))
		return;
	atomic_store(&destination, another_cpu());
	atomic_store(&victim, gettid());
	while (sched_getcpu() == here && stand_ns() < late)
		;
	CU_ASSERT(sched_getcpu() != here);
}

static bool cannot_move(void)
{
	if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0 && CPU_COUNT(&allowed) > 1)
		return false;
	unit_skip("one CPU");
	return true;
}

static void test_migration(void)
{
	if (cannot_move())
		return;
	stand_start(NULL, &room);
	disturbed(moves, 1, true);
	stand_stop();
}

static void test_forced_migration(void)
{
	pthread_t mover;

	if (cannot_move())
		return;
	stand_start(NULL, &room);
	CU_ASSERT_EQUAL(sched_setaffinity(0, sizeof(allowed), &allowed), 0); /* for the mover, which inherits it */
	atomic_store(&victim, 0);
	CU_ASSERT_EQUAL_FATAL(pthread_create(&mover, NULL, move_others, NULL), 0);
	CU_ASSERT_EQUAL(crew_pin(sched_getcpu()), 0);
	disturbed(is_moved, 1, true);
	atomic_store(&victim, -1);
	pthread_join(mover, NULL);
	stand_stop();
}

/* Even between samples: their caches are not the same. Later rounds make do with the new CPU. */
static void test_migration_taints_the_round(void)
{
	uint64_t late = deadline();
	unsigned passed = 0;

	if (cannot_move())
		return;
	stand_start(NULL, &room);
	CU_ASSERT_EQUAL(crew_pin(another_cpu()), 0);
	CU_ASSERT(meter->ops->round_end(meter));
	while (passed == 0 && stand_ns() < late) {
		CU_ASSERT_EQUAL(meter->ops->round_begin(meter, 1), 0);
		passed += !meter->ops->round_end(meter);
	}
	CU_ASSERT(passed > 0);
	stand_stop();
}

/* --- in a thread of the crew ------------------------------------------------------------------------------------- */

static bool is_caller(void)
{
	return gettid() == getpid();
}

static void crew_sleeps(void *dst, size_t len)
{
	if (is_caller())
		memset(dst, 0, len);
	else
		sleeps(dst, len);
}

static void caller_sleeps(void *dst, size_t len)
{
	if (is_caller())
		sleeps(dst, len);
	else
		memset(dst, 0, len);
}

static void crew_moves(void *dst, size_t len)
{
	if (is_caller())
		memset(dst, 0, len);
	else
		moves(dst, len);
}

/* Two threads; false: there are no two CPUs. */
static bool start_crew(void)
{
	struct crew crew;

	if (stand_lacks_crew(&crew))
		return false;
	stand_start(&crew, &room);
	return true;
}

static void test_crew(void)
{
	if (!start_crew())
		return;
	disturbed(crew_sleeps, 2, false);
	disturbed(caller_sleeps, 2, false);
	disturbed(sleeps, 2, false);
	disturbed(crew_moves, 2, true);
	disturbed(crew_sleeps, 2, false); /* back on its CPU */
	stand_stop();
}

/* --- the process is stopped -------------------------------------------------------------------------------------- */

static int in_the_middle; /* a pipe's end */

/* Says that it is in the middle, and runs on until a quarter of a second was missing between two looks at the clock. */
static void is_stopped(void *dst, size_t len)
{
	uint64_t late = deadline(), last = stand_ns(), now = last;

	memset(dst, 0, len);
	if (write(in_the_middle, "", 1) != 1)
		_exit(3);
	for (; now - last < 250000000; now = stand_ns()) {
		last = now;
		if (now > late)
			_exit(4);
	}
}

/* In a child, so that whoever started the tests does not see them stop. 0: tainted. */
static int measure_and_be_stopped(void)
{
	static const struct pc_kernel kernel = {.name = "stopped", .body = is_stopped, .clear = is_stopped};
	const struct meter_ask ask = {.kernel = &kernel, .phase = PHASE_CLEAR, .prior = PC_CACHED, .bytes = 1 << 20};
	struct meter_sample out;
	struct pc_why why;

	if (meter_real_new(&meter, NULL, &why) < 0 || meter->ops->epoch(meter, &room) < 0 ||
	    meter->ops->round_begin(meter, 1) < 0 || meter->ops->sample(meter, &ask, &out) < 0)
		return 2;
	meter_free(meter);
	return out.tainted ? 0 : 1;
}

/* Each time the child says so. */
static int stop_child(pid_t child, int says)
{
	char byte;
	int status = 0;

	while (read(says, &byte, 1) == 1) {
		kill(child, SIGSTOP);
		if (waitpid(child, &status, WUNTRACED) != child || !WIFSTOPPED(status))
			return status;
		nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
		kill(child, SIGCONT);
	}
	waitpid(child, &status, 0);
	return status;
}

static void test_stop(void)
{
	int ends[2], status;
	pid_t child;

	CU_ASSERT_EQUAL_FATAL(pipe(ends), 0);
	child = fork();
	CU_ASSERT_FATAL(child >= 0);
	if (child == 0) {
		close(ends[0]);
		in_the_middle = ends[1];
		_exit(measure_and_be_stopped());
	}
	close(ends[1]);
	status = stop_child(child, ends[0]);
	close(ends[0]);
	CU_ASSERT(WIFEXITED(status));
	CU_ASSERT_EQUAL(WEXITSTATUS(status), 0);
}

/* --- and none ---------------------------------------------------------------------------------------------------- */

/* Nothing happens to this one, but it lasts: on a host that is not overrun some such samples are clean. */
static void lasts(void *dst, size_t len)
{
	uint64_t begun = stand_ns();

	memset(dst, 0, len);
	while (stand_ns() - begun < 20000)
		;
}

static void find_clean(unsigned threads)
{
	static const struct pc_kernel kernel = {.name = "lasts", .body = lasts, .clear = lasts};
	const struct meter_ask ask = {
		.kernel = &kernel, .phase = PHASE_CLEAR, .prior = PC_FLUSHED, .bytes = BYTES, .threads = threads};
	uint64_t late = deadline();
	unsigned clean = 0;

	while (clean == 0 && stand_ns() < late) {
		struct meter_sample out;

		CU_ASSERT_EQUAL(meter->ops->sample(meter, &ask, &out), 0);
		clean += !out.tainted;
	}
	CU_ASSERT(clean > 0);
}

static void test_some_are_clean(void)
{
	stand_start(NULL, &room);
	find_clean(1);
	stand_stop();
	if (!start_crew())
		return;
	find_clean(2);
	stand_stop();
}

static const struct unit_test tests[] = {
	{"yield", test_yield},
	{"competitor", test_competitor},
	{"sleep", test_sleep},
	{"migration", test_migration},
	{"forced migration", test_forced_migration},
	{"migration taints the round", test_migration_taints_the_round},
	{"crew", test_crew},
	{"stop", test_stop},
	{"some are clean", test_some_are_clean},
};

UNIT_MAIN("meter_taint", tests)
