/*
 * A document made ready: rules resolved to kernels that run here, indexed for one look-up. Immutable once built.
 */
#ifndef PC_POLICY_H
#define PC_POLICY_H

#define PAGECLEAR_BUILD
#include <pageclear/policy.h>

#include "libpolicy/document.h"
#include "libpolicy/words.h"

/* The rules of one table. The next one's, for more threads, follow, up to one that has no bound. */
struct pc_list {
	const struct pc_span *first[PC_HALF_OCTAVES]; /* what holds at the half octave's smallest size */
	unsigned upto;                                /* threads; the last one's: UINT_MAX */
};

struct pageclear_policy {
	struct pc_words words;                   /* what pageclear_policy_zero looks at: threads nearest 1 */
	const struct pc_list *lists[PC_INTENTS]; /* by intent as callers write it: a row's first */
};

/* "x86_64", "aarch64": what this library was built for, as host.arch writes it. */
extern const char pc_arch[];

/* ticks_per_ns 0: no probe. *lacking names the kernels that libc stands in for, "" if none. -ENOMEM. */
int pc_policy_build(struct pageclear_policy **out, const struct pc_document *document, double ticks_per_ns,
                    struct pc_why *lacking);

/* Takes NULL. The library's own way: the public name may be bound to another copy's in the same process. */
void pc_policy_free(const struct pageclear_policy *policy);

/* Reads, checks and builds; why says on failure what is wrong, on success what the policy is. Errors as
 * pageclear_policy_open. */
int pc_policy_load(struct pageclear_policy **out, const char *path, struct pc_why *why);

#endif
