/* Series as rows, their rounds as blobs: for store_calibration.c. */
#ifndef CALIBRD_STORE_SERIES_H
#define CALIBRD_STORE_SERIES_H

#include "calibrd/store.h"
#include "calibrd/store_sql.h"

/* Inside the caller's transaction. -EINVAL for a key or a value that no measurement gives. */
int store_series_save(struct store *store, int64_t calibration, const struct dataset *data, struct pc_why *why);

/* The blob: a byte of 1, then for each round 7 bytes, little-endian: epoch u8, round u16, ns as IEEE 754 binary32.
 * out has room for store_rounds_bytes(series->count). -EINVAL if a value is not finite. */
size_t store_rounds_bytes(size_t count);
int store_rounds_encode(const struct series *series, unsigned char *out);

/* Into series->rounds, allocated. -EUCLEAN unless the blob is exactly `count` rounds of finite values; -ENOMEM. */
int store_rounds_decode(const struct sql_bytes *blob, uint32_t count, struct series *series);

#endif
