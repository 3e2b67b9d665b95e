/* The rollback that stands, and its pins; see rollback.h. */
#include "calibrd/rollback.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "calibrd/log.h"
#include "calibrd/pins.h"

/* What was published as restarts follows from what was before: the first that does not is somebody's wish. */
static uint64_t standing(const struct published *list, size_t count, const struct settlement *what)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(list[i].topology, what->topology->id) != 0 || strcmp(list[i].source, "restart") == 0)
			continue;
		/* A calibration may have ended within the second of the rollback: then it came before. */
		return strcmp(list[i].source, ROLLBACK_SOURCE) == 0 && what->calibration->finished <= list[i].at
		               ? list[i].generation
		               : 0;
	}
	return 0;
}

static int find(const struct settlement *what, uint64_t *generation, struct pc_why *why)
{
	struct published *list = NULL;
	size_t count = 0;
	int r = store_publications(what->store, SIZE_MAX, &list, &count, why);

	*generation = r == 0 ? standing(list, count, what) : 0;
	free(list);
	return r;
}

/* 0, 1 if its text is no policy any more. */
static int load(const struct settlement *what, uint64_t generation, struct pc_document **out, int64_t *calibration,
                struct pc_why *why)
{
	struct published row = {0};
	int r = store_generation(what->store, generation, &row, why);

	if (r == 0) {
		*calibration = row.calibration;
		r = pc_document_parse(out, row.yaml, strlen(row.yaml), why);
	}
	free(row.yaml);
	if (r == 0 || (r < 0 && r != -EUCLEAN && r != -EBADMSG && r != -EPROTONOSUPPORT))
		return r;
	log_warning("generation %llu, which was rolled back to, can't be read any more: decided anew",
	            (unsigned long long)generation);
	return 1;
}

uint32_t rollback_barred(const struct pc_document *document, const struct calibration *known, uint32_t exclude)
{
	return settle_named(document) & (settle_faulted(known) | exclude);
}

static bool is_barred(const struct settlement *what, const struct pc_document *document)
{
	uint32_t exclude = what->config->exclude, barred = rollback_barred(document, what->calibration, exclude);

	for (unsigned k = 0; k < pc_kernel_count; k++)
		if ((barred >> k & 1) != 0)
			log_warning("the policy that was rolled back to chooses %s, which %s: decided anew",
			            pc_kernels[k].name,
			            (exclude >> k & 1) != 0 ? "calibrd.yaml excludes" : "failed its trial");
	return barred != 0;
}

/* The document's own tables have no room for pins. */
static int copy_tables(const struct pc_document *from, struct pc_table *tables)
{
	for (size_t i = 0; i < from->table_count; i++) {
		tables[i] = from->tables[i];
		tables[i].rules = calloc(PC_RULES_MAX, sizeof(*tables[i].rules));
		if (tables[i].rules == NULL)
			return -ENOMEM;
		memcpy(tables[i].rules, from->tables[i].rules, tables[i].rule_count * sizeof(*tables[i].rules));
	}
	return 0;
}

static int publish_pinned(const struct settlement *what, const struct pc_document *from, int64_t calibration,
                          struct pc_why *why)
{
	struct pc_table tables[PC_TABLES_MAX] = {{0}};
	struct pc_document document = *from;
	int r = copy_tables(from, tables);

	for (size_t i = 0; i < document.table_count && r == 0; i++)
		r = pins_apply(&tables[i], what->config->pins, what->config->pin_count);
	if (r < 0)
		pc_why_say(why, r == -E2BIG ? "more pins than a policy can hold" : "no memory for the last policy");
	document.tables = tables;
	if (r == 0)
		r = settle_document(what, &document, calibration, why);
	for (size_t i = 0; i < PC_TABLES_MAX; i++)
		free(tables[i].rules);
	return r;
}

int rollback_stand(const struct settlement *what, struct pc_why *why)
{
	struct pc_document *document = NULL;
	uint64_t generation;
	int64_t calibration = 0;
	int r = find(what, &generation, why);

	if (r < 0 || generation == 0)
		return r < 0 ? r : 2;
	r = load(what, generation, &document, &calibration, why);
	if (r == 0 && is_barred(what, document))
		r = 1;
	if (r == 0)
		r = publish_pinned(what, document, calibration, why);
	else if (r == 1)
		r = 2;
	pc_document_free(document);
	return r;
}
