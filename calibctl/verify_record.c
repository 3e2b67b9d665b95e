/*
 * A verification in the database. Nothing of it is made, repaired or brought up to date here: that is calibrd's.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibctl/ledger.h"
#include "calibctl/output.h"
#include "calibctl/verify.h"

static int save(struct store *store, const struct verification_request *request, const struct verify_report *report,
                int64_t *id, struct pc_why *why)
{
	struct verification row = {.generation = request->subject.document->generation,
	                           .at = output_now(),
	                           .passed = report->passed,
	                           .against = (char *)request->against};
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
