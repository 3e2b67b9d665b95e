/* libFuzzer's way into the reader of policy.yaml: whatever it lets through must keep what document.h promises. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libpolicy/policy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool kept)
{
	if (!kept)
		abort();
}

static void check_table(const struct pc_table *table)
{
	demand(table->intent <= PAGECLEAR_SCRUB && table->prior < PC_PRIORS && table->threads >= 1);
	demand(table->rule_count >= 1 && table->rule_count <= PC_RULES_MAX && table->rules[0].from == 0);
	for (size_t i = 0; i < table->rule_count; i++) {
		const struct pc_rule *rule = &table->rules[i];

		demand(i == 0 || rule->from > rule[-1].from);
		demand(rule->kernel[0] != '\0' && strlen(rule->kernel) < sizeof(rule->kernel) && rule->gain >= 0);
		demand(pc_table_rule(table, rule->from) == rule);
	}
}

/* A policy made from it answers every size with a rule that holds there. */
static void check_choices(const struct pageclear_policy *policy)
{
	for (unsigned bit = 0; bit < 64; bit++) {
		for (unsigned intent = 0; intent < 64; intent++) {
			struct pageclear_query query = {
				.size = sizeof(query), .len = ((size_t)1 << bit) - 1, .intent = intent, .threads = bit};
			struct pageclear_choice choice = {.size = sizeof(choice)};

			demand(pageclear_policy_choose(policy, &query, &choice) == 0);
			demand(choice.from <= query.len && query.len < choice.to && choice.clear != NULL);
			demand(choice.chunk == 0 || choice.chunk >= 4096);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pc_document *document;
	struct pageclear_policy *policy;
	struct pc_why why, lacking;
	int r = pc_document_parse(&document, (const char *)data, size, &why);

	if (r < 0) {
		demand(r == -EBADMSG || r == -EPROTONOSUPPORT || r == -EFBIG);
		demand(memchr(why.text, '\0', sizeof(why.text)) > (void *)why.text);
		return 0;
	}
	for (size_t i = 0; i < document->table_count; i++)
		check_table(&document->tables[i]);
	demand(pc_policy_build(&policy, document, 2.5, &lacking) == 0);
	check_choices(policy);
	pageclear_policy_close(policy);
	pc_document_free(document);
	return 0;
}
