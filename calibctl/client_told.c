/* What calibrd tells of its own accord; see client.h. The signals' handlers only take notes: no call is made from
 * within one. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "calibctl/client_parts.h"
#include "calibrd/clock.h"

int client_on_owner(sd_bus_message *message, void *context, sd_bus_error *error)
{
	struct client *client = context;
	const char *name, *before, *after;
	int r = sd_bus_message_read(message, "sss", &name, &before, &after);

	(void)error;
	if (r < 0 || strcmp(before, client->owner) != 0)
		return r < 0 ? r : 0;
	client->owner[0] = '\0';
	client->told = true;
	return 0;
}

static int on_changed(sd_bus_message *message, void *context, sd_bus_error *error)
{
	(void)message;
	(void)error;
	((struct client *)context)->told = true;
	return 0;
}

static void note_end(struct client *client, const struct client_end *end, const char *outcome, const char *text)
{
	struct client_end *kept = &client->ends[client->ended++ % CLIENT_ENDS];

	*kept = *end;
	snprintf(kept->outcome, sizeof(kept->outcome), "%s", outcome);
	snprintf(kept->text, sizeof(kept->text), "%s", text);
	client->told = true;
}

static int on_calibrated(sd_bus_message *message, void *context, sd_bus_error *error)
{
	struct client_end end = {0};
	const char *outcome, *text;
	int r = sd_bus_message_read(message, "tss", &end.job, &outcome, &text);

	(void)error;
	if (r > 0)
		note_end(context, &end, outcome, text);
	return r < 0 ? r : 0;
}

static int on_verified(sd_bus_message *message, void *context, sd_bus_error *error)
{
	struct client_end end = {.verifying = true};
	const char *outcome, *text;
	int r = sd_bus_message_read(message, "tsxs", &end.job, &outcome, &end.verification, &text);

	(void)error;
	if (r > 0)
		note_end(context, &end, outcome, text);
	return r < 0 ? r : 0;
}

/* Before anything is asked of it, so that nothing is missed. */
int client_subscribe(struct client *client)
{
	static const struct {
		const char *interface, *member;
		sd_bus_message_handler_t handler;
	} signals[] = {{"org.freedesktop.DBus.Properties", "PropertiesChanged", on_changed},
	               {BUS_NAME, "PolicyChanged", on_changed},
	               {BUS_NAME, "CalibrationFinished", on_calibrated},
	               {BUS_NAME, "VerificationFinished", on_verified}};
	int r = 0;

	for (size_t i = 0; r >= 0 && i < sizeof(signals) / sizeof(signals[0]); i++)
		r = sd_bus_match_signal(client->bus, NULL, client->owner, BUS_PATH, signals[i].interface,
		                        signals[i].member, signals[i].handler, client);
	return r < 0 ? r : 0;
}

const struct client_end *client_end(const struct client *client, uint64_t job)
{
	for (unsigned back = 1; back <= CLIENT_ENDS && back <= client->ended; back++) {
		const struct client_end *end = &client->ends[(client->ended - back) % CLIENT_ENDS];

		if (job == 0 || end->job == job)
			return end;
	}
	return NULL;
}

/* 1 something came, 0 the time is up, -errno. The bus's own deadlines are of the same clock. */
static int wait_for_input(struct client *client, double deadline, const sigset_t *mask)
{
	uint64_t usec = UINT64_MAX;
	int events = sd_bus_get_events(client->bus), r = sd_bus_get_timeout(client->bus, &usec);

	if (events < 0 || r < 0)
		return events < 0 ? events : r;
	double own = usec == UINT64_MAX ? INFINITY : (double)usec / 1e6;
	double wait = fmax(0, fmin(own, deadline) - clock_seconds(CLOCK_MONOTONIC));
	struct timespec timeout = {.tv_sec = (time_t)fmin(wait, INT_MAX)};
	struct pollfd input = {.fd = sd_bus_get_fd(client->bus), .events = (short)events};

	timeout.tv_nsec = isfinite(wait) ? (long)((wait - floor(wait)) * 1e9) : 0;
	r = ppoll(&input, 1, isfinite(wait) ? &timeout : NULL, mask);
	if (r < 0)
		return -errno;
	return r > 0 || own < deadline;
}

int client_listen(struct client *client, double seconds, const sigset_t *mask, struct pc_why *why)
{
	double deadline = clock_seconds(CLOCK_MONOTONIC) + seconds;
	int r = 1;

	while (r > 0) {
		while ((r = sd_bus_process(client->bus, NULL)) > 0)
			;
		if (r < 0 || client->owner[0] == '\0')
			return client_gone(client, why);
		if (client->told) {
			client->told = false;
			return 0;
		}
		r = wait_for_input(client, deadline, mask);
	}
	if (r == -EINTR)
		return pc_why(why, r, "interrupted");
	return r < 0 ? client_broken(r, why) : 1;
}
