/* Numbers, times and enumerations as calibctl writes them. */
#include <math.h>
#include <string.h>

#include "calibctl/words.h"
#include "kernels/cpu.h"
#include "pageclear/policy.h"
#include "tests/unit/harness.h"

#define EXPECT(call, expected)                                                                                         \
	do {                                                                                                           \
		char text[WORDS_SHORT];                                                                                \
		call;                                                                                                  \
		CU_ASSERT_STRING_EQUAL(text, expected);                                                                \
	} while (0)

static void times(void)
{
	EXPECT(words_ns(0, text), "0.00 ns");
	EXPECT(words_ns(9.994, text), "9.99 ns");
	EXPECT(words_ns(9.996, text), "10.0 ns");
	EXPECT(words_ns(99.96, text), "100 ns");
	EXPECT(words_ns(999.4, text), "999 ns");
	EXPECT(words_ns(999.6, text), "1.00 us");
	EXPECT(words_ns(1.25e6, text), "1.25 ms");
	EXPECT(words_ns(5e12, text), "5000 s");
	EXPECT(words_ns(-150, text), "-150 ns");
	EXPECT(words_ns(-2500, text), "-2.50 us");
	EXPECT(words_ns(NAN, text), "-");
}

static void rates_and_shares(void)
{
	EXPECT(words_rate(4096, 400, text), "10.2");
	EXPECT(words_rate(4096, 4096, text), "1.00");
	EXPECT(words_rate(4096, 0, text), "-");
	EXPECT(words_rate(4096, NAN, text), "-");
	EXPECT(words_gain(2.914, text), "2.91x");
	EXPECT(words_gain(0.25, text), "0.25x");
	EXPECT(words_gain(29.72, text), "29.7x");
	EXPECT(words_gain(0, text), "-");
	EXPECT(words_gain(NAN, text), "-");
	EXPECT(words_percent(0.04, text), "4 %");
	EXPECT(words_percent(0.004, text), "0.4 %");
	EXPECT(words_percent(1.5, text), "150 %");
	EXPECT(words_percent(NAN, text), "-");
}

static void ages(void)
{
	EXPECT(words_age(0, text), "just now");
	EXPECT(words_age(59, text), "just now");
	EXPECT(words_age(60, text), "1 minute ago");
	EXPECT(words_age(7199, text), "1 hour ago");
	EXPECT(words_age(7200, text), "2 hours ago");
	EXPECT(words_age(3 * 86400 + 5, text), "3 days ago");
	EXPECT(words_age(800 * 86400, text), "2 years ago");
	EXPECT(words_age(-30, text), "just now");
	EXPECT(words_age(-61, text), "in the future");
	EXPECT(words_age(INT64_MIN, text), "in the future");
}

static void dates(void)
{
	int64_t seconds = -1;

	CU_ASSERT_EQUAL(words_parse_time("1970-01-01T00:00:00Z", &seconds), 0);
	CU_ASSERT_EQUAL(seconds, 0);
	CU_ASSERT_EQUAL(words_parse_time("2026-11-30T10:42:07Z", &seconds), 0);
	CU_ASSERT_EQUAL(seconds, 1796035327); /* date -u -d 2026-11-30T10:42:07Z +%s */
	EXPECT(words_time(seconds, text), "2026-11-30 10:42:07 UTC");
	CU_ASSERT_TRUE(words_parse_time("", &seconds) < 0);
	CU_ASSERT_TRUE(words_parse_time("2026-11-30", &seconds) < 0);
	CU_ASSERT_TRUE(words_parse_time("2026-11-30T10:42:07Z ", &seconds) < 0);
	CU_ASSERT_TRUE(words_parse_time("2026-11-30T10:42:07+01:00", &seconds) < 0);
	CU_ASSERT_TRUE(words_parse_time("2026-13-30T10:42:07Z", &seconds) < 0);
	CU_ASSERT_EQUAL(seconds, 1796035327);
}

/* Beyond the years that a struct tm holds. */
static void dates_beyond(void)
{
	EXPECT(words_time(INT64_MAX, text), "9223372036854775807 s from 1970");
}

static void enumerations(void)
{
	char text[64];

	for (unsigned i = PAGECLEAR_HOT; i <= PAGECLEAR_SCRUB; i++) {
		CU_ASSERT_EQUAL(words_intent(pc_intent_name(i)), (int)i);
		CU_ASSERT_STRING_NOT_EQUAL(words_intent_meaning(i), "unknown");
	}
	for (unsigned i = 0; i < PC_PRIORS; i++)
		CU_ASSERT_EQUAL(words_prior(pc_prior_name((enum pc_prior)i)), (int)i);
	CU_ASSERT_EQUAL(words_intent("warm"), -1);
	CU_ASSERT_EQUAL(words_intent(""), -1);
	CU_ASSERT_EQUAL(words_prior("hot"), -1);
	CU_ASSERT_STRING_EQUAL(words_intent_meaning(99), "unknown");
	pc_cpu_feature_names(PC_CPU_AVX | PC_CPU_CLZERO, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "avx clzero");
	pc_cpu_feature_names(0, text, sizeof(text));
	CU_ASSERT_STRING_EQUAL(text, "");
	pc_cpu_feature_names(UINT32_MAX, text, 8);
	CU_ASSERT_STRING_EQUAL(text, "avx avx");
}

/* No bit and no family that a kernel has goes without a name. */
static void every_kernel_has_words(void)
{
	for (unsigned k = 0; k < pc_kernel_count; k++) {
		char text[64];
		size_t names = 0;

		pc_cpu_feature_names(pc_kernels[k].needs, text, sizeof(text));
		for (const char *c = text; *c != '\0'; c++)
			names += c == text || c[-1] == ' ';
		CU_ASSERT_EQUAL(names, (size_t)__builtin_popcount(pc_kernels[k].needs));
		CU_ASSERT_STRING_NOT_EQUAL(words_family(pc_kernels[k].family), "unknown");
	}
}

static void calibrations(void)
{
	CU_ASSERT_STRING_EQUAL(words_calibration(CALIBRATION_RUNNING), "running");
	CU_ASSERT_STRING_EQUAL(words_calibration(CALIBRATION_DONE), "done");
	CU_ASSERT_STRING_EQUAL(words_calibration(CALIBRATION_FAILED), "failed");
}

static void appended(void)
{
	char text[12] = "";

	words_append(text, sizeof(text), "%s, ", "one");
	words_append(text, sizeof(text), "%d", 2);
	CU_ASSERT_STRING_EQUAL(text, "one, 2");
	words_append(text, sizeof(text), "%s", ", three");
	CU_ASSERT_STRING_EQUAL(text, "one, 2, thr"); /* cut */
	words_append(text, sizeof(text), "more");
	CU_ASSERT_STRING_EQUAL(text, "one, 2, thr");
	CU_ASSERT_STRING_EQUAL(words_stated(""), "not stated");
	CU_ASSERT_STRING_EQUAL(words_stated("good"), "good");
}

static const struct unit_test tests[] = {
	{"appended", appended},
	{"calibrations", calibrations},
	{"times", times},
	{"rates_and_shares", rates_and_shares},
	{"ages", ages},
	{"dates", dates},
	{"dates_beyond", dates_beyond},
	{"enumerations", enumerations},
	{"every_kernel_has_words", every_kernel_has_words},
};

UNIT_MAIN("calibctl_words", tests)
