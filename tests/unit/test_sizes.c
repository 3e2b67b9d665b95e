/* Sizes as people write them, there and back. */
#include "calibrd/sizes.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/harness.h"

static void accepts(void)
{
	static const struct {
		const char *text;
		uint64_t bytes;
	} cases[] = {
		{"0", 0},
		{"4096", 4096},
		{"4096B", 4096},
		{"320 B", 320},
		{"4K", 4096},
		{"4k", 4096},
		{"4KB", 4096},
		{"4KiB", 4096},
		{"4 kib", 4096},
		{"1.5M", 1572864},
		{"1.5 MiB", 1572864},
		{"2MiB", 2097152},
		{"1G", 1073741824},
		{"0.5T", 549755813888},
		{"1P", 1125899906842624},
		{"1E", 1152921504606846976},
		{"0.001K", 1},
		{"1.37 MiB", 1436549},
		{"0.999999999E", 1152921503453925471},
		{"18446744073709551615", UINT64_MAX},
		{"007", 7},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t bytes = 1;

		CU_ASSERT_EQUAL(size_parse(cases[i].text, &bytes), 0);
		CU_ASSERT_EQUAL(bytes, cases[i].bytes);
		if (bytes != cases[i].bytes)
			printf("%s: %llu\n", cases[i].text, (unsigned long long)bytes);
	}
}

static void refuses(void)
{
	static const char *const garbage[] = {"",     " ",   " 4",    "4 ",         "-4",   "+4",   "4KK",
	                                      "4X",   "K",   "4.",    ".5K",        "1.5",  "1.5B", "1..5K",
	                                      "0x10", "1e6", "4KiBs", "4Ki",        "4,5K", "4K\n", "1.0000000000K",
	                                      "4i",   "NaN", "inf",   "4\xc2\xa0K", "1.5 "};
	static const char *const large[] = {"18446744073709551616", "16E", "99999999999999999999999999",
	                                    "17179869184G"};
	uint64_t bytes = 77;

	for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++) {
		CU_ASSERT_EQUAL(size_parse(garbage[i], &bytes), -EINVAL);
		if (size_parse(garbage[i], &bytes) != -EINVAL)
			printf("accepted: \"%s\"\n", garbage[i]);
	}
	for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++)
		CU_ASSERT_EQUAL(size_parse(large[i], &bytes), -ERANGE);
	CU_ASSERT_EQUAL(bytes, 77); /* left alone */
}

static void formats(void)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} cases[] = {
		{0, "0 B"},
		{320, "320 B"},
		{1023, "1023 B"},
		{1024, "1 KiB"},
		{1536, "1.5 KiB"},
		{1280, "1.25 KiB"},
		{1537, "1.5 KiB"},
		{1034, "1.01 KiB"},
		{1048575, "1 MiB"},
		{2097152, "2 MiB"},
		{1572864, "1.5 MiB"},
		{8388608, "8 MiB"},
		{1073741824, "1 GiB"},
		{UINT64_MAX, "16 EiB"},
		{(uint64_t)3 << 59, "1.5 EiB"},
		{((uint64_t)1 << 60) - 1, "1 EiB"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[SIZE_TEXT];

		CU_ASSERT_STRING_EQUAL(size_format(cases[i].bytes, text, sizeof(text)), cases[i].text);
		if (strcmp(text, cases[i].text) != 0)
			printf("%llu: %s\n", (unsigned long long)cases[i].bytes, text);
	}
}

static void check_back(uint64_t bytes)
{
	char text[SIZE_TEXT];
	uint64_t back, unit = 1;
	int r = size_parse(size_format(bytes, text, sizeof(text)), &back);

	while (unit <= bytes / 1024)
		unit *= 1024;
	/* Half a hundredth of the unit, and what rounding to bytes adds. 16 EiB alone has no way back. */
	if (bytes >= UINT64_MAX - unit / 200)
		return;
	CU_ASSERT_EQUAL(r, 0);
	CU_ASSERT_TRUE((back > bytes ? back - bytes : bytes - back) <= unit / 200 + 1);
}

static void comes_back(void)
{
	uint64_t state = 1;

	for (unsigned i = 0; i < 20000; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		check_back(state >> (i % 64));
	}
	for (unsigned shift = 0; shift < 64; shift++) { /* exact ones come back exactly */
		char text[SIZE_TEXT];
		uint64_t back = 0;

		CU_ASSERT_EQUAL(size_parse(size_format((uint64_t)1 << shift, text, sizeof(text)), &back), 0);
		CU_ASSERT_EQUAL(back, (uint64_t)1 << shift);
	}
}

static void cuts_off(void)
{
	char text[4];

	CU_ASSERT_STRING_EQUAL(size_format(1048576, text, sizeof(text)), "1 M");
}

static const struct unit_test tests[] = {
	{"accepts what people write", accepts},
	{"refuses garbage, negatives and overflow", refuses},
	{"formats exactly or with two decimals", formats},
	{"what is formatted can be parsed", comes_back},
	{"stays inside its buffer", cuts_off},
};

UNIT_MAIN("sizes", tests)
