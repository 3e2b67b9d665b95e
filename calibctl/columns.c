/*
 * Aligned columns: rows are kept until all widths are known.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibctl/output.h"

enum { COLUMNS_MAX = 12, GAP = 2, INDENT = 2 };

struct row {
	enum output_style style;
	size_t count;
	char *line; /* NULL: cells */
	char *cells[COLUMNS_MAX];
};

struct columns {
	char alignments[COLUMNS_MAX + 1];
	size_t count, room;
	struct row *rows;
	bool failed; /* out of memory: said when it is printed */
};

int columns_new(struct columns **out, const char *alignments)
{
	struct columns *columns = calloc(1, sizeof(*columns));

	if (columns == NULL)
		return -ENOMEM;
	snprintf(columns->alignments, sizeof(columns->alignments), "%s", alignments);
	*out = columns;
	return 0;
}

struct columns *columns_free(struct columns *columns)
{
	if (columns == NULL)
		return NULL;
	for (size_t i = 0; i < columns->count; i++) {
		free(columns->rows[i].line);
		for (size_t j = 0; j < columns->rows[i].count; j++)
			free(columns->rows[i].cells[j]);
	}
	free(columns->rows);
	free(columns);
	return NULL;
}

void columns_row(struct columns *columns, enum output_style style)
{
	if (columns->count == columns->room) {
		size_t room = columns->room > 0 ? columns->room * 2 : 32;
		struct row *rows = reallocarray(columns->rows, room, sizeof(*rows));

		if (rows == NULL) {
			columns->failed = true;
			return;
		}
		columns->rows = rows;
		columns->room = room;
	}
	columns->rows[columns->count++] = (struct row){.style = style};
}

static char *format_text(struct columns *columns, const char *format, va_list arguments)
{
	char *text;

	if (vasprintf(&text, format, arguments) >= 0)
		return text;
	columns->failed = true;
	return NULL;
}

void columns_cell(struct columns *columns, const char *format, ...)
{
	va_list arguments;

	if (columns->failed)
		return;
	struct row *row = &columns->rows[columns->count - 1];
	if (row->count == strlen(columns->alignments))
		return;
	va_start(arguments, format);
	char *text = format_text(columns, format, arguments);
	va_end(arguments);
	if (text != NULL)
		row->cells[row->count++] = text;
}

void columns_line(struct columns *columns, enum output_style style, const char *format, ...)
{
	va_list arguments;

	columns_row(columns, style);
	if (columns->failed)
		return;
	va_start(arguments, format);
	columns->rows[columns->count - 1].line = format_text(columns, format, arguments);
	va_end(arguments);
}

static void measure(const struct columns *columns, size_t width[COLUMNS_MAX])
{
	memset(width, 0, COLUMNS_MAX * sizeof(*width));
	for (size_t i = 0; i < columns->count; i++)
		for (size_t j = 0; j < columns->rows[i].count; j++)
			if (strlen(columns->rows[i].cells[j]) > width[j])
				width[j] = strlen(columns->rows[i].cells[j]);
}

/* The last cell of a row that holds anything: no spaces are printed behind it. */
static size_t used_cells(const struct row *row)
{
	size_t count = row->count;

	while (count > 0 && row->cells[count - 1][0] == '\0')
		count--;
	return count;
}

/* A column that is empty in every row takes no room. */
static void print_row(const struct columns *columns, const struct row *row, const size_t width[COLUMNS_MAX])
{
	char text[1024] = "";
	size_t used = 0, gap = INDENT, count = used_cells(row);

	for (size_t j = 0; j < count && used < sizeof(text); j++) {
		bool right = columns->alignments[j] == 'r', last = j + 1 == count;
		int wide = right ? (int)width[j] : last ? 0 : -(int)width[j];

		if (width[j] == 0)
			continue;
		used += (size_t)snprintf(text + used, sizeof(text) - used, "%*s%*s", (int)gap, "", wide, row->cells[j]);
		gap = GAP;
	}
	output_line(row->style, "%s", text);
}

int columns_print(const struct columns *columns)
{
	size_t width[COLUMNS_MAX];

	if (columns->failed)
		return -ENOMEM;
	measure(columns, width);
	for (size_t i = 0; i < columns->count; i++) {
		if (columns->rows[i].line != NULL)
			output_line(columns->rows[i].style, "%s", columns->rows[i].line);
		else
			print_row(columns, &columns->rows[i], width);
	}
	return 0;
}
