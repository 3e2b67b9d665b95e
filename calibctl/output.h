/*
 * How results look: labelled lines, headings, warnings and aligned columns for people; JSON for programs.
 */
#ifndef CALIBCTL_OUTPUT_H
#define CALIBCTL_OUTPUT_H

#include <jansson.h>
#include <stdint.h>

#include "calibctl/calibctl.h"
#include "libpolicy/why.h"

enum output_style { STYLE_PLAIN, STYLE_HEADING, STYLE_CHOSEN, STYLE_WARNING };

/* "label       text", wrapped under its first word at OUTPUT_WIDTH. */
void output_field(const char *label, const char *format, ...) __attribute__((format(printf, 2, 3)));

void output_line(enum output_style style, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* "! text", wrapped likewise: something that the reader should see to. */
void output_warning(const char *text);

enum { OUTPUT_WIDTH = 96 };

/* --- columns --- */

struct columns;

/* One letter a column: l or r. */
int columns_new(struct columns **out, const char *alignments);
struct columns *columns_free(struct columns *columns);

/* A row that cells are then added to; cells left out at its end are empty. */
void columns_row(struct columns *columns, enum output_style style);
void columns_cell(struct columns *columns, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* A line across all columns. */
void columns_line(struct columns *columns, enum output_style style, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* 0, or -ENOMEM if any of the above could not be kept. */
int columns_print(const struct columns *columns);

/* --- JSON --- */

/* Bytes that are no UTF-8 (a path, a marketing name) become '?'; NULL becomes null. */
json_t *output_json_text(const char *text);
/* Beyond what JSON readers take as whole numbers it is a real one. */
json_t *output_json_bytes(uint64_t bytes);
/* null where it isn't finite. */
json_t *output_json_number(double number);

/* Prints and releases it; NULL (out of memory) is said. The outcome, or UNREADABLE. */
enum outcome output_json(json_t *json, enum outcome outcome);

/* --- ends --- */

/* Says why on stderr. Always UNREADABLE. */
enum outcome output_failed(const struct pc_why *why);

/* Flushes stdout: the outcome, or UNREADABLE where not all could be written, which is said. */
enum outcome output_end(enum outcome outcome);

/* Seconds since 1970; $SOURCE_DATE_EPOCH where it is set, so that ages can be reproduced. */
int64_t output_now(void);

#endif
