/*
 * One thread's part: the ways over an extent, on layouts made by hand, where every call of a kernel is written down;
 * and memory, which is mapped when it is needed.
 */
#include "calibrd/meter_part.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/unit/harness.h"

enum { MIB = 1 << 20, BUFFER = 3 * MIB, CALLS = 4096 };

/* So good that nothing is ever repeated. */
static const struct timer timer = {.ns_per_tick = 1e-6};

/* --- kernels that write down ------------------------------------------------------------------------------------- */

static struct {
	unsigned calls, wholes;
	char *at[CALLS];
	size_t len[CALLS];
	bool dirty[CALLS];
} seen;

static void body(void *dst, size_t len)
{
	unsigned i = seen.calls++ % CALLS;

	seen.at[i] = dst;
	seen.len[i] = len;
	seen.dirty[i] = memchr(dst, 0, len) == NULL;
	memset(dst, 0, len);
}

static void whole(void *dst, size_t len)
{
	seen.wholes++;
	body(dst, len);
}

static const struct pc_kernel strong = {.name = "strong", .body = body, .clear = whole};
static const struct pc_kernel weak = {.name = "weak", .weak = true, .body = body, .clear = whole};

/* --- ways over an extent ----------------------------------------------------------------------------------------- */

static char *buffer;

/* One extent at buffer + offset, the bytes around it watched. */
static void clear(const struct pc_kernel *kernel, size_t offset, size_t bytes, uint64_t chunk, bool backward)
{
	struct meter_ask ask = {.kernel = kernel,
	                        .phase = PHASE_CLEAR,
	                        .prior = PC_FLUSHED,
	                        .bytes = bytes,
	                        .chunk = chunk,
	                        .backward = backward,
	                        .threads = 1};
	struct part part = {.batch = {1, 1, 1}, .at = {buffer + offset}, .bytes = bytes};
	struct meter_sample out = {.ns = -1, .read_ns = -1};

	memset(&seen, 0, sizeof(seen));
	memset(buffer, 0xa5, BUFFER);
	part_clear(&part, &ask, &timer, NULL, &out);
	CU_ASSERT(out.ns >= 0);
	CU_ASSERT_EQUAL(out.read_ns, 0);
	CU_ASSERT_FATAL(seen.calls > 0 && seen.calls < CALLS);
	CU_ASSERT_PTR_NULL(memchr(buffer, 0, offset));
	CU_ASSERT_PTR_NULL(memchr(buffer + offset + bytes, 0, BUFFER - offset - bytes));
	for (size_t i = 0; i < bytes; i++)
		if (buffer[offset + i] != 0) {
			CU_FAIL("not all of it is clear");
			return;
		}
}

/* The calls of the last extent, small ones being cleared once for nothing before: in that direction without gap or
 * overlap, inner borders on pages, inner chunks as long as asked for. */
static void check_chunks(size_t offset, size_t bytes, size_t chunk, bool backward)
{
	size_t start = (uintptr_t)(buffer + offset) % 4096, each = (start + bytes + chunk - 1) / chunk;
	unsigned from = seen.calls - (unsigned)each;
	char *expected = buffer + offset;

	CU_ASSERT_EQUAL(seen.wholes, 0);
	CU_ASSERT_EQUAL_FATAL(seen.calls, bytes < 65536 ? 2 * each : each);
	for (unsigned i = 0; i < each; i++) {
		unsigned call = backward ? seen.calls - 1 - i : from + i;

		CU_ASSERT_PTR_EQUAL(seen.at[call], expected);
		CU_ASSERT(seen.dirty[call]);
		if (i == 0)
			CU_ASSERT_EQUAL(seen.len[call], each == 1 ? bytes : chunk - start);
		if (i > 0 && i + 1 < each)
			CU_ASSERT_EQUAL(seen.len[call], chunk);
		expected += seen.len[call];
	}
	CU_ASSERT_PTR_EQUAL(expected, buffer + offset + bytes);
}

static void test_chunks(void)
{
	const size_t offsets[] = {0, 1, 16, 2048, 4095, 4096, 5000};
	const size_t sizes[] = {4097, 8191, 8192, 8193, 12289, 65536, 65537, 100000, MIB - 1, MIB, 2 * MIB};
	const size_t chunks[] = {4096, 8192, 12288, 20000, 65536, 1 * MIB};

	for (size_t o = 0; o < sizeof(offsets) / sizeof(offsets[0]); o++)
		for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++)
			for (size_t c = 0; c < sizeof(chunks) / sizeof(chunks[0]); c++)
				for (unsigned backward = 0; backward < 2 && chunks[c] < sizes[s]; backward++) {
					clear(backward ? &strong : &weak, offsets[o], sizes[s], chunks[c],
					      backward != 0);
					check_chunks(offsets[o], sizes[s], chunks[c], backward != 0);
				}
}

/* No chunk, or one that covers the extent, is one call of clear, in either direction. */
static void test_whole(void)
{
	const uint64_t chunks[] = {0, 100000, 100001, UINT64_MAX};

	for (size_t c = 0; c < sizeof(chunks) / sizeof(chunks[0]); c++)
		for (unsigned backward = 0; backward < 2; backward++) {
			clear(&weak, 16, 100000, chunks[c], backward != 0);
			CU_ASSERT_EQUAL(seen.calls, 1);
			CU_ASSERT_EQUAL(seen.wholes, 1);
			CU_ASSERT_EQUAL(seen.len[0], 100000);
		}
}

/* As in the library. */
static void test_less_than_a_page(void)
{
	for (uint64_t chunk = 1; chunk < 4096; chunk += 819)
		for (unsigned backward = 0; backward < 2; backward++) {
			clear(&weak, 5000, 100000, chunk, backward != 0);
			check_chunks(5000, 100000, 4096, backward != 0);
		}
}

/* --- repeating --------------------------------------------------------------------------------------------------- */

/* The kernel's calls, with a clock of that jitter. */
static unsigned repeats(const struct pc_kernel *kernel, double jitter_ns, struct gate *gate)
{
	const struct timer poor = {.ns_per_tick = 1e-6, .jitter_ns = jitter_ns};
	struct meter_ask ask = {.kernel = kernel, .phase = PHASE_CLEAR, .prior = PC_FLUSHED, .bytes = 65536};
	struct part part = {.batch = {1, 3, 7}, .at = {buffer}, .bytes = 65536};
	struct meter_sample out;

	memset(&seen, 0, sizeof(seen));
	part_clear(&part, &ask, &poor, gate, &out);
	return seen.calls;
}

static void test_repeats(void)
{
	CU_ASSERT_EQUAL(repeats(&weak, 0, NULL), 3);
	CU_ASSERT_EQUAL(repeats(&weak, 1e9, NULL), TIMER_REPEATS_MOST);
}

/* Of several threads as many as was laid out, unless something disturbed it. */
static void test_repeats_of_a_crew(void)
{
	time_t late = time(NULL) + 20;
	unsigned calls = 0;

	while (calls < 7 && time(NULL) < late) {
		struct gate gate;

		gate_init(&gate, 1);
		calls = repeats(&weak, 1e9, &gate);
	}
	CU_ASSERT_EQUAL(calls, 7);
}

static void sleepy_body(void *dst, size_t len)
{
	body(dst, len);
	nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
}

static void test_disturbed_crew_gives_up(void)
{
	static const struct pc_kernel sleepy = {.name = "sleepy", .body = sleepy_body, .clear = sleepy_body};
	struct gate gate;

	gate_init(&gate, 1);
	CU_ASSERT_EQUAL(repeats(&sleepy, 0, &gate), 1);
	CU_ASSERT_EQUAL(repeats(&sleepy, 0, NULL), 3); /* nobody waits for one alone */
}

/* --- memory ------------------------------------------------------------------------------------------------------ */

static int target(struct part *part, uint64_t bytes, bool base_pages, char **at)
{
	*at = NULL;
	return part_target(part, bytes, base_pages, 12345, at);
}

static void test_mapped_when_needed(void)
{
	struct part part = {0};
	char *at;

	part_renew(&part, 2 * MIB, 6 * MIB, 8 * MIB);
	CU_ASSERT(part.small.base == NULL && part.base.base == NULL && part.large.base == NULL);
	CU_ASSERT_EQUAL(target(&part, 4096, false, &at), 0);
	CU_ASSERT(at >= part.small.base && at + 4096 <= part.small.base + 2 * MIB);
	CU_ASSERT(part.base.base == NULL && part.large.base == NULL);
	CU_ASSERT_EQUAL(target(&part, 3 * MIB, false, &at), 0);
	CU_ASSERT(at >= part.large.base && at + 3 * MIB <= part.large.base + 8 * MIB);
	CU_ASSERT_PTR_NULL(part.base.base);
	CU_ASSERT_EQUAL(target(&part, 3 * MIB, true, &at), 0);
	CU_ASSERT(at >= part.base.base && at + 3 * MIB <= part.base.base + 6 * MIB);
	CU_ASSERT_EQUAL(target(&part, 2 * MIB, true, &at), 0); /* the small arena is on base pages too */
	CU_ASSERT_PTR_EQUAL(at, part.small.base);
	part_renew(&part, 0, 0, 0);
	CU_ASSERT(part.small.base == NULL && part.base.base == NULL && part.large.base == NULL);
	CU_ASSERT_EQUAL(target(&part, 4096, false, &at), -EINVAL);
}

static void test_no_room(void)
{
	struct part part = {0};
	char *at;

	part_renew(&part, 2 * MIB, 6 * MIB, 8 * MIB);
	CU_ASSERT_EQUAL(target(&part, 0, false, &at), -EINVAL);
	CU_ASSERT_EQUAL(target(&part, 8 * MIB + 1, false, &at), -EINVAL);
	CU_ASSERT_EQUAL(target(&part, 6 * MIB + 1, true, &at), -EINVAL);
	CU_ASSERT_EQUAL(target(&part, UINT64_MAX, false, &at), -EINVAL);
	CU_ASSERT(part.small.base == NULL && part.base.base == NULL && part.large.base == NULL);
	part_renew(&part, 2 * MIB, 0, (uint64_t)1 << 60); /* more than there are addresses */
	CU_ASSERT_EQUAL(target(&part, 2 * MIB, false, &at), -ENOMEM);
	CU_ASSERT_EQUAL(target(&part, 4096, false, &at), 0);
	part_renew(&part, 0, 0, 0);
}

static const struct unit_test tests[] = {
	{"chunks", test_chunks},
	{"whole", test_whole},
	{"less than a page", test_less_than_a_page},
	{"repeats", test_repeats},
	{"repeats of a crew", test_repeats_of_a_crew},
	{"disturbed crew gives up", test_disturbed_crew_gives_up},
	{"mapped when needed", test_mapped_when_needed},
	{"no room", test_no_room},
};

int main(void)
{
	int result;

	buffer = aligned_alloc(4096, BUFFER);
	if (buffer == NULL)
		return 1;
	result = unit_main("meter_part", tests, sizeof(tests) / sizeof(tests[0]));
	free(buffer);
	return result;
}
