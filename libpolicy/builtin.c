/*
 * The policy of a host that nobody measured: libc, but for scrubs, whose point is to spare the caches.
 */
#include <pthread.h>
#include <stdio.h>

#include "libpolicy/policy.h"

/*
 * The first that runs here. In Beulich's measurements (xen-devel, April 2021: eight machines, flushed targets) MOVNTI
 * displaced an L1D- or L2-sized victim no more than AVX or AVX-512 non-temporal stores did, clearly less than REP STOS
 * where the victim fitted, and took half the time of AVX's on one first generation (Dinar: 352 against 644 thousand
 * ticks) for 15 % more at worst on the others. CLZERO took two thirds of its time at the same displacement (Rome).
 */
static const char *const scrubbers[] = {"clzero", "movnti", "stnp"};

enum { SCRUB_FROM = 4096 };

static struct pc_rule scrub_rules[2] = {{.from = 0, .kernel = "libc"}, {.from = SCRUB_FROM, .kernel = "libc"}};
static struct pc_table scrub_table = {
	.intent = PAGECLEAR_SCRUB, .prior = PC_UNKNOWN, .threads = 1, .rule_count = 2, .rules = scrub_rules};
static struct pc_document builtin = {.quality = "built-in", .table_count = 1, .tables = &scrub_table};

static void find_scrubber(void)
{
	for (size_t i = 0; i < sizeof(scrubbers) / sizeof(scrubbers[0]); i++) {
		const struct pc_kernel *kernel = pc_kernel_find(scrubbers[i]);

		if (kernel != NULL && pc_kernel_runs(kernel)) {
			snprintf(scrub_rules[1].kernel, sizeof(scrub_rules[1].kernel), "%s", kernel->name);
			return;
		}
	}
}

const struct pc_document *pc_builtin_document(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, find_scrubber);
	return &builtin;
}
