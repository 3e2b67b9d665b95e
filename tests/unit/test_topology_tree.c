/* What the topology module makes of /sys and /proc: trees of files as guests, hybrids and broken hosts show them. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calibrd/topology.h"
#include "tests/unit/harness.h"

static char root[512];

/* Each test plants its own. */
static void new_tree(const char *name)
{
	snprintf(root, sizeof(root), "%s/%s", unit_folder(), name);
}

static void put(const char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(const char *text, const char *format, ...)
{
	char path[1024];
	size_t used = (size_t)snprintf(path, sizeof(path), "%s", root);
	va_list arguments;
	FILE *file;

	va_start(arguments, format);
	vsnprintf(path + used, sizeof(path) - used, format, arguments);
	va_end(arguments);
	for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	file = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fprintf(file, "%s\n", text);
	fclose(file);
}

static void put_cpu(unsigned cpu, unsigned package, unsigned core)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", package);
	put(text, "/sys/devices/system/cpu/cpu%u/topology/physical_package_id", cpu);
	snprintf(text, sizeof(text), "%u", core);
	put(text, "/sys/devices/system/cpu/cpu%u/topology/core_id", cpu);
}

struct shape {
	unsigned index;
	const char *level, *type, *size, *ways;
};

static void put_cache(unsigned cpu, struct shape shape, const char *shared)
{
	const struct {
		const char *name, *text;
	} files[] = {{"level", shape.level},        {"type", shape.type},
	             {"size", shape.size},          {"ways_of_associativity", shape.ways},
	             {"coherency_line_size", "64"}, {"shared_cpu_list", shared}};

	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		put(files[i].text, "/sys/devices/system/cpu/cpu%u/cache/index%u/%s", cpu, shape.index, files[i].name);
}

static const struct shape l1d = {0, "1", "Data", "32K", "8"}, l1i = {1, "1", "Instruction", "32K", "8"};
static const struct shape l2 = {2, "2", "Unified", "512K", "8"};

static void put_core_caches(unsigned cpu)
{
	char self[16];

	snprintf(self, sizeof(self), "%u", cpu);
	put_cache(cpu, l1d, self);
	put_cache(cpu, l1i, self);
	put_cache(cpu, l2, self);
}

/* Four CPUs in one package; their L3 of that size is shared as told. */
static void plant(const char *name, const char *l3_size, const char *l3_shared)
{
	new_tree(name);
	put("0-3", "/sys/devices/system/cpu/online");
	put("0", "/sys/devices/system/node/online");
	for (unsigned cpu = 0; cpu < 4; cpu++) {
		put_cpu(cpu, 0, cpu);
		put_core_caches(cpu);
		if (l3_size != NULL)
			put_cache(cpu, (struct shape){3, "3", "Unified", l3_size, "16"}, l3_shared);
	}
}

static struct topology *detect(void)
{
	const struct topology_source source = {.root = root};
	struct topology *topology = NULL;
	struct pc_why why = {""};

	CU_ASSERT_EQUAL_FATAL(topology_detect(&topology, &source, &why), 0);
	return topology;
}

static const struct topology_cache *last_cache(const struct topology *topology)
{
	CU_ASSERT_FATAL(topology->cache_count > 0);
	return &topology->caches[topology->cache_count - 1];
}

static void check_l3(const char *name, const char *size, const char *shared, uint64_t bytes, unsigned cpus)
{
	struct topology *topology;

	plant(name, size, shared);
	topology = detect();
	CU_ASSERT_EQUAL(topology->cache_count, 4);
	CU_ASSERT_EQUAL(last_cache(topology)->level, 3);
	CU_ASSERT_EQUAL(last_cache(topology)->bytes, bytes);
	CU_ASSERT_EQUAL(last_cache(topology)->shared_cpus, cpus);
	CU_ASSERT_EQUAL(topology_cache_bytes(topology, 0), bytes);
	CU_ASSERT_EQUAL(topology_cache_bytes(topology, 1), 32768);
	CU_ASSERT_EQUAL(topology_cache_bytes(topology, 2), 524288);
	CU_ASSERT_EQUAL(topology_cache_bytes(topology, 4), 0);
	CU_ASSERT_EQUAL(topology->threads, 4);
	CU_ASSERT_EQUAL(topology->physical_cores, 4);
	CU_ASSERT_EQUAL(topology->packages, 1);
	topology_free(topology);
}

static void test_l3(void)
{
	check_l3("sane", "8192K", "0-3", 8 << 20, 4);
	check_l3("in-mebibytes", "8M", "0-3", 8 << 20, 4);
	check_l3("zero", "0K", "0-3", 0, 4);
	check_l3("tebibyte", "1073741824K", "0-3", 0, 4);
	check_l3("overflow", "99999999999999999999K", "0-3", 0, 4);
	check_l3("below-l2", "256K", "0-3", 0, 4);
	check_l3("too-many", "8192K", "0-255", 0, 0);
	check_l3("foreign", "8192K", "4-7", 0, 0);
	check_l3("words", "plenty", "everyone", 0, 0);
	check_l3("empty", "", "", 0, 0);
}

static void test_two_packages(void)
{
	struct topology *topology;

	new_tree("two-packages");
	put("0-7", "/sys/devices/system/cpu/online");
	put("0-3", "/sys/devices/system/node/online");
	for (unsigned cpu = 0; cpu < 8; cpu++) {
		put_cpu(cpu, cpu / 4, cpu % 4 / 2);
		put_core_caches(cpu);
		put_cache(cpu, (struct shape){3, "3", "Unified", "16384K", "16"}, cpu < 4 ? "0-3" : "4-7");
	}
	topology = detect();
	CU_ASSERT_EQUAL(topology->packages, 2);
	CU_ASSERT_EQUAL(topology->physical_cores, 4);
	CU_ASSERT_EQUAL(topology->threads, 8);
	CU_ASSERT_EQUAL(topology->numa_nodes, 4);
	CU_ASSERT_EQUAL(topology->cache_count, 4);
	CU_ASSERT_EQUAL(last_cache(topology)->shared_cpus, 4);
	topology_free(topology);
	/* One L3 that reaches over both packages (cloud-hypervisor#8730). */
	for (unsigned cpu = 0; cpu < 8; cpu++)
		put("0-7", "/sys/devices/system/cpu/cpu%u/cache/index3/shared_cpu_list", cpu);
	topology = detect();
	CU_ASSERT_EQUAL(topology_cache_bytes(topology, 3), 0);
	CU_ASSERT_EQUAL(last_cache(topology)->shared_cpus, 0);
	CU_ASSERT_PTR_NOT_NULL(strstr(topology->key, "L3U bytes unknown line 64 ways 16 cpus unknown\n"));
	topology_free(topology);
}

/* CPUs 0-1 are fast and share a core, 2-3 are small and share an L2. */
static void test_hybrid(void)
{
	struct topology *topology;

	new_tree("hybrid");
	put("0-3", "/sys/devices/system/cpu/online");
	put("0-1", "/sys/devices/cpu_core/cpus");
	put("2-3", "/sys/devices/cpu_atom/cpus");
	for (unsigned cpu = 0; cpu < 4; cpu++) {
		const struct shape d = {0, "1", "Data", cpu < 2 ? "48K" : "32K", cpu < 2 ? "12" : "8"};
		const struct shape u = {2, "2", "Unified", "2048K", "16"};
		char self[16];

		put_cpu(cpu, 0, cpu < 2 ? 0 : cpu);
		put(cpu < 2    ? "0-1"
		    : cpu == 2 ? "2"
		               : "3",
		    "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu);
		snprintf(self, sizeof(self), "%u", cpu);
		put_cache(cpu, d, cpu < 2 ? "0-1" : self);
		put_cache(cpu, u, cpu < 2 ? "0-1" : "2-3");
	}
#if defined(__x86_64__)
	{
		char text[1024] = "";

		for (unsigned cpu = 0; cpu < 4; cpu++)
			snprintf(text + strlen(text), sizeof(text) - strlen(text),
			         "processor\t: %u\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 151\n"
			         "model name\t: Some Name\nstepping\t: 2\nmicrocode\t: 0x2c\n\n",
			         cpu);
		put(text, "/proc/cpuinfo");
	}
#endif
	topology = detect();
	CU_ASSERT_EQUAL(topology->physical_cores, 3);
	CU_ASSERT_EQUAL(topology->cache_count, 3);
	CU_ASSERT_EQUAL(topology_cache_bytes(topology, 1), 49152);
	CU_ASSERT_EQUAL(topology->caches[1].bytes, 32768);
#if defined(__x86_64__)
	CU_ASSERT_EQUAL_FATAL(topology->core_count, 2);
	CU_ASSERT_STRING_EQUAL(topology->cores[0].signature, "GenuineIntel 6/151/2");
	CU_ASSERT_STRING_EQUAL(topology->cores[1].signature, "GenuineIntel 6/151/2");
	CU_ASSERT(topology->cores[0].kind == 'P' && topology->cores[0].cpus == 2);
	CU_ASSERT(topology->cores[1].kind == 'E' && topology->cores[1].cpus == 2);
	CU_ASSERT_STRING_EQUAL(topology->microcode, "0x2c");
	CU_ASSERT_PTR_NULL(strstr(topology->key, "Some Name"));
#endif
	topology_free(topology);
}

static void test_offline(void)
{
	struct topology *topology;

	plant("offline", "8192K", "0,2");
	put("0,2", "/sys/devices/system/cpu/online");
	topology = detect();
	CU_ASSERT_EQUAL(topology->threads, 2);
	CU_ASSERT_EQUAL(topology->physical_cores, 2);
	CU_ASSERT_EQUAL(last_cache(topology)->bytes, 8 << 20);
	CU_ASSERT_EQUAL(last_cache(topology)->shared_cpus, 2);
	topology_free(topology);
}

/* Without the list the folders tell; without shared_cpu_list the map does. */
static void test_second_sources(void)
{
	struct topology *topology;
	char path[1024];

	plant("second", "8192K", "0-3");
	snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/online", root);
	CU_ASSERT_EQUAL(remove(path), 0);
	for (unsigned cpu = 0; cpu < 4; cpu++) {
		snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpu%u/cache/index3/shared_cpu_list", root, cpu);
		CU_ASSERT_EQUAL(remove(path), 0);
		put("f", "/sys/devices/system/cpu/cpu%u/cache/index3/shared_cpu_map", cpu);
	}
	put("x", "/sys/devices/system/cpu/cpufreq/boost");
	topology = detect();
	CU_ASSERT_EQUAL(topology->threads, 4);
	CU_ASSERT_EQUAL(last_cache(topology)->shared_cpus, 4);
	topology_free(topology);
}

/* No folder of caches, no /proc: not an error. */
static void test_missing(void)
{
	struct topology *topology;

	new_tree("missing");
	put("0-1", "/sys/devices/system/cpu/online");
	put_cpu(0, 0, 0);
	topology = detect();
	CU_ASSERT_EQUAL(topology->threads, 2);
	CU_ASSERT_EQUAL(topology->packages, 0);
	CU_ASSERT_EQUAL(topology->physical_cores, 0);
	CU_ASSERT_EQUAL(topology->numa_nodes, 0);
	CU_ASSERT_EQUAL_FATAL(topology->core_count, 1);
	CU_ASSERT_EQUAL(topology->cores[0].cpus, 2);
	CU_ASSERT_STRING_EQUAL(topology->os_release, "unknown");
	CU_ASSERT_STRING_EQUAL(topology->thp, "unknown");
	CU_ASSERT_STRING_EQUAL(topology->microcode, "unknown");
	CU_ASSERT_STRING_EQUAL(topology->cpus_allowed, "unknown");
	CU_ASSERT_PTR_NOT_NULL(strstr(topology->key, "\npackages=unknown\n"));
	topology_free(topology);
	new_tree("nothing-at-all");
	topology = detect();
	CU_ASSERT_EQUAL(topology->core_count, 1);
	topology_free(topology);
}

static void put_bytes(const char *bytes, size_t len, const char *path)
{
	char whole[1024];
	FILE *file;

	put("", "%s", path);
	snprintf(whole, sizeof(whole), "%s%s", root, path);
	file = fopen(whole, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	CU_ASSERT_EQUAL(fwrite(bytes, 1, len, file), len);
	fclose(file);
}

/* Bytes, folders and pipes where numbers should be. */
static void test_garbage(void)
{
	char garbage[8192], path[1024];
	struct topology *topology;

	for (size_t i = 0; i < sizeof(garbage); i++)
		garbage[i] = (char)(i * 37 + 11);
	plant("garbage", "8192K", "0-3");
	put_bytes(garbage, sizeof(garbage), "/sys/devices/system/cpu/cpu0/cache/index3/size");
	put_bytes(garbage, sizeof(garbage), "/sys/devices/system/cpu/cpu0/cache/index0/level");
	put_bytes(garbage, sizeof(garbage), "/sys/devices/system/node/online");
	put_bytes(garbage, sizeof(garbage), "/sys/kernel/mm/transparent_hugepage/enabled");
	put_bytes(garbage, sizeof(garbage), "/proc/sys/kernel/osrelease");
	put_bytes(garbage, sizeof(garbage), "/proc/cpuinfo");
	put_bytes(garbage, sizeof(garbage), "/proc/self/status");
	put("24", "/sys/devices/system/cpu/cpu1/cache/index0/coherency_line_size");
	put("4000000000", "/sys/devices/system/cpu/cpu2/cache/index0/ways_of_associativity");
	put("-1", "/sys/devices/system/cpu/cpu3/topology/physical_package_id");
	snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpu1/cache/index2/size", root);
	CU_ASSERT(remove(path) == 0 && mkdir(path, 0755) == 0);
	snprintf(path, sizeof(path), "%s/sys/devices/system/cpu/cpu2/cache/index2/size", root);
	CU_ASSERT(remove(path) == 0 && mkfifo(path, 0644) == 0);
	topology = detect();
	CU_ASSERT_EQUAL(topology->threads, 4);
	CU_ASSERT_EQUAL(topology->packages, 0);
	CU_ASSERT_EQUAL(topology->numa_nodes, 0);
	CU_ASSERT_STRING_EQUAL(topology->thp, "unknown");
	for (const char *at = topology->soft; *at != '\0'; at++)
		CU_ASSERT(*at == '\n' || (*at >= ' ' && *at <= '~'));
	for (size_t i = 0; i < topology->cache_count; i++) {
		CU_ASSERT(topology->caches[i].line == 0 || topology->caches[i].line == 64);
		CU_ASSERT(topology->caches[i].ways <= 16);
	}
	topology_free(topology);
}

static void test_soft(void)
{
	struct topology *topology;

	plant("soft", "8192K", "0-3");
	put("always [never] madvise", "/sys/kernel/mm/transparent_hugepage/enabled");
	put("6.1.0-test", "/proc/sys/kernel/osrelease");
	put("Name:\tx\nCpus_allowed:\tf\nCpus_allowed_list:\t1,3\nMems_allowed_list:\t0", "/proc/self/status");
	put("0x77", "/sys/devices/system/cpu/cpu0/microcode/version");
	topology = detect();
	CU_ASSERT_STRING_EQUAL(topology->thp, "never");
	CU_ASSERT_STRING_EQUAL(topology->os_release, "6.1.0-test");
	CU_ASSERT_STRING_EQUAL(topology->cpus_allowed, "1,3");
	CU_ASSERT_STRING_EQUAL(topology->microcode, "0x77");
	CU_ASSERT_PTR_NOT_NULL(strstr(topology->soft, "\nos_release=6.1.0-test\n"));
	topology_free(topology);
}

/* A CPU from a dump, the OS from a tree: sysfs wins, and it is said. */
static void test_disagreement(void)
{
	const char *dump = unit_shared("cpuid/amd/zen2/amd-ryzen-7-4800h-with-radeon-graphics.test");
	struct topology_source source = {.root = root, .raw_file = dump};
	struct topology *topology = NULL;

#if !defined(__x86_64__)
	dump = NULL;
#endif
	if (dump == NULL) {
		unit_skip("no libcpuid or no dump");
		return;
	}
	plant("disagreement", "8192K", "0-3");
	CU_ASSERT_EQUAL_FATAL(topology_detect(&topology, &source, NULL), 0);
	CU_ASSERT_EQUAL(topology_cache_bytes(topology, 3), 8 << 20);
	CU_ASSERT_EQUAL(topology->threads, 4);
	CU_ASSERT_STRING_EQUAL(topology->cores[0].signature, "AuthenticAMD 23/96/1");
	CU_ASSERT_STRING_EQUAL(topology->disagreements, "L3U: libcpuid says 4096 KiB, sysfs 8192 KiB.");
	topology_free(topology);
}

static const struct unit_test tests[] = {
	{"believable and absurd L3", test_l3},
	{"two packages, four nodes", test_two_packages},
	{"hybrid", test_hybrid},
	{"offline CPUs", test_offline},
	{"second sources", test_second_sources},
	{"missing files", test_missing},
	{"garbage", test_garbage},
	{"soft facts", test_soft},
	{"libcpuid against sysfs", test_disagreement},
};

UNIT_MAIN("topology_tree", tests)
