/*
 * verify: what the policy's choices cost on this host, at fresh sizes, next to the best kernel's; and whether that is
 * within tolerance.
 */
#include "calibctl/verify.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "calibctl/args.h"
#include "calibctl/output.h"
#include "libpolicy/policy.h"

enum { SEED_BITS = 53 };

struct texts {
	const char *effort, *against, *seed, *tolerance;
};

/* --- the command line -------------------------------------------------------------------------------------------- */

static enum outcome parse_effort(const struct args *args, const char *text, enum effort *out)
{
	*out = effort_find(text);
	return *out < EFFORTS ? DONE : args_misused(args, "--effort '%s': expected quick, standard or thorough", text);
}

/* JSON's readers keep whole numbers up to here. strtoull() takes signs, and makes large numbers of negative ones. */
static enum outcome parse_seed(const struct args *args, const char *text, uint64_t *out)
{
	char *end = NULL;

	errno = 0;
	*out = strtoull(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0 || *out >> SEED_BITS != 0)
		return args_misused(args, "--seed '%s': expected a whole number below 2^%d", text, SEED_BITS);
	return DONE;
}

/* strtod() takes signs, hexadecimals and words besides. */
static enum outcome parse_tolerance(const struct args *args, const char *text, double *share)
{
	char *end = NULL;
	double percent = strtod(text, &end);

	if (text[strspn(text, "0123456789.")] != '\0' || end == text || *end != '\0' || !(percent <= 1000))
		return args_misused(args, "--tolerance '%s': expected per cent, from 0 to 1000", text);
	*share = percent / 100;
	return DONE;
}

/* A library is known by its path, however it was named. The linker looks for names without a slash in its own folders
 * alone; who names a file that is here means that. */
static enum outcome parse_against(const char *text, char **out)
{
	*out = realpath(text, NULL);
	if (*out == NULL && errno != ENOMEM) /* the child will say what is wrong with it */
		*out = strdup(text);
	return *out != NULL ? DONE : output_failed(&(struct pc_why){"out of memory"});
}

static enum outcome parse_texts(const struct args *args, const struct texts *texts, struct verification_request *out)
{
	enum outcome outcome = DONE;

	*out = (struct verification_request){.effort = EFFORT_STANDARD, .tolerance = VERIFY_TOLERANCE / 100.0};
	if (texts->effort != NULL)
		outcome = parse_effort(args, texts->effort, &out->effort);
	if (outcome == DONE && texts->tolerance != NULL)
		outcome = parse_tolerance(args, texts->tolerance, &out->tolerance);
	if (outcome == DONE && texts->seed != NULL)
		outcome = parse_seed(args, texts->seed, &out->seed);
	else if (outcome == DONE && getrandom(&out->seed, sizeof(out->seed), 0) < 0)
		out->seed = (uint64_t)time(NULL);
	out->particular = texts->tolerance != NULL || texts->seed != NULL || texts->against != NULL;
	if (texts->seed == NULL) /* short enough to be typed again */
		out->seed &= UINT32_MAX;
	return outcome == DONE && texts->against != NULL ? parse_against(texts->against, &out->against) : outcome;
}

static enum outcome parse(struct args *args, struct calibctl *ctl, struct verification_request *out)
{
	struct texts texts = {0};
	struct arg_words none = {0};
	const struct arg_option own[] = {{"--effort", &texts.effort, NULL},
	                                 {"--against", &texts.against, NULL},
	                                 {"--seed", &texts.seed, NULL},
	                                 {"--tolerance", &texts.tolerance, NULL},
	                                 {0}};
	enum outcome outcome = args_parse(args, ctl, own, &none);

	return outcome == DONE ? parse_texts(args, &texts, out) : outcome;
}

/* --- what is verified -------------------------------------------------------------------------------------------- */

static enum outcome open_subject(struct verification_request *request, const struct calibctl *ctl)
{
	struct pc_why why, text;
	struct pageclear_policy *policy;
	int r = subject_open(&request->subject, ctl, &why);

	if (r != 0)
		return subject_missing(&request->subject, r, &why);
	if (request->subject.foreign) {
		pc_why_say(&text, "%s: not for this host: %s", request->subject.where.policy,
		           request->subject.verdict.text);
		output_failed(&text);
		return PROBLEM; /* as every verb judges it */
	}
	if (pc_policy_load(&policy, request->subject.where.policy, &why) < 0) {
		pc_why_say(&text, "%s: %s", request->subject.where.policy, why.text);
		return output_failed(&text);
	}
	request->policy = policy;
	request->generation = verification_generation(request);
	return topology_detect(&request->topology, &(struct topology_source){0}, &why) < 0 ? output_failed(&why) : DONE;
}

static void warn_of_topology(const struct verification_request *request)
{
	const char *made_for = request->subject.document->topology;

	if (strcmp(made_for, request->topology->id) != 0)
		fprintf(stderr, "calibctl: warning: the policy was made for topology %s, this host is %s\n", made_for,
		        request->topology->id);
}

/* ----------------------------------------------------------------------------------------------------------------- */

static enum outcome tell(const struct verification_request *request, const struct calibctl *ctl,
                         const struct verify_report *report, const struct verification_entry *entry)
{
	enum outcome outcome = report->passed ? DONE : PROBLEM;

	if (ctl->json)
		return output_json(verification_json(request, report, entry), outcome);
	return verification_print(request, report) < 0 ? output_failed(&(struct pc_why){"out of memory"}) : outcome;
}

static enum outcome measure(const struct verification_request *request, const struct calibctl *ctl)
{
	struct verify_report report;
	struct verification_entry entry = {0};
	struct pc_why why;
	int r;

	warn_of_topology(request);
	r = verification_run(request, &report, &why);
	if (r < 0) {
		output_failed(&why);
		return r == -ENOEXEC ? PROBLEM : UNREADABLE;
	}
	verification_record(request, &report, &entry);
	if (entry.id == 0)
		fprintf(stderr, "calibctl: not recorded: %s\n", entry.reason.text);
	return tell(request, ctl, &report, &entry);
}

static enum outcome verify(struct verification_request *request, const struct calibctl *ctl)
{
	struct client *client = NULL;
	struct verify_report report;
	struct verification_entry entry = {0};

	if (!verification_is_calibrds(request, ctl, &client))
		return measure(request, ctl);
	enum outcome outcome = verification_ask(request, client, ctl, &report, &entry);
	client_close(client);
	return request->by_calibrd && outcome == DONE ? tell(request, ctl, &report, &entry) : outcome;
}

enum outcome verb_verify(struct calibctl *ctl, struct args *args)
{
	struct verification_request request;
	enum outcome outcome = parse(args, ctl, &request);

	if (outcome != DONE)
		return outcome;
	outcome = open_subject(&request, ctl);
	if (outcome == DONE)
		outcome = verify(&request, ctl);
	topology_free(request.topology);
	pageclear_policy_close(request.policy);
	subject_close(&request.subject);
	free(request.against);
	return outcome;
}
