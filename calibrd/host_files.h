/*
 * Small facts that /proc and /sys tell of the host at one moment: pressure, load, what feeds it. Shared by the looks of
 * a calibration (surroundings_look.c) and by the question whether to begin one (conditions.c). Judges nothing.
 *
 * root: prefix of /proc and /sys, NULL: none. What is missing, hidden or nonsense is unknown.
 */
#ifndef CALIBRD_HOST_FILES_H
#define CALIBRD_HOST_FILES_H

enum pressure { PRESSURE_CPU, PRESSURE_MEMORY, PRESSURE_IO, PRESSURES };

/* NaN: unknown. */
struct host_pressure {
	double some_percent; /* of the last 10 s in which at least one task waited for it */
	double some, full;   /* seconds since the boot in which at least one did, in which all did */
};

/* These return 0, 1 unknown, -errno of want (no memory, no descriptors): such an hour is no fact. */
int host_pressure(struct host_pressure *out, enum pressure which, const char *root);
int host_load(double *load, const char *root); /* average of the last minute, NaN: unknown */

/* 1: on mains power, 0: on battery, -1: has no battery, or nothing tells. */
int host_mains(const char *root);

#endif
