/*
 * A topology, a dataset and an independent view of the database file, for the tests of the store.
 */
#ifndef TESTS_STORE_SAMPLE_H
#define TESTS_STORE_SAMPLE_H

#include <errno.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calibrd/store.h"
#include "calibrd/topology.h"
#include "kernels/kernels.h"
#include "libpolicy/document.h"
#include "tests/unit/harness.h"

#define SAMPLE __attribute__((unused)) static

SAMPLE struct topology sample_topology = {
	.arch = "x86_64",
	.name = "A CPU",
	.key = "arch x86_64\ncpu GenuineIntel 6/106/6\n",
	.soft = "microcode 0x1\n",
	.raw = "basic_cpuid[0]=0000000d 756e6547 6c65746e 49656e69\n",
	.id = "0123456789ab",
};

/* In a child: says which line, and makes it the child's exit. */
#define CHILD_CHECK(condition)                                                                                         \
	do {                                                                                                           \
		if (!(condition)) {                                                                                    \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                \
			_exit(1);                                                                                      \
		}                                                                                                      \
	} while (0)

/* A path in the test's folder that no other call has given. */
SAMPLE const char *sample_path(const char *name)
{
	static char path[512];
	static unsigned number;
	snprintf(path, sizeof(path), "%s/%u-%s", unit_folder(), number++, name);
	return path;
}

/* `series` series of `rounds` rounds each; every third has tainted samples. */
SAMPLE struct dataset sample_data(unsigned series, unsigned rounds)
{
	struct dataset data = {0};
	for (unsigned i = 0; i < series; i++) {
		struct series_key key = {
			.bytes = 64 + i / pc_kernel_count * 64,
			.chunk = i % 2 ? 4096 : 0,
			.threads = (uint16_t)(1 + i % 2),
			.kernel = (uint8_t)(i % pc_kernel_count),
			.prior = i % 3 ? PC_CACHED : PC_FLUSHED,
			.phase = (uint8_t)(i % PHASES),
			.page = i % 5 ? PAGE_BASE : PAGE_HUGE,
		};
		for (unsigned j = 0; j < rounds; j++) {
			struct round_value value = {
				.ns = (float)(i * 1000 + j) / 7 - 10,
				.round = (uint16_t)(j * 256 + 3),
				.epoch = (uint8_t)(j % 3),
			};
			CU_ASSERT_EQUAL_FATAL(dataset_add(&data, &key, &value, false), 0);
			if (i % 3 == 0 && j == 0)
				CU_ASSERT_EQUAL_FATAL(dataset_add(&data, &key, &value, true), 0);
		}
	}
	return data;
}

SAMPLE struct calibration sample_begun(struct store *store)
{
	struct pc_why why = {""};
	struct calibration c = {.effort = "quick", .started = 1700000000};
	int r = store_begin(store, &sample_topology, &c, &why);
	if (r < 0)
		printf("%s\n", why.text);
	CU_ASSERT_EQUAL_FATAL(r, 0);
	return c;
}

/* Leaves the lock's file beside it that every database of ours has. */
SAMPLE void sample_was_ours(const char *path)
{
	char name[600];
	snprintf(name, sizeof(name), "%s.lock", path);
	FILE *file = fopen(name, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fclose(file);
}

/* Begins and finishes a calibration of good quality; its id. */
SAMPLE int64_t sample_done(struct store *store, const struct dataset *data)
{
	struct pc_why why = {""};
	struct calibration c = sample_begun(store);
	strcpy(c.quality, "good");
	c.finished = 1700000060;
	int r = store_finish(store, &c, data, &why);
	if (r < 0)
		printf("%s\n", why.text);
	CU_ASSERT_EQUAL_FATAL(r, 0);
	return c.id;
}

SAMPLE int sample_publish(struct store *store, uint64_t generation, int64_t calibration, char *yaml, struct pc_why *why)
{
	struct published p = {
		.generation = generation,
		.calibration = calibration,
		.at = 1700000061,
		.source = "calibration",
		.topology = "0123456789ab",
		.yaml = yaml,
	};
	return store_publish(store, &p, why);
}

SAMPLE struct store *sample_open(const char *path, enum store_mode mode)
{
	struct pc_why why = {""};
	struct store *store = NULL;
	char renamed[512];
	int r = store_open(&store, path, mode, renamed, &why);
	if (r < 0)
		printf("%s\n", why.text);
	CU_ASSERT_EQUAL_FATAL(r, 0);
	CU_ASSERT_STRING_EQUAL(renamed, "");
	return store;
}

/* Only the number; the store, if any, is closed again. */
SAMPLE int sample_try(const char *path, enum store_mode mode, char renamed[512], struct pc_why *why)
{
	struct store *store = NULL;
	int r = store_open(&store, path, mode, renamed, why);
	store_close(store);
	return r;
}

/* Through SQLite alone. The first column of the first row as text, "" if there is none, the error if it fails. */
SAMPLE const char *sample_sql(const char *path, const char *sql)
{
	static char text[1024];
	sqlite3 *db = NULL;
	sqlite3_stmt *statement = NULL;
	text[0] = '\0';
	if (sqlite3_open(path, &db) != SQLITE_OK || sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
		snprintf(text, sizeof(text), "%s", sqlite3_errmsg(db));
	else if (sqlite3_step(statement) == SQLITE_ROW)
		snprintf(text, sizeof(text), "%s", (const char *)sqlite3_column_text(statement, 0));
	sqlite3_finalize(statement);
	sqlite3_close(db);
	return text;
}

SAMPLE void sample_change(const char *path, const char *sql)
{
	sqlite3 *db = NULL;
	CU_ASSERT_EQUAL_FATAL(sqlite3_open(path, &db), SQLITE_OK);
	CU_ASSERT_EQUAL_FATAL(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
}

/* The whole file; free(). */
SAMPLE unsigned char *sample_read(const char *path, size_t *len)
{
	FILE *file = fopen(path, "rb");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	unsigned char *bytes = malloc(8 << 20);
	CU_ASSERT_PTR_NOT_NULL_FATAL(bytes);
	*len = fread(bytes, 1, 8 << 20, file);
	fclose(file);
	return bytes;
}

SAMPLE void sample_write(const char *path, const void *bytes, size_t len)
{
	FILE *file = fopen(path, "wb");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_EQUAL_FATAL(fwrite(bytes, 1, len, file), len);
	CU_ASSERT_EQUAL_FATAL(fclose(file), 0);
}

#endif
