/* Explicit policies: opening them, whatever is in the file, and what they choose. */
#include <errno.h>
#include <pageclear/policy.h>

#include "kernels/cpu.h"
#include "tests/unit/allocations.h"
#include "tests/unit/harness.h"
#include "tests/unit/policy_files.h"

static void assert_open(const char *text, int code)
{
	const struct pageclear_policy *policy = (const struct pageclear_policy *)&code; /* left alone on failure */
	const char *path = in_folder("open.yaml");

	publish(path, text);
	CU_ASSERT_EQUAL(pageclear_policy_open(&policy, path), code);
	if (code == 0)
		policy = pageclear_policy_close(policy);
	else
		CU_ASSERT_PTR_EQUAL(policy, (const struct pageclear_policy *)&code);
}

static void test_open_errors(void)
{
	const struct pageclear_policy *policy = NULL;
	char *large = calloc(1, 65538);

	assert_open(good_text(1), 0);
	assert_open("format: 1\n", -EBADMSG);
	assert_open("", -EBADMSG);
	assert_open("format: 2\n", -EPROTONOSUPPORT);
	assert_open(policy_text(1, "GenuineNobody 6/1/1", pc_arch, some_rules), -ESTALE);
	assert_open(policy_text(1, here(), "vax", some_rules), -ESTALE);
	memset(large, '#', 65537);
	assert_open(large, -EFBIG);
	free(large);
	CU_ASSERT_EQUAL(pageclear_policy_open(&policy, in_folder("missing")), -ENOENT);
	CU_ASSERT_EQUAL(pageclear_policy_open(&policy, unit_folder()), -EBADMSG);
	CU_ASSERT_EQUAL(pageclear_policy_open(NULL, NULL), -EINVAL);
	CU_ASSERT_EQUAL(pageclear_policy_builtin(NULL), -EINVAL);
	CU_ASSERT_PTR_NULL(policy);
	CU_ASSERT_PTR_NULL(pageclear_policy_close(NULL));
}

static void test_one_of_several_core_types_is_enough(void)
{
	char cpus[200];

	snprintf(cpus, sizeof(cpus), "GenuineNobody 6/1/1\", \"%s", here());
	assert_open(policy_text(1, cpus, pc_arch, some_rules), 0);
}

/* What is read while memory runs out ends in -ENOMEM, wherever that happens, and leaves nothing behind. */
static void test_every_allocation_may_fail(void)
{
	const char *path = in_folder("memory.yaml");
	unsigned long failed = 0;

	if (!sees_allocations()) {
		unit_skip("malloc is somebody else's");
		return;
	}
	publish(path, good_text(1));
	for (unsigned long n = 1;; n++) {
		const struct pageclear_policy *policy = NULL;
		long before = live;

		refuse_at = allocations + n;
		int r = pageclear_policy_open(&policy, path);
		bool reached = allocations >= refuse_at;
		refuse_at = 0;
		pageclear_policy_close(policy);
		CU_ASSERT_EQUAL(live, before);
		if (!reached) {
			CU_ASSERT_EQUAL(r, 0);
			break;
		}
		CU_ASSERT_EQUAL(r, -ENOMEM);
		failed++;
	}
	CU_ASSERT_TRUE(failed > 20);
}

static void assert_choice(const struct pageclear_policy *policy, size_t len, unsigned intent, unsigned threads,
                          const char *kernel, size_t chunk, size_t from, size_t to)
{
	struct pageclear_choice choice = choose(policy, len, intent, threads);
	const struct pc_kernel *row = pc_kernel_find(kernel);
	const char *expected = row != NULL && pc_kernel_runs(row) ? kernel : "libc"; /* on other architectures */

	CU_ASSERT_STRING_EQUAL(choice.kernel, expected);
	CU_ASSERT_PTR_EQUAL(choice.clear, pc_kernel_find(expected)->clear);
	CU_ASSERT_EQUAL(choice.chunk, chunk);
	CU_ASSERT_EQUAL(choice.from, from);
	CU_ASSERT_EQUAL(choice.to, to);
}

static void test_choose_boundaries(void)
{
	const struct pageclear_policy *policy = open_text(good_text(1));

	assert_choice(policy, 0, PAGECLEAR_HOT, 1, "libc", 0, 0, 5000);
	assert_choice(policy, 4999, PAGECLEAR_HOT, 1, "libc", 0, 0, 5000);
	assert_choice(policy, 5000, PAGECLEAR_HOT, 1, "stosb", 65536, 5000, SIZE_MAX);
	assert_choice(policy, SIZE_MAX, PAGECLEAR_HOT, 1, "stosb", 65536, 5000, SIZE_MAX);
	assert_choice(policy, 1, PAGECLEAR_HOT | PAGECLEAR_CACHED, 1, "stosq", 0, 0, SIZE_MAX);
	for (size_t len = 0; len < 300; len++)
		assert_choice(policy, len, PAGECLEAR_COLD | PAGECLEAR_FLUSHED, 1, "libc", 0, 0, 300);
	assert_choice(policy, 300, PAGECLEAR_COLD | PAGECLEAR_FLUSHED, 0, "movnti", 4096, 300, 1000000);
	assert_choice(policy, 999999, PAGECLEAR_COLD | PAGECLEAR_FLUSHED, 1, "movnti", 4096, 300, 1000000);
	assert_choice(policy, SIZE_MAX - 1, PAGECLEAR_COLD | PAGECLEAR_FLUSHED, 1, "sse2nt", 0, 1000000, SIZE_MAX);
	assert_choice(policy, SIZE_MAX, PAGECLEAR_COLD | PAGECLEAR_FLUSHED, 1, "sse2nt", 0, 1000000, SIZE_MAX);
	assert_choice(policy, 1 << 20, PAGECLEAR_SCRUB, 1, "sse2nt", 100000, 4096, SIZE_MAX);
	/* No table: libc. */
	assert_choice(policy, 1 << 20, PAGECLEAR_WIPE, 1, "libc", 0, 0, SIZE_MAX);
	assert_choice(policy, 1 << 20, PAGECLEAR_COLD, 1, "libc", 0, 0, SIZE_MAX);
	pageclear_policy_close(policy);
}

/* The smallest sizes, where a half octave's first size is not the first that looks there. */
static void test_choose_smallest_sizes(void)
{
	const char rules[] =
		"clear:\n  - intent: hot\n    when: {threads: 1, prior: unknown}\n"
		"    rules: [{from: 0, kernel: libc}, {from: 1, kernel: stosb}, {from: 2, kernel: stosq},\n"
		"            {from: 3, kernel: libc}]\n";
	const struct pageclear_policy *policy = open_text(policy_text(1, here(), pc_arch, rules));

	assert_choice(policy, 0, PAGECLEAR_HOT, 1, "libc", 0, 0, 1);
	assert_choice(policy, 1, PAGECLEAR_HOT, 1, "stosb", 0, 1, 2);
	assert_choice(policy, 2, PAGECLEAR_HOT, 1, "stosq", 0, 2, 3);
	assert_choice(policy, 3, PAGECLEAR_HOT, 1, "libc", 0, 3, SIZE_MAX);
	pageclear_policy_close(policy);
}

static void test_choose_by_threads(void)
{
	const struct pageclear_policy *policy = open_text(good_text(1));
	const unsigned intent = PAGECLEAR_COLD | PAGECLEAR_FLUSHED;

	assert_choice(policy, 8192, intent, 0, "movnti", 4096, 300, 1000000);
	assert_choice(policy, 8192, intent, 2, "sse2", 0, 0, SIZE_MAX);
	assert_choice(policy, 8192, intent, 4, "sse2", 0, 0, SIZE_MAX);
	assert_choice(policy, 8192, intent, 5, "stosb", 0, 0, SIZE_MAX);
	assert_choice(policy, 8192, intent, UINT32_MAX, "stosb", 0, 0, SIZE_MAX);
	assert_choice(policy, 8192, PAGECLEAR_SCRUB, 9, "sse2nt", 100000, 4096, SIZE_MAX);
	pageclear_policy_close(policy);
}

static void test_choose_intents(void)
{
	const struct pageclear_policy *policy = open_text(good_text(1));
	const unsigned hot[] = {3, 4, 15, 19, 35, 64, 65, 64 + 17, 128 + 2, UINT32_MAX, 48, 1u << 31};

	for (size_t i = 0; i < sizeof(hot) / sizeof(hot[0]); i++)
		assert_choice(policy, 6000, hot[i], 1, "stosb", 65536, 5000, SIZE_MAX);
	assert_choice(policy, 6000, PAGECLEAR_COLD | PAGECLEAR_CACHED | PAGECLEAR_FLUSHED, 1, "libc", 0, 0, SIZE_MAX);
	assert_choice(policy, 6000, PAGECLEAR_SCRUB | PAGECLEAR_CACHED, 1, "sse2nt", 100000, 4096, SIZE_MAX);
	assert_choice(policy, 6000, PAGECLEAR_SCRUB | PAGECLEAR_FLUSHED, 1, "sse2nt", 100000, 4096, SIZE_MAX);
	pageclear_policy_close(policy);
}

static void test_choose_sizes_of_structs(void)
{
	const struct pageclear_policy *policy = open_text(good_text(1));
	struct {
		struct pageclear_query known;
		size_t later[2];
	} query = {.known = {.size = sizeof(query), .len = 6000}};
	struct {
		struct pageclear_choice known;
		size_t later[2];
	} choice = {.known = {.size = sizeof(choice)}, .later = {7, 7}};

	CU_ASSERT_EQUAL(pageclear_policy_choose(policy, &query.known, &choice.known), 0);
	CU_ASSERT_EQUAL(choice.known.from, 5000);
	CU_ASSERT_EQUAL(choice.known.size, sizeof(choice));
	CU_ASSERT_EQUAL(choice.later[0] + choice.later[1], 0);

	choice.known.from = choice.later[0] = 7;
	query.later[1] = 1;
	CU_ASSERT_EQUAL(pageclear_policy_choose(policy, &query.known, &choice.known), -E2BIG);
	query.known.size = SIZE_MAX;
	CU_ASSERT_EQUAL(pageclear_policy_choose(policy, &query.known, &choice.known), -E2BIG);
	query.known.size = sizeof(query.known) - 1;
	CU_ASSERT_EQUAL(pageclear_policy_choose(policy, &query.known, &choice.known), -EINVAL);
	query.known.size = sizeof(query.known);
	choice.known.size = 0;
	CU_ASSERT_EQUAL(pageclear_policy_choose(policy, &query.known, &choice.known), -EINVAL);
	choice.known.size = SIZE_MAX;
	CU_ASSERT_EQUAL(pageclear_policy_choose(policy, &query.known, &choice.known), -E2BIG);
	choice.known.size = sizeof(choice.known);
	CU_ASSERT_EQUAL(pageclear_policy_choose(NULL, &query.known, &choice.known), -EINVAL);
	CU_ASSERT_EQUAL(pageclear_policy_choose(policy, NULL, &choice.known), -EINVAL);
	CU_ASSERT_EQUAL(pageclear_policy_choose(policy, &query.known, NULL), -EINVAL);
	CU_ASSERT_EQUAL(choice.known.from, 7);
	CU_ASSERT_EQUAL(choice.later[0], 7);
	pageclear_policy_close(policy);
}

static void test_builtin(void)
{
	const struct pageclear_policy *policy = NULL;
	const struct pc_kernel *scrubber;

	CU_ASSERT_EQUAL_FATAL(pageclear_policy_builtin(&policy), 0);
	for (unsigned hint = 0; hint <= 48; hint += 16) {
		assert_choice(policy, SIZE_MAX, PAGECLEAR_HOT | hint, 8, "libc", 0, 0, SIZE_MAX);
		if (hint != PAGECLEAR_FLUSHED) /* that depends on the CPU: test_builtin.c */
			assert_choice(policy, SIZE_MAX, PAGECLEAR_COLD | hint, 8, "libc", 0, 0, SIZE_MAX);
	}
	assert_choice(policy, 4095, PAGECLEAR_SCRUB, 1, "libc", 0, 0, 4096);
	scrubber = pc_kernel_find(choose(policy, 4096, PAGECLEAR_SCRUB, 1).kernel);
	CU_ASSERT_TRUE(pc_kernel_runs(scrubber));
#if defined(__x86_64__)
	CU_ASSERT_TRUE(scrubber->weak);
#endif
	pageclear_policy_close(policy);
}

static void test_kernels_that_cannot_run_become_libc(void)
{
	const char rules[] = "clear:\n  - intent: hot\n    when: {threads: 1, prior: unknown}\n"
			     "    rules: [{from: 0, kernel: libc}, {from: 1024, kernel: from_the_future},\n"
			     "            {from: 4096, kernel: clzero, chunk: 65536}, {from: 65536, kernel: sse2},\n"
			     "            {from: 1048576, kernel: from_the_future}]\n";
	const struct pageclear_policy *policy;

	pc_cpu_masked = PC_CPU_CLZERO;
	policy = open_text(policy_text(1, here(), pc_arch, rules));
	assert_choice(policy, 1024, PAGECLEAR_HOT, 1, "libc", 0, 1024, 4096);
	assert_choice(policy, 4096, PAGECLEAR_HOT, 1, "libc", 0, 4096, 65536); /* the chunk was clzero's */
	assert_choice(policy, 65536, PAGECLEAR_HOT, 1, "sse2", 0, 65536, 1048576);
	pageclear_policy_close(policy);

	start_bare();
	publish(pc_search_paths[0], policy_text(1, here(), pc_arch, rules));
	pageclear_reload();
	assert_status(0, "from_the_future clzero");

	/* A name inside of another's is a name of its own, and said once. */
	publish(pc_search_paths[0],
	        policy_text(2, here(), pc_arch,
	                    "clear:\n  - intent: hot\n    when: {threads: 1, prior: unknown}\n"
	                    "    rules: [{from: 0, kernel: clzero2}, {from: 1024, kernel: clzero},\n"
	                    "            {from: 4096, kernel: zero2}, {from: 8192, kernel: clzero}]\n"));
	pageclear_reload();
	assert_status(0, "lacks: clzero2 clzero zero2");
	char text[1600];
	pageclear_status(text, sizeof(text));
	CU_ASSERT_PTR_NULL(strstr(text, "zero2 clzero zero2 "));
	start_bare();
	pc_cpu_masked = 0;
}

static const struct unit_test tests[] = {
	{"open_errors", test_open_errors},
	{"one_of_several_core_types_is_enough", test_one_of_several_core_types_is_enough},
	{"every_allocation_may_fail", test_every_allocation_may_fail},
	{"choose_boundaries", test_choose_boundaries},
	{"choose_smallest_sizes", test_choose_smallest_sizes},
	{"choose_by_threads", test_choose_by_threads},
	{"choose_intents", test_choose_intents},
	{"choose_sizes_of_structs", test_choose_sizes_of_structs},
	{"builtin", test_builtin},
	{"kernels_that_cannot_run_become_libc", test_kernels_that_cannot_run_become_libc},
};

UNIT_MAIN("policy", tests)
