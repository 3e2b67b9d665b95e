/*
 * What this CPU, with the consent of the operating system, can execute; its clock; its cache flush.
 * Every instruction that is not a clear kernel but needs a CPU's name to be spoken lives here.
 */
#ifndef PC_CPU_H
#define PC_CPU_H

#include <stddef.h>
#include <stdint.h>

/* Bits of pc_cpu_features(). A bit is set only if CPU and OS (XCR0) both allow the instruction. */
#define PC_CPU_AVX (1u << 0)
#define PC_CPU_AVX2 (1u << 1)
#define PC_CPU_AVX512F (1u << 2)
#define PC_CPU_CLZERO (1u << 3)
#define PC_CPU_MOVDIR64B (1u << 4)
#define PC_CPU_ERMS (1u << 5) /* no kernel needs it to execute; for people */
#define PC_CPU_FSRM (1u << 6) /* likewise */
#define PC_CPU_CLFLUSHOPT (1u << 7)

/* As the CPU said when it was last asked: the first time, or by pc_cpu_signature(). Thread-safe, never
 * fails; 0 where nothing is known. */
uint32_t pc_cpu_features(void);

/* The bits' names as /proc/cpuinfo spells them, in the order of the bits, separated by spaces; "" for none. Ends in NUL
 * whatever fits; 80 bytes hold all. */
enum { PC_CPU_NAMES = 80 };
void pc_cpu_feature_names(uint32_t features, char *text, size_t size);

/* Bits hidden from pc_cpu_features(), for tests only: set before threads start. */
extern uint32_t pc_cpu_masked;

/* Bits that the CPU won't report from the next time on that it is asked, for tests only. */
extern uint32_t pc_cpu_lost;

/* Bytes that one cache-line flush covers here, from the CPU; a power of two, 64 if it does not say. */
size_t pc_cpu_line(void);

/* Of the CPU that runs the call: "Vendor family/model/stepping" as decimal numbers, for example "AuthenticAMD 25/1/1";
 * on arm64 "arm64 implementer/part/revision" of MIDR_EL1; "unknown" where the CPU does not say.
 * Asks the CPU anew, for its features too: live migration or a checkpoint may have brought the process to another. Dear
 * in guests. Returns the length as snprintf does. This is the text of policy.yaml's host.cpus. */
int pc_cpu_signature(char *text, size_t size);

/* Writes back and invalidates every line that touches [addr, addr + len), in all caches, and waits for it.
 * Only a fence on architectures other than x86-64 and arm64: no instruction for it is known there. */
void pc_cpu_flush(const void *addr, size_t len);

/* Orders all earlier weakly ordered stores before later stores (SFENCE; DMB ISHST). */
static inline void pc_fence(void)
{
#if defined(__x86_64__)
	__asm__ volatile("sfence" ::: "memory");
#elif defined(__aarch64__)
	__asm__ volatile("dmb ishst" ::: "memory");
#else
	__sync_synchronize();
#endif
}

/* In a loop that waits for another CPU: leaves the core to its sibling. */
static inline void pc_pause(void)
{
#if defined(__x86_64__)
	__asm__ volatile("pause" ::: "memory");
#elif defined(__aarch64__)
	__asm__ volatile("isb" ::: "memory"); /* YIELD does nothing on most */
#else
	__asm__ volatile("" ::: "memory");
#endif
}

#endif
