#include "calibctl/output.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LABEL = 11 };

/* no-color.org: any value that is not empty. */
static bool is_coloured(void)
{
	static int known = -1;

	if (known < 0) {
		const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

		known = isatty(STDOUT_FILENO) && (no == NULL || no[0] == '\0') && term != NULL &&
		        strcmp(term, "dumb") != 0;
	}
	return known;
}

static const char *style_begin(enum output_style style)
{
	static const char *const codes[] = {[STYLE_PLAIN] = "",
	                                    [STYLE_HEADING] = "\033[1m",
	                                    [STYLE_CHOSEN] = "\033[32m",
	                                    [STYLE_WARNING] = "\033[33m"};

	return is_coloured() ? codes[style] : "";
}

static const char *style_end(enum output_style style)
{
	return is_coloured() && style != STYLE_PLAIN ? "\033[0m" : "";
}

/* The cursor stands at column `indent`; later lines begin there too. */
static void print_wrapped(const char *text, size_t indent)
{
	size_t column = indent;

	while (*text != '\0') {
		size_t word = strcspn(text, " ");

		if (column > indent && column + 1 + word > OUTPUT_WIDTH) {
			printf("\n%*s", (int)indent, "");
			column = indent;
		} else if (column > indent) {
			putchar(' ');
			column++;
		}
		printf("%.*s", (int)word, text);
		column += word;
		text += word;
		text += *text == ' ';
	}
	putchar('\n');
}

void output_field(const char *label, const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	int length = vasprintf(&text, format, arguments);
	va_end(arguments);
	if (length < 0) {
		output_failed(&(struct pc_why){"out of memory"});
		exit(UNREADABLE);
	}
	printf("%-*s", LABEL, label);
	print_wrapped(text, LABEL);
	free(text);
}

void output_line(enum output_style style, const char *format, ...)
{
	va_list arguments;

	fputs(style_begin(style), stdout);
	va_start(arguments, format);
	vprintf(format, arguments);
	va_end(arguments);
	printf("%s\n", style_end(style));
}

void output_warning(const char *text)
{
	printf("%s! ", style_begin(STYLE_WARNING));
	print_wrapped(text, 2);
	fputs(style_end(STYLE_WARNING), stdout);
}

enum outcome output_failed(const struct pc_why *why)
{
	fprintf(stderr, "calibctl: %s\n", why->text);
	return UNREADABLE;
}

enum outcome output_end(enum outcome outcome)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return outcome;
	fprintf(stderr, "calibctl: standard output: %s\n", strerror(errno));
	return UNREADABLE;
}

int64_t output_now(void)
{
	const char *fixed = getenv("SOURCE_DATE_EPOCH");

	if (fixed != NULL && fixed[0] != '\0') {
		char *end;
		long long value = strtoll(fixed, &end, 10);

		if (*end == '\0')
			return value;
	}
	return time(NULL);
}
