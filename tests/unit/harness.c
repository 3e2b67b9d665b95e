/* Runs one CUnit suite; see harness.h. */
#include "tests/unit/harness.h"

#include <ftw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *running_suite;
static const struct unit_test *running_tests;
static unsigned passed, failed, skips; /* tests, tests, named skips */
static char folder[4096];

void unit_skip(const char *format, ...)
{
	va_list arguments;
	const CU_Test *test = CU_get_current_test();

	skips++;
	printf("\nSKIP %s/%s: ", running_suite, test != NULL ? test->pName : "?");
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("\n");
}

const char *unit_shared(const char *below)
{
	static char path[4096];
	const char *root = getenv("PAGECLEAR_SHARED");

	snprintf(path, sizeof(path), "%s/%s", root != NULL ? root : "../shared", below);
	return access(path, R_OK) == 0 ? path : NULL;
}

static int remove_entry(const char *path, const struct stat *info, int flag, struct FTW *where)
{
	(void)info;
	(void)flag;
	(void)where;
	return remove(path);
}

static void remove_folder(void)
{
	if (folder[0] != '\0')
		nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *unit_folder(void)
{
	if (folder[0] == '\0') {
		const char *base = getenv("TMPDIR");

		snprintf(folder, sizeof(folder), "%s/pageclear-XXXXXX", base != NULL ? base : "/tmp");
		if (mkdtemp(folder) == NULL) {
			perror(folder);
			exit(1);
		}
		atexit(remove_folder);
	}
	return folder;
}

/* Every test runs through here: one that only skipped has passed nothing. */
static void run_test(void)
{
	const struct unit_test *test = running_tests;
	unsigned asserts = CU_get_number_of_asserts(), failures = CU_get_number_of_failure_records(), before = skips;

	while (strcmp(test->name, CU_get_current_test()->pName) != 0)
		test++;
	test->run();
	if (CU_get_number_of_failure_records() > failures)
		failed++;
	else if (skips == before || CU_get_number_of_asserts() > asserts)
		passed++;
}

int unit_main(const char *suite, const struct unit_test *tests, size_t count)
{
	CU_pSuite added;
	unsigned failures;

	running_suite = suite;
	running_tests = tests;
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (CU_initialize_registry() != CUE_SUCCESS)
		return 1;
	added = CU_add_suite(suite, NULL, NULL);
	for (size_t i = 0; added != NULL && i < count; i++)
		if (CU_add_test(added, tests[i].name, run_test) == NULL)
			added = NULL;
	if (added == NULL) {
		fprintf(stderr, "%s: %s\n", suite, CU_get_error_msg());
		return 1;
	}
	CU_basic_set_mode(CU_BRM_VERBOSE);
	CU_basic_run_tests();
	printf("%s: %u passed, %u failed, %u skipped\n", suite, passed, failed, skips);
	failures = CU_get_number_of_failures();
	CU_cleanup_registry();
	return failures == 0 ? 0 : 1;
}
