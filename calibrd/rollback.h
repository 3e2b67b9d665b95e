/*
 * Policies that somebody wished for: rolled back to, or imported (import.h). Such a one stands until a calibration is
 * done after it: what the remembered one would decide is what they did not want.
 */
#ifndef CALIBRD_ROLLBACK_H
#define CALIBRD_ROLLBACK_H

#include "calibrd/settle.h"

/* The source of what a rollback publishes. */
#define ROLLBACK_SOURCE "rollback"

/*
 * Publishes the policy that was wished for last for the topology, with today's pins over it, where it stands. Returns
 * as settle(); or 2 where none does, and settle() is to be called: nobody wished for any, a calibration has been done
 * since (what->calibration is the newest that counts; NULL: there is none), or it names a kernel that may no longer be
 * chosen, which the log tells. Without a calibration there is nothing else to decide by: libc then takes such a
 * kernel's place.
 */
int rollback_stand(const struct settlement *what, struct pc_why *why);

/*
 * Publishes a generation of the past again, with today's pins over it. Of `what`, source and calibration are not read:
 * the topology's newest calibration says which kernels failed. 0 published, 1 the same policy was in force already,
 * -errno with why: -ENOENT there is no such generation, those of rollback_allowed(), and those of settle_document().
 * *published: the generation in force.
 */
int rollback_to(const struct settlement *what, uint64_t generation, uint64_t *published, struct pc_why *why);

/*
 * Whether a policy may be put in force on a host. recorded: the topology that the database has it for, NULL: it is not
 * from there; known: the host's newest calibration, or NULL; exclude: bits of pc_kernels.
 * 0, or: -ESTALE it was made for another topology or CPU; -EPERM it names a kernel that failed its trial there or that
 * is excluded. why: the sentence without its subject ("was made for ...").
 */
int rollback_allowed(const struct pc_document *document, const char *recorded, const struct topology *topology,
                     const struct calibration *known, uint32_t exclude, struct pc_why *why);

/* The same for `what`, whose newest calibration is looked up; also -errno of the database, as a whole sentence. why
 * begins with the subject. */
int rollback_check_here(const struct settlement *what, const struct pc_document *document, const char *recorded,
                        const char *subject, struct pc_why *why);

/* Publishes a document as a wish: as what->source says, with the pins over it. What was wished for is recorded as it
 * is, so that it stands when the pins change. Returns as rollback_to(). */
int rollback_publish(const struct settlement *what, const struct pc_document *document, int64_t calibration,
                     uint64_t *published, struct pc_why *why);

#endif
