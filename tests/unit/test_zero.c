/* Every clear clears exactly what it was asked to, quietly: no allocation, no system call, no errno, whatever runs
 * beside. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <linux/seccomp.h>

#include "tests/unit/allocations.h"
#include "tests/unit/bytes.h"
#include "tests/unit/children.h"
#include "tests/unit/harness.h"
#include "tests/unit/policy_files.h"

enum { CANARY = 0xA5, MARGIN = 64, LARGEST = (1 << 20) + 4097 };
static unsigned char *arena; /* MARGIN, LARGEST, MARGIN and some slack for offsets */

static bool only_that_is_zero(const unsigned char *at, size_t len)
{
	return is_all(at - MARGIN, MARGIN, CANARY) && is_all(at, len, 0) && is_all(at + len, MARGIN, CANARY);
}

static void dirty(unsigned char *at, size_t len)
{
	memset(at - MARGIN, CANARY, len + 2 * MARGIN);
}

static const size_t lengths[] = {
	0,    1,    63,   64,   65,   255,   256,    257,           300,     511,           999,
	1000, 4095, 4096, 4097, 5000, 65536, 100001, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, LARGEST};
enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]) };

static void assert_clears(void (*zero)(void *, size_t, unsigned))
{
	for (size_t i = 0; i < LENGTHS; i++) {
		for (size_t j = 0; j < INTENTS; j++) {
			unsigned char *at = arena + MARGIN + (i * 7 + j * 13) % 64;

			dirty(at, lengths[i]);
			errno = 4711;
			zero(at, lengths[i], all_intents[j]);
			CU_ASSERT_EQUAL(errno, 4711);
			CU_ASSERT_TRUE(only_that_is_zero(at, lengths[i]));
		}
	}
}

static const struct pageclear_policy *explicit_policy;

static void zero_by_policy(void *dst, size_t len, unsigned intent)
{
	pageclear_policy_zero(explicit_policy, dst, len, intent);
}

/* In three ranges, the middle one empty. */
static void zero_by_ranges(void *dst, size_t len, unsigned intent)
{
	size_t half = len / 3;
	struct iovec ranges[] = {{dst, half}, {NULL, 0}, {(char *)dst + half, len - half}};

	pageclear_zero_ranges(ranges, 3, intent);
}

static const char probing[] = "probe: {from: 1000, lines: 4, slow_ns: 57}\n";

static void test_zero_clears_exactly(void)
{
	start_bare();
	assert_clears(pageclear_zero);
	assert_clears(zero_by_ranges);
	publish(pc_search_paths[0], good_text(1));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	assert_clears(pageclear_zero);
	publish(pc_search_paths[0], probing_text(probing));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	assert_clears(pageclear_zero);
	assert_clears(zero_by_ranges);
	explicit_policy = NULL;
	assert_clears(zero_by_policy);
	explicit_policy = open_text(probing_text(probing));
	assert_clears(zero_by_policy);
	explicit_policy = pageclear_policy_close(explicit_policy);
	start_bare();
}

/* Every kernel that runs here, with and without chunks, as the choice hands it out and through pageclear_policy_zero.
 */
static void test_every_kernel_clears_exactly(void)
{
	static const unsigned chunks[] = {0, 4096, 12345, 65536};

	for (unsigned k = 0; k < pc_kernel_count; k++) {
		if (!pc_kernel_runs(&pc_kernels[k])) {
			unit_skip("this CPU has no %s", pc_kernels[k].name);
			continue;
		}
		for (unsigned c = 0; c < 4; c++) {
			char clear[300];

			snprintf(clear, sizeof(clear),
			         "clear:\n  - intent: hot\n    when: {threads: 1, prior: unknown}\n"
			         "    rules: [{from: 0, kernel: %s, chunk: %u}]\n",
			         pc_kernels[k].name, chunks[c]);
			explicit_policy = open_text(policy_text(1, here(), pc_arch, clear));
			struct pageclear_choice choice = choose(explicit_policy, 5, PAGECLEAR_HOT, 1);
			for (size_t i = 0; i < LENGTHS; i++) {
				unsigned char *at = arena + MARGIN + i * 5 % 64;

				dirty(at, lengths[i]);
				zero_by_policy(at, lengths[i], PAGECLEAR_HOT);
				CU_ASSERT_TRUE(only_that_is_zero(at, lengths[i]));
				dirty(at, lengths[i]);
				choice.clear(at, lengths[i]);
				CU_ASSERT_TRUE(only_that_is_zero(at, lengths[i]));
			}
			explicit_policy = pageclear_policy_close(explicit_policy);
		}
	}
}

static void test_ranges_of_all_kinds(void)
{
	struct iovec ranges[40];
	size_t at = MARGIN, n = 0;

	start_bare();
	publish(pc_search_paths[0], probing_text(probing));
	pageclear_reload();
	memset(arena, CANARY, LARGEST);
	for (size_t i = 0; i < 20; i++) {
		ranges[n++] = (struct iovec){NULL, 0};
		ranges[n++] = (struct iovec){arena + at, 1 + i * i * 100};
		at += 1 + i * i * 100 + 7;
	}
	pageclear_zero_ranges(ranges, n, PAGECLEAR_COLD);
	for (size_t i = 1; i < n; i += 2) {
		const unsigned char *range = ranges[i].iov_base;

		CU_ASSERT_TRUE(range[-1] == CANARY && range[ranges[i].iov_len] == CANARY);
		CU_ASSERT_TRUE(is_all(range, ranges[i].iov_len, 0));
	}
	pageclear_zero_ranges(NULL, 0, PAGECLEAR_COLD);
	pageclear_zero_ranges(ranges, 1, PAGECLEAR_COLD);
	start_bare();
}

/* The probe and the kernels stay inside the target: it lies between pages that may not be touched. */
static void test_neighbours_are_not_touched(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = 16 * page;
	char *map = mmap(NULL, size + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CU_ASSERT_TRUE_FATAL(map != MAP_FAILED);
	CU_ASSERT_EQUAL(mprotect(map + page, size, PROT_READ | PROT_WRITE), 0);
	explicit_policy = open_text(probing_text(probing));
	for (size_t i = 0; i < INTENTS; i++) {
		for (size_t len = 250; len <= size; len += 4093) {
			pageclear_policy_zero(explicit_policy, map + page, len, all_intents[i]);
			pageclear_policy_zero(explicit_policy, map + page + size - len, len, all_intents[i]);
		}
	}
	explicit_policy = pageclear_policy_close(explicit_policy);
	munmap(map, size + 2 * page);
}

static void test_zero_allocates_nothing(void)
{
	if (!sees_allocations()) {
		unit_skip("malloc is somebody else's");
		return;
	}
	start_bare();
	publish(pc_search_paths[0], probing_text(probing));
	pageclear_reload();
	unsigned long before = allocations;
	for (size_t i = 0; i < LENGTHS; i++) {
		for (size_t j = 0; j < INTENTS; j++) {
			pageclear_zero(arena, lengths[i], all_intents[j]);
			zero_by_ranges(arena, lengths[i], all_intents[j]);
		}
	}
	CU_ASSERT_EQUAL(allocations, before);
	start_bare();
}

/* Strict seccomp lets nothing through but read, write and exit, and takes the time stamp counter away: so hints. */
static int zero_without_system_calls(void)
{
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0)
		return NOT_HERE;
	for (size_t i = 0; i < LENGTHS; i++)
		for (size_t j = 0; j < INTENTS; j++)
			if (all_intents[j] % 16 == PAGECLEAR_SCRUB || all_intents[j] == PAGECLEAR_WIPE)
				zero_by_ranges(arena, lengths[i], all_intents[j]);
	syscall(SYS_exit, 0); /* not exit_group, which strict seccomp doesn't know */
	return 1;
}

static void test_zero_makes_no_system_call(void)
{
	if (UNDER_TSAN) {
		unit_skip("ThreadSanitizer makes system calls of its own");
		return;
	}
	start_bare();
	publish(pc_search_paths[0], probing_text(probing));
	pageclear_reload();
	int r = in_child(zero_without_system_calls);
	if (r == NOT_HERE)
		unit_skip("no strict seccomp here");
	else
		CU_ASSERT_EQUAL(r, 0);
	start_bare();
}

/* A program that may not read the clock gets no probe. */
static int reload_without_clock(void)
{
	if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) != 0)
		return NOT_HERE;
	publish(pc_search_paths[0], probing_text(probing));
	if (pageclear_reload() != 1 || pageclear_status(NULL, 0) != 0)
		return 1;
	pageclear_zero(arena, LARGEST, PAGECLEAR_COLD);
	return 0;
}

/* Small ranges are memset whatever a probe would say: however many, none is asked. */
static int zero_small_ranges_without_clock(void)
{
	struct iovec ranges[20];

	for (size_t i = 0; i < 20; i++)
		ranges[i] = (struct iovec){arena + MARGIN + i * 256, 256};
	dirty(arena + MARGIN, 20 * 256);
	if (prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0) != 0)
		return NOT_HERE;
	pageclear_zero_ranges(ranges, 20, PAGECLEAR_COLD);
	return only_that_is_zero(arena + MARGIN, 20 * 256) ? 0 : 1;
}

static void test_small_ranges_are_not_probed(void)
{
	start_bare();
	publish(pc_search_paths[0], probing_text(probing));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	int r = in_child(zero_small_ranges_without_clock);
	if (r == NOT_HERE)
		unit_skip("no PR_SET_TSC here");
	else
		CU_ASSERT_EQUAL(r, 0);
	start_bare();
}

static void test_no_clock_no_probe(void)
{
	start_bare();
	int r = in_child(reload_without_clock);
	if (r == NOT_HERE)
		unit_skip("no PR_SET_TSC here");
	else
		CU_ASSERT_EQUAL(r, 0);
	start_bare();
}

/* SIZE_MAX and ends beyond the address space fault, as memset's do: no endless loop, no silent return. */
static int zero_wrapped(void)
{
	pageclear_zero(arena, SIZE_MAX, PAGECLEAR_COLD | PAGECLEAR_FLUSHED);
	return 0;
}

static int zero_half_of_everything(void)
{
	pageclear_zero(arena, SIZE_MAX / 2, PAGECLEAR_COLD | PAGECLEAR_FLUSHED);
	return 0;
}

static void test_absurd_sizes_fault(void)
{
	if (UNDER_ASAN || UNDER_TSAN) {
		unit_skip("a sanitizer meets the fault first");
		return;
	}
	start_bare();
	publish(pc_search_paths[0], good_text(1));
	pageclear_reload();
	CU_ASSERT_EQUAL(in_child(zero_wrapped), -SIGSEGV);
	CU_ASSERT_EQUAL(in_child(zero_half_of_everything), -SIGSEGV);
	start_bare();
}

static atomic_bool stop;
static atomic_uint wrong;

static void *clear_until_told(void *buffer)
{
	for (unsigned i = 0; !stop; i++) {
		size_t len = 257 + i * 4099 % 30000;

		memset(buffer, CANARY, len + 1);
		pageclear_zero(buffer, len, all_intents[i % INTENTS]);
		wrong += !is_all(buffer, len, 0) || ((unsigned char *)buffer)[len] != CANARY;
	}
	return NULL;
}

static void test_reload_beside_clears(void)
{
	enum { THREADS = 4 };
	pthread_t threads[THREADS];

	start_bare();
	stop = false;
	for (int i = 0; i < THREADS; i++)
		CU_ASSERT_EQUAL(pthread_create(&threads[i], NULL, clear_until_told, arena + i * 40000), 0);
	for (unsigned i = 0; i < 60; i++) {
		publish(pc_search_paths[i % 2], i % 3 == 0 ? good_text(i) : probing_text(probing));
		CU_ASSERT_TRUE(pageclear_reload() >= 0);
		CU_ASSERT_TRUE(pageclear_status(NULL, 0) >= 0);
		unlink(pc_search_paths[0]);
		CU_ASSERT_TRUE(pageclear_reload() >= 0);
	}
	stop = true;
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CU_ASSERT_EQUAL(wrong, 0);
	start_bare();
}

static void *reload_until_told(void *unused)
{
	(void)unused;
	while (!stop)
		pageclear_reload();
	return NULL;
}

static int reload_in_child(void)
{
	int r = pageclear_reload();

	pageclear_zero(arena, LARGEST, PAGECLEAR_COLD);
	return r < 0 || pageclear_status(NULL, 0) < 0 ? 1 : 0;
}

/* A child of a process whose other thread was just reloading can reload and clear. */
static void test_fork_beside_reload(void)
{
	pthread_t thread;

	if (UNDER_TSAN) {
		unit_skip("ThreadSanitizer has no say in a child of threads");
		return;
	}
	start_bare();
	stop = false;
	publish(pc_search_paths[1], good_text(1));
	CU_ASSERT_EQUAL(pthread_create(&thread, NULL, reload_until_told, NULL), 0);
	for (int i = 0; i < 50; i++)
		CU_ASSERT_EQUAL(in_child(reload_in_child), 0);
	stop = true;
	pthread_join(thread, NULL);
	start_bare();
}

static const struct unit_test tests[] = {
	{"zero_clears_exactly", test_zero_clears_exactly},
	{"every_kernel_clears_exactly", test_every_kernel_clears_exactly},
	{"ranges_of_all_kinds", test_ranges_of_all_kinds},
	{"neighbours_are_not_touched", test_neighbours_are_not_touched},
	{"zero_allocates_nothing", test_zero_allocates_nothing},
	{"zero_makes_no_system_call", test_zero_makes_no_system_call},
	{"small_ranges_are_not_probed", test_small_ranges_are_not_probed},
	{"no_clock_no_probe", test_no_clock_no_probe},
	{"absurd_sizes_fault", test_absurd_sizes_fault},
	{"reload_beside_clears", test_reload_beside_clears},
	{"fork_beside_reload", test_fork_beside_reload},
};

int main(void)
{
	arena = aligned_alloc(4096, LARGEST + 16384 - LARGEST % 4096);
	if (arena == NULL)
		return 1;
	int r = unit_main("zero", tests, sizeof(tests) / sizeof(tests[0]));
	free(arena);
	return r;
}
