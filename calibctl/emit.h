/*
 * emit: what this host's measurements say, in the words of programs that do not read policy.yaml. A file a format.
 */
#ifndef CALIBCTL_EMIT_H
#define CALIBCTL_EMIT_H

#include <jansson.h>
#include <stdio.h>

#include "calibctl/calibctl.h"
#include "calibctl/subject.h"

struct emit {
	struct subject subject; /* its document is there */
	const char *loader;     /* --loader; NULL: this program's own */
	bool verify;            /* --verify */
	FILE *out;              /* what the format says; nothing where there is nothing to say */
	json_t *notes;          /* strings: emit_note() */
	json_t *details;        /* what --json tells beside the text; NULL: no more */
};

struct emit_format {
	const char *name;
	enum outcome (*run)(struct emit *emit);
	bool tunes; /* knows --loader and --verify */
};

enum outcome emit_glibc_tunables(struct emit *emit);
enum outcome emit_environment_d(struct emit *emit);
enum outcome emit_c_header(struct emit *emit);

/* Something worth knowing that is not part of the text: to stderr, and among --json's notes. */
void emit_note(struct emit *emit, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
