/*
 * policy.yaml as a value: what the exporter writes, the library believes and the command line shows.
 * Format 1 is described in schema/policy.schema.json; this is the one reader of it.
 */
#ifndef PC_DOCUMENT_H
#define PC_DOCUMENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libpolicy/why.h"

enum {
	PC_DOCUMENT_FORMAT = 1,
	PC_DOCUMENT_MAX_BYTES = 65536,
	PC_TABLES_MAX = 64,    /* that this version knows; others do not count */
	PC_RULES_MAX = 64,     /* a table */
	PC_CHUNK_LEAST = 4096, /* a smaller chunk counts as this: below a page the calls themselves cost */
	PC_CPUS_MAX = 8,
};

/* What was before. The numbers index tables; UNKNOWN is first so that "no hint" is 0. */
enum pc_prior { PC_UNKNOWN, PC_CACHED, PC_FLUSHED, PC_PRIORS };

struct pc_rule {
	uint64_t from;      /* bytes; the rule holds from here up to the next rule's from */
	uint64_t low, high; /* bytes; range of the crossover over epochs, 0 where not stated */
	uint64_t chunk;     /* bytes a call covers, 0: the whole extent */
	double gain;        /* over libc, 0 where not stated */
	bool pinned;        /* by the admin, not by measurement */
	char kernel[16];    /* as written; this build or CPU need not know it */
};

struct pc_table {
	unsigned intent;     /* PAGECLEAR_HOT, _COLD, _SCRUB */
	enum pc_prior prior; /* PC_UNKNOWN for scrub */
	unsigned threads;    /* at least 1 */
	size_t rule_count;   /* at least 1; ascending from, the first 0 */
	struct pc_rule *rules;
};

struct pc_document {
	uint64_t generation;
	char version[32];
	char written[32]; /* UTC, ISO 8601 */
	char quality[16]; /* good, noisy, emulated */
	char topology[16];
	char arch[16];
	size_t cpu_count;
	char cpus[PC_CPUS_MAX][48]; /* "AuthenticAMD 25/1/1", one a core type */
	char name[64];
	uint64_t knee_bytes; /* 0: not known */
	struct {
		uint64_t from; /* 0: do not probe */
		unsigned lines;
		double slow_ns; /* a load that takes longer missed every cache */
	} probe;
	size_t table_count;
	struct pc_table *tables; /* tables with a condition this version does not know are left out */
};

/* text need not end in NUL. Errors: -EBADMSG (why says line:column), -EPROTONOSUPPORT newer format, -EFBIG, -ENOMEM. */
int pc_document_parse(struct pc_document **out, const char *text, size_t len, struct pc_why *why);

/* Reads and parses a file; also -errno of open and read; refuses what is not a regular file (-EBADMSG). */
int pc_document_read(struct pc_document **out, const char *path, struct pc_why *why);

/* Takes NULL; returns NULL. Everything is owned by the document. */
struct pc_document *pc_document_free(struct pc_document *document);

/* The table for these conditions: the fewest measured threads from `threads` up, else the most; NULL if there is none.
 */
const struct pc_table *pc_document_table(const struct pc_document *document, unsigned intent, enum pc_prior prior,
                                         unsigned threads);

/* The rule that holds for len bytes: never NULL for a table that the reader let through. */
const struct pc_rule *pc_table_rule(const struct pc_table *table, uint64_t len);

/* "hot", "cold", "scrub"; "unknown", "cached", "flushed": the words of the format. */
const char *pc_intent_name(unsigned intent);
const char *pc_prior_name(enum pc_prior prior);

#endif
