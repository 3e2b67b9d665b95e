/*
 * calibrd's life: find the topology, publish what is known of it, else measure, decide, remember and publish.
 */
#ifndef CALIBRD_SERVICE_H
#define CALIBRD_SERVICE_H

#include <stdbool.h>

#include "calibrd/config.h"

struct service_options {
	bool once;                              /* in the foreground: end when the policy is published */
	bool force;                             /* measure although a valid calibration is known */
	const char *config_file;                /* read again on SIGHUP; NULL: the default places */
	const char *database, *policy, *effort; /* from the command line, over the configuration; NULL: as configured */
};

/* Runs until SIGTERM, SIGINT or, with once, until done. Returns what main should return: 0 done, 1 failed. The
 * configuration is taken over, its memory too. */
int service_run(struct config *config, const struct service_options *options);

/* Puts the command line's choices over a configuration. 0, -EINVAL or -ENAMETOOLONG with why. */
int service_override(struct config *config, const struct service_options *options, struct pc_why *why);

#endif
