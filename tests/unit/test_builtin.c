/* The built-in policy: for processors that are not here, for masked ones, and for this one. */
#include <ftw.h>
#include <pageclear/policy.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cpu.h"
#include "kernels/cpuid.h"
#include "libpolicy/builtin.h"
#include "libpolicy/policy.h"
#include "tests/unit/harness.h"

#define EVERYTHING UINT32_MAX

/* "clzero@16384", "" for no rule: what cold and flushed gets. */
static const char *flushed_rule(const char *cpu, uint32_t features)
{
	static char text[64];
	static struct pc_builtin builtin;
	const struct pc_table *table;

	pc_builtin_fill(&builtin, cpu, features);
	table = pc_document_table(&builtin.document, PAGECLEAR_COLD, PC_FLUSHED, 1);
	if (table == NULL)
		return "";
	CU_ASSERT_STRING_EQUAL(pc_table_rule(table, 0)->kernel, "libc");
	CU_ASSERT_STRING_EQUAL(pc_table_rule(table, table->rules[1].from - 1)->kernel, "libc");
	snprintf(text, sizeof(text), "%s@%llu", table->rules[1].kernel, (unsigned long long)table->rules[1].from);
	return text;
}

static void test_cpus_by_name(void)
{
#if defined(__x86_64__)
	static const struct {
		const char *cpu, *rule;
	} rows[] = {
		{"AuthenticAMD 23/49/0", "clzero@16384"},     /* Rome */
		{"AuthenticAMD 23/113/0", "clzero@16384"},    /* Matisse */
		{"AuthenticAMD 25/1/1", "clzero@16384"},      /* Milan */
		{"AuthenticAMD 25/80/0", "clzero@16384"},     /* Cezanne */
		{"AuthenticAMD 23/1/2", ""},                  /* Naples: no figures */
		{"AuthenticAMD 23/80/0", ""},                 /* Dali, a Zen 1 */
		{"AuthenticAMD 25/17/1", ""},                 /* Genoa: no figures */
		{"AuthenticAMD 26/2/1", ""},                  /* Turin */
		{"AuthenticAMD 21/2/0", ""},                  /* Dinar: too little, and no ERMS */
		{"HygonGenuine 24/0/1", ""},                  /* Zen 1 by another name */
		{"GenuineIntel 6/63/2", "movnti@16384"},      /* Haswell-EP */
		{"GenuineIntel 6/79/1", "movnti@134217728"},  /* Broadwell-EP */
		{"GenuineIntel 6/106/6", "movnti@134217728"}, /* Ice Lake-SP */
		{"GenuineIntel 6/85/7", ""},                  /* Skylake-X: never wins */
		{"GenuineIntel 6/94/3", ""},                  /* Skylake client */
		{"GenuineIntel 6/45/7", ""},                  /* Sandy Bridge-EP */
		{"GenuineIntel 6/60/3", ""},                  /* Haswell client, and what hypervisors call Haswell */
		{"AuthenticAMD 6/63/2", ""},                  /* right numbers, wrong vendor */
		{"GenuineIntel 25/1/1", ""},
		{"arm64 65/3340/1", ""},
		{"unknown", ""},
		{"", ""},
		{"AuthenticAMD", ""},
		{"AuthenticAMD 25", ""},
		{"a-vendor-with-a-very-long-name 25/1/1", ""},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *rule = flushed_rule(rows[i].cpu, EVERYTHING);

		CU_ASSERT_STRING_EQUAL(rule, rows[i].rule);
		if (strcmp(rule, rows[i].rule) != 0)
			printf("\n%s: '%s', not '%s'\n", rows[i].cpu, rule, rows[i].rule);
	}
#else
	CU_ASSERT_STRING_EQUAL(flushed_rule("AuthenticAMD 25/1/1", EVERYTHING), ""); /* nor are its kernels here */
#endif
}

static const char *scrubber(uint32_t features)
{
	static struct pc_builtin builtin;

	pc_builtin_fill(&builtin, "unknown", features);
	CU_ASSERT_EQUAL(builtin.document.table_count, 1);
	CU_ASSERT_EQUAL(builtin.tables[PC_BUILTIN_SCRUB].rules[1].from, 4096);
	return builtin.tables[PC_BUILTIN_SCRUB].rules[1].kernel;
}

/* What a hypervisor hides is not used, whatever the CPU calls itself. */
static void test_masked_features(void)
{
#if defined(__x86_64__)
	CU_ASSERT_STRING_EQUAL(flushed_rule("AuthenticAMD 25/1/1", EVERYTHING & ~PC_CPU_CLZERO), "");
	CU_ASSERT_STRING_EQUAL(flushed_rule("AuthenticAMD 25/1/1", PC_CPU_CLZERO), "clzero@16384");
	CU_ASSERT_STRING_EQUAL(flushed_rule("GenuineIntel 6/63/2", 0), "movnti@16384");
	CU_ASSERT_STRING_EQUAL(scrubber(PC_CPU_CLZERO), "clzero");
	CU_ASSERT_STRING_EQUAL(scrubber(EVERYTHING & ~PC_CPU_CLZERO), "movnti");
	CU_ASSERT_STRING_EQUAL(scrubber(0), "movnti");
#else
	CU_ASSERT_PTR_NOT_NULL(pc_kernel_find(scrubber(0)));
#endif
}

/* Where no rule is known every answer but scrub's is libc, with a hint and without. */
static void test_nothing_else_is_touched(void)
{
	static struct pc_builtin builtin;

	pc_builtin_fill(&builtin, "AuthenticAMD 25/1/1", EVERYTHING);
	CU_ASSERT_EQUAL(builtin.document.probe.from, 0);
	for (unsigned prior = PC_UNKNOWN; prior < PC_PRIORS; prior++) {
		CU_ASSERT_PTR_NULL(pc_document_table(&builtin.document, PAGECLEAR_HOT, (enum pc_prior)prior, 1));
		if (prior != PC_FLUSHED)
			CU_ASSERT_PTR_NULL(
				pc_document_table(&builtin.document, PAGECLEAR_COLD, (enum pc_prior)prior, 1));
	}
}

/* By way of the public functions: the same as the document that was made for this CPU. */
static void test_this_host(void)
{
	const struct pageclear_policy *policy = NULL;
	static struct pc_builtin builtin;
	const struct pc_document *document = &builtin.document;

	pc_builtin_here(&builtin);
	CU_ASSERT_EQUAL_FATAL(pageclear_policy_builtin(&policy), 0);
	for (size_t len = 1; len <= (size_t)1 << 30; len *= 2) {
		struct pageclear_query query = {
			.size = sizeof(query), .len = len, .intent = PAGECLEAR_COLD | PAGECLEAR_FLUSHED};
		struct pageclear_choice choice = {.size = sizeof(choice)};
		const struct pc_table *table = pc_document_table(document, PAGECLEAR_COLD, PC_FLUSHED, 1);
		const char *expected = table == NULL ? "libc" : pc_table_rule(table, len)->kernel;

		CU_ASSERT_EQUAL(pageclear_policy_choose(policy, &query, &choice), 0);
		CU_ASSERT_STRING_EQUAL(choice.kernel, expected);
		CU_ASSERT_TRUE(pc_kernel_runs(pc_kernel_find(choice.kernel)));
	}
	pageclear_policy_close(policy);
}

#if defined(__x86_64__)
/* --- raw CPUID from the field ------------------------------------------------------------------------------------ */

static struct {
	unsigned dumps, clzero, movnti, wrong;
} seen;

/* The first CPU's leaves; an OS that saves all registers is assumed. */
static bool read_dump(const char *path, struct pc_cpuid *id)
{
	FILE *file = fopen(path, "re");
	char row[256];
	bool has[2] = {false, false};

	*id = (struct pc_cpuid){.xcr0 = UINT64_MAX};
	while (file != NULL && fgets(row, sizeof(row), file) != NULL) {
		uint32_t leaf, a, b, c, d;

		if (sscanf(row, "CPUID %x: %x-%x-%x-%x", &leaf, &a, &b, &c, &d) != 5)
			continue;
		if (leaf == 0 && !has[0]) {
			memcpy(id->vendor, &b, 4);
			memcpy(id->vendor + 4, &d, 4);
			memcpy(id->vendor + 8, &c, 4);
			has[0] = true;
		} else if (leaf == 1 && !has[1]) {
			id->leaf1_eax = a, id->leaf1_ebx = b, id->leaf1_ecx = c, id->leaf1_edx = d;
			has[1] = true;
		} else if (leaf == 7 && id->leaf7_ebx == 0) {
			id->leaf7_ebx = b, id->leaf7_ecx = c, id->leaf7_edx = d;
		} else if (leaf == 0x80000008) {
			id->leaf80000008_ebx = b;
		}
	}
	if (file != NULL)
		fclose(file);
	return has[0] && has[1];
}

/* By the folder, which names the core. The 4800S is a console's, with memory that no figure is of. */
static bool is_zen2_or_3(const char *path)
{
	return (strstr(path, "/zen2/") != NULL && strstr(path, "4800s") == NULL) || strstr(path, "/zen3/") != NULL ||
	       strstr(path, "/zen3+/") != NULL;
}

/* Broadwell is Haswell's shrink, and lies with it. */
static bool may_be_large_intel(const char *path)
{
	return strstr(path, "/haswell/") != NULL || strstr(path, "/sunny-cove/") != NULL;
}

static int visit(const char *path, const struct stat *status, int kind, struct FTW *at)
{
	struct pc_cpuid id;
	char cpu[48];
	const char *rule;

	(void)status;
	(void)at;
	if (kind != FTW_F || !read_dump(path, &id))
		return 0;
	pc_cpuid_signature(&id, cpu, sizeof(cpu));
	rule = flushed_rule(cpu, pc_cpuid_features(&id));
	seen.dumps++;
	seen.clzero += strncmp(rule, "clzero@", 7) == 0;
	seen.movnti += strncmp(rule, "movnti@", 7) == 0;
	if ((strncmp(rule, "clzero@", 7) == 0) != is_zen2_or_3(path) ||
	    (strncmp(rule, "movnti@", 7) == 0 && !may_be_large_intel(path))) {
		seen.wrong++;
		printf("\n%s (%s): '%s'\n", path, cpu, rule);
	}
	return 0;
}

static void test_dumps_from_the_field(void)
{
	const char *folder = unit_shared("cpuid");

	if (folder == NULL) {
		unit_skip("no raw CPUID dumps beside the project");
		return;
	}
	CU_ASSERT_EQUAL(nftw(folder, visit, 16, FTW_PHYS), 0);
	CU_ASSERT_EQUAL(seen.wrong, 0);
	CU_ASSERT_TRUE(seen.dumps > 100);
	CU_ASSERT_TRUE(seen.clzero > 10);
	CU_ASSERT_TRUE(seen.movnti > 0);
	CU_ASSERT_TRUE(seen.clzero + seen.movnti < seen.dumps / 2);
}
#endif

static const struct unit_test tests[] = {
	{"cpus_by_name", test_cpus_by_name},
	{"masked_features", test_masked_features},
	{"nothing_else_is_touched", test_nothing_else_is_touched},
	{"this_host", test_this_host},
#if defined(__x86_64__)
	{"dumps_from_the_field", test_dumps_from_the_field},
#endif
};

UNIT_MAIN("builtin", tests)
