/*
 * Measuring as the parent sees it, with children that are healthy, broken or mean. This program is its own
 * measuring process: run_start() executes it anew with --worker.
 */
#include "calibrd/run.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "kernels/kernels.h"
#include "tests/unit/run_scripts.h"

/* --- healthy ----------------------------------------------------------------------------------------------------- */

static void check_healthy(struct run *run)
{
	CU_ASSERT_EQUAL(run->passed, 1);
	CU_ASSERT_EQUAL(run->faulted, 0);
	CU_ASSERT_EQUAL(run->epoch, 1);
	CU_ASSERT_EQUAL(run->epochs, 3);
	CU_ASSERT_EQUAL(run->share, 0.25);
	CU_ASSERT_EQUAL(run_knee(run), 8 << 20);
	CU_ASSERT_EQUAL(run_tainted(run), 0.25);
	CU_ASSERT_EQUAL_FATAL(run->probes.count, 1);
	CU_ASSERT_EQUAL(run->probes.probes[0].looks[1], 11);
	CU_ASSERT_EQUAL_FATAL(run->data.count, 1);
	CU_ASSERT_EQUAL_FATAL(run->data.series[0].count, 3);
	CU_ASSERT_EQUAL(run->data.series[0].rounds[2].ns, 105);
	CU_ASSERT_EQUAL(run->taints.lost, 2);
	CU_ASSERT_EQUAL(run->taints.cpu, 1);
	CU_ASSERT_EQUAL(run->pid, -1);
}

/* In one piece, and in pieces that never are a record. */
static void test_healthy(void)
{
	const size_t steps[] = {0, 1, 7, sizeof(struct record) - 1, sizeof(struct record) + 1};

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct script script = healthy();
		struct run run;
		struct pc_why why;

		script.step = steps[i];
		start(&run, &script);
		CU_ASSERT_EQUAL(read_on(&run, PATIENCE_MS, &why), 1);
		check_healthy(&run);
		CU_ASSERT_EQUAL(run_read(&run, &why), -ECHILD); /* nobody is left to wait for, or to kill */
		run_free(&run);
		CU_ASSERT_EQUAL(run.records, -1);
		CU_ASSERT_EQUAL(run.data.count, 0);
		CU_ASSERT(no_child_left());
	}
}

static void test_trials(void)
{
	struct script script = {.count = 0};
	struct run run;
	struct pc_why why;

	if (pc_kernel_count < 4) {
		unit_skip("this build has %u kernels", pc_kernel_count);
		return;
	}
	add(&script, trial(0, TRIAL_PASSED));
	add(&script, trial(1, TRIAL_WRONG));
	add(&script, trial(2, TRIAL_HUNG));
	add(&script, trial(3, TRIAL_FAULTED));
	add(&script, end(0));
	start(&run, &script);
	CU_ASSERT_EQUAL(read_on(&run, PATIENCE_MS, &why), 1);
	CU_ASSERT_EQUAL(run.passed, 1);
	CU_ASSERT_EQUAL(run.faulted, 14);
	run_free(&run);
}

/* --- broken ------------------------------------------------------------------------------------------------------ */

static void test_wrong_numbers(void)
{
	struct script script = healthy();
	struct pc_why why;

	script.records[4].number = 5; /* one was lost */
	CU_ASSERT_EQUAL(outcome(&script, &why), -EPROTO);
	CU_ASSERT(says(&why, "number 4"));
	script.records[4].number = 3; /* one came twice */
	CU_ASSERT_EQUAL(outcome(&script, &why), -EPROTO);
	CU_ASSERT(no_child_left());
}

static void test_garbage(void)
{
	struct script script = {.count = 8};
	struct pc_why why;

	for (int byte = 0; byte < 256; byte += 51) {
		memset(script.records, byte, sizeof(script.records));
		CU_ASSERT_EQUAL(outcome(&script, &why), -EPROTO);
		CU_ASSERT(says(&why, "number 0"));
	}
}

static void test_senseless_field(void)
{
	struct script script = healthy();
	struct pc_why why;

	script.records[5].u.sample.key.kernel = 255;
	CU_ASSERT_EQUAL(outcome(&script, &why), -EPROTO);
	CU_ASSERT(says(&why, "number 5"));
}

/* Only what has passed its trial is timed, and each is tried once. */
static void test_untried_kernels(void)
{
	struct script untried = {.count = 0}, faulted = {.count = 0}, twice = {.count = 0};
	struct pc_why why;

	add(&untried, sample(1, false));
	add(&untried, end(0));
	CU_ASSERT_EQUAL(outcome(&untried, &why), -EPROTO);
	CU_ASSERT(says(&why, "number 0"));
	add(&faulted, trial(0, TRIAL_HUNG));
	add(&faulted, sample(1, false));
	add(&faulted, end(0));
	CU_ASSERT_EQUAL(outcome(&faulted, &why), -EPROTO);
	CU_ASSERT(says(&why, "number 1"));
	add(&twice, trial(0, TRIAL_PASSED));
	add(&twice, trial(0, TRIAL_HUNG));
	add(&twice, end(0));
	CU_ASSERT_EQUAL(outcome(&twice, &why), -EPROTO);
}

static void test_records_after_the_end(void)
{
	struct script script = healthy();
	struct pc_why why;

	add(&script, sample(1, false));
	CU_ASSERT_EQUAL(outcome(&script, &why), -EPROTO);
	script.count--;
	add(&script, end(0));
	CU_ASSERT_EQUAL(outcome(&script, &why), -EPROTO);
	script.count--;
	script.part = 5;
	CU_ASSERT_EQUAL(outcome(&script, &why), -EPROTO);
}

static void test_truncated(void)
{
	struct script script = healthy();
	struct pc_why why;

	script.count--;
	CU_ASSERT_EQUAL(outcome(&script, &why), -ECHILD);
	CU_ASSERT(says(&why, "ended early with exit code 0"));
	script.part = sizeof(struct record) - 1;
	CU_ASSERT_EQUAL(outcome(&script, &why), -EPROTO);
	CU_ASSERT(says(&why, "within a record"));
}

static void test_early_death(void)
{
	struct script script = {.ending = EXITS, .code = 127};
	struct pc_why why;

	CU_ASSERT_EQUAL(outcome(&script, &why), -ECHILD);
	CU_ASSERT(says(&why, "exit code 127"));
	script = healthy();
	script.count -= 3;
	script.ending = KILLS_ITSELF;
	script.code = SIGSEGV;
	CU_ASSERT_EQUAL(outcome(&script, &why), -ECHILD);
	CU_ASSERT(says(&why, "signal 11"));
	CU_ASSERT(no_child_left());
}

/* It said that all was well, and then was not. */
static void test_late_death(void)
{
	struct script script = healthy();
	struct pc_why why;

	script.code = 1;
	CU_ASSERT_EQUAL(outcome(&script, &why), -ECHILD);
	CU_ASSERT(says(&why, "exit code 1"));
	script.ending = KILLS_ITSELF;
	script.code = SIGABRT;
	CU_ASSERT_EQUAL(outcome(&script, &why), -ECHILD);
	CU_ASSERT(says(&why, "signal 6"));
}

static void test_error_is_passed_on(void)
{
	struct script script = {.code = 1};
	struct pc_why why;

	add(&script, end(-ENOMEM));
	CU_ASSERT_EQUAL(outcome(&script, &why), -ENOMEM);
	CU_ASSERT(says(&why, strerror(ENOMEM)));
	script.records[0].u.end.error = INT32_MIN;
	CU_ASSERT_EQUAL(outcome(&script, &why), -EPROTO);
}

/* --- hanging ----------------------------------------------------------------------------------------------------- */

static void test_half_a_record_and_silence(void)
{
	struct script script = healthy();
	struct run run;
	struct pc_why why;
	pid_t pid;
	int records;

	script.count = 1;
	script.part = sizeof(struct record) / 2;
	script.ending = HANGS;
	start(&run, &script);
	pid = run.pid;
	records = run.records;
	CU_ASSERT_EQUAL(read_on(&run, HANG_MS, &why), 0);
	CU_ASSERT_EQUAL(run_read(&run, &why), 0); /* and it does not wait */
	CU_ASSERT_EQUAL(kill(pid, 0), 0);
	run_free(&run);
	CU_ASSERT_EQUAL(kill(pid, 0), -1); /* killed and reaped */
	CU_ASSERT_EQUAL(fcntl(records, F_GETFD), -1);
	CU_ASSERT(no_child_left());
}

/* An end of file is no end of the child: nobody may wait for it. */
static void test_closes_and_hangs(void)
{
	struct script script = healthy();
	struct pc_why why;

	script.ending = CLOSES_AND_HANGS;
	CU_ASSERT_EQUAL(outcome(&script, &why), -ECHILD);
	CU_ASSERT(says(&why, "signal 9"));
	CU_ASSERT(no_child_left());
}

static void test_free_twice(void)
{
	struct run run = {.pid = -1, .records = -1, .orders = -1};

	run_free(&run);
	run_free(&run);
	CU_ASSERT_EQUAL(run.pid, -1);
}

/* --- what it adds up to ------------------------------------------------------------------------------------------ */

static uint64_t median_knee(const unsigned *mib, size_t count)
{
	struct run run = {.knee_count = count};

	for (size_t i = 0; i < count; i++)
		run.knees[i] = (uint64_t)mib[i] << 20;
	return run_knee(&run) >> 20;
}

static void test_knee(void)
{
	struct run run = {.knee_count = 1, .knees = {4095}};

	CU_ASSERT_EQUAL(median_knee(NULL, 0), 0);
	CU_ASSERT_EQUAL(median_knee((const unsigned[]){8}, 1), 8);
	CU_ASSERT_EQUAL(median_knee((const unsigned[]){12, 4, 6}, 3), 6);
	CU_ASSERT_EQUAL(median_knee((const unsigned[]){4, 8}, 2), 6);
	CU_ASSERT_EQUAL(median_knee((const unsigned[]){0, 0, 8}, 3), 0);
	CU_ASSERT_EQUAL(median_knee((const unsigned[]){0, 8, 6}, 3), 7);
	/* Half of the epochs saw none: half of a knee is a size that nobody saw. */
	CU_ASSERT_EQUAL(median_knee((const unsigned[]){0, 8, 0, 8}, 4), 8);
	CU_ASSERT_EQUAL(run_knee(&run), 0); /* whole pages */
}

static void test_more_knees_than_epochs(void)
{
	struct script script = {.count = 0};
	struct run run;
	struct pc_why why;

	for (unsigned i = 0; i < 70; i++)
		add(&script, knee(8 << 20, i % COST_EPOCHS));
	add(&script, end(0));
	start(&run, &script);
	CU_ASSERT_EQUAL(read_on(&run, PATIENCE_MS, &why), 1);
	CU_ASSERT_EQUAL(run.knee_count, COST_EPOCHS);
	run_free(&run);
}

static void test_tainted_share_of_nothing(void)
{
	CU_ASSERT_EQUAL(run_tainted(&(struct run){.pid = -1}), 0);
}

/* --- this program executed anew ---------------------------------------------------------------------------------- */

static const struct order the_order = {.magic = ORDER_MAGIC,
                                       .effort = EFFORT_QUICK,
                                       .memory_bytes = 123,
                                       .seed = UINT64_MAX,
                                       .excluded = 5,
                                       .nice = -3};

/* The child's part: exit codes say what was wrong. */
static int be_worker(void)
{
	struct script script = healthy();
	struct order order, expected = the_order;
	sigset_t mask;

	expected.parent = getppid();
	if (read(STDIN_FILENO, &order, sizeof(order)) != (ssize_t)sizeof(order) ||
	    memcmp(&order, &expected, sizeof(order)) != 0)
		return 50;
	sigprocmask(SIG_BLOCK, NULL, &mask);
	if (sigismember(&mask, SIGTERM))
		return 51;
	for (int fd = 3; fd < 64; fd++)
		if (fcntl(fd, F_GETFD) >= 0)
			return fd;
	play(&script, STDOUT_FILENO);
}

/* The parent blocks signals, as the daemon does; the child must get neither that nor any descriptor but its own. */
static void test_start(void)
{
	struct run run;
	struct pc_why why;
	sigset_t blocked, before;

	for (int fd = 3; fd < 64; fd++)
		fcntl(fd, F_SETFD, FD_CLOEXEC); /* what whoever started this test left open */
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGTERM);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	CU_ASSERT_EQUAL(run_start(&run, &the_order, &why), 0);
	CU_ASSERT_EQUAL(read_on(&run, PATIENCE_MS, &why), 1);
	sigprocmask(SIG_SETMASK, &before, NULL);
	CU_ASSERT_STRING_EQUAL(why.text, "");
	check_healthy(&run);
	run_free(&run);
	CU_ASSERT(no_child_left());
}

static const struct unit_test tests[] = {
	{"healthy", test_healthy},
	{"trials", test_trials},
	{"wrong numbers", test_wrong_numbers},
	{"garbage", test_garbage},
	{"senseless field", test_senseless_field},
	{"untried kernels", test_untried_kernels},
	{"records after the end", test_records_after_the_end},
	{"truncated", test_truncated},
	{"early death", test_early_death},
	{"late death", test_late_death},
	{"error is passed on", test_error_is_passed_on},
	{"half a record and silence", test_half_a_record_and_silence},
	{"closes and hangs", test_closes_and_hangs},
	{"free twice", test_free_twice},
	{"knee", test_knee},
	{"more knees than epochs", test_more_knees_than_epochs},
	{"tainted share of nothing", test_tainted_share_of_nothing},
	{"start", test_start},
};

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--worker") == 0)
		return be_worker();
	return unit_main("run", tests, sizeof(tests) / sizeof(tests[0]));
}
