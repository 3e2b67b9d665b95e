/*
 * Values that JSON cannot hold as they are, and the one way out for a document.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibctl/output.h"

/* 2^53: from here up a reader that keeps numbers as doubles loses units. */
#define WHOLE_MAX (1ull << 53)

static json_t *repaired(const char *text)
{
	char *copy = strdup(text);
	json_t *json = NULL;

	if (copy == NULL)
		return NULL;
	for (char *c = copy; *c != '\0'; c++)
		if ((unsigned char)*c > '~')
			*c = '?';
	json = json_string(copy);
	free(copy);
	return json;
}

json_t *output_json_text(const char *text)
{
	if (text == NULL)
		return json_null();
	json_t *json = json_string(text);
	return json != NULL ? json : repaired(text);
}

json_t *output_json_bytes(uint64_t bytes)
{
	return bytes <= WHOLE_MAX ? json_integer((json_int_t)bytes) : json_real((double)bytes);
}

json_t *output_json_number(double number)
{
	return isfinite(number) ? json_real(number) : json_null();
}

enum outcome output_json(json_t *json, enum outcome outcome)
{
	if (json == NULL)
		return output_failed(&(struct pc_why){"out of memory"});
	/* Six digits say more than any timing holds, and keep 2.91 from becoming 2.9100000000000001. */
	int r = json_dumpf(json, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(6));
	json_decref(json);
	putchar('\n');
	if (r == 0)
		return outcome;
	/* What cannot be written is said at the end: output_end(). */
	return ferror(stdout) ? UNREADABLE : output_failed(&(struct pc_why){"out of memory"});
}
