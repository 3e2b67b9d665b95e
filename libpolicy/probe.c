/* Was the target in a cache? See probe.h. */
#include "libpolicy/probe.h"

enum { HALF_PAGE = 2048 };

/* The range that an offset into the ranges laid end to end lies in, and *offset into that. */
static const struct iovec *range_at(const struct iovec *ranges, size_t *offset)
{
	while (*offset >= ranges->iov_len) {
		*offset -= ranges->iov_len;
		ranges++;
	}
	return ranges;
}

/* Another line of the same page, if it belongs to the range. */
static void store_beside(const struct iovec *range, size_t offset)
{
	uintptr_t base = (uintptr_t)range->iov_base;
	size_t beside = ((base + offset) ^ HALF_PAGE) - base;

	if (beside < range->iov_len)
		((volatile unsigned char *)range->iov_base)[beside] = 0;
}

/* Another page, other places: a pattern of cached pages that misleads one target's probe spares the next. */
static uint64_t salt(const struct iovec *ranges)
{
	return ((uintptr_t)ranges->iov_base >> 12) * UINT64_C(0xd1342543de82ef95);
}

/*
 * The stores come first, and nobody waits for them: a page that is not there yet, or is shared, gets its memory by a
 * write fault, as the clear would have brought about. After a load it would be the kernel's page of zeros, a second
 * fault would replace that, and older kernels give a huge page up for it. The load then finds what the kernel has just
 * written: cached, as all of such a target will be. Nor does it wait for the TLB.
 */
static inline __attribute__((always_inline)) uint64_t look(const struct iovec *ranges, size_t total, unsigned first,
                                                           unsigned count)
{
	const volatile unsigned char *loads[PC_PROBE_MOST];
	uint64_t begin;

	for (unsigned i = 0; i < count; i++) {
		size_t offset = pc_probe_offset(total, salt(ranges), first + i);
		const struct iovec *range = range_at(ranges, &offset);

		loads[i] = (const volatile unsigned char *)range->iov_base + offset;
		store_beside(range, offset);
	}
	begin = pc_ticks();
	for (unsigned i = 0; i < count; i++)
		(void)*loads[i];
	return pc_ticks_end() - begin;
}

uint64_t pc_probe_look(const struct iovec *ranges, size_t total, unsigned first, unsigned count)
{
	return look(ranges, total, first, count);
}

bool pc_probe_flushed(const struct iovec *ranges, size_t total, unsigned lines, uint64_t slow_ticks,
                      enum pc_doubt doubt)
{
	unsigned first = pc_probe_share(lines, 0), second = pc_probe_share(lines, 1);
	unsigned step = doubt == PC_PROBE_ALL ? 1 : second;

	if (look(ranges, total, 0, first) <= slow_ticks)
		return false;
	for (unsigned i = first; i < first + second; i += step)
		if (pc_probe_look(ranges, total, i, step) <= slow_ticks)
			return false;
	return true;
}
