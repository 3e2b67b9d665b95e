/* The life of the daemon and of --once: one loop, see service.h. */
#include "calibrd/service.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "calibrd/clock.h"
#include "calibrd/log.h"
#include "calibrd/service_parts.h"

/* --- configuration ------------------------------------------------------------------------------------------------ */

static int override(char *path, const char *choice, const char *option, struct pc_why *why)
{
	if (choice == NULL)
		return 0;
	if (choice[0] == '\0')
		return pc_why(why, -EINVAL, "%s: expected a file's path, found nothing", option);
	if (strlen(choice) >= CONFIG_PATH)
		return pc_why(why, -ENAMETOOLONG, "%s: the path is longer than %d bytes", option, CONFIG_PATH - 1);
	strcpy(path, choice);
	return 0;
}

int service_override(struct config *config, const struct service_options *options, struct pc_why *why)
{
	int r = override(config->database, options->database, "--database", why);

	if (r == 0)
		r = override(config->policy, options->policy, "--policy", why);
	if (r == 0 && strcmp(config->database, config->policy) == 0)
		r = pc_why(why, -EINVAL, "database and policy are the same file: %s", config->policy);
	if (options->effort != NULL)
		config->effort = effort_find(options->effort);
	return r;
}

static void take_config(struct service *service, struct config *config)
{
	config_free(&service->config);
	service->config = *config;
	log_notice("configuration read again");
}

/* The database stays where it is until the next start. */
static int keep_database(const struct service *service, struct config *config, struct pc_why *why)
{
	if (strcmp(config->policy, service->config.database) == 0)
		return pc_why(why, -EINVAL, "policy: %s is the database in use", config->policy);
	if (strcmp(config->database, service->config.database) == 0)
		return 0;
	log_warning("database: %s is used until the next start", service->config.database);
	strcpy(config->database, service->config.database);
	return 0;
}

static int read_again(struct service *service, struct pc_why *why)
{
	struct config config;
	int r = config_load(&config, service->options->config_file, why);

	if (r < 0)
		return r;
	r = service_override(&config, service->options, why);
	if (r == 0)
		r = keep_database(service, &config, why);
	if (r < 0)
		config_free(&config);
	else
		take_config(service, &config);
	return r;
}

/* What the daemon began of its own accord ends where that is not wanted any more. */
static void obey(struct service *service)
{
	const struct pc_why why = {"calibrd.yaml asks not to measure"};

	if (service->job.wish == WISH_ITSELF && service->config.calibrate != CALIBRATE_AUTO)
		job_abandon(service, "cancelled", &why);
}

/* Who has the configuration read again may have mended what failed. Noise is not mended so. */
static void forgive(struct service *service)
{
	for (enum task task = TASK_NONE; task < TASKS && !service->setback.noisy; task++)
		agenda_went_well(&service->agenda, task);
}

int service_reload(struct service *service, struct pc_why *why)
{
	int r = read_again(service, why);

	if (r < 0)
		return r;
	obey(service);
	forgive(service);
	service_look_soon(service, "the configuration was read again");
	service_step(service);
	return 0;
}

/* --- signals ------------------------------------------------------------------------------------------------------ */

static int on_stop(sd_event_source *source, const struct signalfd_siginfo *info, void *context)
{
	struct service *service = context;
	const struct pc_why why = {"stopped by a signal"};
	bool calibrates = service->job.task == TASK_CALIBRATE;

	(void)source;
	(void)info;
	sd_notify(0, "STOPPING=1\nSTATUS=Stopping");
	if (job_abandon(service, "cancelled", &why))
		log_notice("stopped while %s; nothing was published", calibrates ? "measuring" : "verifying");
	service_leave(service, service->options->once ? 1 : 0);
	return 0;
}

static int on_reload(sd_event_source *source, const struct signalfd_siginfo *info, void *context)
{
	struct service *service = context;
	struct pc_why why;

	(void)source;
	(void)info;
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu", (unsigned long long)(clock_ns(CLOCK_MONOTONIC) / 1000));
	if (service_reload(service, &why) < 0)
		log_error("%s; the configuration of before stays", why.text);
	sd_notify(0, "READY=1");
	return 0;
}

/* --- what happens to the host ------------------------------------------------------------------------------------- */

/* A calibration of what this host was is worth nothing. */
static void check_topology(struct service *service)
{
	const struct pc_why moved = {"the topology changed while measuring"};
	struct pc_why why;
	int r = looking_moved(service, &why);

	if (r < 0)
		log_error("%s", why.text);
	if (r > 0 && job_abandon(service, "cancelled", &moved))
		log_notice("%s", moved.text);
}

/* A clock that was set changes when to verify: a look finds that out too. */
static void on_host(void *context, enum watch_cause cause)
{
	struct service *service = context;

	if (service->topology != NULL && cause != WATCH_POWER)
		check_topology(service);
	if (cause == WATCH_CLOCK)
		service_look_soon(service, "the clock was set, or this host slept");
	service_step(service);
}

/* --- life --------------------------------------------------------------------------------------------------------- */

static int on_begin(sd_event_source *source, void *context)
{
	(void)source;
	service_step(context);
	return 0;
}

static int watch_signals(struct service *service)
{
	sigset_t signals;
	int r;

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	r = sigprocmask(SIG_BLOCK, &signals, NULL) < 0 ? -errno : 0;
	if (r >= 0)
		r = sd_event_add_signal(service->event, NULL, SIGTERM, on_stop, service);
	if (r >= 0)
		r = sd_event_add_signal(service->event, NULL, SIGINT, on_stop, service);
	if (r >= 0)
		r = sd_event_add_signal(service->event, NULL, SIGHUP, on_reload, service);
	signal(SIGPIPE, SIG_IGN); /* a child that died early is told by its pipe */
	return r;
}

/* What only a daemon has. Neither is needed: what fails is said, and done without. */
static void join_host(struct service *service)
{
	const char *missing = NULL;
	int r = watch_new(&service->watch, service->event, on_host, service, &missing);

	if (r < 0)
		log_warning("cannot watch this host's changes: %s", strerror(-r));
	else if (missing != NULL)
		log_info("%s", missing);
	r = bus_new(&service->bus, service->event, NULL, &request_ops, service);
	if (r < 0)
		log_warning("cannot join the system bus: %s", strerror(-r));
}

static int set_up(struct service *service)
{
	int r = sd_event_default(&service->event);

	if (r >= 0)
		r = prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 ? -errno : 0;
	if (r >= 0)
		r = watch_signals(service);
	if (r >= 0)
		r = sd_event_add_defer(service->event, NULL, on_begin, service);
	if (r >= 0)
		r = sd_event_set_watchdog(service->event, true);
	if (r >= 0 && !service->options->once)
		join_host(service);
	return r;
}

static void tear_down(struct service *service)
{
	job_stop(service);
	service->bus = bus_free(service->bus);
	service->watch = watch_free(service->watch);
	sd_event_source_disable_unref(service->wake);
	for (int i = 0; i < TASKS; i++)
		log_once_over(&service->trouble[i]);
	log_once_over(&service->makeshift);
	log_once_over(&service->withdrawal);
	log_once_over(&service->noise);
	log_once_over(&service->idleness);
	pc_document_free(service->old);
	topology_free(service->topology);
	store_close(service->store);
	sd_event_unref(service->event);
	config_free(&service->config);
}

int service_run(struct config *config, const struct service_options *options)
{
	struct service service = {
		.config = *config,
		.options = options,
		.force = options->force,
		.progress = {.foreground = options->once},
		.standing = {.state = "starting"},
		.job.run = {.pid = -1, .records = -1, .orders = -1},
	};
	int r;

	agenda_start(&service.agenda, service_now());
	agenda_want(&service.agenda, TASK_LOOK, WISH_ASKED, "started");
	r = set_up(&service);
	if (r >= 0) {
		sd_notify(0, "READY=1\nSTATUS=Starting");
		r = sd_event_loop(service.event);
	}
	if (r < 0)
		log_error("the event loop ended: %s", strerror(-r));
	tear_down(&service);
	return r < 0 ? 1 : service.status;
}
