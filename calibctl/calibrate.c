/*
 * calibrate: has calibrd measure this host now.
 */
#include <inttypes.h>
#include <math.h>

#include "calibctl/output.h"
#include "calibctl/signals.h"
#include "calibctl/steer.h"
#include "calibrd/plan.h"

static const char instead[] = "`systemctl start calibrd` starts it, `calibrd --once --force` measures in the "
			      "foreground (--database, --policy say where to)";

static enum outcome parse(struct args *args, struct calibctl *ctl, const char **effort, bool *wait)
{
	const struct arg_option own[] = {{"--effort", effort, NULL}, {"--wait", NULL, wait}, {0}};
	struct arg_words none = {0};

	if (args_parse(args, ctl, own, &none) != DONE)
		return USAGE;
	if (*effort != NULL && effort_find(*effort) == EFFORTS)
		return args_misused(args, "--effort '%s': expected quick, standard or thorough", *effort);
	return steer_check(args, ctl);
}

static enum outcome tell_begun(const struct calibctl *ctl, uint64_t job)
{
	if (ctl->json)
		return output_json(json_pack("{s:o}", "job", output_json_bytes(job)), DONE);
	output_field("begun", "job %" PRIu64 ": `calibctl wait` waits for its end", job);
	return DONE;
}

static enum outcome calibrate(struct client *client, const struct calibctl *ctl, const char *effort, bool wait)
{
	struct followed followed;
	struct pc_why why;
	uint64_t job;
	int r = client_calibrate(client, effort != NULL ? effort : "", &job, &why);

	if (r != 0)
		return steer_failed(r, &why);
	if (!wait)
		return tell_begun(ctl, job);
	enum outcome outcome = steer_follow(client, job, INFINITY, &followed);
	return outcome == DONE ? steer_tell(client, ctl, &followed) : outcome;
}

enum outcome verb_calibrate(struct calibctl *ctl, struct args *args)
{
	const char *effort = NULL;
	bool wait = false;
	struct client *client = NULL;
	enum outcome outcome = parse(args, ctl, &effort, &wait);

	if (outcome != DONE)
		return outcome;
	if (wait)
		signals_catch();
	outcome = steer_open(&client, instead);
	if (outcome == DONE)
		outcome = calibrate(client, ctl, effort, wait);
	client_close(client);
	return outcome;
}
