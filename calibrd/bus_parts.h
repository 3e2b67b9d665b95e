/*
 * What the files of the bus share: bus.c joins it, bus_object.c is what others see there.
 */
#ifndef CALIBRD_BUS_PARTS_H
#define CALIBRD_BUS_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <systemd/sd-bus.h>

#include "calibrd/bus.h"

/* bus_view as it goes over the bus: what was told last is compared with it. */
struct bus_shown {
	char state[32], phase[256], reason[512], topology[32], policy_path[1024];
	double progress; /* in hundredths */
	uint64_t generation, job;
};

struct bus {
	sd_event *event;
	sd_event_source *timer; /* until the next attempt, or until it is said that there is no bus */
	char *address;
	const struct bus_ops *ops;
	void *context;
	sd_bus *connection;  /* NULL: an attempt failed */
	sd_bus_slot *object; /* ours, on that connection */
	uint64_t pause_usec; /* before the next attempt */
	bool joined;         /* the name is ours */
	bool lost;           /* the connection is done with: the timer makes another */
	bool complained;     /* of the name, or of what could not be told; since it was joined last */
	struct bus_shown told;
};

/* Puts the object on the connection. 0 or -errno. */
int bus_object_add(struct bus *bus);

/* What properties show now. */
void bus_look(const struct bus *bus, struct bus_shown *out);

/* As much of a text as fits, in whole characters; D-Bus takes nothing but UTF-8: bytes that are none become '?'. */
void bus_text(char *out, size_t size, const char *text);

/* A policy's text from somebody else's descriptor, without waiting for anyone: regular files and memfds alone. *text is
 * for free(), and ends in a NUL that len does not count. 0; -EINVAL it is of another kind, empty or not open for
 * reading; -EFBIG; -ENOMEM, or -errno of fstat and pread. */
int bus_read_policy(int fd, char **text, size_t *len, struct pc_why *why);

#endif
