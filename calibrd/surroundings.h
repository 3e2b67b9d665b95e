/*
 * What else went on on the host during a calibration: other processes, pressure, quotas, stolen time, the clock's
 * keepers. The parent looks before and after; what happened is the difference. Judges nothing.
 */
#ifndef CALIBRD_SURROUNDINGS_H
#define CALIBRD_SURROUNDINGS_H

#include <stddef.h>
#include <stdint.h>

#include "calibrd/host_files.h"
#include "calibrd/taints.h"

/* --- one look (surroundings_look.c) ------------------------------------------------------------------------------ */

enum { LOOK_LEVELS = 16, LOOK_GROUP = 1024 };

/* Of one CPU since the boot, in seconds. */
struct look_cpu {
	double busy, stolen; /* NaN: no such CPU, or offline */
};

struct look {
	double at;        /* seconds of CLOCK_MONOTONIC */
	double own;       /* CPU seconds of this process and of its children that have ended */
	size_t cpu_count; /* of cpus: the highest number and one; 0: unknown */
	struct look_cpu *cpus;
	double some[PRESSURES];        /* seconds in which at least one task waited for it; NaN: unknown */
	double full[PRESSURES];        /* in which all did */
	char group[LOOK_GROUP];        /* this process's place in the hierarchy of cgroups that bounds CPU time */
	double throttled[LOOK_LEVELS]; /* seconds, of that group and those above it; NaN: not told */
	double quota;                  /* CPUs, the least of all levels; INFINITY: none; NaN: unknown */
	double load;                   /* average of the last minute, NaN: unknown */
	int turbo, mains;              /* 1 yes, 0 no, -1 unknown */
};

/* root: prefix of /proc and /sys, NULL: none. What is missing or hidden is unknown. 0; -errno of want: no memory, no
 * descriptors. */
int look_new(struct look **out, const char *root);
struct look *look_free(struct look *look);

/* --- the difference of two (surroundings.c) ---------------------------------------------------------------------- */

enum { GOVERNOR_TEXT = 24 };

/* Shares are of the time between the two looks, 0 to 1; NaN: unknown. */
struct surroundings {
	double seconds;
	/* What other processes ran: on the other threads of the measuring CPU's core, on the other CPUs of its
	 * last-level cache, on all other CPUs. As much as all of them busy all the time is 1. */
	double busy_core, busy_cache, busy_host;
	double stolen;    /* by the hypervisor from the measuring CPU; if that is not known, from all of them */
	double throttled; /* by a quota, at the worst level; several CPUs may be throttled at the same time: at most 1
	                   */
	double quota;     /* CPUs, the lower of both looks; INFINITY: none; NaN: unknown */
	double some[PRESSURES], full[PRESSURES];
	double load_before, load_after; /* no shares */
	char governor[GOVERNOR_TEXT];   /* of the measuring CPU, at the end; "": unknown */
	double mhz, most_mhz;           /* likewise; NaN: unknown */
	int turbo, mains;               /* 1 yes, 0 no (at one look at least), -1 unknown */
};

/* cpu: that was measured on, -1: unknown. Reads that CPU's neighbours and clock under root. 0; -errno as
 * above. */
int surroundings_find(struct surroundings *out, const struct look *before, const struct look *after, int cpu,
                      const char *root);

enum { SURROUNDINGS_TEXT = 1024 };

/* All of it, and what the meter counted (NULL: unknown), as lines "name=value"; the unknown is "unknown". Pure. */
void surroundings_text(const struct surroundings *around, const struct taints *taints, char text[SURROUNDINGS_TEXT]);

#endif
