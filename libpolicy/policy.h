/*
 * A document made ready: rules resolved to kernels that run here, indexed for one look-up. Immutable once built.
 */
#ifndef PC_POLICY_H
#define PC_POLICY_H

#define PAGECLEAR_BUILD
#include <pageclear/policy.h>

#include "libpolicy/document.h"
#include "libpolicy/words.h"

/* The rules of one table. */
struct pc_list {
	unsigned threads;
	const struct pc_span *spans;
	uint8_t first[PC_HALF_OCTAVES]; /* the span that holds at the half octave's smallest size */
};

struct pc_lists {
	const struct pc_list *lists; /* ascending threads, at least one */
	size_t count;
};

struct pageclear_policy {
	struct pc_words words; /* what pageclear_policy_zero looks at: threads nearest 1 */
	struct pc_lists rows[PC_ROWS];
};

/* "x86_64", "aarch64": what this library was built for, as host.arch writes it. */
extern const char pc_arch[];

/* ticks_per_ns 0: no probe. *lacking names the kernels that libc stands in for, "" if none. -ENOMEM. */
int pc_policy_build(struct pageclear_policy **out, const struct pc_document *document, double ticks_per_ns,
                    struct pc_why *lacking);

/* Reads, checks and builds; why says on failure what is wrong, on success what the policy is. Errors as
 * pageclear_policy_open. */
int pc_policy_load(struct pageclear_policy **out, const char *path, struct pc_why *why);

/* The document that stands in where no file can be had; never freed. */
const struct pc_document *pc_builtin_document(void);

#endif
