/* Puts the facts together: who is asked, and who is believed. */
#include "calibrd/topology.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#if defined(__GLIBC__)
#include <gnu/libc-version.h>
#endif

#include "calibrd/topology_parts.h"
#include "kernels/cpu.h"

enum { MOST_DUMP = 4 << 20 };

/* What was found out before it is put together. */
struct findings {
	const char *root, *raw_file;
	bool ask_os;               /* sysfs and /proc speak of the CPU in question */
	struct topology_dump dump; /* of raw_file, else of this CPU without types of cores */
	struct topology_cpuid cpuid;
	enum topology_outcome outcome;
	struct topology_set online;
};

/* --- the CPU --------------------------------------------------------------------------------------------- */

static int read_dump(struct findings *found, struct pc_why *why)
{
	char *text = malloc(MOST_DUMP);
	int result;

	if (text == NULL)
		return pc_why(why, -ENOMEM, "%s: out of memory", found->raw_file);
	result = topology_text(NULL, text, MOST_DUMP, "%s", found->raw_file);
	if (result > 0)
		result = pc_why(why, -ENOENT, "%s: can't be read", found->raw_file);
	else if (result < 0)
		pc_why(why, result, "%s: %s", found->raw_file, strerror(-result));
	else if (topology_dump_parse(&found->dump, text) != 0)
		result = pc_why(why, -EBADMSG, "%s: there is no CPUID in it", found->raw_file);
	free(text);
	return result;
}

static int ask_libcpuid(struct topology *topology, struct findings *found, struct pc_why *why)
{
	struct topology_report end;
	int result = topology_cpuid_ask(&found->cpuid, &topology->raw, &found->outcome, &end, found->raw_file);

	if (result < 0)
		return pc_why(why, result, "a child for libcpuid: %s", strerror(-result));
	if (found->outcome == TOPOLOGY_ABSENT)
		topology_say(topology, "libcpuid can't be asked: %s.", found->cpuid.trouble);
	else if (found->outcome == TOPOLOGY_SILENT)
		topology_say(topology, "libcpuid did not identify this CPU.");
	else if (found->outcome == TOPOLOGY_KILLED && end.signal != 0)
		topology_say(topology, "libcpuid died of signal %d.", end.signal);
	else if (found->outcome == TOPOLOGY_KILLED)
		topology_say(topology, "libcpuid %s.",
		             end.end == TOPOLOGY_HUNG ? "did not answer in time" : "sent nonsense");
	return 0;
}

/* As the CPUID leaves would have it, see kernels/cpuid.c. */
static void sign(const struct topology_cpuid_type *type, char *text, size_t size)
{
	snprintf(text, size, "%s %d/%d/%d", type->vendor, type->family, type->model, type->stepping);
}

static unsigned known(int32_t number)
{
	return number > 0 ? (unsigned)number : 0;
}

/* --- cores ----------------------------------------------------------------------------------------------- */

static void cores_from_libcpuid(struct topology *topology, const struct findings *found)
{
	for (uint32_t i = 0; i < found->cpuid.type_count; i++) {
		const struct topology_cpuid_type *type = &found->cpuid.types[i];
		char signature[48];

		sign(type, signature, sizeof(signature));
		topology_core_add(topology->cores, &topology->core_count, signature, type->kind, known(type->threads));
	}
}

/* Where neither the OS nor libcpuid told: the dump's own leaves, or the CPU that this runs on. */
static void cores_from_leaves(struct topology *topology, const struct findings *found)
{
	char signature[48];

	if (found->raw_file != NULL) {
		memcpy(topology->cores, found->dump.cores, sizeof(topology->cores));
		topology->core_count = found->dump.core_count;
		/* Old dumps show one CPU of however many. */
		if (found->dump.cpus == 1)
			topology->cores[0].cpus = 0;
		return;
	}
	pc_cpu_signature(signature, sizeof(signature));
	topology_core_add(topology->cores, &topology->core_count, signature, '-', 0);
}

static bool has_signature(const struct topology *topology, const char *signature)
{
	for (size_t i = 0; i < topology->core_count; i++)
		if (strcmp(topology->cores[i].signature, signature) == 0)
			return true;
	return false;
}

/*
 * The OS knows every CPU that is online, whereas libcpuid reads only those that it may run on: the OS first, so that
 * the key does not depend on where we may run.
 */
static void settle_cores(struct topology *topology, const struct findings *found)
{
	if (found->raw_file != NULL)
		topology->core_count = 0;
	for (uint32_t i = 0; topology->core_count > 0 && i < found->cpuid.type_count; i++) {
		char signature[48];

		sign(&found->cpuid.types[i], signature, sizeof(signature));
		if (!has_signature(topology, signature))
			topology_say(topology, "libcpuid sees a core %s, the OS none.", signature);
	}
	if (topology->core_count == 0)
		cores_from_libcpuid(topology, found);
	if (topology->core_count == 0)
		cores_from_leaves(topology, found);
	if (topology->core_count == 1 && topology->threads != 0)
		topology->cores[0].cpus = topology->threads;
}

/* --- counts ---------------------------------------------------------------------------------------------- */

static void compare_count(struct topology *topology, const char *what, unsigned libcpuid, unsigned os)
{
	if (libcpuid != 0 && os != 0 && libcpuid != os)
		topology_say(topology, "%s: libcpuid says %u, sysfs %u.", what, libcpuid, os);
}

/*
 * What the OS tells stands, and what it does not tell beside it stays unknown: libcpuid's counts depend on how many
 * CPUs it was let onto, and are worth comparing only where that was all of them.
 */
static void settle_counts(struct topology *topology, const struct findings *found)
{
	unsigned cores = 0, threads = 0;

	for (uint32_t i = 0; i < found->cpuid.type_count; i++) {
		cores += known(found->cpuid.types[i].cores);
		threads += known(found->cpuid.types[i].threads);
	}
	if (topology->threads == 0 && threads == 0 && found->raw_file != NULL && found->dump.cpus > 1) {
		topology->threads = found->dump.cpus;
	} else if (topology->threads == 0) {
		topology->physical_cores = cores;
		topology->threads = threads;
	} else if (found->cpuid.cpus_read == topology->threads) {
		compare_count(topology, "Cores", cores, topology->physical_cores);
		compare_count(topology, "Threads", threads, topology->threads);
	}
}

/* --- caches ---------------------------------------------------------------------------------------------- */

static const struct {
	unsigned level;
	char type;
} places[TOPOLOGY_LEVELS] = {{1, 'D'}, {1, 'I'}, {2, 'U'}, {3, 'U'}, {4, 'U'}};

/* L1 and L2 belong to the cores of a type; what is above serves all types that have it. */
static unsigned sharing(const struct topology_cpuid *cpuid, uint32_t type, size_t level)
{
	const unsigned instances = known(cpuid->types[type].caches[level].instances);
	unsigned cpus = 0;

	for (uint32_t i = 0; i < cpuid->type_count; i++)
		if (i == type || (level > TOPOLOGY_L2 && cpuid->types[i].caches[level].kib > 0))
			cpus += known(cpuid->types[i].threads);
	return instances != 0 && cpus % instances == 0 ? cpus / instances : 0;
}

/* False: libcpuid knows of no such cache. */
static bool libcpuid_cache(const struct topology_cpuid *cpuid, uint32_t type, size_t level,
                           struct topology_cache *cache)
{
	const struct topology_cpuid_cache *told = &cpuid->types[type].caches[level];

	*cache = (struct topology_cache){
		.level = places[level].level,
		.type = places[level].type,
		.bytes = (uint64_t)known(told->kib) << 10,
		.line = known(told->line),
		.ways = known(told->ways),
		.shared_cpus = sharing(cpuid, type, level),
	};
	return cache->bytes != 0;
}

/* How many CPUs share them libcpuid works out from the CPUs it was let onto: in a dump they stay the same. */
static void caches_from_libcpuid(struct topology *topology, const struct findings *found)
{
	const struct topology_cpuid *cpuid = &found->cpuid;

	for (uint32_t type = 0; type < cpuid->type_count; type++) {
		struct topology_cache below = {0}, cache;

		for (size_t level = 0; level < TOPOLOGY_LEVELS; level++)
			if (libcpuid_cache(cpuid, type, level, &cache)) {
				if (found->raw_file == NULL)
					cache.shared_cpus = 0;
				topology_cache_judge(&cache, &below, topology->threads);
				topology_cache_add(topology, &cache);
			}
	}
}

/* Is there a cache of that place and size, and else which size has the place? */
static bool sysfs_agrees(const struct topology *topology, const struct topology_cache *cache, uint64_t *bytes)
{
	*bytes = 0;
	for (size_t i = 0; i < topology->cache_count; i++) {
		const struct topology_cache *seen = &topology->caches[i];

		if (seen->level != cache->level || seen->type != cache->type)
			continue;
		if (seen->bytes == cache->bytes)
			return true;
		*bytes = seen->bytes;
	}
	return false;
}

static void settle_caches(struct topology *topology, const struct findings *found)
{
	const struct topology_cpuid *cpuid = &found->cpuid;

	if (topology->cache_count == 0) {
		caches_from_libcpuid(topology, found);
		return;
	}
	for (uint32_t type = 0; type < cpuid->type_count; type++)
		for (size_t level = 0; level < TOPOLOGY_LEVELS; level++) {
			struct topology_cache cache;
			char seen[32] = "nothing believable";
			uint64_t bytes;

			if (!libcpuid_cache(cpuid, type, level, &cache) || sysfs_agrees(topology, &cache, &bytes))
				continue;
			if (bytes != 0)
				snprintf(seen, sizeof(seen), "%llu KiB", (unsigned long long)bytes >> 10);
			topology_say(topology, "L%u%c: libcpuid says %llu KiB, sysfs %s.", cache.level, cache.type,
			             (unsigned long long)cache.bytes >> 10, seen);
		}
}

/* --- the rest -------------------------------------------------------------------------------------------- */

static void arch_here(char *text, size_t size)
{
#if defined(__x86_64__)
	snprintf(text, size, "x86_64");
#elif defined(__aarch64__)
	snprintf(text, size, "aarch64");
#else
	struct utsname name;

	snprintf(text, size, "%.*s", (int)size - 1, uname(&name) == 0 ? name.machine : "unknown");
#endif
}

/* Long mode: leaf 8000_0001h, edx bit 29. */
static void settle_arch(struct topology *topology, const struct findings *found)
{
	const bool wide = (topology_leaf(&found->dump.first, 0x80000001, 0)[3] >> 29 & 1) != 0;

	if (found->raw_file == NULL)
		arch_here(topology->arch, sizeof(topology->arch));
	else
		snprintf(topology->arch, sizeof(topology->arch), "%s", wide ? "x86_64" : "i686");
}

static void settle_cpu(struct topology *topology, const struct findings *found)
{
	const struct topology_leaves *leaves = &found->dump.first;
	const bool here = found->raw_file == NULL;
	char name[sizeof(topology->name)];

	topology->features = (here ? pc_cpu_features() : topology_leaves_features(leaves)) & topology_features_needed();
	topology_leaves_name(leaves, name, sizeof(name));
	if (name[0] == '\0')
		snprintf(name, sizeof(name), "%.63s", found->cpuid.name);
	if (name[0] != '\0')
		memcpy(topology->name, name, sizeof(name));
}

/* What is of this process, not of a tree of files. x86 has one base page size, 4 KiB. */
static void settle_process(struct topology *topology, const struct findings *found)
{
	long page = sysconf(_SC_PAGESIZE);

	if (found->raw_file != NULL)
		page = 4096;
	topology->page_bytes = page > 0 ? (uint64_t)page : 0;
#if defined(__GLIBC__)
	if (found->raw_file == NULL)
		snprintf(topology->libc, sizeof(topology->libc), "glibc %s", gnu_get_libc_version());
#endif
}

static int ask_os(struct topology *topology, struct findings *found, struct pc_why *why)
{
	int result = topology_sysfs_read(topology, found->root, &found->online);

	if (result == 0)
		result = topology_proc_cpuinfo(topology, found->root, &found->online);
	if (result == 0)
		result = topology_proc_soft(topology, found->root);
	if (result < 0)
		return pc_why(why, result, "reading %s/sys and /proc: %s", found->root != NULL ? found->root : "",
		              strerror(-result));
	return 0;
}

/* Which hypervisor is asked of the CPU first: sysfs tells of Xen only. A CPU that denies one is believed after that. */
static int find_out(struct topology *topology, struct findings *found, struct pc_why *why)
{
	int result = 0;

	if (found->raw_file != NULL)
		result = read_dump(found, why);
	else
		topology_leaves_here(&found->dump.first);
	if (result == 0)
		result = ask_libcpuid(topology, found, why);
	if (result < 0)
		return result;
	topology_leaves_hypervisor(&found->dump.first, topology->hypervisor, sizeof(topology->hypervisor));
	if (found->ask_os)
		result = ask_os(topology, found, why);
	if (topology->hypervisor[0] == '\0' && topology_leaf(&found->dump.first, 1, 0)[0] != 0)
		snprintf(topology->hypervisor, sizeof(topology->hypervisor), "none");
	return result;
}

int topology_detect(struct topology **out, const struct topology_source *source, struct pc_why *why)
{
	struct topology *topology = calloc(1, sizeof(*topology));
	struct findings *found = calloc(1, sizeof(*found));
	int result = topology == NULL || found == NULL ? pc_why(why, -ENOMEM, "out of memory") : 0;

	if (result == 0) {
		found->root = source->root;
		found->raw_file = source->raw_file;
		found->ask_os = source->raw_file == NULL || source->root != NULL;
		result = find_out(topology, found, why);
	}
	if (result == 0) {
		settle_counts(topology, found);
		settle_cores(topology, found);
		settle_caches(topology, found);
		settle_arch(topology, found);
		settle_cpu(topology, found);
		settle_process(topology, found);
		if (topology_write(topology) != 0)
			result = pc_why(why, -ENOMEM, "out of memory");
	}
	free(found);
	if (result == 0)
		*out = topology;
	else
		topology_free(topology);
	return result;
}

void topology_forget_raw(struct topology *topology)
{
	free(topology->raw);
	topology->raw = NULL;
}

void topology_take_raw(struct topology *topology, struct topology *from)
{
	topology_forget_raw(topology);
	topology->raw = from->raw;
	from->raw = NULL;
}

struct topology *topology_free(struct topology *topology)
{
	if (topology != NULL) {
		free(topology->raw);
		free(topology->key);
		free(topology->soft);
		free(topology);
	}
	return NULL;
}
