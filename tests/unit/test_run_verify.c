/* What a child says beyond samples: the report of a verification, and why it failed. */
#include "calibrd/run.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <string.h>

#include "kernels/kernels.h"
#include "tests/unit/run_scripts.h"

/* --- words ------------------------------------------------------------------------------------------------------- */

static void add_whole(struct script *script, enum record_kind kind, const void *whole, size_t size)
{
	for (uint32_t at = 0; at < size; at += RECORD_PIECE)
		add(script, (struct record){.kind = kind, .u.piece = record_piece(whole, size, at)});
}

static int failure_in_words(const struct pc_why *words, struct pc_why *why)
{
	struct script script = {.code = 1};

	add_whole(&script, RECORD_WORDS, words, sizeof(*words));
	add(&script, end(-ENOEXEC));
	return outcome(&script, why);
}

/* Its own number and its own words, of any length that there is room for. */
static void test_words(void)
{
	struct pc_why words = {"the policy chooses stosq, which failed its trial on this host"}, why;

	CU_ASSERT_EQUAL(failure_in_words(&words, &why), -ENOEXEC);
	CU_ASSERT_STRING_EQUAL(why.text, words.text);
	memset(words.text, 'x', sizeof(words.text) - 1);
	CU_ASSERT_EQUAL(failure_in_words(&words, &why), -ENOEXEC);
	CU_ASSERT_STRING_EQUAL(why.text, words.text);
	CU_ASSERT_EQUAL(strlen(why.text), sizeof(why.text) - 1);
	words.text[0] = '\0';
	CU_ASSERT_EQUAL(failure_in_words(&words, &why), -ENOEXEC);
	CU_ASSERT(says(&why, strerror(ENOEXEC)));
}

/* What comes may be anything: the log must not mind. */
static void test_mean_words(void)
{
	struct pc_why words = {"one\nerror: \033[2J forged\177 \xc2\x85 J\xc3\xbcrgen"}, why;
	struct script script = {.code = 1};

	CU_ASSERT_EQUAL(failure_in_words(&words, &why), -ENOEXEC);
	CU_ASSERT_STRING_EQUAL(why.text, "one?error: ?[2J forged? ?? J\xc3\xbcrgen");
	memset(words.text, 0xe2, sizeof(words.text)); /* without an end */
	CU_ASSERT_EQUAL(failure_in_words(&words, &why), -ENOEXEC);
	CU_ASSERT_EQUAL(strlen(why.text), sizeof(why.text) - 1);

	add_whole(&script, RECORD_WORDS, &words, sizeof(words));
	script.records[1].u.piece.at = 0; /* one came twice */
	CU_ASSERT_EQUAL(outcome(&script, &why), -EPROTO);
	CU_ASSERT(says(&why, "number 1"));
	script.records[1].u.piece.at = 2 * RECORD_PIECE; /* one was lost */
	CU_ASSERT_EQUAL(outcome(&script, &why), -EPROTO);
	script.records[1].u.piece.at = RECORD_PIECE;
	script.records[4].u.piece.at = 5 * RECORD_PIECE; /* beyond the end */
	CU_ASSERT_EQUAL(outcome(&script, &why), -EPROTO);
	CU_ASSERT(says(&why, "number 4"));
	script.records[4].u.piece.at = 4 * RECORD_PIECE;
	add_whole(&script, RECORD_WORDS, &words, sizeof(words)); /* all of it twice */
	CU_ASSERT_EQUAL(outcome(&script, &why), -EPROTO);
	CU_ASSERT(says(&why, "number 5"));
}

/* --- a verification ---------------------------------------------------------------------------------------------- */

static struct verify_report report(void)
{
	struct verify_report made = {.count = VERIFY_SERIES, .passed = true};

	for (unsigned i = 0; i < VERIFY_SERIES; i++)
		made.series[i] = (struct verify_series){.told = {.intent = i / 2,
		                                                 .prior = i == 4 ? PC_UNKNOWN : 1 + i % 2,
		                                                 .sizes = 7,
		                                                 .mean = 0.01,
		                                                 .p95 = 0.02,
		                                                 .worst = 0.03,
		                                                 .worst_bytes = 4096,
		                                                 .gain = 1.5 + i,
		                                                 .best_gain = 2,
		                                                 .unhinted = NAN,
		                                                 .against = NAN,
		                                                 .passed = true},
		                                        .measured = 8,
		                                        .better = {.kernel = pc_kernel_count - 1, .chunk = 65536}};
	return made;
}

static struct script verification(const struct verify_report *made)
{
	struct script script = {.count = 0};

	add(&script, trial(0, TRIAL_PASSED));
	add(&script, progress());
	add_whole(&script, RECORD_REPORT, made, sizeof(*made));
	add(&script, end(0));
	return script;
}

static int verification_outcome(const struct script *script, struct pc_why *why)
{
	struct run run;
	int r;

	start_task(&run, ORDER_VERIFY, script);
	r = read_on(&run, PATIENCE_MS, why);
	CU_ASSERT_EQUAL(run.verified, r == 1);
	run_free(&run);
	return r;
}

static void test_verification(void)
{
	const struct verify_report made = report();
	struct script script = verification(&made);
	struct run run;
	struct pc_why why;

	start_task(&run, ORDER_VERIFY, &script);
	CU_ASSERT_EQUAL(read_on(&run, PATIENCE_MS, &why), 1);
	CU_ASSERT_TRUE_FATAL(run.verified);
	CU_ASSERT_EQUAL(run.passed, 1);
	CU_ASSERT_EQUAL(run.share, 0.25);
	CU_ASSERT_EQUAL(run.report.count, VERIFY_SERIES);
	CU_ASSERT_TRUE(run.report.passed);
	CU_ASSERT_EQUAL(run.report.series[4].told.gain, 5.5);
	CU_ASSERT(isnan(run.report.series[4].told.against));
	CU_ASSERT_EQUAL(run.report.series[0].better.chunk, 65536);
	run_free(&run);
}

static void test_verification_without_a_verdict(void)
{
	const struct verify_report made = report();
	struct script script = verification(&made);
	struct pc_why why;

	script.records[script.count - 2] = end(0); /* its last piece is missing */
	script.records[script.count - 2].number = (uint32_t)script.count - 2;
	script.count--;
	CU_ASSERT_EQUAL(verification_outcome(&script, &why), -EPROTO);
	CU_ASSERT(says(&why, "without a verdict"));
	script.count = 0;
	add(&script, end(0));
	CU_ASSERT_EQUAL(verification_outcome(&script, &why), -EPROTO);
	CU_ASSERT(says(&why, "without a verdict"));
}

static void test_mean_reports(void)
{
	struct verify_report made = report();
	struct script script;
	struct pc_why why;

	made.series[3].told.gain = 0;
	script = verification(&made);
	CU_ASSERT_EQUAL(verification_outcome(&script, &why), -EPROTO);
	made = report();
	script = verification(&made);
	script.records[3].u.piece.at = 0;
	CU_ASSERT_EQUAL(verification_outcome(&script, &why), -EPROTO);
	CU_ASSERT(says(&why, "number 3"));
}

/* A child that does something else than it was asked for. */
static void test_the_other_task(void)
{
	const struct verify_report made = report();
	struct script script = verification(&made);
	struct pc_why why;

	CU_ASSERT_EQUAL(outcome(&script, &why), -EPROTO);
	CU_ASSERT(says(&why, "number 2"));
	script = healthy();
	CU_ASSERT_EQUAL(verification_outcome(&script, &why), -EPROTO);
	CU_ASSERT(says(&why, "number 2"));
}

/* Somebody else holds the pipe open: who does not wait for its end is told all the same, and the child is gone. */
static void test_cut(void)
{
	const struct verify_report made = report();
	struct script script = verification(&made);
	struct run run;
	struct pc_why why;
	pid_t pid;

	script.ending = HANGS;
	for (int i = 0; i < 2; i++) {
		start_task(&run, ORDER_VERIFY, &script);
		pid = run.pid;
		while (!run.ended)
			CU_ASSERT_EQUAL_FATAL(read_on(&run, HANG_MS, &why), 0);
		CU_ASSERT_EQUAL(run_cut(&run, &why), i == 0 ? 1 : -ENOEXEC);
		CU_ASSERT_EQUAL(kill(pid, 0), -1);
		CU_ASSERT_EQUAL(run_cut(&run, &why), -ECHILD);
		run_free(&run);
		script.records[script.count - 1].u.end.error = -ENOEXEC;
	}
	CU_ASSERT(no_child_left());
}

static const struct unit_test tests[] = {
	{"words", test_words},
	{"mean words", test_mean_words},
	{"verification", test_verification},
	{"verification without a verdict", test_verification_without_a_verdict},
	{"mean reports", test_mean_reports},
	{"the other task", test_the_other_task},
	{"cut", test_cut},
};

UNIT_MAIN("run_verify", tests)
