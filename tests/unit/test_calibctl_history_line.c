/* The time line: order, sums and words, of records made by hand. */
#include "calibctl/history_line.h"

#include <math.h>
#include <string.h>

#include "pageclear/policy.h"
#include "tests/unit/harness.h"

static struct history history;

static char *copy(const char *text)
{
	char *own = strdup(text);

	CU_ASSERT_PTR_NOT_NULL_FATAL(own);
	return own;
}

/* Calibration 1 and generation 7 at 1060, verification 3 at 2000, calibration 2 failed at 3000. */
static void start(void)
{
	history = (struct history){.calibration_count = 2, .published_count = 1, .verification_count = 1};
	history.calibrations = calloc(2, sizeof(*history.calibrations));
	history.published = calloc(1, sizeof(*history.published));
	history.verifications = calloc(1, sizeof(*history.verifications));
	CU_ASSERT_FATAL(history.calibrations && history.published && history.verifications);
	history.calibrations[0] = (struct calibration){.id = 2,
	                                               .state = CALIBRATION_FAILED,
	                                               .topology = "aaaaaaaaaaaa",
	                                               .effort = "quick",
	                                               .reasons = copy("the child was killed"),
	                                               .started = 2990,
	                                               .finished = 3000};
	history.calibrations[1] = (struct calibration){.id = 1,
	                                               .state = CALIBRATION_DONE,
	                                               .topology = "aaaaaaaaaaaa",
	                                               .effort = "standard",
	                                               .quality = "good",
	                                               .reasons = copy("1 % dropped"),
	                                               .faulted = copy("sse2nt"),
	                                               .started = 1000,
	                                               .finished = 1060,
	                                               .knee_bytes = 8 << 20};
	history.published[0] = (struct published){
		.generation = 7, .calibration = 1, .at = 1060, .source = "calibration", .topology = "aaaaaaaaaaaa"};
	history.verifications[0].verification = (struct verification){.id = 3,
	                                                              .generation = 7,
	                                                              .topology = "bbbbbbbbbbbb",
	                                                              .effort = "quick",
	                                                              .at = 2000,
	                                                              .passed = true,
	                                                              .against = copy("/lib/other.so")};
}

static void expect(size_t event, const char *expected)
{
	char text[HISTORY_WORDS] = "no such event";

	if (event < history.count)
		history_words(&history, &history.events[event], text);
	CU_ASSERT_STRING_EQUAL(text, expected);
	if (strcmp(text, expected) != 0)
		printf("\n\"%s\" is not \"%s\"\n", text, expected);
}

static void newest_first(void)
{
	start();
	CU_ASSERT_EQUAL(history_arrange(&history, SIZE_MAX), 0);
	CU_ASSERT_EQUAL_FATAL(history.count, 4);
	CU_ASSERT_STRING_EQUAL(history.topology, "aaaaaaaaaaaa");
	expect(0, "calibration 2, quick effort: failed after 10 s (the child was killed)");
	expect(1, "verification 3 of generation 7, quick effort: passed; against /lib/other.so; "
	          "another topology: bbbbbbbbbbbb");
	expect(2, "generation 7: from calibration 1"); /* of the same second: what follows from it is newer */
	expect(3, "calibration 1, standard effort: 60 s, knee 8 MiB, quality good (1 % dropped); failed their "
	          "trial: sse2nt");
	history_release(&history);
}

static void at_most(void)
{
	start();
	CU_ASSERT_EQUAL(history_arrange(&history, 2), 0);
	CU_ASSERT_EQUAL(history.count, 2);
	CU_ASSERT_PTR_NOT_NULL(history.events[1].verification);
	history_release(&history);
}

static void nothing(void)
{
	history = (struct history){0};
	CU_ASSERT_EQUAL(history_arrange(&history, SIZE_MAX), 0);
	CU_ASSERT_EQUAL(history.count, 0);
	CU_ASSERT_PTR_NULL(history.topology);
	history_release(&history);
}

static void running(void)
{
	start();
	history.calibrations[0].state = CALIBRATION_RUNNING;
	history.calibrations[0].finished = 0;
	CU_ASSERT_EQUAL(history_arrange(&history, SIZE_MAX), 0);
	CU_ASSERT_EQUAL(history.events[0].at, 2990);
	expect(0, "calibration 2, quick effort: running");
	history_release(&history);
}

static void what_the_file_tells(void)
{
	start();
	CU_ASSERT_EQUAL(history_arrange(&history, SIZE_MAX), 0);
	history.now = (struct history_now){.state = NOW_RECORDED, .generation = 7};
	expect(2, "generation 7: from calibration 1; in force");
	history.now.state = NOW_EDITED;
	expect(2, "generation 7: from calibration 1; in force, edited since");
	history.now.state = NOW_UNRECORDED;
	expect(2, "generation 7: from calibration 1");
	history.now = (struct history_now){.state = NOW_RECORDED, .generation = 6};
	expect(2, "generation 7: from calibration 1");
	history_release(&history);
}

/* A file that was edited counts for no generation, whatever it claims. */
static void verified_without_a_generation(void)
{
	start();
	history.verifications[0].verification.generation = 0;
	CU_ASSERT_EQUAL(history_arrange(&history, SIZE_MAX), 0);
	expect(1, "verification 3 of a policy other than those published, quick effort: passed; against "
	          "/lib/other.so; another topology: bbbbbbbbbbbb");
	history_release(&history);
}

static void sources(void)
{
	start();
	CU_ASSERT_EQUAL(history_arrange(&history, SIZE_MAX), 0);
	strcpy(history.published[0].source, "rollback");
	expect(2, "generation 7: rolled back, to the rules of calibration 1");
	strcpy(history.published[0].source, "restart");
	expect(2, "generation 7: published at a start, from calibration 1");
	history.published[0].calibration = 0;
	strcpy(history.published[0].source, "import");
	expect(2, "generation 7: import");
	strcpy(history.published[0].source, "rollback");
	expect(2, "generation 7: rolled back");
	history_release(&history);
}

static void sums(void)
{
	struct verified series[] = {{.intent = PAGECLEAR_HOT, .prior = PC_CACHED, .mean = 0.01},
	                            {.intent = PAGECLEAR_COLD, .prior = PC_FLUSHED, .mean = 0.04},
	                            {.intent = PAGECLEAR_SCRUB, .prior = PC_UNKNOWN, .mean = 0.01}};

	start();
	CU_ASSERT_EQUAL(history_arrange(&history, SIZE_MAX), 0);
	history_sum_up(&history.verifications[0], series, 3);
	CU_ASSERT_DOUBLE_EQUAL(history.verifications[0].mean, 0.02, 1e-12);
	strcpy(history.verifications[0].verification.topology, "aaaaaaaaaaaa");
	expect(1, "verification 3 of generation 7, quick effort: passed, mean regret 2 %, at most 4 % (cold, "
	          "flushed); against /lib/other.so");
	series[2].mean = 0.1;
	history_sum_up(&history.verifications[0], series, 3);
	history.verifications[0].verification.passed = false;
	expect(1, "verification 3 of generation 7, quick effort: failed, mean regret 5 %, at most 10 % (scrub); "
	          "against /lib/other.so");
	history_sum_up(&history.verifications[0], NULL, 0);
	CU_ASSERT_TRUE(isnan(history.verifications[0].mean));
	history_release(&history);
}

static const struct unit_test tests[] = {
	{"newest_first", newest_first},
	{"at_most", at_most},
	{"nothing", nothing},
	{"running", running},
	{"what_the_file_tells", what_the_file_tells},
	{"sources", sources},
	{"verified_without_a_generation", verified_without_a_generation},
	{"sums", sums},
};

UNIT_MAIN("calibctl_history_line", tests)
