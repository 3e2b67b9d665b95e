/* A good database, and what has become of files, for the tests of those that are not as they should be. */
#ifndef TESTS_STORE_FILES_H
#define TESTS_STORE_FILES_H

#include "tests/unit/store_sample.h"

static inline void make_good(const char *path)
{
	struct pc_why why;
	struct store *store = sample_open(path, STORE_WRITE);
	struct dataset data = sample_data(60, 8);
	CU_ASSERT_EQUAL(sample_publish(store, 1, sample_done(store, &data), "good: yes\n", &why), 0);
	dataset_clear(&data);
	store_close(store);
}

static inline void check_unchanged(const char *path, const unsigned char *bytes, size_t len)
{
	size_t now;
	unsigned char *got = sample_read(path, &now);
	CU_ASSERT_EQUAL_FATAL(now, len);
	CU_ASSERT_EQUAL(memcmp(got, bytes, len), 0);
	free(got);
}

static inline int exists(const char *path, const char *end)
{
	char name[600];
	snprintf(name, sizeof(name), "%s%s", path, end);
	return access(name, F_OK) == 0;
}

#endif
