/* See sizes.h. By integers alone: doubles lose bytes above 8 PiB, and locales move the decimal point. */
#include "calibrd/sizes.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { DECIMALS_MAX = 9, KIBI_SHIFT = 10 };

static const char prefixes[] = "KMGTPE";

/* Binary digits to shift by, or -1: K, KB and KiB alike. */
static int unit_shift(const char *unit)
{
	if (*unit == '\0' || strcasecmp(unit, "b") == 0)
		return 0;
	const char *prefix = strchr(prefixes, toupper((unsigned char)*unit));
	if (prefix == NULL)
		return -1;
	if (unit[1] != '\0' && strcasecmp(unit + 1, "b") != 0 && strcasecmp(unit + 1, "ib") != 0)
		return -1;
	return (int)(prefix - prefixes + 1) * KIBI_SHIFT;
}

/* Decimals as billionths. Returns where they end, NULL if there are none or too many. */
static const char *read_decimals(const char *text, uint64_t *billionths)
{
	size_t n = strspn(text, "0123456789");

	*billionths = 0;
	if (n == 0 || n > DECIMALS_MAX)
		return NULL;
	for (size_t i = 0; i < DECIMALS_MAX; i++)
		*billionths = 10 * *billionths + (i < n ? (uint64_t)(text[i] - '0') : 0);
	return text + n;
}

/* billionths << shift / 10^9, rounded; shift is at most 60, so a half of the shift is made before and a half behind. */
static uint64_t scale(uint64_t billionths, unsigned shift)
{
	const uint64_t billion = 1000000000;
	const unsigned first = shift / 2, second = shift - first; /* 2^30 x 10^9 fits */
	uint64_t whole = (billionths << first) / billion, rest = (billionths << first) % billion;

	return (whole << second) + ((rest << second) + billion / 2) / billion;
}

int size_parse(const char *text, uint64_t *out)
{
	const char *end = text + strspn(text, "0123456789");
	uint64_t whole = 0, billionths = 0, bytes;

	if (end == text)
		return -EINVAL;
	const char *unit = end;
	if (*end == '.' && (unit = read_decimals(end + 1, &billionths)) == NULL)
		return -EINVAL;
	unit += strspn(unit, " ");
	int shift = unit_shift(unit);
	if (shift < 0 || (shift == 0 && *end == '.') || (*unit == '\0' && unit > text && unit[-1] == ' '))
		return -EINVAL;
	for (const char *c = text; c < end; c++)
		if (__builtin_mul_overflow(whole, 10u, &whole) ||
		    __builtin_add_overflow(whole, (uint64_t)(*c - '0'), &whole))
			return -ERANGE;
	if (whole > UINT64_MAX >> shift ||
	    __builtin_add_overflow(whole << shift, scale(billionths, (unsigned)shift), &bytes))
		return -ERANGE;
	*out = bytes;
	return 0;
}

/* Hundredths of 2^shift, rounded half up. */
static unsigned hundredths_of(uint64_t rest, unsigned shift)
{
	unsigned drop = shift > 50 ? shift - 50 : 0; /* rest x 100 must fit */
	uint64_t unit = (uint64_t)1 << (shift - drop);

	return (unsigned)(((rest >> drop) * 100 + unit / 2) / unit);
}

/* ".5", ".25", or nothing. */
static void write_decimals(unsigned hundredths, char out[4])
{
	const char digits[] = {'.', (char)('0' + hundredths / 10), (char)('0' + hundredths % 10), '\0'};

	memcpy(out, digits, sizeof(digits));
	if (hundredths % 10 == 0)
		out[hundredths == 0 ? 0 : 2] = '\0';
}

char *size_format(uint64_t bytes, char *text, size_t size)
{
	unsigned shift = 0;

	while (shift < 60 && bytes >> shift >= 1024)
		shift += KIBI_SHIFT;
	uint64_t whole = bytes >> shift;
	unsigned hundredths = shift == 0 ? 0 : hundredths_of(bytes & (((uint64_t)1 << shift) - 1), shift);
	if (hundredths == 100) {
		hundredths = 0;
		whole++;
	}
	if (whole == 1024 && shift < 60) {
		whole = 1;
		shift += KIBI_SHIFT;
	}
	char decimals[4], unit[] = {shift == 0 ? 'B' : prefixes[shift / KIBI_SHIFT - 1], '\0'};
	write_decimals(hundredths, decimals);
	snprintf(text, size, "%llu%s %s%s", (unsigned long long)whole, decimals, unit, shift == 0 ? "" : "iB");
	return text;
}
