#include "calibctl/steer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "calibctl/job.h"
#include "calibctl/output.h"
#include "calibctl/signals.h"

enum outcome steer_check(const struct args *args, const struct calibctl *ctl)
{
	const char *option = ctl->policy != NULL ? "--policy" : "--database";

	if (ctl->policy == NULL && ctl->database == NULL)
		return DONE;
	return args_misused(args, "%s: calibrd goes by its own configuration", option);
}

enum outcome steer_open(struct client **out, const char *instead)
{
	struct pc_why why;
	int r = client_open(out, &why);

	if (r == 0)
		return DONE;
	fprintf(stderr, "calibctl: %s%s%s%s\n", why.text, r > 0 ? ": " : "",
	        r == CLIENT_NO_BUS ? "calibrd is asked over it; " : "", r > 0 ? instead : "");
	return UNREADABLE;
}

enum outcome steer_failed(int r, const struct pc_why *why)
{
	output_failed(why);
	return r > 0 ? PROBLEM : UNREADABLE;
}

/* --- waiting ----------------------------------------------------------------------------------------------------- */

static void name_job(uint64_t job, char out[48])
{
	if (job != 0)
		snprintf(out, 48, "job %" PRIu64, job);
	else
		strcpy(out, "what it was at");
}

static void say_left(uint64_t job)
{
	char name[48];

	name_job(job, name);
	fprintf(stderr,
	        "calibctl: no longer waiting; calibrd goes on with %s: `calibctl wait` waits for it again, "
	        "`calibctl cancel` ends it\n",
	        name);
	signals_die(signals_caught);
}

enum outcome steer_follow(struct client *client, uint64_t job, double seconds, struct followed *out)
{
	char name[48], words[JOB_WORDS];
	struct pc_why why;
	int r = follow(client, job, seconds, out, &why);

	if (r == 0)
		return DONE;
	name_job(job, name);
	job_words(&out->view, words);
	if (r == -EINTR)
		say_left(job != 0 ? job : out->view.job);
	else if (r == FOLLOW_TIME_UP)
		fprintf(stderr, "calibctl: the time is up, and calibrd is still %s%s%s\n", words,
		        out->view.reason[0] != '\0' ? ": " : "", out->view.reason);
	else if (r == -ENOTCONN)
		fprintf(stderr,
		        "calibctl: %s before the end of %s was told: `systemctl status calibrd` and `calibctl history` "
		        "tell more\n",
		        why.text, name);
	else
		output_failed(&why);
	return r == FOLLOW_TIME_UP ? PROBLEM : UNREADABLE;
}

/* --- telling ----------------------------------------------------------------------------------------------------- */

static json_t *json_end(const struct client_end *end)
{
	if (end == NULL)
		return json_null();
	return json_pack("{s:o, s:s, s:o, s:o, s:o}", "job", output_json_bytes(end->job), "task",
	                 end->verifying ? "verification" : "calibration", "outcome", output_json_text(end->outcome),
	                 "text", output_json_text(end->text), "verification",
	                 end->verification > 0 ? json_integer(end->verification) : json_null());
}

static json_t *json_all(const struct followed *followed)
{
	const struct client_view *view = &followed->view;
	bool has_policy = view->generation > 0;

	return json_pack("{s:o, s:o, s:o, s:o, s:o}", "state", output_json_text(view->state), "reason",
	                 output_json_text(view->reason), "ended", json_end(followed->end), "generation",
	                 has_policy ? output_json_bytes(view->generation) : json_null(), "policy",
	                 has_policy ? output_json_text(view->policy_path) : json_null());
}

static void print(const struct followed *followed)
{
	const struct client_view *view = &followed->view;
	const struct client_end *end = followed->end;

	if (end != NULL)
		output_field(end->verifying ? "verified" : "calibrated", "%s%s%s", end->outcome,
		             end->text[0] != '\0' ? ": " : "", end->text);
	else
		output_field("calibrd", "%s%s%s", view->state, view->reason[0] != '\0' ? ": " : "", view->reason);
	if (view->generation > 0)
		output_field("policy", "%s, generation %" PRIu64, view->policy_path, view->generation);
}

enum outcome steer_tell(struct client *client, const struct calibctl *ctl, struct followed *followed)
{
	enum outcome outcome;
	struct pc_why why;
	int r = client_view(client, &followed->view, &why);

	if (r != 0 && followed->end == NULL)
		return steer_failed(r, &why);
	if (followed->end != NULL)
		outcome = job_judge(followed->end);
	else
		outcome = strcmp(followed->view.state, "failed") == 0 ? PROBLEM : DONE;
	if (ctl->json)
		return output_json(json_all(followed), outcome);
	print(followed);
	return outcome;
}
