/*
 * history: what was measured, published and verified, and when. Reads the database briefly.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibctl/args.h"
#include "calibctl/history_line.h"
#include "calibctl/ledger.h"
#include "calibctl/output.h"
#include "calibctl/words.h"

/* --- reading ----------------------------------------------------------------------------------------------------- */

static int read_verifications(struct history *out, struct store *store, size_t most, struct pc_why *why)
{
	struct verification *list = NULL;
	size_t count = 0;
	int r = store_verifications(store, most, &list, &count, why);

	if (r == 0 && (out->verifications = calloc(count + 1, sizeof(*out->verifications))) == NULL)
		r = pc_why(why, -ENOMEM, "out of memory");
	for (size_t i = 0; i < count; i++) {
		struct verified *series = NULL;
		size_t series_count = 0;

		if (r == 0)
			r = store_verified(store, list[i].id, &series, &series_count, why);
		if (r == 0) {
			struct history_verification *one = &out->verifications[out->verification_count++];

			one->verification = list[i];
			history_sum_up(one, series, series_count);
		} else {
			store_verification_free(&list[i]);
		}
		free(series);
	}
	free(list);
	return r;
}

static int read_all(struct history *out, const struct where *where, struct store *store, size_t most,
                    struct pc_why *why)
{
	int r = store_calibrations(store, most, &out->calibrations, &out->calibration_count, why);

	if (r == 0)
		r = store_publications(store, most, &out->published, &out->published_count, why);
	if (r == 0)
		r = read_verifications(out, store, most, why);
	if (r == 0)
		r = history_now(&out->now, where, store, why);
	if (r == 0 && history_arrange(out, most) < 0)
		r = pc_why(why, -ENOMEM, "out of memory");
	return r;
}

/* --- for people -------------------------------------------------------------------------------------------------- */

/* The day stands before the first event of a day. */
static void print_events(const struct history *history)
{
	char before[WORDS_SHORT] = "", when[WORDS_SHORT], text[HISTORY_WORDS];

	for (size_t i = 0; i < history->count; i++) {
		const struct history_event *event = &history->events[i];

		words_time(event->at, when);
		history_words(history, event, text);
		char *clock = strchr(when, ' ');
		if (clock != NULL)
			*clock++ = '\0';
		output_field(strcmp(when, before) == 0 ? "" : when, "%.8s  %s", clock != NULL ? clock : "", text);
		strcpy(before, when);
	}
}

static void print(const struct history *history, const struct where *where)
{
	char now[HISTORY_NOW_WORDS];

	history_now_words(&history->now, now);
	output_field("database", "%s", where->database);
	output_field("in force", "%s (%s)", now, where->policy);
	if (history->topology != NULL)
		output_field("topology", "%s, where nothing else is said; times are UTC", history->topology);
	putchar('\n');
	if (history->count == 0)
		output_field("", "nothing was measured or published yet");
	print_events(history);
}

/* --- for programs ------------------------------------------------------------------------------------------------ */

static json_t *json_all(const struct history *history, const struct where *where)
{
	json_t *events = json_array();
	bool known = history->now.generation > 0;

	for (size_t i = 0; i < history->count; i++)
		json_array_append_new(events, history_json(history, &history->events[i]));
	return json_pack("{s:o, s:{s:o, s:s, s:o}, s:o, s:o}", "database", output_json_text(where->database), "policy",
	                 "path", output_json_text(where->policy), "state", history_now_name(history->now.state),
	                 "generation", known ? output_json_bytes(history->now.generation) : json_null(), "topology",
	                 output_json_text(history->topology), "events", events);
}

/* ----------------------------------------------------------------------------------------------------------------- */

static enum outcome parse(struct args *args, struct calibctl *ctl, size_t *most)
{
	const char *text = NULL;
	const struct arg_option options[] = {{"-n", &text, NULL}, {0}};
	struct arg_words none = {0};
	char *end;

	if (args_parse(args, ctl, options, &none) != DONE)
		return USAGE;
	*most = SIZE_MAX;
	if (text == NULL)
		return DONE;
	errno = 0;
	*most = strtoul(text, &end, 10);
	if (text[strspn(text, "0123456789")] != '\0' || errno != 0 || *most == 0)
		return args_misused(args, "-n '%s' is no number from 1 up", text);
	return DONE;
}

enum outcome verb_history(struct calibctl *ctl, struct args *args)
{
	static struct where where;
	struct history history = {0};
	struct store *store = NULL;
	struct pc_why why, reason;
	size_t most;

	if (parse(args, ctl, &most) != DONE)
		return USAGE;
	where_here(&where, ctl);
	int r = ledger_open(&store, &where, &why);
	if (r == 0 && (r = read_all(&history, &where, store, most, &reason)) < 0)
		ledger_why(r, &where, &reason, &why);
	store_close(store);
	enum outcome outcome = DONE;
	if (r != 0)
		outcome = output_failed(&why);
	else if (ctl->json)
		outcome = output_json(json_all(&history, &where), DONE);
	else
		print(&history, &where);
	history_release(&history);
	return outcome;
}
