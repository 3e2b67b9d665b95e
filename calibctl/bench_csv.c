/* CSV; see bench_csv.h. */
#include "calibctl/bench_csv.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void separate(struct bench_csv *csv)
{
	if (csv->begun)
		fputc(',', csv->out);
	csv->begun = true;
}

void bench_csv_text(struct bench_csv *csv, const char *text)
{
	separate(csv);
	if (text[strcspn(text, ",\"\r\n")] == '\0') {
		fputs(text, csv->out);
		return;
	}
	fputc('"', csv->out);
	for (; *text != '\0'; text++) {
		if (*text == '"')
			fputc('"', csv->out);
		fputc(*text, csv->out);
	}
	fputc('"', csv->out);
}

void bench_csv_whole(struct bench_csv *csv, uint64_t number)
{
	separate(csv);
	fprintf(csv->out, "%" PRIu64, number);
}

/* This program never calls setlocale(): the point is a point. */
void bench_csv_number(struct bench_csv *csv, double number)
{
	separate(csv);
	if (isfinite(number))
		fprintf(csv->out, "%.6g", number);
}

void bench_csv_end(struct bench_csv *csv)
{
	fputs("\r\n", csv->out);
	csv->begun = false;
}

void bench_csv_header(struct bench_csv *csv, const char *const *names)
{
	for (; *names != NULL; names++)
		bench_csv_text(csv, *names);
	bench_csv_end(csv);
}
