/*
 * org.pageclear.Calibrd1 on the system bus: what the daemon does for others, in sd-bus. Knows no measuring; it asks its
 * owner through bus_ops. The interface is described in schema/org.pageclear.Calibrd1.xml.
 *
 * There need not be a bus: it is joined when it comes, and again after it was restarted. Methods that change anything
 * are for uid 0 alone, whatever the bus's own policy says. Not thread-safe: one event loop.
 */
#ifndef CALIBRD_BUS_H
#define CALIBRD_BUS_H

#include <stddef.h>
#include <stdint.h>
#include <systemd/sd-event.h>

#include "libpolicy/why.h"

#define BUS_NAME "org.pageclear.Calibrd1"
#define BUS_PATH "/org/pageclear/Calibrd1"

/* What properties show. Texts are never NULL and belong to the owner; they are read before its next event. */
struct bus_view {
	const char *state;  /* starting, waiting, calibrating, verifying, idle, failed */
	const char *phase;  /* in words: "pass 2 of 4"; "" while nothing runs */
	const char *reason; /* why it waits, measures or failed, in words; "" if there is nothing to say */
	double progress;    /* of the calibration or verification that runs, 0..1; 0 while none does */
	const char *topology;
	uint64_t generation;     /* of the policy that this process published or found; 0: none */
	const char *policy_path; /* "": none */
	uint64_t job;            /* that runs; 0: none */
};

/*
 * Each returns 0 or -errno with why: -EBUSY another job runs (why names it), -EINVAL what was asked for makes no sense,
 * -ENOENT nothing of that kind is there, -EPERM the configuration forbids it; of policies -ESTALE made for another
 * host, -EBADMSG, -EFBIG, -EPROTONOSUPPORT unreadable. The XML has the names of these on the bus; others are
 * Error.Failed. An empty why is replaced by strerror's words. All return at once; a job's end is told by
 * bus_calibration_finished() and bus_verification_finished().
 */
struct bus_ops {
	int (*calibrate)(void *context, const char *effort, uint64_t *job, struct pc_why *why); /* "": as configured */
	int (*verify)(void *context, const char *effort, uint64_t *job, struct pc_why *why);    /* "": quick */
	int (*cancel)(void *context, struct pc_why *why); /* -ENOENT: nothing runs or waits */
	int (*reload)(void *context, struct pc_why *why);
	int (*rollback)(void *context, uint64_t generation, uint64_t *published, struct pc_why *why);
	/* A policy's text, at most 64 KiB, from whoever measured it elsewhere. */
	int (*import)(void *context, const char *text, size_t len, uint64_t *published, struct pc_why *why);
	void (*view)(void *context, struct bus_view *out);
};

struct bus;

/* address: NULL: the system bus's. No bus there is no error: that is said in the log after a while, and when it is
 * joined. A name that is taken or refused is said there too. 0; -EINVAL of an address that is none, or -errno: no bus
 * then, ever. *out is for bus_free(), which takes a moment (0.2 s) at most. */
int bus_new(struct bus **out, sd_event *event, const char *address, const struct bus_ops *ops, void *context);
struct bus *bus_free(struct bus *bus);

/* Something of the view may have changed: tells those that listen what did (progress in whole per cent). The others do
 * so first: whoever gets their signal finds the properties up to date. Texts that are no UTF-8 or too long are mended.
 * bus may be NULL in all of these. */
void bus_changed(struct bus *bus);
void bus_policy_changed(struct bus *bus, uint64_t generation, const char *path);

/* outcome: good, noisy, emulated; failed, cancelled; text: why, in words. */
void bus_calibration_finished(struct bus *bus, uint64_t job, const char *outcome, const char *text);
/* outcome: passed, beyond; failed, cancelled. verification: its number in the database, 0: none. */
void bus_verification_finished(struct bus *bus, uint64_t job, const char *outcome, int64_t verification,
                               const char *text);

#endif
