/*
 * Texts of any length that a reader of YAML may find dear: for tests of what reading costs (test_tree_cost.c counts
 * allocations, tests/tools/parse_cost.c is counted by valgrind). The same shape at twice the length is the same text,
 * gone on.
 */
#ifndef TESTS_SHAPES_H
#define TESTS_SHAPES_H

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#define POLICY "format: 1\nhost: {topology: t, arch: a, cpus: [c]}\n"
#define TABLE "  - intent: cold\n    when: {threads: 1, prior: flushed}\n    rules:\n"

/* head once, then unit again and again; a %u in it counts up. Cut off wherever the length ends; a shape with a foot has
 * whole units only, then the foot, then blank lines up to the length. */
struct shape {
	const char *name, *head, *unit, *foot;
};

static const struct shape shapes[] = {
	/* What libyaml alone would take the square of the length for. */
	{"brackets", "", "[", NULL},
	{"brackets in a value", "x: ", "[", NULL},
	{"braces", "", "{", NULL},
	{"dashes", "", "- ", NULL},
	{"question marks", "", "? ", NULL},
	{"brackets in pairs", "x: [", "[],", "]"},
	{"nested to the limit", "x: [", "[[[[[[]]]]]],", "]"},
	{"directives", "", "%%TAG !%u! a\n", NULL},
	{"a block in a block", "", "a%u:\n ", NULL},
	/* Long scalars, in every style. */
	{"plain", "x: ", "a", NULL},
	{"plain over lines", "x: a\n", " a\n", NULL},
	{"double quotes", "x: \"", "a", NULL},
	{"double quotes, escapes", "x: \"", "\\x41", NULL},
	{"double quotes, line breaks", "x: \"", "\n", NULL},
	{"single quotes", "x: '", "''", NULL},
	{"literal", "x: |\n", " a\n", NULL},
	{"literal, blank lines", "x: |\n", "\n", NULL},
	{"folded", "x: >\n", " a\n\n", NULL},
	{"a key and no value", "", "k", NULL},
	{"two bytes a character", "x: ", "\xc3\xa9", NULL},
	{"a comment", "#", "c", NULL},
	{"comments", "x: 1\n", "# c\n", NULL},
	{"spaces", "x: 1\n", " ", NULL},
	{"blank lines", "x: 1\n", "\n", NULL},
	/* Many of something, most of it well formed. */
	{"keys", "", "k%u: 0\n", NULL},
	{"long keys, nearly the same", "", "", NULL}, /* shape_long_keys */
	{"keys in a flow", "{", "k%u: 0, ", NULL},
	{"mappings of keys", "", "- {a%1$u: 0, b%1$u: 1, c%1$u: 2, d%1$u: 3}\n", NULL},
	{"entries", "", "- a\n", NULL},
	{"keys without values", "{", "a%u, ", NULL},
	{"colons", "x: {", ":", NULL},
	{"commas", "x: [a", ", a", NULL},
	{"anchors", "- ", "&a%u ", NULL},
	{"tags", "- ", "!a%u ", NULL},
	{"documents", "", "---\n", NULL},
	{"ends of documents", "", "...\n", NULL},
	/* Policies, up to what document.h allows of tables and rules, and beyond. */
	{"unknown keys", POLICY "clear: []\nlater:\n", "  - {key: value, number: 1}\n", ""},
	{"tables for later", POLICY "clear:\n", "  - {intent: later, when: 1, rules: 2}\n", ""},
	{"tables", POLICY "clear:\n",
         "  - {intent: cold, when: {threads: %u, prior: flushed}, rules: [{from: 0, kernel: libc}]}\n", ""},
	{"rules", POLICY "clear:\n" TABLE "      - {from: 0, kernel: libc}\n", "      - {from: %u1, kernel: libc}\n",
         ""},
	{"conditions", POLICY "clear:\n", "  - {intent: cold, when: {threads: 1, later: %u}, rules: 1}\n", ""},
};

enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]) };

/* A hundred keys of one mapping, the same but for their last bytes: each is compared with all before. */
static inline void shape_long_keys(char *text, size_t len)
{
	const size_t each = len / 100;

	memset(text, ' ', len);
	for (size_t i = 0; i < 100; i++) {
		char end[8];

		snprintf(end, sizeof(end), "%03u:\n", (unsigned)i % 1000);
		memset(text + i * each, 'k', each - 5);
		memcpy(text + (i + 1) * each - 5, end, 5);
	}
}

/* The i-th unit; returns its length. */
static inline size_t shape_unit(const struct shape *shape, char out[200], unsigned i)
{
	int n = snprintf(out, 200, shape->unit, i);

	return n < 0 ? 0 : (size_t)n;
}

/* Exactly len bytes. */
static inline void shape_fill(const struct shape *shape, char *text, size_t len)
{
	char unit[200];
	size_t at = strlen(shape->head), n, foot = shape->foot == NULL ? 0 : strlen(shape->foot);

	if (shape->unit[0] == '\0') {
		shape_long_keys(text, len);
		return;
	}
	memset(text, '\n', len);
	memcpy(text, shape->head, at);
	for (unsigned i = 1; (n = shape_unit(shape, unit, i)) + foot <= len - at; i++, at += n)
		memcpy(text + at, unit, n);
	if (shape->foot == NULL)
		memcpy(text + at, unit, len - at);
	else
		memcpy(text + at, shape->foot, foot);
}

#endif
