/*
 * Inside the topology module: the places its facts come from. Included by calibrd/topology*.c, by crew.c, conditions.c,
 * host_files.c, surroundings*.c and watch*.c for its sets of CPUs and its reader of small files, and by their tests
 * only.
 */
#ifndef CALIBRD_TOPOLOGY_PARTS_H
#define CALIBRD_TOPOLOGY_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calibrd/topology.h"

/* --- topology_set.c: sets of CPUs or nodes --------------------------------------------------------------- */

enum { TOPOLOGY_SET_MAX = 8192 }; /* Linux's largest NR_CPUS */

struct topology_set {
	uint64_t word[TOPOLOGY_SET_MAX / 64];
};

/* "0-3,8" and the hexadecimal "ff,ffffffff" of sysfs; an empty list is an empty set. False: no such form. */
bool topology_set_parse_list(struct topology_set *set, const char *text);
bool topology_set_parse_map(struct topology_set *set, const char *text);
void topology_set_add(struct topology_set *set, unsigned member);
bool topology_set_has(const struct topology_set *set, unsigned member);
unsigned topology_set_count(const struct topology_set *set);
/* The least member from `from` up, TOPOLOGY_SET_MAX if there is none. */
unsigned topology_set_next(const struct topology_set *set, unsigned from);
/* Writes list form; ends in "..." where size does not suffice. */
void topology_set_print(const struct topology_set *set, char *text, size_t size);

/* --- topology_leaves.c: raw CPUID ------------------------------------------------------------------------ */

enum { TOPOLOGY_LEAVES = 160 };

/* CPUID of one CPU; registers in the order eax, ebx, ecx, edx. */
struct topology_leaves {
	size_t count;
	struct {
		uint32_t leaf, subleaf, reg[4];
	} at[TOPOLOGY_LEAVES];
};

/* A dump: the first CPU's leaves, and the types and number of all CPUs in it. */
struct topology_dump {
	struct topology_leaves first;
	unsigned cpus;
	size_t core_count;
	struct topology_core cores[TOPOLOGY_CORE_TYPES];
};

/* Reads libcpuid's serialisation and the "CPUID 00000001: a-b-c-d [SL 00]" lines of other tools. Pure; lines it does
 * not know are skipped. 0, or -EBADMSG if there is no leaf in it. */
int topology_dump_parse(struct topology_dump *dump, const char *text);
/* What this CPU says; empty where it is no x86. */
void topology_leaves_here(struct topology_leaves *leaves);
/* Registers of a leaf; zeros if it is absent or beyond what leaf 0 or 8000_0000h allows. */
const uint32_t *topology_leaf(const struct topology_leaves *leaves, uint32_t leaf, uint32_t subleaf);
/* As pc_cpu_signature(); "unknown" where leaf 0 is absent. */
void topology_leaves_signature(const struct topology_leaves *leaves, char *text, size_t size);
void topology_leaves_name(const struct topology_leaves *leaves, char *text, size_t size);
/* Vendor string of the hypervisor, "" if the CPU says it runs under none. */
void topology_leaves_hypervisor(const struct topology_leaves *leaves, char *text, size_t size);
/* PC_CPU_* bits, as far as leaf 0Dh and OSXSAVE tell what the OS allows. */
uint32_t topology_leaves_features(const struct topology_leaves *leaves);

/* --- topology_child.c: a function in a process of its own ------------------------------------------------ */

enum topology_end {
	TOPOLOGY_EXITED,  /* by itself, status 0 */
	TOPOLOGY_DIED,    /* by a signal, or another status */
	TOPOLOGY_HUNG,    /* killed at the deadline */
	TOPOLOGY_FLOODED, /* killed for writing more than it may */
};

struct topology_report {
	enum topology_end end;
	int signal;  /* that ended it, 0: none */
	char *bytes; /* what it wrote, a NUL behind it; freed by the caller */
	size_t len;
};

struct topology_limits {
	unsigned deadline_ms;
	size_t most; /* bytes of output */
};

/* Runs work(fd, argument) in a child whose standard output and fd are read here. Always reaped before this returns.
 * 0, or -errno if there could be no child. */
int topology_child_run(struct topology_report *report, void (*work)(int fd, const void *argument), const void *argument,
                       struct topology_limits limits);

/* --- topology_cpuid.c: libcpuid -------------------------------------------------------------------------- */

/* Only the child loads it: an idle daemon keeps none of it, and a host without it still has a topology. */

/* Indices of the caches that libcpuid tells of. */
enum { TOPOLOGY_L1D, TOPOLOGY_L1I, TOPOLOGY_L2, TOPOLOGY_L3, TOPOLOGY_L4, TOPOLOGY_LEVELS };

/* libcpuid's answer in numbers of our own. -1: it does not know. */
struct topology_cpuid_cache {
	int32_t kib, line, ways, instances;
};

struct topology_cpuid_type {
	char vendor[16];
	int32_t family, model, stepping;
	int32_t cores, threads;
	char kind; /* as in struct topology_core */
	struct topology_cpuid_cache caches[TOPOLOGY_LEVELS];
};

struct topology_cpuid {
	uint32_t magic;
	uint32_t type_count;
	uint32_t cpus_read; /* CPUs whose leaves it saw */
	char name[64];
	char trouble[160]; /* why the library is not to be had; all else is 0 then. "": it is */
	struct topology_cpuid_type types[TOPOLOGY_CORE_TYPES];
};

enum topology_outcome {
	TOPOLOGY_IDENTIFIED,
	TOPOLOGY_SILENT, /* refused */
	TOPOLOGY_KILLED, /* died, hung, or sent what can't be */
	TOPOLOGY_ABSENT, /* not installed, or not as it should be: answer->trouble */
	TOPOLOGY_UNASKED /* on this architecture it is of no use */
};

/* Asks libcpuid in a child about raw_file, or about this host if that is NULL. *raw is its serialisation or NULL, and
 * may be there although the rest is not; *end tells how the child ended. 0 or -errno. */
int topology_cpuid_ask(struct topology_cpuid *answer, char **raw, enum topology_outcome *outcome,
                       struct topology_report *end, const char *raw_file);
/* Judges the child's message: raw text, NUL, struct topology_cpuid. Pure. *text_len is the length of the raw text, 0 if
 * there is none that can be believed. */
enum topology_outcome topology_cpuid_parse(struct topology_cpuid *answer, size_t *text_len, const char *bytes,
                                           size_t len);
/* Version of the library, "" where it is not used or not there. Loads it into this very process: for tests. */
const char *topology_cpuid_version(void);

/* --- topology_sysfs.c, topology_proc.c: what the OS sees ------------------------------------------------- */

/* The first bytes of ROOT/PATH, NUL-terminated, without the white space at the end.
 * 0, 1 not there or not readable, -errno of what passes (no descriptors, no memory): such an hour is no fact. */
int topology_text(const char *root, char *text, size_t size, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

/* Caches, packages, cores, threads, nodes. *online is empty if nobody tells. 0 or -errno. */
int topology_sysfs_read(struct topology *topology, const char *root, struct topology_set *online);
/* Types of cores (none unless all of online are told of), threads if sysfs told none, microcode, name. 0 or -errno. */
int topology_proc_cpuinfo(struct topology *topology, const char *root, const struct topology_set *online);
/* OS release, THP mode, CPUs allowed; hypervisor unless it is known. 0 or -errno. */
int topology_proc_soft(struct topology *topology, const char *root);

/* --- topology_facts.c: judging and writing down ---------------------------------------------------------- */

/* Adds cpus of that type; types beyond TOPOLOGY_CORE_TYPES are left out, and false says so. */
bool topology_core_add(struct topology_core *cores, size_t *count, const char *signature, char kind, unsigned cpus);
/* Makes 0 of what can't be. *below is the last data or unified cache of the same CPU whose size is believed, all 0 at
 * first; a believed one takes its place. threads 0: not known. */
void topology_cache_judge(struct topology_cache *cache, struct topology_cache *below, unsigned threads);
/* Adds a shape of cache unless it is there; keeps the order that topology.h promises. */
void topology_cache_add(struct topology *topology, const struct topology_cache *cache);
/* A sentence more in topology->disagreements. */
void topology_say(struct topology *topology, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The bits that any kernel needs to execute. */
uint32_t topology_features_needed(void);
/* Fills kernel_revisions, key, id and soft from the facts; texts lose what is unprintable, empty ones become "unknown".
 * 0 or -ENOMEM. */
int topology_write(struct topology *topology);

#endif
