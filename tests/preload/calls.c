/*
 * Calls every function that libpageclear-preload.so stands in for:
 *   calls right             all offsets in a cache line, sizes around every border: exactly the right bytes, and none
 * by the time stamp counter, which the program has forbidden itself calls policy FROM WIPE  with the kernel t_wrong in
 * the policy, which leaves one byte: clears go by it from FROM bytes on (wipes from WIPE on), and no others; `never`
 * for none up to 4 MiB calls overflow CALL     a checked function is given more than there is room for
 */
#include "calls.h"

#include <errno.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { DIRT = 0xa5, EDGE = 64, LINE = 64, ROOM = 4 << 20 };

static unsigned char *area; /* EDGE, LINE - 1 at most, ROOM, EDGE; behind it a page that faults */

static void map_area(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), len = (EDGE + LINE + ROOM + EDGE + page) / page * page;

	area = mmap(NULL, len + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED || mprotect(area + len, page, PROT_NONE) != 0)
		fail("no memory");
	area += len - (EDGE + LINE + ROOM + EDGE);
}

static void expect(const char *what, const unsigned char *at, size_t len, unsigned char value)
{
	if (len > 0 && (at[0] != value || memcmp(at, at + 1, len - 1) != 0))
		fail("%s: not all of %zu bytes at offset %zu are %u", what, len, (size_t)(at - area), value);
}

/* Dirties just what is looked at afterwards. */
static unsigned char *prepared(size_t offset, size_t len)
{
	unsigned char *dst = area + EDGE + offset;

	memset(dst - EDGE, DIRT, EDGE + len + EDGE);
	errno = ENXIO;
	return dst;
}

static void check_edges(const char *what, const unsigned char *dst, size_t len)
{
	if (errno != ENXIO)
		fail("%s of %zu bytes changed errno", what, len);
	expect(what, dst - EDGE, EDGE, DIRT);
	expect(what, dst + len, EDGE, DIRT);
}

static void one_right(int call, size_t offset, size_t len)
{
	unsigned char *dst = prepared(offset, len);

	call_clear(call, dst, len);
	check_edges(call_names[call], dst, len);
	expect(call_names[call], dst, len, 0);
}

static void one_value(int value, size_t offset, size_t len)
{
	unsigned char *dst = prepared(offset, len);

	if (call_memset(dst, value, len) != dst || call_memset_chk(dst, value, len, len) != dst)
		fail("memset returned another address");
	check_edges("memset with a value", dst, len);
	expect("memset with a value", dst, len, (unsigned char)value);
}

/* The last byte before a page that faults. */
static void at_the_end(int call)
{
	unsigned char *end = area + EDGE + LINE + ROOM + EDGE;

	for (size_t len = 1; len < 9000; len += 577)
		call_clear(call, end - len, len);
}

static void all_right(void)
{
	static const size_t sizes[] = {
		0,    1,    3,    15,   16,    17,    63,    64,      128,           255,
		256,  257,  511,  512,  513,   1023,  1024,  4095,    4096,          4097,
		8191, 8192, 8193, 9999, 65535, 65536, 65537, 1 << 20, (1 << 20) + 1, ROOM - LINE};

	prctl(PR_SET_TSC, PR_TSC_SIGSEGV, 0, 0, 0); /* an error: here it can't be forbidden */
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		size_t step = sizes[i] > 65536 ? 21 : 1;

		for (size_t offset = 0; offset < LINE; offset += step) {
			for (int call = 0; call < CALLS; call++)
				one_right(call, offset, sizes[i]);
			one_value(1, offset, sizes[i]);
			one_value(0x80 | 0x500, offset, sizes[i]);
			one_value(-256, offset, sizes[i]);
		}
	}
	for (int call = 0; call < CALLS; call++)
		at_the_end(call);
	call_memset(NULL, 0, 0);
}

/* t_wrong leaves a 1 in the middle. */
static void one_by_policy(const char *what, const unsigned char *dst, size_t len, int expected)
{
	int found = dst[len / 2] == 1;

	if (found != expected)
		fail("%s of %zu bytes went %s the policy", what, len, found ? "by" : "past");
	if (!found)
		expect(what, dst, len, 0);
}

static void around(int call, size_t from)
{
	const size_t lens[] = {from - 1, from, from + 1, from * 3 / 2};
	unsigned char *dst;

	for (size_t i = 0; i < sizeof(lens) / sizeof(lens[0]); i++) {
		dst = prepared(i, lens[i]);
		call_clear(call, dst, lens[i]);
		check_edges(call_names[call], dst, lens[i]);
		one_by_policy(call_names[call], dst, lens[i], i > 0);
	}
}

/* Only the low byte of a value counts. */
static void values_at(size_t from)
{
	unsigned char *dst = prepared(0, from);

	call_memset(dst, 512, from);
	one_by_policy("memset with 512", dst, from, 1);
	dst = prepared(0, from);
	call_memset(dst, 513, from);
	expect("memset with 513", dst, from, 1);
}

static void all_by_policy(const char *from, const char *wipe)
{
	for (int call = 0; call < CALLS; call++) {
		const char *border = call_wipes(call) ? wipe : from;

		if (strcmp(border, "never") == 0) {
			unsigned char *dst = prepared(0, ROOM);

			call_clear(call, dst, ROOM);
			one_by_policy(call_names[call], dst, ROOM, 0);
		} else {
			around(call, strtoull(border, NULL, 10));
		}
	}
	if (strcmp(from, "never") != 0)
		values_at(strtoull(from, NULL, 10));
}

static void overflow(const char *call)
{
	unsigned char *dst = prepared(0, 20000);

	if (strcmp(call, "memset") == 0)
		call_memset_chk(dst, 0, 10001, 10000);
	else
		call_explicit_bzero_chk(dst, 10001, 10000);
	fail("the overflow was not noticed");
}

int main(int argc, char **argv)
{
	map_area();
	if (argc == 2 && strcmp(argv[1], "right") == 0)
		all_right();
	else if (argc == 4 && strcmp(argv[1], "policy") == 0)
		all_by_policy(argv[2], argv[3]);
	else if (argc == 3 && strcmp(argv[1], "overflow") == 0)
		overflow(argv[2]);
	else
		fail("usage: calls right | policy FROM WIPE | overflow CALL");
	puts("done");
	return 0;
}
