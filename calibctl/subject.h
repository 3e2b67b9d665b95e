/*
 * The policy that a verb talks about: found, read, and judged as the library would judge it.
 */
#ifndef CALIBCTL_SUBJECT_H
#define CALIBCTL_SUBJECT_H

#include <jansson.h>
#include <stdbool.h>

#include "calibctl/calibctl.h"
#include "calibctl/where.h"
#include "libpolicy/document.h"

struct subject {
	struct where where;
	struct pc_document *document; /* NULL: there is none */
	bool foreign;                 /* made for another CPU: verdict says for which */
	struct pc_why verdict;        /* the library's words on it; or why there is none, and what to do */
};

/* 0; 1 no policy anywhere, or $PAGECLEAR_POLICY=builtin (verdict says so); -errno with why: there is one that cannot be
 * read, or the one named isn't there. subject_close() after all three. */
int subject_open(struct subject *out, const struct calibctl *ctl, struct pc_why *why);
void subject_close(struct subject *subject);

/* For verbs that have more to tell than the policy: why it cannot be read is said, and it counts as none then, with
 * that in verdict. DONE or UNREADABLE; subject_close() after both. */
enum outcome subject_try(struct subject *out, const struct calibctl *ctl);

/* Seconds since the calibration that it was made from has ended; false if it does not say. */
bool subject_age(const struct subject *subject, int64_t *seconds);

/* "policy": where it is, and by whose word. */
void subject_print_path(const struct subject *subject);

/* The members that every verb gives of a policy; null if there is none. */
json_t *subject_json(const struct subject *subject);

/* Says why there is no policy to work on: why if it could not be read, else what is to be done. Always UNREADABLE. */
enum outcome subject_missing(const struct subject *subject, int r, const struct pc_why *why);

/* PROBLEM if it is foreign, else DONE; says so. */
enum outcome subject_judge(const struct subject *subject);

#endif
