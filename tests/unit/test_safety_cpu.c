/* A CPU that has less than a policy thinks: from the start, or since the process was moved to another. No kernel is
 * ever chosen that it did not announce. */
#include "kernels/kernels.h"
#include "libpolicy/process.h"
#include "tests/unit/harness.h"
#include "tests/unit/safety.h"

/* Some kernel that runs here and takes a feature; NULL: none. */
static const struct pc_kernel *needy(void)
{
	for (unsigned k = pc_kernel_count; k-- > 0;)
		if (pc_kernels[k].needs != 0 && pc_kernel_runs(&pc_kernels[k]))
			return &pc_kernels[k];
	return NULL;
}

static bool in_any_word(const struct pc_words *words, const struct pc_kernel *kernel)
{
	for (unsigned row = 0; row < PC_ROWS; row++)
		for (unsigned h = 0; h < PC_HALF_OCTAVES; h++) {
			uint64_t word = words->word[row][h];

			if ((word & 255) == pc_kernel_index(kernel) || (word >> 8 & 255) == pc_kernel_index(kernel))
				return true;
		}
	return false;
}

static bool is_chosen(const struct pageclear_policy *policy, const struct pc_kernel *kernel)
{
	for (unsigned intent = 0; intent <= 34; intent++)
		for (size_t len = 1; len != 0; len *= 2)
			if (strcmp(choose(policy, len, intent, 1).kernel, kernel->name) == 0)
				return true;
	return false;
}

static bool is_chosen_by_builtin(const struct pc_kernel *kernel)
{
	const struct pageclear_policy *policy;

	CU_ASSERT_EQUAL_FATAL(pageclear_policy_builtin(&policy), 0);
	bool chosen = is_chosen(policy, kernel);
	pageclear_policy_close(policy);
	return chosen;
}

static void clear_by_all(const struct pageclear_policy *policy)
{
	static unsigned char bytes[70000];

	for (size_t i = 0; i < INTENTS; i++) {
		CU_ASSERT_TRUE(clears_right(bytes, 60001, all_intents[i]));
		memset(bytes, 1, sizeof(bytes));
		pageclear_policy_zero(policy, bytes, sizeof(bytes), all_intents[i]);
		CU_ASSERT_TRUE(is_all(bytes, sizeof(bytes), 0));
	}
}

/* Every kernel by name, under every set of features that this CPU can be made to lack. */
static void test_features_that_are_hidden(void)
{
	const uint32_t kernels_bits = (PC_CPU_MOVDIR64B << 1) - 1;

	for (uint32_t mask = 0; mask <= kernels_bits; mask++) {
		pc_cpu_masked = mask;
		start_bare();
		for (unsigned k = 0; k < pc_kernel_count; k++) {
			const struct pc_kernel *kernel = &pc_kernels[k];
			bool runs = pc_kernel_runs(kernel);

			if ((mask & kernel->needs) == 0 && mask != 0)
				continue; /* as without the mask */
			publish(pc_search_paths[0], kernel_text(mask + 1, kernel->name, 0));
			CU_ASSERT_TRUE(pageclear_reload() >= 0);
			const struct pageclear_policy *policy = open_text(kernel_text(1, kernel->name, 0));
			CU_ASSERT_EQUAL(is_chosen(policy, kernel), runs);
			CU_ASSERT_EQUAL(in_any_word(&pc_process_words, kernel), runs);
			if (!runs)
				assert_status(0, "libc stands in for kernels that this CPU or library lacks: ");
			clear_by_all(policy);
			pageclear_policy_close(policy);
		}
	}
	pc_cpu_masked = 0;
	start_bare();
}

/* The built-in policy is made anew whenever it is asked for, by what the CPU says then. */
static void test_builtin_forgets_what_is_lost(void)
{
	const struct pc_kernel *kernel = needy();
	char text[1600];

	start_bare();
	if (kernel == NULL || !in_any_word(&pc_process_words, kernel)) {
		unit_skip("the built-in policy has no kernel here that takes a feature");
		return;
	}
	CU_ASSERT_TRUE(is_chosen_by_builtin(kernel));
	pc_cpu_lost = UINT32_MAX;
	CU_ASSERT_FALSE(is_chosen_by_builtin(kernel));
	setenv("PAGECLEAR_POLICY", "builtin", 1);
	pageclear_reload();
	assert_status(1, "built-in policy (libc; scrub from 4096 bytes: ");
	CU_ASSERT_EQUAL(pageclear_status(text, sizeof(text)), 1);
	CU_ASSERT_PTR_NULL(strstr(text, kernel->name));
	CU_ASSERT_FALSE(in_any_word(&pc_process_words, kernel));
	clear_by_all(NULL);
	pc_cpu_lost = 0;
	unsetenv("PAGECLEAR_POLICY");
	pageclear_reload();
	CU_ASSERT_TRUE(in_any_word(&pc_process_words, kernel));
	start_bare();
}

/* A guest that moves: a reload that finds a new file asks the CPU again, one that finds the old one costs no more than
 * it says. */
static void test_moved_to_a_lesser_cpu(void)
{
	const struct pc_kernel *kernel = needy();

	if (kernel == NULL) {
		unit_skip("no kernel here takes a feature");
		return;
	}
	start_bare();
	publish(pc_search_paths[0], kernel_text(1, kernel->name, 0));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	CU_ASSERT_TRUE(in_any_word(&pc_process_words, kernel));

	pc_cpu_lost = kernel->needs;
	CU_ASSERT_EQUAL(pageclear_reload(), 0);
	CU_ASSERT_TRUE(pc_kernel_runs(kernel)); /* nobody has asked */

	publish(pc_search_paths[0], kernel_text(2, kernel->name, 0));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	assert_status(0, "generation 2,");
	assert_status(0, "libc stands in for kernels that this CPU or library lacks: ");
	assert_status(0, kernel->name);
	CU_ASSERT_FALSE(in_any_word(&pc_process_words, kernel));
	clear_by_all(NULL);

	/* Withdrawn, as calibrd does with the policy of another topology. */
	unlink(pc_search_paths[0]);
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	CU_ASSERT_FALSE(in_any_word(&pc_process_words, kernel));
	clear_by_all(NULL);

	pc_cpu_lost = 0;
	publish(pc_search_paths[0], kernel_text(3, kernel->name, 0));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	CU_ASSERT_TRUE(in_any_word(&pc_process_words, kernel));
	start_bare();
}

static void test_opened_on_a_lesser_cpu(void)
{
	const struct pc_kernel *kernel = needy();

	if (kernel == NULL) {
		unit_skip("no kernel here takes a feature");
		return;
	}
	pc_cpu_lost = kernel->needs;
	const struct pageclear_policy *policy = open_text(kernel_text(1, kernel->name, 0));
	CU_ASSERT_FALSE(is_chosen(policy, kernel));
	clear_by_all(policy);
	pageclear_policy_close(policy);
	pc_cpu_lost = 0;
	policy = open_text(kernel_text(1, kernel->name, 0));
	CU_ASSERT_TRUE(is_chosen(policy, kernel));
	pageclear_policy_close(policy);
}

static const struct unit_test tests[] = {
	{"features_that_are_hidden", test_features_that_are_hidden},
	{"builtin_forgets_what_is_lost", test_builtin_forgets_what_is_lost},
	{"moved_to_a_lesser_cpu", test_moved_to_a_lesser_cpu},
	{"opened_on_a_lesser_cpu", test_opened_on_a_lesser_cpu},
};

UNIT_MAIN("safety_cpu", tests)
