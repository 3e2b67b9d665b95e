/* Cuts pinned ranges out of rules; see pins.h. */
#include "calibrd/pins.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool applies(const struct pin *pin, const struct pc_table *table)
{
	return pin->intent == table->intent && (pin->any_prior || pin->prior == table->prior) && pin->from < pin->to;
}

/* Cuts [from, to) out of the rules and puts the pinned kernel there. */
static void apply(struct pc_table *table, const struct pin *pin)
{
	struct pc_rule old[PC_RULES_MAX], after = *pc_table_rule(table, pin->to), rule = {.from = pin->from};
	size_t count = table->rule_count, kept = 0;

	memcpy(old, table->rules, count * sizeof(*old));
	snprintf(rule.kernel, sizeof(rule.kernel), "%s", pc_kernels[pin->kernel].name);
	rule.pinned = true;
	if (after.from != pin->to)
		after.low = after.high = 0; /* a cut is no crossover */
	after.from = pin->to;
	for (size_t i = 0; i < count && old[i].from < pin->from; i++)
		table->rules[kept++] = old[i];
	table->rules[kept++] = rule;
	if (pin->to != UINT64_MAX)
		table->rules[kept++] = after;
	for (size_t i = 0; i < count; i++)
		if (old[i].from > pin->to)
			table->rules[kept++] = old[i];
	table->rule_count = kept;
}

int pins_apply(struct pc_table *table, const struct pin *pins, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (!applies(&pins[i], table))
			continue;
		if (table->rule_count + 2 > PC_RULES_MAX)
			return -E2BIG;
		apply(table, &pins[i]);
	}
	return 0;
}
