/* Which policy and which database calibctl looks at. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "calibctl/where.h"
#include "tests/unit/harness.h"

static char root[512], program[600];

/* An empty file under root, with the folders on its way. */
static void put(const char *below)
{
	char path[1024];

	snprintf(path, sizeof(path), "%s%s", root, below);
	for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	FILE *file = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_EQUAL(fclose(file), 0);
}

/* A root of its own for every test; the program lies in ROOT/tree/build. */
static struct where_hints begin(void)
{
	static unsigned number;

	snprintf(root, sizeof(root), "%s/%u", unit_folder(), number++);
	snprintf(program, sizeof(program), "%s/tree/build/calibctl", root);
	CU_ASSERT_EQUAL_FATAL(mkdir(root, 0755), 0);
	return (struct where_hints){.program = program, .root = root};
}

static bool leads_to(const char *path, const char *below)
{
	return strncmp(path, root, strlen(root)) == 0 && strcmp(path + strlen(root), below) == 0;
}

static void nothing_anywhere(void)
{
	struct where_hints hints = begin();
	struct where where;

	where_find(&where, &hints);
	CU_ASSERT_EQUAL(where.policy_source, WHERE_NOWHERE);
	CU_ASSERT_EQUAL(where.database_source, WHERE_NOWHERE);
	CU_ASSERT_TRUE(leads_to(where.database, "/var/lib/pageclear/calibrd.db"));
	CU_ASSERT_FALSE(where_is_off(&where));
}

/* Each candidate is put in front of those found before. */
static void policies_in_order(void)
{
	struct where_hints hints = begin();
	struct where where;

	put("/etc/pageclear/policy.yaml");
	where_find(&where, &hints);
	CU_ASSERT_EQUAL(where.policy_source, WHERE_HOST);
	CU_ASSERT_TRUE(leads_to(where.policy, "/etc/pageclear/policy.yaml"));
	put("/run/pageclear/policy.yaml");
	where_find(&where, &hints);
	CU_ASSERT_TRUE(leads_to(where.policy, "/run/pageclear/policy.yaml"));
	put("/tree/run/policy.yaml");
	where_find(&where, &hints);
	CU_ASSERT_EQUAL(where.policy_source, WHERE_TREE);
	CU_ASSERT_TRUE(leads_to(where.policy, "/tree/run/policy.yaml"));
	hints.environment = "/from/environment";
	where_find(&where, &hints);
	CU_ASSERT_EQUAL(where.policy_source, WHERE_ENVIRONMENT);
	CU_ASSERT_STRING_EQUAL(where.policy, "/from/environment");
	hints.policy = "/from/option";
	where_find(&where, &hints);
	CU_ASSERT_EQUAL(where.policy_source, WHERE_OPTION);
	CU_ASSERT_STRING_EQUAL(where.policy, "/from/option");
}

static void databases_in_order(void)
{
	struct where_hints hints = begin();
	struct where where;

	put("/var/lib/pageclear/calibrd.db");
	where_find(&where, &hints);
	CU_ASSERT_EQUAL(where.database_source, WHERE_HOST);
	CU_ASSERT_TRUE(leads_to(where.database, "/var/lib/pageclear/calibrd.db"));
	put("/tree/run/calibrd.db");
	where_find(&where, &hints);
	CU_ASSERT_EQUAL(where.database_source, WHERE_TREE);
	CU_ASSERT_TRUE(leads_to(where.database, "/tree/run/calibrd.db"));
	CU_ASSERT_EQUAL(where.policy_source, WHERE_NOWHERE);
	hints.database = "/from/option";
	where_find(&where, &hints);
	CU_ASSERT_EQUAL(where.database_source, WHERE_OPTION);
	CU_ASSERT_STRING_EQUAL(where.database, "/from/option");
}

static void environment_edges(void)
{
	struct where_hints hints = begin();
	struct where where;

	hints.environment = "";
	where_find(&where, &hints);
	CU_ASSERT_EQUAL(where.policy_source, WHERE_NOWHERE);
	hints.environment = "builtin";
	where_find(&where, &hints);
	CU_ASSERT_TRUE(where_is_off(&where));
	hints.policy = "builtin"; /* a file of that name */
	where_find(&where, &hints);
	CU_ASSERT_FALSE(where_is_off(&where));
}

/* A name too long for any file is passed on, to be refused where it is opened; a program's own is no source tree. */
static void long_names(void)
{
	struct where_hints hints = begin();
	struct where where;
	char *name = malloc(2 * PATH_MAX);

	CU_ASSERT_PTR_NOT_NULL_FATAL(name);
	memset(name, 'x', 2 * PATH_MAX - 1);
	name[0] = '/';
	name[2 * PATH_MAX - 1] = '\0';
	hints.policy = hints.program = name;
	where_find(&where, &hints);
	CU_ASSERT_EQUAL(where.policy_source, WHERE_OPTION);
	CU_ASSERT_EQUAL(strlen(where.policy), 2 * PATH_MAX - 1);
	CU_ASSERT_EQUAL(where.database_source, WHERE_NOWHERE);
	hints.policy = NULL;
	hints.program = NULL;
	where_find(&where, &hints);
	CU_ASSERT_EQUAL(where.policy_source, WHERE_NOWHERE);
	free(name);
}

static const struct unit_test tests[] = {
	{"nothing_anywhere", nothing_anywhere},
	{"policies_in_order", policies_in_order},
	{"databases_in_order", databases_in_order},
	{"environment_edges", environment_edges},
	{"long_names", long_names},
};

UNIT_MAIN("calibctl_where", tests)
