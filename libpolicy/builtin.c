/*
 * The policy of a host that nobody measured: libc, but for scrubs, whose point is to spare the caches, and for cold
 * clears of memory that the caller says no cache holds, on CPUs of which others have published how that goes.
 *
 * A rule stands here only if every published figure for that CPU, at its size and above, says that it beats what libc
 * runs there. Published tables time REP STOS: that is glibc's memset from 2 KiB up on CPUs with ERMS. On others, and
 * from glibc 2.41 on a Zen 3, it is vector stores; on flushed memory both wait for the same reads of the lines that
 * they overwrite (0.95-1.05 of each other, calibctl bench on a Zen 3), and a rule needs a margin far beyond that
 * difference. Nothing is said of hot clears, since no table times the first use; nor of cached or unknown priors, where
 * the same kernels lose 2-8 times as soon as the guess is wrong (Beulich, warm targets). No probe: from what time on a
 * load is slow differs by host, and calibrd alone measures it.
 */
#include "libpolicy/builtin.h"

#include <stdio.h>
#include <string.h>

#include "kernels/cpu.h"
#include "kernels/kernels.h"
#include "libpolicy/policy.h"

/*
 * The first that runs here. In Beulich's measurements (xen-devel, April 2021: eight machines, flushed targets) MOVNTI
 * displaced an L1D- or L2-sized victim no more than AVX or AVX-512 non-temporal stores did, clearly less than REP STOS
 * where the victim fitted, and took half the time of AVX's on one first generation (Dinar: 352 against 644 thousand
 * ticks) for 15 % more at worst on the others. CLZERO took two thirds of its time at the same displacement (Rome).
 */
static const char scrubbers[][8] = {"clzero", "movnti"};

enum { SCRUB_FROM = 4096 };

/*
 * Cold and flushed, from the smallest size that was measured. Beulich: xen-devel, 14 April 2021, flushed targets.
 * Arora: LKML 20201014083300.19077-1 (sizes) and 20220606202109.1306034-1 (4 GiB in chunks), ankur.a.arora@oracle.com;
 * linux-mm, 20 October 2021, "x86/asm: add uncached page clearing". His loops clear the same memory again and again:
 * only what lies far beyond the last-level cache counts as flushed.
 *
 * Models that share a core, by Linux' arch/x86/kernel/cpu/amd.c. Zen 1, Zen 4 and Zen 5 have CLZERO too, but no figures
 * here. Tried and left out: MOVNTI loses to REP STOS on Rome (0.94 at 256 KiB) and Milan (0.52 with 1 GiB a call), on
 * Skylake client (0.76-0.82) and Skylake-X (0.97 at best), on Sandy Bridge and Westmere; it wins on Dinar by 5-14 %,
 * too little for a CPU without ERMS.
 */
static const struct known {
	char vendor[13]; /* arrays: pointers would each take a relocation more */
	uint8_t family, first_model, last_model;
	char kernel[8];
	uint32_t from;
} known[] = {
	/* Zen 2, no ERMS. Beulich, Rome: 1.8-2.2 times REP STOS at 16 KiB, 1.5 times at 256 KiB (without a fence). */
	{"AuthenticAMD", 23, 0x30, 0x4f, "clzero", 16 << 10},
	{"AuthenticAMD", 23, 0x60, 0x7f, "clzero", 16 << 10},
	{"AuthenticAMD", 23, 0x90, 0x91, "clzero", 16 << 10},
	{"AuthenticAMD", 23, 0xa0, 0xaf, "clzero", 16 << 10},
	/* Zen 3. Arora 2022, Milan: 39-46 GB/s against 13 (4 KiB a call) to 36 (1 GiB a call). 16 KiB as on Zen 2. */
	{"AuthenticAMD", 25, 0x00, 0x0f, "clzero", 16 << 10},
	{"AuthenticAMD", 25, 0x20, 0x5f, "clzero", 16 << 10},
	/* Haswell-EP. Beulich, Precision 7810: 1.9 times REP STOS at 16 KiB, 2.2 at 128 KiB. Far above that the next
         * row, its shrink, speaks for it. */
	{"GenuineIntel", 6, 0x3f, 0x3f, "movnti", 16 << 10},
	/* Broadwell-EP. Arora 2020, E5-2630v4 (25 MiB of LLC): 2.2 times from 128 MiB up. */
	{"GenuineIntel", 6, 0x4f, 0x4f, "movnti", 128 << 20},
	/* Ice Lake-SP. Arora 2021, 8358, LLC 48 MiB a node: 0.88 at 2 MiB, 0.94 at 16, 1.84-1.98 from 128 MiB up. */
	{"GenuineIntel", 6, 0x6a, 0x6a, "movnti", 128 << 20},
};

static const struct known *find_known(const char *cpu)
{
	char vendor[16];
	unsigned family, model;

	if (sscanf(cpu, "%15s %u/%u/", vendor, &family, &model) != 3)
		return NULL;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (strcmp(known[i].vendor, vendor) == 0 && known[i].family == family &&
		    known[i].first_model <= model && model <= known[i].last_model)
			return &known[i];
	return NULL;
}

static const struct pc_kernel *find_kernel(const char *name, uint32_t features)
{
	const struct pc_kernel *kernel = pc_kernel_find(name);

	return kernel != NULL && (kernel->needs & ~features) == 0 ? kernel : NULL;
}

/* libc, from `from` on the kernel. */
static void fill_table(struct pc_builtin *out, unsigned i, const struct pc_kernel *kernel, uint64_t from)
{
	struct pc_rule *rules = out->rules[i];

	rules[0] = (struct pc_rule){.kernel = "libc"};
	rules[1] = (struct pc_rule){.from = from};
	snprintf(rules[1].kernel, sizeof(rules[1].kernel), "%s", kernel->name);
	out->tables[i] = (struct pc_table){.intent = i == PC_BUILTIN_SCRUB ? PAGECLEAR_SCRUB : PAGECLEAR_COLD,
	                                   .prior = i == PC_BUILTIN_SCRUB ? PC_UNKNOWN : PC_FLUSHED,
	                                   .threads = 1,
	                                   .rule_count = 2,
	                                   .rules = rules};
	out->document.table_count = i + 1;
}

void pc_builtin_fill(struct pc_builtin *out, const char *cpu, uint32_t features)
{
	const struct known *rule = find_known(cpu);
	const struct pc_kernel *scrubber = NULL, *flushed = rule == NULL ? NULL : find_kernel(rule->kernel, features);

	*out = (struct pc_builtin){.document = {.quality = "built-in", .tables = out->tables}};
	for (size_t i = 0; i < sizeof(scrubbers) / sizeof(scrubbers[0]) && scrubber == NULL; i++)
		scrubber = find_kernel(scrubbers[i], features);
	fill_table(out, PC_BUILTIN_SCRUB, scrubber == NULL ? &pc_kernels[0] : scrubber, SCRUB_FROM);
	if (flushed != NULL)
		fill_table(out, PC_BUILTIN_FLUSHED, flushed, rule->from);
}

void pc_builtin_here(struct pc_builtin *out)
{
	char cpu[48];

	pc_cpu_signature(cpu, sizeof(cpu)); /* asks for the features too */
	pc_builtin_fill(out, cpu, pc_cpu_features());
}
