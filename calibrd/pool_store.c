/* The last calibrations from the database, as one; see pool.h. */
#include <errno.h>
#include <stdlib.h>

#include "calibrd/log.h"
#include "calibrd/pool.h"

/* What the database knows. */
struct known {
	struct calibration *calibrations; /* newest first */
	struct verification *verifications;
	size_t calibration_count, verification_count;
};

static void forget(struct known *known)
{
	for (size_t i = 0; i < known->calibration_count; i++)
		store_calibration_free(&known->calibrations[i]);
	for (size_t i = 0; i < known->verification_count; i++)
		store_verification_free(&known->verifications[i]);
	free(known->calibrations);
	free(known->verifications);
}

/* All of them: a window would move with what happens later, and the pool with it. */
static int recall(struct known *known, struct store *store, struct pc_why *why)
{
	int r = store_calibrations(store, SIZE_MAX, &known->calibrations, &known->calibration_count, why);

	if (r == 0)
		r = store_verifications(store, SIZE_MAX, &known->verifications, &known->verification_count, why);
	return r;
}

/* 1: none of its rounds are left, or none that can be read: what is older than the calibration is no reason to fail. */
static int read_part(struct dataset *out, struct store *store, int64_t id, struct pc_why *why)
{
	int r = store_series(store, id, out, why);

	if (r == -EUCLEAN) {
		log_warning("%s: decided without that calibration", why->text);
		return 1;
	}
	if (r == 0 && pool_epochs(out) == 0) {
		dataset_clear(out);
		return 1;
	}
	return r;
}

static int read_parts(struct dataset *parts, size_t *count, struct store *store, const struct calibration *calibration,
                      const struct known *known, struct pc_why *why)
{
	int r = 0;

	for (size_t i = 0; i < known->calibration_count && *count < POOL_MOST - 1 && r >= 0; i++) {
		const struct calibration *older = &known->calibrations[i];

		if (!pool_fits(calibration, older, known->verifications, known->verification_count))
			continue;
		r = read_part(&parts[*count], store, older->id, why);
		if (r == 0)
			(*count)++;
	}
	return r < 0 ? r : 0;
}

int pool_collect(struct dataset *out, struct store *store, const struct calibration *calibration,
                 const struct dataset *data, unsigned *used, struct pc_why *why)
{
	struct dataset older[POOL_MOST - 1] = {{0}};
	const struct dataset *parts[POOL_MOST] = {data};
	struct known known = {0};
	size_t count = 0;
	int r = recall(&known, store, why);

	*out = (struct dataset){0};
	if (r == 0)
		r = read_parts(older, &count, store, calibration, &known, why);
	forget(&known);
	for (size_t i = 0; i < count; i++)
		parts[i + 1] = &older[i];
	if (r == 0 && (r = pool_join(out, parts, count + 1)) < 0)
		pc_why_say(why, "no memory for the samples of %zu calibrations", count + 1);
	for (size_t i = 0; i < count; i++)
		dataset_clear(&older[i]);
	if (used != NULL)
		*used = (unsigned)count + 1;
	return r;
}

int pool_count(struct store *store, const struct calibration *calibration, unsigned *used, struct pc_why *why)
{
	struct known known = {0};
	int r = recall(&known, store, why);

	*used = 1;
	for (size_t i = 0; i < known.calibration_count && *used < POOL_MOST; i++)
		if (pool_fits(calibration, &known.calibrations[i], known.verifications, known.verification_count))
			(*used)++;
	forget(&known);
	return r;
}

int pool_read(struct dataset *out, struct store *store, const struct calibration *calibration, struct pc_why *why)
{
	struct dataset own = {0};
	int r = store_series(store, calibration->id, &own, why);

	*out = (struct dataset){0};
	if (r == 0)
		r = pool_collect(out, store, calibration, &own, NULL, why);
	dataset_clear(&own);
	return r;
}
