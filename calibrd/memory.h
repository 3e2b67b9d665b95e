/*
 * How much memory a calibration may take without hurting anybody: cgroup limits count as much as the host's memory.
 */
#ifndef CALIBRD_MEMORY_H
#define CALIBRD_MEMORY_H

#include <stdint.h>

/* Bytes available to this process: the least of /proc/meminfo's MemAvailable and what each cgroup above it has left.
 * root is a prefix of /proc and /sys for tests, NULL: none. 0 if nothing could be read. */
uint64_t memory_available(const char *root);

#endif
