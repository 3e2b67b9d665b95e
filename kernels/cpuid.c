/*
 * Reading x86 CPUID. Bits: Intel SDM vol. 2, CPUID, and vol. 1, 13.3 (XCR0) and 15.2 (AVX-512); AMD APM vol. 3,
 * appendix E.
 */
#include "kernels/cpuid.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cpu.h"

#define BIT(n) (UINT64_C(1) << (n))

enum {
	LEAF1_ECX_OSXSAVE = 27,
	LEAF1_ECX_AVX = 28,
	LEAF1_EDX_CLFSH = 19,
};

/* State components that the OS must save: SSE and AVX; for AVX-512 also opmask, ZMM_Hi256 and Hi16_ZMM. */
#define XCR0_AVX (BIT(1) | BIT(2))
#define XCR0_AVX512 (XCR0_AVX | BIT(5) | BIT(6) | BIT(7))

static bool has(uint64_t set, uint64_t bits)
{
	return (set & bits) == bits;
}

uint32_t pc_cpuid_features(const struct pc_cpuid *id)
{
	const bool saves = has(id->leaf1_ecx, BIT(LEAF1_ECX_OSXSAVE));
	const bool avx = saves && has(id->xcr0, XCR0_AVX) && has(id->leaf1_ecx, BIT(LEAF1_ECX_AVX));
	const struct {
		uint32_t feature;
		bool usable;
	} rows[] = {
		{PC_CPU_AVX, avx},
		{PC_CPU_AVX2, avx && has(id->leaf7_ebx, BIT(5))},
		{PC_CPU_AVX512F, avx && has(id->xcr0, XCR0_AVX512) && has(id->leaf7_ebx, BIT(16))},
		/* The kernel steps by 64, whatever the line; no CPU is known that differs. */
		{PC_CPU_CLZERO, has(id->leaf80000008_ebx, BIT(0)) && pc_cpuid_line(id) == 64},
		{PC_CPU_MOVDIR64B, has(id->leaf7_ecx, BIT(28))},
		{PC_CPU_ERMS, has(id->leaf7_ebx, BIT(9))},
		{PC_CPU_FSRM, has(id->leaf7_edx, BIT(4))},
		{PC_CPU_CLFLUSHOPT, has(id->leaf7_ebx, BIT(23))},
	};
	uint32_t features = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].usable)
			features |= rows[i].feature;
	return features;
}

/* CPUID counts the CLFLUSH line in 8 bytes. A hypervisor may say 0, or nonsense. */
size_t pc_cpuid_line(const struct pc_cpuid *id)
{
	const size_t line = ((id->leaf1_ebx >> 8) & 0xff) * 8;

	if (!has(id->leaf1_edx, BIT(LEAF1_EDX_CLFSH)) || line < 16 || (line & (line - 1)) != 0)
		return 64;
	return line;
}

/* As libcpuid computes ext_family and ext_model, so that both name a CPU alike. */
int pc_cpuid_signature(const struct pc_cpuid *id, char *text, size_t size)
{
	const uint32_t eax = id->leaf1_eax;
	const unsigned stepping = eax & 0xf;
	const unsigned model = ((eax >> 4) & 0xf) + ((eax >> 16 & 0xf) << 4);
	unsigned family = eax >> 8 & 0xf;

	if (id->vendor[0] == '\0')
		return snprintf(text, size, "unknown");
	if (family == 0xf || strcmp(id->vendor, "AuthenticAMD") != 0)
		family += eax >> 20 & 0xff;
	return snprintf(text, size, "%s %u/%u/%u", id->vendor, family, model, stepping);
}
