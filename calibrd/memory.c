/* Available memory; see memory.h. */
#include "calibrd/memory.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysinfo.h>

enum { PATH_BYTES = 4096, NODES_MOST = 64 };

static bool open_below(FILE **out, const char *root, const char *path)
{
	char full[PATH_BYTES];

	if (snprintf(full, sizeof(full), "%s%s", root != NULL ? root : "", path) >= (int)sizeof(full))
		return false;
	*out = fopen(full, "re");
	return *out != NULL;
}

/* The number behind `key` in a file of lines "KEY NUMBER"; an empty key: the number that the file begins with.
 * UINT64_MAX where there is none ("max"), or no such file. */
static uint64_t read_number(const char *root, const char *path, const char *key)
{
	char line[256];
	size_t skip = strlen(key);
	uint64_t value = UINT64_MAX;
	FILE *file;

	if (!open_below(&file, root, path))
		return UINT64_MAX;
	while (value == UINT64_MAX && fgets(line, sizeof(line), file) != NULL) {
		const char *at = strncmp(line, key, skip) == 0 ? line + skip + strspn(line + skip, " ") : "";

		if (isdigit((unsigned char)*at))
			value = strtoull(at, NULL, 10);
	}
	fclose(file);
	return value;
}

static uint64_t bytes_of_kib(uint64_t kib)
{
	return kib > UINT64_MAX / 1024 ? UINT64_MAX : kib * 1024;
}

/* What a node has free, and clean pages of files that nobody has read for a while: less than the kernel's own estimate.
 * UINT64_MAX where there is no such node. */
static uint64_t node_available(const char *root, unsigned node)
{
	char path[64], key[64];
	uint64_t available = 0;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%u/meminfo", node);
	for (int i = 0; i < 2; i++) {
		snprintf(key, sizeof(key), "Node %u %s:", node, i == 0 ? "MemFree" : "Inactive(file)");
		uint64_t bytes = bytes_of_kib(read_number(root, path, key));

		if (bytes > UINT64_MAX - available)
			return UINT64_MAX;
		available += bytes;
	}
	return available;
}

/* UINT64_MAX where sysfs tells of no node. */
static uint64_t nodes_available(const char *root)
{
	uint64_t sum = UINT64_MAX;

	for (unsigned node = 0; node < NODES_MOST; node++) {
		uint64_t available = node_available(root, node);

		if (available < UINT64_MAX)
			sum = sum == UINT64_MAX ? available : sum + available;
	}
	return sum;
}

/* A service with ProcSubset=pid sees no /proc/meminfo; sysfs may be hidden too. The later the more cautious. */
static uint64_t host_available(const char *root)
{
	uint64_t available = bytes_of_kib(read_number(root, "/proc/meminfo", "MemAvailable:"));
	struct sysinfo info;

	if (available == UINT64_MAX)
		available = nodes_available(root);
	if (available == UINT64_MAX && root == NULL && sysinfo(&info) == 0)
		available = (uint64_t)info.freeram * info.mem_unit;
	return available;
}

static uint64_t read_limit(const char *root, const char *cgroup, const char *name, const char *key)
{
	char path[PATH_BYTES];

	if (snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", cgroup, name) >= (int)sizeof(path))
		return UINT64_MAX;
	return read_number(root, path, key);
}

/* Beyond memory.high the kernel slows everybody in the cgroup down: it bounds as much as memory.max. Clean pages of
 * files that nobody has read for a while make room by themselves. */
static uint64_t left_in(const char *root, const char *cgroup)
{
	uint64_t max = read_limit(root, cgroup, "memory.max", ""), high = read_limit(root, cgroup, "memory.high", "");
	uint64_t most = high < max ? high : max, used = read_limit(root, cgroup, "memory.current", "");
	uint64_t idle = read_limit(root, cgroup, "memory.stat", "inactive_file");

	if (most == UINT64_MAX || used == UINT64_MAX)
		return most;
	if (idle < UINT64_MAX)
		used -= idle < used ? idle : used;
	return used < most ? most - used : 0;
}

/* The process's place in the unified hierarchy, "" for its root and where there is none. */
static void own_cgroup(const char *root, char *out, size_t size)
{
	char line[PATH_BYTES];
	FILE *file;

	out[0] = '\0';
	if (!open_below(&file, root, "/proc/self/cgroup"))
		return;
	while (fgets(line, sizeof(line), file) != NULL)
		if (strncmp(line, "0::/", 4) == 0) {
			line[strcspn(line, "\n")] = '\0';
			snprintf(out, size, "%s", line[4] == '\0' ? "" : line + 3);
		}
	fclose(file);
}

/* From the process's own cgroup up to the root: in a container the root it sees has limits too. */
uint64_t memory_available(const char *root)
{
	char cgroup[PATH_BYTES], *last;
	uint64_t least = host_available(root);

	own_cgroup(root, cgroup, sizeof(cgroup));
	do {
		uint64_t left = left_in(root, cgroup);

		if (left < least)
			least = left;
		last = strrchr(cgroup, '/');
		if (last != NULL)
			*last = '\0';
	} while (last != NULL);
	return least == UINT64_MAX ? 0 : least;
}
