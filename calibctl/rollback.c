/*
 * rollback: a generation of the past is published again, by calibrd where it holds the database, else as it would,
 * under its lock.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibctl/args.h"
#include "calibctl/client.h"
#include "calibctl/history_now.h"
#include "calibctl/ledger.h"
#include "calibctl/output.h"
#include "calibctl/rollback_check.h"
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
	bool done;    /* a new generation was published */
	bool asked;   /* of calibrd, over the bus */
	bool refused; /* by it */
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
	if (where_is_hosts(where->policy_source))
		path = SETTLE_POLICY;
	if (strlen(path) >= sizeof(rollback->config.policy))
		return pc_why(why, -ENAMETOOLONG, "--policy: the path is longer than %zu bytes",
		              sizeof(rollback->config.policy) - 1);
	strcpy(rollback->config.policy, path);
	return 0;
}

/* --- from the database ------------------------------------------------------------------------------------------- */

static int load(struct rollback *rollback, struct store *store, struct pc_why *why)
{
	const struct where *where = &rollback->where;
	struct pc_why reason;
	int r = store_generation(store, rollback->generation, &rollback->row, &reason);

	if (r == 1)
		return ledger_lacks(store, where, rollback->generation, why);
	if (r == 0)
		r = pc_document_parse(&rollback->document, rollback->row.yaml, strlen(rollback->row.yaml), &reason);
	if (r == 0)
		r = history_now(&rollback->now, where, store, &reason);
	return r < 0 ? ledger_why(r, where, &reason, why) : 0;
}

static enum outcome look_up(struct rollback *rollback, struct args *args)
{
	struct store *store = NULL;
	struct pc_why why;
	int r = ledger_open(&store, &rollback->where, &why);

	if (r != 0)
		return output_failed(&why);
	r = load(rollback, store, &why);
	enum outcome outcome = r > 0   ? args_misused(args, "%s", why.text)
	                       : r < 0 ? output_failed(&why)
	                               : rollback_check(&rollback->row, rollback->document, store, &rollback->where);
	store_close(store);
	return outcome;
}

/* --- publishing -------------------------------------------------------------------------------------------------- */

static int open_writer(struct store **out, const struct rollback *rollback, struct pc_why *why)
{
	const struct where *where = &rollback->where;
	struct pc_why reason;
	int r = store_open(out, where->database, STORE_WRITE, NULL, &reason);

	return r < 0 ? ledger_why(r, where, &reason, why) : 0;
}

/* calibrd's own files: what it holds is not to be ended for this. */
static bool is_calibrds(const struct where *where)
{
	return where->database_source == WHERE_HOST && where_is_hosts(where->policy_source);
}

/* As 0 and 1 of publish(); held: why the database cannot be written here. */
static int ask_calibrd(struct rollback *rollback, const struct pc_why *held, struct pc_why *why)
{
	struct publish_result *result = &rollback->result;
	struct client *client = NULL;
	struct client_view view;
	struct pc_why absent;
	int r = client_open(&client, &absent);

	if (r != 0)
		return pc_why(why, -EBUSY, "%s, and %s. End it (systemctl stop calibrd), then roll back", held->text,
		              absent.text);
	r = client_rollback(client, rollback->generation, &result->generation, why);
	if (r == 0 && client_view(client, &view, NULL) == 0)
		snprintf(result->path, sizeof(result->path), "%s", view.policy_path);
	client_close(client);
	rollback->asked = true;
	rollback->refused = r > 0;
	if (r != 0)
		return r < 0 ? r : -r;
	return result->generation == rollback->now.generation; /* it was in force already */
}

/* As 0 and 1 of publish(). */
static int publish_here(struct rollback *rollback, struct store *store, struct pc_why *why)
{
	struct published as = {.calibration = rollback->row.calibration, .source = ROLLBACK_SOURCE};
	struct pc_why reason = {""};

	memcpy(as.topology, rollback->row.topology, sizeof(as.topology));
	int r = settle_publish(&rollback->config, store, &as, rollback->document, &rollback->result, &reason);
	return r < 0 ? ledger_why_mixed(r, &rollback->where, &reason, why) : r;
}

/* Likewise. */
static int publish_again(struct rollback *rollback, struct pc_why *why)
{
	struct store *store = NULL;
	struct pc_why held;
	int r = open_writer(&store, rollback, &held);

	if (r == -EBUSY && is_calibrds(&rollback->where))
		return ask_calibrd(rollback, &held, why);
	if (r < 0)
		return pc_why(why, r, "%s%s", held.text, r == -EBUSY ? ". End it, then roll back" : "");
	r = publish_here(rollback, store, why);
	store_close(store);
	return r;
}

/* What happened before it failed: a file may have been kept beside already. */
static enum outcome failed(const struct rollback *rollback, const struct pc_why *why)
{
	const struct publish_result *result = &rollback->result;

	for (const char *line = result->warnings; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n')
		fprintf(stderr, "calibctl: warning: %.*s\n", (int)strcspn(line, "\n"), line);
	if (result->written)
		fprintf(stderr, "calibctl: %s holds the new policy already\n", result->path);
	output_failed(why);
	return rollback->refused ? PROBLEM : UNREADABLE;
}

static enum outcome roll_back(struct rollback *rollback)
{
	struct pc_why why;

	if (rollback->now.state == NOW_RECORDED && rollback->now.generation == rollback->generation)
		return DONE;
	int r = publish_again(rollback, &why);
	rollback->done = r == 0;
	return r < 0 ? failed(rollback, &why) : DONE;
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
		output_field("", "calibrd leaves it in force until it measures again (%s does so now)",
		             rollback->asked ? "calibctl calibrate" : "calibrd --force");
	} else if (result->generation > 0 && result->generation != rollback->generation) {
		output_field("nothing", "generation %" PRIu64 ", in force, is the same policy as generation %" PRIu64,
		             result->generation, rollback->generation);
	} else {
		output_field("nothing", "generation %" PRIu64 " is in force already", rollback->generation);
	}
}

static json_t *json_warnings(const char *lines)
{
	json_t *list = json_array();

	for (const char *line = lines; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n') {
		char one[sizeof(((struct publish_result *)NULL)->warnings)];

		snprintf(one, sizeof(one), "%.*s", (int)strcspn(line, "\n"), line);
		json_array_append_new(list, output_json_text(one));
	}
	return list;
}

static json_t *json_all(const struct rollback *rollback)
{
	const struct publish_result *result = &rollback->result;
	uint64_t now = result->generation > 0 ? result->generation : rollback->generation;

	return json_pack("{s:b, s:o, s:o, s:o, s:o}", "published", (int)rollback->done, "generation",
	                 output_json_bytes(now), "from", output_json_bytes(rollback->generation), "path",
	                 output_json_text(result->path[0] != '\0' ? result->path : rollback->where.policy), "warnings",
	                 json_warnings(result->warnings));
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
