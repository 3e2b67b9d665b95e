/*
 * What the OS says in /sys/devices/system: caches, packages, cores, threads, nodes. What is missing or nonsense is
 * unknown; only a want of memory or descriptors is an error, since such an hour must not become a fact.
 */
#include "calibrd/topology_parts.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CPU "/sys/devices/system/cpu"

enum { INDICES = 8, MOST_TEXT = 4096 };

/* --- small files ----------------------------------------------------------------------------------------- */

static bool passes(int error)
{
	return error == EMFILE || error == ENFILE || error == ENOMEM;
}

/* O_NONBLOCK: in a tree of somebody else's making a name may be a pipe. */
static int read_file(const char *path, char *text, size_t size)
{
	size_t len = 0;
	ssize_t got = 1;
	int error = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	text[0] = '\0';
	if (fd < 0)
		return passes(errno) ? -errno : 1;
	while (got > 0 && len < size - 1) {
		got = read(fd, text + len, size - 1 - len);
		if (got < 0 && errno == EINTR)
			got = 1;
		else if (got < 0)
			error = passes(errno) ? -errno : 1;
		else
			len += (size_t)got;
	}
	close(fd);
	while (len > 0 && isspace((unsigned char)text[len - 1]))
		len--;
	text[len] = '\0';
	return error;
}

int topology_text(const char *root, char *text, size_t size, const char *format, ...)
{
	char path[PATH_MAX];
	size_t used = (size_t)snprintf(path, sizeof(path), "%s", root != NULL ? root : "");
	va_list arguments;
	int len = -1;

	text[0] = '\0';
	if (used < sizeof(path)) {
		va_start(arguments, format);
		len = vsnprintf(path + used, sizeof(path) - used, format, arguments);
		va_end(arguments);
	}
	if (len < 0 || used + (size_t)len >= sizeof(path))
		return -ENAMETOOLONG;
	return read_file(path, text, size);
}

static bool parse_number(const char *text, char **end, uint64_t *number)
{
	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	*number = strtoull(text, end, 10);
	return errno == 0;
}

/* What a file in a CPU's folder says as a number. As topology_text(); 1 also if that is none. */
static int cpu_number(const char *root, unsigned cpu, const char *name, uint64_t *number)
{
	char text[64], *end;
	int result = topology_text(root, text, sizeof(text), CPU "/cpu%u/%s", cpu, name);

	if (result == 0 && (!parse_number(text, &end, number) || *end != '\0'))
		result = 1;
	return result;
}

/* --- which CPUs and nodes there are ---------------------------------------------------------------------- */

/* Folders BELOW/PREFIXn, where the file that lists them is missing. */
static int folders(const char *root, const char *below, const char *prefix, struct topology_set *set)
{
	char path[PATH_MAX];
	const struct dirent *entry;
	DIR *folder;

	snprintf(path, sizeof(path), "%s%s", root != NULL ? root : "", below);
	folder = opendir(path);
	if (folder == NULL)
		return passes(errno) ? -errno : 0;
	while ((entry = readdir(folder)) != NULL) {
		uint64_t number;
		char *end;

		if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
		    parse_number(entry->d_name + strlen(prefix), &end, &number) && *end == '\0' &&
		    number < TOPOLOGY_SET_MAX)
			topology_set_add(set, (unsigned)number);
	}
	closedir(folder);
	return 0;
}

static int read_members(const char *root, const char *below, const char *prefix, struct topology_set *set)
{
	char text[MOST_TEXT];
	int result = topology_text(root, text, sizeof(text), "%s/online", below);

	if (result < 0 || (result == 0 && topology_set_parse_list(set, text) && topology_set_count(set) > 0))
		return result;
	memset(set, 0, sizeof(*set));
	return folders(root, below, prefix, set);
}

/* --- packages and cores ---------------------------------------------------------------------------------- */

/* For each CPU its package and its core, or -1. */
struct places {
	int64_t package[TOPOLOGY_SET_MAX], core[TOPOLOGY_SET_MAX], sorted[TOPOLOGY_SET_MAX];
};

static int compare_ids(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/* Different ids over all CPUs that are online; 0 if one of them is not known. */
static unsigned count_distinct(const struct topology_set *online, const int64_t *id_of_cpu, int64_t *sorted)
{
	size_t count = 0;
	unsigned distinct = 0;

	for (unsigned cpu = topology_set_next(online, 0); cpu < TOPOLOGY_SET_MAX;
	     cpu = topology_set_next(online, cpu + 1))
		sorted[count++] = id_of_cpu[cpu];
	qsort(sorted, count, sizeof(*sorted), compare_ids);
	if (count > 0 && sorted[0] < 0)
		return 0;
	for (size_t i = 0; i < count; i++)
		distinct += i == 0 || sorted[i] != sorted[i - 1];
	return distinct;
}

/* Siblings name a core for sure; core_id is unique within a package only, and within a die on some. */
static int read_core(const char *root, unsigned cpu, int64_t package, int64_t *core)
{
	char text[MOST_TEXT];
	struct topology_set siblings;
	uint64_t id, die = 0;
	int result = topology_text(root, text, sizeof(text), CPU "/cpu%u/topology/thread_siblings_list", cpu);

	*core = -1;
	if (result < 0)
		return result;
	if (result == 0 && topology_set_parse_list(&siblings, text) && topology_set_has(&siblings, cpu)) {
		*core = topology_set_next(&siblings, 0);
		return 0;
	}
	result = cpu_number(root, cpu, "topology/core_id", &id);
	if (result != 0 || package < 0 || id > UINT16_MAX)
		return result < 0 ? result : 0;
	result = cpu_number(root, cpu, "topology/die_id", &die);
	*core = (int64_t)(UINT64_C(1) << 56 | (uint64_t)package << 32 | (die & UINT16_MAX) << 16 | id);
	return result < 0 ? result : 0;
}

static int read_places(const char *root, const struct topology_set *online, struct places *places)
{
	for (unsigned cpu = topology_set_next(online, 0); cpu < TOPOLOGY_SET_MAX;
	     cpu = topology_set_next(online, cpu + 1)) {
		uint64_t package;
		int result = cpu_number(root, cpu, "topology/physical_package_id", &package);

		if (result < 0)
			return result;
		places->package[cpu] = result == 0 && package <= UINT16_MAX ? (int64_t)package : -1;
		result = read_core(root, cpu, places->package[cpu], &places->core[cpu]);
		if (result < 0)
			return result;
	}
	return 0;
}

/* --- caches ---------------------------------------------------------------------------------------------- */

/* "32K", "8M"; 0 for what is no size. */
static uint64_t parse_size(const char *text)
{
	uint64_t number;
	char *end;
	unsigned shift = 0;

	if (!parse_number(text, &end, &number))
		return 0;
	if (*end != '\0') {
		static const char units[] = "KMGT";
		const char *unit = strchr(units, *end);

		if (unit == NULL || end[1] != '\0')
			return 0;
		shift = 10 * (unsigned)(unit - units + 1);
	}
	return number > UINT64_MAX >> shift ? UINT64_MAX : number << shift;
}

/* CPUs that share it: as a list, else as a map. */
static int read_sharing(const char *root, unsigned cpu, unsigned index, struct topology_set *set)
{
	char text[MOST_TEXT];
	int result = topology_text(root, text, sizeof(text), CPU "/cpu%u/cache/index%u/shared_cpu_list", cpu, index);

	if (result < 0 || (result == 0 && text[0] != '\0' && topology_set_parse_list(set, text)))
		return result;
	result = topology_text(root, text, sizeof(text), CPU "/cpu%u/cache/index%u/shared_cpu_map", cpu, index);
	if (result == 0 && !topology_set_parse_map(set, text))
		result = 1;
	return result;
}

/* A cache can't be shared by CPUs that aren't there, nor reach from one package into another. */
static bool sharing_is_absurd(const struct topology_set *set, const struct topology_set *online,
                              const struct places *places)
{
	int64_t package = -1;

	for (unsigned cpu = topology_set_next(set, 0); cpu < TOPOLOGY_SET_MAX; cpu = topology_set_next(set, cpu + 1)) {
		if (!topology_set_has(online, cpu))
			return true;
		if (package >= 0 && places->package[cpu] >= 0 && places->package[cpu] != package)
			return true;
		if (package < 0)
			package = places->package[cpu];
	}
	return false;
}

static unsigned small(uint64_t number)
{
	return number > UINT_MAX ? UINT_MAX : (unsigned)number;
}

/* Reads a number below a cache's folder into *number, 0 where there is none. 0 or -errno. */
static int cache_number(const char *root, unsigned cpu, unsigned index, const char *name, unsigned *number)
{
	char path[64];
	uint64_t value = 0;
	int result;

	snprintf(path, sizeof(path), "cache/index%u/%s", index, name);
	result = cpu_number(root, cpu, path, &value);
	*number = result == 0 ? small(value) : 0;
	return result < 0 ? result : 0;
}

/* 0 read, 1 there is no such cache, -errno. */
static int read_cache(const char *root, unsigned cpu, unsigned index, struct topology_cache *cache)
{
	char text[64];
	int result = topology_text(root, text, sizeof(text), CPU "/cpu%u/cache/index%u/type", cpu, index);

	*cache = (struct topology_cache){0};
	if (result == 0)
		result = cache_number(root, cpu, index, "level", &cache->level);
	else
		return result;
	cache->type = strcmp(text, "Data") == 0 ? 'D' : strcmp(text, "Instruction") == 0 ? 'I' : 'U';
	if (result < 0 || cache->level < 1 || cache->level > 9 || (cache->type == 'U' && strcmp(text, "Unified") != 0))
		return result < 0 ? result : 1;
	result = topology_text(root, text, sizeof(text), CPU "/cpu%u/cache/index%u/size", cpu, index);
	cache->bytes = result == 0 ? parse_size(text) : 0;
	if (result >= 0)
		result = cache_number(root, cpu, index, "coherency_line_size", &cache->line);
	if (result == 0)
		result = cache_number(root, cpu, index, "ways_of_associativity", &cache->ways);
	return result;
}

static int read_caches_of(struct topology *topology, const char *root, unsigned cpu, const struct topology_set *online,
                          const struct places *places)
{
	struct topology_cache below = {0};

	for (unsigned index = 0; index < INDICES; index++) {
		struct topology_cache cache;
		struct topology_set sharing;
		int result = read_cache(root, cpu, index, &cache);

		if (result < 0)
			return result;
		if (result > 0)
			continue;
		result = read_sharing(root, cpu, index, &sharing);
		if (result < 0)
			return result;
		if (result == 0 && topology_set_has(&sharing, cpu))
			cache.shared_cpus = topology_set_count(&sharing);
		if (result == 0 && sharing_is_absurd(&sharing, online, places))
			cache.shared_cpus = UINT_MAX;
		topology_cache_judge(&cache, &below, topology->threads);
		topology_cache_add(topology, &cache);
	}
	return 0;
}

int topology_sysfs_read(struct topology *topology, const char *root, struct topology_set *online)
{
	struct topology_set nodes = {0};
	struct places *places;
	int result = read_members(root, CPU, "cpu", online);

	if (result >= 0)
		result = read_members(root, "/sys/devices/system/node", "node", &nodes);
	if (result < 0)
		return result;
	topology->threads = topology_set_count(online);
	topology->numa_nodes = topology_set_count(&nodes);
	places = calloc(1, sizeof(*places));
	if (places == NULL)
		return -ENOMEM;
	result = read_places(root, online, places);
	topology->packages = count_distinct(online, places->package, places->sorted);
	topology->physical_cores = count_distinct(online, places->core, places->sorted);
	for (unsigned cpu = topology_set_next(online, 0); result >= 0 && cpu < TOPOLOGY_SET_MAX;
	     cpu = topology_set_next(online, cpu + 1))
		result = read_caches_of(topology, root, cpu, online, places);
	free(places);
	return result < 0 ? result : 0;
}
