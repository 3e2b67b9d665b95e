/*
 * The object on the bus: methods, properties and signals of org.pageclear.Calibrd1, as the XML in schema/ has them;
 * see bus.h. sd-bus itself refuses calls whose types are not the ones in the table.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "calibrd/bus_parts.h"
#include "calibrd/log.h"

#define ERROR_NAME(name) BUS_NAME ".Error." name

/* --- refusals ---------------------------------------------------------------------------------------------------- */

static const char *error_name(int code)
{
	switch (-code) {
	case EBUSY:
		return ERROR_NAME("Busy");
	case ENOENT:
		return ERROR_NAME("NotFound");
	case EPERM:
		return ERROR_NAME("Forbidden");
	case ESTALE:
		return ERROR_NAME("WrongHost");
	case EBADMSG:
	case EFBIG:
	case EPROTONOSUPPORT:
		return ERROR_NAME("BadPolicy");
	case EINVAL:
		return SD_BUS_ERROR_INVALID_ARGS;
	case ENOMEM:
		return SD_BUS_ERROR_NO_MEMORY;
	default:
		return ERROR_NAME("Failed");
	}
}

static int refuse(sd_bus_error *error, int code, const struct pc_why *why)
{
	char text[2 * sizeof(why->text)];

	bus_text(text, sizeof(text), why->text[0] != '\0' ? why->text : strerror(-code));
	return sd_bus_error_set(error, error_name(code), text);
}

/* The bus knows who connected; what /proc tells of them may be of somebody else by now, so capabilities are not asked
 * for. */
static int admit(sd_bus_message *message, sd_bus_error *error)
{
	sd_bus_creds *creds = NULL;
	uid_t uid = (uid_t)-1;
	int r = sd_bus_query_sender_creds(message, SD_BUS_CREDS_EUID, &creds);

	if (r >= 0)
		r = sd_bus_creds_get_euid(creds, &uid);
	sd_bus_creds_unref(creds);
	if (r < 0)
		return sd_bus_error_setf(error, SD_BUS_ERROR_ACCESS_DENIED,
		                         "%s is for root, and who asks is not known: %s",
		                         sd_bus_message_get_member(message), strerror(-r));
	if (uid != 0)
		return sd_bus_error_setf(error, SD_BUS_ERROR_ACCESS_DENIED, "%s is for root, not for user %u",
		                         sd_bus_message_get_member(message), (unsigned)uid);
	return 0;
}

/* --- methods ----------------------------------------------------------------------------------------------------- */

static int start(sd_bus_message *message, struct bus *bus,
                 int (*job)(void *context, const char *effort, uint64_t *number, struct pc_why *why),
                 sd_bus_error *error)
{
	struct pc_why why = {""};
	const char *effort;
	uint64_t number = 0;
	int r = admit(message, error);

	if (r < 0)
		return r;
	r = sd_bus_message_read(message, "s", &effort);
	if (r < 0)
		return r;
	r = job(bus->context, effort, &number, &why);
	return r < 0 ? refuse(error, r, &why) : sd_bus_reply_method_return(message, "t", number);
}

static int on_calibrate(sd_bus_message *message, void *context, sd_bus_error *error)
{
	struct bus *bus = context;

	return start(message, bus, bus->ops->calibrate, error);
}

static int on_verify(sd_bus_message *message, void *context, sd_bus_error *error)
{
	struct bus *bus = context;

	return start(message, bus, bus->ops->verify, error);
}

static int plain(sd_bus_message *message, struct bus *bus, int (*act)(void *context, struct pc_why *why),
                 sd_bus_error *error)
{
	struct pc_why why = {""};
	int r = admit(message, error);

	if (r < 0)
		return r;
	r = act(bus->context, &why);
	return r < 0 ? refuse(error, r, &why) : sd_bus_reply_method_return(message, "");
}

static int on_cancel(sd_bus_message *message, void *context, sd_bus_error *error)
{
	struct bus *bus = context;

	return plain(message, bus, bus->ops->cancel, error);
}

static int on_reload(sd_bus_message *message, void *context, sd_bus_error *error)
{
	struct bus *bus = context;

	return plain(message, bus, bus->ops->reload, error);
}

static int on_rollback(sd_bus_message *message, void *context, sd_bus_error *error)
{
	struct bus *bus = context;
	struct pc_why why = {""};
	uint64_t generation, published = 0;
	int r = admit(message, error);

	if (r < 0)
		return r;
	r = sd_bus_message_read(message, "t", &generation);
	if (r < 0)
		return r;
	r = bus->ops->rollback(bus->context, generation, &published, &why);
	return r < 0 ? refuse(error, r, &why) : sd_bus_reply_method_return(message, "t", published);
}

/* The descriptor is the message's, and is closed with it. */
static int on_import(sd_bus_message *message, void *context, sd_bus_error *error)
{
	struct bus *bus = context;
	struct pc_why why = {""};
	uint64_t published = 0;
	char *text = NULL;
	size_t len;
	int fd, r = admit(message, error);

	if (r < 0)
		return r;
	r = sd_bus_message_read(message, "h", &fd);
	if (r < 0)
		return r;
	r = bus_read_policy(fd, &text, &len, &why);
	if (r == 0)
		r = bus->ops->import(bus->context, text, len, &published, &why);
	free(text);
	return r < 0 ? refuse(error, r, &why) : sd_bus_reply_method_return(message, "t", published);
}

/* --- properties -------------------------------------------------------------------------------------------------- */

struct property {
	const char *name;
	char type;
	size_t at; /* in bus_shown */
};

static const struct property properties[] = {
	{"State", 's', offsetof(struct bus_shown, state)},
	{"Phase", 's', offsetof(struct bus_shown, phase)},
	{"Reason", 's', offsetof(struct bus_shown, reason)},
	{"Progress", 'd', offsetof(struct bus_shown, progress)},
	{"Job", 't', offsetof(struct bus_shown, job)},
	{"Topology", 's', offsetof(struct bus_shown, topology)},
	{"Generation", 't', offsetof(struct bus_shown, generation)},
	{"PolicyPath", 's', offsetof(struct bus_shown, policy_path)},
};

enum { PROPERTIES = sizeof(properties) / sizeof(properties[0]) };

static const void *value(const struct bus_shown *shown, const struct property *property)
{
	return (const char *)shown + property->at;
}

static bool differs(const struct property *property, const struct bus_shown *a, const struct bus_shown *b)
{
	if (property->type == 's')
		return strcmp(value(a, property), value(b, property)) != 0;
	return memcmp(value(a, property), value(b, property), 8) != 0;
}

/* NaN, and what is beyond 0 and 1, are no progress that anyone could show. */
static double hundredths(double progress)
{
	return progress > 0 ? floor(100 * fmin(progress, 1) + 1e-9) / 100 : 0;
}

void bus_look(const struct bus *bus, struct bus_shown *out)
{
	struct bus_view view = {"", "", "", 0, "", 0, "", 0};

	bus->ops->view(bus->context, &view);
	bus_text(out->state, sizeof(out->state), view.state);
	bus_text(out->phase, sizeof(out->phase), view.phase);
	bus_text(out->reason, sizeof(out->reason), view.reason);
	bus_text(out->topology, sizeof(out->topology), view.topology);
	bus_text(out->policy_path, sizeof(out->policy_path), view.policy_path);
	out->progress = hundredths(view.progress);
	out->generation = view.generation;
	out->job = view.job;
}

static int on_get(sd_bus *connection, const char *path, const char *interface, const char *name, sd_bus_message *reply,
                  void *context, sd_bus_error *error)
{
	struct bus_shown now;

	(void)connection;
	(void)path;
	(void)interface;
	bus_look(context, &now);
	for (size_t i = 0; i < PROPERTIES; i++)
		if (strcmp(name, properties[i].name) == 0)
			return sd_bus_message_append_basic(reply, properties[i].type, value(&now, &properties[i]));
	return sd_bus_error_setf(error, SD_BUS_ERROR_UNKNOWN_PROPERTY, "no property %s", name);
}

static int on_get_version(sd_bus *connection, const char *path, const char *interface, const char *name,
                          sd_bus_message *reply, void *context, sd_bus_error *error)
{
	(void)connection;
	(void)path;
	(void)interface;
	(void)name;
	(void)context;
	(void)error;
	return sd_bus_message_append(reply, "s", PAGECLEAR_VERSION);
}

/* --- the table --------------------------------------------------------------------------------------------------- */

/* UNPRIVILEGED: sd-bus is not to look for capabilities; admit() is asked by every method instead. */
#define PROPERTY(name, type) SD_BUS_PROPERTY(name, type, on_get, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE)

static const sd_bus_vtable table[] = {
	SD_BUS_VTABLE_START(0),
	SD_BUS_METHOD_WITH_ARGS("Calibrate", SD_BUS_ARGS("s", effort), SD_BUS_RESULT("t", job), on_calibrate,
                                SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Verify", SD_BUS_ARGS("s", effort), SD_BUS_RESULT("t", job), on_verify,
                                SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD("Cancel", "", "", on_cancel, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD("Reload", "", "", on_reload, SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Rollback", SD_BUS_ARGS("t", generation), SD_BUS_RESULT("t", published), on_rollback,
                                SD_BUS_VTABLE_UNPRIVILEGED),
	SD_BUS_METHOD_WITH_ARGS("Import", SD_BUS_ARGS("h", policy), SD_BUS_RESULT("t", published), on_import,
                                SD_BUS_VTABLE_UNPRIVILEGED),
	PROPERTY("State", "s"),
	PROPERTY("Phase", "s"),
	PROPERTY("Reason", "s"),
	PROPERTY("Progress", "d"),
	PROPERTY("Job", "t"),
	PROPERTY("Topology", "s"),
	PROPERTY("Generation", "t"),
	PROPERTY("PolicyPath", "s"),
	SD_BUS_PROPERTY("Version", "s", on_get_version, 0, SD_BUS_VTABLE_PROPERTY_CONST),
	SD_BUS_SIGNAL_WITH_ARGS("CalibrationFinished", SD_BUS_ARGS("t", job, "s", outcome, "s", text), 0),
	SD_BUS_SIGNAL_WITH_ARGS("VerificationFinished",
                                SD_BUS_ARGS("t", job, "s", outcome, "x", verification, "s", text), 0),
	SD_BUS_SIGNAL_WITH_ARGS("PolicyChanged", SD_BUS_ARGS("t", generation, "s", path), 0),
	SD_BUS_VTABLE_END,
};

int bus_object_add(struct bus *bus)
{
	return sd_bus_add_object_vtable(bus->connection, &bus->object, BUS_PATH, BUS_NAME, table, bus);
}

/* --- telling ----------------------------------------------------------------------------------------------------- */

/* Those that listen can't be told: they may ask. What is wrong with the connection its end will tell. */
static void check_told(struct bus *bus, int r, const char *what)
{
	if (r < 0 && !bus->complained)
		log_warning("the bus did not take %s: %s", what, strerror(-r));
	bus->complained |= r < 0;
}

void bus_changed(struct bus *bus)
{
	char *names[PROPERTIES + 1] = {NULL};
	struct bus_shown now;
	size_t count = 0;

	if (bus == NULL || !bus->joined)
		return;
	bus_look(bus, &now);
	for (size_t i = 0; i < PROPERTIES; i++)
		if (differs(&properties[i], &bus->told, &now))
			names[count++] = (char *)properties[i].name;
	bus->told = now;
	if (count > 0)
		check_told(bus, sd_bus_emit_properties_changed_strv(bus->connection, BUS_PATH, BUS_NAME, names),
		           "PropertiesChanged");
}

/* Properties first: who gets the signal and looks sees what it led to. */
static bool is_heard(struct bus *bus)
{
	bus_changed(bus);
	return bus != NULL && bus->joined;
}

void bus_policy_changed(struct bus *bus, uint64_t generation, const char *path)
{
	char clean[sizeof(bus->told.policy_path)];

	if (!is_heard(bus))
		return;
	bus_text(clean, sizeof(clean), path);
	check_told(bus,
	           sd_bus_emit_signal(bus->connection, BUS_PATH, BUS_NAME, "PolicyChanged", "ts", generation, clean),
	           "PolicyChanged");
}

void bus_calibration_finished(struct bus *bus, uint64_t job, const char *outcome, const char *text)
{
	char word[32], clean[1024];

	if (!is_heard(bus))
		return;
	bus_text(word, sizeof(word), outcome);
	bus_text(clean, sizeof(clean), text);
	check_told(
		bus,
		sd_bus_emit_signal(bus->connection, BUS_PATH, BUS_NAME, "CalibrationFinished", "tss", job, word, clean),
		"CalibrationFinished");
}

void bus_verification_finished(struct bus *bus, uint64_t job, const char *outcome, int64_t verification,
                               const char *text)
{
	char word[32], clean[1024];

	if (!is_heard(bus))
		return;
	bus_text(word, sizeof(word), outcome);
	bus_text(clean, sizeof(clean), text);
	check_told(bus,
	           sd_bus_emit_signal(bus->connection, BUS_PATH, BUS_NAME, "VerificationFinished", "tsxs", job, word,
	                              verification, clean),
	           "VerificationFinished");
}
