/* The strict YAML tree: shape, places, refusals, values; and that hostile input costs no more time than its length. */
#include <errno.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libpolicy/tree.h"
#include "tests/unit/harness.h"

static struct pc_tree *parse(const char *text)
{
	struct pc_tree *tree = NULL;
	struct pc_why why = {""};
	int r = pc_tree_parse(&tree, text, strlen(text), &why);

	CU_ASSERT_EQUAL(r, 0);
	if (r != 0)
		printf("\n%s: %s\n", text, why.text);
	return tree;
}

static void assert_place(const struct pc_node *node, unsigned line, unsigned column)
{
	CU_ASSERT_EQUAL(node->line, line);
	CU_ASSERT_EQUAL(node->column, column);
}

static void test_shape(void)
{
	struct pc_tree *tree = parse("a: 1\nlist:\n  - x\n  - \"y\"\nmap: {b: [], c: {}}\n");
	const struct pc_node *root = pc_tree_root(tree);

	CU_ASSERT_EQUAL(root->kind, PC_MAPPING);
	CU_ASSERT_EQUAL(root->count, 3);
	CU_ASSERT_PTR_NULL(root->key);
	CU_ASSERT_STRING_EQUAL(root->first->key, "a");
	CU_ASSERT_STRING_EQUAL(root->first->text, "1");
	CU_ASSERT_FALSE(root->first->quoted);

	const struct pc_node *list = pc_node_member(root, "list");
	CU_ASSERT_EQUAL(list->kind, PC_SEQUENCE);
	CU_ASSERT_EQUAL(list->count, 2);
	CU_ASSERT_STRING_EQUAL(list->first->text, "x");
	CU_ASSERT_PTR_NULL(list->first->key);
	CU_ASSERT_TRUE(list->first->next->quoted);
	CU_ASSERT_PTR_NULL(list->first->next->next);

	const struct pc_node *map = pc_node_member(root, "map");
	CU_ASSERT_EQUAL(pc_node_member(map, "b")->kind, PC_SEQUENCE);
	CU_ASSERT_EQUAL(pc_node_member(map, "b")->count, 0);
	CU_ASSERT_EQUAL(pc_node_member(map, "c")->kind, PC_MAPPING);
	CU_ASSERT_PTR_NULL(pc_node_member(map, "d"));
	CU_ASSERT_PTR_NULL(pc_node_member(list, "x"));
	CU_ASSERT_PTR_NULL(pc_node_member(NULL, "x"));
	CU_ASSERT_PTR_NULL(pc_tree_free(tree));
}

static void test_places(void)
{
	struct pc_tree *tree = parse("# first\na:   1\nbb:\n  - {c: d}\n");
	const struct pc_node *a = pc_tree_root(tree)->first, *bb = a->next;

	assert_place(pc_tree_root(tree), 2, 1);
	assert_place(a, 2, 6);
	CU_ASSERT_EQUAL(a->key_line, 2);
	CU_ASSERT_EQUAL(a->key_column, 1);
	CU_ASSERT_EQUAL(bb->key_line, 3);
	assert_place(bb->first, 4, 5);
	assert_place(bb->first->first, 4, 9);
	CU_ASSERT_EQUAL(bb->first->first->key_column, 6);
	pc_tree_free(tree);
}

static void test_nothing_is_an_empty_mapping(void)
{
	static const char *const texts[] = {"", "# only words\n", "---\n", "---\n...\n", "\n\n  \n"};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct pc_tree *tree = parse(texts[i]);

		CU_ASSERT_EQUAL(pc_tree_root(tree)->kind, PC_MAPPING);
		CU_ASSERT_EQUAL(pc_tree_root(tree)->count, 0);
		assert_place(pc_tree_root(tree), 1, 1);
		pc_tree_free(tree);
	}
	struct pc_tree *quoted = parse("\"\"\n");
	CU_ASSERT_EQUAL(pc_tree_root(quoted)->kind, PC_SCALAR);
	pc_tree_free(quoted);
	CU_ASSERT_PTR_NULL(pc_tree_free(NULL));
}

static void assert_refused(const char *text, size_t len, int code, const char *begin)
{
	struct pc_tree *tree = (struct pc_tree *)&code; /* must be left alone */
	struct pc_why why = {""};
	int r = pc_tree_parse(&tree, text, len, &why);

	CU_ASSERT_EQUAL(r, code);
	CU_ASSERT_PTR_EQUAL(tree, (struct pc_tree *)&code);
	CU_ASSERT_EQUAL(strncmp(why.text, begin, strlen(begin)), 0);
	if (r != code || strncmp(why.text, begin, strlen(begin)) != 0)
		printf("\n%.40s: %d, %s\n", text, r, why.text);
	CU_ASSERT_EQUAL(pc_tree_parse(&tree, text, len, NULL), code);
}

static void test_refusals(void)
{
	static const struct {
		const char *text, *begin;
	} cases[] = {
		{"a: &x 1\n", "1:4: anchors"},
		{"&x a: 1\n", "1:1: anchors"},
		{"a: &x [1]\n", "1:4: anchors"},
		{"a: &x {b: 1}\n", "1:4: anchors"},
		{"a: *x\n", "1:4: aliases"},
		{"*x : a\n", "1:1: aliases"},
		{"a: !!str 1\n", "1:4: tags"},
		{"a: !local [1]\n", "1:4: tags"},
		{"a: !<tag:x.org,2026:y> {b: 1}\n", "1:4: tags"},
		{"%TAG ! tag:x.org,2026:\n---\na: 1\n", "1:1: directives"},
		{"# c\r\n\r\n%YAML 1.1\r\n---\r\na: 1\r\n", "3:1: directives"},
		{"# c\xe2\x80\xa8%TAG ! x:\n---\n", "2:1: directives"},
		{"# c\xc2\x85%TAG ! x:\n---\n", "2:1: directives"},
		{"# c\r%TAG ! x:\n---\n", "2:1: directives"},
		{"--- 1\n...\n%TAG ! x:\n--- 2\n", "3:1: directives"},
		{"\xef\xbb\xbf%TAG ! x:\n---\na: 1\n", "1:"},
		{"a: 1\na: 2\n", "2:1: duplicate key"},
		{"{a: 1, b: 2, \"a\": 3}\n", "1:14: duplicate key"},
		{"? [a]\n: b\n", "1:3: a key must be a scalar"},
		{"{{a: b}: c}\n", "1:2: a key must be a scalar"},
		{"--- 1\n--- 2\n", "2:1: only one document"},
		{"a: \"x\\0y\"\n", "1:4: text with a zero byte"},
		{"\"x\\0y\": a\n", "1:1: text with a zero byte"},
		{"[[[[[[[[[]]]]]]]]]\n", "1:9: nested too deeply"},
		{"{a: {a: {a: {a: {a: {a: {a: {a: {}}}}}}}}}\n", "1:33: nested too deeply"},
		{"- - - - - - - - - x\n", "1:17: nested too deeply"},
		{"a: [1\n", "2:1: "},
		{"a: b: c\n", "1:5: "},
		{"\ta: 1\n", "1:1: "},
		{"a: \"\xff\"\n", "1:"},
		{"a: \"\x01\"\n", "1:"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_refused(cases[i].text, strlen(cases[i].text), -EBADMSG, cases[i].begin);
	assert_refused("a: 1\0b: 2\n", 10, -EBADMSG, "1:");
}

static void test_limits_are_reached(void)
{
	struct pc_tree *tree = parse("[[[[[[[[x]]]]]]]]\n");
	char *text = malloc(65537), *end = text;

	pc_tree_free(tree);
	for (int i = 0; i < 128; i++)
		end += sprintf(end, "k%d: 0\n", i);
	tree = parse(text);
	CU_ASSERT_EQUAL(pc_tree_root(tree)->count, 128);
	pc_tree_free(tree);
	sprintf(end, "last: 0\n");
	assert_refused(text, strlen(text), -EBADMSG, "129:1: too many members");

	memset(text, ' ', 65537);
	CU_ASSERT_EQUAL(pc_tree_parse(&tree, text, 65536, NULL), 0);
	pc_tree_free(tree);
	assert_refused(text, 65537, -EFBIG, "larger than 65536");
	free(text);
}

/* 64 KiB of every kind of repetition. One that took libyaml time in the square of its length would hang the test. */
static void test_hostile_repetition(void)
{
	static const char *const units[] = {"[",   "{",    "- ",  "? ",    "a: ",         "[],",      "\"",
	                                    "'",   "\n- ", "#",   "\n",    "&a ",         "*a ",      "!a ",
	                                    "|\n", "> ",   "%A ", "---\n", "\\",          "\xc3\xa9", ",",
	                                    ":",   "a\n ", "{a,", "[a: ",  "\xef\xbb\xbf"};
	char *text = malloc(65536);

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		size_t n = strlen(units[i]);

		for (size_t at = 0; at < 65536; at++)
			text[at] = units[i][at % n];
		for (size_t lead = 0; lead < 2; lead++) {
			struct pc_tree *tree = NULL;
			int r;

			if (lead == 1)
				memcpy(text, "x: ", 3);
			r = pc_tree_parse(&tree, text, 65536, NULL);
			CU_ASSERT_TRUE(r == 0 || r == -EBADMSG);
			pc_tree_free(tree);
		}
	}
	free(text);
}

/* Many different directives: refused at the first, before libyaml compares each with all. */
static void test_hostile_directives(void)
{
	char *text = malloc(65536), *end = text;

	for (unsigned i = 0; end < text + 65500; i++)
		end += sprintf(end, "%%TAG !%x! a\n", i);
	sprintf(end, "---\na: 1\n");
	assert_refused(text, strlen(text), -EBADMSG, "1:1: directives");
	free(text);
}

static void test_percent_elsewhere(void)
{
	struct pc_tree *tree = parse("# %\n#%\n a: \"%1\"\n b: 10%\n");

	pc_tree_free(tree);
}

static const struct pc_node *value_of(struct pc_tree **tree, const char *value)
{
	char text[200];

	snprintf(text, sizeof(text), "key: %s\n", value);
	*tree = parse(text);
	return pc_tree_root(*tree)->first;
}

static void assert_u64(const char *text, uint64_t least, uint64_t most, int code, uint64_t expected)
{
	struct pc_tree *tree;
	uint64_t value = 4711;
	struct pc_why why = {""};

	CU_ASSERT_EQUAL(pc_node_u64(value_of(&tree, text), least, most, &value, &why), code);
	CU_ASSERT_EQUAL(value, code == 0 ? expected : 4711);
	if (code != 0)
		CU_ASSERT_PTR_NOT_NULL(strstr(why.text, ": key: expected a whole number from "));
	pc_tree_free(tree);
}

static void test_u64(void)
{
	static const char *const words[] = {"\"1\"", "'1'", "+1", "-1",  "01",  "0x1",    "1_000", "1.0",
	                                    "1e3",   "",    "~",  "1 2", "[1]", "{a: 1}", "ten",   "\xd9\xa1"};

	assert_u64("0", 0, UINT64_MAX, 0, 0);
	assert_u64("18446744073709551615", 0, UINT64_MAX, 0, UINT64_MAX);
	assert_u64("7", 7, 7, 0, 7);
	assert_u64("18446744073709551616", 0, UINT64_MAX, -ERANGE, 0);
	assert_u64("99999999999999999999999999999999999999", 0, UINT64_MAX, -ERANGE, 0);
	assert_u64("6", 7, 8, -ERANGE, 0);
	assert_u64("9", 7, 8, -ERANGE, 0);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		assert_u64(words[i], 0, UINT64_MAX, -EBADMSG, 0);
}

static void assert_double(const char *text, int code, double expected)
{
	struct pc_tree *tree;
	double value = 4711;
	struct pc_why why = {""};

	CU_ASSERT_EQUAL(pc_node_double(value_of(&tree, text), -10, 1e6, &value, &why), code);
	CU_ASSERT_DOUBLE_EQUAL(value, code == 0 ? expected : 4711, 0);
	if (code != 0)
		CU_ASSERT_PTR_NOT_NULL(strstr(why.text, ": key: expected a number from -10 to 1e+06, found "));
	pc_tree_free(tree);
}

static void test_double(void)
{
	static const char *const words[] = {
		"nan",   ".nan",  "inf",  "-.inf",
		"0x1p3", "1.",    ".5",   "+1",
		"1e",    "\"1\"", "1,5",  "1 2",
		"",      "[1.0]", "1.5s", "1.0000000000000000000000000000000000000000000000000000000000000"};

	assert_double("2.91", 0, 2.91);
	assert_double("-10", 0, -10);
	assert_double("1e3", 0, 1000);
	assert_double("1.5E-3", 0, 0.0015);
	assert_double("1e-999", 0, 0);
	assert_double("1000001", -ERANGE, 0);
	assert_double("-10.5", -ERANGE, 0);
	assert_double("1e999", -ERANGE, 0);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		assert_double(words[i], -EBADMSG, 0);
}

static void test_numbers_do_not_depend_on_the_locale(void)
{
	static const char *const commas[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
	const char *found = NULL;

	for (size_t i = 0; i < sizeof(commas) / sizeof(commas[0]) && found == NULL; i++)
		found = setlocale(LC_NUMERIC, commas[i]);
	if (found == NULL) {
		unit_skip("no locale with a decimal comma is installed");
		return;
	}
	assert_double("2.91", 0, 2.91);
	setlocale(LC_NUMERIC, "C");
}

static void test_bool(void)
{
	static const char *const words[] = {"yes", "True", "\"true\"", "1", "", "[true]"};
	struct pc_tree *tree;
	struct pc_why why;
	bool value = false;

	CU_ASSERT_EQUAL(pc_node_bool(value_of(&tree, "true"), &value, &why), 0);
	CU_ASSERT_TRUE(value);
	pc_tree_free(tree);
	CU_ASSERT_EQUAL(pc_node_bool(value_of(&tree, "false"), &value, &why), 0);
	CU_ASSERT_FALSE(value);
	pc_tree_free(tree);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		CU_ASSERT_EQUAL(pc_node_bool(value_of(&tree, words[i]), &value, &why), -EBADMSG);
		CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "expected true or false, found "));
		pc_tree_free(tree);
	}
}

static void test_text(void)
{
	struct pc_tree *tree;
	struct pc_why why;
	char text[6] = "kept";

	CU_ASSERT_EQUAL(pc_node_text(value_of(&tree, "hello"), text, sizeof(text), &why), 0);
	CU_ASSERT_STRING_EQUAL(text, "hello");
	pc_tree_free(tree);
	CU_ASSERT_EQUAL(pc_node_text(value_of(&tree, "hello!"), text, sizeof(text), &why), -ERANGE);
	CU_ASSERT_STRING_EQUAL(why.text, "1:6: key: expected text of at most 5 bytes, found \"hello!\"");
	CU_ASSERT_STRING_EQUAL(text, "hello");
	pc_tree_free(tree);
	CU_ASSERT_EQUAL(pc_node_text(value_of(&tree, "[a]"), text, sizeof(text), &why), -EBADMSG);
	CU_ASSERT_STRING_EQUAL(why.text, "1:6: key: expected text, found a sequence");
	pc_tree_free(tree);
	CU_ASSERT_EQUAL(pc_node_text(value_of(&tree, "\"\\e[2J\""), text, sizeof(text), &why), -EBADMSG);
	CU_ASSERT_PTR_NULL(strchr(why.text, '\033'));
	pc_tree_free(tree);
}

/* What would move the cursor, end the line or turn the writing round is no text; its neighbours are. */
static void test_text_for_terminals(void)
{
	static const char *const refused[] = {"\\x80",   "\\x9b",   "\\N",     "\\L",   "\\P", "\\u202a",
	                                      "\\u202e", "\\u2066", "\\u2069", "\\x7f", "\\t", "\\e"};
	static const char *const taken[] = {"\\xa0", "\\xbf", "\\u2027", "\\u202f", "\\u2065", "\\u206a", "~", " "};
	struct pc_tree *tree;
	struct pc_why why;
	char value[20], text[20];

	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		snprintf(value, sizeof(value), "\"a%sb\"", refused[i]);
		CU_ASSERT_EQUAL(pc_node_text(value_of(&tree, value), text, sizeof(text), &why), -EBADMSG);
		pc_tree_free(tree);
	}
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		snprintf(value, sizeof(value), "\"a%sb\"", taken[i]);
		CU_ASSERT_EQUAL(pc_node_text(value_of(&tree, value), text, sizeof(text), &why), 0);
		pc_tree_free(tree);
	}
}

static const struct unit_test tests[] = {
	{"shape", test_shape},
	{"places", test_places},
	{"nothing_is_an_empty_mapping", test_nothing_is_an_empty_mapping},
	{"refusals", test_refusals},
	{"limits_are_reached", test_limits_are_reached},
	{"hostile_repetition", test_hostile_repetition},
	{"hostile_directives", test_hostile_directives},
	{"percent_elsewhere", test_percent_elsewhere},
	{"text_for_terminals", test_text_for_terminals},
	{"u64", test_u64},
	{"double", test_double},
	{"numbers_do_not_depend_on_the_locale", test_numbers_do_not_depend_on_the_locale},
	{"bool", test_bool},
	{"text", test_text},
};

UNIT_MAIN("tree", tests)
