/* The daemon and --once: one loop, see service.h. */
#include "calibrd/service.h"

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <time.h>

#include "calibrd/log.h"
#include "calibrd/rollback.h"
#include "calibrd/service_parts.h"
#include "calibrd/settle.h"

/* --- ends -------------------------------------------------------------------------------------------------------- */

static int leave(struct service *service, int status)
{
	service->status = status;
	return sd_event_exit(service->event, 0);
}

int service_fail(struct service *service, const struct pc_why *why)
{
	log_error("%s", why->text);
	sd_notifyf(0, "STATUS=%s", why->text);
	return service->options->once ? leave(service, 1) : 0;
}

int service_rest(struct service *service)
{
	malloc_trim(0); /* a calibration's samples leave most of a megabyte that an idle daemon needn't hold */
	sd_notifyf(0, "STATUS=Idle: the policy for topology %s is %s", service->topology->id,
	           service->where[0] != '\0' ? service->where : "the one of before");
	return service->options->once ? leave(service, 0) : 0;
}

bool service_worth_publishing(const struct service *service, const struct calibration *calibration)
{
	if (strcmp(calibration->quality, "noisy") != 0 || service->old == NULL ||
	    strcmp(service->old->quality, "good") != 0)
		return true;
	log_warning("the new measurements are noisy (%s): the good policy of before stays",
	            calibration->reasons != NULL ? calibration->reasons : "no reason recorded");
	return false;
}

int service_refresh_old(struct service *service, struct pc_why *why)
{
	pc_document_free(service->old);
	return settle_last(service->store, service->topology->id, &service->old, why);
}

/* --- start ------------------------------------------------------------------------------------------------------- */

/* A remembered calibration needs no repetition if nothing it rests on has changed. NULL, or why it does. */
static const char *outdated(const struct service *service, const struct calibration *known, const struct dataset *data)
{
	if (service->force)
		return "asked to measure again";
	if (effort_find(known->effort) == EFFORTS || effort_find(known->effort) < service->config.effort)
		return "the known calibration was made with less effort";
	if (strcmp(known->quality, "noisy") == 0)
		return "the known calibration is noisy";
	if (known->soft == NULL || strcmp(known->soft, service->topology->soft) != 0)
		return "the system's software or kernels changed since the known calibration";
	if (!settle_has_rounds(data))
		return "the samples of the known calibration are no longer kept";
	if (settle_unmeasured(data, known, &service->config) != 0)
		return "kernels that may be chosen here were not measured then";
	return NULL;
}

static int publish_known(struct service *service, const struct calibration *known, const struct dataset *data,
                         struct pc_why *why)
{
	struct settlement what = {.config = &service->config,
	                          .store = service->store,
	                          .topology = service->topology,
	                          .calibration = known,
	                          .data = service_worth_publishing(service, known) ? data : NULL,
	                          .old = service->old,
	                          .source = "restart",
	                          .where = service->where};

	if (!settle_has_rounds(data) && service->old == NULL)
		return 0; /* nothing left of it but its name */
	int r = rollback_stand(&what, why);
	if (r == 2)
		r = settle(&what, why);
	return r < 0 ? r : service_refresh_old(service, why);
}

int service_look_again(struct service *service)
{
	struct calibration known = {0};
	struct dataset data = {0};
	struct pc_why why;
	const char *reason = "this topology has not been measured yet";
	int r = store_latest(service->store, service->topology->id, &known, &why), e = 0;

	if (r == 0)
		e = store_series(service->store, known.id, &data, &why);
	if (r == 0 && e == 0) {
		reason = outdated(service, &known, &data);
		e = publish_known(service, &known, &data, &why);
	}
	if (e == -ENODATA) {
		reason = "nothing can be decided from the known calibration";
		e = 0;
	}
	dataset_clear(&data);
	store_calibration_free(&known);
	if (r < 0 || e < 0)
		return service_fail(service, &why);
	if (reason == NULL)
		return service_rest(service);
	if (service->config.calibrate == CALIBRATE_IMPORT && service->options->once) {
		pc_why_say(&why, "%s, and calibrd.yaml forbids measuring (calibrate: import)", reason);
		return service_fail(service, &why);
	}
	if (service->config.calibrate != CALIBRATE_AUTO && !service->options->once) {
		log_notice("%s, and calibrd.yaml asks not to measure", reason);
		sd_notifyf(0, "STATUS=Idle: %s, and calibrd.yaml asks not to measure", reason);
		return 0;
	}
	log_info("%s", reason);
	r = settle_check(&service->config, &why);
	return r < 0 ? service_fail(service, &why) : measuring_start(service);
}

static int on_begin(sd_event_source *source, void *context)
{
	struct service *service = context;
	struct pc_why why;
	int r;

	(void)source;
	sd_notify(0, "STATUS=Finding the topology");
	r = topology_detect(&service->topology, &(struct topology_source){0}, &why);
	if (r < 0)
		return service_fail(service, &why);
	log_info("topology %s: %s", service->topology->id, service->topology->name);
	if (service->topology->disagreements[0] != '\0')
		log_notice("%s", service->topology->disagreements);
	if (settle_withdraw(&service->config, service->store, service->topology->id, &why) < 0)
		log_warning("%s", why.text); /* a read-only /etc, say: what is published now goes before it */
	r = service_refresh_old(service, &why);
	return r < 0 ? service_fail(service, &why) : service_look_again(service);
}

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

/* --- signals ----------------------------------------------------------------------------------------------------- */

static int on_stop(sd_event_source *source, const struct signalfd_siginfo *info, void *context)
{
	struct service *service = context;
	struct pc_why why;
	int status = service->options->once ? 1 : 0;

	(void)source;
	(void)info;
	sd_notify(0, "STOPPING=1\nSTATUS=Stopping");
	if (service->running) {
		pc_why_say(&why, "stopped by a signal");
		measuring_stop(service);
		if (store_fail(service->store, service->calibration.id, why.text, &why) < 0)
			log_error("%s", why.text);
		log_notice("stopped while measuring; nothing was published");
	}
	return leave(service, status);
}

static void take_config(struct service *service, struct config *config)
{
	if (strcmp(config->database, service->config.database) != 0) {
		log_warning("database: %s is used until the next start", service->config.database);
		strcpy(config->database, service->config.database);
	}
	config_free(&service->config);
	service->config = *config;
	log_notice("configuration read again");
}

static int on_reload(sd_event_source *source, const struct signalfd_siginfo *info, void *context)
{
	struct service *service = context;
	struct config config;
	struct pc_why why;
	struct timespec now;
	int r;

	(void)source;
	(void)info;
	clock_gettime(CLOCK_MONOTONIC, &now);
	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu",
	           (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000);
	r = config_load(&config, service->options->config_file, &why);
	if (r == 0 && (r = service_override(&config, service->options, &why)) < 0)
		config_free(&config);
	if (r == 0)
		take_config(service, &config);
	else
		log_error("%s; the configuration of before stays", why.text);
	sd_notify(0, "READY=1");
	service->again = r == 0 && service->running;
	if (r == 0 && !service->running && service->topology != NULL)
		return service_look_again(service);
	return 0;
}

/* --- life -------------------------------------------------------------------------------------------------------- */

static int set_up(struct service *service)
{
	sigset_t signals;
	int r = sd_event_default(&service->event);

	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	if (r >= 0)
		r = sigprocmask(SIG_BLOCK, &signals, NULL) < 0 ? -errno : 0;
	if (r >= 0)
		r = sd_event_add_signal(service->event, NULL, SIGTERM, on_stop, service);
	if (r >= 0)
		r = sd_event_add_signal(service->event, NULL, SIGINT, on_stop, service);
	if (r >= 0)
		r = sd_event_add_signal(service->event, NULL, SIGHUP, on_reload, service);
	if (r >= 0)
		r = sd_event_add_defer(service->event, NULL, on_begin, service);
	if (r >= 0)
		r = sd_event_set_watchdog(service->event, true);
	signal(SIGPIPE, SIG_IGN); /* a child that died early is told by its pipe */
	return r;
}

static int open_store(struct service *service)
{
	char renamed[512];
	struct pc_why why;
	int r = store_open(&service->store, service->config.database, STORE_WRITE, renamed, &why);

	if (r < 0) {
		log_error("%s", why.text);
		return r;
	}
	if (renamed[0] != '\0')
		log_warning("%s was damaged: it is kept as %s, and a new one begun", service->config.database, renamed);
	return 0;
}

static void tear_down(struct service *service)
{
	measuring_stop(service);
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
		.run = {.pid = -1, .records = -1, .orders = -1},
	};
	int r = open_store(&service);

	if (r == 0)
		r = set_up(&service);
	if (r >= 0) {
		sd_notify(0, "READY=1\nSTATUS=Starting");
		r = sd_event_loop(service.event);
		if (r < 0)
			log_error("the event loop ended: %s", strerror(-r));
	}
	tear_down(&service);
	return r < 0 ? 1 : service.status;
}
