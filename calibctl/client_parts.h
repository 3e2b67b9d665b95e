/*
 * What the client's files share: client.c connects and calls, client_view.c reads properties, client_told.c listens.
 */
#ifndef CALIBCTL_CLIENT_PARTS_H
#define CALIBCTL_CLIENT_PARTS_H

#include <systemd/sd-bus.h>

#include "calibctl/client.h"
#include "calibrd/bus.h"

enum { CLIENT_ENDS = 8 }; /* that are remembered: other jobs may end while one is waited for */

struct client {
	sd_bus *bus;
	char owner[64]; /* its unique name; "" once it has left the bus */
	bool told;      /* something that nobody was told of yet */
	unsigned ended; /* jobs, in all */
	struct client_end ends[CLIENT_ENDS];
};

/* -ENOTCONN with why. */
int client_gone(const struct client *client, struct pc_why *why);
/* r, with the bus to blame. */
int client_broken(int r, struct pc_why *why);

/* A call to the daemon that was found, not to whoever has its name by now. 0 or -errno with why. */
int client_prepare(struct client *client, const char *interface, const char *member, sd_bus_message **message,
                   struct pc_why *why);
/* Sends it and waits: as all calls of client.h. usec 0: as long as calls may take. Takes the message; the reply is the
 * caller's. */
int client_call(struct client *client, sd_bus_message *message, uint64_t usec, sd_bus_message **reply,
                struct pc_why *why);

/* Of NameOwnerChanged, for sd_bus_add_match(). */
int client_on_owner(sd_bus_message *message, void *context, sd_bus_error *error);
/* To the daemon's own signals, before anything is asked of it. 0 or -errno. */
int client_subscribe(struct client *client);

#endif
