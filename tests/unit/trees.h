/* Trees of small files under a folder of the test's own, for modules that read below a root. */
#ifndef TESTS_TREES_H
#define TESTS_TREES_H

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/unit/harness.h"

/* A fresh root; the last one's name. */
static inline const char *new_root(void)
{
	static char root[4096];
	static unsigned count;

	snprintf(root, sizeof(root), "%s/root%u", unit_folder(), count++);
	CU_ASSERT_EQUAL_FATAL(mkdir(root, 0755), 0);
	return root;
}

/* With the folders on its way. */
static inline void put_file(const char *root, const char *path, const char *text)
{
	char full[8192];
	FILE *file;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *slash = full + strlen(root) + 1; (slash = strchr(slash, '/')) != NULL; *slash++ = '/') {
		*slash = '\0';
		CU_ASSERT_FATAL(mkdir(full, 0755) == 0 || errno == EEXIST);
	}
	file = fopen(full, "we");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fputs(text, file);
	CU_ASSERT_EQUAL(fclose(file), 0);
}

#endif
