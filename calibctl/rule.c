#include "calibctl/rule.h"

#include <stdio.h>
#include <string.h>

#include "calibctl/output.h"
#include "calibctl/words.h"
#include "kernels/kernels.h"

const char *rule_obstacle(const struct pc_rule *rule)
{
	const struct pc_kernel *kernel = pc_kernel_find(rule->kernel);

	if (kernel == NULL)
		return "not known to this version";
	return pc_kernel_runs(kernel) ? NULL : "not on this CPU";
}

void rule_range(const struct pc_table *table, size_t rule, char out[RULE_RANGE])
{
	uint64_t to = rule_to(table, rule);
	char from_text[WORDS_SHORT], to_text[WORDS_SHORT] = "no limit";

	words_size(table->rules[rule].from, from_text);
	if (to != UINT64_MAX)
		words_size(to, to_text);
	if (table->rule_count == 1)
		snprintf(out, RULE_RANGE, "all sizes");
	else
		snprintf(out, RULE_RANGE, "%s - %s", from_text, to_text);
}

/* With a comma before it where something stands already. */
__attribute__((format(printf, 2, 3))) static void add_note(char out[RULE_NOTES], const char *format, ...)
{
	size_t used = strlen(out);
	va_list arguments;

	if (used > 0)
		used += (size_t)snprintf(out + used, RULE_NOTES - used, ", ");
	if (used >= RULE_NOTES)
		return;
	va_start(arguments, format);
	vsnprintf(out + used, RULE_NOTES - used, format, arguments);
	va_end(arguments);
}

void rule_notes(const struct pc_rule *rule, const char *obstacle, char out[RULE_NOTES])
{
	char low[WORDS_SHORT], high[WORDS_SHORT], chunk[WORDS_SHORT];

	words_size(rule->low, low);
	words_size(rule->high, high);
	words_size(rule->chunk, chunk);
	out[0] = '\0';
	if (rule->high > 0 && rule->low != rule->high)
		add_note(out, "crossover %s - %s", low, high);
	else if (rule->high > 0)
		add_note(out, "crossover %s", high);
	if (rule->chunk > 0)
		add_note(out, "in pieces of %s", chunk);
	if (rule->pinned)
		add_note(out, "pinned");
	if (obstacle != NULL)
		add_note(out, "%s: libc stands in", obstacle);
}

json_t *rule_json(const struct pc_table *table, size_t i, bool here)
{
	const struct pc_rule *rule = &table->rules[i];
	uint64_t to = rule_to(table, i);

	return json_pack("{s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:b, s:o}", "from", output_json_bytes(rule->from), "to",
	                 to == UINT64_MAX ? json_null() : output_json_bytes(to), "kernel", rule->kernel, "chunk",
	                 output_json_bytes(rule->chunk), "gain",
	                 rule->gain > 0 ? output_json_number(rule->gain) : json_null(), "low",
	                 rule->high > 0 ? output_json_bytes(rule->low) : json_null(), "high",
	                 rule->high > 0 ? output_json_bytes(rule->high) : json_null(), "pinned", (int)rule->pinned,
	                 "runs_here", here ? json_boolean(rule_obstacle(rule) == NULL) : json_null());
}
