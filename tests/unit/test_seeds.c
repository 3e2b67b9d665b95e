/*
 * The fuzzers' seeds say something: every file of tests/fuzz/corpus/config tells in its first line what becomes of it
 * ("# good", or "# error: CODE LINE:COLUMN"), and no key of calibrd.yaml or policy.yaml is without a right and a wrong
 * value among the seeds. What becomes of tests/data/policy, test_document.c says.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "calibrd/config.h"
#include "libpolicy/document.h"
#include "tests/unit/harness.h"

#define CONFIG "tests/fuzz/corpus/config/"
#define POLICY_GOOD "tests/data/policy/good/"
#define POLICY_BAD "tests/data/policy/bad/"

/* Of all files of a folder, one behind the other. */
struct texts {
	char *text;
	size_t len;
	int files;
};

static void take_text(struct texts *texts, const char *path)
{
	FILE *file = fopen(path, "r");

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	texts->text = realloc(texts->text, texts->len + 70000);
	CU_ASSERT_PTR_NOT_NULL_FATAL(texts->text);
	texts->len += fread(texts->text + texts->len, 1, 65536, file);
	texts->text[texts->len++] = '\n';
	texts->text[texts->len] = '\0';
	texts->files++;
	fclose(file);
}

static void for_each(const char *folder, const char *begin, void (*visit)(struct texts *texts, const char *path),
                     struct texts *texts)
{
	DIR *entries = opendir(folder);
	struct dirent *entry;
	char path[512];

	CU_ASSERT_PTR_NOT_NULL_FATAL(entries);
	while ((entry = readdir(entries)) != NULL) {
		if (entry->d_name[0] == '.' || strncmp(entry->d_name, begin, strlen(begin)) != 0)
			continue;
		snprintf(path, sizeof(path), "%s%s", folder, entry->d_name);
		visit(texts, path);
	}
	closedir(entries);
}

/* What was said of the bad ones, path and place before it. */
static void read_seed(struct texts *said, const char *path)
{
	char line[200] = "", code[32], place[32], start[600];
	struct pc_why why = {""};
	struct config config;
	FILE *file = fopen(path, "r");

	CU_ASSERT_FATAL(file != NULL && fgets(line, sizeof(line), file) != NULL);
	fclose(file);
	int r = config_load(&config, path, &why);
	if (r == 0)
		config_free(&config);
	if (strcmp(line, "# good\n") == 0) {
		CU_ASSERT_EQUAL(r, 0);
		CU_ASSERT_PTR_NOT_NULL(strstr(path, "/good-"));
	} else {
		CU_ASSERT_EQUAL(sscanf(line, "# error: %31s %31s", code, place), 2);
		snprintf(start, sizeof(start), "%s:%s: ", path, place);
		CU_ASSERT_TRUE(r < 0 && strcmp(strerrorname_np(-r), code) == 0);
		CU_ASSERT_EQUAL(strncmp(why.text, start, strlen(start)), 0);
		CU_ASSERT_PTR_NOT_NULL(strstr(path, "/bad-"));
		said->text = realloc(said->text, said->len + sizeof(why.text) + 2);
		CU_ASSERT_PTR_NOT_NULL_FATAL(said->text);
		said->len += (size_t)sprintf(said->text + said->len, "%s\n", why.text);
	}
	said->files++;
	if (strncmp(line, "# good", 6) == 0 ? r != 0 : strncmp(why.text, start, strlen(start)) != 0)
		printf("\n%s: %s  gave %d, %s\n", path, line, r, why.text);
}

static void read_bad_policy(struct texts *said, const char *path)
{
	struct pc_document *document = NULL;
	struct pc_why why = {""};

	CU_ASSERT_TRUE(pc_document_read(&document, path, &why) < 0);
	said->text = realloc(said->text, said->len + sizeof(why.text) + 2);
	CU_ASSERT_PTR_NOT_NULL_FATAL(said->text);
	said->len += (size_t)sprintf(said->text + said->len, ": %s\n", why.text);
}

static const char *last_part(const char *name)
{
	const char *dot = strchr(name, '.');

	return dot == NULL ? name : dot + 1;
}

static void assert_has(const struct texts *texts, const char *before, const char *word, const char *after)
{
	char part[100];

	snprintf(part, sizeof(part), "%s%s%s", before, word, after);
	CU_ASSERT_PTR_NOT_NULL(strstr(texts->text, part));
	if (strstr(texts->text, part) == NULL)
		printf("\nno seed with '%s'\n", part);
}

static void test_config_seeds(void)
{
	struct texts good = {0}, said = {0};

#if !defined(__x86_64__)
	unit_skip("some seeds name kernels of x86");
	return;
#endif
	for_each(CONFIG, "", read_seed, &said);
	for_each(CONFIG, "good-", take_text, &good);
	CU_ASSERT_TRUE(said.files >= 70 && good.files >= 8);
	for (size_t i = 0; i < config_key_count; i++) {
		assert_has(&good, "", last_part(config_keys[i].name), "");
		assert_has(&said, "", last_part(config_keys[i].name), ": expected ");
	}
	free(good.text);
	free(said.text);
}

static void test_policy_seeds(void)
{
	static const char *const keys[] = {
		"format", "generation", "version", "written", "quality", "host",    "topology", "arch",   "cpus",
		"name",   "knee_bytes", "probe",   "from",    "lines",   "slow_ns", "clear",    "intent", "when",
		"prior",  "threads",    "rules",   "kernel",  "low",     "high",    "chunk",    "gain",   "pinned"};
	struct texts good = {0}, said = {0};

	for_each(POLICY_GOOD, "", take_text, &good);
	for_each(POLICY_BAD, "", read_bad_policy, &said);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		assert_has(&good, "", keys[i], ": ");
		assert_has(&said, ": ", keys[i],
		           strcmp(keys[i], "kernel") == 0 || strcmp(keys[i], "when") == 0 ? " is missing" : "");
	}
	free(good.text);
	free(said.text);
}

static const struct unit_test tests[] = {
	{"config_seeds", test_config_seeds},
	{"policy_seeds", test_policy_seeds},
};

UNIT_MAIN("seeds", tests)
