/* bench's pure parts: lists of figures, CSV, lists on the command line, and what is said of a huge page's figures. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibctl/bench.h"
#include "calibctl/bench_csv.h"
#include "calibctl/bench_hugepage.h"
#include "calibctl/bench_values.h"
#include "tests/unit/harness.h"

/* --- figures ----------------------------------------------------------------------------------------------------- */

static void figures(void)
{
	/* A textbook's example: mean 5, squares 32, so the sample's deviation is sqrt(32 / 7). */
	static const double x[] = {2, 4, 4, 4, 5, 5, 7, 9};
	struct bench_values values = {0};

	CU_ASSERT(isnan(bench_values_mean(&values)));
	CU_ASSERT(isnan(bench_values_median(&values)));
	for (size_t i = 0; i < 8; i++) {
		CU_ASSERT_EQUAL(bench_values_add(&values, x[i]), 0);
		CU_ASSERT_EQUAL(isnan(bench_values_stdev(&values)), i == 0);
		CU_ASSERT_EQUAL(isnan(bench_values_mad(&values)), i == 0);
	}
	CU_ASSERT_DOUBLE_EQUAL(bench_values_mean(&values), 5, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(bench_values_median(&values), 4.5, 1e-12);
	CU_ASSERT_DOUBLE_EQUAL(bench_values_stdev(&values), 2.138089935, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(bench_values_mad(&values), 0.5, 1e-12);
	for (int i = 0; i < 100; i++)
		CU_ASSERT_EQUAL(bench_values_add(&values, 5), 0);
	CU_ASSERT_EQUAL(values.count, 108);
	CU_ASSERT_DOUBLE_EQUAL(bench_values_mean(&values), 5, 1e-12);
	bench_values_clear(&values);
	CU_ASSERT_EQUAL(values.count, 0);
}

/* --- CSV --------------------------------------------------------------------------------------------------------- */

static void csv(void)
{
	static const char *const names[] = {"a", "b,c", NULL};
	char *text = NULL;
	size_t size = 0;
	struct bench_csv out = {.out = open_memstream(&text, &size)};

	CU_ASSERT_PTR_NOT_NULL_FATAL(out.out);
	bench_csv_header(&out, names);
	bench_csv_text(&out, "plain text");
	bench_csv_text(&out, "he said \"no\"");
	bench_csv_text(&out, "two\nlines");
	bench_csv_text(&out, "");
	bench_csv_end(&out);
	bench_csv_whole(&out, UINT64_MAX);
	bench_csv_number(&out, 2.5);
	bench_csv_number(&out, NAN);
	bench_csv_number(&out, INFINITY);
	bench_csv_number(&out, -1.0 / 3);
	bench_csv_end(&out);
	fclose(out.out);
	CU_ASSERT_STRING_EQUAL(text, "a,\"b,c\"\r\n"
	                             "plain text,\"he said \"\"no\"\"\",\"two\nlines\",\r\n"
	                             "18446744073709551615,2.5,,,-0.333333\r\n");
	free(text);
}

/* --- the command line -------------------------------------------------------------------------------------------- */

static void sizes(void)
{
	struct bench_request request = {0};
	struct pc_why why;

	CU_ASSERT_EQUAL(bench_parse_sizes(&request, "1M,4K,64 KiB,4096", &why), 0);
	CU_ASSERT_EQUAL_FATAL(request.size_count, 3);
	CU_ASSERT_EQUAL(request.sizes[0], 4096);
	CU_ASSERT_EQUAL(request.sizes[1], 65536);
	CU_ASSERT_EQUAL(request.sizes[2], 1048576);
	CU_ASSERT_EQUAL(bench_parse_sizes(&request, "1", &why), 0);
	CU_ASSERT_EQUAL(request.size_count, 1);
}

static void sizes_wrong(void)
{
	static const struct {
		const char *list, *said;
		int error;
	} wrong[] = {
		{"4K,", "--sizes: '' is no size", -EINVAL},     {",4K", "--sizes: '' is no size", -EINVAL},
		{"4K,,1M", "--sizes: '' is no size", -EINVAL},  {"4X", "--sizes: '4X' is no size", -EINVAL},
		{"-4K", "--sizes: '-4K' is no size", -EINVAL},  {"0", "nothing to measure in 0", -ERANGE},
		{"17E", "'17E' is more than 64 bits", -ERANGE}, {"4K;1M", "'4K;1M' is no size", -EINVAL},
		{"4K,0K", "nothing to measure in 0K", -ERANGE},
	};
	struct bench_request request;
	struct pc_why why;
	char many[4 * 64] = "";

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		CU_ASSERT_EQUAL(bench_parse_sizes(&request, wrong[i].list, &why), wrong[i].error);
		CU_ASSERT_PTR_NOT_NULL(strstr(why.text, wrong[i].said));
	}
	for (int i = 1; i <= BENCH_SIZES; i++)
		sprintf(many + strlen(many), "%s%d", i > 1 ? "," : "", i);
	CU_ASSERT_EQUAL(bench_parse_sizes(&request, many, &why), 0);
	CU_ASSERT_EQUAL(request.size_count, BENCH_SIZES);
	strcat(many, ",1K");
	CU_ASSERT_EQUAL(bench_parse_sizes(&request, many, &why), -ERANGE);
}

static void kernels(void)
{
	struct bench_request request = {0};
	struct pc_why why;
	char all[PC_KERNEL_MAX * PC_KERNEL_NAME] = "";

	for (unsigned i = 0; i < pc_kernel_count; i++)
		sprintf(all + strlen(all), "%s%s", i > 0 ? "," : "", pc_kernels[i].name);
	CU_ASSERT_EQUAL(bench_parse_kernels(&request, all, &why), 0);
	CU_ASSERT_EQUAL(request.kernels, (uint32_t)((UINT64_C(1) << pc_kernel_count) - 1));
	CU_ASSERT_EQUAL(bench_parse_kernels(&request, "libc,libc", &why), 0);
	CU_ASSERT_EQUAL(request.kernels, 1);
	CU_ASSERT_EQUAL(bench_parse_kernels(&request, "libc,warp9", &why), -EINVAL);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "--kernels: no kernel is called 'warp9'"));
	CU_ASSERT_EQUAL(bench_parse_kernels(&request, "libc,", &why), -EINVAL);
	CU_ASSERT_EQUAL(bench_parse_kernels(&request, "LIBC", &why), -EINVAL);
	/* Longer than any name: cut, but never to one that is known. */
	CU_ASSERT_EQUAL(bench_parse_kernels(&request,
	                                    "libcxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
	                                    &why),
	                -EINVAL);
}

/* --- words ------------------------------------------------------------------------------------------------------- */

static void words(void)
{
	struct hugepage_summary summary = {.count = 4, .share = {0.04, 0.05, 0, 0.62, 0.29}};
	char text[HUGEPAGE_WORDS];

	hugepage_words(&summary, text);
	CU_ASSERT_STRING_EQUAL(text, "62 % of the variance lies between mappings: page placement; "
	                             "29 % is none of these: neighbours, interrupts, memory itself; "
	                             "5 % is the first sample of a mapping against later ones: warm-up");
	summary.share[VARIANCE_TAINT] = 0.97;
	hugepage_words(&summary, text);
	CU_ASSERT_STRING_EQUAL(
		text, "97 % of the variance comes with disturbed samples: scheduler, stolen time, a slow spell "
		      "of the CPU; of the variance without them, 62 % lies between mappings: page placement; "
		      "29 % is none of these: neighbours, interrupts, memory itself; "
		      "5 % is the first sample of a mapping against later ones: warm-up");
	/* What cannot be told is not told, and keeps nothing else from being told. */
	summary = (struct hugepage_summary){.count = 4, .share = {NAN, NAN, 0.2, NAN, 0.8}};
	hugepage_words(&summary, text);
	CU_ASSERT_STRING_EQUAL(text, "80 % of the variance is none of these: neighbours, interrupts, memory itself; "
	                             "20 % goes with the reference loop: clock speed");
	summary.count = 0;
	hugepage_words(&summary, text);
	CU_ASSERT_STRING_EQUAL(text, "the deviation cannot be taken apart: too few samples");
}

/* Two kernels: 4 KiB a call takes 1.5 times as long with the first, 0.8 with the second; backwards 1.1 times. */
static void put_ways(struct hugepage_table *table, struct hugepage_way ways[6])
{
	static const struct {
		unsigned kernel;
		uint64_t chunk;
		bool backward;
		double median;
	} put[] = {{0, HUGEPAGE_BYTES, false, 100}, {0, 4096, false, 150}, {0, 4096, true, 165},
	           {1, HUGEPAGE_BYTES, false, 10},  {1, 4096, false, 8},   {1, 4096, true, 8.8}};

	memset(ways, 0, 6 * sizeof(ways[0]));
	for (size_t i = 0; i < 6; i++) {
		ways[i].kernel = put[i].kernel;
		ways[i].chunk = put[i].chunk;
		ways[i].backward = put[i].backward;
		ways[i].variance = (struct variance){.mean = put[i].median, .median = put[i].median, .stdev = 1};
	}
	*table = (struct hugepage_table){.count = 6, .ways = ways};
}

static void ratios(void)
{
	struct hugepage_table table;
	struct hugepage_way ways[6];
	struct hugepage_ratio ratio;

	put_ways(&table, ways);
	CU_ASSERT(hugepage_chunk_ratio(&ratio, &table, 4096, false));
	CU_ASSERT_DOUBLE_EQUAL(ratio.least, 0.8, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(ratio.most, 1.5, 1e-9);
	CU_ASSERT(hugepage_backward_ratio(&ratio, &table, false));
	CU_ASSERT_DOUBLE_EQUAL(ratio.least, 1.1, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(ratio.most, 1.1, 1e-9);
	CU_ASSERT_FALSE(hugepage_chunk_ratio(&ratio, &table, 65536, false));
	CU_ASSERT_FALSE(hugepage_chunk_ratio(&ratio, &table, 4096, true));
	CU_ASSERT_FALSE(hugepage_backward_ratio(&ratio, &table, true));
}

/* Ways whose deviation could not be taken apart count for nothing, and nor do shares that are not known. */
static void summary(void)
{
	struct hugepage_table table;
	struct hugepage_way ways[6];
	struct hugepage_summary out;

	put_ways(&table, ways);
	for (size_t i = 0; i < 6; i++)
		for (enum variance_part part = 0; part < VARIANCE_PARTS; part++)
			ways[i].variance.share[part] = NAN;
	hugepage_summarise(&out, &table, false);
	CU_ASSERT_EQUAL(out.count, 0);
	CU_ASSERT(isnan(out.share[VARIANCE_REST]));
	ways[0].variance.share[VARIANCE_REST] = 0.5;
	ways[0].variance.share[VARIANCE_PLACEMENT] = 0.5;
	ways[1].variance.share[VARIANCE_REST] = 1;
	hugepage_summarise(&out, &table, false);
	CU_ASSERT_EQUAL(out.count, 2);
	CU_ASSERT_DOUBLE_EQUAL(out.share[VARIANCE_PLACEMENT], 0.5, 1e-9);
	CU_ASSERT(isnan(out.share[VARIANCE_CLOCK]));
	CU_ASSERT_DOUBLE_EQUAL(out.share[VARIANCE_REST], 0.75, 1e-9);
	CU_ASSERT_DOUBLE_EQUAL(out.relative_stdev, (1.0 / 100 + 1.0 / 150) / 2, 1e-9);
	hugepage_summarise(&out, &table, true);
	CU_ASSERT_EQUAL(out.count, 0);
}

static const struct unit_test tests[] = {
	{"figures", figures}, {"csv", csv},     {"sizes", sizes},   {"sizes_wrong", sizes_wrong},
	{"kernels", kernels}, {"words", words}, {"ratios", ratios}, {"summary", summary},
};

UNIT_MAIN("calibctl_bench", tests)
