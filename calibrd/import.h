/*
 * A policy that was measured elsewhere, on a host of the very same topology.
 */
#ifndef CALIBRD_IMPORT_H
#define CALIBRD_IMPORT_H

#include "calibrd/settle.h"

/* The source of what an import publishes. */
#define IMPORT_SOURCE "import"

/*
 * Publishes it under the next generation, all else as written but for today's pins; it stands as long as a rollback
 * does (rollback.h). text need not end in NUL. Of `what`, source and calibration are not read. 0 published, 1 the same
 * policy was in force already, -errno with why: those of pc_document_parse(), -EBADMSG nothing in it that this version
 * knows, those of rollback_allowed(), and those of settle_document(). *published: the generation in force.
 */
int import_policy(const struct settlement *what, const char *text, size_t len, uint64_t *published, struct pc_why *why);

#endif
