/* Imports; see import.h. */
#include "calibrd/import.h"

#include <errno.h>

#include "calibrd/rollback.h"

static int check(const struct settlement *what, const struct pc_document *document, struct pc_why *why)
{
	if (document->table_count == 0)
		return pc_why(why, -EBADMSG, "the imported policy has no table that this version knows");
	return rollback_check_here(what, document, NULL, "the imported policy", why);
}

int import_policy(const struct settlement *what, const char *text, size_t len, uint64_t *published, struct pc_why *why)
{
	struct settlement as = *what;
	struct pc_document *document = NULL;
	struct pc_why reason = {""};
	int r = pc_document_parse(&document, text, len, &reason);

	if (r < 0)
		return pc_why(why, r, "the imported policy: %s", reason.text);
	as.source = IMPORT_SOURCE;
	r = check(what, document, why);
	if (r == 0)
		r = rollback_publish(&as, document, 0, published, why);
	pc_document_free(document);
	return r;
}
