/*
 * rollback: a generation of the past is published again, as calibrd would, under its lock.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibctl/args.h"
#include "calibctl/history_now.h"
#include "calibctl/ledger.h"
#include "calibctl/output.h"
#include "calibctl/rollback_check.h"
#include "calibctl/words.h"
#include "calibrd/config.h"
#include "calibrd/rollback.h"
#include "calibrd/settle.h"

struct rollback {
	struct where where;
	struct config config; /* the policy's path alone */
	uint64_t generation;  /* that is wanted */
	struct published row;
	struct pc_document *document;
	struct history_now now;
	struct publish_result result;
	bool done; /* a new generation was published */
};

/* --- what is wanted, and where ----------------------------------------------------------------------------------- */

static enum outcome parse(struct args *args, struct calibctl *ctl, uint64_t *generation)
{
	struct arg_words words = {.least = 1, .most = 1, .names = "GENERATION"};
	char *end;

	if (args_parse(args, ctl, NULL, &words) != DONE)
		return USAGE;
	const char *text = words.word[0];
	errno = 0;
	*generation = strtoull(text, &end, 10);
	if (text[strspn(text, "0123456789")] != '\0' || errno != 0 || *generation == 0 || *generation > INT64_MAX)
		return args_misused(args, "GENERATION '%s' is no generation's number: `calibctl history` lists them",
		                    text);
	return DONE;
}

/* Where calibrd would publish: a policy found under /run stands in for one in /etc. */
static int target(struct rollback *rollback, struct pc_why *why)
{
	const struct where *where = &rollback->where;
	const char *path = where->policy;

	if (where_is_off(where))
		return pc_why(why, -EINVAL, "$PAGECLEAR_POLICY is `builtin`: name the policy's file with --policy");
	if (where->policy_source == WHERE_NOWHERE && where->database_source != WHERE_HOST)
		return pc_why(why, -ENOENT, "no policy is published now: name its file with --policy");
	if (where->policy_source == WHERE_HOST || where->policy_source == WHERE_NOWHERE)
		path = SETTLE_POLICY;
	if (strlen(path) >= sizeof(rollback->config.policy))
		return pc_why(why, -ENAMETOOLONG, "--policy: the path is longer than %zu bytes",
		              sizeof(rollback->config.policy) - 1);
	strcpy(rollback->config.policy, path);
	return 0;
}

/* --- from the database ------------------------------------------------------------------------------------------- */

/* "1-5, 7"; the newest ones where there are more than fit. */
static int list_generations(struct store *store, char *out, size_t size, struct pc_why *why)
{
	struct published *list = NULL;
	size_t count = 0, used = 0;
	int r = store_publications(store, SIZE_MAX, &list, &count, why);

	out[0] = '\0';
	for (size_t i = 0, end; r == 0 && i < count; i = end) {
		for (end = i + 1; end < count && list[end].generation + 1 == list[end - 1].generation; end++)
			;
		if (used + 48 > size) {
			snprintf(out + used, size - used, ", ...");
			break;
		}
		used += (size_t)snprintf(out + used, size - used, "%s%" PRIu64, used > 0 ? ", " : "",
		                         list[end - 1].generation);
		if (end - i > 1)
			used += (size_t)snprintf(out + used, size - used, "-%" PRIu64, list[i].generation);
	}
	free(list);
	return r;
}

static enum outcome unknown(const struct rollback *rollback, struct store *store, struct args *args)
{
	char generations[160];
	struct pc_why why;

	if (list_generations(store, generations, sizeof(generations), &why) < 0)
		return output_failed(&why);
	if (generations[0] == '\0')
		return args_misused(args, "there is no generation %" PRIu64 ": nothing was published yet",
		                    rollback->generation);
	return args_misused(args, "there is no generation %" PRIu64 "; there are %s", rollback->generation,
	                    generations);
}

static enum outcome look_up(struct rollback *rollback, struct args *args)
{
	struct store *store = NULL;
	struct pc_why why;
	int r = ledger_open(&store, &rollback->where, &why);

	if (r != 0)
		return output_failed(&why);
	r = store_generation(store, rollback->generation, &rollback->row, &why);
	if (r == 1) {
		enum outcome outcome = unknown(rollback, store, args);

		store_close(store);
		return outcome;
	}
	if (r == 0)
		r = pc_document_parse(&rollback->document, rollback->row.yaml, strlen(rollback->row.yaml), &why);
	if (r == 0)
		r = history_now(&rollback->now, &rollback->where, store, &why);
	enum outcome outcome = r < 0 ? output_failed(&why) : rollback_check(&rollback->row, rollback->document, store);
	store_close(store);
	return outcome;
}

/* --- publishing -------------------------------------------------------------------------------------------------- */

static int open_writer(struct store **out, const struct rollback *rollback, struct pc_why *why)
{
	const struct where *where = &rollback->where;
	struct pc_why reason;
	int r = store_open(out, where->database, STORE_WRITE, NULL, &reason);

	if (r == -EBUSY && where->database_source == WHERE_HOST)
		return pc_why(why, r, "%s. Stop it (systemctl stop calibrd), roll back, start it again", reason.text);
	if (r == -EBUSY)
		return pc_why(why, r, "%s. End it, then roll back", reason.text);
	return r < 0 ? pc_why(why, r, "%s", reason.text) : 0;
}

/* As 0 and 1 of publish(). */
static int publish_again(struct rollback *rollback, struct pc_why *why)
{
	struct published as = {.calibration = rollback->row.calibration, .source = ROLLBACK_SOURCE};
	struct store *store = NULL;
	int r = open_writer(&store, rollback, why);

	if (r < 0)
		return r;
	memcpy(as.topology, rollback->row.topology, sizeof(as.topology));
	r = settle_publish(&rollback->config, store, &as, rollback->document, &rollback->result, why);
	store_close(store);
	return r;
}

static enum outcome roll_back(struct rollback *rollback)
{
	struct pc_why why;

	if (rollback->now.state == NOW_RECORDED && rollback->now.generation == rollback->generation)
		return DONE;
	int r = publish_again(rollback, &why);
	if (r < 0 && rollback->result.written)
		fprintf(stderr, "calibctl: %s holds the new policy already\n", rollback->result.path);
	rollback->done = r == 0;
	return r < 0 ? output_failed(&why) : DONE;
}

/* --- telling ----------------------------------------------------------------------------------------------------- */

static void print(struct rollback *rollback)
{
	const struct publish_result *result = &rollback->result;
	char *rest = NULL;

	for (char *line = strtok_r(rollback->result.warnings, "\n", &rest); line != NULL;
	     line = strtok_r(NULL, "\n", &rest))
		output_warning(line);
	if (rollback->done) {
		output_field("published", "generation %" PRIu64 " in %s: the policy of generation %" PRIu64 " again",
		             result->generation, result->path, rollback->generation);
		output_field("", "calibrd leaves it in force until it measures again (calibrd --force does so now)");
	} else if (result->generation > 0 && result->generation != rollback->generation) {
		output_field("nothing", "generation %" PRIu64 ", in force, is the same policy as generation %" PRIu64,
		             result->generation, rollback->generation);
	} else {
		output_field("nothing", "generation %" PRIu64 " is in force already", rollback->generation);
	}
}

static json_t *json_all(const struct rollback *rollback)
{
	const struct publish_result *result = &rollback->result;
	uint64_t now = result->generation > 0 ? result->generation : rollback->generation;

	return json_pack("{s:b, s:o, s:o, s:o, s:o}", "published", (int)rollback->done, "generation",
	                 output_json_bytes(now), "from", output_json_bytes(rollback->generation), "path",
	                 output_json_text(result->path[0] != '\0' ? result->path : rollback->where.policy), "warnings",
	                 output_json_text(result->warnings));
}

enum outcome verb_rollback(struct calibctl *ctl, struct args *args)
{
	static struct rollback rollback;
	struct pc_why why;
	enum outcome outcome = parse(args, ctl, &rollback.generation);

	if (outcome != DONE)
		return outcome;
	where_here(&rollback.where, ctl);
	outcome = target(&rollback, &why) < 0 ? output_failed(&why) : look_up(&rollback, args);
	if (outcome == DONE)
		outcome = roll_back(&rollback);
	if (outcome == DONE && ctl->json)
		outcome = output_json(json_all(&rollback), DONE);
	else if (outcome == DONE)
		print(&rollback);
	free(rollback.result.yaml);
	free(rollback.row.yaml);
	pc_document_free(rollback.document);
	return outcome;
}
