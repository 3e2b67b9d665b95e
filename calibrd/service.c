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
#include "calibrd/memory.h"
#include "calibrd/progress.h"
#include "calibrd/run.h"
#include "calibrd/settle.h"
#include "calibrd/store.h"
#include "calibrd/topology.h"
#include "calibrd/verdict.h"

/* A child that takes half as long again as it should, and half a minute, is hung. */
static const double deadline_share = 1.5, deadline_seconds = 30;

/* As calibrd.yaml has it: with less nothing beyond the caches' smallest could be measured. */
static const uint64_t least_memory = 16 << 20;

struct service {
	struct config config;
	const struct service_options *options;
	sd_event *event;
	sd_event_source *records, *deadline;
	struct store *store;
	struct topology *topology;
	struct pc_document *old; /* last published for this topology */
	struct run run;
	bool running;
	char where[PUBLISH_PATH];       /* the policy that this process has published or found, "": none yet */
	bool force;                     /* asked for on the command line, and not done yet */
	bool again;                     /* the configuration changed while measuring: look again after it */
	double seconds;                 /* budget of the calibration that runs */
	struct calibration calibration; /* the one that runs */
	struct progress progress;
	int status; /* what main should return */
};

/* --- ends -------------------------------------------------------------------------------------------------------- */

static int leave(struct service *service, int status)
{
	service->status = status;
	return sd_event_exit(service->event, 0);
}

/* A daemon that could not do its work stays, with the policy that stands; --once ends. */
static int fail(struct service *service, const struct pc_why *why)
{
	log_error("%s", why->text);
	sd_notifyf(0, "STATUS=%s", why->text);
	return service->options->once ? leave(service, 1) : 0;
}

static int rest(struct service *service)
{
	malloc_trim(0); /* a calibration's samples leave most of a megabyte that an idle daemon needn't hold */
	sd_notifyf(0, "STATUS=Idle: the policy for topology %s is %s", service->topology->id,
	           service->where[0] != '\0' ? service->where : "the one of before");
	return service->options->once ? leave(service, 0) : 0;
}

static void stop_measuring(struct service *service)
{
	progress_end(&service->progress);
	service->records = sd_event_source_disable_unref(service->records);
	service->deadline = sd_event_source_disable_unref(service->deadline);
	if (service->running)
		run_free(&service->run);
	service->running = false;
}

/* --- a calibration ends ------------------------------------------------------------------------------------------ */

static int abandon(struct service *service, const struct pc_why *why)
{
	struct pc_why trouble;

	stop_measuring(service);
	if (store_fail(service->store, service->calibration.id, why->text, &trouble) < 0)
		log_error("%s", trouble.text);
	return fail(service, why);
}

static void name_faulted(uint32_t faulted, char *text, size_t size)
{
	size_t at = 0;

	text[0] = '\0';
	for (unsigned k = 0; k < pc_kernel_count && at < size; k++)
		if ((faulted >> k & 1) != 0)
			at += (size_t)snprintf(text + at, size - at, "%s%s", at > 0 ? " " : "", pc_kernels[k].name);
	if (faulted != 0)
		log_warning("left out, since their trial failed on this host: %s", text);
}

/* A noisy policy is better than none, and never replaces a good one. */
static bool worth_publishing(const struct service *service, const struct calibration *calibration)
{
	if (strcmp(calibration->quality, "noisy") != 0 || service->old == NULL ||
	    strcmp(service->old->quality, "good") != 0)
		return true;
	log_warning("the new measurements are noisy (%s): the good policy of before stays",
	            calibration->reasons != NULL ? calibration->reasons : "no reason recorded");
	return false;
}

/* What has been published meanwhile is what the next policy is compared with, and takes its probe from. */
static int refresh_old(struct service *service, struct pc_why *why)
{
	pc_document_free(service->old);
	return settle_last(service->store, service->topology->id, &service->old, why);
}

static int remember(struct service *service, struct verdict *verdict, char *faulted, size_t faulted_size,
                    struct pc_why *why)
{
	struct run *run = &service->run;
	struct calibration *calibration = &service->calibration;
	int r;

	verdict_reach(&(struct verdict_facts){.data = &run->data,
	                                      .kernels = run->passed,
	                                      .tainted = run_tainted(run),
	                                      .emulated = strstr(service->topology->hypervisor, "TCG") != NULL},
	              verdict);
	name_faulted(run->faulted, faulted, faulted_size);
	calibration->state = CALIBRATION_DONE;
	calibration->finished = time(NULL);
	calibration->knee_bytes = run_knee(run);
	snprintf(calibration->quality, sizeof(calibration->quality), "%s", verdict->quality);
	calibration->reasons = verdict->reasons;
	calibration->faulted = faulted;
	log_info("quality: %s (%s)", verdict->quality, verdict->reasons);
	r = settle_probe(&service->config, &run->data, &run->probes, calibration, why);
	return r < 0 ? r : store_finish(service->store, calibration, &run->data, why);
}

static int publish_or_measure(struct service *service);

static int conclude(struct service *service)
{
	struct verdict verdict;
	char faulted[PC_KERNEL_MAX * PC_KERNEL_NAME];
	struct pc_why why;
	int r = 0;

	if (!settle_has_rounds(&service->run.data))
		r = pc_why(&why, -ENODATA,
		           "no sample was taken undisturbed in time: this host is too slow or too busy for effort %s",
		           service->calibration.effort);
	if (r == 0)
		r = remember(service, &verdict, faulted, sizeof(faulted), &why);
	if (r < 0)
		return abandon(service, &why);
	if (worth_publishing(service, &service->calibration))
		r = settle(&(struct settlement){.config = &service->config,
		                                .store = service->store,
		                                .topology = service->topology,
		                                .calibration = &service->calibration,
		                                .data = &service->run.data,
		                                .old = service->old,
		                                .source = "calibration",
		                                .where = service->where},
		           &why);
	if (r >= 0)
		r = refresh_old(service, &why);
	service->calibration.reasons = service->calibration.faulted = NULL;
	stop_measuring(service);
	if (r >= 0 && service->again)
		return publish_or_measure(service);
	return r < 0 ? fail(service, &why) : rest(service);
}

static int on_records(sd_event_source *source, int fd, uint32_t events, void *context)
{
	struct service *service = context;
	struct pc_why why;
	int r = run_read(&service->run, &why);

	(void)source;
	(void)fd;
	(void)events;
	if (r < 0)
		return abandon(service, &why);
	if (r == 1)
		return conclude(service);
	if (service->run.epochs > 0)
		progress_say(&service->progress, service->run.epoch, service->run.epochs, service->run.share,
		             (1 - service->run.share) * service->seconds);
	return 0;
}

static int on_deadline(sd_event_source *source, uint64_t now, void *context)
{
	struct pc_why why;

	(void)source;
	(void)now;
	pc_why_say(&why, "the measuring process did not end in time and was killed");
	return abandon(context, &why);
}

/* --- a calibration begins ---------------------------------------------------------------------------------------- */

static int make_order(const struct service *service, struct order *order, struct pc_why *why)
{
	uint64_t most = service->config.memory_most_bytes, available = memory_available(NULL) / 4;

	if (available == 0)
		return pc_why(why, -ENOMEM, "cannot tell how much memory is available: is /proc mounted?");
	if (available < least_memory)
		return pc_why(why, -ENOMEM,
		              "only %llu MiB of memory for measuring (a quarter of what is available), %llu are needed",
		              (unsigned long long)available >> 20, (unsigned long long)least_memory >> 20);

	*order = (struct order){
		.magic = ORDER_MAGIC,
		.effort = (uint32_t)service->config.effort,
		.memory_bytes = (most > 0 && most < available ? most : available) - METER_OVERHEAD,
		.l1_bytes = topology_cache_bytes(service->topology, 1),
		.l2_bytes = topology_cache_bytes(service->topology, 2),
		.llc_bytes = topology_cache_bytes(service->topology, 0),
		.seed = (uint64_t)time(NULL),
		.excluded = service->config.exclude,
		.keep = service->old != NULL ? settle_named(service->old) : 0,
		.nice = service->options->once ? 0 : 5,
	};
	return 0;
}

static int watch(struct service *service)
{
	double seconds = service->seconds * deadline_share + deadline_seconds;
	int r = sd_event_add_io(service->event, &service->records, service->run.records, EPOLLIN, on_records, service);

	if (r >= 0)
		r = sd_event_add_time_relative(service->event, &service->deadline, CLOCK_MONOTONIC,
		                               (uint64_t)(seconds * 1e6), 0, on_deadline, service);
	return r;
}

static int measure(struct service *service)
{
	struct calibration *calibration = &service->calibration;
	struct order order;
	struct pc_why why;
	int r = make_order(service, &order, &why);

	if (r < 0)
		return fail(service, &why);
	*calibration = (struct calibration){.started = time(NULL), .soft = service->topology->soft};
	snprintf(calibration->topology, sizeof(calibration->topology), "%s", service->topology->id);
	snprintf(calibration->effort, sizeof(calibration->effort), "%s", effort_limits[service->config.effort].name);
	r = store_begin(service->store, service->topology, calibration, &why);
	if (r < 0)
		return fail(service, &why);
	service->force = service->again = false;
	service->seconds = effort_limits[service->config.effort].seconds;
	log_info("measuring for about %.0f s (effort %s)", service->seconds, calibration->effort);
	service->running = true;
	r = run_start(&service->run, &order, &why);
	if (r == 0 && (r = watch(service)) < 0)
		pc_why(&why, r, "cannot watch the measuring process: %s", strerror(-r));
	return r < 0 ? abandon(service, &why) : 0;
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
	bool keep = !worth_publishing(service, known);
	int r;

	if (!settle_has_rounds(data) && service->old == NULL)
		return 0; /* nothing left of it but its name */
	r = settle(&(struct settlement){.config = &service->config,
	                                .store = service->store,
	                                .topology = service->topology,
	                                .calibration = known,
	                                .data = keep ? NULL : data,
	                                .old = service->old,
	                                .source = "restart",
	                                .where = service->where},
	           why);
	return r < 0 ? r : refresh_old(service, why);
}

/* Publishes what is known at once, even where it is to be measured again. */
static int publish_or_measure(struct service *service)
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
	dataset_clear(&data);
	store_calibration_free(&known);
	if (r < 0 || e < 0)
		return fail(service, &why);
	if (reason == NULL)
		return rest(service);
	if (service->config.calibrate == CALIBRATE_IMPORT && service->options->once) {
		pc_why_say(&why, "%s, and calibrd.yaml forbids measuring (calibrate: import)", reason);
		return fail(service, &why);
	}
	if (service->config.calibrate != CALIBRATE_AUTO && !service->options->once) {
		log_notice("%s, and calibrd.yaml asks not to measure", reason);
		sd_notifyf(0, "STATUS=Idle: %s, and calibrd.yaml asks not to measure", reason);
		return 0;
	}
	log_info("%s", reason);
	r = settle_check(&service->config, &why);
	return r < 0 ? fail(service, &why) : measure(service);
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
		return fail(service, &why);
	log_info("topology %s: %s", service->topology->id, service->topology->name);
	if (service->topology->disagreements[0] != '\0')
		log_notice("%s", service->topology->disagreements);
	if (settle_withdraw(&service->config, service->store, service->topology->id, &why) < 0)
		log_warning("%s", why.text); /* a read-only /etc, say: what is published now goes before it */
	r = refresh_old(service, &why);
	return r < 0 ? fail(service, &why) : publish_or_measure(service);
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
		stop_measuring(service);
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
		return publish_or_measure(service);
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
	stop_measuring(service);
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
