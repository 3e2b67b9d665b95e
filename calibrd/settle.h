/*
 * From measurements, fresh or remembered, to a published policy: decide, assemble, publish, record.
 */
#ifndef CALIBRD_SETTLE_H
#define CALIBRD_SETTLE_H

#include <stdbool.h>
#include <stdint.h>

#include "calibrd/config.h"
#include "calibrd/decide.h"
#include "calibrd/probe_fit.h"
#include "calibrd/publish.h"
#include "calibrd/store.h"
#include "calibrd/topology.h"
#include "libpolicy/document.h"

/* Where programs look, and where the policy goes while /etc can't be written. */
#define SETTLE_POLICY "/etc/pageclear/policy.yaml"
#define SETTLE_FALLBACK "/run/pageclear/policy.yaml"

struct settlement {
	const struct config *config;
	struct store *store;
	const struct topology *topology;
	const struct calibration *calibration; /* done: knee, probe, quality and faulted are read */
	const struct dataset *data;            /* its own; NULL: publish `old` again as it is */
	const struct pc_document *old;         /* last published for this topology, or NULL */
	const char *source;                    /* "calibration", "restart", "rollback", "import" */
	char *where;                           /* PUBLISH_PATH bytes: set to the policy's place once it is published */
	uint64_t *generation;                  /* likewise, to the number it has there; may be NULL */
};

/* 0 published, 1 the same policy was there already, -errno with why. Says in the log what it did. Decides by the epochs
 * of the calibration and those before it that fit (pool.h); once it is stored, whenever that is, the same. Where the
 * calibration's rounds are no longer kept, `old` is published again as it is; -ENODATA if there is none either. */
int settle(const struct settlement *what, struct pc_why *why);

/* Publishes that document, recorded as what the calibration of that id led to (0: none is known). Returns as settle(),
 * and says in the log what it did. */
int settle_document(const struct settlement *what, const struct pc_document *document, int64_t calibration,
                    struct pc_why *why);

/* Publishes a document and records it; of `as`, source, topology and calibration are read; of config, the policy's
 * path. Returns as publish(), or what the database could not do; result is filled and result->yaml for free() in any
 * case. Logs nothing but a recorded text that can't be read. */
int settle_publish(const struct config *config, struct store *store, const struct published *as,
                   const struct pc_document *document, struct publish_result *result, struct pc_why *why);

/* Sets the calibration's probe from what was seen of it. 0, or -errno with why. */
int settle_probe(const struct config *config, const struct dataset *data, const struct probe_set *probes,
                 struct calibration *calibration, struct pc_why *why);

/* Bits of pc_kernels that run here, are not excluded and did not fault then, and of which the calibration has nothing.
 */
uint32_t settle_unmeasured(const struct dataset *data, const struct calibration *calibration,
                           const struct config *config);

/* True if at least one sample was taken undisturbed and is still there. */
bool settle_has_rounds(const struct dataset *data);

/* -errno with why where nothing could be published: better known before a calibration than after it. */
int settle_check(const struct config *config, struct pc_why *why);

/* The last policy published for a topology, parsed; NULL in *out if there is none or it can't be read any more. */
int settle_last(struct store *store, const char *topology, struct pc_document **out, struct pc_why *why);

/* Takes policies of other topologies away, at once. 0, 1 nothing to do, -errno. */
int settle_withdraw(const struct config *config, struct store *store, const char *topology, struct pc_why *why);

/* Bits of pc_kernels that a policy's rules name. */
uint32_t settle_named(const struct pc_document *document);

/* Bits of pc_kernels that failed their trial in a calibration. */
uint32_t settle_faulted(const struct calibration *calibration);

/* Their names, as a record has them. */
void settle_name_faulted(uint32_t faulted, char text[PC_KERNEL_MAX * PC_KERNEL_NAME]);

/* Kernels that failed a trial since the topology's newest calibration: they count as failed then, so that no policy has
 * them any more. 0, also where there is no calibration; -errno with why. */
int settle_bar(struct store *store, const char *topology, uint32_t faulted, struct pc_why *why);

/* Bits of pc_kernels that a calibration measured and that may be chosen: neither faulted then nor excluded now. */
uint32_t settle_kernels(const struct dataset *data, const struct calibration *calibration, const struct config *config);

#endif
