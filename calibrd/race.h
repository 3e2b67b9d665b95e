/*
 * Who can still win. Pure. A kernel leaves a size when another one beats it under every prior and intent there: then no
 * mean of them can favour it either.
 */
#ifndef CALIBRD_RACE_H
#define CALIBRD_RACE_H

#include <stdint.h>

#include "calibrd/samples.h"
#include "libpolicy/document.h"

/* Of the kernels in `mask`, those that may still win at that size; beside libc at most the `most` that come closest to
 * the best under one condition or another, and those not measured there yet.
 * libc (bit 0) always stays. */
uint32_t race_survivors(const struct dataset *data, uint64_t bytes, uint32_t mask, unsigned most);

/* libc and the two best at the largest size that all kernels were measured at, flushed, by clear and by first use. */
uint32_t race_finalists(const struct dataset *data, uint32_t mask);

/* libc and of each other family the cheapest to clear flushed memory with, of the non-temporal ones the two cheapest.
 */
uint32_t race_champions(const struct dataset *data, uint32_t mask);

/* libc and, of the temporal kernels and of those that go round the caches, the cheapest where its like is at home:
 * cached and flushed memory of 1 MiB. */
uint32_t race_classes(const struct dataset *data, uint32_t mask);

/* The cheapest at that size and prior by clear and by first use; 0 where nothing was measured yet. */
uint32_t race_winners(const struct dataset *data, uint64_t bytes, enum pc_prior prior, uint32_t mask);

#endif
