/*
 * Policies, folders and a record of what was published, for the tests of publish. The last outcome is in `last`.
 */
#ifndef TESTS_PUBLISH_FILES_H
#define TESTS_PUBLISH_FILES_H

#include <dirent.h>
#include <errno.h>
#include <pageclear/policy.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calibrd/export.h"
#include "calibrd/publish.h"
#include "libpolicy/file.h"
#include "tests/unit/harness.h"

enum { PATH_SIZE = 4096 };

/* --- helpers ----------------------------------------------------------------------------------------------------- */

static struct pc_rule rules[] = {{.from = 0, .kernel = "libc"}, {.from = 4096, .kernel = "movnti", .gain = 2}};
static struct pc_table table = {PAGECLEAR_COLD, PC_FLUSHED, 1, 2, rules};

/* Documents differ in their gain. */
static inline const struct pc_document *policy(double gain)
{
	static struct pc_document document = {.version = "0.1.0",
	                                      .written = "2026-11-30T10:42:07Z",
	                                      .quality = "good",
	                                      .topology = "3f9ac2d14b07",
	                                      .arch = "x86_64",
	                                      .cpu_count = 1,
	                                      .cpus = {"AuthenticAMD 25/1/1"},
	                                      .table_count = 1,
	                                      .tables = &table};

	rules[1].gain = gain;
	return &document;
}

static inline char *text_of(double gain, uint64_t generation)
{
	struct pc_document document = *policy(gain);
	char *text = NULL;
	size_t len;

	document.generation = generation;
	CU_ASSERT_EQUAL_FATAL(export_yaml(&document, &text, &len, NULL), 0);
	return text;
}

/* A fresh folder below the test's, without links in its name. */
static inline const char *fresh(void)
{
	static char path[PATH_SIZE], base[PATH_SIZE];
	static unsigned number;

	CU_ASSERT_PTR_NOT_NULL_FATAL(realpath(unit_folder(), base));
	snprintf(path, sizeof(path), "%.3000s/%u", base, number++);
	CU_ASSERT_EQUAL_FATAL(mkdir(path, 0755), 0);
	return path;
}

static inline const char *in(const char *folder, const char *name)
{
	static char paths[32][PATH_SIZE];
	static unsigned turn;
	char *path = paths[turn++ % 32];

	snprintf(path, PATH_SIZE, "%.3500s/%.500s", folder, name);
	return path;
}

static inline void put_text(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_FATAL(fputs(text, file) >= 0 && fclose(file) == 0);
}

/* For free(); NULL if there is none. */
static inline char *get_text(const char *path)
{
	char *text = NULL;
	size_t len = 0;

	if (pc_file_read(path, 1 << 20, &text, &len, NULL) < 0)
		return NULL;
	text[len] = '\0'; /* there is room for one byte more than was asked for */
	return text;
}

static inline bool holds(const char *path, const char *text)
{
	char *there = get_text(path);
	bool same = there != NULL && text != NULL && strcmp(there, text) == 0;

	free(there);
	return same;
}

static unsigned entries(const char *folder)
{
	DIR *dir = opendir(folder);
	unsigned count = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(dir);
	while (readdir(dir) != NULL)
		count++;
	closedir(dir);
	return count - 2; /* . and .. */
}

static inline bool is_absent(const char *path)
{
	struct stat status;

	return lstat(path, &status) < 0 && errno == ENOENT;
}

/* What a database would know. */
struct record {
	char *texts[32];
	uint64_t newest;
};

static inline char *recorded(void *record, uint64_t generation)
{
	struct record *known = record;

	return generation < 32 && known->texts[generation] != NULL ? strdup(known->texts[generation]) : NULL;
}

static inline void forget(struct record *record)
{
	for (size_t i = 0; i < 32; i++)
		free(record->texts[i]);
	*record = (struct record){0};
}

struct outcome {
	int code;
	struct publish_result result;
	struct pc_why why;
};

static struct outcome last; /* of publish_to(): its yaml is freed by the next */

static inline int publish_to(const char *path, const char *fallback, struct record *record, double gain)
{
	struct publish_request request = {.target = {path, fallback, recorded, record},
	                                  .document = policy(gain),
	                                  .database_generation = record->newest};

	free(last.result.yaml);
	last.why.text[0] = '\0';
	last.code = publish(&request, &last.result, &last.why);
	if (last.code == 0 && last.result.generation < 32) {
		free(record->texts[last.result.generation]);
		record->texts[last.result.generation] = strdup(last.result.yaml);
		record->newest = last.result.generation;
	}
	return last.code;
}

static inline bool said(const char *words)
{
	return strstr(last.result.warnings, words) != NULL;
}

static inline int withdraw_from(const char *path, const char *fallback, struct record *record, const char *topology)
{
	struct publish_target target = {path, fallback, recorded, record};

	free(last.result.yaml);
	last.why.text[0] = '\0';
	last.code = publish_withdraw(&target, topology, &last.result, &last.why);
	return last.code;
}

#endif
