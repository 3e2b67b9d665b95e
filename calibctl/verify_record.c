/*
 * A verification in the database. Nothing of it is made, repaired or brought up to date here: that is calibrd's.
 */
#include <stdio.h>
#include <time.h>

#include "calibctl/history_now.h"
#include "calibctl/ledger.h"
#include "calibctl/verify.h"

/* What could not be read of the database is told when the outcome is to be recorded there. */
uint64_t verification_generation(const struct verification_request *request)
{
	const struct where *where = &request->subject.where;
	struct history_now now = {.state = NOW_NONE};
	struct store *store = NULL;
	struct pc_why why;
	int r = ledger_open(&store, where, &why);

	if (r == 0)
		r = history_now(&now, where, store, &why);
	store_close(store);
	/* The file may have been replaced since it was loaded. */
	bool same = r == 0 && now.state == NOW_RECORDED && now.generation == request->subject.document->generation;
	return same ? now.generation : 0;
}

static int save(struct store *store, const struct verification_request *request, const struct verify_report *report,
                int64_t *id, struct pc_why *why)
{
	struct verification row = {.generation = request->generation,
	                           .at = time(NULL), /* when it was done, whatever ages are counted from */
	                           .passed = report->passed,
	                           .against = request->against,
	                           .soft = request->topology->soft};
	struct verified series[VERIFY_SERIES];
	int r;

	snprintf(row.topology, sizeof(row.topology), "%s", request->topology->id);
	snprintf(row.effort, sizeof(row.effort), "%s", effort_limits[request->effort].name);
	for (size_t i = 0; i < report->count; i++)
		series[i] = report->series[i].told;
	r = store_verify(store, &row, series, report->count, why);
	*id = row.id;
	return r;
}

/* A reader first: a writer would create a database that is missing, set a damaged one aside, migrate an old one. */
static int open_sound(struct store **out, const struct where *where, struct pc_why *why)
{
	struct store *reader = NULL;
	int r = ledger_open(&reader, where, why);

	store_close(reader);
	return r == 0 ? store_open(out, where->database, STORE_WRITE, NULL, why) : r;
}

void verification_record(const struct verification_request *request, const struct verify_report *report,
                         struct verification_entry *out)
{
	struct store *store = NULL;
	int r = open_sound(&store, &request->subject.where, &out->reason);

	out->id = 0;
	if (r == 0)
		r = save(store, request, report, &out->id, &out->reason);
	if (r != 0)
		out->id = 0;
	store_close(store);
}
