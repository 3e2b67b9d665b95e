/*
 * Policies out and in again. `test-export --dump FOLDER` writes all sample policies there, for validators that share no
 * code with us (tests/cli/schema.bats).
 */
#include "calibrd/export.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <pageclear/policy.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/harness.h"

static struct pc_rule cold_rules[] = {
	{.from = 0, .kernel = "libc"},
	{.from = 2048, .low = 1536, .high = 3072, .kernel = "clzero", .gain = 2.91},
};
static struct pc_rule hot_rules[] = {{.from = 0, .kernel = "libc"}};
static struct pc_rule scrub_rules[] = {
	{.from = 0, .kernel = "libc"},
	{.from = 4096, .kernel = "movnti", .chunk = 2097152, .gain = 1.5, .pinned = true},
	{.from = 65536, .low = 60000, .high = 70000, .kernel = "libc", .chunk = 65536},
	{.from = 1048576, .kernel = "not_of_this_cpu", .gain = 1},
	{.from = UINT64_MAX, .kernel = "sse2nt", .chunk = UINT64_MAX, .gain = 0.07},
};
static struct pc_table one_table[] = {{PAGECLEAR_COLD, PC_FLUSHED, 1, 2, cold_rules}};
static struct pc_table all_tables[] = {
	{PAGECLEAR_HOT, PC_CACHED, 1, 1, hot_rules},      {PAGECLEAR_HOT, PC_FLUSHED, 1, 2, cold_rules},
	{PAGECLEAR_HOT, PC_UNKNOWN, 1, 1, hot_rules},     {PAGECLEAR_COLD, PC_CACHED, 1, 1, hot_rules},
	{PAGECLEAR_COLD, PC_FLUSHED, 1, 2, cold_rules},   {PAGECLEAR_COLD, PC_UNKNOWN, 1, 2, cold_rules},
	{PAGECLEAR_SCRUB, PC_UNKNOWN, 1, 5, scrub_rules}, {PAGECLEAR_HOT, PC_CACHED, 96, 1, hot_rules},
	{PAGECLEAR_COLD, PC_FLUSHED, 96, 2, cold_rules},  {PAGECLEAR_SCRUB, PC_UNKNOWN, 96, 5, scrub_rules},
};

static struct pc_document design(void)
{
	return (struct pc_document){.generation = 7,
	                            .version = "0.1.0",
	                            .written = "2026-11-30T10:42:07Z",
	                            .quality = "good",
	                            .topology = "3f9ac2d14b07",
	                            .arch = "x86_64",
	                            .cpu_count = 1,
	                            .cpus = {"AuthenticAMD 25/1/1"},
	                            .name = "AMD EPYC",
	                            .knee_bytes = 8388608,
	                            .probe = {.from = 262144, .lines = 4, .slow_ns = 57},
	                            .table_count = 1,
	                            .tables = one_table};
}

/* Text that YAML could take for something else: quoting must hold. */
static struct pc_document awkward(void)
{
	struct pc_document document = design();

	document.generation = UINT64_MAX;
	strcpy(document.version, "1.10");
	strcpy(document.quality, "noisy");
	strcpy(document.topology, "123456789012");
	strcpy(document.arch, "");
	strcpy(document.name, "\"C:\\\" # {a: [b, 'Gr\xc3\xbc\xc3\x9f"
	                      "e']} - &x *y !z \xe4\xb8\xad %");
	document.cpu_count = PC_CPUS_MAX;
	for (size_t i = 0; i < PC_CPUS_MAX; i++)
		strcpy(document.cpus[i], i % 2 == 0 ? "GenuineIntel 6/151/2" : "true");
	document.knee_bytes = 0;
	document.probe.slow_ns = 1234.5;
	document.table_count = sizeof(all_tables) / sizeof(all_tables[0]);
	document.tables = all_tables;
	return document;
}

static struct pc_document bare(void)
{
	struct pc_document document = design();

	strcpy(document.quality, "emulated");
	memset(&document.probe, 0, sizeof(document.probe));
	document.table_count = 0;
	return document;
}

static struct pc_document (*const samples[])(void) = {design, awkward, bare};

enum { SAMPLES = sizeof(samples) / sizeof(samples[0]) };

/* --- tests ------------------------------------------------------------------------------------------------------- */

/* libyaml doesn't indent lists inside mappings; but for that, and the comments, it is the text of the design. */
static const char expected[] = "# Measured by calibrd on this host. Edits are lost: pin choices in calibrd.yaml.\n"
			       "format: 1\n"
			       "generation: 7\n"
			       "version: \"0.1.0\"\n"
			       "written: \"2026-11-30T10:42:07Z\"\n"
			       "quality: good\n"
			       "host:\n"
			       "  topology: \"3f9ac2d14b07\"\n"
			       "  arch: \"x86_64\"\n"
			       "  cpus: [\"AuthenticAMD 25/1/1\"]\n"
			       "  name: \"AMD EPYC\"\n"
			       "  knee_bytes: 8388608\n"
			       "probe: {from: 262144, lines: 4, slow_ns: 57}\n"
			       "clear:\n"
			       "- intent: cold\n"
			       "  when: {threads: 1, prior: flushed}\n"
			       "  rules:\n"
			       "  - {from: 0, kernel: libc}\n"
			       "  - {from: 2048, low: 1536, high: 3072, kernel: clzero, chunk: 0, gain: 2.91}\n";

static void as_designed(void)
{
	struct pc_document document = design();
	char *text = NULL;
	size_t len = 0;

	CU_ASSERT_EQUAL_FATAL(export_yaml(&document, &text, &len, NULL), 0);
	CU_ASSERT_STRING_EQUAL(text, expected);
	CU_ASSERT_EQUAL(len, strlen(text));
	free(text);
}

/* Members that export_same() leaves out, and those it might compare wrongly. */
static void check_equal(const struct pc_document *a, const struct pc_document *b)
{
	CU_ASSERT_TRUE(export_same(a, b));
	CU_ASSERT_EQUAL(a->generation, b->generation);
	CU_ASSERT_STRING_EQUAL(a->written, b->written);
	CU_ASSERT_STRING_EQUAL(a->name, b->name);
	CU_ASSERT_EQUAL(a->probe.slow_ns, b->probe.slow_ns);
	CU_ASSERT_EQUAL_FATAL(a->table_count, b->table_count);
	for (size_t i = 0; i < a->table_count; i++) {
		CU_ASSERT_EQUAL(a->tables[i].intent, b->tables[i].intent);
		CU_ASSERT_EQUAL(a->tables[i].prior, b->tables[i].prior);
		CU_ASSERT_EQUAL_FATAL(a->tables[i].rule_count, b->tables[i].rule_count);
		for (size_t j = 0; j < a->tables[i].rule_count; j++) {
			const struct pc_rule *one = &a->tables[i].rules[j], *two = &b->tables[i].rules[j];

			CU_ASSERT_EQUAL(one->from, two->from);
			CU_ASSERT_EQUAL(one->low, two->low);
			CU_ASSERT_EQUAL(one->high, two->high);
			CU_ASSERT_EQUAL(one->chunk, two->chunk);
			CU_ASSERT_EQUAL(one->gain, two->gain);
			CU_ASSERT_EQUAL(one->pinned, two->pinned);
			CU_ASSERT_STRING_EQUAL(one->kernel, two->kernel);
		}
	}
}

static void comes_back(void)
{
	for (size_t i = 0; i < SAMPLES; i++) {
		struct pc_document document = samples[i](), *back;
		struct pc_why why = {""};
		char *text, *again;
		size_t len, len_again;

		CU_ASSERT_EQUAL_FATAL(export_yaml(&document, &text, &len, &why), 0);
		CU_ASSERT_TRUE(len < EXPORT_MAX_BYTES);
		CU_ASSERT_EQUAL_FATAL(pc_document_parse(&back, text, len, &why), 0);
		check_equal(&document, back);
		CU_ASSERT_EQUAL_FATAL(export_yaml(back, &again, &len_again, &why), 0);
		CU_ASSERT_STRING_EQUAL(again, text);
		free(text);
		free(again);
		pc_document_free(back);
	}
}

/* A person reads it too. */
static void stays_readable(void)
{
	struct pc_document document = awkward();
	char *text = NULL;
	size_t len;

	CU_ASSERT_EQUAL_FATAL(export_yaml(&document, &text, &len, NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "'Gr\xc3\xbc\xc3\x9f"
	                                    "e'"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text,
	                              "\n  - {from: 18446744073709551615, kernel: sse2nt, chunk: 18446744073709551615, "
	                              "gain: 0.07}\n"));
	CU_ASSERT_PTR_NOT_NULL(
		strstr(text, "\n  - {from: 4096, kernel: movnti, chunk: 2097152, gain: 1.50, pinned: true}\n"));
	const char *cpus = strstr(text, "  cpus: [");
	CU_ASSERT_PTR_NOT_NULL_FATAL(cpus);
	CU_ASSERT_EQUAL(cpus[strcspn(cpus, "\n") - 1], ']'); /* 180 columns, not folded */
	free(text);
}

static void rounds_and_omits(void)
{
	struct pc_rule rules[] = {{.from = 0, .kernel = "libc", .gain = 1.0004},
	                          {.from = 1, .kernel = "stosb", .gain = 1.23456},
	                          {.from = 2, .kernel = "stosq", .gain = 0.004}};
	struct pc_table table = {PAGECLEAR_HOT, PC_CACHED, 2, 3, rules};
	struct pc_document document = design();
	char *text = NULL;
	size_t len;

	document.tables = &table;
	document.probe.slow_ns = 57.126;
	CU_ASSERT_EQUAL_FATAL(export_yaml(&document, &text, &len, NULL), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "- {from: 0, kernel: libc}\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "- {from: 1, kernel: stosb, chunk: 0, gain: 1.23}\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "- {from: 2, kernel: stosq, chunk: 0}\n"));
	CU_ASSERT_PTR_NOT_NULL(strstr(text, "slow_ns: 57.13}"));
	free(text);
}

/* One made for the test, since none with a decimal comma need be installed. */
static bool set_comma(void)
{
	char command[4500];

	snprintf(command, sizeof(command), "localedef -i de_DE -f UTF-8 '%s/de_DE.UTF-8' >/dev/null 2>&1",
	         unit_folder());
	return system(command) == 0 && setenv("LOCPATH", unit_folder(), 1) == 0 &&
	       setlocale(LC_ALL, "de_DE.UTF-8") != NULL && localeconv()->decimal_point[0] == ',';
}

/* A program may have set any locale. */
static void ignores_the_locale(void)
{
	struct pc_document document = design();
	char *text = NULL;
	size_t len;

	if (!set_comma()) {
		unit_skip("localedef can't make a locale with a decimal comma");
		return;
	}
	int r = export_yaml(&document, &text, &len, NULL);
	setlocale(LC_ALL, "C");
	CU_ASSERT_EQUAL_FATAL(r, 0);
	CU_ASSERT_STRING_EQUAL(text, expected);
	free(text);
}

enum { LARGE_TABLES = 5 };

/* `count` rules of much the same length in five tables, and `filler` bytes of text. */
static int export_large(size_t count, size_t filler, size_t *len, struct pc_why *why)
{
	static struct pc_rule rules[PC_RULES_MAX];
	struct pc_table tables[LARGE_TABLES];
	struct pc_document document = design();
	size_t name = filler < 60 ? filler : 60;
	char *text = NULL;

	for (unsigned i = 0; i < PC_RULES_MAX; i++)
		rules[i] = (struct pc_rule){
			.from = i * 1000000ull, .low = 100000, .high = 200000, .kernel = "avx512nt", .gain = 2};
	for (unsigned i = 0; i < LARGE_TABLES; i++) {
		size_t part = count / LARGE_TABLES + (i < count % LARGE_TABLES);

		tables[i] = (struct pc_table){PAGECLEAR_COLD, PC_CACHED, i + 1, part, rules};
	}
	memset(document.name, 'n', name);
	document.name[name] = '\0';
	memset(document.version, 'v', filler - name);
	document.version[filler - name] = '\0';
	document.table_count = LARGE_TABLES;
	document.tables = tables;
	int r = export_yaml(&document, &text, len, why);
	free(text);
	return r;
}

/* Rule by rule up to the limit, the last stretch byte by byte. */
static void fits_or_fails(void)
{
	size_t count = 100, filler = 0, len = 0;
	struct pc_why why = {""};

	while (export_large(count, 0, &len, &why) == 0)
		count++;
	CU_ASSERT_EQUAL_FATAL(export_large(count, 0, &len, &why), -EFBIG);
	while (filler < 90 && export_large(count - 1, filler, &len, &why) == 0)
		filler++;
	CU_ASSERT_EQUAL(export_large(count - 1, filler, &len, &why), -EFBIG);
	CU_ASSERT_EQUAL(len, EXPORT_MAX_BYTES - 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "16383"));
}

static void check_refusal(struct pc_document *document, int code)
{
	static const struct pc_why none = {""};
	struct pc_why why = none;
	char *text = NULL;
	size_t len = 99;

	CU_ASSERT_EQUAL(export_yaml(document, &text, &len, &why), code);
	CU_ASSERT_PTR_NULL(text);
	CU_ASSERT_EQUAL(len, 99);
	CU_ASSERT_NOT_EQUAL(why.text[0], '\0');
	free(text);
}

/* Nothing is published that readers would refuse, or read as something else. */
static void refuses(void)
{
	struct pc_rule rules[] = {{.from = 0, .kernel = "libc"}, {.from = 4096, .kernel = "stosb", .gain = 1.5}};
	struct pc_table table = {PAGECLEAR_HOT, PC_CACHED, 1, 2, rules};
	struct pc_document document;

#define REFUSED(change, code)                                                                                          \
	do {                                                                                                           \
		document = design();                                                                                   \
		document.tables = &table;                                                                              \
		change;                                                                                                \
		check_refusal(&document, code);                                                                        \
	} while (0)
	REFUSED(strcpy(document.name, "latin \xe9"), -EINVAL);
	REFUSED(strcpy(document.name, "bell \a"), -EBADMSG);
	REFUSED(strcpy(document.quality, "superb"), -EBADMSG);
	REFUSED(document.cpu_count = 0, -EBADMSG);
	REFUSED(document.probe.slow_ns = NAN, -EINVAL);
	REFUSED(document.probe.slow_ns = -1, -EINVAL);
	REFUSED(document.probe.lines = 0, -EBADMSG);
	REFUSED(rules[1].gain = INFINITY, -EINVAL);
	REFUSED((rules[1].gain = 1.5, rules[1].from = 0), -EBADMSG);
	REFUSED((rules[1].from = 4096, strcpy(rules[1].kernel, "Stosb")), -EBADMSG);
	REFUSED((strcpy(rules[1].kernel, "stosb"), table.rule_count = 0), -EBADMSG);
	REFUSED((table.rule_count = 2, table.threads = 0), -EBADMSG);
	REFUSED((table.threads = 1, table.intent = 7), -EBADMSG);
#undef REFUSED
}

static void same_but_for_time(void)
{
	struct pc_document a = awkward(), b = awkward();

	b.generation = 1;
	strcpy(b.written, "later");
	CU_ASSERT_TRUE(export_same(&a, &b));
	a.probe.slow_ns = 57.001;
	b.probe.slow_ns = 57.002;
	CU_ASSERT_TRUE(export_same(&a, &b)); /* the same as written */
}

static void differs_in_anything_else(void)
{
	struct pc_rule rules[5];
	struct pc_table tables[sizeof(all_tables) / sizeof(all_tables[0])];
	struct pc_document a = awkward(), b;

#define DIFFERS(change)                                                                                                \
	do {                                                                                                           \
		memcpy(rules, scrub_rules, sizeof(rules));                                                             \
		memcpy(tables, all_tables, sizeof(tables));                                                            \
		tables[6].rules = rules;                                                                               \
		b = awkward();                                                                                         \
		b.tables = tables;                                                                                     \
		CU_ASSERT_TRUE(export_same(&a, &b));                                                                   \
		change;                                                                                                \
		CU_ASSERT_FALSE(export_same(&a, &b));                                                                  \
		CU_ASSERT_FALSE(export_same(&b, &a));                                                                  \
	} while (0)
	DIFFERS(strcpy(b.version, "2"));
	DIFFERS(strcpy(b.quality, "good"));
	DIFFERS(strcpy(b.topology, "t"));
	DIFFERS(strcpy(b.arch, "a"));
	DIFFERS(strcpy(b.name, "n"));
	DIFFERS(strcpy(b.cpus[7], "c"));
	DIFFERS(b.cpu_count--);
	DIFFERS(b.knee_bytes++);
	DIFFERS(b.probe.from++);
	DIFFERS(b.probe.from = 0);
	DIFFERS(b.probe.lines++);
	DIFFERS(b.probe.slow_ns += 0.01);
	DIFFERS(b.table_count--);
	DIFFERS(tables[6].intent = PAGECLEAR_HOT);
	DIFFERS(tables[6].prior = PC_CACHED);
	DIFFERS(tables[6].threads++);
	DIFFERS(tables[6].rule_count--);
	DIFFERS(rules[1].from++);
	DIFFERS(rules[1].low++);
	DIFFERS(rules[1].high++);
	DIFFERS(rules[1].chunk++);
	DIFFERS(rules[1].gain += 0.01);
	DIFFERS(rules[1].pinned = false);
	DIFFERS(strcpy(rules[1].kernel, "sse2"));
#undef DIFFERS
}

static const struct unit_test tests[] = {
	{"the example of the design", as_designed},
	{"what is written is read back exactly", comes_back},
	{"one line a rule, letters as they are", stays_readable},
	{"hundredths; libc and zero have no gain", rounds_and_omits},
	{"decimal points in any locale", ignores_the_locale},
	{"up to the last byte below 16 KiB, not beyond", fits_or_fails},
	{"refuses what readers would", refuses},
	{"the same but for generation and time", same_but_for_time},
	{"every other member counts", differs_in_anything_else},
};

static int dump(const char *folder)
{
	for (size_t i = 0; i < SAMPLES; i++) {
		struct pc_document document = samples[i]();
		struct pc_why why = {""};
		char path[4096], *text;
		size_t len;

		snprintf(path, sizeof(path), "%s/%zu.yaml", folder, i);
		if (export_yaml(&document, &text, &len, &why) < 0) {
			fprintf(stderr, "%s: %s\n", path, why.text);
			return 1;
		}
		FILE *file = fopen(path, "w");
		bool bad = file == NULL || fwrite(text, 1, len, file) != len;
		free(text);
		if (bad || fclose(file) != 0) {
			perror(path);
			return 1;
		}
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--dump") == 0)
		return dump(argv[2]);
	return unit_main("export", tests, sizeof(tests) / sizeof(tests[0]));
}
