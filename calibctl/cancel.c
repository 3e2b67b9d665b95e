/*
 * cancel: ends what calibrd is at or waits with. The policy in force stays.
 */
#include <errno.h>

#include "calibctl/output.h"
#include "calibctl/steer.h"

static const char instead[] = "nothing of its own is running; `calibrd --once` ends with Ctrl-C";

/* Nothing to end is as good as ended. */
static enum outcome cancel(struct client *client, const struct calibctl *ctl)
{
	struct pc_why why;
	int r = client_cancel(client, &why);

	if (r != 0 && r != ENOENT)
		return steer_failed(r, &why);
	if (ctl->json)
		return output_json(json_pack("{s:b}", "cancelled", r == 0), DONE);
	if (r == 0)
		output_field("cancelled", "the policy in force stays");
	else
		output_field("nothing", "nothing runs or waits");
	return DONE;
}

enum outcome verb_cancel(struct calibctl *ctl, struct args *args)
{
	struct arg_words none = {0};
	struct client *client = NULL;

	if (args_parse(args, ctl, NULL, &none) != DONE || steer_check(args, ctl) != DONE)
		return USAGE;
	enum outcome outcome = steer_open(&client, instead);
	if (outcome == DONE)
		outcome = cancel(client, ctl);
	client_close(client);
	return outcome;
}
