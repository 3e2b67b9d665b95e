/*
 * Puts a policy document together from what was decided, measured and found out about the host. Pure.
 */
#ifndef CALIBRD_ASSEMBLE_H
#define CALIBRD_ASSEMBLE_H

#include <time.h>

#include "calibrd/decide.h"
#include "calibrd/probe_fit.h"
#include "calibrd/topology.h"
#include "libpolicy/document.h"

struct assembly {
	const struct topology *topology;
	struct decision *decision; /* the document borrows its tables: keep it as long */
	const struct probe_fit *probe;
	const char *quality;
	uint64_t knee_bytes;
	time_t written;
};

/* generation is left 0: publishing sets it. */
void assemble(const struct assembly *parts, struct pc_document *out);

#endif
