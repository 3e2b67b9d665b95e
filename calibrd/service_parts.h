/*
 * What the service's files share: one service a process.
 *   service.c    its life: start, signals, configuration, end
 *   steps.c      what to do next, and what becomes of what went wrong
 *   looking.c    database, topology and what is known of it: which task follows from that
 *   job.c        the child that runs, whatever it measures
 *   measuring.c  a calibration; verifying.c: a verification
 *   standing.c   what others are told: systemd, the bus
 *   requests.c   what others ask for over the bus
 */
#ifndef CALIBRD_SERVICE_PARTS_H
#define CALIBRD_SERVICE_PARTS_H

#include <stdbool.h>
#include <systemd/sd-event.h>

#include "calibrd/agenda.h"
#include "calibrd/bus.h"
#include "calibrd/config.h"
#include "calibrd/log.h"
#include "calibrd/progress.h"
#include "calibrd/publish.h"
#include "calibrd/run.h"
#include "calibrd/service.h"
#include "calibrd/settle.h"
#include "calibrd/store.h"
#include "calibrd/store_place.h"
#include "calibrd/surroundings.h"
#include "calibrd/topology.h"
#include "calibrd/watch.h"

/* The child that runs, and who waits for it. */
struct job {
	enum task task; /* TASK_NONE: none runs */
	enum wish wish;
	bool stored;                    /* TASK_CALIBRATE: its outcome is in the database */
	uint64_t number;                /* as the bus tells it */
	double seconds;                 /* of measuring, that it should take */
	struct calibration calibration; /* TASK_CALIBRATE: its record */
	struct verification verification;
	struct look *before; /* at the host, when it began */
	struct run run;
	sd_event_source *records, *deadline;
};

/* What others are told. */
struct standing {
	const char *state;           /* as the bus has it */
	char phase[64], reason[640]; /* a policy's path, or all that was noisy */
	double progress;
};

/* Why what is due waits for its next try. */
struct setback {
	bool noisy; /* else it failed */
	char text[640];
};

struct service {
	struct config config;
	const struct service_options *options;
	sd_event *event;
	sd_event_source *wake; /* when the agenda is to be asked again */
	struct bus *bus;       /* NULL with --once, as watch */
	struct watch *watch;

	struct store *store; /* NULL: it could not be opened */
	struct store_place place;
	struct topology *topology;
	struct pc_document *old;  /* last published for this topology */
	char where[PUBLISH_PATH]; /* the policy that this process has published or found, "": none yet */
	uint64_t told_generation; /* what the bus was told of last ... */
	char told_path[PUBLISH_PATH];

	struct agenda agenda;
	enum effort effort; /* of the agenda's task */
	char idle[256];     /* why nothing is done though something would be due, "": nothing is */
	bool force;         /* asked for on the command line, and not done yet */
	bool again;         /* something changed while measuring: look again after it */
	struct setback setback;
	bool leaving; /* the event loop is to end */
	struct job job;
	uint64_t jobs; /* numbers given */

	struct progress progress;
	struct standing standing;
	/* What looks say that come again and again. */
	struct log_once trouble[TASKS], makeshift, withdrawal, noise, idleness;
	int status; /* what main should return */
};

/* Seconds of the clock that the agenda goes by. */
double service_now(void);

/* --- steps.c ------------------------------------------------------------------------------------------------------ */

/* Does what is due, sleeps else; --once ends when nothing is. Returns to the event loop between tasks that don't end.
 */
void service_step(struct service *service);

/* The task on the agenda could not be done, for the reason r. Said once, and tried again: what is then due follows from
 * a look. --once ends with 1. */
void service_trouble(struct service *service, int r, const struct pc_why *why);

/* A database that failed so is opened anew: that repairs it, or finds another place. */
void service_mind_store(struct service *service, int r);

/* The same for an outcome that was noisy: it is better than none, and is not the last word. */
void service_noisy(struct service *service, const char *reasons);

/* Ends the event loop; main returns status. */
void service_leave(struct service *service, int status);

/* Whatever is known may be out of date: that is looked at next, or after the job that runs. */
void service_look_soon(struct service *service, const char *reason);

/* --- looking.c ---------------------------------------------------------------------------------------------------- */

/* Opens what isn't open, finds the topology, publishes what is known of it, and puts on the agenda what is due. 0 or
 * -errno with why. */
int looking_do(struct service *service, struct pc_why *why);

/* Opens the database if it is not open, or brings it home. 0 or -errno with why. */
int looking_open(struct service *service, struct pc_why *why);

/* True if something stands in for what doesn't work: it is tried again by and by. */
bool looking_makes_do(const struct service *service);

/* 1: this host is not what it was: it is looked at anew; 0: it is. */
int looking_moved(struct service *service, struct pc_why *why);

/* What has been published meanwhile is what the next policy is compared with. 0, or -errno with why. */
int looking_refresh(struct service *service, struct pc_why *why);

/* A noisy policy is better than none, and never replaces a good one. Says so in the log. */
bool looking_worth_publishing(struct service *service, const struct calibration *calibration);

/* --- job.c -------------------------------------------------------------------------------------------------------- */

/* A quarter of the memory that is available, as configured. -ENOMEM with why: too little. */
int job_order(const struct service *service, enum order_task task, struct order *order, struct pc_why *why);

/* Starts the child and watches it; job's task and seconds are set. */
int job_start(struct service *service, const struct order *order, struct pc_why *why);

/* Kills the child if it is there, and forgets what it sent. */
void job_stop(struct service *service);

/* The one way a job goes: r 0: it is done, else why it is not; then what is due is looked at and done. */
void job_ended(struct service *service, int r, const struct pc_why *why);

/* Ends what runs before it is done. False if nothing runs. outcome, why: as the bus tells them. */
bool job_abandon(struct service *service, const char *outcome, const struct pc_why *why);

/* --- measuring.c, verifying.c: both alike ------------------------------------------------------------------------- */

/* 0 started; -errno with why. */
int measuring_start(struct service *service, enum effort effort, struct pc_why *why);
int verifying_start(struct service *service, enum effort effort, struct pc_why *why);

/* The child is done and all it sent is here: remembers it, publishes. -errno with why: nothing came of it. */
int measuring_conclude(struct service *service, struct pc_why *why);
int verifying_conclude(struct service *service, struct pc_why *why);

/* The policy names a kernel that fails its trial: nobody may use it any more. -errno with why. */
int verifying_refuted(struct service *service, const struct pc_why *finding, struct pc_why *why);

/* It ended before it was done. */
void measuring_failed(struct service *service, const char *outcome, const struct pc_why *why);
void verifying_failed(struct service *service, const char *outcome, const struct pc_why *why);

/* --- standing.c --------------------------------------------------------------------------------------------------- */

/* For systemd (STATUS=) and the bus. state: starting, waiting, calibrating, verifying, idle, failed; the text: why, in
 * words, and STATUS= behind the state's own word. */
void standing_say(struct service *service, const char *state, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void standing_progress(struct service *service);
/* The policy in force may be another. */
void standing_policy(struct service *service);
void standing_view(void *service, struct bus_view *out);

/* --- requests.c --------------------------------------------------------------------------------------------------- */

extern const struct bus_ops request_ops;

/* Reads the configuration again. 0, or -errno with why: the old one stays. */
int service_reload(struct service *service, struct pc_why *why);

#endif
