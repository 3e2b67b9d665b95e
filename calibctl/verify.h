/*
 * verify, in parts: the child that measures, the database that remembers, the ways of telling.
 */
#ifndef CALIBCTL_VERIFY_H
#define CALIBCTL_VERIFY_H

#include "calibctl/client.h"
#include "calibctl/subject.h"
#include "calibrd/store.h"
#include "calibrd/topology.h"
#include "calibrd/verify.h"

struct verification_request {
	struct subject subject;
	const struct pageclear_policy *policy;
	struct topology *topology;
	enum effort effort;
	uint64_t seed;
	double tolerance;    /* share */
	char *against;       /* the library's path without links, or a name that only the linker knows; NULL: none */
	uint64_t generation; /* that the policy was published as, to the letter; 0: not known */
	bool particular;     /* an option was given that calibrd does not take: it is measured here */
	bool by_calibrd;     /* the figures are the database's: the seed and the better ways are not among them */
};

/* What became of it in the database. */
struct verification_entry {
	int64_t id; /* 0: not recorded, reason says why */
	struct pc_why reason;
};

/* In a child, since it runs code that may be broken: kernels, and whatever library it is measured against. Shows
 * progress on standard error. 0; -ENOEXEC: the policy names a kernel that failed its trial; else -errno. */
int verification_run(const struct verification_request *request, struct verify_report *out, struct pc_why *why);

/* The generation whose recorded text the policy's file holds now; 0: it was edited, or the database knows nothing of
 * it, or is not there. */
uint64_t verification_generation(const struct verification_request *request);

/* Only where there is a sound database of this version that nobody else is writing. */
void verification_record(const struct verification_request *request, const struct verify_report *report,
                         struct verification_entry *out);

/* True if the host's own calibrd is to measure: it is there, the policy is the one that it has published, the caller is
 * root, and nothing particular was asked for. *out is then for client_close(). */
bool verification_is_calibrds(const struct verification_request *request, const struct calibctl *ctl,
                              struct client **out);

/* Has it measure, waits, and reads what it has recorded. DONE with *report and *entry, for verification_print(); or
 * what came instead, which is told. */
enum outcome verification_ask(struct verification_request *request, struct client *client, const struct calibctl *ctl,
                              struct verify_report *report, struct verification_entry *entry);

/* A verification's series as verification_print() takes them. Pure but for the policy's choices. 0, or -EUCLEAN with
 * why: they are not the series of a verification. */
int verification_restore(struct verify_report *out, const struct pageclear_policy *policy,
                         const struct verified *series, size_t count, struct pc_why *why);

/* 0 or -ENOMEM. */
int verification_print(const struct verification_request *request, const struct verify_report *report);
json_t *verification_json(const struct verification_request *request, const struct verify_report *report,
                          const struct verification_entry *entry);

#endif
