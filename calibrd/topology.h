/*
 * The facts a calibration is valid for. The only module that includes libcpuid.h, and it calls it only in a short-lived
 * child: libcpuid 0.6.2 pins its caller to a CPU and dies with SIGFPE on some processors.
 * libcpuid says what the CPU is, sysfs what the OS sees; where they disagree sysfs wins and `disagreements` says so.
 */
#ifndef CALIBRD_TOPOLOGY_H
#define CALIBRD_TOPOLOGY_H

#include <stddef.h>
#include <stdint.h>

#include "libpolicy/why.h"

enum { TOPOLOGY_CORE_TYPES = 8, TOPOLOGY_CACHES = 16 };

/* One type of core. Types of a hybrid processor may share a signature and differ in kind only. */
struct topology_core {
	char signature[48]; /* "AuthenticAMD 25/1/1", see pc_cpu_signature() */
	char kind;          /* 'P' performance, 'E' efficiency, '-' all alike or not told */
	unsigned cpus;
};

/* One shape of cache: CPUs whose caches look the same share an entry. Ascending levels, D before I before U, and then
 * the shape of the lowest-numbered CPU first. */
struct topology_cache {
	unsigned level;
	char type;                        /* 'D', 'I' or 'U' */
	uint64_t bytes;                   /* 0: unknown (missing, 0 or absurd) */
	unsigned line, ways, shared_cpus; /* 0: unknown */
};

struct topology {
	/* hard: part of the key */
	char arch[16];
	size_t core_count;
	struct topology_core cores[TOPOLOGY_CORE_TYPES];
	uint32_t features; /* PC_CPU_* bits that kernels need */
	size_t cache_count;
	struct topology_cache caches[TOPOLOGY_CACHES];
	unsigned packages, physical_cores, threads, numa_nodes; /* of what is online; 0: unknown */
	uint64_t page_bytes;

	/* soft: a change asks for a verification; "unknown" where nothing tells */
	char microcode[32], os_release[72], hypervisor[32], thp[16], libc[48];
	char cpus_allowed[256];    /* list form, "0-1" */
	uint32_t kernel_revisions; /* a hash over names and revisions of pc_kernels */

	/* for people and for replay */
	char name[64];           /* marketing name; never part of the key */
	char disagreements[512]; /* empty or sentences */
	char *raw;               /* libcpuid's own serialisation, or NULL (not x86, or libcpuid failed) */
	char *key;               /* canonical readable text of the hard facts, name=value a line */
	char *soft;              /* likewise of the soft facts */
	char id[13];             /* 12 hex digits of a hash of key */
};

/* Where to look; zero-initialised = this host. Tests and replays point it elsewhere. */
struct topology_source {
	const char *root;     /* prefix of /sys and /proc, NULL: none */
	const char *raw_file; /* raw CPUID dump to identify instead of this CPU's, NULL: this CPU. Nothing of this host
	                       * is mixed in then: what the OS sees comes from root, or is unknown. */
};

/* Errors: -errno with why; -EBADMSG for a raw_file without CPUID in it. A child that dies or hangs is not an error: the
 * facts it would have given are unknown, and pc_cpu_signature() and sysfs stand in. Forks: not for a process whose
 * other threads may hold locks. */
int topology_detect(struct topology **out, const struct topology_source *source, struct pc_why *why);
struct topology *topology_free(struct topology *topology);

/* Releases the raw dump, kilobytes a CPU: once it is recorded nobody needs it. */
void topology_forget_raw(struct topology *topology);

/* Takes over another's. */
void topology_take_raw(struct topology *topology, struct topology *from);

/* Bytes of the data or unified cache of that level; 0: unknown. Level 0 asks for the last one. */
uint64_t topology_cache_bytes(const struct topology *topology, unsigned level);

#endif
