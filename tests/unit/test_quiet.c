/* Stolen time as /proc/stat tells it, and the disturbances that a test can provoke. */
#include "calibrd/quiet.h"

#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calibrd/clock.h"
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
	quiet.stolen_read_ns = quiet.stolen_since_ns = clock_ns(CLOCK_MONOTONIC) - 20000000;
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

/* --- marks: the rule --------------------------------------------------------------------------------------------- */

/* A sample of 1 ms in 10 ms, most of which prepared it, that lost so much, in so many switches. */
static enum quiet_loss loses(uint64_t lost_ns, long switches)
{
	struct quiet_mark before = {.switches = 5, .cpu = 1, .cpu_ns = 70 * MS, .wall_ns = 900 * MS};
	struct quiet_mark after = {
		.switches = 5 + switches, .cpu = 1, .cpu_ns = 80 * MS - lost_ns, .wall_ns = 910 * MS};

	return quiet_judge(&before, &after, 1e6);
}

static void test_a_switch_may_cost_a_hundredth_of_the_sample(void)
{
	CU_ASSERT_EQUAL(loses(0, 1), QUIET_KEPT); /* a switch that cost nothing */
	CU_ASSERT_EQUAL(loses(10000, 1), QUIET_KEPT);
	CU_ASSERT_EQUAL(loses(10001, 1), QUIET_LOST);
	CU_ASSERT_EQUAL(loses(3 * MS, 2), QUIET_LOST);
}

/* Ticks of the clock, on hosts that do not count them as the thread's: everywhere, so in the preparation, too. */
static void test_interrupts_may_cost_a_hundredth_of_all(void)
{
	CU_ASSERT_EQUAL(loses(10001, 0), QUIET_KEPT);
	CU_ASSERT_EQUAL(loses(100000, 0), QUIET_KEPT);
	CU_ASSERT_EQUAL(loses(100001, 0), QUIET_LOST); /* the hypervisor */
}

/* Where nothing was lost the clock of the thread has run longer, by what the marks took. */
static void test_more_than_nothing(void)
{
	struct quiet_mark before = {.cpu_ns = 1000, .wall_ns = 1000}, after = {.cpu_ns = 2800, .wall_ns = 2000};

	CU_ASSERT_EQUAL(quiet_judge(&before, &after, 0), QUIET_KEPT);
	after.switches = 1;
	CU_ASSERT_EQUAL(quiet_judge(&before, &after, 0), QUIET_KEPT);
}

static void test_another_cpu(void)
{
	struct quiet_mark before = {.cpu = 1}, after = {.cpu = 2, .wall_ns = 50 * MS, .switches = 1};

	CU_ASSERT_EQUAL(quiet_judge(&before, &after, 1e15), QUIET_MOVED);
}

static void test_counts(void)
{
	struct quiet quiet = {.cpu = 0};

	quiet_count(&quiet, QUIET_KEPT);
	quiet_count(&quiet, QUIET_LOST);
	quiet_count(&quiet, QUIET_LOST);
	quiet_count(&quiet, QUIET_MOVED);
	CU_ASSERT_EQUAL(quiet.taints.samples, 4);
	CU_ASSERT_EQUAL(quiet.taints.lost, 2);
	CU_ASSERT_EQUAL(quiet.taints.moved, 1);
}

static void test_rounds_are_counted_by_reason(void)
{
	struct quiet quiet;

	start(&quiet);
	CU_ASSERT_EQUAL(quiet.taints.cpu, quiet.cpu);
	CU_ASSERT_EQUAL(quiet_round_begin(&quiet), 0);
	close(quiet.stat_fd);
	quiet.stat_fd = -1; /* no theft for now */
	quiet.reference_best /= 3;
	CU_ASSERT(quiet_round_end(&quiet));
	CU_ASSERT_EQUAL(quiet.taints.rounds, 1);
	CU_ASSERT_EQUAL(quiet.taints.slow, 1);
	quiet.cpu = -1; /* as if it had been elsewhere; slow still, and counted once */
	CU_ASSERT(quiet_round_end(&quiet));
	CU_ASSERT_EQUAL(quiet.taints.rounds, 2);
	CU_ASSERT_EQUAL(quiet.taints.slow, 1);
	CU_ASSERT_EQUAL(quiet.taints.strayed, 1);
	stop(&quiet);
}

/* --- marks: provoked --------------------------------------------------------------------------------------------- */

/* Were the readings in another order, each pair of marks would show a loss of what they themselves take. */
static void test_marks_cost_a_sample_nothing(void)
{
	unsigned kept = 0;

	for (unsigned i = 0; i < 1000; i++) {
		struct quiet_mark mark = quiet_mark();

		kept += quiet_disturbed(&mark, 0) == QUIET_KEPT;
	}
	CU_ASSERT(kept > 0);
}

/* Pinned, as samples are: a sleeper that wakes up on another CPU has moved. */
static void test_a_sleep_is_lost_time(void)
{
	struct quiet quiet;
	struct quiet_mark mark;

	start(&quiet);
	mark = quiet_mark();
	usleep(20000);
	CU_ASSERT_EQUAL(quiet_disturbed(&mark, 1e6), QUIET_LOST);
	stop(&quiet);
}

/* Part of a sample that takes long: others may have had their turn, and nobody minds. */
static void test_a_short_sleep_in_a_long_sample(void)
{
	struct quiet quiet;
	struct quiet_mark mark;

	start(&quiet);
	mark = quiet_mark();
	usleep(1000);
	CU_ASSERT_EQUAL(quiet_disturbed(&mark, 1e15), QUIET_KEPT);
	stop(&quiet);
}

/* A child that stops itself in the middle of a sample; its exit status is what it thinks of that. */
static void test_a_stop_is_lost_time(void)
{
	int status = -1;
	pid_t pid = fork();

	CU_ASSERT_FATAL(pid >= 0);
	if (pid == 0) {
		struct quiet quiet;
		struct quiet_mark mark;

		start(&quiet);
		mark = quiet_mark();
		raise(SIGSTOP);
		_exit((int)quiet_disturbed(&mark, 1e6));
	}
	CU_ASSERT_EQUAL(waitpid(pid, &status, WUNTRACED), pid);
	CU_ASSERT(WIFSTOPPED(status));
	usleep(20000);
	kill(pid, SIGCONT);
	CU_ASSERT_EQUAL(waitpid(pid, &status, 0), pid);
	CU_ASSERT(WIFEXITED(status));
	CU_ASSERT_EQUAL(WEXITSTATUS(status), QUIET_LOST);
}

static void test_all_lost_time_adds_up(void)
{
	struct quiet quiet;
	struct taints taints;

	start(&quiet);
	usleep(50000);
	quiet_taints(&quiet, &taints);
	CU_ASSERT(taints.lost_ms >= 49);
	CU_ASSERT(taints.passed_ms >= taints.lost_ms);
	CU_ASSERT_EQUAL(taints.cpu, quiet.cpu);
	stop(&quiet);
}

/* One's own rests are neither lost nor passed. */
static void test_a_rest_is_not_lost_time(void)
{
	struct quiet quiet;
	struct taints taints;
	uint64_t before = clock_ns(CLOCK_MONOTONIC_RAW), passed_ms;

	start(&quiet);
	usleep(50000);
	quiet_rested(&quiet, 49 * MS); /* a millisecond for a clock that NTP slews */
	CU_ASSERT(quiet.stolen_since_ns >= before);
	quiet_taints(&quiet, &taints);
	passed_ms = (clock_ns(CLOCK_MONOTONIC_RAW) - before) / MS;
	CU_ASSERT(taints.passed_ms + 49 <= passed_ms + 1);
	CU_ASSERT(taints.passed_ms >= 9); /* warming up is work */
	CU_ASSERT(taints.lost_ms <= taints.passed_ms);
	stop(&quiet);
}

static void test_a_migration(void)
{
	struct quiet quiet;
	struct quiet_mark mark;
	cpu_set_t other;

	start(&quiet);
	other = allowed;
	CPU_CLR((size_t)quiet.cpu, &other);
	mark = quiet_mark();
	if (CPU_COUNT(&other) == 0)
		unit_skip("one CPU");
	else if (sched_setaffinity(0, sizeof(other), &other) == 0)
		CU_ASSERT_EQUAL(quiet_disturbed(&mark, 1e15), QUIET_MOVED);
	stop(&quiet);
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
	{"a switch may cost a hundredth of the sample", test_a_switch_may_cost_a_hundredth_of_the_sample},
	{"interrupts may cost a hundredth of all", test_interrupts_may_cost_a_hundredth_of_all},
	{"more than nothing", test_more_than_nothing},
	{"another CPU", test_another_cpu},
	{"counts", test_counts},
	{"rounds are counted by reason", test_rounds_are_counted_by_reason},
	{"marks cost a sample nothing", test_marks_cost_a_sample_nothing},
	{"a sleep is lost time", test_a_sleep_is_lost_time},
	{"a short sleep in a long sample", test_a_short_sleep_in_a_long_sample},
	{"a stop is lost time", test_a_stop_is_lost_time},
	{"all lost time adds up", test_all_lost_time_adds_up},
	{"a rest is not lost time", test_a_rest_is_not_lost_time},
	{"a migration", test_a_migration},
};

UNIT_MAIN("quiet", tests)
