/* calibrd over the system bus; see client.h. */
#include "calibctl/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calibctl/client_parts.h"

enum { CALL_USEC = 25 * 1000 * 1000 };

/* --- errors ------------------------------------------------------------------------------------------------------ */

/* What the bus or its absence answers in calibrd's place. */
static bool is_lost(int r)
{
	static const int lost[] = {-EHOSTUNREACH, -ENXIO, -ECONNRESET, -ENOTCONN, -EPIPE, -ECONNREFUSED, -ESHUTDOWN};

	for (size_t i = 0; i < sizeof(lost) / sizeof(lost[0]); i++)
		if (r == lost[i])
			return true;
	return false;
}

int client_gone(const struct client *client, struct pc_why *why)
{
	return pc_why(why, -ENOTCONN, "%s",
	              sd_bus_is_open(client->bus) > 0 ? "calibrd has left the bus" : "the system bus has gone away");
}

/* calibrd's own errors, as the interface's description has them. */
static int code_of(int r, const sd_bus_error *error)
{
	static const struct {
		const char *name;
		int code;
	} own[] = {{BUS_NAME ".Error.Busy", EBUSY},        {BUS_NAME ".Error.NotFound", ENOENT},
	           {BUS_NAME ".Error.Forbidden", EPERM},   {BUS_NAME ".Error.WrongHost", ESTALE},
	           {BUS_NAME ".Error.BadPolicy", EBADMSG}, {SD_BUS_ERROR_INVALID_ARGS, EINVAL}};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (sd_bus_error_has_name(error, own[i].name))
			return own[i].code;
	return -r;
}

/* r < 0 of a call, with what came in place of an answer. */
static int judge(const struct client *client, int r, const sd_bus_error *error, struct pc_why *why)
{
	if (sd_bus_error_has_name(error, SD_BUS_ERROR_NO_REPLY) || is_lost(r))
		return client_gone(client, why);
	if (r == -ETIMEDOUT)
		return pc_why(why, r, "calibrd does not answer");
	if (r == -EACCES && geteuid() != 0)
		return pc_why(why, r, "this needs root");
	bool has_words = error->message != NULL && error->message[0] != '\0';
	return pc_why(why, code_of(r, error), "%s", has_words ? error->message : strerror(-r));
}

int client_broken(int r, struct pc_why *why)
{
	return pc_why(why, r, "the system bus: %s", strerror(-r));
}

/* --- who is there ------------------------------------------------------------------------------------------------ */

/* Its name's changes are watched before its owner is asked for: it cannot leave unseen. */
static int find_daemon(struct client *client, struct pc_why *why)
{
	static const char rule[] = "type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',"
				   "interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='" BUS_NAME "'";
	sd_bus_error error = SD_BUS_ERROR_NULL;
	sd_bus_message *reply = NULL;
	const char *owner = "";
	int r = sd_bus_add_match(client->bus, NULL, rule, client_on_owner, client);

	if (r >= 0)
		r = sd_bus_call_method(client->bus, "org.freedesktop.DBus", "/org/freedesktop/DBus",
		                       "org.freedesktop.DBus", "GetNameOwner", &error, &reply, "s", BUS_NAME);
	if (r >= 0)
		r = sd_bus_message_read(reply, "s", &owner);
	snprintf(client->owner, sizeof(client->owner), "%s", owner);
	if (sd_bus_error_has_name(&error, SD_BUS_ERROR_NAME_HAS_NO_OWNER))
		r = pc_why(why, CLIENT_ABSENT, "calibrd is not running");
	else if (r < 0)
		r = client_broken(r, why);
	else
		r = 0;
	sd_bus_message_unref(reply);
	sd_bus_error_free(&error);
	return r;
}

/* Connecting is done when the bus has told us our name. */
static int join(struct client *client, struct pc_why *why)
{
	const char *name;
	int r = sd_bus_open_system(&client->bus);

	if (r >= 0)
		r = sd_bus_set_method_call_timeout(client->bus, CALL_USEC);
	if (r >= 0)
		r = sd_bus_get_unique_name(client->bus, &name);
	if (r == -ENOMEM)
		return pc_why(why, r, "out of memory");
	return r < 0 ? pc_why(why, CLIENT_NO_BUS, "the system bus cannot be reached (%s)", strerror(-r)) : 0;
}

int client_open(struct client **out, struct pc_why *why)
{
	struct client *client = calloc(1, sizeof(*client));
	int r = client != NULL ? join(client, why) : pc_why(why, -ENOMEM, "out of memory");

	if (r == 0)
		r = find_daemon(client, why);
	if (r == 0 && (r = client_subscribe(client)) < 0)
		client_broken(r, why);
	if (r == 0)
		*out = client;
	else
		client_close(client);
	return r;
}

struct client *client_close(struct client *client)
{
	if (client != NULL)
		sd_bus_flush_close_unref(client->bus);
	free(client);
	return NULL;
}

/* --- calls ------------------------------------------------------------------------------------------------------- */

/* To the daemon that was found, not to whoever has its name by now; none is started for it. Takes the message. */
int client_call(struct client *client, sd_bus_message *message, uint64_t usec, sd_bus_message **reply,
                struct pc_why *why)
{
	sd_bus_error error = SD_BUS_ERROR_NULL;
	int r = sd_bus_message_set_auto_start(message, 0);

	if (r >= 0)
		r = sd_bus_call(client->bus, message, usec, &error, reply);
	r = r < 0 ? judge(client, r, &error, why) : 0;
	sd_bus_error_free(&error);
	sd_bus_message_unref(message);
	return r;
}

int client_prepare(struct client *client, const char *interface, const char *member, sd_bus_message **message,
                   struct pc_why *why)
{
	if (client->owner[0] == '\0')
		return client_gone(client, why);
	int r = sd_bus_message_new_method_call(client->bus, message, client->owner, BUS_PATH, interface, member);
	return r < 0 ? client_broken(r, why) : 0;
}

/* One argument in (type 0: none), one number out (NULL: none). */
static int ask(struct client *client, const char *method, char type, const void *argument, uint64_t *number,
               struct pc_why *why)
{
	sd_bus_message *message = NULL, *reply = NULL;
	int r = client_prepare(client, BUS_NAME, method, &message, why);

	if (r < 0)
		return r;
	if (type != 0 && (r = sd_bus_message_append_basic(message, type, argument)) < 0) {
		sd_bus_message_unref(message);
		return client_broken(r, why);
	}
	r = client_call(client, message, 0, &reply, why);
	if (r == 0 && number != NULL && sd_bus_message_read(reply, "t", number) <= 0)
		r = pc_why(why, -EPROTO, "calibrd's answer makes no sense: is it of another version?");
	sd_bus_message_unref(reply);
	return r;
}

int client_calibrate(struct client *client, const char *effort, uint64_t *job, struct pc_why *why)
{
	return ask(client, "Calibrate", 's', effort, job, why);
}

int client_verify(struct client *client, const char *effort, uint64_t *job, struct pc_why *why)
{
	return ask(client, "Verify", 's', effort, job, why);
}

int client_cancel(struct client *client, struct pc_why *why)
{
	return ask(client, "Cancel", 0, NULL, NULL, why);
}

int client_rollback(struct client *client, uint64_t generation, uint64_t *published, struct pc_why *why)
{
	return ask(client, "Rollback", 't', &generation, published, why);
}

int client_import(struct client *client, int file, uint64_t *published, struct pc_why *why)
{
	return ask(client, "Import", 'h', &file, published, why);
}
