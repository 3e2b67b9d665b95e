/*
 * Raw CPUID leaves, from this CPU or from a dump, and what they say of names and hypervisors. What they say of features
 * and signatures is read by kernels/cpuid.c, as for the running CPU. Pure but for topology_leaves_here().
 */
#include "calibrd/topology_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "kernels/cpuid.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

enum { EAX, EBX, ECX, EDX };

#define EXTENDED UINT32_C(0x80000000)
#define HYPERVISOR UINT32_C(0x40000000)

/* --- a table of leaves ----------------------------------------------------------------------------------- */

static const uint32_t *find(const struct topology_leaves *leaves, uint32_t leaf, uint32_t subleaf)
{
	static const uint32_t zeros[4];

	for (size_t i = 0; i < leaves->count; i++)
		if (leaves->at[i].leaf == leaf && leaves->at[i].subleaf == subleaf)
			return leaves->at[i].reg;
	return zeros;
}

/* The first word on a leaf stands; a dump that repeats one has nothing better to say. */
static void add(struct topology_leaves *leaves, uint32_t leaf, uint32_t subleaf, const uint32_t reg[4])
{
	for (size_t i = 0; i < leaves->count; i++)
		if (leaves->at[i].leaf == leaf && leaves->at[i].subleaf == subleaf)
			return;
	if (leaves->count == TOPOLOGY_LEAVES)
		return;
	leaves->at[leaves->count].leaf = leaf;
	leaves->at[leaves->count].subleaf = subleaf;
	memcpy(leaves->at[leaves->count].reg, reg, sizeof(leaves->at[0].reg));
	leaves->count++;
}

/* Beyond its highest leaf an Intel CPU repeats that one: no answer. */
const uint32_t *topology_leaf(const struct topology_leaves *leaves, uint32_t leaf, uint32_t subleaf)
{
	const uint32_t base = leaf & (EXTENDED | HYPERVISOR);
	const uint32_t highest = find(leaves, base, 0)[EAX];

	if (base != HYPERVISOR && leaf > highest)
		return find(leaves, UINT32_MAX, 0);
	return find(leaves, leaf, subleaf);
}

#if defined(__x86_64__)
static void add_here(struct topology_leaves *leaves, uint32_t leaf)
{
	uint32_t reg[4];

	__cpuid_count(leaf, 0, reg[EAX], reg[EBX], reg[ECX], reg[EDX]);
	add(leaves, leaf, 0, reg);
}

void topology_leaves_here(struct topology_leaves *leaves)
{
	static const uint32_t wanted[] = {0, 1, 7, 0xd, 0x1a, HYPERVISOR};

	leaves->count = 0;
	for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
		add_here(leaves, wanted[i]);
	for (uint32_t leaf = EXTENDED; leaf <= EXTENDED + 8; leaf++)
		add_here(leaves, leaf);
}
#else
void topology_leaves_here(struct topology_leaves *leaves)
{
	leaves->count = 0;
}
#endif

/* --- what they say --------------------------------------------------------------------------------------- */

/* Nobody dumps XCR0. The bits that the CPU has for it (leaf 0Dh) are as near as a dump comes, where OSXSAVE says that
 * the OS set any. */
static struct pc_cpuid as_cpuid(const struct topology_leaves *leaves)
{
	const uint32_t *vendor = topology_leaf(leaves, 0, 0);
	const uint32_t *one = topology_leaf(leaves, 1, 0), *seven = topology_leaf(leaves, 7, 0);
	struct pc_cpuid id = {
		.leaf1_eax = one[EAX],
		.leaf1_ebx = one[EBX],
		.leaf1_ecx = one[ECX],
		.leaf1_edx = one[EDX],
		.leaf7_ebx = seven[EBX],
		.leaf7_ecx = seven[ECX],
		.leaf7_edx = seven[EDX],
		.leaf80000008_ebx = topology_leaf(leaves, EXTENDED + 8, 0)[EBX],
		.xcr0 = topology_leaf(leaves, 0xd, 0)[EAX],
	};

	memcpy(id.vendor, &vendor[EBX], 4);
	memcpy(id.vendor + 4, &vendor[EDX], 4);
	memcpy(id.vendor + 8, &vendor[ECX], 4);
	return id;
}

/* Vendors and brands are bytes that a hypervisor may choose freely; they end up in files of lines. */
static void make_printable(char *text)
{
	for (; *text != '\0'; text++)
		if ((unsigned char)*text < ' ' || (unsigned char)*text > '~')
			*text = '?';
}

void topology_leaves_signature(const struct topology_leaves *leaves, char *text, size_t size)
{
	struct pc_cpuid id = as_cpuid(leaves);

	make_printable(id.vendor);
	pc_cpuid_signature(&id, text, size);
}

uint32_t topology_leaves_features(const struct topology_leaves *leaves)
{
	struct pc_cpuid id = as_cpuid(leaves);

	return pc_cpuid_features(&id);
}

/* Intel pads brands on the left, AMD on the right. */
void topology_leaves_name(const struct topology_leaves *leaves, char *text, size_t size)
{
	char brand[49] = "";
	const char *start = brand;
	size_t len;

	for (uint32_t i = 0; i < 3; i++)
		memcpy(brand + 16 * i, topology_leaf(leaves, EXTENDED + 2 + i, 0), 16);
	make_printable(brand);
	start += strspn(start, " ");
	len = strlen(start);
	while (len > 0 && start[len - 1] == ' ')
		len--;
	snprintf(text, size, "%.*s", (int)len, start);
}

void topology_leaves_hypervisor(const struct topology_leaves *leaves, char *text, size_t size)
{
	char vendor[13] = "";

	text[0] = '\0';
	if ((topology_leaf(leaves, 1, 0)[ECX] >> 31) == 0)
		return;
	memcpy(vendor, &topology_leaf(leaves, HYPERVISOR, 0)[EBX], 12);
	make_printable(vendor);
	snprintf(text, size, "%s", vendor[0] != '\0' ? vendor : "unknown");
}

/* Leaf 1Ah, bits 31-24 of eax: 20h an Atom core, 40h a Core one (Intel SDM vol. 2, CPUID). */
static char kind_of(const struct topology_leaves *leaves)
{
	switch (topology_leaf(leaves, 0x1a, 0)[EAX] >> 24) {
	case 0x20:
		return 'E';
	case 0x40:
		return 'P';
	default:
		return '-';
	}
}

/* --- dumps ----------------------------------------------------------------------------------------------- */

struct line {
	uint32_t leaf, subleaf, reg[4];
};

static bool scan_line(struct line *line, const char *text)
{
	unsigned index;
	char name[16];

	line->subleaf = 0;
	if (sscanf(text, "CPUID %8x%*[: \t]%8x-%8x-%8x-%8x", &line->leaf, &line->reg[0], &line->reg[1], &line->reg[2],
	           &line->reg[3]) == 5) {
		const char *subleaf = strstr(text, "[SL ");

		return subleaf == NULL || sscanf(subleaf, "[SL %2x]", &line->subleaf) == 1;
	}
	if (sscanf(text, "%15[a-z_][%2u]=%8x %8x %8x %8x", name, &index, &line->reg[0], &line->reg[1], &line->reg[2],
	           &line->reg[3]) != 6)
		return false;
	line->leaf = index + (strcmp(name, "ext_cpuid") == 0 ? EXTENDED : 0);
	return strcmp(name, "ext_cpuid") == 0 || strcmp(name, "basic_cpuid") == 0;
}

static void end_cpu(struct topology_dump *dump, struct topology_leaves *leaves)
{
	char signature[48];

	if (leaves->count == 0)
		return;
	if (dump->cpus++ == 0)
		dump->first = *leaves;
	topology_leaves_signature(leaves, signature, sizeof(signature));
	topology_core_add(dump->cores, &dump->core_count, signature, kind_of(leaves), 1);
	leaves->count = 0;
}

/* The tools disagree on what separates CPUs; that each begins with leaf 0 is common to all. */
int topology_dump_parse(struct topology_dump *dump, const char *text)
{
	struct topology_leaves leaves = {0};
	struct line line;

	memset(dump, 0, sizeof(*dump));
	while (*text != '\0') {
		char copy[128];
		size_t len = strcspn(text, "\n");

		snprintf(copy, sizeof(copy), "%.*s", len < sizeof(copy) ? (int)len : (int)sizeof(copy) - 1, text);
		if (scan_line(&line, copy)) {
			if (line.leaf == 0 && line.subleaf == 0)
				end_cpu(dump, &leaves);
			add(&leaves, line.leaf, line.subleaf, line.reg);
		}
		text += len + (text[len] != '\0');
	}
	end_cpu(dump, &leaves);
	return dump->cpus != 0 ? 0 : -EBADMSG;
}
