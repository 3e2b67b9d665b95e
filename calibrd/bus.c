/* Joining the bus, whenever it comes, and again after it was gone; see bus.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "calibrd/bus_parts.h"
#include "calibrd/clock.h"
#include "calibrd/log.h"

enum {
	SAY_AFTER_USEC = 3000000,   /* that there is no bus; one that is there has been joined by then */
	PAUSE_USEC = 500000,        /* before the first attempt to join a bus again; then twice as long each time */
	PAUSE_MOST_USEC = 64000000, /* and at most */
	ASK_USEC = 2000000,         /* that the bus itself may take to say who asks: the daemon waits for it */
	END_USEC = 200000,          /* that the last messages may take */
};

#define DRIVER "org.freedesktop.DBus"
#define LOCAL "org.freedesktop.DBus.Local" /* signals that sd-bus makes up itself */

static void again_after(struct bus *bus, uint64_t usec)
{
	int r = sd_event_source_set_time_relative(bus->timer, usec);

	if (r >= 0)
		r = sd_event_source_set_enabled(bus->timer, SD_EVENT_ONESHOT);
	if (r < 0)
		log_error("the bus is not joined again: %s", strerror(-r));
}

static void try_later(struct bus *bus)
{
	again_after(bus, bus->pause_usec);
	bus->pause_usec = 2 * bus->pause_usec < PAUSE_MOST_USEC ? 2 * bus->pause_usec : PAUSE_MOST_USEC;
}

/* --- the name ---------------------------------------------------------------------------------------------------- */

static void complain(struct bus *bus, const char *reason, const char *remedy)
{
	if (!bus->complained)
		log_warning(
			"the bus does not give us the name %s: %s. %s; until then calibctl can't reach this process",
			BUS_NAME, reason, remedy);
	bus->complained = true;
}

/* That it is ours the bus tells by NameAcquired, now or when whoever has it ends. */
static int on_name(sd_bus_message *reply, void *context, sd_bus_error *unused)
{
	struct bus *bus = context;
	const sd_bus_error *error = sd_bus_message_get_error(reply);
	uint32_t answer;

	(void)unused;
	if (error != NULL)
		complain(bus, error->message != NULL ? error->message : error->name,
		         "Install " BUS_NAME
		         ".conf in /usr/share/dbus-1/system.d, reload the bus (systemctl reload dbus) "
		         "and restart calibrd");
	else if (sd_bus_message_read(reply, "u", &answer) < 0)
		complain(bus, "it answered in another form than the specification's", "Restart the bus");
	else if (answer == 2 || answer == 3) /* queued, exists */
		complain(bus, "another process has it", "End that one (busctl status " BUS_NAME " shows it)");
	int r = sd_bus_set_method_call_timeout(bus->connection, ASK_USEC);
	if (r < 0)
		log_warning("the bus: %s", strerror(-r));
	return 0;
}

static void on_connected(struct bus *bus)
{
	int r = sd_bus_request_name_async(bus->connection, NULL, BUS_NAME, SD_BUS_NAME_QUEUE, on_name, bus);

	if (r < 0)
		complain(bus, strerror(-r), "Restart calibrd");
	bus->pause_usec = PAUSE_USEC;
}

static void on_acquired(struct bus *bus)
{
	int r = sd_event_source_set_enabled(bus->timer, SD_EVENT_OFF);

	if (r < 0)
		log_warning("the bus: %s", strerror(-r));
	bus->joined = true;
	bus->complained = false;
	bus_look(bus, &bus->told);
	log_info("on the bus as %s", BUS_NAME);
}

static void on_lost_name(struct bus *bus)
{
	bus->joined = false;
	complain(bus, "it was taken away", "Restart calibrd");
}

static void on_disconnected(struct bus *bus)
{
	if (bus->joined)
		log_info("the bus is gone: it is joined again when it is back");
	bus->joined = false;
	bus->lost = true;
	try_later(bus);
}

/* --- what the bus tells ------------------------------------------------------------------------------------------ */

static const struct {
	const char *sender, *member;
	bool of_name; /* counts for our name alone */
	void (*then)(struct bus *bus);
} events[] = {
	{LOCAL, "Connected", false, on_connected},
	{LOCAL, "Disconnected", false, on_disconnected},
	{DRIVER, "NameAcquired", true, on_acquired},
	{DRIVER, "NameLost", true, on_lost_name},
};

static bool names_us(sd_bus_message *message)
{
	const char *name;
	bool ours = sd_bus_message_read(message, "s", &name) >= 0 && strcmp(name, BUS_NAME) == 0;

	return sd_bus_message_rewind(message, true) >= 0 && ours;
}

/* A filter, since a match would have the bus asked for what it sends to us anyway. Signals to us alone: sender and
 * interface are one and the same name. */
static int on_message(sd_bus_message *message, void *context, sd_bus_error *error)
{
	const char *sender = sd_bus_message_get_sender(message);

	(void)error;
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		if (sender != NULL && strcmp(sender, events[i].sender) == 0 &&
		    sd_bus_message_is_signal(message, events[i].sender, events[i].member) > 0 &&
		    (!events[i].of_name || names_us(message)))
			events[i].then(context);
	return 0;
}

/* --- connections ------------------------------------------------------------------------------------------------- */

static void disconnect(struct bus *bus)
{
	bus->joined = false;
	bus->object = sd_bus_slot_unref(bus->object);
	bus->connection = sd_bus_close_unref(bus->connection);
}

static int set_up(struct bus *bus)
{
	sd_bus *connection = bus->connection;
	int r = sd_bus_set_address(connection, bus->address);

	if (r >= 0)
		r = sd_bus_set_bus_client(connection, true);
	if (r >= 0)
		r = sd_bus_set_watch_bind(connection, true);
	if (r >= 0)
		r = sd_bus_set_connected_signal(connection, true);
	if (r >= 0)
		r = sd_bus_negotiate_fds(connection, true);
	if (r >= 0)
		r = sd_bus_set_close_on_exit(connection, false); /* it would flush, for as long as the bus takes */
	if (r >= 0)
		r = sd_bus_add_filter(connection, NULL, on_message, bus);
	if (r >= 0)
		r = bus_object_add(bus);
	if (r >= 0)
		r = sd_bus_start(connection);
	if (r >= 0)
		r = sd_bus_attach_event(connection, bus->event, SD_EVENT_PRIORITY_NORMAL);
	return r < 0 ? r : 0;
}

static int connect_bus(struct bus *bus)
{
	int r = sd_bus_new(&bus->connection);

	if (r >= 0)
		r = set_up(bus);
	if (r < 0)
		disconnect(bus);
	bus->lost = r < 0;
	return r < 0 ? r : 0;
}

static int on_time(sd_event_source *source, uint64_t now, void *context)
{
	struct bus *bus = context;

	(void)source;
	(void)now;
	if (!bus->lost) {
		if (!bus->joined && !bus->complained)
			log_info("no bus at %s so far: it is joined when it comes", bus->address);
		return 0;
	}
	disconnect(bus);
	int r = connect_bus(bus);
	if (r < 0 && !bus->complained)
		log_warning("the bus at %s: %s; tried again now and then", bus->address, strerror(-r));
	bus->complained |= r < 0;
	if (r < 0)
		try_later(bus);
	return 0;
}

/* --- life -------------------------------------------------------------------------------------------------------- */

static const char *system_address(void)
{
	const char *address = secure_getenv("DBUS_SYSTEM_BUS_ADDRESS");

	return address != NULL ? address : "unix:path=/run/dbus/system_bus_socket";
}

int bus_new(struct bus **out, sd_event *event, const char *address, const struct bus_ops *ops, void *context)
{
	struct bus *bus = calloc(1, sizeof(*bus));

	if (bus == NULL)
		return -ENOMEM;
	*bus = (struct bus){.event = sd_event_ref(event), .ops = ops, .context = context, .pause_usec = PAUSE_USEC};
	bus->address = strdup(address != NULL ? address : system_address());
	int r = bus->address == NULL ? -ENOMEM
	                             : sd_event_add_time_relative(event, &bus->timer, CLOCK_MONOTONIC, SAY_AFTER_USEC,
	                                                          0, on_time, bus);
	if (r >= 0)
		r = connect_bus(bus);
	if (r < 0) {
		bus_free(bus);
		return r;
	}
	*out = bus;
	return 0;
}

static uint64_t now_usec(void)
{
	return clock_ns(CLOCK_MONOTONIC) / 1000;
}

/* sd_bus_flush() waits as long as the bus does. */
static void send_rest(sd_bus *connection)
{
	uint64_t end = now_usec() + END_USEC, queued = 0, now;

	while (sd_bus_get_n_queued_write(connection, &queued) >= 0 && queued > 0 && (now = now_usec()) < end) {
		int r = sd_bus_process(connection, NULL);

		if (r == 0)
			r = sd_bus_wait(connection, end - now);
		if (r < 0)
			return;
	}
}

struct bus *bus_free(struct bus *bus)
{
	if (bus == NULL)
		return NULL;
	bus->object = sd_bus_slot_unref(bus->object); /* the owner is not to be asked any more */
	if (bus->joined)
		send_rest(bus->connection);
	disconnect(bus);
	sd_event_source_disable_unref(bus->timer);
	sd_event_unref(bus->event);
	free(bus->address);
	free(bus);
	return NULL;
}
