/*
 * What service.c and measuring.c share: one service a process. service.c decides what to do next, measuring.c runs one
 * calibration.
 */
#ifndef CALIBRD_SERVICE_PARTS_H
#define CALIBRD_SERVICE_PARTS_H

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "calibrd/config.h"
#include "calibrd/progress.h"
#include "calibrd/publish.h"
#include "calibrd/run.h"
#include "calibrd/service.h"
#include "calibrd/store.h"
#include "calibrd/surroundings.h"
#include "calibrd/topology.h"

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
	struct look *before;            /* at the host, when it began */
	struct progress progress;
	int status; /* what main should return */
};

/* Event handlers return what these do. */

/* Logs it. A daemon that could not do its work stays, with the policy that stands; --once ends. */
int service_fail(struct service *service, const struct pc_why *why);

/* All is done for now: a daemon waits, --once ends. */
int service_rest(struct service *service);

/* Publishes what is known of this topology, and measures where that is due. */
int service_look_again(struct service *service);

/* A noisy policy is better than none, and never replaces a good one. Says so in the log. */
bool service_worth_publishing(const struct service *service, const struct calibration *calibration);

/* What has been published meanwhile is what the next policy is compared with. 0, or -errno with why. */
int service_refresh_old(struct service *service, struct pc_why *why);

/* Starts the child and watches it. */
int measuring_start(struct service *service);

/* Ends a calibration that runs, if one does: kills the child, forgets what it measured. */
void measuring_stop(struct service *service);

#endif
