/* What stands against going back to a policy; see rollback_check.h. */
#include "calibctl/rollback_check.h"

#include <inttypes.h>

#include "calibctl/ledger.h"
#include "calibctl/output.h"
#include "calibrd/rollback.h"
#include "calibrd/topology.h"

/* What calibrd.yaml excludes is the daemon's to know: it decides anew where a rollback brings that back. */
static enum outcome check_here(const struct published *row, const struct pc_document *document, struct store *store,
                               const struct topology *topology, const struct where *where)
{
	struct calibration known = {0};
	struct pc_why reason, why;
	int r = store_latest(store, topology->id, &known, &reason);

	if (r < 0) {
		ledger_why(r, where, &reason, &why);
		return output_failed(&why);
	}
	r = rollback_allowed(document, row->topology, topology, r == 0 ? &known : NULL, 0, &reason);
	store_calibration_free(&known);
	if (r == 0)
		return DONE;
	pc_why_say(&why, "generation %" PRIu64 " %s", row->generation, reason.text);
	output_failed(&why);
	return PROBLEM;
}

enum outcome rollback_check(const struct published *row, const struct pc_document *document, struct store *store,
                            const struct where *where)
{
	struct topology *topology = NULL;
	struct pc_why why;

	if (topology_detect(&topology, &(struct topology_source){0}, &why) < 0)
		return output_failed(&why);
	enum outcome outcome = check_here(row, document, store, topology, where);
	topology_free(topology);
	return outcome;
}
