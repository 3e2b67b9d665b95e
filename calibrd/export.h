/*
 * A policy as the text of policy.yaml, format 1: the one writer beside libpolicy's one reader. Pure.
 */
#ifndef CALIBRD_EXPORT_H
#define CALIBRD_EXPORT_H

#include <stdbool.h>
#include <stddef.h>

#include "libpolicy/document.h"
#include "libpolicy/why.h"

enum { EXPORT_MAX_BYTES = 16384 }; /* what is written stays below; readers take four times as much */

/*
 * *text belongs to the caller: free(). It ends in NUL, which len does not count. What comes out has been read back and
 * found the same. Gains and slow_ns are written to the hundredth; libc has no gain, since it is the measure.
 * Errors: -EFBIG, -EINVAL a number or text that the format has no place for, -EBADMSG readers would refuse it, -ENOMEM.
 */
int export_yaml(const struct pc_document *document, char **text, size_t *len, struct pc_why *why);

/* Equal as written, but for generation and time of writing. */
bool export_same(const struct pc_document *a, const struct pc_document *b);

#endif
