/*
 * A verification by the host's own calibrd, which then doesn't compete with it: asked for over the bus, its figures
 * read from the database.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calibctl/job.h"
#include "calibctl/ledger.h"
#include "calibctl/output.h"
#include "calibctl/signals.h"
#include "calibctl/steer.h"
#include "calibctl/verify.h"

enum { RECENT = 8 }; /* verifications that may have been recorded since */

/* --- whose it is ------------------------------------------------------------------------------------------------- */

static bool is_hosts_own(const struct where *where)
{
	return where->policy_source == WHERE_HOST && where_is_hosts(where->database_source);
}

bool verification_is_calibrds(const struct verification_request *request, const struct calibctl *ctl,
                              struct client **out)
{
	const struct where *where = &request->subject.where;
	struct client_view view;

	if (request->particular || ctl->policy != NULL || ctl->database != NULL || !is_hosts_own(where) ||
	    geteuid() != 0 || client_open(out, NULL) != 0)
		return false;
	if (client_view(*out, &view, NULL) == 0 && strcmp(view.policy_path, where->policy) == 0)
		return true;
	*out = client_close(*out);
	return false;
}

/* --- from the database ------------------------------------------------------------------------------------------- */

/* Another database than calibrd's has other verifications under the same numbers. */
static bool is_it(const struct verification *row, const struct client_end *end, const char *topology)
{
	return row->id == end->verification && strcmp(row->topology, topology) == 0 &&
	       row->passed == (strcmp(end->outcome, "passed") == 0);
}

/* 0, 1 it is not there, -errno. */
static int find(struct store *store, const struct client_end *end, const char *topology, struct pc_why *why)
{
	struct verification *list = NULL;
	size_t count = 0;
	int found = 1, r = store_verifications(store, RECENT, &list, &count, why);

	for (size_t i = 0; i < count; i++) {
		if (is_it(&list[i], end, topology))
			found = 0;
		store_verification_free(&list[i]);
	}
	free(list);
	if (r < 0)
		return r;
	return found == 0
	               ? 0
	               : pc_why(why, 1, "database: no verification %" PRId64 " of calibrd's: has it another database?",
	                        end->verification);
}

static int load(struct store *store, const struct verification_request *request, const struct client_end *end,
                struct verify_report *report, struct pc_why *why)
{
	struct verified *series = NULL;
	size_t count = 0;
	int r = find(store, end, request->topology->id, why);

	if (r == 0)
		r = store_verified(store, end->verification, &series, &count, why);
	if (r == 0)
		r = verification_restore(report, request->policy, series, count, why);
	free(series);
	return r;
}

static int read_figures(struct verification_request *request, const struct client_end *end,
                        struct verify_report *report, struct pc_why *why)
{
	struct where where;
	struct store *store = NULL;
	struct pc_why reason;

	/* A database that was not there before may be there by now. */
	where_here(&where, &(struct calibctl){0});
	int r = ledger_open(&store, &where, why);
	if (r != 0)
		return r;
	r = load(store, request, end, report, &reason);
	store_close(store);
	if (r != 0)
		ledger_why(r, &where, &reason, why);
	return r;
}

/* --- the whole --------------------------------------------------------------------------------------------------- */

/* The verdict stands, whether its figures can be read or not. */
static enum outcome conclude(struct verification_request *request, struct client *client, const struct calibctl *ctl,
                             struct followed *followed, struct verify_report *report, struct verification_entry *entry)
{
	const struct client_end *end = followed->end;
	bool judged = strcmp(end->outcome, "passed") == 0 || strcmp(end->outcome, "beyond") == 0;
	struct pc_why why;

	if (!judged)
		return steer_tell(client, ctl, followed);
	if (read_figures(request, end, report, &why) != 0) {
		fprintf(stderr, "calibctl: its figures cannot be read: %s\n", why.text);
		return steer_tell(client, ctl, followed);
	}
	request->by_calibrd = true;
	entry->id = end->verification;
	return DONE;
}

enum outcome verification_ask(struct verification_request *request, struct client *client, const struct calibctl *ctl,
                              struct verify_report *report, struct verification_entry *entry)
{
	struct followed followed;
	struct pc_why why;
	uint64_t job;

	signals_catch();
	int r = client_verify(client, effort_limits[request->effort].name, &job, &why);
	if (r != 0)
		return steer_failed(r, &why);
	enum outcome outcome = steer_follow(client, job, INFINITY, &followed);
	return outcome == DONE ? conclude(request, client, ctl, &followed, report, entry) : outcome;
}
