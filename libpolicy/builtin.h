/*
 * The policy of a host that nobody measured, made from what CPUID says alone.
 */
#ifndef PC_BUILTIN_H
#define PC_BUILTIN_H

#include "libpolicy/document.h"

enum { PC_BUILTIN_SCRUB, PC_BUILTIN_FLUSHED, PC_BUILTIN_TABLES };

/* The document points into its own struct: it is not to be copied. */
struct pc_builtin {
	struct pc_document
		document; /* the scrub table is always there, that for cold and flushed where a rule is known */
	struct pc_table tables[PC_BUILTIN_TABLES];
	struct pc_rule rules[PC_BUILTIN_TABLES][2];
};

/* For a CPU of that signature (pc_cpu_signature()'s text) that can execute what `features` (PC_CPU_*) say. Pure. */
void pc_builtin_fill(struct pc_builtin *out, const char *cpu, uint32_t features);

/* For the CPU that runs the call, which is asked. */
void pc_builtin_here(struct pc_builtin *out);

#endif
