#include "calibctl/status_calibrd.h"

#include <inttypes.h>
#include <string.h>

#include "calibctl/job.h"
#include "calibctl/output.h"
#include "calibctl/words.h"

void status_calibrd_look(struct status_calibrd *out)
{
	struct client *client = NULL;

	out->code = client_open(&client, &out->why);
	if (out->code == 0) {
		out->code = client_view(client, &out->view, &out->why);
	}
	client_close(client);
}

bool status_calibrd_worries(const struct status_calibrd *calibrd, struct pc_why *why)
{
	if (calibrd->code > 0)
		return false;
	if (calibrd->code < 0)
		pc_why_say(why, "calibrd cannot be asked: %s", calibrd->why.text);
	else if (strcmp(calibrd->view.state, "failed") == 0)
		pc_why_say(why, "calibrd could not do what it had to: %s", calibrd->view.reason);
	else
		return false;
	return true;
}

static void print_view(const struct client_view *view)
{
	char words[JOB_WORDS];

	job_words(view, words);
	if (view->job != 0)
		output_field("calibrd", "%s (job %" PRIu64 ")", words, view->job);
	else
		output_field("calibrd", "%s", words);
	if (view->reason[0] != '\0')
		output_field("", "%s", view->reason);
	if (strcmp(view->version, PAGECLEAR_VERSION) != 0)
		output_field("", "version %s, this is calibctl " PAGECLEAR_VERSION, words_stated(view->version));
}

void status_calibrd_print(const struct status_calibrd *calibrd)
{
	if (calibrd->code == 0)
		print_view(&calibrd->view);
	else if (calibrd->code == CLIENT_ABSENT)
		output_field("calibrd", "not running: `systemctl start calibrd` starts it");
	else if (calibrd->code == CLIENT_NO_BUS)
		output_field("calibrd", "not known: %s", calibrd->why.text);
	else
		output_field("calibrd", "cannot be asked");
}

json_t *status_calibrd_json(const struct status_calibrd *calibrd)
{
	const struct client_view *view = &calibrd->view;
	bool has_policy = view->generation > 0;

	if (calibrd->code != 0)
		return json_pack("{s:o, s:o}", "running",
		                 calibrd->code == CLIENT_ABSENT ? json_false()
		                 : calibrd->code > 0            ? json_null()
		                                                : json_true(),
		                 "error", output_json_text(calibrd->why.text));
	return json_pack("{s:b, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "running", 1, "error", json_null(),
	                 "state", output_json_text(view->state), "phase", output_json_text(view->phase), "reason",
	                 output_json_text(view->reason), "progress", output_json_number(view->progress), "job",
	                 view->job > 0 ? output_json_bytes(view->job) : json_null(), "topology",
	                 output_json_text(view->topology), "generation",
	                 has_policy ? output_json_bytes(view->generation) : json_null(), "policy",
	                 has_policy ? output_json_text(view->policy_path) : json_null(), "version",
	                 output_json_text(view->version));
}
