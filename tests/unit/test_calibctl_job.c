/* What calibrd's states and the ends of its jobs mean. */
#include "calibctl/job.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/harness.h"

static struct client_view at(const char *state, uint64_t job)
{
	struct client_view view = {.job = job};

	snprintf(view.state, sizeof(view.state), "%s", state);
	return view;
}

static bool is_pending(const char *state, uint64_t job)
{
	struct client_view view = at(state, job);

	return job_is_pending(&view);
}

static void pending(void)
{
	static const char *const busy[] = {"starting", "waiting", "calibrating", "verifying"};

	for (size_t i = 0; i < sizeof(busy) / sizeof(busy[0]); i++)
		CU_ASSERT_TRUE(is_pending(busy[i], 0));
	struct client_view waits = at("waiting", 0);

	waits.generation = 7; /* there is a policy: what waits is a better one */
	CU_ASSERT_FALSE(job_is_pending(&waits));
	CU_ASSERT_FALSE(is_pending("idle", 0));
	CU_ASSERT_FALSE(is_pending("failed", 0));
	CU_ASSERT_TRUE(is_pending("idle", 3));
	/* A newer daemon's: only its job tells. */
	CU_ASSERT_FALSE(is_pending("pondering", 0));
	CU_ASSERT_TRUE(is_pending("pondering", 1));
}

static void in_words(void)
{
	struct client_view view = at("calibrating", 3);
	char words[JOB_WORDS];

	view.progress = 0.43;
	snprintf(view.phase, sizeof(view.phase), "pass 2 of 4");
	job_words(&view, words);
	CU_ASSERT_STRING_EQUAL(words, "calibrating, 43 %, pass 2 of 4");
	view.phase[0] = '\0';
	job_words(&view, words);
	CU_ASSERT_STRING_EQUAL(words, "calibrating, 43 %");
	view = at("waiting", 0);
	snprintf(view.phase, sizeof(view.phase), "left over");
	job_words(&view, words);
	CU_ASSERT_STRING_EQUAL(words, "waiting");
	/* The longest phase is cut nowhere. */
	view = at("calibrating", 0);
	view.progress = 1;
	memset(view.phase, 'y', sizeof(view.phase) - 1);
	job_words(&view, words);
	CU_ASSERT_STRING_EQUAL(words + strlen(words) - strlen(view.phase), view.phase);
}

static void but_for_figures(void)
{
	CU_ASSERT_TRUE(job_says_same("", ""));
	CU_ASSERT_TRUE(job_says_same("busy in 83.8 % of the time", "busy in 6 % of the time"));
	CU_ASSERT_TRUE(job_says_same("tried again in 4 min", "tried again in 12 min"));
	CU_ASSERT_FALSE(job_says_same("busy in 83.8 % of the time", "busy in 83.8 % of the times"));
	CU_ASSERT_FALSE(job_says_same("on battery", "the host is busy"));
	CU_ASSERT_FALSE(job_says_same("", "on battery"));
	CU_ASSERT_FALSE(job_says_same("12", "12 a"));
}

static enum outcome judge(bool verifying, const char *outcome)
{
	struct client_end end = {.verifying = verifying};

	snprintf(end.outcome, sizeof(end.outcome), "%s", outcome);
	return job_judge(&end);
}

static void ends(void)
{
	CU_ASSERT_EQUAL(judge(false, "good"), DONE);
	CU_ASSERT_EQUAL(judge(false, "emulated"), DONE);
	CU_ASSERT_EQUAL(judge(false, "noisy"), PROBLEM);
	CU_ASSERT_EQUAL(judge(false, "failed"), PROBLEM);
	CU_ASSERT_EQUAL(judge(false, "cancelled"), PROBLEM);
	CU_ASSERT_EQUAL(judge(true, "passed"), DONE);
	CU_ASSERT_EQUAL(judge(true, "beyond"), PROBLEM);
	CU_ASSERT_EQUAL(judge(true, "failed"), UNREADABLE);
	CU_ASSERT_EQUAL(judge(true, "cancelled"), PROBLEM);
	CU_ASSERT_EQUAL(judge(false, ""), PROBLEM);
	CU_ASSERT_EQUAL(judge(false, "splendid"), PROBLEM);
}

static void seconds(void)
{
	static const char *const wrong[] = {"",    "x",    "-1",  "+1", "1s", "0x10",  "1e3",     "inf",
	                                    "nan", "1.2.", "1 2", " 1", ".",  "1.2.3", "99999999"};
	double value = -1;

	CU_ASSERT_TRUE(job_parse_seconds("60", &value));
	CU_ASSERT_EQUAL(value, 60);
	CU_ASSERT_TRUE(job_parse_seconds("0", &value));
	CU_ASSERT_EQUAL(value, 0);
	CU_ASSERT_TRUE(job_parse_seconds("0.5", &value));
	CU_ASSERT_EQUAL(value, 0.5);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		CU_ASSERT_FALSE(job_parse_seconds(wrong[i], &value));
		if (job_parse_seconds(wrong[i], &value))
			printf("\n\"%s\" was taken\n", wrong[i]);
	}
}

static const struct unit_test tests[] = {
	{"pending", pending}, {"in_words", in_words}, {"but_for_figures", but_for_figures},
	{"ends", ends},       {"seconds", seconds},
};

UNIT_MAIN("calibctl_job", tests)
