/*
 * What the tests of libpolicy's safety share: children that may die, policies that name one kernel for everything.
 */
#ifndef TESTS_SAFETY_H
#define TESTS_SAFETY_H

#include "tests/unit/bytes.h"
#include "tests/unit/children.h"
#include "tests/unit/policy_files.h"

/* One kernel for every size, intent and prior, by chunks. */
static inline const char *kernel_text(unsigned generation, const char *kernel, size_t chunk)
{
	static const char *const priors[] = {", prior: unknown", ", prior: cached", ", prior: flushed"};
	char clear[4096] = "clear:\n";

	for (unsigned i = 0; i < PC_ROWS; i++) {
		static const char *const intents[] = {"hot", "cold", "scrub"};
		size_t used = strlen(clear);

		snprintf(clear + used, sizeof(clear) - used,
		         "  - intent: %s\n    when: {threads: 1%s}\n    rules: [{from: 0, kernel: %s, chunk: %zu}]\n",
		         intents[i / 3], i == PC_ROW_SCRUB ? "" : priors[i % 3], kernel, chunk);
	}
	return policy_text(generation, here(), pc_arch, clear);
}

/* A clear of the middle of a buffer touches that and no more. */
static inline bool clears_right(unsigned char *bytes, size_t len, unsigned intent)
{
	memset(bytes, 0xA5, len + 2);
	pageclear_zero(bytes + 1, len, intent);
	return bytes[0] == 0xA5 && is_all(bytes + 1, len, 0) && bytes[len + 1] == 0xA5;
}

/* True if the status is of that code and holds that part. */
static inline bool status_says(int code, const char *part)
{
	char text[1600];
	bool right = pageclear_status(text, sizeof(text)) == code && strstr(text, part) != NULL;

	if (!right)
		fprintf(stderr, "\n'%s' is not in '%s'\n", part, text);
	return right;
}

#endif
