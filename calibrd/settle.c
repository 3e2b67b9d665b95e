/* Decide, assemble, publish, record; see settle.h. */
#include "calibrd/settle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "calibrd/assemble.h"
#include "calibrd/log.h"
#include "calibrd/pool.h"
#include "calibrd/publish.h"
#include "calibrd/publish_file.h"

/* --- what may be chosen ------------------------------------------------------------------------------------------ */

static bool names(const char *list, const char *name)
{
	size_t length = strlen(name);

	for (const char *at = list; at != NULL && (at = strstr(at, name)) != NULL; at += length)
		if ((at == list || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0'))
			return true;
	return false;
}

uint32_t settle_faulted(const struct calibration *calibration)
{
	uint32_t kernels = 0;

	for (unsigned k = 1; k < pc_kernel_count; k++)
		if (names(calibration->faulted, pc_kernels[k].name))
			kernels |= 1u << k;
	return kernels;
}

void settle_name_faulted(uint32_t faulted, char text[PC_KERNEL_MAX * PC_KERNEL_NAME])
{
	size_t at = 0;

	text[0] = '\0';
	for (unsigned k = 0; k < pc_kernel_count; k++)
		if ((faulted >> k & 1) != 0)
			at += (size_t)snprintf(text + at, PC_KERNEL_MAX * PC_KERNEL_NAME - at, "%s%s",
			                       at > 0 ? " " : "", pc_kernels[k].name);
}

int settle_bar(struct store *store, const char *topology, uint32_t faulted, struct pc_why *why)
{
	char names[PC_KERNEL_MAX * PC_KERNEL_NAME];
	struct calibration known = {0};
	int r = store_latest(store, topology, &known, why);

	if (r == 0) {
		settle_name_faulted(settle_faulted(&known) | faulted, names);
		r = store_fault(store, known.id, names, why);
	}
	store_calibration_free(&known);
	return r < 0 ? r : 0;
}

uint32_t settle_kernels(const struct dataset *data, const struct calibration *calibration, const struct config *config)
{
	uint32_t kernels = 1;

	for (size_t i = 0; i < data->count; i++)
		kernels |= 1u << data->series[i].key.kernel;
	return kernels & ~settle_faulted(calibration) & ~config->exclude;
}

uint32_t settle_named(const struct pc_document *document)
{
	uint32_t kernels = 0;

	for (size_t t = 0; t < document->table_count; t++)
		for (size_t i = 0; i < document->tables[t].rule_count; i++) {
			const struct pc_kernel *kernel = pc_kernel_find(document->tables[t].rules[i].kernel);

			if (kernel != NULL)
				kernels |= 1u << pc_kernel_index(kernel);
		}
	return kernels;
}

uint32_t settle_unmeasured(const struct dataset *data, const struct calibration *calibration,
                           const struct config *config)
{
	uint32_t missing = 0;

	for (unsigned k = 1; k < pc_kernel_count; k++)
		if (pc_kernel_runs(&pc_kernels[k]))
			missing |= 1u << k;
	return missing & ~settle_faulted(calibration) & ~settle_kernels(data, calibration, config) & ~config->exclude;
}

bool settle_has_rounds(const struct dataset *data)
{
	for (size_t i = 0; i < data->count; i++)
		if (data->series[i].count > 0)
			return true;
	return false;
}

/* --- deciding ---------------------------------------------------------------------------------------------------- */

/* calibrations: that the data come from. */
static int decide_by(const struct config *config, const struct dataset *data, unsigned calibrations,
                     const struct calibration *calibration, const struct pc_document *old, struct decision *decision,
                     struct pc_why *why)
{
	struct decide_input input = {
		.data = data,
		.calibrations = calibrations,
		.kernels = settle_kernels(data, calibration, config),
		.scrub_weight = config->scrub_weight,
		.old = old,
		.pins = config->pins,
		.pin_count = config->pin_count,
	};
	int r = decide(&input, decision);

	return r == 0 ? 0 : pc_why(why, r, r == -E2BIG ? "more pins than a policy can hold" : "no memory to decide");
}

int settle_probe(const struct config *config, const struct dataset *data, const struct probe_set *probes,
                 struct calibration *calibration, struct pc_why *why)
{
	struct decision decision = {0};
	struct probe_fit fit;
	int r = decide_by(config, data, 1, calibration, NULL, &decision, why);

	if (r < 0)
		return r;
	probe_fit(probes, data, &decision, calibration->knee_bytes, &fit);
	decision_free(&decision);
	log_info("probe: %s%s", fit.from > 0 ? "" : "none: ", fit.reason);
	calibration->probe_from = fit.from;
	calibration->probe_lines = fit.from > 0 ? fit.lines : 0;
	calibration->probe_slow_ns = fit.from > 0 ? fit.slow_ns : 0;
	return 0;
}

/* --- publishing -------------------------------------------------------------------------------------------------- */

static char *recorded(void *record, uint64_t generation)
{
	struct published published = {0};
	struct pc_why why;

	if (record == NULL) /* the database can't be read: then nobody knows */
		return NULL;
	if (store_generation(record, generation, &published, &why) < 0)
		log_warning("%s", why.text);
	return published.yaml;
}

static struct publish_target target(const struct config *config, struct store *store)
{
	bool installed = strcmp(config->policy, SETTLE_POLICY) == 0;

	return (struct publish_target){
		.path = config->policy,
		.fallback = installed ? SETTLE_FALLBACK : NULL,
		.recorded = recorded,
		.record = store,
	};
}

/* A folder that still can't be written is said once; what is kept beside has a new name each time. */
static void log_warnings(const char *lines)
{
	static char said[sizeof(((struct publish_result *)NULL)->warnings)];

	if (strcmp(said, lines) == 0)
		return;
	snprintf(said, sizeof(said), "%s", lines);
	for (size_t length; *lines != '\0'; lines += length + (lines[length] == '\n')) {
		length = strcspn(lines, "\n");
		log_warning("%.*s", (int)length, lines);
	}
}

/* The newest generation recorded, whatever its topology; 0 if there is none. Its text may be damaged. */
static int newest_generation(struct store *store, uint64_t *out, struct pc_why *why)
{
	struct published *newest = NULL;
	size_t count = 0;
	int r = store_publications(store, 1, &newest, &count, why);

	*out = r == 0 && count > 0 ? newest->generation : 0;
	free(newest);
	return r < 0 ? r : 0;
}

int settle_publish(const struct config *config, struct store *store, const struct published *as,
                   const struct pc_document *document, struct publish_result *result, struct pc_why *why)
{
	struct publish_request request = {.target = target(config, store), .document = document};
	struct published row = *as;
	int r, e = 0;

	*result = (struct publish_result){0};
	r = newest_generation(store, &request.database_generation, why);
	if (r < 0)
		return r;
	r = publish(&request, result, why);
	if (result->written || (r == 1 && result->generation > request.database_generation)) {
		row.generation = result->generation;
		row.at = time(NULL);
		row.yaml = result->yaml;
		e = store_publish(store, &row, why);
	}
	return e < 0 ? e : r;
}

/* That it is still there where it was is no news. */
static void tell(int r, const struct publish_result *result, const char *before)
{
	unsigned long long generation = result->generation;

	if (r == 0)
		log_event(LOG_POLICY_PUBLISHED, LOG_LEVEL_NOTICE, "published generation %llu in %s", generation,
		          result->path);
	else if (strcmp(result->path, before) != 0)
		log_info("generation %llu in %s is up to date", generation, result->path);
}

int settle_document(const struct settlement *what, const struct pc_document *document, int64_t calibration,
                    struct pc_why *why)
{
	struct published as = {.calibration = calibration};
	struct publish_result result;

	snprintf(as.source, sizeof(as.source), "%s", what->source);
	snprintf(as.topology, sizeof(as.topology), "%s", what->topology->id);
	int r = settle_publish(what->config, what->store, &as, document, &result, why);
	log_warnings(result.warnings);
	if (r >= 0) {
		tell(r, &result, what->where);
		memcpy(what->where, result.path, sizeof(result.path));
		if (what->generation != NULL)
			*what->generation = result.generation;
	}
	free(result.yaml);
	return r;
}

/* A fault of ours, caught: better told than published. */
static void log_refused(const struct decision *decision)
{
	for (size_t i = 0; i < decision->table_count; i++)
		if (decision->refused[i])
			log_error("%s, %s, %u threads: rules against a measured loss were not published; please report "
			          "it",
			          pc_intent_name(decision->tables[i].intent), pc_prior_name(decision->tables[i].prior),
			          decision->tables[i].threads);
}

/* From the epochs of the last calibrations together. */
static int decide_pooled(const struct settlement *what, struct decision *decision, struct pc_why *why)
{
	struct dataset pool;
	unsigned used;
	int r = pool_collect(&pool, what->store, what->calibration, what->data, &used, why);

	if (r < 0)
		return r;
	if (used > 1 && strcmp(what->source, "calibration") == 0)
		log_info("deciding by the epochs of the last %u calibrations", used);
	r = decide_by(what->config, &pool, used, what->calibration, what->old, decision, why);
	dataset_clear(&pool);
	return r;
}

static int settle_anew(const struct settlement *what, struct pc_why *why)
{
	const struct calibration *calibration = what->calibration;
	struct probe_fit probe = {.from = calibration->probe_from,
	                          .lines = calibration->probe_lines,
	                          .slow_ns = calibration->probe_slow_ns};
	struct decision decision = {0};
	struct pc_document document;
	int r = decide_pooled(what, &decision, why);

	if (r < 0)
		return r;
	log_refused(&decision);
	assemble(&(struct assembly){.topology = what->topology,
	                            .decision = &decision,
	                            .probe = &probe,
	                            .quality = calibration->quality,
	                            .knee_bytes = calibration->knee_bytes,
	                            .written = (time_t)calibration->finished},
	         &document);
	r = document.table_count > 0 ? settle_document(what, &document, calibration->id, why)
	                             : pc_why(why, -ENODATA, "too little was measured undisturbed to decide anything");
	decision_free(&decision);
	return r;
}

int settle(const struct settlement *what, struct pc_why *why)
{
	if (what->data != NULL && settle_has_rounds(what->data))
		return settle_anew(what, why);
	if (what->old != NULL)
		return settle_document(what, what->old, what->calibration->id, why);
	return pc_why(why, -ENODATA, "the samples of calibration %lld are no longer kept",
	              (long long)what->calibration->id);
}

int settle_check(const struct config *config, struct pc_why *why)
{
	char folder[PUBLISH_PATH], *slash;
	struct stat status;
	int r = publish_file_resolve(folder, config->policy, why);

	if (r == 0 && stat(folder, &status) == 0 && !S_ISREG(status.st_mode))
		r = pc_why(why, -EBADMSG, "%s: not a regular file", folder);
	if (r < 0 || strcmp(config->policy, SETTLE_POLICY) == 0) /* its folder has a fallback */
		return r;
	slash = strrchr(folder, '/');
	if (slash == NULL)
		strcpy(folder, ".");
	else
		slash[slash == folder] = '\0';
	if (faccessat(AT_FDCWD, folder, W_OK | X_OK, AT_EACCESS) < 0)
		return pc_why(why, -errno, "%s: %s", folder, strerror(errno));
	return 0;
}

int settle_last(struct store *store, const char *topology, struct pc_document **out, struct pc_why *why)
{
	struct published last = {0};
	int r = store_published(store, topology, &last, why);

	*out = NULL;
	if (r == -EUCLEAN) {
		log_warning("%s", why->text);
		return 0;
	}
	if (r == 0 && pc_document_parse(out, last.yaml, strlen(last.yaml), NULL) == -ENOMEM)
		r = pc_why(why, -ENOMEM, "no memory for the last policy");
	free(last.yaml);
	return r < 0 ? r : 0;
}

int settle_withdraw(const struct config *config, struct store *store, const char *topology, struct pc_why *why)
{
	struct publish_target where = target(config, store);
	struct publish_result result = {0};
	int r = publish_withdraw(&where, topology, &result, why);

	if (result.warnings[0] != '\0')
		log_warnings(result.warnings);
	if (r == 0)
		log_event(LOG_POLICY_WITHDRAWN, LOG_LEVEL_NOTICE, "withdrew %s: it was made for another topology",
		          result.path);
	free(result.yaml);
	return r;
}
