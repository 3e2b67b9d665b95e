/* What stands against going back to a policy; see rollback_check.h. */
#include "calibctl/rollback_check.h"

#include <string.h>

#include "calibctl/ledger.h"
#include "calibctl/output.h"
#include "calibrd/rollback.h"
#include "calibrd/topology.h"

/* The library believes a policy that names the CPU it runs on, so one of several core types is enough. */
static bool is_for(const struct pc_document *document, const struct topology *topology)
{
	if (strcmp(document->arch, topology->arch) != 0)
		return false;
	for (size_t i = 0; i < document->cpu_count; i++)
		for (size_t j = 0; j < topology->core_count; j++)
			if (strcmp(document->cpus[i], topology->cores[j].signature) == 0)
				return true;
	return false;
}

static enum outcome refuse(const struct published *row, const char *reason, const char *detail)
{
	struct pc_why why;

	pc_why_say(&why, "generation %llu %s%s", (unsigned long long)row->generation, reason, detail);
	output_failed(&why);
	return PROBLEM;
}

static enum outcome check_host(const struct published *row, const struct pc_document *document)
{
	struct topology *topology = NULL;
	struct pc_why why;
	enum outcome outcome = DONE;

	if (topology_detect(&topology, &(struct topology_source){0}, &why) < 0)
		return output_failed(&why);
	if (strcmp(row->topology, topology->id) != 0 || strcmp(document->topology, topology->id) != 0) {
		pc_why_say(&why, "%s, this host is %s", row->topology, topology->id);
		outcome = refuse(row, "was made for topology ", why.text);
	} else if (!is_for(document, topology)) {
		outcome = refuse(row, "was made for another CPU: ", document->cpus[0]);
	}
	topology_free(topology);
	return outcome;
}

static enum outcome check_kernels(const struct published *row, const struct pc_document *document, struct store *store,
                                  const struct where *where)
{
	struct calibration known = {0};
	struct pc_why reason, why;
	enum outcome outcome = DONE;
	int r = store_latest(store, row->topology, &known, &reason);

	if (r < 0) {
		ledger_why(r, where, &reason, &why);
		return output_failed(&why);
	}
	uint32_t barred = r == 0 ? rollback_barred(document, &known, 0) : 0;
	for (unsigned k = 0; k < pc_kernel_count && outcome == DONE; k++)
		if ((barred >> k & 1) != 0)
			outcome = refuse(row, "chooses a kernel that has failed its trial on this host since: ",
			                 pc_kernels[k].name);
	store_calibration_free(&known);
	return outcome;
}

enum outcome rollback_check(const struct published *row, const struct pc_document *document, struct store *store,
                            const struct where *where)
{
	enum outcome outcome = check_host(row, document);

	return outcome == DONE ? check_kernels(row, document, store, where) : outcome;
}
