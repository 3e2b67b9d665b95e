/* The topology of this host, and of every processor in libcpuid's own test data. */
#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "calibrd/topology_parts.h"
#include "kernels/cpu.h"
#include "tests/unit/harness.h"

static struct topology *detect(const char *raw_file)
{
	const struct topology_source source = {.raw_file = raw_file};
	struct topology *topology = NULL;
	struct pc_why why = {""};

	CU_ASSERT_EQUAL(topology_detect(&topology, &source, &why), 0);
	if (topology == NULL)
		printf("\n%s: %s\n", raw_file, why.text);
	CU_ASSERT_PTR_NOT_NULL_FATAL(topology);
	return topology;
}

/* --- this host ------------------------------------------------------------------------------------------- */

static unsigned open_files(void)
{
	DIR *folder = opendir("/proc/self/fd");
	unsigned count = 0;

	CU_ASSERT_PTR_NOT_NULL_FATAL(folder);
	while (readdir(folder) != NULL)
		count++;
	closedir(folder);
	return count;
}

static void test_stable(void)
{
	struct topology *first = detect(NULL);
	unsigned before = open_files();

	CU_ASSERT_EQUAL(strlen(first->id), 12);
	CU_ASSERT_EQUAL(strspn(first->id, "0123456789abcdef"), 12);
	CU_ASSERT(first->core_count >= 1);
	CU_ASSERT(first->page_bytes >= 4096);
	CU_ASSERT_PTR_NOT_NULL(strstr(first->key, "\nthreads="));
	for (unsigned i = 0; i < 4; i++) {
		struct topology *again = detect(NULL);

		CU_ASSERT_STRING_EQUAL(again->key, first->key);
		CU_ASSERT_STRING_EQUAL(again->soft, first->soft);
		CU_ASSERT_STRING_EQUAL(again->id, first->id);
		topology_free(again);
	}
	CU_ASSERT_EQUAL(open_files(), before);
	CU_ASSERT(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
	topology_free(first);
}

/* policy.yaml is checked against pc_cpu_signature(): the CPU that we run on must be among the cores. */
static void test_signature(void)
{
	struct topology *topology = detect(NULL);
	char signature[48];
	bool found = false;

	pc_cpu_signature(signature, sizeof(signature));
	for (size_t i = 0; i < topology->core_count; i++)
		found = found || strcmp(topology->cores[i].signature, signature) == 0;
	CU_ASSERT_TRUE(found);
	topology_free(topology);
}

static void test_affinity(void)
{
	struct topology *free_one = detect(NULL), *bound;
	cpu_set_t before, one, after;

	CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof(before), &before), 0);
	if (CPU_COUNT(&before) < 2) {
		topology_free(free_one);
		unit_skip("one CPU");
		return;
	}
	for (size_t cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		if (!CPU_ISSET(cpu, &before))
			continue;
		CPU_ZERO(&one);
		CPU_SET(cpu, &one);
		CU_ASSERT_EQUAL_FATAL(sched_setaffinity(0, sizeof(one), &one), 0);
		bound = detect(NULL);
		CU_ASSERT_EQUAL(sched_getaffinity(0, sizeof(after), &after), 0);
		CU_ASSERT_TRUE(CPU_EQUAL(&after, &one));
		CU_ASSERT_STRING_EQUAL(bound->key, free_one->key);
		CU_ASSERT_STRING_NOT_EQUAL(bound->cpus_allowed, free_one->cpus_allowed);
		topology_free(bound);
	}
	CU_ASSERT_EQUAL(sched_setaffinity(0, sizeof(before), &before), 0);
	bound = detect(NULL);
	CU_ASSERT_EQUAL(sched_getaffinity(0, sizeof(after), &after), 0);
	CU_ASSERT_TRUE(CPU_EQUAL(&after, &before));
	CU_ASSERT_STRING_EQUAL(bound->soft, free_one->soft);
	topology_free(bound);
	topology_free(free_one);
}

/* As in a cpuset or under a filter: libcpuid says OK to no CPU at all then. */
static int forbid_affinity(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_setaffinity, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
		return -1;
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
}

static void test_forbidden_affinity(void)
{
	enum { SAME, DIFFERENT, NO_FILTER };
	struct topology *free_one = detect(NULL);
	int status = 0;
	pid_t child = fork();

	CU_ASSERT_FATAL(child >= 0);
	if (child == 0) {
		const struct topology_source source = {0};
		struct topology *bound = NULL;
		int result = forbid_affinity() != 0 ? NO_FILTER : DIFFERENT;

		if (result == DIFFERENT && topology_detect(&bound, &source, NULL) == 0 &&
		    strcmp(bound->key, free_one->key) == 0 && (bound->raw != NULL) == (free_one->raw != NULL))
			result = SAME;
		_exit(result);
	}
	CU_ASSERT_EQUAL(waitpid(child, &status, 0), child);
	topology_free(free_one);
	CU_ASSERT_TRUE_FATAL(WIFEXITED(status));
	if (WEXITSTATUS(status) == NO_FILTER)
		unit_skip("no seccomp");
	else
		CU_ASSERT_EQUAL(WEXITSTATUS(status), SAME);
}

static void test_features_in_key(void)
{
	struct topology *all = detect(NULL), *fewer;
	uint32_t needed = pc_cpu_features() & topology_features_needed();

	CU_ASSERT_EQUAL(all->features, needed);
	if (needed == 0) {
		topology_free(all);
		unit_skip("no kernel here needs a feature");
		return;
	}
	pc_cpu_masked = needed;
	fewer = detect(NULL);
	pc_cpu_masked = 0;
	CU_ASSERT_STRING_NOT_EQUAL(fewer->key, all->key);
	CU_ASSERT_STRING_NOT_EQUAL(fewer->id, all->id);
	topology_free(fewer);
	topology_free(all);
}

/* What the database keeps of this host can be identified elsewhere. */
static void test_replay_of_host(void)
{
	struct topology *here = detect(NULL), *replayed;
	char path[4096];
	FILE *file;

	if (here->raw == NULL) {
		topology_free(here);
		unit_skip("libcpuid gave no raw data");
		return;
	}
	snprintf(path, sizeof(path), "%s/raw", unit_folder());
	file = fopen(path, "w");
	CU_ASSERT_PTR_NOT_NULL_FATAL(file);
	fputs(here->raw, file);
	fclose(file);
	replayed = detect(path);
	CU_ASSERT_STRING_EQUAL(replayed->cores[0].signature, here->cores[0].signature);
	CU_ASSERT_EQUAL(replayed->features, here->features);
	CU_ASSERT_STRING_EQUAL(replayed->name, here->name);
	CU_ASSERT_STRING_EQUAL(replayed->os_release, "unknown");
	CU_ASSERT_STRING_EQUAL(replayed->cpus_allowed, "unknown");
	CU_ASSERT_STRING_EQUAL(replayed->thp, "unknown");
	CU_ASSERT_STRING_EQUAL(replayed->microcode, "unknown");
	CU_ASSERT_EQUAL(replayed->numa_nodes, 0);
	topology_free(replayed);
	topology_free(here);
}

static void test_bad_dumps(void)
{
	struct topology_source source = {.raw_file = "/nonexistent/dump"};
	struct topology *topology = NULL;
	struct pc_why why = {""};

	CU_ASSERT_EQUAL(topology_detect(&topology, &source, &why), -ENOENT);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "/nonexistent/dump"));
	source.raw_file = "/dev/null";
	CU_ASSERT_EQUAL(topology_detect(&topology, &source, &why), -EBADMSG);
	source.raw_file = "Makefile";
	CU_ASSERT_EQUAL(topology_detect(&topology, &source, &why), -EBADMSG);
	CU_ASSERT_PTR_NULL(topology);
	CU_ASSERT_PTR_NULL(topology_free(NULL));
}

/* Out of descriptors is an error that passes; such an hour must not become a key. */
static void test_no_descriptors(void)
{
	const struct topology_source source = {0};
	static struct topology scratch;
	static struct topology_set online;
	struct topology *topology = NULL;
	struct rlimit before, none;
	char text[16];

	CU_ASSERT_EQUAL_FATAL(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = before.rlim_max};
	CU_ASSERT_EQUAL_FATAL(setrlimit(RLIMIT_NOFILE, &none), 0);
	CU_ASSERT_EQUAL(topology_detect(&topology, &source, NULL), -EMFILE);
	CU_ASSERT_EQUAL(topology_text(NULL, text, sizeof(text), "/proc/version"), -EMFILE);
	CU_ASSERT_EQUAL(topology_sysfs_read(&scratch, NULL, &online), -EMFILE);
	CU_ASSERT_EQUAL(topology_proc_cpuinfo(&scratch, NULL, &online), -EMFILE);
	CU_ASSERT_EQUAL(topology_proc_soft(&scratch, NULL), -EMFILE);
	CU_ASSERT_EQUAL(setrlimit(RLIMIT_NOFILE, &before), 0);
	CU_ASSERT_PTR_NULL(topology);
	topology = detect(NULL);
	topology_free(topology);
}

/* --- the dumps ------------------------------------------------------------------------------------------- */

enum { MOST_DUMPS = 1000 };

static char *dumps[MOST_DUMPS];
static size_t dump_count;

static int note_dump(const char *path, const struct stat *info, int flag, struct FTW *where)
{
	(void)info;
	(void)where;
	if (flag == FTW_F && dump_count < MOST_DUMPS)
		dumps[dump_count++] = strdup(path);
	return 0;
}

static bool find_dumps(void)
{
	const char *folder = unit_shared("cpuid");

	if (folder == NULL) {
		unit_skip("no dumps");
		return false;
	}
	if (dump_count == 0)
		nftw(folder, note_dump, 16, FTW_PHYS);
	CU_ASSERT_FATAL(dump_count > 0);
	return true;
}

static void check_believable(const struct topology *topology)
{
	CU_ASSERT(topology->core_count >= 1 && topology->core_count <= TOPOLOGY_CORE_TYPES);
	CU_ASSERT(topology->threads <= 8192 && topology->physical_cores <= topology->threads);
	for (size_t i = 0; i < topology->core_count; i++)
		CU_ASSERT_STRING_NOT_EQUAL(topology->cores[i].signature, "unknown");
	for (size_t i = 0; i < topology->cache_count; i++) {
		const struct topology_cache *cache = &topology->caches[i];

		CU_ASSERT(cache->bytes <= (UINT64_C(1) << 32));
		CU_ASSERT(cache->line == 0 || (cache->line >= 16 && cache->line <= 1024));
		CU_ASSERT(cache->ways <= 128);
		CU_ASSERT(cache->shared_cpus <= topology->threads);
	}
	CU_ASSERT_EQUAL(strspn(topology->id, "0123456789abcdef"), 12);
	CU_ASSERT(strcmp(topology->name, "unknown") == 0 || strstr(topology->key, topology->name) == NULL);
}

/* All of them twice: the same key again, another one for another processor, and no number that can't be. */
static void test_dumps(void)
{
	static char *keys[MOST_DUMPS], *signatures[MOST_DUMPS];
	static char ids[MOST_DUMPS][13];
	size_t clashes = 0;

	if (!find_dumps())
		return;
	for (size_t i = 0; i < dump_count; i++) {
		struct topology *topology = detect(dumps[i]), *again = detect(dumps[i]);

		check_believable(topology);
		CU_ASSERT_STRING_EQUAL(topology->key, again->key);
		CU_ASSERT_STRING_EQUAL(topology->id, again->id);
		keys[i] = strdup(topology->key);
		signatures[i] = strdup(topology->cores[0].signature);
		memcpy(ids[i], topology->id, sizeof(ids[i]));
		topology_free(again);
		topology_free(topology);
	}
	for (size_t i = 0; i < dump_count; i++)
		for (size_t j = 0; j < i; j++) {
			clashes += strcmp(signatures[i], signatures[j]) != 0 && strcmp(keys[i], keys[j]) == 0;
			clashes += (strcmp(keys[i], keys[j]) == 0) != (strcmp(ids[i], ids[j]) == 0);
		}
	CU_ASSERT_EQUAL(clashes, 0);
	for (size_t i = 0; i < dump_count; i++) {
		free(keys[i]);
		free(signatures[i]);
	}
	CU_ASSERT(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
}

/* libcpuid 0.6.2 on its own test data: what the child is for. */
static void test_outcomes(void)
{
	unsigned counts[TOPOLOGY_UNASKED + 1] = {0};
	static struct topology_cpuid answer;

	if (!find_dumps())
		return;
	for (size_t i = 0; i < dump_count; i++) {
		struct topology_report end;
		enum topology_outcome outcome;
		char *raw;

		CU_ASSERT_EQUAL_FATAL(topology_cpuid_ask(&answer, &raw, &outcome, &end, dumps[i]), 0);
		counts[outcome]++;
		CU_ASSERT(outcome != TOPOLOGY_KILLED || (end.end == TOPOLOGY_DIED && end.signal == SIGFPE));
		free(raw);
	}
	if (strcmp(topology_cpuid_version(), "0.6.2") == 0 && dump_count == 419) {
		CU_ASSERT_EQUAL(counts[TOPOLOGY_IDENTIFIED], 367);
		CU_ASSERT_EQUAL(counts[TOPOLOGY_SILENT], 32);
		CU_ASSERT_EQUAL(counts[TOPOLOGY_KILLED], 20);
	} else {
		unit_skip("counts are known for libcpuid 0.6.2 and 419 dumps, not for \"%s\" and %zu",
		          topology_cpuid_version(), dump_count);
	}
}

static const struct unit_test tests[] = {
	{"same facts again", test_stable},
	{"signature", test_signature},
	{"affinity neither counts nor changes", test_affinity},
	{"affinity forbidden", test_forbidden_affinity},
	{"features are part of the key", test_features_in_key},
	{"replay of this host", test_replay_of_host},
	{"bad dumps", test_bad_dumps},
	{"out of descriptors", test_no_descriptors},
	{"all dumps", test_dumps},
	{"what libcpuid makes of the dumps", test_outcomes},
};

int main(void)
{
	int result = unit_main("topology", tests, sizeof(tests) / sizeof(tests[0]));

	while (dump_count > 0)
		free(dumps[--dump_count]);
	return result;
}
