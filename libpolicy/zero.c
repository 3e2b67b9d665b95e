/*
 * The clears themselves. Nothing here may allocate, lock, call the system or touch errno: callers are allocators,
 * signal handlers and children between fork and exec.
 */
#define PAGECLEAR_NO_INLINE /* this is the exported function that the inline one calls */
#include "libpolicy/policy.h"

#include <string.h>

#include "kernels/cpu.h"
#include "libpolicy/probe.h"
#include "libpolicy/process.h"

enum { PAGE = 4096 };

/* Through a pointer that the compiler can't see through, the clear is never optimised away, not even by link-time
 * optimisation, and it costs a jump instead of a call and a PLT entry. */
static void *(*const volatile libc_memset)(void *, int, size_t) = memset;

/* An extent beyond the end of the address space can only fault. memset's own way of that is the one people know; a
 * kernel's loop might see an end below its start, and stop. */
static inline bool wraps(const void *dst, size_t len)
{
	return len > UINTPTR_MAX - (uintptr_t)dst;
}

/* The first chunk ends on a page's border, so that all later ones begin there. */
static void clear_chunks(struct pc_pick pick, char *dst, size_t len)
{
	size_t n = pick.chunk - ((uintptr_t)dst & (PAGE - 1));

	for (; len > n; n = pick.chunk) {
		pick.kernel->body(dst, n);
		dst += n;
		len -= n;
	}
	pick.kernel->body(dst, len);
}

static inline void clear(struct pc_pick pick, void *dst, size_t len)
{
	if (pick.chunk == 0)
		pick.kernel->body(dst, len);
	else
		clear_chunks(pick, dst, len);
}

/* Which row counts once the target itself has been asked. A hot clear loses more by throwing out what is cached, since
 * it is read next, than it gains by not bringing in what isn't: there every line must have missed. */
static unsigned probe(const struct pc_words *words, unsigned row, const struct iovec *ranges, size_t total)
{
	unsigned lines = atomic_load_explicit(&words->probe_lines, memory_order_relaxed);
	uint64_t slow = atomic_load_explicit(&words->probe_slow, memory_order_relaxed);

	if (!pc_words_probe_matters(words, row, total))
		return row;
	enum pc_doubt doubt = row == PC_ROW_HOT + PC_UNKNOWN ? PC_PROBE_ALL : PC_PROBE_ANY;
	return row + (pc_probe_flushed(ranges, total, lines, slow, doubt) ? PC_FLUSHED : PC_CACHED);
}

__attribute__((noinline)) static void clear_extent(uint64_t word, void *dst, size_t len)
{
	struct pc_pick pick = pc_word_pick(word, len);

	clear(pick, dst, len);
	if (pick.kernel->weak)
		pc_fence();
}

/* Words without chunks end in a jump: what one KiB costs is so little that a stack frame would show. The most common
 * ones, one kernel for the whole half octave, need not look where in it len lies. */
static inline void zero_row(const struct pc_words *words, unsigned row, void *dst, size_t len)
{
	uint64_t word = pc_words_at(words, row, len);

	if (word == 0)
		libc_memset(dst, 0, len);
	else if (pc_word_is_whole(word))
		pc_word_whole(word)->clear(dst, len);
	else if (pc_word_is_unchunked(word))
		pc_word_kernel(word, len)->clear(dst, len);
	else
		clear_extent(word, dst, len);
}

__attribute__((noinline)) static void zero_probing(const struct pc_words *words, unsigned row, void *dst, size_t len)
{
	zero_row(words, probe(words, row, &(struct iovec){dst, len}, len), dst, len);
}

static inline void zero(const struct pc_words *words, void *dst, size_t len, unsigned intent)
{
	if (pc_words_plain(words, intent, len)) {
		libc_memset(dst, 0, len);
		return;
	}
	unsigned row = pc_row(intent);

	if (len <= PC_SMALL || wraps(dst, len))
		libc_memset(dst, 0, len);
	else if (pc_words_probes(words, row, len))
		zero_probing(words, row, dst, len);
	else
		zero_row(words, row, dst, len);
}

void pageclear_zero(void *dst, size_t len, unsigned intent)
{
	zero(&pc_process_words, dst, len, intent);
}

void pageclear_policy_zero(const struct pageclear_policy *policy, void *dst, size_t len, unsigned intent)
{
	zero(policy == NULL ? &pc_process_words : &policy->words, dst, len, intent);
}

/* SIZE_MAX if there is no such number. */
static size_t total_length(const struct iovec *ranges, size_t n)
{
	size_t total = 0;

	for (size_t i = 0; i < n; i++)
		if (__builtin_add_overflow(total, ranges[i].iov_len, &total))
			return SIZE_MAX;
	return total;
}

/* Then there is nothing to choose, to probe or to fence. */
static bool all_small(const struct iovec *ranges, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ranges[i].iov_len > PC_SMALL)
			return false;
	return true;
}

static void clear_small(const struct iovec *ranges, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ranges[i].iov_len > 0)
			libc_memset(ranges[i].iov_base, 0, ranges[i].iov_len);
}

void pageclear_zero_ranges(const struct iovec *ranges, size_t n, unsigned intent)
{
	if (all_small(ranges, n)) {
		clear_small(ranges, n);
		return;
	}
	size_t total = total_length(ranges, n);
	unsigned row = pc_row(intent);
	if (total != SIZE_MAX && pc_words_probes(&pc_process_words, row, total))
		row = probe(&pc_process_words, row, ranges, total);

	struct pc_pick pick = pc_word_pick(pc_words_at(&pc_process_words, row, total), total);
	for (size_t i = 0; i < n; i++) {
		void *dst = ranges[i].iov_base;
		size_t len = ranges[i].iov_len;

		if (len > PC_SMALL && !wraps(dst, len))
			clear(pick, dst, len);
		else if (len > 0)
			libc_memset(dst, 0, len);
	}
	if (pick.kernel->weak)
		pc_fence();
}
