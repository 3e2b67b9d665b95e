/* Available memory of hosts and containers that are folders. */
#include "calibrd/memory.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "tests/unit/harness.h"

#define MIB (UINT64_C(1) << 20)

static char root[256];

/* An empty host. */
static void fresh(void)
{
	static unsigned number;

	snprintf(root, sizeof(root), "%s/%u", unit_folder(), number++);
	CU_ASSERT_EQUAL_FATAL(mkdir(root, 0755), 0);
}

static void put(const char *path, const char *text)
{
	char full[600];
	FILE *file;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *slash = strchr(full + strlen(root) + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		CU_ASSERT_FATAL(mkdir(full, 0755) == 0 || errno == EEXIST);
		*slash = '/';
	}
	file = fopen(full, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fputs(text, file);
	CU_ASSERT_EQUAL_FATAL(fclose(file), 0);
}

static void put_bytes(const char *path, uint64_t bytes)
{
	char text[32];

	snprintf(text, sizeof(text), "%llu\n", (unsigned long long)bytes);
	put(path, text);
}

/* 1000 MiB, a process in /a.slice/b.service. */
static void host(void)
{
	fresh();
	put("/proc/meminfo", "MemTotal:        4096000 kB\nMemFree:          100000 kB\nMemAvailable:    1024000 kB\n");
	put("/proc/self/cgroup", "0::/a.slice/b.service\n");
}

static void test_host_alone(void)
{
	host();
	CU_ASSERT_EQUAL(memory_available(root), 1000 * MIB);
	put("/sys/fs/cgroup/a.slice/memory.max", "max\n");
	put("/sys/fs/cgroup/a.slice/memory.current", "123\n");
	CU_ASSERT_EQUAL(memory_available(root), 1000 * MIB);
}

static void test_least_of_all_levels(void)
{
	host();
	put_bytes("/sys/fs/cgroup/a.slice/b.service/memory.max", 400 * MIB);
	put_bytes("/sys/fs/cgroup/a.slice/b.service/memory.current", 100 * MIB);
	CU_ASSERT_EQUAL(memory_available(root), 300 * MIB);
	put_bytes("/sys/fs/cgroup/a.slice/memory.max", 500 * MIB);
	put_bytes("/sys/fs/cgroup/a.slice/memory.current", 350 * MIB);
	CU_ASSERT_EQUAL(memory_available(root), 150 * MIB);
	/* A limit that is larger than the host is none. */
	put_bytes("/sys/fs/cgroup/a.slice/memory.max", 100000 * MIB);
	put_bytes("/sys/fs/cgroup/a.slice/b.service/memory.max", 100000 * MIB);
	CU_ASSERT_EQUAL(memory_available(root), 1000 * MIB);
}

/* Inside a container the root of what one sees bears the limit. */
static void test_root_of_a_container(void)
{
	host();
	put_bytes("/sys/fs/cgroup/memory.max", 64 * MIB);
	put_bytes("/sys/fs/cgroup/memory.current", 4 * MIB);
	CU_ASSERT_EQUAL(memory_available(root), 60 * MIB);
	put("/proc/self/cgroup", "0::/\n");
	CU_ASSERT_EQUAL(memory_available(root), 60 * MIB);
}

static void test_high_bounds_like_max(void)
{
	host();
	put("/sys/fs/cgroup/a.slice/memory.max", "max\n");
	put_bytes("/sys/fs/cgroup/a.slice/memory.high", 200 * MIB);
	put_bytes("/sys/fs/cgroup/a.slice/memory.current", 50 * MIB);
	CU_ASSERT_EQUAL(memory_available(root), 150 * MIB);
	put_bytes("/sys/fs/cgroup/a.slice/memory.max", 100 * MIB);
	CU_ASSERT_EQUAL(memory_available(root), 50 * MIB);
}

/* A container full of old page cache has room, one full of anonymous memory has not. */
static void test_idle_page_cache_makes_room(void)
{
	host();
	put_bytes("/sys/fs/cgroup/a.slice/memory.max", 100 * MIB);
	put_bytes("/sys/fs/cgroup/a.slice/memory.current", 90 * MIB);
	CU_ASSERT_EQUAL(memory_available(root), 10 * MIB);
	put("/sys/fs/cgroup/a.slice/memory.stat", "anon 10485760\nactive_file 1\ninactive_file 73400320\n");
	CU_ASSERT_EQUAL(memory_available(root), 80 * MIB);
	put("/sys/fs/cgroup/a.slice/memory.stat", "inactive_file 999999999999\n");
	CU_ASSERT_EQUAL(memory_available(root), 100 * MIB);
}

static void test_exhausted_cgroup(void)
{
	host();
	put_bytes("/sys/fs/cgroup/a.slice/b.service/memory.max", 100 * MIB);
	put_bytes("/sys/fs/cgroup/a.slice/b.service/memory.current", 101 * MIB);
	/* What lies above has plenty: it does not help. */
	put_bytes("/sys/fs/cgroup/a.slice/memory.max", 900 * MIB);
	put_bytes("/sys/fs/cgroup/a.slice/memory.current", 200 * MIB);
	CU_ASSERT_EQUAL(memory_available(root), 0);
}

static void test_limit_without_use(void)
{
	host();
	put_bytes("/sys/fs/cgroup/a.slice/memory.max", 100 * MIB);
	CU_ASSERT_EQUAL(memory_available(root), 100 * MIB);
}

static void test_nothing_known(void)
{
	fresh();
	CU_ASSERT_EQUAL(memory_available(root), 0);
	put_bytes("/sys/fs/cgroup/memory.max", 64 * MIB);
	CU_ASSERT_EQUAL(memory_available(root), 64 * MIB);
}

/* A service that sees of /proc nothing but processes: what sysfs says of the nodes, and cgroups as ever. */
static void test_hidden_meminfo(void)
{
	fresh();
	put("/sys/devices/system/node/node0/meminfo",
	    "Node 0 MemTotal:       4000000 kB\nNode 0 MemFree:         102400 kB\nNode 0 MemUsed:  1 kB\n"
	    "Node 0 Active(file):   999999 kB\nNode 0 Inactive(file): 409600 kB\n");
	CU_ASSERT_EQUAL(memory_available(root), 500 * MIB);
	put("/sys/devices/system/node/node2/meminfo",
	    "Node 2 MemFree:         102400 kB\nNode 2 Inactive(file):  0 kB\n");
	CU_ASSERT_EQUAL(memory_available(root), 600 * MIB);
	put_bytes("/sys/fs/cgroup/memory.max", 64 * MIB);
	CU_ASSERT_EQUAL(memory_available(root), 64 * MIB);
	put_bytes("/sys/fs/cgroup/memory.max", 64000 * MIB);
	CU_ASSERT_EQUAL(memory_available(root), 600 * MIB);
	/* What the kernel itself estimates goes before it. */
	put("/proc/meminfo", "MemAvailable:    1024000 kB\n");
	CU_ASSERT_EQUAL(memory_available(root), 1000 * MIB);
}

/* A node that tells half of it, or nonsense, is no node. */
static void test_odd_nodes(void)
{
	fresh();
	put("/sys/devices/system/node/node0/meminfo", "Node 0 MemFree:  102400 kB\n");
	CU_ASSERT_EQUAL(memory_available(root), 0);
	put("/sys/devices/system/node/node0/meminfo", "");
	CU_ASSERT_EQUAL(memory_available(root), 0);
	put("/sys/devices/system/node/node0/meminfo",
	    "Node 0 MemFree: 18014398509481983 kB\nNode 0 Inactive(file): 18014398509481983 kB\n");
	CU_ASSERT_EQUAL(memory_available(root), 0);
}

static void test_garbage(void)
{
	static const char *const cgroups[] = {"",
	                                      "0::",
	                                      "0::\n",
	                                      "0::a/b\n",
	                                      "1:name=systemd:/x\n",
	                                      "0::/../../x\n",
	                                      "\n\n",
	                                      "0::/a.slice/b.service (deleted)\n"};
	static const char *const limits[] = {"", "\n", "lots\n", "-5\n", "max", " "};

	for (size_t i = 0; i < sizeof(cgroups) / sizeof(cgroups[0]); i++) {
		host();
		put("/proc/self/cgroup", cgroups[i]);
		CU_ASSERT_EQUAL(memory_available(root), 1000 * MIB);
	}
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		host();
		put("/sys/fs/cgroup/a.slice/memory.max", limits[i]);
		put("/sys/fs/cgroup/a.slice/memory.current", limits[i]);
		CU_ASSERT_EQUAL(memory_available(root), 1000 * MIB);
	}
	host();
	put("/proc/meminfo", "MemAvailable: 99999999999999999999 kB\n");
	CU_ASSERT_EQUAL(memory_available(root), 0); /* beyond 2^64: not known */
	put("/proc/meminfo", "MemAvailable: -1 kB\n");
	CU_ASSERT_EQUAL(memory_available(root), 0);
}

static void test_long_cgroup(void)
{
	char text[8000] = "0::/";

	host();
	memset(text + 4, 'x', sizeof(text) - 5);
	put("/proc/self/cgroup", text);
	CU_ASSERT_EQUAL(memory_available(root), 1000 * MIB);
}

static void test_this_host(void)
{
	CU_ASSERT(memory_available(NULL) > 0);
}

static const struct unit_test tests[] = {
	{"host alone", test_host_alone},
	{"least of all levels", test_least_of_all_levels},
	{"root of a container", test_root_of_a_container},
	{"memory.high bounds like memory.max", test_high_bounds_like_max},
	{"idle page cache makes room", test_idle_page_cache_makes_room},
	{"exhausted cgroup", test_exhausted_cgroup},
	{"limit without use", test_limit_without_use},
	{"nothing known", test_nothing_known},
	{"hidden meminfo", test_hidden_meminfo},
	{"odd nodes", test_odd_nodes},
	{"garbage", test_garbage},
	{"long cgroup", test_long_cgroup},
	{"this host", test_this_host},
};

UNIT_MAIN("memory", tests)
