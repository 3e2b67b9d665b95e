/*
 * One rule of a table in words and in JSON, for the verbs that show rules.
 */
#ifndef CALIBCTL_RULE_H
#define CALIBCTL_RULE_H

#include <jansson.h>

#include "libpolicy/document.h"

struct columns;

/* Bytes it holds up to; UINT64_MAX: no limit. */
static inline uint64_t rule_to(const struct pc_table *table, size_t rule)
{
	return rule + 1 < table->rule_count ? table->rules[rule + 1].from : UINT64_MAX;
}

/* NULL: the kernel runs here; else why libc stands in: "not known to this version", "not on this CPU". */
const char *rule_obstacle(const struct pc_rule *rule);

/* "2 KiB - no limit", "all sizes"; fit for RULE_RANGE bytes. */
enum { RULE_RANGE = 72, RULE_NOTES = 160 };
void rule_range(const struct pc_table *table, size_t rule, char out[RULE_RANGE]);

/* "crossover 1.5 KiB - 3 KiB, in pieces of 2 MiB, pinned"; "" if there is nothing to add. obstacle may be NULL. */
void rule_notes(const struct pc_rule *rule, const char *obstacle, char out[RULE_NOTES]);

/* here: whether to tell if it runs on this host. */
json_t *rule_json(const struct pc_table *table, size_t rule, bool here);

#endif
