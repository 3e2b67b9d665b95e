#include "calibctl/where.h"

#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Paths that do not fit lead nowhere, and so are never found. */
static bool join(char out[PATH_MAX], const char *folder, const char *below)
{
	int length = snprintf(out, PATH_MAX, "%s%s", folder == NULL ? "" : folder, below);

	return length >= 0 && length < PATH_MAX;
}

static bool found(char out[PATH_MAX], const char *folder, const char *below)
{
	return join(out, folder, below) && access(out, F_OK) == 0;
}

/* TREE of TREE/build/calibctl. */
static bool tree_of(char out[PATH_MAX], const char *program)
{
	char *folder = out;

	if (program == NULL || !join(out, program, ""))
		return false;
	for (int i = 0; i < 2; i++)
		folder = dirname(folder);
	memmove(out, folder, strlen(folder) + 1);
	return true;
}

static void find_policy(struct where *out, const struct where_hints *hints, const char *tree)
{
	out->policy = out->policy_found;
	if (hints->policy != NULL) {
		out->policy = hints->policy;
		out->policy_source = WHERE_OPTION;
	} else if (hints->environment != NULL && hints->environment[0] != '\0') {
		out->policy = hints->environment;
		out->policy_source = WHERE_ENVIRONMENT;
	} else if (tree != NULL && found(out->policy_found, tree, "/run/policy.yaml")) {
		out->policy_source = WHERE_TREE;
	} else if (found(out->policy_found, hints->root, "/run/pageclear/policy.yaml") ||
	           found(out->policy_found, hints->root, "/etc/pageclear/policy.yaml")) {
		out->policy_source = WHERE_HOST;
	} else {
		out->policy_source = WHERE_NOWHERE;
	}
}

static void find_database(struct where *out, const struct where_hints *hints, const char *tree)
{
	out->database = out->database_found;
	if (hints->database != NULL) {
		out->database = hints->database;
		out->database_source = WHERE_OPTION;
	} else if (tree != NULL && found(out->database_found, tree, "/run/calibrd.db")) {
		out->database_source = WHERE_TREE;
	} else if (found(out->database_found, hints->root, "/run/pageclear/calibrd.db") || /* stands in */
	           found(out->database_found, hints->root, "/var/lib/pageclear/calibrd.db")) {
		out->database_source = WHERE_HOST;
	} else {
		out->database_source = WHERE_NOWHERE;
	}
}

void where_find(struct where *out, const struct where_hints *hints)
{
	char tree[PATH_MAX];
	bool has_tree = tree_of(tree, hints->program);

	find_policy(out, hints, has_tree ? tree : NULL);
	find_database(out, hints, has_tree ? tree : NULL);
}

void where_here(struct where *out, const struct calibctl *ctl)
{
	char program[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
	struct where_hints hints = {.policy = ctl->policy,
	                            .database = ctl->database,
	                            .environment = getenv("PAGECLEAR_POLICY"),
	                            .program = length > 0 ? program : NULL};

	program[length > 0 ? length : 0] = '\0';
	where_find(out, &hints);
}

bool where_is_off(const struct where *where)
{
	return where->policy_source == WHERE_ENVIRONMENT && strcmp(where->policy, "builtin") == 0;
}

bool where_is_hosts(enum where_source source)
{
	return source == WHERE_HOST || source == WHERE_NOWHERE;
}

const char *where_policy_origin(const struct where *where)
{
	static const char *const names[] = {[WHERE_NOWHERE] = "nowhere",
	                                    [WHERE_OPTION] = "--policy",
	                                    [WHERE_ENVIRONMENT] = "$PAGECLEAR_POLICY",
	                                    [WHERE_TREE] = "source tree",
	                                    [WHERE_HOST] = "this host"};

	return names[where->policy_source];
}
