/* This CPU: asked once, remembered in one atomic word. How x86 answers are read is cpuid.c's business. */
#include "kernels/cpu.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

uint32_t pc_cpu_masked, pc_cpu_lost;

struct facts {
	uint32_t features;
	size_t line; /* bytes, a power of two */
};

/*
 * The facts as one word, 0 while unknown: features in the low half, the line above. Threads that ask at the same time
 * find the same, so that no one needs to wait; a lock would not do inside a signal handler.
 */
static _Atomic uint64_t known;

static uint64_t remember(struct facts asked)
{
	uint64_t word = (uint64_t)asked.line << 32 | (asked.features & ~pc_cpu_lost);

	atomic_store_explicit(&known, word, memory_order_relaxed);
	return word;
}

#if defined(__x86_64__)
#include <cpuid.h>

#include "kernels/cpuid.h"

static uint64_t xcr0(void)
{
	uint32_t low, high;

	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	return (uint64_t)high << 32 | low;
}

/* Each CPUID is an exit to the hypervisor, of 1 to 70 us: <cpuid.h>'s checked forms would take two a leaf. */
static void ask_cpuid(struct pc_cpuid *id)
{
	unsigned most, eax, ebx, ecx, edx;

	*id = (struct pc_cpuid){0};
	__cpuid(0, most, ebx, ecx, edx);
	memcpy(id->vendor, &ebx, 4);
	memcpy(id->vendor + 4, &edx, 4);
	memcpy(id->vendor + 8, &ecx, 4);
	if (most >= 1)
		__cpuid(1, id->leaf1_eax, id->leaf1_ebx, id->leaf1_ecx, id->leaf1_edx);
	if (most >= 7)
		__cpuid_count(7, 0, eax, id->leaf7_ebx, id->leaf7_ecx, id->leaf7_edx);
	__cpuid(0x80000000, most, ebx, ecx, edx);
	if (most >= 0x80000008 && most < 0x80010000) /* else it's no answer but some other leaf's */
		__cpuid(0x80000008, eax, id->leaf80000008_ebx, ecx, edx);
	/* XGETBV is an undefined instruction where the OS has not set CR4.OSXSAVE, which this bit mirrors. */
	if (id->leaf1_ecx & bit_OSXSAVE)
		id->xcr0 = xcr0();
}

static struct facts facts_of(const struct pc_cpuid *id)
{
	return (struct facts){pc_cpuid_features(id), pc_cpuid_line(id)};
}

static struct facts ask(void)
{
	struct pc_cpuid id;

	ask_cpuid(&id);
	return facts_of(&id);
}

int pc_cpu_signature(char *text, size_t size)
{
	struct pc_cpuid id;

	ask_cpuid(&id);
	remember(facts_of(&id));
	return pc_cpuid_signature(&id, text, size);
}

static void flush_lines(const char *at, const char *end, size_t line)
{
	if (pc_cpu_features() & PC_CPU_CLFLUSHOPT)
		for (; at < end; at += line)
			__asm__ volatile("clflushopt %0" : : "m"(*at) : "memory");
	else
		for (; at < end; at += line)
			__asm__ volatile("clflush %0" : : "m"(*at) : "memory");
	/* CLFLUSHOPT is ordered by fences only (Intel SDM vol. 2). */
	__asm__ volatile("mfence" : : : "memory");
}

#elif defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>

/* CTR_EL0.DminLine: log2 of the words in the smallest data line of all caches (Arm ARM, CTR_EL0). */
static struct facts ask(void)
{
	uint64_t ctr;

	__asm__("mrs %0, ctr_el0" : "=r"(ctr));
	return (struct facts){0, (size_t)4 << (ctr >> 16 & 0xf)};
}

/* Implementer/part/revision of MIDR_EL1, the last with variant as its high four bits; Linux emulates the read. */
int pc_cpu_signature(char *text, size_t size)
{
	uint64_t midr;

	if (!(getauxval(AT_HWCAP) & HWCAP_CPUID))
		return snprintf(text, size, "unknown");
	__asm__("mrs %0, midr_el1" : "=r"(midr));
	return snprintf(text, size, "arm64 %u/%u/%u", (unsigned)(midr >> 24 & 0xff), (unsigned)(midr >> 4 & 0xfff),
	                (unsigned)((midr >> 20 & 0xf) << 4 | (midr & 0xf)));
}

static void flush_lines(const char *at, const char *end, size_t line)
{
	for (; at < end; at += line)
		__asm__ volatile("dc civac, %0" : : "r"(at) : "memory");
	__asm__ volatile("dsb sy" : : : "memory");
}

#else
static struct facts ask(void)
{
	return (struct facts){0, 64};
}

int pc_cpu_signature(char *text, size_t size)
{
	return snprintf(text, size, "unknown");
}

/* No instruction known: the contents stay where they are. */
static void flush_lines(const char *at, const char *end, size_t line)
{
	(void)at;
	(void)end;
	(void)line;
	__sync_synchronize();
}
#endif

static struct facts facts(void)
{
	uint64_t word = atomic_load_explicit(&known, memory_order_relaxed);

	if (word == 0)
		word = remember(ask());
	return (struct facts){(uint32_t)word, (size_t)(word >> 32)};
}

uint32_t pc_cpu_features(void)
{
	return facts().features & ~pc_cpu_masked;
}

size_t pc_cpu_line(void)
{
	return facts().line;
}

void pc_cpu_flush(const void *addr, size_t len)
{
	const size_t line = pc_cpu_line();
	const char *start = addr;

	if (len != 0)
		flush_lines(start - ((uintptr_t)start & (line - 1)), start + len, line);
}

void pc_cpu_feature_names(uint32_t features, char *text, size_t size)
{
	/* By bit number: PC_CPU_AVX is bit 0. */
	static const char names[][16] = {"avx", "avx2", "avx512f", "clzero", "movdir64b", "erms", "fsrm", "clflushopt"};
	size_t used = 0;

	text[0] = '\0';
	for (unsigned bit = 0; bit < sizeof(names) / sizeof(names[0]) && used < size; bit++)
		if ((features >> bit & 1) != 0)
			used += (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? " " : "", names[bit]);
}
