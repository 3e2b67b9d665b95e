/*
 * The database: one writer, by a lock. The only module that includes sqlite3.h; SQL is spoken nowhere else.
 * Every function returns 0 or -errno with why; one transaction a step.
 */
#ifndef CALIBRD_STORE_H
#define CALIBRD_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "calibrd/samples.h"
#include "calibrd/verified.h"
#include "libpolicy/document.h"
#include "libpolicy/why.h"

struct store;
struct topology;

enum store_mode {
	STORE_WRITE, /* creates it, migrates it, takes the writer's lock: -EBUSY names the process that holds it */
	STORE_READ,  /* for calibctl: changes nothing, takes no lock; -ENOENT if there is none */
};

/* Errors: -EPROTONOSUPPORT made by a newer version (why names both schema numbers; in STORE_READ also an older one,
 * until calibrd has migrated it), -EMEDIUMTYPE not our database (another application_id: never touched), -EUCLEAN
 * damaged in STORE_READ, -EAGAIN in STORE_READ: a killed writer left a change that the next STORE_WRITE takes back,
 * -EROFS or -EACCES where STORE_WRITE cannot write, -ENOSPC, -ENAMETOOLONG above 480 bytes. In STORE_WRITE a damaged
 * file is renamed to PATH.damaged-N and a new one begun; *renamed (may be NULL) then tells the new name, else it is "".
 * A missing folder is made (its last component alone). A process opens a database once at a time. */
int store_open(struct store **out, const char *path, enum store_mode mode, char renamed[512], struct pc_why *why);
struct store *store_close(struct store *store);

/* Nothing is asked for a while: holds no more memory than it must. store may be NULL. */
void store_rest(const struct store *store);

enum calibration_state { CALIBRATION_RUNNING, CALIBRATION_DONE, CALIBRATION_FAILED };

/* Text members may be NULL when they are written; what is read is owned by the record until its _free(). */
struct calibration {
	int64_t id; /* set by store_begin() */
	enum calibration_state state;
	char topology[13];
	char effort[16];           /* quick, standard, thorough */
	char quality[16];          /* good, noisy, emulated */
	char *reasons;             /* why that quality, or why it failed; in words */
	char *soft;                /* soft facts at that time: struct topology's text */
	int64_t started, finished; /* seconds since 1970 UTC */
	uint64_t knee_bytes;
	char *faulted;       /* names of kernels that failed their trial, separated by spaces */
	char *surroundings;  /* what else went on on the host meanwhile: surroundings.h's text, or NULL */
	uint64_t probe_from; /* what policy.yaml's probe says; 0: no probe */
	unsigned probe_lines;
	double probe_slow_ns;
};

/* Records topology and kernel revisions if new, and a running calibration. Calibrations left running by a killed
 * process are marked failed by the next STORE_WRITE open. */
int store_begin(struct store *store, const struct topology *topology, struct calibration *calibration,
                struct pc_why *why);

/* In one transaction: all series of it, and its end. Blobs of rounds are kept for each topology's last three done
 * calibrations that are not noisy, and last three that are. */
int store_finish(struct store *store, const struct calibration *calibration, const struct dataset *data,
                 struct pc_why *why);
/* Names the kernels that failed their trial, then or since: no policy of it has them any more. */
int store_fault(struct store *store, int64_t id, const char *faulted, struct pc_why *why);
int store_fail(struct store *store, int64_t id, const char *reasons, struct pc_why *why);

/* The newest done calibration of a topology (NULL: of any) that is not noisy, else the newest noisy one. 0 found, 1
 * there is none, -errno. */
int store_latest(struct store *store, const char *topology, struct calibration *out, struct pc_why *why);
/* That calibration, whatever its state. 0, 1 there is none, -errno. */
int store_calibration(struct store *store, int64_t id, struct calibration *out, struct pc_why *why);
/* At most `most` calibrations of any state, newest first; each for store_calibration_free(), *out for free(). */
int store_calibrations(struct store *store, size_t most, struct calibration **out, size_t *count, struct pc_why *why);
void store_calibration_free(struct calibration *calibration);

/* The series of one calibration, with their rounds where they are still kept (series.rounds is empty else). Series of
 * kernels that this program does not have are left out. */
int store_series(struct store *store, int64_t calibration, struct dataset *out, struct pc_why *why);

/* What is kept of a series for ever. NaN where count is 0. */
struct series_summary {
	struct series_key key;
	uint32_t count, tainted;
	double median, mad, least; /* ns */
};

/* In the order of series_compare(); *out for free(). */
int store_summaries(struct store *store, int64_t calibration, struct series_summary **out, size_t *count,
                    struct pc_why *why);

/* What was published. yaml is the exact file text. */
struct published {
	uint64_t generation;
	int64_t calibration; /* 0: none, as for an import */
	int64_t at;          /* seconds since 1970 UTC */
	int64_t newest;      /* set by store_publish(): the newest calibration then, whatever clocks say; 0: none */
	char source[16];     /* calibration, rollback, import, restart */
	char topology[13];
	char *yaml; /* never NULL, save in what store_publications() gives */
};

/* -EEXIST: that generation has been published. */
int store_publish(struct store *store, const struct published *published, struct pc_why *why);
/* It never came to be: 0, also where there is no such generation. */
int store_retract(struct store *store, uint64_t generation, struct pc_why *why);
/* Newest publication for a topology (NULL: of any). 0, 1 none, -errno. yaml belongs to the caller: free(). */
int store_published(struct store *store, const char *topology, struct published *out, struct pc_why *why);
/* That generation. 0, 1 none, -errno. */
int store_generation(struct store *store, uint64_t generation, struct published *out, struct pc_why *why);
/* At most `most` publications without their yaml, newest first; *out for free(). */
int store_publications(struct store *store, size_t most, struct published **out, size_t *count, struct pc_why *why);
/* One verification: what the policy's choices cost at fresh sizes. */
struct verification {
	int64_t newest;      /* set by store_verify(), as in struct published */
	int64_t id;          /* set by store_verify() */
	uint64_t generation; /* that was verified, as it was published; 0: edited, or published by nobody */
	char topology[13];
	char effort[16];
	int64_t at; /* seconds since 1970 UTC */
	bool passed;
	char *against; /* path of the library whose memset took part, or NULL */
	char *soft;    /* soft facts at that time: struct topology's text, or NULL */
};

/* In one transaction. */
int store_verify(struct store *store, struct verification *verification, const struct verified *series, size_t count,
                 struct pc_why *why);
/* At most `most` verifications, newest first; each for store_verification_free(), *out for free(). */
int store_verifications(struct store *store, size_t most, struct verification **out, size_t *count, struct pc_why *why);
/* The series of one; *out for free(). */
int store_verified(struct store *store, int64_t verification, struct verified **out, size_t *count, struct pc_why *why);
void store_verification_free(struct verification *verification);

/* The raw CPUID dump and key text kept with a topology: for reports from the field. 0, 1 none, -errno. Caller frees. */
int store_topology(struct store *store, const char *topology, char **key, char **raw, struct pc_why *why);

#endif
