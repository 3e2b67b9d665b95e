/* Reads the last-level cache's CPUs; see crew.h. */
#include "calibrd/crew.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrd/topology_parts.h"

#define CPU "/sys/devices/system/cpu"

enum { INDICES = 16, MOST_TEXT = 8192 };

/* --- affinity ---------------------------------------------------------------------------------------------------- */

/* The kernel refuses sets smaller than its own, which may be larger than cpu_set_t. */
static int read_affinity(struct topology_set *allowed)
{
	int r = -EINVAL;

	for (size_t room = CPU_SETSIZE; r == -EINVAL && room <= 1u << 20; room *= 2) {
		size_t bytes = CPU_ALLOC_SIZE(room);
		cpu_set_t *set = CPU_ALLOC(room);

		if (set == NULL)
			return -ENOMEM;
		r = sched_getaffinity(0, bytes, set) < 0 ? -errno : 0;
		*allowed = (struct topology_set){0};
		for (unsigned cpu = 0; r == 0 && cpu < room; cpu++)
			if (CPU_ISSET_S(cpu, bytes, set))
				topology_set_add(allowed, cpu);
		CPU_FREE(set);
	}
	return r;
}

int crew_pin(int cpu)
{
	size_t room = (size_t)cpu + 1, bytes = CPU_ALLOC_SIZE(room);
	cpu_set_t *set;
	int r;

	if (cpu < 0)
		return -EINVAL;
	set = CPU_ALLOC(room);
	if (set == NULL)
		return -ENOMEM;
	CPU_ZERO_S(bytes, set);
	CPU_SET_S((size_t)cpu, bytes, set);
	r = sched_setaffinity(0, bytes, set) < 0 ? -errno : 0;
	CPU_FREE(set);
	return r;
}

/* --- sysfs ------------------------------------------------------------------------------------------------------- */

/* As topology_text(); 1 also if that is no number. */
static int read_number(const char *root, unsigned cpu, const char *path, unsigned long *number)
{
	char text[32], *end;
	int r = topology_text(root, text, sizeof(text), CPU "/cpu%u/%s", cpu, path);

	if (r != 0)
		return r;
	errno = 0;
	*number = strtoul(text, &end, 10);
	return text[0] < '0' || text[0] > '9' || *end != '\0' || errno != 0;
}

/* As topology_text(); 1 also if that is no list, or an empty one. */
static int read_set(const char *root, struct topology_set *set, const char *path)
{
	char text[MOST_TEXT];
	int r = topology_text(root, text, sizeof(text), "%s", path);

	if (r == 0 && (!topology_set_parse_list(set, text) || topology_set_count(set) == 0))
		r = 1;
	return r;
}

/* Index and level of the highest unified cache; 0, 1 there is none, -errno. */
static int find_last_level(const char *root, unsigned cpu, unsigned *last)
{
	unsigned long highest = 0;

	for (unsigned index = 0; index < INDICES; index++) {
		unsigned long level;
		char text[32], path[64];
		int r = topology_text(root, text, sizeof(text), CPU "/cpu%u/cache/index%u/type", cpu, index);

		if (r == 0 && strcmp(text, "Unified") == 0) {
			snprintf(path, sizeof(path), "cache/index%u/level", index);
			r = read_number(root, cpu, path, &level);
			if (r == 0 && level <= 9 && level > highest) {
				highest = level;
				*last = index;
			}
		}
		if (r < 0)
			return r;
	}
	return highest == 0;
}

/* The CPUs that share it, of those that are online. 0, 1 nobody says, -errno. */
static int read_sharing(const char *root, unsigned cpu, struct topology_set *sharing)
{
	struct topology_set online;
	unsigned index = 0;
	char path[128];
	int r = read_set(root, &online, CPU "/online");

	if (r == 0)
		r = find_last_level(root, cpu, &index);
	if (r == 0) {
		snprintf(path, sizeof(path), CPU "/cpu%u/cache/index%u/shared_cpu_list", cpu, index);
		r = read_set(root, sharing, path);
	}
	for (size_t i = 0; r == 0 && i < TOPOLOGY_SET_MAX / 64; i++)
		sharing->word[i] &= online.word[i];
	return r == 0 && !topology_set_has(sharing, cpu) ? 1 : r;
}

/* Guests have been told of one cache that spans all sockets: no cache does. False only if both packages are known.
 * 0 no, 1 yes, -errno. */
static int same_package(const char *root, unsigned a, unsigned b)
{
	static const char path[] = "topology/physical_package_id";
	unsigned long of_a = 0, of_b = 0;
	int r = read_number(root, a, path, &of_a);

	if (r == 0)
		r = read_number(root, b, path, &of_b);
	return r < 0 ? r : r > 0 || of_a == of_b;
}

/* --- the crew ---------------------------------------------------------------------------------------------------- */

static void add(struct crew *crew, unsigned cpu)
{
	if (crew->count == CREW_MOST)
		crew->count--; /* only for the caller's own, which comes last then */
	crew->cpus[crew->count++] = (int)cpu;
}

int crew_of(struct crew *out, const char *root, unsigned cpu, const struct topology_set *allowed)
{
	struct topology_set sharing;
	struct crew crew = {0};
	int r = cpu < TOPOLOGY_SET_MAX ? read_sharing(root, cpu, &sharing) : 1;

	if (r < 0)
		return r;
	if (r > 0) {
		*out = (struct crew){1, {(int)cpu}};
		return 0;
	}
	for (unsigned other = topology_set_next(&sharing, 0); other < TOPOLOGY_SET_MAX;
	     other = topology_set_next(&sharing, other + 1)) {
		bool counts = other == cpu || (topology_set_has(allowed, other) && crew.count < CREW_MOST);

		if (!counts)
			continue;
		r = same_package(root, cpu, other);
		if (r < 0)
			return r;
		if (r > 0)
			add(&crew, other);
	}
	*out = crew;
	return 0;
}

int crew_find(struct crew *out, const char *root)
{
	struct topology_set allowed;
	int cpu = sched_getcpu(), r;

	if (cpu < 0)
		return -errno;
	r = read_affinity(&allowed);
	return r < 0 ? r : crew_of(out, root, (unsigned)cpu, &allowed);
}
