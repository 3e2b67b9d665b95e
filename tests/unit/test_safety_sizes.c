/* Lengths and addresses that nobody can mean: refused by a fault, as memset does, by every kernel and every function;
 * none of them loops for ever or comes back as if nothing had been. */
#include <setjmp.h>
#include <stdint.h>
#include <sys/mman.h>

#include "kernels/kernels.h"
#include "tests/unit/harness.h"
#include "tests/unit/safety.h"

enum { ROOM = 1 << 16, AROUND = 16 << 20 };
static unsigned char *arena;

static sigjmp_buf back;

static void fault(int number)
{
	siglongjmp(back, number);
}

static void catch_faults(void)
{
	struct sigaction action = {.sa_handler = fault, .sa_flags = SA_NODEFER};

	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGBUS, &action, NULL);
}

/* To the end of everything, around it, and far beyond what there is. */
static size_t absurd_length(const unsigned char *dst, unsigned i)
{
	const size_t to_the_end = -(uintptr_t)dst;
	const size_t lengths[] = {
		SIZE_MAX,       SIZE_MAX - 1,         SIZE_MAX - 63,  SIZE_MAX - 64,   SIZE_MAX - 127,
		SIZE_MAX - 128, SIZE_MAX - 4095,      to_the_end - 1, to_the_end,      to_the_end + 1,
		SIZE_MAX / 2,   (SIZE_MAX / 2) + 1,   ROOM + 1,       (size_t)1 << 40, (size_t)1 << 47,
		ROOM + 4096,    to_the_end - 4096 - 1};

	return i < sizeof(lengths) / sizeof(lengths[0]) ? lengths[i] : 0;
}

static const struct pc_kernel *kernel;
static const struct pageclear_policy *handle;

static void call_absurdly(unsigned way, unsigned char *dst, size_t len)
{
	struct iovec behind[] = {{arena, 300}, {NULL, 0}, {dst, len}}, twice[] = {{dst, len}, {dst, len}, {dst, 7}};

	switch (way) {
	case 0:
		kernel->body(dst, len);
		break;
	case 1:
		kernel->clear(dst, len);
		break;
	case 2:
		pageclear_policy_zero(handle, dst, len, PAGECLEAR_HOT);
		break;
	case 3:
		pageclear_policy_zero(NULL, dst, len, PAGECLEAR_WIPE);
		break;
	case 4:
		pageclear_zero(dst, len, PAGECLEAR_SCRUB);
		break;
	case 5:
		pageclear_zero(dst, len, PAGECLEAR_COLD); /* with a probe, if there is any */
		break;
	case 6:
		pageclear_zero_ranges(behind, 3, PAGECLEAR_COLD);
		break;
	default:
		pageclear_zero_ranges(twice, 3, PAGECLEAR_SCRUB);
	}
}

enum { WAYS = 8 };

/* In functions of their own: what a caller keeps in registers is not at the mercy of longjmp. */
__attribute__((noinline)) static bool faults(unsigned way, unsigned char *dst, size_t len)
{
	if (sigsetjmp(back, 1) != 0)
		return true;
	call_absurdly(way, dst, len);
	return false;
}

__attribute__((noinline)) static bool ranges_fault(const struct iovec *ranges, size_t n)
{
	if (sigsetjmp(back, 1) != 0)
		return true;
	pageclear_zero_ranges(ranges, n, PAGECLEAR_COLD);
	return false;
}

static int every_absurdity(void)
{
	static const size_t offsets[] = {0, 1, 63, 64, 4095};

	catch_faults();
	for (unsigned way = 0; way < WAYS; way++)
		for (size_t o = 0; o < sizeof(offsets) / sizeof(offsets[0]); o++)
			for (unsigned i = 0; absurd_length(arena, i) != 0; i++) {
				unsigned char *dst = arena + offsets[o];
				size_t len = absurd_length(dst, i);

				if (!faults(way, dst, len)) {
					fprintf(stderr, "\n%s, way %u: %zu bytes from %zu came back\n", kernel->name,
					        way, len, offsets[o]);
					return 1;
				}
			}
	return 0;
}

static bool a_sanitizer_comes_first(void)
{
	if (UNDER_ASAN || UNDER_TSAN)
		unit_skip("a sanitizer meets the fault first");
	return UNDER_ASAN || UNDER_TSAN;
}

static void test_every_kernel_faults(void)
{
	static const size_t chunks[] = {0, 4096, 65536, (size_t)1 << 62};

	if (a_sanitizer_comes_first())
		return;
	for (unsigned k = 0; k < pc_kernel_count; k++) {
		kernel = &pc_kernels[k];
		if (!pc_kernel_runs(kernel))
			continue; /* test_zero names those */
		for (size_t c = 0; c < sizeof(chunks) / sizeof(chunks[0]); c++) {
			start_bare();
			publish(pc_search_paths[0], kernel_text(1, kernel->name, chunks[c]));
			CU_ASSERT_EQUAL(pageclear_reload(), 1);
			handle = open_text(kernel_text(1, kernel->name, chunks[c]));
			CU_ASSERT_EQUAL(choose(handle, 1, PAGECLEAR_HOT, 1).chunk, chunks[c]);
			CU_ASSERT_EQUAL(in_child(every_absurdity), 0);
			handle = pageclear_policy_close(handle);
		}
	}
	start_bare();
}

/* The probe loads far inside of what it is given. */
static void test_probes_fault(void)
{
	if (a_sanitizer_comes_first())
		return;
	start_bare();
	publish(pc_search_paths[0], probing_text("probe: {from: 1000, lines: 5, slow_ns: 60}\n"));
	CU_ASSERT_EQUAL(pageclear_reload(), 1);
	handle = open_text(probing_text("probe: {from: 1000, lines: 5, slow_ns: 60}\n"));
	kernel = &pc_kernels[0];
	CU_ASSERT_EQUAL(in_child(every_absurdity), 0);
	handle = pageclear_policy_close(handle);
	start_bare();
}

/* Whoever counts ranges absurdly reads beyond them, and stops there. */
static int absurd_counts(void)
{
	static const size_t counts[] = {SIZE_MAX,          SIZE_MAX / 16, SIZE_MAX / 16 + 1,
	                                SIZE_MAX / 16 + 2, SIZE_MAX / 2,  1 << 20};
	enum { FILLED = 16 };
	struct iovec *ranges = (struct iovec *)(void *)(arena + ROOM) - FILLED;

	catch_faults();
	for (unsigned large = 0; large < 2; large++) {
		for (size_t i = 0; i < FILLED; i++)
			ranges[i] = (struct iovec){arena + i * 1000, large ? 1000 : 100};
		for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
			CHECK(ranges_fault(ranges, counts[i]));
	}
	CHECK(ranges_fault(NULL, 1));
	return 0;
}

static void test_absurd_counts_fault(void)
{
	if (a_sanitizer_comes_first())
		return;
	start_bare();
	CU_ASSERT_EQUAL(in_child(absurd_counts), 0);
}

/* Far more than IOV_MAX, of all sizes, many of them empty and nowhere. */
static void test_many_ranges(void)
{
	enum { COUNT = 20000, LARGE = 400 };
	struct iovec *ranges = calloc(COUNT, sizeof(*ranges));
	unsigned char *bytes = malloc(COUNT * (LARGE + 1));

	CU_ASSERT_TRUE_FATAL(ranges != NULL && bytes != NULL);
	memset(bytes, 0xA5, COUNT * (LARGE + 1));
	for (size_t i = 0; i < COUNT; i++) {
		size_t len = i % 3 == 0 ? 0 : i % LARGE;

		ranges[i] = (struct iovec){
			len == 0 ? (void *)(uintptr_t)(i * 0x0123456789abcd) : bytes + i * (LARGE + 1), len};
	}
	pageclear_zero_ranges(ranges, COUNT, PAGECLEAR_SCRUB);
	for (size_t i = 0; i < COUNT; i++) {
		const unsigned char *at = bytes + i * (LARGE + 1);

		if (!is_all(at, ranges[i].iov_len, 0) || at[ranges[i].iov_len] != 0xA5)
			CU_FAIL("a range is not as it should be");
	}
	free(bytes);
	free(ranges);
}

static void test_nothing_is_done_nowhere(void)
{
	void *const nowhere[] = {NULL, (void *)1, (void *)UINTPTR_MAX, (void *)(UINTPTR_MAX / 2 + 1)};

	handle = open_text(good_text(1));
	for (size_t i = 0; i < 4; i++)
		for (size_t j = 0; j < INTENTS; j++) {
			pageclear_zero(nowhere[i], 0, all_intents[j]);
			(pageclear_zero)(nowhere[i], 0, all_intents[j]);
			pageclear_policy_zero(handle, nowhere[i], 0, all_intents[j]);
			pageclear_zero_ranges(&(struct iovec){nowhere[i], 0}, 1, all_intents[j]);
			pageclear_zero_ranges(nowhere[i], 0, all_intents[j]);
			for (unsigned k = 0; k < pc_kernel_count; k++)
				if (pc_kernel_runs(&pc_kernels[k]))
					pc_kernels[k].clear(nowhere[i], 0);
		}
	handle = pageclear_policy_close(handle);
	CU_PASS("still here");
}

static const struct unit_test tests[] = {
	{"every_kernel_faults", test_every_kernel_faults},         {"probes_fault", test_probes_fault},
	{"absurd_counts_fault", test_absurd_counts_fault},         {"many_ranges", test_many_ranges},
	{"nothing_is_done_nowhere", test_nothing_is_done_nowhere},
};

int main(void)
{
	long page = sysconf(_SC_PAGESIZE);

	if (ROOM % page != 0)
		return 1;
	arena = mmap(NULL, ROOM + 2 * AROUND, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (arena == MAP_FAILED || mprotect(arena + AROUND, ROOM, PROT_READ | PROT_WRITE) != 0)
		return 1;
	arena += AROUND;
	return unit_main("safety_sizes", tests, sizeof(tests) / sizeof(tests[0]));
}
