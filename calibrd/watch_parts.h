/*
 * Inside the watch: for watch*.c and their tests only.
 */
#ifndef CALIBRD_WATCH_PARTS_H
#define CALIBRD_WATCH_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calibrd/watch.h"

/* --- watch.c ------------------------------------------------------------------------------------------------------ */

struct watch_times {
	uint64_t together_us, daily_us;
};

/* As watch_new(), for tests that have not got a day. */
int watch_new_timed(struct watch **out, sd_event *event, void (*told)(void *context, enum watch_cause cause),
                    void *context, const char **missing, const struct watch_times *times);

/* Something happened: it is told with whatever comes within the next half second. 0 or -errno. */
int watch_note(struct watch *watch, enum watch_cause cause);

/* What reading the clock's timer gave: 0, or errno. Notes a clock that was set, and sets the timer again. 0 or
 * -errno. */
int watch_clock_read(struct watch *watch, int error);
int watch_clock_fd(const struct watch *watch); /* -1: there is none */

/* --- watch_uevent.c ----------------------------------------------------------------------------------------------- */

/* True, and *cause, if a kernel's message "ACTION@PATH\0KEY=VALUE\0..." tells of what is watched. Pure; text is
 * distrusted and need not end in NUL. */
bool watch_uevent_parse(const char *text, size_t len, enum watch_cause *cause);

/* A socket that hears the kernel's uevents. A descriptor, or -errno. */
int watch_uevent_open(void);

/* One message. 0 *cause is told, 1 it is none of ours or not the kernel's, -EAGAIN there is none, -ENOBUFS some were
 * lost, other -errno: the socket is of no more use. */
int watch_uevent_receive(int fd, enum watch_cause *cause);

/* False in a user namespace, to which the kernel sends none. root: prefix of /proc, NULL: none. */
bool watch_uevent_may_come(const char *root);

#endif
