/* SPDX-License-Identifier: MIT */
/*
 * pageclear: clear memory in the way that was measured to be best on this host.
 *
 *     pageclear_zero(buffer, size, PAGECLEAR_COLD);
 *
 * calibrd measures and writes policy.yaml; this library reads it and picks a kernel (one way of clearing) by size
 * and intent. Link with `pkg-config --libs libpolicy`. No set-up: the host's policy is loaded when the library is.
 *
 * WHERE THE POLICY COMES FROM. The first of these that is well-formed and made for this CPU:
 *     $PAGECLEAR_POLICY           a path, or the word `builtin`: look at no file; ignored in set-uid programs
 *     /run/pageclear/policy.yaml
 *     /etc/pageclear/policy.yaml
 * WITHOUT ANY: the built-in policy. Hot and cold clears are libc's memset, save cold ones with the hint FLUSHED on
 * CPUs of which others have published how those go; scrubs of 4 KiB and more go round the caches, on CPUs for which
 * this library has a kernel that does (x86-64).
 * A program may count on the library whether or not the host was ever measured.
 *
 * UNITS: sizes are bytes. ERRORS: negative errno values, no function changes errno except where it says so.
 * THREADS: every function may be called from any thread at any time; none is a cancellation point.
 *
 * THE CPU is asked what it can execute whenever a policy is loaded or opened; nothing that it did not announce is ever
 * executed, whatever the policy names. As with libc's memset, what was chosen stays chosen: a process that is moved to
 * a CPU without a feature in use (live migration between unlike hosts, a checkpoint) may die of SIGILL at its next
 * clear. Give both sides the same CPU model, exclude the kernel in calibrd.yaml, or have the policy replaced before the
 * move; calibrd withdraws a policy that it finds made for another CPU, and pageclear_reload then asks the new one.
 */
#ifndef PAGECLEAR_POLICY_H
#define PAGECLEAR_POLICY_H

#include <stddef.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Inside a static archive the functions are hidden: a program that links it doesn't hand them on to its libraries. */
#if !defined(__GNUC__)
#define PAGECLEAR_API
#elif defined(PAGECLEAR_BUILD) && !defined(PAGECLEAR_SHARED)
#define PAGECLEAR_API __attribute__((visibility("hidden")))
#else
#define PAGECLEAR_API __attribute__((visibility("default")))
#endif

/*
 * The intent: what comes after the clear, and what the caller knows of the time before. One of HOT, COLD, SCRUB,
 * and at most one hint or-ed in. A wrong hint costs time, never correctness. Unknown intents and bits count as HOT
 * without a hint; both hints at once count as none; SCRUB takes no hint.
 */
#define PAGECLEAR_HOT 0u                                   /* used right after by this CPU */
#define PAGECLEAR_COLD 1u                                  /* not used soon */
#define PAGECLEAR_SCRUB 2u                                 /* background: spare the caches */
#define PAGECLEAR_CACHED 16u                               /* hint, or-ed in: just used */
#define PAGECLEAR_FLUSHED 32u                              /* hint, or-ed in: long untouched */
#define PAGECLEAR_WIPE (PAGECLEAR_COLD | PAGECLEAR_CACHED) /* for secrets just used */

/*
 * Sets len bytes at dst to zero. Never fails and is never optimised away, even if dst is freed right after. As
 * with memset, dst must be writable (and readable) for len bytes; any alignment will do, and len 0 does nothing,
 * whatever dst. Later stores of the caller become visible after the zeros, as after memset: no fence is needed for
 * that. Earlier ordinary stores may become visible after the zeros, since some kernels' stores pass those before
 * them. The memory model of C and C++ promises no more: only a thread that reads dst unsynchronised can tell.
 *
 * Safe in signal handlers, after fork, and inside an allocator: it allocates nothing, takes no lock, makes no
 * system call, leaves errno alone. Without a hint, a HOT or COLD clear of a size from the policy's `probe.from` up
 * first looks at a few lines of dst: clears some of its bytes, loads others, and times that with the CPU's time stamp
 * counter. A program that forbids itself that instruction after it has started (PR_SET_TSC, seccomp's strict mode)
 * gives hints, or runs with PAGECLEAR_POLICY=builtin. (A fresh anonymous mapping is zero already: clearing it is a
 * waste.)
 *
 * It keeps at most one change of kernel per half octave of sizes (from a power of two to 1.5 times it, and from there
 * to the next). Where the policy has more, a rule that an admin pinned wins and holds up to the half octave's end;
 * pageclear_policy_choose tells all of them apart.
 *
 * Up to 256 bytes it is libc's memset in the caller, unless PAGECLEAR_NO_INLINE is defined before this header.
 */
PAGECLEAR_API void pageclear_zero(void *dst, size_t len, unsigned intent);

/*
 * pageclear_zero for n ranges that are cleared as one extent: kernel and prior are found once, for the sum of
 * their lengths (ranges up to 256 bytes are always memset), and one fence serves all. Ranges of length 0 are
 * skipped; with n 0 ranges may be NULL. Not limited to IOV_MAX. Same guarantees as pageclear_zero.
 */
PAGECLEAR_API void pageclear_zero_ranges(const struct iovec *ranges, size_t n, unsigned intent);

/*
 * Looks whether pageclear_zero's policy is still what the search above finds, and loads what it finds now. A
 * program that runs for long calls this now and then.
 *
 * Returns 1 if the policy was replaced: by a new file, by an earlier candidate that has appeared, or, where the
 * file in use is gone or spoilt, by the next candidate or the built-in policy. 0 if nothing changed: that costs
 * one stat of each candidate up to the one in use, and the CPU is not asked again. -ENOMEM, -EMFILE, -ENFILE, -EIO,
 * -EAGAIN, -EINTR: could not look; what was in force stays, and pageclear_status says so. (Where the library's own
 * first look met such an error it went on to the next candidate, and each call of this looks again.) Likewise -EACCES,
 * -EPERM, -ENOSYS of the file in use: a program that has shut itself in keeps what it had before. One that has changed
 * its root finds no file there, which counts as gone.
 *
 * Clears that run meanwhile in other threads use the old policy, the new one, or a mixture, all of them harmless.
 * Not for signal handlers: it reads files, allocates, and takes a lock. May change errno.
 */
PAGECLEAR_API int pageclear_reload(void);

/*
 * Writes into text, in words and on one line, which policy pageclear_zero uses and why: file, generation, quality,
 * rules whose kernel this CPU or library lacks (libc stands in), and what was wrong with the candidates that were
 * passed over. For people: don't parse it. At most size bytes, always ending in NUL; size 0 writes nothing and
 * text may be NULL.
 *
 * Returns 0 calibrated, 1 built-in or libc only, -EINVAL text is NULL and size is not 0. Not for signal handlers: takes
 * a lock.
 */
PAGECLEAR_API int pageclear_status(char *text, size_t size);

/*
 * An explicit policy: never changes once it is open, any number of threads may share it, survives fork. For
 * programs that compare policies, must not depend on the environment, or want to know what would be chosen.
 */
struct pageclear_policy;

/*
 * Opens the policy at path; NULL: the host's, by the search above (which ends at the built-in one, so it is found
 * on any host). On success *out belongs to the caller, who closes it; on failure it is left alone. Returns 0,
 *     -ENOENT and other errors of open and read (of those ESTALE becomes -EIO)
 *     -EBADMSG          malformed, or no regular file
 *     -EPROTONOSUPPORT  written in a newer format than this library reads
 *     -ESTALE           made for another CPU
 *     -EFBIG            larger than 64 KiB
 *     -EINVAL           out is NULL
 *     -ENOMEM
 * A rule that names a kernel which this CPU or library lacks becomes libc; the rest of the policy stands. May
 * change errno. Not for signal handlers.
 */
PAGECLEAR_API int pageclear_policy_open(const struct pageclear_policy **out, const char *path);

/* The built-in policy of this CPU, to be closed as well. Returns 0, -EINVAL out is NULL, -ENOMEM. May change errno. */
PAGECLEAR_API int pageclear_policy_builtin(const struct pageclear_policy **out);

/* Releases a policy that no thread uses any more. Takes NULL. Returns NULL. */
PAGECLEAR_API const struct pageclear_policy *pageclear_policy_close(const struct pageclear_policy *policy);

/*
 * Both structs grow at their ends in later versions, and size tells how far the caller's go: set it to sizeof.
 * Clear the whole query beforehand ({0}, memset): what a newer program asks beyond this library must be 0.
 */
struct pageclear_query {
	size_t size;      /* sizeof(struct pageclear_query) */
	size_t len;       /* bytes to clear in all */
	unsigned intent;  /* as for pageclear_zero; without a hint the answer is for a prior nobody knows: no probe */
	unsigned threads; /* how many CPUs of one last-level cache clear at the same time; 0 counts as 1 */
};

struct pageclear_choice {
	size_t size;                   /* in: sizeof(struct pageclear_choice); members beyond this library are zeroed */
	const char *kernel;            /* name of the way of clearing; never freed, valid while the library is loaded */
	void (*clear)(void *, size_t); /* clears any size at any alignment, fenced; safe wherever pageclear_zero is */
	size_t chunk;                  /* bytes to clear in one call for best results, 0: all at once; not below 4096 */
	size_t from, to;               /* same answer for all len in [from, to); to SIZE_MAX: and for SIZE_MAX itself */
};

/*
 * What the policy says for a query: a table look-up, safe wherever pageclear_zero is. Answers every len, and libc
 * where nothing better is known. Returns 0, or with *choice left alone:
 *     -EINVAL  policy, query or choice is NULL, or one of the sizes is smaller than the first version's (0.1)
 *     -E2BIG   the query asks something that this library does not know (a non-zero byte beyond its own struct), or one
 *              of the sizes is above 4096
 */
PAGECLEAR_API int pageclear_policy_choose(const struct pageclear_policy *policy, const struct pageclear_query *query,
                                          struct pageclear_choice *choice);

/* pageclear_zero by an explicit policy, for one thread; same guarantees. A NULL policy means pageclear_zero's own. */
PAGECLEAR_API void pageclear_policy_zero(const struct pageclear_policy *policy, void *dst, size_t len, unsigned intent);

#if defined(__GNUC__) && !defined(PAGECLEAR_NO_INLINE)
/*
 * An inline body beside the exported function, not instead of it: gnu_inline emits no symbol, and where the
 * compiler doesn't inline, or the address is taken, it is the exported one. The way there is a pointer that the
 * compiler can't see through, since a direct call would be a recursion to it (clang drops such bodies).
 */
extern __inline__ __attribute__((__gnu_inline__, __always_inline__)) void pageclear_zero(void *dst, size_t len,
                                                                                         unsigned intent)
{
	if (__builtin_expect(len - 1 < 256, 1)) { /* not 0: that makes the compiler take dst for no NULL */
		__builtin_memset(dst, 0, len);
		__asm__ __volatile__("" : : "r"(dst) : "memory"); /* the zeros are used, whatever follows */
	} else {
		void (*exported)(void *, size_t, unsigned) = pageclear_zero;

		__asm__("" : "+r"(exported));
		exported(dst, len, intent);
	}
}
#endif

#ifdef __cplusplus
}
#endif

#endif
