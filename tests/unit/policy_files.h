/*
 * Policies for this very host as files, and the library pointed at them: shared by the tests of libpolicy.
 */
#ifndef TESTS_POLICY_FILES_H
#define TESTS_POLICY_FILES_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cpu.h"
#include "libpolicy/policy.h"
#include "libpolicy/search.h"
#include "tests/unit/harness.h"

#if defined(__SANITIZE_ADDRESS__)
enum { UNDER_ASAN = 1, UNDER_TSAN = 0 };
#elif defined(__SANITIZE_THREAD__)
enum { UNDER_ASAN = 0, UNDER_TSAN = 1 };
#else
enum { UNDER_ASAN = 0, UNDER_TSAN = 0 };
#endif

/* Every combination of intent and hint, and some that are none. */
static const unsigned all_intents[] = {0, 1, 2, 16, 17, 18, 32, 33, 34, 48, 49, 50, 3, 64, UINT32_MAX};
enum { INTENTS = sizeof(all_intents) / sizeof(all_intents[0]) };

static inline const char *in_folder(const char *name)
{
	static char paths[8][600];
	static unsigned next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", unit_folder(), name);
	return path;
}

/* Published as calibrd does: a reader sees the old or the new file. */
static inline void publish(const char *path, const char *text)
{
	char beside[620];
	FILE *file;

	snprintf(beside, sizeof(beside), "%s.new", path);
	file = fopen(beside, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fputs(text, file);
	fclose(file);
	CU_ASSERT_EQUAL(rename(beside, path), 0);
}

static inline const char *here(void)
{
	static char signature[48];

	pc_cpu_signature(signature, sizeof(signature));
	return signature;
}

/* A policy for this very host, or for another. */
static inline const char *policy_text(unsigned generation, const char *cpu, const char *arch, const char *clear)
{
	static char text[16384];

	snprintf(text, sizeof(text),
	         "format: 1\ngeneration: %u\nquality: good\nhost:\n  topology: \"0123456789ab\"\n  arch: \"%s\"\n"
	         "  cpus: [\"%s\"]\n%s",
	         generation, arch, cpu, clear);
	return text;
}

static const char some_rules[] =
	"clear:\n"
	"  - intent: hot\n"
	"    when: {threads: 1, prior: unknown}\n"
	"    rules: [{from: 0, kernel: libc}, {from: 5000, kernel: stosb, chunk: 65536}]\n"
	"  - intent: hot\n"
	"    when: {threads: 1, prior: cached}\n"
	"    rules: [{from: 0, kernel: stosq}]\n"
	"  - intent: cold\n"
	"    when: {threads: 1, prior: flushed}\n"
	"    rules: [{from: 0, kernel: libc}, {from: 300, kernel: movnti, chunk: 1},\n"
	"            {from: 1000000, kernel: sse2nt}, {from: 18446744073709551615, kernel: libc}]\n"
	"  - intent: cold\n"
	"    when: {threads: 16, prior: flushed}\n"
	"    rules: [{from: 0, kernel: stosb}]\n"
	"  - intent: cold\n"
	"    when: {threads: 4, prior: flushed}\n"
	"    rules: [{from: 0, kernel: sse2}]\n"
	"  - intent: scrub\n"
	"    when: {threads: 1}\n"
	"    rules: [{from: 0, kernel: libc}, {from: 4096, kernel: sse2nt, chunk: 100000}]\n";

static inline const char *good_text(unsigned generation)
{
	return policy_text(generation, here(), pc_arch, some_rules);
}

static inline const struct pageclear_policy *open_text(const char *text)
{
	const struct pageclear_policy *policy = NULL;
	const char *path = in_folder("explicit.yaml");

	publish(path, text);
	CU_ASSERT_EQUAL_FATAL(pageclear_policy_open(&policy, path), 0);
	return policy;
}

/* Every test begins without files and without the environment's say. */
static inline void start_bare(void)
{
	static char run[600], etc[600];

	snprintf(run, sizeof(run), "%s/run.yaml", unit_folder());
	snprintf(etc, sizeof(etc), "%s/etc.yaml", unit_folder());
	pc_search_paths[0] = run;
	pc_search_paths[1] = etc;
	unlink(pc_search_paths[0]);
	unlink(pc_search_paths[1]);
	/* By way of the off switch, since files that are missing at other paths look the same to a reload. */
	setenv("PAGECLEAR_POLICY", "builtin", 1);
	pageclear_reload();
	unsetenv("PAGECLEAR_POLICY");
	pageclear_reload();
}

static inline void assert_status(int code, const char *part)
{
	char text[1600];

	CU_ASSERT_EQUAL(pageclear_status(text, sizeof(text)), code);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, part));
	if (strstr(text, part) == NULL)
		printf("\n'%s' is not in '%s'\n", part, text);
}

static inline const char *probing_text(const char *probe)
{
	char clear[4096];

	snprintf(clear, sizeof(clear), "%s%s", probe, some_rules);
	return policy_text(1, here(), pc_arch, clear);
}

static inline struct pageclear_choice choose(const struct pageclear_policy *policy, size_t len, unsigned intent,
                                             unsigned threads)
{
	struct pageclear_query query = {.size = sizeof(query), .len = len, .intent = intent, .threads = threads};
	struct pageclear_choice choice = {.size = sizeof(choice)};

	CU_ASSERT_EQUAL(pageclear_policy_choose(policy, &query, &choice), 0);
	CU_ASSERT_EQUAL(choice.size, sizeof(choice));
	return choice;
}

#endif
