#include "calibctl/ledger.h"

#include <string.h>

/* Some of the store's reasons name the path, some do not. */
static int with_path(int r, const struct where *where, const struct pc_why *reason, struct pc_why *why)
{
	if (strstr(reason->text, where->database) != NULL)
		return pc_why(why, r, "%s", reason->text);
	return pc_why(why, r, "%s: %s", where->database, reason->text);
}

int ledger_open(struct store **out, const struct where *where, struct pc_why *why)
{
	struct pc_why reason = {""};

	if (where->database_source == WHERE_NOWHERE)
		return pc_why(why, 1, "no database: there is no %s", where->database);
	int r = store_open(out, where->database, STORE_READ, NULL, &reason);
	return r < 0 ? with_path(r, where, &reason, why) : 0;
}

static int load(struct store *store, const char *topology, struct calibration *out, struct dataset *data,
                struct pc_why *why)
{
	int r = store_latest(store, topology, out, why);

	if (r == 1)
		return pc_why(why, 1, "no finished calibration%s%s", topology == NULL ? "" : " of topology ",
		              topology == NULL ? "" : topology);
	if (r < 0 || data == NULL)
		return r;
	r = store_series(store, out->id, data, why);
	if (r < 0)
		store_calibration_free(out);
	return r;
}

int ledger_latest(const struct where *where, const char *topology, struct calibration *out, struct dataset *data,
                  struct pc_why *why)
{
	struct pc_why reason = {""};
	struct store *store = NULL;
	int r = ledger_open(&store, where, why);

	if (r != 0)
		return r;
	r = load(store, topology, out, data, &reason);
	store_close(store);
	return r != 0 ? with_path(r, where, &reason, why) : 0;
}
