/* Two places for a database, for the tests of store_place. */
#ifndef TESTS_STORE_PLACES_H
#define TESTS_STORE_PLACES_H

#include <sys/stat.h>

#include "calibrd/store_place.h"
#include "tests/unit/store_sample.h"

enum { SERIES = 20, ROUNDS = 6 };

static struct store_place place;
static struct pc_why why;
static char renamed[512], home[300], spare[300];

SAMPLE bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

/* Two places that don't exist yet; home's folder lacks the folder above it too, which nobody makes. */
SAMPLE void fresh(void)
{
	static unsigned number;

	snprintf(home, sizeof(home), "%s/%u-var/lib/calibrd.db", unit_folder(), ++number);
	snprintf(spare, sizeof(spare), "%s/%u-run/calibrd.db", unit_folder(), number);
}

/* The folder that home's own is made in. */
SAMPLE void mend_home(void)
{
	char folder[300];

	snprintf(folder, sizeof(folder), "%.*s", (int)(strstr(home, "/lib/") - home), home);
	CU_ASSERT_EQUAL(mkdir(folder, 0755), 0);
}

SAMPLE int place_open(struct store **store)
{
	return store_place_between(store, &place, home, spare, renamed, &why);
}

#endif
