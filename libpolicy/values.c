/*
 * Scalars of the tree as numbers, truth values and text: plain decimal, independent of the program's locale.
 */
#include "libpolicy/tree.h"

#include <errno.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

/* Enough for any number that means something here; longer ones are no numbers. */
enum { NUMBER_MAX = 48 };

/* What was found, fit for a terminal and a log line. */
static const char *found(const struct pc_node *node, char out[40])
{
	if (node->kind != PC_SCALAR)
		return node->kind == PC_MAPPING ? "a mapping" : "a sequence";
	size_t n = 0;
	out[n++] = '"';
	for (const char *c = node->text; *c != '\0' && n < 38; c++)
		out[n++] = *c < ' ' || *c > '~' ? '?' : *c;
	out[n++] = '"';
	out[n] = '\0';
	return out;
}

static int unexpected(const struct pc_node *node, int code, struct pc_why *why, const char *expected)
{
	const char *key = node->key == NULL ? "" : node->key, *colon = node->key == NULL ? "" : ": ";
	char text[40];

	return pc_why(why, code, "%u:%u: %.40s%sexpected %s, found %s", node->line, node->column, key, colon, expected,
	              found(node, text));
}

static size_t digits(const char *text)
{
	return strspn(text, "0123456789");
}

/* Without leading zeros: YAML 1.1 reads those as octal. */
static bool is_whole(const char *text)
{
	size_t n = digits(text);

	return n > 0 && text[n] == '\0' && (n == 1 || text[0] != '0');
}

/* Formatted only once it has gone wrong: a policy holds hundreds of numbers. */
static int unexpected_u64(const struct pc_node *node, int code, uint64_t least, uint64_t most, struct pc_why *why)
{
	struct pc_why expected;

	pc_why_say(&expected, "a whole number from %llu to %llu", (unsigned long long)least, (unsigned long long)most);
	return unexpected(node, code, why, expected.text);
}

int pc_node_u64(const struct pc_node *node, uint64_t least, uint64_t most, uint64_t *out, struct pc_why *why)
{
	uint64_t value = 0;

	if (node->kind != PC_SCALAR || node->quoted || !is_whole(node->text))
		return unexpected_u64(node, -EBADMSG, least, most, why);
	for (const char *c = node->text; *c != '\0'; c++) {
		if (__builtin_mul_overflow(value, 10u, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*c - '0'), &value))
			return unexpected_u64(node, -ERANGE, least, most, why);
	}
	if (value < least || value > most)
		return unexpected_u64(node, -ERANGE, least, most, why);
	*out = value;
	return 0;
}

/* [-]digits[.digits][e[+-]digits]: no hexadecimal, infinity or NaN, which strtod would take. */
static bool is_decimal(const char *text)
{
	text += *text == '-';
	if (digits(text) == 0)
		return false;
	text += digits(text);
	if (*text == '.') {
		text++;
		if (digits(text) == 0)
			return false;
		text += digits(text);
	}
	if (*text == 'e' || *text == 'E') {
		text++;
		text += *text == '+' || *text == '-';
		if (digits(text) == 0)
			return false;
		text += digits(text);
	}
	return *text == '\0';
}

/* strtod would read "2.91" as 2 where the program's locale writes a comma. */
static int decimal_value(const char *text, double *out)
{
	locale_t plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);

	if (plain == (locale_t)0)
		return -ENOMEM;
	*out = strtod_l(text, NULL, plain);
	freelocale(plain);
	return 0;
}

static int unexpected_double(const struct pc_node *node, int code, double least, double most, struct pc_why *why)
{
	struct pc_why expected;

	pc_why_say(&expected, "a number from %g to %g", least, most);
	return unexpected(node, code, why, expected.text);
}

int pc_node_double(const struct pc_node *node, double least, double most, double *out, struct pc_why *why)
{
	double value;

	if (node->kind != PC_SCALAR || node->quoted || strlen(node->text) > NUMBER_MAX || !is_decimal(node->text))
		return unexpected_double(node, -EBADMSG, least, most, why);
	int r = decimal_value(node->text, &value);
	if (r < 0)
		return pc_why(why, r, "out of memory");
	if (!__builtin_isfinite(value) || value < least || value > most)
		return unexpected_double(node, -ERANGE, least, most, why);
	*out = value;
	return 0;
}

int pc_node_bool(const struct pc_node *node, bool *out, struct pc_why *why)
{
	bool yes = node->kind == PC_SCALAR && !node->quoted && strcmp(node->text, "true") == 0;
	bool no = node->kind == PC_SCALAR && !node->quoted && strcmp(node->text, "false") == 0;

	if (!yes && !no)
		return unexpected(node, -EBADMSG, why, "true or false");
	*out = yes;
	return 0;
}

/* Such text ends up on terminals and in logs. */
static bool has_control(const char *text)
{
	for (; *text != '\0'; text++)
		if (pc_control(text) > 0)
			return true;
	return false;
}

int pc_node_text(const struct pc_node *node, char *out, size_t size, struct pc_why *why)
{
	struct pc_why expected;

	if (node->kind != PC_SCALAR)
		return unexpected(node, -EBADMSG, why, "text");
	if (has_control(node->text))
		return unexpected(node, -EBADMSG, why, "text without control characters");
	if (strlen(node->text) >= size) {
		pc_why_say(&expected, "text of at most %zu bytes", size - 1);
		return unexpected(node, -ERANGE, why, expected.text);
	}
	memcpy(out, node->text, strlen(node->text) + 1);
	return 0;
}
