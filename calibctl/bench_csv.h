/*
 * CSV as RFC 4180 has it: commas, CRLF, quotes only where a field needs them. A number that is not known is an empty
 * field. Pure but for the stream it is given, whose errors are seen when it is flushed.
 */
#ifndef CALIBCTL_BENCH_CSV_H
#define CALIBCTL_BENCH_CSV_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct bench_csv {
	FILE *out;
	bool begun; /* the row has a field */
};

void bench_csv_text(struct bench_csv *csv, const char *text);
void bench_csv_whole(struct bench_csv *csv, uint64_t number);
void bench_csv_number(struct bench_csv *csv, double number); /* six significant digits; empty if it isn't finite */
void bench_csv_end(struct bench_csv *csv);

/* A row of names, ending in NULL. */
void bench_csv_header(struct bench_csv *csv, const char *const *names);

#endif
