/* The reader of policy.yaml: the files under tests/data/policy say in their first lines what is to become of them. */
#include <dirent.h>
#include <errno.h>
#include <pageclear/policy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libpolicy/document.h"
#include "tests/unit/harness.h"

#define DATA "tests/data/policy/"

/* Calls check(path, the first line of the file) for each; returns how many there were. */
static int for_each_file(const char *folder, void (*check)(const char *path, const char *line))
{
	DIR *entries = opendir(folder);
	struct dirent *entry;
	int n = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(entries);
	while ((entry = readdir(entries)) != NULL) {
		char path[512], line[200] = "";

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s%s", folder, entry->d_name);
		FILE *file = fopen(path, "r");
		CU_ASSERT_PTR_NOT_NULL_FATAL(file);
		CU_ASSERT_PTR_NOT_NULL(fgets(line, sizeof(line), file));
		fclose(file);
		check(path, line);
		n++;
	}
	closedir(entries);
	return n;
}

static void check_good(const char *path, const char *line)
{
	struct pc_document *document = NULL;
	struct pc_why why = {""};
	size_t tables = 0;
	int r = pc_document_read(&document, path, &why);

	CU_ASSERT_EQUAL(sscanf(line, "# tables: %zu", &tables), 1);
	CU_ASSERT_EQUAL(r, 0);
	if (r != 0)
		printf("\n%s: %s\n", path, why.text);
	else
		CU_ASSERT_EQUAL(document->table_count, tables);
	pc_document_free(document);
}

static void check_bad(const char *path, const char *line)
{
	struct pc_document *document = NULL;
	struct pc_why why = {""};
	char code[32], place[32];
	int r = pc_document_read(&document, path, &why);
	bool as_told = sscanf(line, "# error: %31s %31s", code, place) == 2 && r < 0 &&
	               strcmp(strerrorname_np(-r), code) == 0 && strncmp(why.text, place, strlen(place)) == 0 &&
	               why.text[strlen(place)] == ':';

	CU_ASSERT_TRUE(as_told);
	if (!as_told)
		printf("\n%s: %d, %s\n", path, r, why.text);
	CU_ASSERT_PTR_NULL(document);
	CU_ASSERT_EQUAL(pc_document_read(&document, path, NULL), r);
}

static void test_good_files(void)
{
	CU_ASSERT_TRUE(for_each_file(DATA "good/", check_good) >= 5);
}

static void test_bad_files(void)
{
	CU_ASSERT_TRUE(for_each_file(DATA "bad/", check_bad) >= 70);
}

static struct pc_document *read_good(const char *name)
{
	struct pc_document *document = NULL;
	char path[200];

	snprintf(path, sizeof(path), DATA "good/%s.yaml", name);
	CU_ASSERT_EQUAL_FATAL(pc_document_read(&document, path, NULL), 0);
	return document;
}

static void test_every_member_is_read(void)
{
	struct pc_document *document = read_good("design");

	CU_ASSERT_EQUAL(document->generation, 7);
	CU_ASSERT_STRING_EQUAL(document->version, "0.1.0");
	CU_ASSERT_STRING_EQUAL(document->written, "2026-11-30T10:42:07Z");
	CU_ASSERT_STRING_EQUAL(document->quality, "good");
	CU_ASSERT_STRING_EQUAL(document->topology, "3f9ac2d14b07");
	CU_ASSERT_STRING_EQUAL(document->arch, "x86_64");
	CU_ASSERT_EQUAL(document->cpu_count, 1);
	CU_ASSERT_STRING_EQUAL(document->cpus[0], "AuthenticAMD 25/1/1");
	CU_ASSERT_STRING_EQUAL(document->name, "AMD EPYC");
	CU_ASSERT_EQUAL(document->knee_bytes, 8388608);
	CU_ASSERT_EQUAL(document->probe.from, 262144);
	CU_ASSERT_EQUAL(document->probe.lines, 4);
	CU_ASSERT_DOUBLE_EQUAL(document->probe.slow_ns, 57, 0);

	const struct pc_table *table = &document->tables[0];
	CU_ASSERT_EQUAL(table->intent, PAGECLEAR_COLD);
	CU_ASSERT_EQUAL(table->prior, PC_FLUSHED);
	CU_ASSERT_EQUAL(table->threads, 1);
	CU_ASSERT_EQUAL_FATAL(table->rule_count, 2);
	CU_ASSERT_STRING_EQUAL(table->rules[0].kernel, "libc");
	CU_ASSERT_DOUBLE_EQUAL(table->rules[0].gain, 0, 0);
	CU_ASSERT_EQUAL(table->rules[1].from, 2048);
	CU_ASSERT_EQUAL(table->rules[1].low, 1536);
	CU_ASSERT_EQUAL(table->rules[1].high, 3072);
	CU_ASSERT_EQUAL(table->rules[1].chunk, 0);
	CU_ASSERT_DOUBLE_EQUAL(table->rules[1].gain, 2.91, 0);
	CU_ASSERT_FALSE(table->rules[1].pinned);
	CU_ASSERT_STRING_EQUAL(table->rules[1].kernel, "clzero");
	CU_ASSERT_PTR_NULL(pc_document_free(document));
	CU_ASSERT_PTR_NULL(pc_document_free(NULL));
}

static void test_absent_members_are_zero(void)
{
	struct pc_document *document = read_good("least");

	CU_ASSERT_EQUAL(document->generation, 0);
	CU_ASSERT_STRING_EQUAL(document->quality, "");
	CU_ASSERT_EQUAL(document->probe.from, 0);
	CU_ASSERT_PTR_NULL(pc_document_table(document, PAGECLEAR_HOT, PC_UNKNOWN, 1));
	pc_document_free(document);
}

static void test_unknown_conditions_leave_the_table_out(void)
{
	struct pc_document *document = read_good("later-additions");
	const struct pc_table *cold = pc_document_table(document, PAGECLEAR_COLD, PC_FLUSHED, 1);
	const struct pc_table *scrub = pc_document_table(document, PAGECLEAR_SCRUB, PC_UNKNOWN, 1);

	CU_ASSERT_EQUAL(cold->rule_count, 2);
	CU_ASSERT_STRING_EQUAL(cold->rules[1].kernel, "a_kernel_of2040");
	CU_ASSERT_TRUE(scrub->rules[0].pinned);
	CU_ASSERT_DOUBLE_EQUAL(document->probe.slow_ns, 57.5, 0);
	pc_document_free(document);
}

/* Tables of a later version do not use up the room for those of this one. */
static void test_only_known_tables_are_counted(void)
{
	enum { KNOWN = PC_TABLES_MAX, UNKNOWN = 80 };
	static char text[40000];
	size_t used = (size_t)sprintf(text, "format: 1\nhost: {topology: t, arch: x86_64, cpus: [c]}\nclear:\n");
	struct pc_document *document = NULL;

	for (unsigned i = 1; i <= UNKNOWN; i++)
		used += (size_t)sprintf(text + used, "  - {intent: scrub, when: {threads: %u, node: 1}, rules: []}\n",
		                        i);
	for (unsigned i = 1; i <= KNOWN; i++)
		used += (size_t)sprintf(text + used,
		                        "  - {intent: scrub, when: {threads: %u}, "
		                        "rules: [{from: 0, kernel: libc}]}\n",
		                        i);
	CU_ASSERT_EQUAL_FATAL(pc_document_parse(&document, text, used, NULL), 0);
	CU_ASSERT_EQUAL(document->table_count, KNOWN);
	pc_document_free(document);
}

static void test_every_style_of_yaml(void)
{
	struct pc_document *document = read_good("styles");

	CU_ASSERT_STRING_EQUAL(document->topology, "3f9ac2d14b07");
	CU_ASSERT_STRING_EQUAL(document->cpus[0], "AuthenticAMD 25/1/1");
	CU_ASSERT_STRING_EQUAL(document->name, "Grüße");
	CU_ASSERT_DOUBLE_EQUAL(document->tables[0].rules[0].gain, 1, 0);
	pc_document_free(document);
}

static void test_table_by_threads(void)
{
	struct pc_document *document = read_good("every-table");
	static const struct {
		unsigned asked, found;
	} cases[] = {{0, 1}, {1, 1}, {2, 64}, {64, 64}, {65, 64}, {UINT32_MAX, 64}};

	for (unsigned intent = PAGECLEAR_HOT; intent <= PAGECLEAR_SCRUB; intent++) {
		for (enum pc_prior prior = PC_UNKNOWN; prior < PC_PRIORS; prior++) {
			for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
				const struct pc_table *table =
					pc_document_table(document, intent, prior, cases[i].asked);

				if (intent == PAGECLEAR_SCRUB && prior != PC_UNKNOWN) {
					CU_ASSERT_PTR_NULL(table);
					continue;
				}
				CU_ASSERT_EQUAL(table->threads, cases[i].found);
				CU_ASSERT_EQUAL(table->intent, intent);
				CU_ASSERT_EQUAL(table->prior, prior);
			}
		}
	}
	CU_ASSERT_PTR_NULL(pc_document_table(document, 3, PC_UNKNOWN, 1));
	pc_document_free(document);
}

static void test_rule_by_length(void)
{
	struct pc_rule rules[] = {{.from = 0}, {.from = 2048}, {.from = UINT64_MAX}};
	struct pc_table table = {.rule_count = 3, .rules = rules};

	CU_ASSERT_PTR_EQUAL(pc_table_rule(&table, 0), &rules[0]);
	CU_ASSERT_PTR_EQUAL(pc_table_rule(&table, 2047), &rules[0]);
	CU_ASSERT_PTR_EQUAL(pc_table_rule(&table, 2048), &rules[1]);
	CU_ASSERT_PTR_EQUAL(pc_table_rule(&table, UINT64_MAX - 1), &rules[1]);
	CU_ASSERT_PTR_EQUAL(pc_table_rule(&table, UINT64_MAX), &rules[2]);
}

/* A file that was cut off or changed by one byte is refused or still a policy; a sanitizer sees the rest. */
static void test_damage(void)
{
	char text[2048];
	FILE *file = fopen(DATA "good/design.yaml", "r");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	size_t len = fread(text, 1, sizeof(text), file), whole = 0;

	fclose(file);
	for (size_t i = 0; i < len; i++) {
		static const char bytes[] = {0, '\n', '[', '"', '\t', '&', (char)0xff, '9'};
		struct pc_document *document = NULL;
		char *cut = malloc(i + 1); /* of its exact size, so that reading beyond it shows */

		memcpy(cut, text, i);
		int r = pc_document_parse(&document, cut, i, NULL);
		CU_ASSERT_TRUE(r == 0 || r == -EBADMSG);
		whole += r == 0;
		document = pc_document_free(document);
		free(cut);

		char kept = text[i];
		text[i] = bytes[i % sizeof(bytes)];
		r = pc_document_parse(&document, text, len, NULL);
		CU_ASSERT_TRUE(r == 0 || r == -EBADMSG || r == -EPROTONOSUPPORT);
		pc_document_free(document);
		text[i] = kept;
	}
	CU_ASSERT_TRUE(whole > 0 && whole < len / 4);
}

static void assert_read(const char *path, int code, const char *reason)
{
	struct pc_document *document = NULL;
	struct pc_why why = {""};

	CU_ASSERT_EQUAL(pc_document_read(&document, path, &why), code);
	CU_ASSERT_STRING_EQUAL(why.text, reason);
	CU_ASSERT_PTR_NULL(document);
}

static void write_bytes(const char *path, size_t n)
{
	FILE *file = fopen(path, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	for (size_t i = 0; i < n; i++)
		fputc('#', file);
	fclose(file);
}

static void test_files_that_are_none(void)
{
	char path[600];

	assert_read(DATA "nowhere.yaml", -ENOENT, "No such file or directory");
	assert_read(DATA "good/least.yaml/x", -ENOTDIR, "Not a directory");
	assert_read(DATA, -EBADMSG, "not a regular file");
	assert_read("/dev/null", -EBADMSG, "not a regular file");

	snprintf(path, sizeof(path), "%s/pipe", unit_folder());
	CU_ASSERT_EQUAL(mkfifo(path, 0600), 0);
	assert_read(path, -EBADMSG, "not a regular file");

	snprintf(path, sizeof(path), "%s/loop", unit_folder());
	CU_ASSERT_EQUAL(symlink("loop", path), 0);
	assert_read(path, -ELOOP, "Too many levels of symbolic links");

	snprintf(path, sizeof(path), "%s/large", unit_folder());
	write_bytes(path, PC_DOCUMENT_MAX_BYTES + 1);
	assert_read(path, -EFBIG, "larger than 65536 bytes");
	write_bytes(path, PC_DOCUMENT_MAX_BYTES);
	assert_read(path, -EBADMSG, "1:1: format is missing");
	write_bytes(path, 0);
	assert_read(path, -EBADMSG, "1:1: format is missing");
}

static void test_symbolic_links_are_followed(void)
{
	struct pc_document *document = NULL;
	char path[600], here[4096], target[4200];

	CU_ASSERT_PTR_NOT_NULL_FATAL(getcwd(here, sizeof(here)));
	snprintf(target, sizeof(target), "%s/" DATA "good/least.yaml", here);
	snprintf(path, sizeof(path), "%s/link", unit_folder());
	CU_ASSERT_EQUAL(symlink(target, path), 0);
	CU_ASSERT_EQUAL(pc_document_read(&document, path, NULL), 0);
	pc_document_free(document);
}

static void test_names(void)
{
	CU_ASSERT_STRING_EQUAL(pc_intent_name(PAGECLEAR_HOT), "hot");
	CU_ASSERT_STRING_EQUAL(pc_intent_name(PAGECLEAR_COLD), "cold");
	CU_ASSERT_STRING_EQUAL(pc_intent_name(PAGECLEAR_SCRUB), "scrub");
	CU_ASSERT_STRING_EQUAL(pc_intent_name(3), "unknown");
	CU_ASSERT_STRING_EQUAL(pc_prior_name(PC_UNKNOWN), "unknown");
	CU_ASSERT_STRING_EQUAL(pc_prior_name(PC_CACHED), "cached");
	CU_ASSERT_STRING_EQUAL(pc_prior_name(PC_FLUSHED), "flushed");
}

static void test_why(void)
{
	struct pc_why why;
	char longer[400];

	CU_ASSERT_EQUAL(pc_why(NULL, -ENOENT, "%s", "unheard"), -ENOENT);
	CU_ASSERT_EQUAL(pc_why(&why, -EBADMSG, "%d:%d", 3, 4), -EBADMSG);
	CU_ASSERT_STRING_EQUAL(why.text, "3:4");
	memset(longer, 'x', sizeof(longer) - 1);
	longer[sizeof(longer) - 1] = '\0';
	CU_ASSERT_EQUAL(pc_why(&why, 1, "%s", longer), 1);
	CU_ASSERT_EQUAL(strlen(why.text), sizeof(why.text) - 1);
}

static const struct unit_test tests[] = {
	{"good_files", test_good_files},
	{"bad_files", test_bad_files},
	{"every_member_is_read", test_every_member_is_read},
	{"absent_members_are_zero", test_absent_members_are_zero},
	{"unknown_conditions_leave_the_table_out", test_unknown_conditions_leave_the_table_out},
	{"only_known_tables_are_counted", test_only_known_tables_are_counted},
	{"every_style_of_yaml", test_every_style_of_yaml},
	{"table_by_threads", test_table_by_threads},
	{"rule_by_length", test_rule_by_length},
	{"damage", test_damage},
	{"files_that_are_none", test_files_that_are_none},
	{"symbolic_links_are_followed", test_symbolic_links_are_followed},
	{"names", test_names},
	{"why", test_why},
};

UNIT_MAIN("document", tests)
