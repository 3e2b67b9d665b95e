/* Every kernel that this host can execute: exact lengths at every alignment, guard pages, masks, vector state. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/cpu.h"
#include "kernels/kernels.h"
#include "tests/unit/bytes.h"
#include "tests/unit/harness.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { CANARY = 0xa5, CANARIES = 192, LINE = 64, MIB = 1 << 20, LARGEST = 8 * MIB };

enum { FEATURES = 8 }; /* bits of pc_cpu_features() */

/* --- walking the table --- */

/* Rows of faulty_kernels.h are there to fail; they are the trial's test. */
static bool is_faulty_by_design(const struct pc_kernel *kernel)
{
	return strncmp(kernel->name, "t_", 2) == 0;
}

static void skip(const struct pc_kernel *kernel)
{
	char needs[PC_CPU_NAMES];

	pc_cpu_feature_names(kernel->needs, needs, sizeof(needs));
	unit_skip("kernel %s needs %s", kernel->name, needs);
}

/* The next row from `from` on that may be executed, skipping the others aloud; NULL at the end. */
static const struct pc_kernel *next_runnable(unsigned *from)
{
	while (*from < pc_kernel_count) {
		const struct pc_kernel *kernel = &pc_kernels[(*from)++];

		if (is_faulty_by_design(kernel))
			continue;
		if (pc_kernel_runs(kernel))
			return kernel;
		skip(kernel);
	}
	return NULL;
}

/* --- one clear, checked --- */

/* at has CANARIES bytes on both sides. Says what is wrong, so that a failure can be reproduced. */
static bool clears(const struct pc_kernel *kernel, void (*form)(void *, size_t), unsigned char *at, size_t len)
{
	const char *wrong = NULL;

	memset(at - CANARIES, CANARY, len + 2 * (size_t)CANARIES);
	form(at, len);
	if (!is_all(at, len, 0))
		wrong = "left something";
	else if (!is_all(at - CANARIES, CANARIES, CANARY))
		wrong = "wrote before the start";
	else if (!is_all(at + len, CANARIES, CANARY))
		wrong = "wrote past the end";
	if (wrong != NULL)
		printf("\nkernel %s, %s, %zu bytes at line offset %zu: %s\n", kernel->name,
		       form == kernel->body ? "body" : "clear", len, (size_t)((uintptr_t)at % LINE), wrong);
	return wrong == NULL;
}

static bool both_clear(const struct pc_kernel *kernel, unsigned char *at, size_t len)
{
	return clears(kernel, kernel->body, at, len) &&
	       (kernel->clear == kernel->body || clears(kernel, kernel->clear, at, len));
}

static unsigned char *arena(size_t bytes)
{
	unsigned char *base = aligned_alloc(4096, (bytes + 4095) & ~(size_t)4095);

	CU_ASSERT_PTR_NOT_NULL_FATAL(base);
	return base;
}

/* --- the tests --- */

static void small_lengths(void)
{
	enum { MOST = 300 };
	unsigned char *base = arena(MOST + 2 * CANARIES + 2 * LINE);
	const struct pc_kernel *kernel;

	for (unsigned row = 0; (kernel = next_runnable(&row)) != NULL;) {
		bool good = true;

		for (size_t len = 0; good && len <= MOST; len++)
			for (size_t offset = 0; good && offset < LINE; offset++)
				good = both_clear(kernel, base + CANARIES + offset, len);
		CU_ASSERT_TRUE(good);
	}
	free(base);
}

/* Around each power of two, where loops change their turn, and one length between that no unroll divides. */
static bool clears_around(const struct pc_kernel *kernel, unsigned char *at, size_t power)
{
	static const size_t offsets[] = {0, 1, 8, 16, 31, 32, 48, 63};
	const size_t lengths[] = {power - 1, power, power + 1, power + power / 3 + 7};

	for (size_t i = 0; i < COUNT(lengths); i++)
		for (size_t j = 0; j < COUNT(offsets); j++)
			if (lengths[i] <= LARGEST && !both_clear(kernel, at + offsets[j], lengths[i]))
				return false;
	return true;
}

static void large_lengths(void)
{
	unsigned char *base = arena(LARGEST + 2 * CANARIES + LINE);
	const struct pc_kernel *kernel;

	for (unsigned row = 0; (kernel = next_runnable(&row)) != NULL;) {
		bool good = true;

		for (size_t power = 512; good && power <= LARGEST; power *= 2)
			good = clears_around(kernel, base + CANARIES, power);
		CU_ASSERT_TRUE(good);
	}
	free(base);
}

/* An access beyond the extent, even one that writes what was there, ends the program here. */
static bool clears_at_guards(const struct pc_kernel *kernel, unsigned char *first, size_t usable, size_t len)
{
	unsigned char *const places[] = {first, first + usable - len};

	for (size_t i = 0; i < COUNT(places); i++) {
		memset(places[i], CANARY, len);
		kernel->body(places[i], len);
		if (!is_all(places[i], len, 0))
			return false;
		memset(places[i], CANARY, len);
		kernel->clear(places[i], len);
		if (!is_all(places[i], len, 0))
			return false;
	}
	return true;
}

static void guard_pages(void)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), usable = 4 * page;
	unsigned char *base = mmap(NULL, usable + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	const struct pc_kernel *kernel;

	CU_ASSERT_PTR_NOT_EQUAL_FATAL(base, MAP_FAILED);
	CU_ASSERT_EQUAL_FATAL(mprotect(base + page, usable, PROT_READ | PROT_WRITE), 0);
	for (unsigned row = 0; (kernel = next_runnable(&row)) != NULL;) {
		bool good = true;

		for (size_t len = 0; good && len <= usable; len += len < 700 ? 1 : 61)
			good = clears_at_guards(kernel, base + page, usable, len);
		CU_ASSERT_TRUE(good);
	}
	munmap(base, usable + 2 * page);
}

static void names(void)
{
	CU_ASSERT_STRING_EQUAL(pc_kernels[0].name, "libc");
	CU_ASSERT_EQUAL(pc_kernels[0].needs, 0);
	CU_ASSERT_FALSE(pc_kernels[0].weak);
	for (unsigned i = 0; i < pc_kernel_count; i++) {
		const struct pc_kernel *kernel = &pc_kernels[i];

		CU_ASSERT_TRUE(strlen(kernel->name) > 0 && strlen(kernel->name) < PC_KERNEL_NAME);
		/* Finds the first of that name: so another row of the same name fails. */
		CU_ASSERT_PTR_EQUAL(pc_kernel_find(kernel->name), kernel);
		CU_ASSERT_EQUAL(pc_kernel_index(kernel), i);
		CU_ASSERT_TRUE(kernel->revision >= 1);
		CU_ASSERT_TRUE(strlen(kernel->about) > 0);
		CU_ASSERT_EQUAL(kernel->weak, kernel->body != kernel->clear);
	}
	CU_ASSERT_PTR_NULL(pc_kernel_find(""));
	CU_ASSERT_PTR_NULL(pc_kernel_find("lib"));
	CU_ASSERT_PTR_NULL(pc_kernel_find("libc "));
	CU_ASSERT_PTR_NULL(pc_kernel_find("no such kernel"));
}

static void one_bit_masked(void)
{
	const uint32_t real = pc_cpu_features();

	for (unsigned bit = 0; bit < 32; bit++) {
		pc_cpu_masked = UINT32_C(1) << bit;
		for (unsigned i = 0; i < pc_kernel_count; i++) {
			const uint32_t needs = pc_kernels[i].needs;
			const bool could = (real & needs) == needs;

			CU_ASSERT_EQUAL(pc_kernel_runs(&pc_kernels[i]), could && !(needs & pc_cpu_masked));
		}
	}
	pc_cpu_masked = 0;
}

/* Hides one feature more each turn: what still runs must still clear, down to the bare architecture. */
static void decreasing_masks(void)
{
	unsigned char *base = arena(4096 + 2 * CANARIES + LINE);
	uint32_t shown = UINT32_MAX;

	for (size_t hidden = 0; hidden <= FEATURES; hidden++) {
		for (unsigned i = 0; i < pc_kernel_count; i++)
			if (!is_faulty_by_design(&pc_kernels[i]) && pc_kernel_runs(&pc_kernels[i]))
				CU_ASSERT_TRUE(both_clear(&pc_kernels[i], base + CANARIES + 7, 4001));
		if (hidden < FEATURES)
			shown &= ~(UINT32_C(1) << (FEATURES - 1 - hidden));
		pc_cpu_masked = ~shown;
	}
	for (unsigned i = 0; i < pc_kernel_count; i++)
		CU_ASSERT_EQUAL(pc_kernel_runs(&pc_kernels[i]), pc_kernels[i].needs == 0);
	pc_cpu_masked = 0;
	free(base);
}

#if defined(__x86_64__)
#include <cpuid.h>

/* State components above the SSE registers: AVX, ZMM_Hi256, Hi16_ZMM (Intel SDM vol. 1, 13.1). */
enum { UPPER_STATE = 1 << 2 | 1 << 6 | 1 << 7 };

/* XGETBV with ecx = 1: the components of XCR0 that are not in their initial state (SDM vol. 1, 13.6). */
static inline uint32_t upper_state_in_use(void)
{
	uint32_t low, high;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(1) : "memory");
	return low & UPPER_STATE;
}

static bool has_xgetbv1(void)
{
	unsigned eax, ebx, ecx, edx;

	return (pc_cpu_features() & PC_CPU_AVX) && __get_cpuid_count(13, 1, &eax, &ebx, &ecx, &edx) && (eax & 1u << 2);
}

static inline void make_upper_state_clean(void)
{
	__asm__ volatile("vzeroupper");
}

/* All ones: a CPU may count a register that holds zeroes as initial, and zeroes are all that our kernels leave in one.
 */
static inline void make_upper_state_dirty(void)
{
	__asm__ volatile("vxorps %%ymm9, %%ymm9, %%ymm9\n\tvcmpps $15, %%ymm9, %%ymm9, %%ymm9" : : : "xmm9");
}

static uint32_t in_use_after(void (*prepare)(void), void (*form)(void *, size_t), unsigned char *at, size_t len)
{
	uint32_t in_use;

	prepare();
	form(at, len);
	in_use = upper_state_in_use();
	make_upper_state_clean();
	return in_use;
}

static void touch_nothing(void *dst, size_t len)
{
	__asm__ volatile("" : : "r"(dst), "r"(len) : "memory");
}

/* Else, by this CPU or this build of the test, clean and dirty look the same after a call. */
static bool tells_dirty_from_clean(void)
{
	void (*volatile form)(void *, size_t) = touch_nothing;

	return in_use_after(make_upper_state_dirty, form, NULL, 0) != 0 &&
	       in_use_after(make_upper_state_clean, form, NULL, 0) == 0;
}

/* Every kernel leaves a clean state clean. One that uses AVX cleans even what it found dirty: that is its VZEROUPPER.
 */
static void upper_state_clean(void)
{
	static const size_t lengths[] = {0, 1, 64, 100, 128, 129, 192, 256, 1000, 65536};
	const size_t surely_vector = 192; /* below, the ends may be all there is */
	unsigned char *base;
	const struct pc_kernel *kernel;

	if (!has_xgetbv1() || !tells_dirty_from_clean()) {
		unit_skip("XGETBV does not tell whether the upper vector state is in use");
		return;
	}
	base = arena(65536 + LINE);
	for (unsigned row = 0; (kernel = next_runnable(&row)) != NULL;)
		for (size_t i = 0; i < COUNT(lengths); i++) {
			const size_t len = lengths[i];

			CU_ASSERT_EQUAL(in_use_after(make_upper_state_clean, kernel->clear, base + 1, len), 0);
			if ((kernel->needs & PC_CPU_AVX) && len >= surely_vector)
				CU_ASSERT_EQUAL(in_use_after(make_upper_state_dirty, kernel->clear, base + 1, len), 0);
		}
	free(base);
}

/* SSE2 is part of the architecture; whatever else a kernel executes, its row must say. */
static void bare_architecture(void)
{
	static const char *const runs[] = {"libc", "stosb", "stosl", "stosq", "sse2", "movnti", "sse2nt"};
	unsigned found = 0;

	pc_cpu_masked = UINT32_MAX;
	for (unsigned i = 0; i < pc_kernel_count; i++)
		found += !is_faulty_by_design(&pc_kernels[i]) && pc_kernel_runs(&pc_kernels[i]);
	for (size_t i = 0; i < COUNT(runs); i++) {
		const struct pc_kernel *kernel = pc_kernel_find(runs[i]);

		CU_ASSERT_TRUE(kernel != NULL && pc_kernel_runs(kernel));
	}
	CU_ASSERT_EQUAL(found, COUNT(runs));
	pc_cpu_masked = 0;
}
#endif

/* Where a loop lies in the lines of code is then the same wherever it is linked: what is measured is what runs. */
static void begin_with_a_line(void)
{
	for (unsigned i = 0; i < pc_kernel_count; i++)
		CU_ASSERT_EQUAL((uintptr_t)pc_kernels[i].body % 64, 0);
}

static const struct unit_test tests[] = {
	{"names", names},
	{"begin with a line", begin_with_a_line},
	{"small lengths", small_lengths},
	{"large lengths", large_lengths},
	{"guard pages", guard_pages},
	{"one bit masked", one_bit_masked},
	{"decreasing masks", decreasing_masks},
#if defined(__x86_64__)
	{"bare architecture", bare_architecture},
	{"upper state clean", upper_state_clean},
#endif
};

UNIT_MAIN("kernels", tests)
