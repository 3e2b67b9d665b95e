/*
 * status: whether all is well: the policy, what programs get of it, the database, the host they are for, and calibrd.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "calibctl/args.h"
#include "calibctl/ledger.h"
#include "calibctl/output.h"
#include "calibctl/status_calibrd.h"
#include "calibctl/subject.h"
#include "calibctl/words.h"
#include "calibrd/topology.h"
#include "pageclear/policy.h"

enum { LIBRARY_TEXT = 1536, WORRIES = 12 };

struct status {
	struct subject subject;
	struct pc_why unreadable; /* the policy; "" if it could be read or there is none */
	int library_code;         /* pageclear_status() */
	char library[LIBRARY_TEXT];

	int recorded; /* 0 the database could be read; 1 there is none; -errno: reason */
	struct pc_why reason;
	bool has_newest, has_done;
	struct calibration newest, done; /* of any state; that was finished, of the policy's topology if there is one */

	struct topology *topology;
	struct status_calibrd calibrd;

	size_t worry_count;
	struct pc_why worries[WORRIES]; /* what needs attention */
};

__attribute__((format(printf, 2, 3))) static void worry(struct status *status, const char *format, ...)
{
	va_list arguments;

	if (status->worry_count == WORRIES)
		return;
	va_start(arguments, format);
	vsnprintf(status->worries[status->worry_count].text, sizeof(status->worries[0].text), format, arguments);
	va_end(arguments);
	status->worry_count++;
}

/* --- finding out ------------------------------------------------------------------------------------------------- */

static void look_at_policy(struct status *status, const struct calibctl *ctl)
{
	const struct subject *subject = &status->subject;

	if (subject_open(&status->subject, ctl, &status->unreadable) < 0)
		worry(status, "%s", status->unreadable.text);
	else if (subject->document == NULL && (status->calibrd.code != 0 || where_is_off(&subject->where)))
		worry(status, "no policy: %s", subject->verdict.text);
	else if (subject->document == NULL)
		worry(status, "no policy where programs look for one; calibrd is %s", status->calibrd.view.state);
	else if (subject->foreign)
		worry(status, "the policy is not for this host: %s. The library does not use it here.",
		      subject->verdict.text);
	else if (strcmp(subject->document->quality, "noisy") == 0)
		worry(status, "the policy was measured on a noisy host: a calmer time would give a better one");
	else if (strcmp(subject->document->quality, "emulated") == 0)
		worry(status, "the policy was measured on an emulated CPU: its timings mean nothing elsewhere");
}

/* A policy that was named, or that lies in a source tree, is none that programs are meant to find by themselves. */
static bool is_hosts_own(const struct subject *subject)
{
	return subject->where.policy_source == WHERE_ENVIRONMENT || subject->where.policy_source == WHERE_HOST;
}

static void look_at_library(struct status *status)
{
	status->library_code = pageclear_status(status->library, sizeof(status->library));
	if (status->library_code != 0 && is_hosts_own(&status->subject) && !where_is_off(&status->subject.where))
		worry(status, "programs do not get this policy: see `library`");
}

static int read_ledger(struct status *status, struct store *store, struct pc_why *why)
{
	const struct pc_document *document = status->subject.document;
	struct calibration *list = NULL;
	size_t count = 0;
	int r = store_calibrations(store, 1, &list, &count, why);

	if (r < 0)
		return r;
	if (count > 0) {
		status->newest = list[0];
		status->has_newest = true;
	}
	free(list);
	r = store_latest(store, document != NULL ? document->topology : NULL, &status->done, why);
	status->has_done = r == 0;
	return r < 0 ? r : 0;
}

static void look_at_database(struct status *status)
{
	struct store *store = NULL;
	struct pc_why why;

	status->recorded = ledger_open(&store, &status->subject.where, &status->reason);
	if (status->recorded == 0) {
		int r = read_ledger(status, store, &why);

		if (r < 0)
			status->recorded =
				pc_why(&status->reason, r, "%s: %s", status->subject.where.database, why.text);
		store_close(store);
	}
	if (status->recorded < 0)
		worry(status, "%s", status->reason.text);
	/* An attempt that failed beside a calibration that holds is history. */
	if (status->has_newest && status->newest.state == CALIBRATION_FAILED && !status->has_done)
		worry(status, "the last calibration failed: %s",
		      status->newest.reasons != NULL ? status->newest.reasons : "");
}

static void look_at_host(struct status *status)
{
	const struct pc_document *document = status->subject.document;
	struct pc_why why;

	if (topology_detect(&status->topology, &(struct topology_source){0}, &why) < 0) {
		worry(status, "the topology could not be found: %s", why.text);
		return;
	}
	if (document != NULL && !status->subject.foreign && strcmp(document->topology, status->topology->id) != 0)
		worry(status, "the policy was made for topology %s, this host is %s", document->topology,
		      status->topology->id);
}

/* Of files that were named, calibrd's state says nothing. */
static void look_at_calibrd(struct status *status)
{
	const struct where *where = &status->subject.where;
	struct pc_why why;

	if (where_is_hosts(where->policy_source))
		if (status_calibrd_worries(&status->calibrd, &why))
			worry(status, "%s", why.text);
}

/* --- for people -------------------------------------------------------------------------------------------------- */

static void print_policy(const struct status *status)
{
	const struct pc_document *document = status->subject.document;
	char age[WORDS_SHORT] = "at a time not stated";
	int64_t seconds;

	if (document == NULL) {
		output_field("policy", "%s", status->unreadable.text[0] != '\0' ? "cannot be read" : "none");
		return;
	}
	if (subject_age(&status->subject, &seconds))
		words_age(seconds, age);
	subject_print_path(&status->subject);
	output_field("", "generation %llu, quality %s, measured %s", (unsigned long long)document->generation,
	             document->quality[0] != '\0' ? document->quality : "not stated", age);
}

static void print_calibration(const char *label, const struct calibration *calibration)
{
	int64_t when = calibration->finished > 0 ? calibration->finished : calibration->started;
	bool has_reasons = calibration->reasons != NULL && calibration->reasons[0] != '\0';
	char age[WORDS_SHORT];

	words_age(output_now() - when, age);
	output_field(label, "calibration %lld: %s, %s effort, %s%s%s%s%s", (long long)calibration->id,
	             words_calibration(calibration->state), calibration->effort, age,
	             calibration->quality[0] != '\0' ? ", quality " : "", calibration->quality, has_reasons ? ": " : "",
	             has_reasons ? calibration->reasons : "");
}

static void print_database(const struct status *status)
{
	if (status->recorded != 0) {
		output_field("database", "%s", status->recorded == 1 ? "none" : "cannot be read");
		return;
	}
	output_field("database", "%s", status->subject.where.database);
	if (status->has_newest)
		print_calibration("", &status->newest);
	else
		output_field("", "no calibration yet");
	if (status->has_done && status->done.id != status->newest.id)
		print_calibration("", &status->done);
	if (status->has_done && status->done.faulted != NULL && status->done.faulted[0] != '\0')
		output_field("", "faulted, never used: %s", status->done.faulted);
}

static void print_host(const struct status *status)
{
	const struct pc_document *document = status->subject.document;
	const char *comparison = "; no policy to compare with";

	if (status->topology == NULL) {
		output_field("topology", "unknown");
		return;
	}
	if (document != NULL)
		comparison = strcmp(document->topology, status->topology->id) == 0 ? ", as in the policy"
		                                                                   : ", not the policy's";
	output_field("topology", "%s%s (%s)", status->topology->id, comparison, status->topology->name);
}

static void print(const struct status *status)
{
	print_policy(status);
	output_field("library", "%s", status->library);
	if (status->subject.document != NULL && !is_hosts_own(&status->subject))
		output_field("", "(programs find the policy above with PAGECLEAR_POLICY=%s)",
		             status->subject.where.policy);
	print_database(status);
	print_host(status);
	status_calibrd_print(&status->calibrd);
	for (size_t i = 0; i < status->worry_count; i++)
		output_warning(status->worries[i].text);
}

/* --- for programs ------------------------------------------------------------------------------------------------ */

static json_t *json_calibration(bool there, const struct calibration *calibration)
{
	if (!there)
		return json_null();
	return json_pack("{s:I, s:s, s:o, s:o, s:o, s:o, s:I, s:o, s:o}", "id", (json_int_t)calibration->id, "state",
	                 words_calibration(calibration->state), "effort", output_json_text(calibration->effort),
	                 "quality",
	                 calibration->quality[0] != '\0' ? output_json_text(calibration->quality) : json_null(),
	                 "reasons", output_json_text(calibration->reasons), "topology",
	                 output_json_text(calibration->topology), "started", (json_int_t)calibration->started,
	                 "finished", calibration->finished > 0 ? json_integer(calibration->finished) : json_null(),
	                 "faulted", output_json_text(calibration->faulted));
}

static json_t *json_database(const struct status *status)
{
	if (status->recorded == 1)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o}", "path", output_json_text(status->subject.where.database), "error",
	                 status->recorded < 0 ? output_json_text(status->reason.text) : json_null(), "newest",
	                 json_calibration(status->has_newest, &status->newest), "done",
	                 json_calibration(status->has_done, &status->done));
}

static json_t *json_all(const struct status *status)
{
	json_t *attention = json_array();

	for (size_t i = 0; i < status->worry_count; i++)
		json_array_append_new(attention, output_json_text(status->worries[i].text));
	return json_pack("{s:o, s:{s:b, s:o}, s:o, s:o, s:o, s:o}", "policy", subject_json(&status->subject), "library",
	                 "calibrated", status->library_code == 0, "text", output_json_text(status->library), "database",
	                 json_database(status), "topology",
	                 output_json_text(status->topology != NULL ? status->topology->id : NULL), "calibrd",
	                 status_calibrd_json(&status->calibrd), "attention", attention);
}

/* ----------------------------------------------------------------------------------------------------------------- */

/* A file that was named, or that is there, and can't be read outweighs what else needs attention. */
static enum outcome judge(const struct status *status)
{
	if (status->unreadable.text[0] != '\0' || status->recorded < 0)
		return UNREADABLE;
	return status->worry_count > 0 ? PROBLEM : DONE;
}

enum outcome verb_status(struct calibctl *ctl, struct args *args)
{
	static struct status status;
	struct arg_words none = {0};

	if (args_parse(args, ctl, NULL, &none) != DONE)
		return USAGE;
	status_calibrd_look(&status.calibrd);
	look_at_policy(&status, ctl);
	look_at_library(&status);
	look_at_database(&status);
	look_at_host(&status);
	look_at_calibrd(&status);
	enum outcome outcome = judge(&status);
	if (ctl->json)
		outcome = output_json(json_all(&status), outcome);
	else
		print(&status);
	if (status.has_newest)
		store_calibration_free(&status.newest);
	if (status.has_done)
		store_calibration_free(&status.done);
	topology_free(status.topology);
	subject_close(&status.subject);
	return outcome;
}
