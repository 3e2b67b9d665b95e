/* What the policy's file says of what was published; see history_now.h. */
#include "calibctl/history_now.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libpolicy/document.h"
#include "libpolicy/file.h"

/* True if the file's text is what was published as that generation. */
static int compare(struct history_now *out, struct store *store, const char *text, size_t len, struct pc_why *why)
{
	struct published row = {0};
	int r = store_generation(store, out->generation, &row, why);

	if (r == 0)
		out->state = strlen(row.yaml) == len && memcmp(row.yaml, text, len) == 0 ? NOW_RECORDED : NOW_EDITED;
	else if (r == 1 || r == -EUCLEAN) /* a damaged text proves nothing */
		out->state = NOW_UNRECORDED;
	free(row.yaml);
	return r < 0 && r != -EUCLEAN ? r : 0;
}

static int parse(struct history_now *out, struct store *store, const char *text, size_t len, struct pc_why *why)
{
	struct pc_document *document = NULL;
	int r = pc_document_parse(&document, text, len, &out->reason);

	if (r == -ENOMEM)
		return pc_why(why, r, "out of memory");
	out->state = NOW_UNREADABLE;
	if (r < 0)
		return 0;
	out->generation = document->generation;
	pc_document_free(document);
	return compare(out, store, text, len, why);
}

int history_now(struct history_now *out, const struct where *where, struct store *store, struct pc_why *why)
{
	char *text = NULL;
	size_t len;

	*out = (struct history_now){.state = NOW_NONE};
	if (where->policy_source == WHERE_NOWHERE || where_is_off(where))
		return 0;
	int r = pc_file_read(where->policy, PC_DOCUMENT_MAX_BYTES, &text, &len, &out->reason);
	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r == -ENOMEM)
		return pc_why(why, r, "out of memory");
	out->state = NOW_UNREADABLE;
	if (r < 0)
		return 0;
	r = parse(out, store, text, len, why);
	free(text);
	return r;
}

const char *history_now_name(enum history_now_state state)
{
	static const char *const names[] = {[NOW_NONE] = "none",
	                                    [NOW_RECORDED] = "recorded",
	                                    [NOW_EDITED] = "edited",
	                                    [NOW_UNRECORDED] = "unrecorded",
	                                    [NOW_UNREADABLE] = "unreadable"};

	return names[state];
}

void history_now_words(const struct history_now *now, char out[HISTORY_NOW_WORDS])
{
	static const char *const after[] = {[NOW_NONE] = "",
	                                    [NOW_RECORDED] = "",
	                                    [NOW_EDITED] = ", edited since",
	                                    [NOW_UNRECORDED] = ", of which this database knows nothing",
	                                    [NOW_UNREADABLE] = ""};

	if (now->state == NOW_NONE)
		snprintf(out, HISTORY_NOW_WORDS, "none: withdrawn, or not published there");
	else if (now->state == NOW_UNREADABLE)
		snprintf(out, HISTORY_NOW_WORDS, "no policy: %s", now->reason.text);
	else
		snprintf(out, HISTORY_NOW_WORDS, "generation %llu%s", (unsigned long long)now->generation,
		         after[now->state]);
}
