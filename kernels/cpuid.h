/*
 * x86: what CPUID and XCR0 said, and how to read it. Pure, so that processors other than this one can be tested.
 * Internal to kernels/ and its tests.
 */
#ifndef PC_CPUID_H
#define PC_CPUID_H

#include <stddef.h>
#include <stdint.h>

/* Leaves that the CPU does not have are 0. */
struct pc_cpuid {
	char vendor[13];
	uint32_t leaf1_eax, leaf1_ebx, leaf1_ecx, leaf1_edx;
	uint32_t leaf7_ebx, leaf7_ecx, leaf7_edx;
	uint32_t leaf80000008_ebx;
	uint64_t xcr0; /* 0 without OSXSAVE */
};

uint32_t pc_cpuid_features(const struct pc_cpuid *id);
size_t pc_cpuid_line(const struct pc_cpuid *id);
int pc_cpuid_signature(const struct pc_cpuid *id, char *text, size_t size);

#endif
