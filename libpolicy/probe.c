/* Was the target in a cache? See probe.h. */
#include "libpolicy/probe.h"

/* The byte at an offset into the ranges laid end to end. */
static const void *byte_at(const struct iovec *ranges, size_t offset)
{
	while (offset >= ranges->iov_len) {
		offset -= ranges->iov_len;
		ranges++;
	}
	return (const char *)ranges->iov_base + offset;
}

bool pc_probe_flushed(const struct iovec *ranges, size_t total, unsigned lines, uint64_t slow_ticks)
{
	unsigned slow = 0, fast = 0;
	uint64_t last = pc_ticks();

	while (2 * slow <= lines && 2 * fast < lines) {
		const void *at = byte_at(ranges, pc_probe_offset(total, slow + fast));

		if (pc_probe_load(at, &last) > slow_ticks)
			slow++;
		else
			fast++;
	}
	return 2 * slow > lines;
}
