/* What people and programs are told of a verification, of reports made by hand. */
#include "calibctl/verify.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "pageclear/policy.h"
#include "tests/unit/harness.h"

static struct verification_request request;
static struct verify_report report;
static char *text;

/* One series, cold and flushed, of 20 sizes, 4 % worse than the best and allowed 3 %; libc is chosen at the worst. */
static void start(void)
{
	request = (struct verification_request){
		.subject = {.where = {.policy_source = WHERE_OPTION, .policy = "made/by/hand.yaml"}},
		.effort = EFFORT_QUICK,
		.seed = 7,
		.tolerance = 0.02};
	report = (struct verify_report){.count = 1, .passed = false};
	report.series[0] = (struct verify_series){
		.told = {.intent = PAGECLEAR_COLD,
	                 .prior = PC_FLUSHED,
	                 .sizes = 20,
	                 .mean = 0.04,
	                 .p95 = 0.09,
	                 .worst = 0.25,
	                 .worst_bytes = 3 << 20,
	                 .floor = 0.01,
	                 .floor_p95 = 0.02,
	                 .gain = 1.5,
	                 .best_gain = 2,
	                 .unhinted = NAN,
	                 .against = NAN},
		.measured = 20,
		.chosen = {.kernel = 0, .chunk = 2 << 20},
		.better = {.kernel = pc_kernel_count - 1},
	};
}

/* Of what is printed, without line breaks: the width decides where those are. */
static void print(void)
{
	FILE *out = stdout;
	char *raw = NULL;
	size_t size = 0, used = 0;

	stdout = open_memstream(&raw, &size);
	CU_ASSERT_PTR_NOT_NULL_FATAL(stdout);
	CU_ASSERT_EQUAL(verification_print(&request, &report), 0);
	fclose(stdout);
	stdout = out;
	free(text);
	text = calloc(1, size + 1);
	CU_ASSERT_FATAL(text != NULL && raw != NULL);
	for (size_t i = 0; i < size; i++)
		if ((raw[i] != ' ' && raw[i] != '\n') || (used > 0 && text[used - 1] != ' '))
			text[used++] = raw[i] == '\n' ? ' ' : raw[i];
	free(raw);
}

static void holds(const char *expected)
{
	CU_ASSERT_PTR_NOT_NULL(strstr(text, expected));
	if (strstr(text, expected) == NULL)
		printf("\n\"%s\" is not in \"%s\"\n", expected, text);
}

static void lacks(const char *words)
{
	CU_ASSERT_PTR_NULL(strstr(text, words));
}

static void a_mean_beyond(void)
{
	char expected[160];

	start();
	print();
	snprintf(expected, sizeof(expected),
	         "! cold, flushed: mean regret 4.0 %%, allowed 3.0 %%; worst at 3 MiB (3145728 bytes), where the "
	         "choice, "
	         "libc in chunks of 2 MiB, costs 25.0 %% more than %s",
	         pc_kernels[pc_kernel_count - 1].name);
	holds(expected);
	holds("cold, flushed 20 4.0 % 9.0 % 25.0 % 3 MiB 1.0 % 2.0 % 1.50x 2.00x - ");
	holds("policy made/by/hand.yaml (--policy)");
	holds("effort quick, seed 7");
	holds("verdict the policy's choices cost more than tolerated");
	lacks("undisturbed");
	lacks("noise floor");
}

static void a_percentile_beyond(void)
{
	start();
	report.series[0].told.mean = 0.02;
	report.series[0].told.p95 = 0.2;
	print();
	holds("! cold, flushed: 95th percentile of regret 20.0 %, allowed 12.0 %; worst at 3 MiB");
}

/* On all rounds together the choice is best, on each half of them another way was. */
static void never_more_than_itself(void)
{
	start();
	report.series[0].better = report.series[0].chosen;
	print();
	holds("where the choice, libc in chunks of 2 MiB, costs 25.0 % more than the best of either half of the "
	      "rounds");
	lacks("more than libc");
	report.series[0].better.chunk = 0; /* another way */
	print();
	holds("libc in chunks of 2 MiB, costs 25.0 % more than libc");
}

static void noise_and_sizes(void)
{
	start();
	report.series[0].measured = 24;
	report.series[0].told.floor = 0.1;
	report.series[0].told.passed = report.passed = true;
	print();
	holds("! cold, flushed: 4 of 24 sizes could not be measured undisturbed");
	holds("! cold, flushed: a noise floor of 10.0 % hides all losses below it");
	holds("verdict the policy's choices cost no more than tolerated");
	lacks("allowed");
	/* Scrub's costs are differences of noisy readings. */
	report.series[0].told.intent = PAGECLEAR_SCRUB;
	print();
	lacks("noise floor of");
}

static void for_programs(void)
{
	struct topology topology = {.id = "aaaaaaaaaaaa"};
	struct verification_entry entry = {.reason = {"it is written by another"}};

	start();
	request.topology = &topology;
	json_t *json = verification_json(&request, &report, &entry);
	CU_ASSERT_PTR_NOT_NULL_FATAL(json);
	json_t *series = json_array_get(json_object_get(json, "series"), 0),
	       *regret = json_object_get(series, "regret");
	CU_ASSERT_TRUE(json_is_false(json_object_get(json, "passed")));
	CU_ASSERT_TRUE(json_is_null(json_object_get(json, "recorded")));
	CU_ASSERT_TRUE(json_is_null(json_object_get(json, "against")));
	CU_ASSERT_STRING_EQUAL(json_string_value(json_object_get(json, "not_recorded_because")),
	                       "it is written by another");
	CU_ASSERT_DOUBLE_EQUAL(json_number_value(json_object_get(regret, "mean")), 0.04, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(json_number_value(json_object_get(json_object_get(series, "allowed"), "mean")), 0.03,
	                       1e-12);
	CU_ASSERT_TRUE(json_is_null(json_object_get(series, "unhinted_gain")));
	json_decref(json);
	free(text);
	text = NULL;
}

/* What the database keeps of a verification: neither seeds nor ways, and in an order of its own. */
static void by_calibrd(void)
{
	struct topology topology = {.id = "aaaaaaaaaaaa"};
	struct verification_entry entry = {.id = 9};
	const struct pageclear_policy *policy;
	struct verified series[VERIFY_SERIES + 1] = {{0}};
	struct pc_why why;
	char expected[160];

	CU_ASSERT_EQUAL_FATAL(pageclear_policy_builtin(&policy), 0);
	start();
	report.series[0].told.sizes = 20;
	series[0] = series[2] = report.series[0].told;
	series[0].prior = PC_CACHED;
	series[0].passed = true;
	series[1] = series[0];
	series[1].intent = PAGECLEAR_HOT;
	request.by_calibrd = true;
	request.topology = &topology;
	CU_ASSERT_EQUAL_FATAL(verification_restore(&report, policy, series, 3, &why), 0);
	CU_ASSERT_EQUAL(report.count, 3);
	CU_ASSERT_FALSE(report.passed);
	CU_ASSERT_EQUAL(report.series[0].told.intent, PAGECLEAR_HOT);
	CU_ASSERT_EQUAL(report.series[1].told.prior, PC_CACHED);
	CU_ASSERT_EQUAL(report.series[2].told.prior, PC_FLUSHED);
	print();
	holds("effort quick, by calibrd");
	unsigned kernel = verify_choice(policy, VERIFY_FLUSHED, 3 << 20, PAGECLEAR_COLD).kernel;
	snprintf(expected, sizeof(expected), "the choice, %s, costs 25.0 %% more than the best",
	         pc_kernels[kernel].name);
	holds(expected);
	lacks("seed");
	lacks("undisturbed");
	holds("verdict the policy's choices cost more than tolerated");

	json_t *json = verification_json(&request, &report, &entry);
	CU_ASSERT_PTR_NOT_NULL_FATAL(json);
	json_t *last = json_array_get(json_object_get(json, "series"), 2);
	CU_ASSERT_TRUE(json_is_null(json_object_get(json, "seed")));
	CU_ASSERT_TRUE(json_is_null(json_object_get(last, "sizes_measured")));
	CU_ASSERT_TRUE(json_is_null(json_object_get(json_object_get(last, "worst"), "better")));
	CU_ASSERT_EQUAL(json_integer_value(json_object_get(json, "recorded")), 9);
	json_decref(json);

	CU_ASSERT_TRUE(verification_restore(&report, policy, series, 0, &why) < 0);
	CU_ASSERT_TRUE(verification_restore(&report, policy, series, VERIFY_SERIES + 1, &why) < 0);
	series[2].passed = true;
	CU_ASSERT_EQUAL(verification_restore(&report, policy, series, 3, &why), 0);
	CU_ASSERT_TRUE(report.passed);
	pageclear_policy_close(policy);
	free(text);
	text = NULL;
}

static const struct unit_test tests[] = {
	{"a_mean_beyond", a_mean_beyond},
	{"a_percentile_beyond", a_percentile_beyond},
	{"never_more_than_itself", never_more_than_itself},
	{"noise_and_sizes", noise_and_sizes},
	{"for_programs", for_programs},
	{"by_calibrd", by_calibrd},
};

UNIT_MAIN("calibctl_verify_print", tests)
