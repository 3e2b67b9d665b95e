/* What the CPU says of itself, against /proc/cpuinfo and against CPUID of processors that are not here. */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cpu.h"
#include "kernels/ticks.h"
#include "tests/unit/harness.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static void line(void)
{
	const size_t bytes = pc_cpu_line();

	CU_ASSERT_TRUE(bytes >= 16 && bytes <= 4096);
	CU_ASSERT_EQUAL(bytes & (bytes - 1), 0);
}

static void signature(void)
{
	char text[48], again[8], vendor[16], end;
	unsigned family, model, stepping;
	const int length = pc_cpu_signature(text, sizeof(text));

	CU_ASSERT_EQUAL(length, (int)strlen(text));
	if (strcmp(text, "unknown") == 0)
		unit_skip("this CPU does not say what it is");
	else
		CU_ASSERT_EQUAL(sscanf(text, "%15s %u/%u/%u%c", vendor, &family, &model, &stepping, &end), 4);
	/* Cut short as by snprintf: the full length, and the text that fits. */
	CU_ASSERT_EQUAL(pc_cpu_signature(again, sizeof(again)), length);
	CU_ASSERT_EQUAL(strlen(again), 7);
	CU_ASSERT_NSTRING_EQUAL(again, text, 7);
	CU_ASSERT_EQUAL(pc_cpu_signature(NULL, 0), length);
}

static void masks(void)
{
	const uint32_t real = pc_cpu_features();

	for (unsigned bit = 0; bit < 32; bit++) {
		pc_cpu_masked = UINT32_C(1) << bit;
		CU_ASSERT_EQUAL(pc_cpu_features(), real & ~pc_cpu_masked);
	}
	pc_cpu_masked = UINT32_MAX;
	CU_ASSERT_EQUAL(pc_cpu_features(), 0);
	pc_cpu_masked = 0;
	CU_ASSERT_EQUAL(pc_cpu_features(), real);
}

static void ticks_rise(void)
{
	uint64_t before = pc_ticks(), now = before;

	/* Ends by itself as soon as the clock moves; a clock that stands still hangs, one that goes back fails. */
	while (now == before)
		now = pc_ticks();
	CU_ASSERT_TRUE(now > before);
}

/* Flushed or not is a matter of time, which no test asserts; that nothing is lost or changed is asserted. */
static void flush_keeps_contents(void)
{
	enum { BYTES = 1 << 16 };
	static unsigned char buffer[BYTES + 128];
	static const size_t lengths[] = {0, 1, 63, 64, 65, 4096, BYTES};
	static const uint32_t hidden[] = {0, PC_CPU_CLFLUSHOPT};
	size_t wrong = 0;

	for (size_t i = 0; i < sizeof(buffer); i++)
		buffer[i] = (unsigned char)(i * 7 + 1);
	for (size_t i = 0; i < COUNT(hidden); i++) {
		pc_cpu_masked = hidden[i];
		for (size_t j = 0; j < COUNT(lengths); j++)
			for (size_t offset = 0; offset < 64; offset += 9)
				pc_cpu_flush(buffer + offset, lengths[j]);
	}
	pc_cpu_masked = 0;
	pc_cpu_flush(NULL, 0);
	for (size_t i = 0; i < sizeof(buffer); i++)
		wrong += buffer[i] != (unsigned char)(i * 7 + 1);
	CU_ASSERT_EQUAL(wrong, 0);
}

#if defined(__x86_64__)
#include "kernels/cpuid.h"

/* What Linux says of the first processor; members it does not state stay empty. */
struct cpuinfo {
	char vendor[16];
	unsigned family, model, stepping;
	char flags[8192]; /* each with a space at both ends */
};

static void read_cpuinfo(struct cpuinfo *info)
{
	char row[8192];
	FILE *file = fopen("/proc/cpuinfo", "re");

	*info = (struct cpuinfo){0};
	while (file != NULL && fgets(row, sizeof(row), file) != NULL && row[0] != '\n') {
		row[strcspn(row, "\n")] = '\0';
		sscanf(row, "vendor_id : %15s", info->vendor);
		sscanf(row, "cpu family : %u", &info->family);
		sscanf(row, "model : %u", &info->model);
		sscanf(row, "stepping : %u", &info->stepping);
		if (strncmp(row, "flags", 5) == 0 && strchr(row, ':') != NULL)
			snprintf(info->flags, sizeof(info->flags), "%s ", strchr(row, ':') + 1);
	}
	if (file != NULL)
		fclose(file);
}

/* clearcpuid= takes a flag from the list and leaves it in CPUID. */
static bool linux_hides_flags(void)
{
	char line_text[4096] = "";
	FILE *file = fopen("/proc/cmdline", "re");
	bool hides = file != NULL && fgets(line_text, sizeof(line_text), file) && strstr(line_text, "clearcpuid=");

	if (file != NULL)
		fclose(file);
	return hides;
}

/* Both directions. An emulator such as valgrind answers CPUID itself and leaves /proc/cpuinfo as it is. */
static void features_as_linux_says(void)
{
	static const struct {
		uint32_t bit;
		const char *flag;
	} rows[] = {
		{PC_CPU_AVX, " avx "},
		{PC_CPU_AVX2, " avx2 "},
		{PC_CPU_AVX512F, " avx512f "},
		{PC_CPU_CLZERO, " clzero "},
		{PC_CPU_MOVDIR64B, " movdir64b "},
		{PC_CPU_ERMS, " erms "},
		{PC_CPU_FSRM, " fsrm "},
		{PC_CPU_CLFLUSHOPT, " clflushopt "},
	};
	struct cpuinfo info;
	char text[48], linux_text[64];

	read_cpuinfo(&info);
	snprintf(linux_text, sizeof(linux_text), "%s %u/%u/%u", info.vendor, info.family, info.model, info.stepping);
	pc_cpu_signature(text, sizeof(text));
	if (strcmp(text, linux_text) != 0 || linux_hides_flags()) {
		unit_skip("CPUID means \"%s\", Linux \"%s\", or hides flags", text, linux_text);
		return;
	}
	for (size_t i = 0; i < COUNT(rows); i++) {
		const bool usable = rows[i].bit != PC_CPU_CLZERO || pc_cpu_line() == 64,
			   listed = strstr(info.flags, rows[i].flag) != NULL && usable,
			   ours = (pc_cpu_features() & rows[i].bit) != 0;

		if (listed != ours)
			printf("\n%s: %s by Linux, %s here\n", rows[i].flag, listed ? "listed" : "not listed",
			       ours ? "found" : "not found");
		CU_ASSERT_EQUAL(listed, ours);
	}
}

/* A CPU with everything, under an OS that saves everything. */
static const struct pc_cpuid everything = {
	.vendor = "GenuineIntel",
	.leaf1_eax = 0x806f8, /* Sapphire Rapids */
	.leaf1_ebx = 8 << 8,
	.leaf1_ecx = 1u << 27 | 1u << 28,
	.leaf1_edx = 1u << 19,
	.leaf7_ebx = 1u << 5 | 1u << 9 | 1u << 16 | 1u << 23,
	.leaf7_ecx = 1u << 28,
	.leaf7_edx = 1u << 4,
	.leaf80000008_ebx = 1,
	.xcr0 = 0xe7,
};

static void os_consent(void)
{
	const uint32_t avx512 = PC_CPU_AVX512F, avx = PC_CPU_AVX | PC_CPU_AVX2;
	const uint32_t whole = pc_cpuid_features(&everything);
	static const struct {
		uint64_t xcr0;
		bool avx, avx512;
	} rows[] = {
		{0xe7, true, true},   {0x67, true, false},  {0xa7, true, false},  {0xc7, true, false},
		{0x07, true, false},  {0xe3, false, false}, {0xe5, false, false}, {0x03, false, false},
		{0x01, false, false}, {0x00, false, false},
	};

	CU_ASSERT_EQUAL(whole, (PC_CPU_CLFLUSHOPT << 1) - 1);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct pc_cpuid id = everything;

		id.xcr0 = rows[i].xcr0;
		CU_ASSERT_EQUAL(pc_cpuid_features(&id),
		                (whole & ~avx & ~avx512) | (rows[i].avx ? avx : 0) | (rows[i].avx512 ? avx512 : 0));
	}
}

static void cpu_consent(void)
{
	struct pc_cpuid id = everything;

	id.leaf1_ecx &= ~(1u << 27); /* OSXSAVE: XCR0 means nothing */
	CU_ASSERT_EQUAL(pc_cpuid_features(&id) & (PC_CPU_AVX | PC_CPU_AVX2 | PC_CPU_AVX512F), 0);
	id = everything;
	id.leaf7_ebx = 0;
	CU_ASSERT_EQUAL(pc_cpuid_features(&id), PC_CPU_AVX | PC_CPU_CLZERO | PC_CPU_MOVDIR64B | PC_CPU_FSRM);
	id = everything;
	id.leaf1_ebx = 4 << 8; /* CLZERO's kernel steps by 64 */
	CU_ASSERT_EQUAL(pc_cpuid_features(&id), pc_cpuid_features(&everything) & ~PC_CPU_CLZERO);
	id = (struct pc_cpuid){.xcr0 = 0xe7};
	CU_ASSERT_EQUAL(pc_cpuid_features(&id), 0);
}

static void lines_of_others(void)
{
	static const struct {
		uint32_t units, flush;
		size_t line;
	} rows[] = {{8, 1, 64}, {4, 1, 32}, {16, 1, 128}, {0, 1, 64}, {8, 0, 64}, {9, 1, 64}, {255, 1, 64}, {1, 1, 64}};

	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct pc_cpuid id = {.leaf1_ebx = rows[i].units << 8 | 0xff0000ff,
		                            .leaf1_edx = rows[i].flush << 19};

		CU_ASSERT_EQUAL(pc_cpuid_line(&id), rows[i].line);
	}
}

/* Left: CPUID leaf 1 EAX of well-known parts. */
static void signatures_of_others(void)
{
	static const struct {
		const char *vendor;
		uint32_t eax;
		const char *signature;
	} rows[] = {
		{"AuthenticAMD", 0x00a00f11, "AuthenticAMD 25/1/1"},  /* Milan */
		{"AuthenticAMD", 0x00800f12, "AuthenticAMD 23/1/2"},  /* Naples */
		{"AuthenticAMD", 0x00020fb1, "AuthenticAMD 15/43/1"}, /* K8 */
		{"GenuineIntel", 0x000606a6, "GenuineIntel 6/106/6"}, /* Icelake-X */
		{"GenuineIntel", 0x00000f29, "GenuineIntel 15/2/9"},  /* Pentium 4 */
		{"", 0x00000f29, "unknown"},
	};

	for (size_t i = 0; i < COUNT(rows); i++) {
		struct pc_cpuid id = {.leaf1_eax = rows[i].eax};
		char text[48];

		snprintf(id.vendor, sizeof(id.vendor), "%s", rows[i].vendor);
		CU_ASSERT_EQUAL(pc_cpuid_signature(&id, text, sizeof(text)), (int)strlen(rows[i].signature));
		CU_ASSERT_STRING_EQUAL(text, rows[i].signature);
	}
}
#endif

static const struct unit_test tests[] = {
	{"line", line},
	{"signature", signature},
	{"masks", masks},
	{"ticks rise", ticks_rise},
	{"flush keeps contents", flush_keeps_contents},
#if defined(__x86_64__)
	{"features as Linux says", features_as_linux_says},
	{"OS consent", os_consent},
	{"CPU consent", cpu_consent},
	{"lines of others", lines_of_others},
	{"signatures of others", signatures_of_others},
#endif
};

UNIT_MAIN("cpu", tests)
