/*
 * How much memory a calibration may take without hurting anybody: cgroup limits count as much as the host's memory.
 */
#ifndef CALIBRD_MEMORY_H
#define CALIBRD_MEMORY_H

#include <stdint.h>

/* Bytes available to this process: the least of what the host and each cgroup above it have left. The host's is
 * /proc/meminfo's MemAvailable; where that is hidden what sysfs tells of its nodes, else what sysinfo(2) calls free.
 * root is a prefix of /proc and /sys for tests, NULL: none. 0 if nothing could be read. */
uint64_t memory_available(const char *root);

#endif
