/* The CPUs of a last-level cache, of hosts that are folders and of this one. */
#include "calibrd/crew.h"

#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "calibrd/topology_parts.h"
#include "tests/unit/harness.h"

#define CPU "/sys/devices/system/cpu"

static char root[256];

/* --- hosts ------------------------------------------------------------------------------------------------------- */

static void fresh(void)
{
	static unsigned number;

	snprintf(root, sizeof(root), "%s/%u", unit_folder(), number++);
	CU_ASSERT_EQUAL_FATAL(mkdir(root, 0755), 0);
}

__attribute__((format(printf, 2, 3))) static void put(const char *text, const char *format, ...)
{
	char full[600];
	va_list arguments;
	size_t used = (size_t)snprintf(full, sizeof(full), "%s", root);
	FILE *file;

	va_start(arguments, format);
	vsnprintf(full + used, sizeof(full) - used, format, arguments);
	va_end(arguments);
	for (char *slash = strchr(full + used + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		CU_ASSERT_FATAL(mkdir(full, 0755) == 0 || errno == EEXIST);
		*slash = '/';
	}
	file = fopen(full, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fprintf(file, "%s\n", text);
	CU_ASSERT_EQUAL_FATAL(fclose(file), 0);
}

static void put_cache(unsigned cpu, unsigned index, const char *type, const char *level, const char *sharing)
{
	put(type, CPU "/cpu%u/cache/index%u/type", cpu, index);
	put(level, CPU "/cpu%u/cache/index%u/level", cpu, index);
	put(sharing, CPU "/cpu%u/cache/index%u/shared_cpu_list", cpu, index);
}

/* Sixteen CPUs, two packages; of each core two threads, eight CPUs a last-level cache. Told of CPU 9. */
static void host(void)
{
	fresh();
	put("0-15", CPU "/online");
	put_cache(9, 0, "Data", "1", "8-9");
	put_cache(9, 1, "Instruction", "1", "8-9");
	put_cache(9, 2, "Unified", "2", "8-9");
	put_cache(9, 3, "Unified", "3", "8-15");
	for (unsigned cpu = 0; cpu < 16; cpu++)
		put(cpu < 8 ? "0" : "1", CPU "/cpu%u/topology/physical_package_id", cpu);
}

/* The crew of a CPU as sysfs writes lists. */
static const char *crew_list(unsigned cpu, const char *allowed)
{
	static char text[4096];
	struct topology_set mask, set = {0};
	struct crew crew = {.count = 99};

	CU_ASSERT_FATAL(topology_set_parse_list(&mask, allowed));
	CU_ASSERT_EQUAL(crew_of(&crew, root, cpu, &mask), 0);
	CU_ASSERT_FATAL(crew.count >= 1 && crew.count <= CREW_MOST);
	for (size_t i = 0; i < crew.count; i++) {
		CU_ASSERT(i == 0 || crew.cpus[i] > crew.cpus[i - 1]);
		topology_set_add(&set, (unsigned)crew.cpus[i]);
	}
	CU_ASSERT_EQUAL(topology_set_count(&set), crew.count);
	topology_set_print(&set, text, sizeof(text));
	return text;
}

/* --- tests ------------------------------------------------------------------------------------------------------- */

static void test_last_level(void)
{
	host();
	CU_ASSERT_STRING_EQUAL(crew_list(9, "0-15"), "8-15");
	/* The order of the indices says nothing. */
	put_cache(9, 2, "Unified", "3", "8-15");
	put_cache(9, 3, "Unified", "2", "8-9");
	CU_ASSERT_STRING_EQUAL(crew_list(9, "0-15"), "8-15");
	put_cache(9, 4, "Data", "4", "0-15");
	CU_ASSERT_STRING_EQUAL(crew_list(9, "0-15"), "8-15");
}

static void test_no_third_level(void)
{
	host();
	put_cache(9, 3, "Instruction", "3", "8-15");
	CU_ASSERT_STRING_EQUAL(crew_list(9, "0-15"), "8-9");
}

static void test_affinity(void)
{
	host();
	CU_ASSERT_STRING_EQUAL(crew_list(9, "3,9-10,12,14-15"), "9-10,12,14-15");
	CU_ASSERT_STRING_EQUAL(crew_list(9, "9"), "9");
	CU_ASSERT_STRING_EQUAL(crew_list(9, "0-7"), "9");
	CU_ASSERT_STRING_EQUAL(crew_list(9, ""), "9");
}

static void test_offline(void)
{
	host();
	put("0-9,11,13-14", CPU "/online");
	CU_ASSERT_STRING_EQUAL(crew_list(9, "0-15"), "8-9,11,13-14");
}

static void test_across_packages(void)
{
	host();
	put_cache(9, 3, "Unified", "3", "0-15");
	CU_ASSERT_STRING_EQUAL(crew_list(9, "0-15"), "8-15");
	put("0", CPU "/cpu12/topology/physical_package_id");
	put("-1", CPU "/cpu13/topology/physical_package_id"); /* not known: arm64 without a firmware that tells */
	CU_ASSERT_STRING_EQUAL(crew_list(9, "0-15"), "8-11,13-15");
	put("-1", CPU "/cpu9/topology/physical_package_id");
	CU_ASSERT_STRING_EQUAL(crew_list(9, "0-15"), "0-15");
}

static void test_absurd(void)
{
	static const char *const lists[] = {"",           "0-7",           "x", "8-", "15-8", "8-15,", "-1",
	                                    "8-99999999", "99999999999999"};
	static const char *const levels[] = {"", "x", "-3", "0", "10", "3x", "99999999999999999999"};

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		host();
		put_cache(9, 3, "Unified", "3", lists[i]);
		CU_ASSERT_STRING_EQUAL(crew_list(9, "0-15"), "9");
		host();
		put(lists[i], CPU "/online");
		CU_ASSERT_STRING_EQUAL(crew_list(9, "0-15"), "9");
	}
	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		host();
		put_cache(9, 3, "Unified", levels[i], "8-15");
		CU_ASSERT_STRING_EQUAL(crew_list(9, "0-15"), "8-9"); /* the second level is the last that makes sense */
	}
}

static void test_missing(void)
{
	fresh();
	CU_ASSERT_STRING_EQUAL(crew_list(9, "0-15"), "9");
	put("0-15", CPU "/online");
	CU_ASSERT_STRING_EQUAL(crew_list(9, "0-15"), "9");
	put("Unified", CPU "/cpu9/cache/index3/type");
	CU_ASSERT_STRING_EQUAL(crew_list(9, "0-15"), "9");
	put("3", CPU "/cpu9/cache/index3/level");
	CU_ASSERT_STRING_EQUAL(crew_list(9, "0-15"), "9");
	put("8-15", CPU "/cpu9/cache/index3/shared_cpu_list");
	CU_ASSERT_STRING_EQUAL(crew_list(9, "0-15"), "8-15");
}

static void test_large_hosts(void)
{
	struct topology_set mask = {0};
	struct crew crew;

	fresh();
	put("0-4095", CPU "/online");
	put_cache(2000, 3, "Unified", "3", "1900-2099");
	CU_ASSERT_STRING_EQUAL(crew_list(2000, "0-8191"), "1900-2099");
	put_cache(2000, 3, "Unified", "3", "1900-2155");
	CU_ASSERT_STRING_EQUAL(crew_list(2000, "0-8191"), "1900-2155");
	/* More than there is room for: the first, and always the CPU itself. */
	put_cache(2000, 3, "Unified", "3", "1900-4000");
	CU_ASSERT_STRING_EQUAL(crew_list(2000, "0-8191"), "1900-2155");
	put_cache(4000, 3, "Unified", "3", "1900-4000");
	CU_ASSERT_STRING_EQUAL(crew_list(4000, "0-8191"), "1900-2154,4000");
	CU_ASSERT_EQUAL(crew_of(&crew, root, 9000, &mask), 0); /* beyond Linux's own limit */
	CU_ASSERT(crew.count == 1 && crew.cpus[0] == 9000);
}

/* No descriptors: such an hour is no fact. */
static void test_no_descriptors(void)
{
	struct rlimit before, none;
	struct topology_set mask;
	struct crew crew;
	int r;

	host();
	CU_ASSERT_FATAL(topology_set_parse_list(&mask, "0-15"));
	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){0, before.rlim_max};
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &none), 0);
	r = crew_of(&crew, root, 9, &mask);
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &before), 0);
	CU_ASSERT_EQUAL(r, -EMFILE);
}

static void test_this_host(void)
{
	struct crew crew;
	bool own = false;
	cpu_set_t set;
	int cpu;

	CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof(set), &set), 0);
	cpu = sched_getcpu();
	CU_ASSERT_EQUAL_FATAL(crew_pin(cpu), 0);
	CU_ASSERT_EQUAL(crew_find(&crew, NULL), 0);
	CU_ASSERT_EQUAL(crew.count, 1); /* pinned */
	CU_ASSERT_EQUAL(crew.cpus[0], cpu);
	CU_ASSERT_EQUAL_FATAL(sched_setaffinity(0, sizeof(set), &set), 0);
	CU_ASSERT_EQUAL(crew_find(&crew, NULL), 0);
	CU_ASSERT_FATAL(crew.count >= 1 && crew.count <= CREW_MOST);
	for (size_t i = 0; i < crew.count; i++) {
		CU_ASSERT_EQUAL(crew_pin(crew.cpus[i]), 0);
		CU_ASSERT_EQUAL(sched_getcpu(), crew.cpus[i]);
		own |= crew.cpus[i] == cpu;
	}
	CU_ASSERT(own || crew.count == 1);
	CU_ASSERT_EQUAL_FATAL(sched_setaffinity(0, sizeof(set), &set), 0);
}

static void test_pin_refuses(void)
{
	CU_ASSERT_EQUAL(crew_pin(-1), -EINVAL);
	CU_ASSERT_EQUAL(crew_pin(8191), -EINVAL);
	CU_ASSERT_EQUAL(crew_pin(1 << 20), -EINVAL);
}

static const struct unit_test tests[] = {
	{"last level", test_last_level},
	{"no third level", test_no_third_level},
	{"affinity", test_affinity},
	{"offline", test_offline},
	{"across packages", test_across_packages},
	{"absurd", test_absurd},
	{"missing", test_missing},
	{"large hosts", test_large_hosts},
	{"no descriptors", test_no_descriptors},
	{"this host", test_this_host},
	{"pin refuses", test_pin_refuses},
};

UNIT_MAIN("crew", tests)
