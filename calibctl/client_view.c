/* What calibrd tells of itself when it is asked: its properties; see client.h. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "calibctl/client_parts.h"

enum { VIEW_USEC = 5 * 1000 * 1000 }; /* it has only to tell what it knows */

static const struct property {
	const char *name;
	char type;
	size_t offset, size; /* size: of a text's room */
} properties[] = {
#define PROPERTY(name, type, member)                                                                                   \
	{                                                                                                              \
		name, type, offsetof(struct client_view, member), sizeof(((struct client_view *)NULL)->member)         \
	}
	PROPERTY("State", 's', state),
	PROPERTY("Phase", 's', phase),
	PROPERTY("Reason", 's', reason),
	PROPERTY("Progress", 'd', progress),
	PROPERTY("Job", 't', job),
	PROPERTY("Topology", 's', topology),
	PROPERTY("Generation", 't', generation),
	PROPERTY("PolicyPath", 's', policy_path),
	PROPERTY("Version", 's', version),
#undef PROPERTY
};

static const struct property *find_property(const char *name)
{
	for (size_t i = 0; i < sizeof(properties) / sizeof(properties[0]); i++)
		if (strcmp(properties[i].name, name) == 0)
			return &properties[i];
	return NULL;
}

static int read_value(sd_bus_message *message, const struct property *property, struct client_view *out)
{
	char *to = (char *)out + property->offset, signature[] = {property->type, '\0'};
	const char *text = NULL;
	int r = sd_bus_message_enter_container(message, 'v', signature);

	if (r > 0)
		r = sd_bus_message_read_basic(message, property->type, property->type == 's' ? (void *)&text : to);
	if (r > 0 && text != NULL)
		snprintf(to, property->size, "%s", text);
	return r > 0 ? sd_bus_message_exit_container(message) : r == 0 ? -EPROTO : r;
}

/* What a newer one has besides is left out. */
static int read_entry(sd_bus_message *message, struct client_view *out)
{
	const char *name;
	int r = sd_bus_message_read(message, "s", &name);

	if (r <= 0)
		return r < 0 ? r : -EPROTO;
	const struct property *property = find_property(name);
	r = property != NULL ? read_value(message, property, out) : sd_bus_message_skip(message, "v");
	return r < 0 ? r : sd_bus_message_exit_container(message);
}

static int read_properties(sd_bus_message *message, struct client_view *out)
{
	int r = sd_bus_message_enter_container(message, 'a', "{sv}");

	while (r >= 0 && (r = sd_bus_message_enter_container(message, 'e', "sv")) > 0)
		r = read_entry(message, out);
	if (r >= 0 && (out->state[0] == '\0' || !(out->progress >= 0 && out->progress <= 1)))
		r = -EPROTO;
	return r < 0 ? r : 0;
}

int client_view(struct client *client, struct client_view *out, struct pc_why *why)
{
	sd_bus_message *message = NULL, *reply = NULL;
	int r = client_prepare(client, "org.freedesktop.DBus.Properties", "GetAll", &message, why);

	if (r < 0)
		return r;
	if ((r = sd_bus_message_append(message, "s", BUS_NAME)) < 0) {
		sd_bus_message_unref(message);
		return client_broken(r, why);
	}
	memset(out, 0, sizeof(*out));
	r = client_call(client, message, VIEW_USEC, &reply, why);
	if (r == 0 && read_properties(reply, out) < 0)
		r = pc_why(why, -EPROTO, "what calibrd tells of itself makes no sense: is it of another version?");
	sd_bus_message_unref(reply);
	return r > 0 ? -r : r; /* properties are for everyone: a refusal is out of order */
}
