/* Stolen time as /proc/stat tells it, and the parts of disturbance that a test can provoke. */
#include "calibrd/quiet.h"

#include <sched.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/harness.h"

static const char stat_text[] = "cpu  100 0 50 9000 3 0 1 77 0 0\n"
				"cpu0 60 0 30 4500 2 0 1 44 0 0\n"
				"cpu1 40 0 20 4500 1 0 0 33 0 0\n"
				"cpu10 1 2 3 4 5 6 7 8 9 10\n"
				"intr 12345 1 2 3\n";

static void test_stolen(void)
{
	CU_ASSERT_EQUAL(quiet_stolen(stat_text, 0), 44);
	CU_ASSERT_EQUAL(quiet_stolen(stat_text, 1), 33);
	CU_ASSERT_EQUAL(quiet_stolen(stat_text, 10), 8);
}

static void test_stolen_not_told(void)
{
	CU_ASSERT_EQUAL(quiet_stolen(stat_text, 2), 0);
	CU_ASSERT_EQUAL(quiet_stolen(stat_text, 100), 0);
	CU_ASSERT_EQUAL(quiet_stolen("", 0), 0);
	CU_ASSERT_EQUAL(quiet_stolen("\ncpu0 1 2 3 4 5 6", 0), 0); /* Linux 2.6.10 and before */
	CU_ASSERT_EQUAL(quiet_stolen("\ncpu0 ", 0), 0);
	CU_ASSERT_EQUAL(quiet_stolen("\ncpu0 a b c d e f g h", 0), 0);
}

static cpu_set_t allowed;

static void start(struct quiet *quiet)
{
	CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	CU_ASSERT_EQUAL_FATAL(quiet_start(quiet), 0);
}

static void stop(struct quiet *quiet)
{
	quiet_stop(quiet);
	quiet_stop(quiet);
	CU_ASSERT_EQUAL(sched_setaffinity(0, sizeof(allowed), &allowed), 0);
}

static void test_pins_where_it_is(void)
{
	struct quiet quiet;
	cpu_set_t set;

	start(&quiet);
	CU_ASSERT_EQUAL(sched_getaffinity(0, sizeof(set), &set), 0);
	CU_ASSERT_EQUAL(CPU_COUNT(&set), 1);
	CU_ASSERT(CPU_ISSET((size_t)quiet.cpu, &set));
	CU_ASSERT_EQUAL(sched_getcpu(), quiet.cpu);
	stop(&quiet);
}

/* The CPU was three times as fast before, says the best loop so far. */
static void test_slow_reference_taints(void)
{
	struct quiet quiet;

	start(&quiet);
	CU_ASSERT_EQUAL(quiet_round_begin(&quiet), 0);
	CU_ASSERT(quiet.reference_best > 0);
	quiet.reference_best /= 3;
	CU_ASSERT(quiet_round_end(&quiet));
	stop(&quiet);
}

/* As if all of the time since the last look had been stolen. */
static void test_stolen_time_taints(void)
{
	struct quiet quiet;

	start(&quiet);
	if (quiet.stat_fd < 0) {
		unit_skip("/proc/stat is hidden");
		stop(&quiet);
		return;
	}
	CU_ASSERT_EQUAL(quiet_round_begin(&quiet), 0);
	quiet.stolen_read_ns = quiet.stolen_since_ns = quiet_clock_ns(CLOCK_MONOTONIC) - 20000000;
	quiet.stolen -= 2;
	CU_ASSERT(quiet_round_end(&quiet));
	stop(&quiet);
}

#define MS ((uint64_t)1000000)

static struct quiet looked_at_once(void)
{
	return (struct quiet){.stat_fd = -1, .stolen = 100, .stolen_since_ns = 1000 * MS, .stolen_read_ns = 1000 * MS};
}

/* One tick is up to 10 ms that were stolen at any time before, bit by bit. */
static void test_one_tick_is_no_theft(void)
{
	struct quiet quiet = looked_at_once();

	CU_ASSERT_FALSE(quiet_steal(&quiet, 101, 1010 * MS));
	CU_ASSERT_FALSE(quiet_steal(&quiet, 101, 1020 * MS));
	CU_ASSERT_EQUAL(quiet.stolen_read_ns, 1020 * MS);
	CU_ASSERT_FALSE(quiet_steal(&quiet, 102, 4000 * MS)); /* two in three seconds */
	CU_ASSERT_FALSE(quiet_steal(&quiet, 103, 4010 * MS));
	quiet = looked_at_once();
	CU_ASSERT(quiet_steal(&quiet, 102, 1020 * MS));
	CU_ASSERT_FALSE(quiet_steal(&quiet, 102, 1030 * MS)); /* told once */
}

/* Looked at often, a CPU of which a third is stolen never shows more than a tick at a time. */
static void test_single_ticks_add_up(void)
{
	struct quiet quiet = looked_at_once();
	unsigned tainted = 0;

	for (unsigned i = 1; i <= 60; i++)
		tainted += quiet_steal(&quiet, 100 + i / 3, (1000 + 10 * i) * MS);
	CU_ASSERT_EQUAL(tainted, 10);
}

/* One tick a second and a half is less than a hundredth, however long it goes on. */
static void test_rare_ticks_are_forgotten(void)
{
	struct quiet quiet = looked_at_once();

	for (unsigned i = 1; i <= 6000; i++)
		CU_ASSERT_FALSE(quiet_steal(&quiet, 100 + i / 150, (1000 + 10 * i) * MS));
}

static void test_a_counter_that_falls(void)
{
	struct quiet quiet = looked_at_once();

	CU_ASSERT_FALSE(quiet_steal(&quiet, 3, 1020 * MS));
	CU_ASSERT(quiet_steal(&quiet, 6, 1040 * MS));
}

/* A turbo that ended: the best loop of long ago is no measure. */
static void test_the_best_loop_ages(void)
{
	struct quiet quiet = {.stat_fd = -1};

	quiet_epoch(&quiet);
	quiet_reference(&quiet, 2000);
	for (unsigned i = 0; i < 100; i++)
		quiet_reference(&quiet, 3000);
	CU_ASSERT_EQUAL(quiet.reference_best, 2000);
	for (unsigned i = 0; i < 500; i++)
		quiet_reference(&quiet, 3000);
	CU_ASSERT_EQUAL(quiet.reference_best, 3000);
	quiet_reference(&quiet, 2500);
	CU_ASSERT_EQUAL(quiet.reference_best, 2500);
	for (unsigned i = 0; i < 250; i++) /* wherever in the window it fell */
		quiet_reference(&quiet, 3000);
	CU_ASSERT_EQUAL(quiet.reference_best, 2500);
}

static void test_an_epoch_forgets_the_best_loop(void)
{
	struct quiet quiet;

	start(&quiet);
	CU_ASSERT_EQUAL(quiet_round_begin(&quiet), 0);
	quiet.reference_best = quiet.reference_recent = 1;
	quiet_epoch(&quiet);
	CU_ASSERT_EQUAL(quiet_round_begin(&quiet), 0);
	CU_ASSERT(quiet.reference_best > 1);
	stop(&quiet);
}

/* As if it had been on another CPU before, a faster one. */
static void test_another_cpu_has_another_best_loop(void)
{
	struct quiet quiet;

	start(&quiet);
	CU_ASSERT_EQUAL(quiet_round_begin(&quiet), 0);
	quiet.reference_best = quiet.reference_recent = 1;
	quiet.cpu = -1;
	CU_ASSERT_EQUAL(quiet_round_begin(&quiet), 0);
	CU_ASSERT_EQUAL(quiet.cpu, sched_getcpu());
	CU_ASSERT(quiet.reference_best > 1);
	stop(&quiet);
}

/* Some rounds pass, even on a host that is busy with other tests. */
static void test_quiet_rounds_pass(void)
{
	struct quiet quiet;
	unsigned passed = 0;

	start(&quiet);
	for (unsigned i = 0; i < 1000 && passed == 0; i++) {
		CU_ASSERT_EQUAL(quiet_round_begin(&quiet), 0);
		passed += !quiet_round_end(&quiet);
	}
	CU_ASSERT(passed > 0);
	stop(&quiet);
}

static void test_hidden_stat(void)
{
	struct quiet quiet;

	start(&quiet);
	close(quiet.stat_fd);
	quiet.stat_fd = -1;
	quiet.stolen = 0;
	quiet.stolen_read_ns = 0;
	CU_ASSERT_EQUAL(quiet_round_begin(&quiet), 0);
	CU_ASSERT_EQUAL(quiet.stolen, 0);
	stop(&quiet);
}

/* Time that is lost without a switch, to an interrupt say. Should a switch really come between, the next look tells. */
static bool loss_alone_counts(void)
{
	for (unsigned i = 0; i < 100; i++) {
		struct quiet_mark mark = quiet_mark();

		mark.wall_ns -= 50000000;
		if (!quiet_disturbed(&mark, 1e9))
			return false;
	}
	return true;
}

/* More than a hundredth of what was timed was lost, and somebody else ran; neither alone counts. */
static void test_marks(void)
{
	struct quiet_mark mark = quiet_mark(), other = mark;

	other.switches--;
	other.cpu_ns += 1000000000;
	CU_ASSERT_FALSE(quiet_disturbed(&other, 1e15)); /* a switch that cost nothing */
	other.cpu_ns = mark.cpu_ns;
	other.wall_ns -= 50000000;
	CU_ASSERT(quiet_disturbed(&other, 1e9));
	CU_ASSERT_FALSE(quiet_disturbed(&other, 1e15)); /* a sample of days would not mind */
	CU_ASSERT_FALSE(loss_alone_counts());
	other = mark;
	other.cpu = mark.cpu + 1;
	CU_ASSERT(quiet_disturbed(&other, 1e15));
}

static const struct unit_test tests[] = {
	{"stolen", test_stolen},
	{"stolen not told", test_stolen_not_told},
	{"pins where it is", test_pins_where_it_is},
	{"slow reference taints", test_slow_reference_taints},
	{"stolen time taints", test_stolen_time_taints},
	{"one tick is no theft", test_one_tick_is_no_theft},
	{"single ticks add up", test_single_ticks_add_up},
	{"rare ticks are forgotten", test_rare_ticks_are_forgotten},
	{"a counter that falls", test_a_counter_that_falls},
	{"the best loop ages", test_the_best_loop_ages},
	{"an epoch forgets the best loop", test_an_epoch_forgets_the_best_loop},
	{"another CPU has another best loop", test_another_cpu_has_another_best_loop},
	{"quiet rounds pass", test_quiet_rounds_pass},
	{"hidden stat", test_hidden_stat},
	{"marks", test_marks},
};

UNIT_MAIN("quiet", tests)
