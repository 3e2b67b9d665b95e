/* The probe: where it looks, what it says, and what it does to memory. */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "libpolicy/probe.h"
#include "tests/unit/harness.h"

static void test_counts_slow_looks(void)
{
	char memory[8192] = {0};
	struct iovec ranges[] = {{memory, 100}, {NULL, 0}, {memory + 100, 3000}, {memory + 4096, 4096}};

	/* Every look takes longer than no tick and none longer than an age. */
	for (unsigned lines = 1; lines <= 64; lines++) {
		for (enum pc_doubt doubt = PC_PROBE_ANY; doubt <= PC_PROBE_ALL; doubt++) {
			CU_ASSERT_TRUE(pc_probe_flushed(ranges, 7196, lines, 0, doubt));
			CU_ASSERT_FALSE(pc_probe_flushed(ranges, 7196, lines, UINT64_MAX, doubt));
			CU_ASSERT_TRUE(pc_probe_flushed(ranges, 100, lines, 0, doubt));
			CU_ASSERT_TRUE(pc_probe_flushed(ranges, 1, lines, 0, doubt));
		}
	}
}

/* All lines are looked at, half of them first; never more than there is room for. */
static void test_shares(void)
{
	for (unsigned lines = 1; lines <= 64; lines++) {
		unsigned first = pc_probe_share(lines, 0), second = pc_probe_share(lines, 1);

		CU_ASSERT(first >= second && first - second <= 1);
		CU_ASSERT_EQUAL(first + second, lines < PC_PROBE_MOST ? lines : PC_PROBE_MOST);
	}
	CU_ASSERT_EQUAL(pc_probe_share(UINT32_MAX, 0), PC_PROBE_MOST / 2);
}

static void test_offsets_stay_below_total(void)
{
	static const size_t totals[] = {1,     2,     63,    64,      65,      4095,         4096,        4097,
	                                32767, 32768, 32769, 1 << 20, 1000003, SIZE_MAX / 2, SIZE_MAX - 1};

	for (size_t t = 0; t < sizeof(totals) / sizeof(totals[0]); t++)
		for (unsigned i = 0; i < PC_PROBE_MOST; i++)
			for (uint64_t salt = 0; salt < 64; salt++)
				CU_ASSERT(pc_probe_offset(totals[t], salt * UINT64_C(0xd1342543de82ef95), i) <
				          totals[t]);
}

/* Share of targets, over many page numbers, of which both looks of four lines meet a line in `wanted`. */
static double share_met(size_t total, bool (*wanted)(size_t at, size_t total))
{
	enum { TARGETS = 2000 };
	unsigned met = 0;

	for (uint64_t page = 0; page < TARGETS; page++) {
		bool looks[2] = {false, false};

		for (unsigned i = 0; i < 8; i++) {
			size_t at = pc_probe_offset(total, (page + 0x7f1234567) * UINT64_C(0xd1342543de82ef95), i);

			looks[i / 4] |= wanted(at, total);
		}
		met += looks[0] && looks[1];
	}
	return (double)met / TARGETS;
}

static bool in_second_half(size_t at, size_t total)
{
	return at >= total / 2;
}

static bool in_even_page(size_t at, size_t total)
{
	(void)total;
	return at / 4096 % 2 == 0;
}

static bool before_the_tail(size_t at, size_t total)
{
	return at < total / 4 * 3;
}

static bool in_one_line_of_fifty(size_t at, size_t total)
{
	(void)total;
	return at / 64 % 50 == 0;
}

/* Chance brings it to 0.88 of targets of which half is cached, and to 0.006 where all but one line in fifty is; places
 * that are spread well do better where the cached part is one piece. */
static void test_meets_patterns(void)
{
	for (size_t total = 65536; total <= 16 << 20; total += total / 3) {
		CU_ASSERT(share_met(total, in_second_half) > 0.95);
		CU_ASSERT(share_met(total, in_even_page) > 0.84);
		CU_ASSERT(share_met(total, before_the_tail) > 0.99);
		CU_ASSERT(share_met(total, in_one_line_of_fifty) < 0.03);
	}
}

/* A store to the neighbour's half page could leave the range: then there is none. */
static void test_writes_only_inside(void)
{
	static unsigned char memory[3 * 4096] __attribute__((aligned(4096)));

	for (size_t len = 1; len <= 4096; len += 127)
		for (size_t at = 4000; at < 4200; at += 33) {
			struct iovec ranges[] = {{memory + at, len}, {memory + at + len, 0}};

			memset(memory, 0x5a, sizeof(memory));
			pc_probe_flushed(ranges, len, 16, 0, PC_PROBE_ANY);
			for (size_t i = 0; i < sizeof(memory); i++)
				CU_ASSERT(memory[i] == 0x5a || (memory[i] == 0 && i >= at && i < at + len));
		}
}

enum { FRESH = 8 << 20 };

static long faults(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_minflt : -1;
}

/* Faults that clearing a fresh mapping takes, probing before or not. */
static long fresh_faults(int advice, bool probing)
{
	char *map = mmap(NULL, FRESH, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct iovec range = {map, FRESH};
	long before;

	CU_ASSERT_TRUE_FATAL(map != MAP_FAILED);
	madvise(map, FRESH, advice);
	before = faults();
	if (probing)
		pc_probe_flushed(&range, FRESH, PC_PROBE_MOST, 0, PC_PROBE_ANY);
	memset(map, 0, FRESH);
	__asm__ volatile("" : : "r"(map) : "memory");
	before = faults() - before;
	munmap(map, FRESH);
	return before;
}

/* Memory that is read before it is ever written becomes the kernel's page of zeros, and takes a fault more to write. */
static void test_fresh_memory_takes_no_fault_more(void)
{
	fresh_faults(MADV_NOHUGEPAGE, true); /* what is faulted in only once, as this code */
	CU_ASSERT(fresh_faults(MADV_NOHUGEPAGE, true) <= fresh_faults(MADV_NOHUGEPAGE, false) + PC_PROBE_MOST / 4);
	CU_ASSERT(fresh_faults(MADV_HUGEPAGE, true) <= fresh_faults(MADV_HUGEPAGE, false));
}

static const struct unit_test tests[] = {
	{"counts slow looks", test_counts_slow_looks},
	{"shares", test_shares},
	{"offsets stay below total", test_offsets_stay_below_total},
	{"meets patterns", test_meets_patterns},
	{"writes only inside", test_writes_only_inside},
	{"fresh memory takes no fault more", test_fresh_memory_takes_no_fault_more},
};

UNIT_MAIN("probe", tests)
