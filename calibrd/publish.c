/* What is there, what is to be there, and which of two places it goes to; see publish.h. */
#include "calibrd/publish.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrd/export.h"
#include "calibrd/publish_file.h"
#include "libpolicy/file.h"

/* A number above it was written by hand, and counting on from there could leave no numbers. */
static const uint64_t believable_generation = 1000000000000000;

/* What a path holds now. */
struct place {
	char path[PUBLISH_PATH]; /* where links lead */
	bool exists, edited;
	struct pc_document *document; /* NULL: no policy */
	char *text;
	size_t len;
};

static void warn(struct publish_result *result, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void warn(struct publish_result *result, const char *format, ...)
{
	size_t len = strlen(result->warnings);
	va_list arguments;

	if (len > 0 && len + 1 < sizeof(result->warnings))
		result->warnings[len++] = '\n';
	va_start(arguments, format);
	vsnprintf(result->warnings + len, sizeof(result->warnings) - len, format, arguments);
	va_end(arguments);
}

/* --- what is there ----------------------------------------------------------------------------------------------- */

static bool was_published(const struct publish_target *target, const struct place *place)
{
	if (place->document == NULL || target->recorded == NULL)
		return false;
	char *text = target->recorded(target->record, place->document->generation);
	bool same = text != NULL && strlen(text) == place->len && memcmp(text, place->text, place->len) == 0;
	free(text);
	return same;
}

/* EACCES is left to whoever writes: it may be the folder's. */
static int read_place(struct place *place, struct pc_why *why)
{
	struct pc_why reason = {""};
	int r = pc_file_read(place->path, PC_DOCUMENT_MAX_BYTES, &place->text, &place->len, &reason);

	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	place->exists = true;
	if (r == -EFBIG || r == -EACCES)
		return 0;
	if (r < 0)
		return pc_why(why, r, "%s: %.120s", place->path, reason.text);
	r = pc_document_parse(&place->document, place->text, place->len, NULL);
	return r == -ENOMEM ? pc_why(why, r, "out of memory") : 0;
}

static int look(struct place *place, const char *path, const struct publish_target *target, struct pc_why *why)
{
	int r = publish_file_resolve(place->path, path, why);

	if (r == 0)
		r = read_place(place, why);
	if (r == 0)
		place->edited = place->exists && !was_published(target, place);
	return r;
}

static void place_release(struct place *place)
{
	pc_document_free(place->document);
	free(place->text);
}

static uint64_t generation_of(const struct place *place)
{
	if (place->document == NULL || place->document->generation > believable_generation)
		return 0;
	return place->document->generation;
}

static bool holds(const struct place *place, const struct pc_document *document)
{
	return place->document != NULL && place->document->generation <= believable_generation &&
	       export_same(place->document, document);
}

/* --- changing it ------------------------------------------------------------------------------------------------- */

static int keep_if_edited(const struct place *place, uint64_t otherwise, struct publish_result *result, bool *folder,
                          struct pc_why *why)
{
	char kept[PUBLISH_PATH];

	if (!place->edited)
		return 0;
	uint64_t generation = place->document == NULL ? otherwise : place->document->generation;
	int r = publish_file_keep(place->path, generation, kept, folder, why);
	if (r < 0)
		return r;
	result->edited_kept = true;
	warn(result, "%.450s was not what calibrd had published: kept as %.450s", place->path, kept);
	return 0;
}

static int put(const struct place *place, const struct publish_request *request, struct publish_result *result,
               bool *folder, struct pc_why *why)
{
	publish_file_clean(place->path);
	int r = keep_if_edited(place, request->database_generation, result, folder, why);
	if (r == 0)
		r = publish_file_replace(place->path, result->yaml, strlen(result->yaml), folder, &result->written,
		                         why);
	if (r == 0 || result->written)
		snprintf(result->path, sizeof(result->path), "%s", place->path);
	return r;
}

/* Readers look at the fallback first: left there it would hide what follows. */
static int take_away(const struct place *place, uint64_t otherwise, struct publish_result *result, struct pc_why *why)
{
	bool folder = false;

	if (!place->exists)
		return 0;
	int r = keep_if_edited(place, otherwise, result, &folder, why);
	return r < 0 ? r : publish_file_remove(place->path, why);
}

/* Nothing to write: what the place holds is what counts. */
static void adopt(struct place *place, struct publish_result *result)
{
	free(result->yaml);
	result->yaml = strndup(place->text, place->len);
	result->generation = place->document->generation;
	snprintf(result->path, sizeof(result->path), "%s", place->path);
}

static int publish_fallback(const struct publish_request *request, struct place *spare, struct publish_result *result,
                            struct pc_why *why)
{
	bool folder = false;

	result->used_fallback = true;
	if (holds(spare, request->document)) {
		adopt(spare, result);
		return result->yaml == NULL ? pc_why(why, -ENOMEM, "out of memory") : 1;
	}
	int r = publish_file_make_folder(spare->path, why);
	return r < 0 ? r : put(spare, request, result, &folder, why);
}

static int publish_main(const struct publish_request *request, struct place *place, struct place *spare,
                        struct publish_result *result, struct pc_why *why)
{
	bool folder = false;
	struct pc_why reason = {""};
	int r = put(place, request, result, &folder, &reason);

	if (r == 0)
		return take_away(spare, request->database_generation, result, why);
	if (!folder || request->target.fallback == NULL)
		return pc_why(why, r, "%s", reason.text);
	r = publish_fallback(request, spare, result, why);
	if (r >= 0)
		warn(result, "%.200s: published as %.450s", reason.text, result->path);
	return r;
}

/* The next generation, and the document as that one in result->yaml. */
static int prepare(const struct publish_request *request, const struct place *place, const struct place *spare,
                   struct publish_result *result, struct pc_why *why)
{
	struct pc_document document = *request->document;
	uint64_t newest = request->database_generation;
	size_t len;

	if (generation_of(place) > newest)
		newest = generation_of(place);
	if (generation_of(spare) > newest)
		newest = generation_of(spare);
	if (newest >= INT64_MAX) /* SQLite's largest integer */
		return pc_why(why, -EOVERFLOW, "no generation is left after %llu", (unsigned long long)newest);
	document.generation = result->generation = newest + 1;
	return export_yaml(&document, &result->yaml, &len, why);
}

/* In force already: the same content where readers end up, or would if the fallback's older copy were gone. */
static bool is_published(const struct publish_request *request, const struct place *place, const struct place *spare)
{
	return holds(place, request->document) && (!spare->exists || generation_of(place) >= generation_of(spare));
}

static int publish_between(const struct publish_request *request, struct place *place, struct place *spare,
                           struct publish_result *result, struct pc_why *why)
{
	int r = prepare(request, place, spare, result, why);

	if (r < 0)
		return r;
	if (!is_published(request, place, spare))
		return publish_main(request, place, spare, result, why);
	adopt(place, result);
	if (result->yaml == NULL)
		return pc_why(why, -ENOMEM, "out of memory");
	publish_file_clean(place->path);
	r = take_away(spare, request->database_generation, result, why);
	return r < 0 ? r : 1;
}

int publish(const struct publish_request *request, struct publish_result *result, struct pc_why *why)
{
	struct publish_request checked = *request;
	struct publish_target *target = &checked.target;
	struct place place = {0}, spare = {0};

	*result = (struct publish_result){0};
	int r = look(&place, target->path, target, why);
	if (r == 0 && target->fallback != NULL)
		r = look(&spare, target->fallback, target, why);
	if (r == 0 && target->fallback != NULL && publish_file_is(place.path, spare.path)) {
		target->fallback = NULL;
		place_release(&spare);
		spare = (struct place){0};
	}
	if (r == 0)
		r = publish_between(&checked, &place, &spare, result, why);
	place_release(&place);
	place_release(&spare);
	return r;
}

/* --- withdrawing ------------------------------------------------------------------------------------------------- */

static int withdraw(const struct publish_target *target, const char *path, const char *topology,
                    struct publish_result *result, struct pc_why *why)
{
	struct place place = {0};
	int r = look(&place, path, target, why);

	if (r == 0 && (place.document == NULL || strcmp(place.document->topology, topology) == 0))
		r = 1;
	if (r == 0)
		r = take_away(&place, place.document->generation, result, why);
	if (r == 0) {
		snprintf(result->path, sizeof(result->path), "%s", place.path);
		result->generation = place.document->generation;
	}
	place_release(&place);
	return r;
}

int publish_withdraw(const struct publish_target *target, const char *topology, struct publish_result *result,
                     struct pc_why *why)
{
	*result = (struct publish_result){0};
	int spare = target->fallback == NULL ? 1 : withdraw(target, target->fallback, topology, result, why);
	if (spare < 0)
		return spare;
	int place = withdraw(target, target->path, topology, result, why);
	return place < 0 ? place : place && spare;
}
