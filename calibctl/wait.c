/*
 * wait: until calibrd neither runs anything nor waits with it.
 */
#include <math.h>

#include "calibctl/job.h"
#include "calibctl/signals.h"
#include "calibctl/steer.h"

static const char instead[] = "there is nothing to wait for; `systemctl start calibrd` starts it";

static enum outcome parse(struct args *args, struct calibctl *ctl, double *seconds)
{
	const char *text = NULL;
	const struct arg_option own[] = {{"--timeout", &text, NULL}, {0}};
	struct arg_words none = {0};

	if (args_parse(args, ctl, own, &none) != DONE)
		return USAGE;
	*seconds = INFINITY;
	if (text != NULL && !job_parse_seconds(text, seconds))
		return args_misused(args, "--timeout '%s': expected seconds, at most a year", text);
	return steer_check(args, ctl);
}

enum outcome verb_wait(struct calibctl *ctl, struct args *args)
{
	struct client *client = NULL;
	struct followed followed;
	double seconds;

	if (parse(args, ctl, &seconds) != DONE)
		return USAGE;
	signals_catch();
	enum outcome outcome = steer_open(&client, instead);
	if (outcome == DONE)
		outcome = steer_follow(client, 0, seconds, &followed);
	if (outcome == DONE)
		outcome = steer_tell(client, ctl, &followed);
	client_close(client);
	return outcome;
}
