/*
 * The CPUs that clear together when several threads are measured: those that share the caller's last-level cache and
 * that its affinity mask allows.
 */
#ifndef CALIBRD_CREW_H
#define CALIBRD_CREW_H

#include <stddef.h>

struct topology_set;

enum { CREW_MOST = 256 };

struct crew {
	size_t count;        /* 0: unknown; the caller's own CPU counts */
	int cpus[CREW_MOST]; /* ascending; one a logical CPU */
};

/* Of the CPU that the caller runs on, which must not be pinned yet: its mask says who may take part. root: prefix of
 * /sys, NULL: none. Where sysfs tells no cache that is shared, or what cannot be, it is that CPU alone. 0, or -errno
 * where not even the caller's CPU can be told, or memory or descriptors are short: such an hour is no fact. */
int crew_find(struct crew *out, const char *root);

/* Likewise, of a CPU and a mask that are given. More than CREW_MOST: the first of them, and that CPU. */
int crew_of(struct crew *out, const char *root, unsigned cpu, const struct topology_set *allowed);

/* Pins the calling thread to a CPU, whatever its number. 0 or -errno. */
int crew_pin(int cpu);

#endif
