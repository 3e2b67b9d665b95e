/* Sets of CPUs and NUMA nodes, in the two forms that sysfs writes them in. Pure. */
#include "calibrd/topology_parts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void topology_set_add(struct topology_set *set, unsigned member)
{
	if (member < TOPOLOGY_SET_MAX)
		set->word[member / 64] |= UINT64_C(1) << (member % 64);
}

bool topology_set_has(const struct topology_set *set, unsigned member)
{
	return member < TOPOLOGY_SET_MAX && (set->word[member / 64] >> (member % 64) & 1) != 0;
}

unsigned topology_set_count(const struct topology_set *set)
{
	unsigned count = 0;

	for (size_t i = 0; i < TOPOLOGY_SET_MAX / 64; i++)
		count += (unsigned)__builtin_popcountll(set->word[i]);
	return count;
}

unsigned topology_set_next(const struct topology_set *set, unsigned from)
{
	while (from < TOPOLOGY_SET_MAX && !topology_set_has(set, from))
		from = set->word[from / 64] >> (from % 64) == 0 ? (from / 64 + 1) * 64 : from + 1;
	return from;
}

/* A plain decimal number; strtoul alone would take signs and white space too. */
static bool parse_member(const char **text, unsigned long *member)
{
	char *end;

	if (!isdigit((unsigned char)**text))
		return false;
	*member = strtoul(*text, &end, 10);
	*text = end;
	return *member < TOPOLOGY_SET_MAX;
}

bool topology_set_parse_list(struct topology_set *set, const char *text)
{
	unsigned long first, last;

	memset(set, 0, sizeof(*set));
	if (*text == '\0')
		return true;
	for (;; text++) {
		if (!parse_member(&text, &first))
			return false;
		last = first;
		if (*text == '-') {
			text++;
			if (!parse_member(&text, &last) || last < first)
				return false;
		}
		for (; first <= last; first++)
			topology_set_add(set, (unsigned)first);
		if (*text != ',')
			return *text == '\0';
	}
}

bool topology_set_parse_map(struct topology_set *set, const char *text)
{
	unsigned bit = 0;
	static const char digits[] = "0123456789abcdef";

	memset(set, 0, sizeof(*set));
	if (*text == '\0')
		return false;
	for (size_t i = strlen(text); i-- > 0;) {
		const char *digit = strchr(digits, tolower((unsigned char)text[i]));

		if (text[i] == ',')
			continue;
		if (digit == NULL)
			return false;
		for (unsigned j = 0; j < 4; j++)
			if ((digit - digits) >> j & 1) {
				if (bit + j >= TOPOLOGY_SET_MAX)
					return false;
				topology_set_add(set, bit + j);
			}
		bit += 4;
	}
	return true;
}

void topology_set_print(const struct topology_set *set, char *text, size_t size)
{
	size_t used = 0;
	char range[32];

	text[0] = '\0';
	for (unsigned first = topology_set_next(set, 0), last; first < TOPOLOGY_SET_MAX;
	     first = topology_set_next(set, last + 1)) {
		const char *comma = used == 0 ? "" : ",";
		size_t len;

		for (last = first; topology_set_has(set, last + 1);)
			last++;
		if (last == first)
			snprintf(range, sizeof(range), "%s%u", comma, first);
		else
			snprintf(range, sizeof(range), "%s%u-%u", comma, first, last);
		len = strlen(range);
		if (used + len + sizeof("...") > size) {
			snprintf(text + used, size - used, "...");
			return;
		}
		memcpy(text + used, range, len + 1);
		used += len;
	}
}
