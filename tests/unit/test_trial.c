/* Kernels that fault in every way, and those that do not; and what a trial leaves behind in its caller: nothing. */
#include "calibrd/trial.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>

#include "tests/unit/faulty_kernels.h"
#include "tests/unit/harness.h"

/* Long enough for any honest outcome, and what a hanging kernel is given. */
enum { LONG_MS = 60000, SHORT_MS = 150 };

enum { SIGILL_ROW, SEGV_ROW, WRONG_ROW, CANARY_ROW, HANG_ROW };
static const struct pc_kernel faulty[] = {PC_FAULTY_ROWS};

static void test_faults(void)
{
	CU_ASSERT_EQUAL(trial_run(&faulty[SIGILL_ROW], LONG_MS), TRIAL_FAULTED);
	CU_ASSERT_EQUAL(trial_run(&faulty[SEGV_ROW], LONG_MS), TRIAL_FAULTED);
}

static void test_wrong_bytes(void)
{
	CU_ASSERT_EQUAL(trial_run(&faulty[WRONG_ROW], LONG_MS), TRIAL_WRONG);
	CU_ASSERT_EQUAL(trial_run(&faulty[CANARY_ROW], LONG_MS), TRIAL_WRONG);
}

static void does_nothing(void *dst, size_t len)
{
	(void)dst;
	(void)len;
}

/* As an emulator with 512-byte lines would: what lies before is lost. */
static void clears_whole_lines(void *dst, size_t len)
{
	uintptr_t from = (uintptr_t)dst & ~(uintptr_t)63;

	if (len > 0)
		memset((void *)from, 0, (size_t)((uintptr_t)dst + len - from));
}

/* Right for all small lengths. */
static void stops_early(void *dst, size_t len)
{
	memset(dst, 0, len > 300000 ? len - 1 : len);
}

/* Right in the middle of an area, but it reaches beyond a page at the end of it: only the guard page tells. */
static void reads_ahead(void *dst, size_t len)
{
	memset(dst, 0, len);
	if (len == 1000)
		(void)*((volatile const char *)dst + len + 64);
}

/* Right everywhere, save before an extent that ends with its page. */
static void clears_backwards(void *dst, size_t len)
{
	memset(dst, 0, len);
	if (len == 1000 && ((uintptr_t)dst + len) % 4096 == 0)
		*((volatile char *)dst - 1) = 0;
}

static void test_subtle_mistakes(void)
{
	void (*const clear[])(void *, size_t) = {does_nothing, clears_whole_lines, stops_early, clears_backwards};
	struct pc_kernel kernel = faulty[WRONG_ROW];

	for (size_t i = 0; i < sizeof(clear) / sizeof(clear[0]); i++) {
		kernel.clear = clear[i];
		CU_ASSERT_EQUAL(trial_run(&kernel, LONG_MS), TRIAL_WRONG);
	}
	kernel.clear = reads_ahead;
	CU_ASSERT_EQUAL(trial_run(&kernel, LONG_MS), TRIAL_FAULTED);
}

static void test_hang(void)
{
	CU_ASSERT_EQUAL(trial_run(&faulty[HANG_ROW], SHORT_MS), TRIAL_HUNG);
}

static void test_every_runnable_kernel_passes(void)
{
	for (unsigned k = 0; k < pc_kernel_count; k++) {
		if (!pc_kernel_runs(&pc_kernels[k])) {
			unit_skip("this CPU has no %s", pc_kernels[k].name);
			continue;
		}
		CU_ASSERT_EQUAL(trial_run(&pc_kernels[k], LONG_MS), TRIAL_PASSED);
	}
}

/* --- what it leaves behind --------------------------------------------------------------------------------------- */

static volatile sig_atomic_t signals_seen;

static void on_signal(int number)
{
	(void)number;
	signals_seen++;
}

static unsigned open_files(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(folder);
	while (readdir(folder) != NULL)
		count++;
	closedir(folder);
	return count;
}

static void run_all_outcomes(void)
{
	CU_ASSERT_EQUAL(trial_run(&faulty[SIGILL_ROW], LONG_MS), TRIAL_FAULTED);
	CU_ASSERT_EQUAL(trial_run(&faulty[WRONG_ROW], LONG_MS), TRIAL_WRONG);
	CU_ASSERT_EQUAL(trial_run(&faulty[HANG_ROW], SHORT_MS), TRIAL_HUNG);
	CU_ASSERT_EQUAL(trial_run(&pc_kernels[0], LONG_MS), TRIAL_PASSED);
}

static void test_no_zombie_and_no_descriptor(void)
{
	unsigned before = open_files();

	run_all_outcomes();
	CU_ASSERT_EQUAL(open_files(), before);
	CU_ASSERT_EQUAL(waitpid(-1, NULL, WNOHANG), -1);
	CU_ASSERT_EQUAL(errno, ECHILD);
}

/* The child's own signals must not reach the handlers it inherited either: they would hide what happened. */
static void test_signals_stay_the_callers(void)
{
	const int numbers[] = {SIGSEGV, SIGILL, SIGUSR1};
	struct sigaction mine = {.sa_handler = on_signal}, old[3], found;
	sigset_t blocked, before, after;

	for (int i = 0; i < 3; i++)
		CU_ASSERT_EQUAL_FATAL(sigaction(numbers[i], &mine, &old[i]), 0);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR2);
	sigaddset(&blocked, SIGSEGV);
	sigprocmask(SIG_BLOCK, &blocked, &before);
	run_all_outcomes();
	CU_ASSERT_EQUAL(trial_run(&faulty[SEGV_ROW], LONG_MS), TRIAL_FAULTED);
	sigprocmask(SIG_SETMASK, &before, &after);
	CU_ASSERT_EQUAL(sigismember(&after, SIGUSR2), 1);
	CU_ASSERT_EQUAL(sigismember(&after, SIGSEGV), 1);
	CU_ASSERT_EQUAL(sigismember(&after, SIGUSR1), sigismember(&before, SIGUSR1));
	for (int i = 0; i < 3; i++) {
		sigaction(numbers[i], &old[i], &found);
		CU_ASSERT_PTR_EQUAL((void *)found.sa_handler, (void *)on_signal);
	}
	CU_ASSERT_EQUAL(signals_seen, 0);
}

/* A handler without SA_RESTART interrupts the wait again and again. */
static void test_interrupted_wait_goes_on(void)
{
	const struct itimerval often = {{0, 10000}, {0, 10000}}, never = {0};
	struct sigaction mine = {.sa_handler = on_signal}, old;

	sigaction(SIGALRM, &mine, &old);
	setitimer(ITIMER_REAL, &often, NULL);
	CU_ASSERT_EQUAL(trial_run(&faulty[HANG_ROW], SHORT_MS), TRIAL_HUNG);
	setitimer(ITIMER_REAL, &never, NULL);
	sigaction(SIGALRM, &old, NULL);
	CU_ASSERT(signals_seen > 0);
}

static const struct unit_test tests[] = {
	{"faults", test_faults},
	{"wrong bytes", test_wrong_bytes},
	{"subtle mistakes", test_subtle_mistakes},
	{"hang", test_hang},
	{"every runnable kernel passes", test_every_runnable_kernel_passes},
	{"no zombie and no descriptor", test_no_zombie_and_no_descriptor},
	{"signals stay the caller's", test_signals_stay_the_callers},
	{"interrupted wait goes on", test_interrupted_wait_goes_on},
};

UNIT_MAIN("trial", tests)
