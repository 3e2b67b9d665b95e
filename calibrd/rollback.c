/* Wished for, and standing; see rollback.h. */
#include "calibrd/rollback.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "calibrd/export.h"
#include "calibrd/import.h"
#include "calibrd/log.h"
#include "calibrd/pins.h"

/* --- what may be in force ---------------------------------------------------------------------------------------- */

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

static uint32_t barred(const struct pc_document *document, const struct calibration *known, uint32_t exclude)
{
	return settle_named(document) & ((known != NULL ? settle_faulted(known) : 0) | exclude);
}

int rollback_allowed(const struct pc_document *document, const char *recorded, const struct topology *topology,
                     const struct calibration *known, uint32_t exclude, struct pc_why *why)
{
	const char *made_for = document->topology;

	if (recorded != NULL && strcmp(made_for, topology->id) == 0)
		made_for = recorded;
	if (strcmp(made_for, topology->id) != 0)
		return pc_why(why, -ESTALE, "was made for topology %s, this host is %s", made_for, topology->id);
	if (!is_for(document, topology))
		return pc_why(why, -ESTALE, "was made for another CPU: %s", document->cpus[0]);
	uint32_t kernels = barred(document, known, exclude);
	for (unsigned k = 0; k < pc_kernel_count; k++)
		if ((kernels >> k & 1) != 0)
			return (exclude >> k & 1) != 0
			               ? pc_why(why, -EPERM, "chooses %s, which calibrd.yaml excludes",
			                        pc_kernels[k].name)
			               : pc_why(why, -EPERM,
			                        "chooses a kernel that has failed its trial on this host since: %s",
			                        pc_kernels[k].name);
	return 0;
}

int rollback_check_here(const struct settlement *what, const struct pc_document *document, const char *recorded,
                        const char *subject, struct pc_why *why)
{
	struct calibration known = {0};
	struct pc_why reason = {""};
	int r = store_latest(what->store, what->topology->id, &known, why);

	if (r < 0)
		return r;
	r = rollback_allowed(document, recorded, what->topology, r == 0 ? &known : NULL, what->config->exclude,
	                     &reason);
	store_calibration_free(&known);
	return r < 0 ? pc_why(why, r, "%s %s", subject, reason.text) : 0;
}

/* --- pins over it ------------------------------------------------------------------------------------------------ */

struct pinned {
	struct pc_document document;
	struct pc_table tables[PC_TABLES_MAX]; /* the original's have no room for pins */
};

static void pinned_release(struct pinned *pinned)
{
	for (size_t i = 0; i < PC_TABLES_MAX; i++)
		free(pinned->tables[i].rules);
}

static void replace(struct pc_table *table, uint32_t kernels)
{
	for (size_t i = 0; i < table->rule_count; i++) {
		const struct pc_kernel *kernel = pc_kernel_find(table->rules[i].kernel);

		if (kernel != NULL && (kernels >> pc_kernel_index(kernel) & 1) != 0)
			table->rules[i] = (struct pc_rule){.from = table->rules[i].from, .kernel = "libc"};
	}
}

static int pin_table(struct pc_table *out, const struct pc_table *from, const struct config *config, uint32_t kernels)
{
	*out = *from;
	out->rules = calloc(PC_RULES_MAX, sizeof(*out->rules));
	if (out->rules == NULL)
		return -ENOMEM;
	memcpy(out->rules, from->rules, from->rule_count * sizeof(*out->rules));
	replace(out, kernels);
	return pins_apply(out, config->pins, config->pin_count);
}

/* kernels: bits of those that libc is to replace. For pinned_release() in any case. */
static int pin_all(struct pinned *out, const struct pc_document *from, const struct config *config, uint32_t kernels,
                   struct pc_why *why)
{
	int r = 0;

	*out = (struct pinned){.document = *from};
	out->document.tables = out->tables;
	for (size_t i = 0; i < from->table_count && r == 0; i++)
		r = pin_table(&out->tables[i], &from->tables[i], config, kernels);
	if (r < 0)
		pc_why_say(why, r == -E2BIG ? "more pins than a policy can hold" : "no memory for a policy");
	return r;
}

/* --- what stands ------------------------------------------------------------------------------------------------- */

static const char *wished(const struct published *row)
{
	return strcmp(row->source, IMPORT_SOURCE) == 0 ? "imported" : "rolled back to";
}

static bool is_wish(const struct published *row)
{
	return strcmp(row->source, ROLLBACK_SOURCE) == 0 || strcmp(row->source, IMPORT_SOURCE) == 0;
}

/* What was published as restarts follows from what was before: the first that does not is what counts. */
static const struct published *standing(const struct published *list, size_t count, const struct settlement *what)
{
	for (size_t i = 0; i < count; i++) {
		if (strcmp(list[i].topology, what->topology->id) != 0 || strcmp(list[i].source, "restart") == 0)
			continue;
		return is_wish(&list[i]) && (what->calibration == NULL || what->calibration->id <= list[i].newest)
		               ? &list[i]
		               : NULL;
	}
	return NULL;
}

/* 0 found, 1 none stands. row's yaml is not read. */
static int find(const struct settlement *what, struct published *row, struct pc_why *why)
{
	struct published *list = NULL;
	size_t count = 0;
	int r = store_publications(what->store, SIZE_MAX, &list, &count, why);

	if (r < 0)
		return r;
	const struct published *found = standing(list, count, what);
	if (found != NULL)
		*row = *found;
	free(list);
	return found != NULL ? 0 : 1;
}

/* 0, 1 if its text is no policy any more. */
static int load(const struct settlement *what, const struct published *found, struct pc_document **out,
                struct pc_why *why)
{
	struct published row = {0};
	int r = store_generation(what->store, found->generation, &row, why);

	if (r == 0)
		r = pc_document_parse(out, row.yaml, strlen(row.yaml), why);
	free(row.yaml);
	if (r == 0 || (r < 0 && r != -EUCLEAN && r != -EBADMSG && r != -EPROTONOSUPPORT))
		return r;
	log_warning("generation %" PRIu64 ", which was %s, can't be read any more: decided anew", found->generation,
	            wished(found));
	return 1;
}

static uint32_t say_barred(const struct settlement *what, const struct published *row,
                           const struct pc_document *document)
{
	uint32_t exclude = what->config->exclude, kernels = barred(document, what->calibration, exclude);

	for (unsigned k = 0; k < pc_kernel_count; k++)
		if ((kernels >> k & 1) != 0)
			log_warning("the policy that was %s chooses %s, which %s: %s", wished(row), pc_kernels[k].name,
			            (exclude >> k & 1) != 0 ? "calibrd.yaml excludes" : "failed its trial",
			            what->calibration != NULL ? "decided anew" : "libc instead");
	return kernels;
}

static int stand(const struct settlement *what, const struct published *row, const struct pc_document *document,
                 struct pc_why *why)
{
	struct pinned pinned;
	uint32_t kernels = say_barred(what, row, document);

	if (kernels != 0 && what->calibration != NULL)
		return 2;
	int r = pin_all(&pinned, document, what->config, kernels, why);
	if (r == 0)
		r = settle_document(what, &pinned.document, row->calibration, why);
	pinned_release(&pinned);
	return r;
}

int rollback_stand(const struct settlement *what, struct pc_why *why)
{
	struct pc_document *document = NULL;
	struct published row = {0};
	int r = find(what, &row, why);

	if (r == 0)
		r = load(what, &row, &document, why);
	if (r != 0)
		return r < 0 ? r : 2;
	r = stand(what, &row, document, why);
	pc_document_free(document);
	return r;
}

/* --- wishing ----------------------------------------------------------------------------------------------------- */

/* As if it had been published, for rollback_stand() to find: the pins are no part of the wish. */
static int record(const struct settlement *what, const struct pc_document *document, int64_t calibration,
                  uint64_t *generation, struct pc_why *why)
{
	struct published *newest = NULL, row = {.calibration = calibration, .at = time(NULL)};
	struct pc_document numbered = *document;
	size_t count = 0, len;
	int r = store_publications(what->store, 1, &newest, &count, why);

	if (r < 0)
		return r;
	row.generation = count > 0 ? newest->generation : 0;
	free(newest);
	if (row.generation >= INT64_MAX)
		return pc_why(why, -EOVERFLOW, "no generation is left after %" PRIu64, row.generation);
	numbered.generation = ++row.generation;
	snprintf(row.source, sizeof(row.source), "%s", what->source);
	snprintf(row.topology, sizeof(row.topology), "%s", what->topology->id);
	r = export_yaml(&numbered, &row.yaml, &len, why);
	if (r == 0)
		r = store_publish(what->store, &row, why);
	free(row.yaml);
	*generation = row.generation;
	return r;
}

/* 1: it is what was published last. */
static int is_last(const struct settlement *what, const struct pc_document *document, struct pc_why *why)
{
	struct pc_document *last = NULL;
	int r = settle_last(what->store, what->topology->id, &last, why);

	if (r == 0 && last != NULL)
		r = export_same(last, document);
	pc_document_free(last);
	return r;
}

static int publish_pinned(const struct settlement *what, const struct pc_document *document,
                          const struct pc_document *pinned, int64_t calibration, struct pc_why *why)
{
	struct settlement as = *what;
	struct pc_why trouble;
	uint64_t wish = 0; /* its number, once it is recorded */
	int r = is_last(what, pinned, why);

	if (r == 0)
		r = record(what, document, calibration, &wish, why);
	if (r < 0)
		return r;
	as.source = "restart";
	r = settle_document(&as, pinned, calibration, why);
	/* What was refused must not come by itself later. */
	if (r < 0 && wish > 0 && store_retract(what->store, wish, &trouble) < 0)
		log_error("%s", trouble.text);
	return r;
}

int rollback_publish(const struct settlement *what, const struct pc_document *document, int64_t calibration,
                     uint64_t *published, struct pc_why *why)
{
	struct settlement as = *what;
	struct pinned pinned;
	int r = pin_all(&pinned, document, what->config, 0, why);

	as.generation = published;
	if (r == 0 && export_same(document, &pinned.document))
		r = settle_document(&as, document, calibration, why);
	else if (r == 0)
		r = publish_pinned(&as, document, &pinned.document, calibration, why);
	pinned_release(&pinned);
	return r;
}

static int wanted(const struct settlement *what, uint64_t generation, struct published *row, struct pc_document **out,
                  struct pc_why *why)
{
	struct pc_why reason = {""};
	char subject[40];
	int r = generation == 0 || generation > INT64_MAX ? 1 : store_generation(what->store, generation, row, why);

	if (r != 0)
		return r < 0 ? r : pc_why(why, -ENOENT, "generation %" PRIu64 " was never published", generation);
	r = pc_document_parse(out, row->yaml, strlen(row->yaml), &reason);
	if (r < 0)
		return pc_why(why, r, "generation %" PRIu64 ": %s", generation, reason.text);
	snprintf(subject, sizeof(subject), "generation %" PRIu64, generation);
	return rollback_check_here(what, *out, row->topology, subject, why);
}

int rollback_to(const struct settlement *what, uint64_t generation, uint64_t *published, struct pc_why *why)
{
	struct settlement as = *what;
	struct pc_document *document = NULL;
	struct published row = {0};
	int r = wanted(what, generation, &row, &document, why);

	as.source = ROLLBACK_SOURCE;
	if (r == 0)
		r = rollback_publish(&as, document, row.calibration, published, why);
	pc_document_free(document);
	free(row.yaml);
	return r;
}
