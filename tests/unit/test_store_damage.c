/*
 * Damaged databases: set aside with every byte and begun anew, or read as far as they go, wherever the damage is.
 */
#include <stdint.h>

#include "calibrd/store_file.h"
#include "tests/unit/store_files.h"

static void test_damaged_is_renamed(void)
{
	struct pc_why why = {""};
	char renamed[512], expected[600];
	const char *path = sample_path("damaged.db");
	sample_was_ours(path);
	for (unsigned i = 1; i <= 3; i++) {
		char junk[3000];
		memset(junk, (int)('a' + i), sizeof(junk));
		sample_write(path, junk, sizeof(junk));
		CU_ASSERT_EQUAL(sample_try(path, STORE_READ, NULL, &why), -EUCLEAN);
		check_unchanged(path, (unsigned char *)junk, sizeof(junk));
		CU_ASSERT_EQUAL_FATAL(sample_try(path, STORE_WRITE, renamed, &why), 0);
		snprintf(expected, sizeof(expected), "%s.damaged-%u", path, i);
		CU_ASSERT_STRING_EQUAL(renamed, expected);
		check_unchanged(renamed, (unsigned char *)junk, sizeof(junk));
		/* The new one is whole; and who doesn't ask for the name needs no room for it. */
		store_close(sample_open(path, STORE_WRITE));
	}
}

static void test_missing_table_is_damage(void)
{
	struct pc_why why = {""};
	char renamed[512];
	const char *path = sample_path("missing.db");
	make_good(path);
	sample_change(path, "DROP TABLE published");
	CU_ASSERT_EQUAL(sample_try(path, STORE_READ, NULL, &why), -EUCLEAN);
	CU_ASSERT_EQUAL(sample_try(path, STORE_WRITE, renamed, &why), 0);
	CU_ASSERT_STRING_NOT_EQUAL(renamed, "");
	path = sample_path("version-0.db");
	make_good(path);
	sample_change(path, "PRAGMA user_version = 0");
	CU_ASSERT_EQUAL(sample_try(path, STORE_READ, NULL, &why), -EUCLEAN);
	CU_ASSERT_EQUAL(sample_try(path, STORE_WRITE, renamed, &why), 0);
	CU_ASSERT_STRING_NOT_EQUAL(renamed, "");
}

static void test_companions_move_along(void)
{
	struct pc_why why = {""};
	char name[600], renamed[512];
	const char *path = sample_path("companions.db");
	sample_write(path, "db", 2);
	snprintf(name, sizeof(name), "%s-journal", path);
	sample_write(name, "journal", 7);
	/* Never over anything that is there, be it only a journal's name. */
	snprintf(name, sizeof(name), "%s.damaged-1-journal", path);
	sample_write(name, "older", 5);
	CU_ASSERT_EQUAL(store_file_set_aside(path, renamed, &why), 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(renamed, ".damaged-2"));
	check_unchanged(renamed, (const unsigned char *)"db", 2);
	check_unchanged(name, (const unsigned char *)"older", 5);
	snprintf(name, sizeof(name), "%s-journal", renamed);
	check_unchanged(name, (const unsigned char *)"journal", 7);
	CU_ASSERT(!exists(path, "") && !exists(path, "-journal"));
}

/* --- damage anywhere --------------------------------------------------------------------------------------------- */

/* Whatever the store is asked on a file that may hold anything: an answer, none, or a number. */
static void ask_everything(struct store *store)
{
	struct pc_why why;
	struct calibration c = {0};
	struct published p = {0};
	struct dataset data = {0};
	char *key = NULL, *raw = NULL;
	int r = store_latest(store, NULL, &c, &why);
	CU_ASSERT(r == 0 || r == 1 || r == -EUCLEAN);
	if (r == 0)
		store_calibration_free(&c);
	r = store_published(store, NULL, &p, &why);
	CU_ASSERT(r == 0 || r == 1 || r == -EUCLEAN);
	free(p.yaml);
	r = store_topology(store, sample_topology.id, &key, &raw, &why);
	CU_ASSERT(r == 0 || r == 1 || r == -EUCLEAN);
	free(key);
	free(raw);
	r = store_series(store, 1, &data, &why);
	CU_ASSERT(r == 0 || r == -EUCLEAN);
	dataset_clear(&data);
}

/* Opens as it is, or is renamed with its bytes; `refusable`: where the marks of other programs and versions are. */
static void try_damaged(const char *path, const unsigned char *bytes, size_t len, int refusable)
{
	struct pc_why why = {""};
	struct store *store = NULL;
	char renamed[512];
	sample_write(path, bytes, len);
	int r = store_open(&store, path, STORE_READ, NULL, &why);
	CU_ASSERT(r == 0 || r == -EUCLEAN || (r == -ENOENT && len == 0) || refusable);
	if (r == 0)
		ask_everything(store);
	store = store_close(r == 0 ? store : NULL);
	r = store_open(&store, path, STORE_WRITE, renamed, &why);
	if (r < 0 && !refusable)
		printf("%d %s\n", r, why.text);
	CU_ASSERT(r == 0 || (refusable && (r == -EMEDIUMTYPE || r == -EPROTONOSUPPORT)));
	if (r < 0)
		return;
	ask_everything(store);
	store_close(store);
	if (!*renamed)
		return;
	check_unchanged(renamed, bytes, len);
	unlink(renamed);
	CU_ASSERT_STRING_EQUAL(sample_sql(path, "PRAGMA integrity_check"), "ok");
}

static void test_flipped_bytes(void)
{
	size_t len;
	uint32_t random = 7;
	const char *path = sample_path("flipped.db");
	make_good(path);
	unsigned char *good = sample_read(path, &len);
	for (size_t i = 0; i < 260; i++) {
		random = random * 1664525 + 1013904223;
		size_t at = i < 100 ? i : (random >> 4) % len;
		unsigned char was = good[at];
		good[at] = (unsigned char)(was ^ (1u << (random >> 28 & 7)));
		/* 60-63 user_version, 68-71 application_id */
		try_damaged(path, good, len, (at >= 60 && at < 64) || (at >= 68 && at < 72));
		good[at] = was;
	}
	free(good);
}

static void test_zeroed_pages(void)
{
	size_t len;
	struct pc_why why = {""};
	const char *path = sample_path("zeroed.db");
	make_good(path);
	unsigned char *good = sample_read(path, &len), page[4096];
	for (size_t at = 0; at + 4096 <= len; at += 4096) {
		memcpy(page, good + at, 4096);
		memset(good + at, 0, 4096);
		/* Every page is in use, and opening looks at all of them. */
		sample_write(path, good, len);
		CU_ASSERT_EQUAL(sample_try(path, STORE_READ, NULL, &why), -EUCLEAN);
		try_damaged(path, good, len, 0);
		memcpy(good + at, page, 4096);
	}
	free(good);
}

static void test_truncated(void)
{
	size_t len;
	const size_t lengths[] = {0, 1, 15, 16, 50, 99, 100, 101, 511, 512, 1000, 4095, 4096, 4097, 8192, 20000};
	const char *path = sample_path("truncated.db");
	make_good(path);
	unsigned char *good = sample_read(path, &len);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths) && lengths[i] < len; i++)
		try_damaged(path, good, lengths[i], 0);
	try_damaged(path, good, len - 1, 0);
	try_damaged(path, good, len - 4096, 0);
	free(good);
}

static const struct unit_test tests[] = {
	{"damaged is renamed", test_damaged_is_renamed},
	{"missing table is damage", test_missing_table_is_damage},
	{"companions move along", test_companions_move_along},
	{"flipped bytes", test_flipped_bytes},
	{"zeroed pages", test_zeroed_pages},
	{"truncated", test_truncated},
};

UNIT_MAIN("store_damage", tests)
