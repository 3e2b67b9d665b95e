/*
 * The CPUs that clear together when several threads are measured: those that share the caller's last-level cache and
 * that its affinity mask allows.
 */
#ifndef CALIBRD_CREW_H
#define CALIBRD_CREW_H

#include <stddef.h>

enum { CREW_MOST = 256 };

struct crew {
	size_t count;        /* 0: unknown; the caller's own CPU counts */
	int cpus[CREW_MOST]; /* ascending; one a logical CPU */
};

/* Of the CPU that the caller runs on. root: prefix of /sys, NULL: none. Where sysfs tells no cache that is shared, it
 * is that CPU alone. 0, or -errno where not even the caller's CPU can be told. */
int crew_find(struct crew *out, const char *root);

#endif
