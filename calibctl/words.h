/*
 * Numbers, times and enumerations as people write them. Pure: the time of day is an argument.
 */
#ifndef CALIBCTL_WORDS_H
#define CALIBCTL_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "calibrd/store.h"
#include "kernels/kernels.h"
#include "libpolicy/document.h"

enum { WORDS_SHORT = 32 };

/* Behind what stands in out already; what does not fit into its size is cut. */
void words_append(char *out, size_t size, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* "not stated" for what a file leaves out. */
const char *words_stated(const char *text);

/* "43 ns", "1.25 us", "310 ms": three significant digits; "-" for NaN. */
void words_ns(double ns, char out[WORDS_SHORT]);

/* "12.3" GB/s (10^9 bytes a second); "-" for NaN. */
void words_rate(uint64_t bytes, double ns, char out[WORDS_SHORT]);

/* "2.91x"; "-" for NaN and for 0, not stated. */
void words_gain(double gain, char out[WORDS_SHORT]);

/* "4 %", "0.4 %" from 0.04, 0.004. */
void words_percent(double share, char out[WORDS_SHORT]);

/* size_format() in a buffer of fixed size. */
void words_size(uint64_t bytes, char out[WORDS_SHORT]);

/* "just now", "5 minutes ago", "3 days ago"; "in the future" for negative ages. */
void words_age(int64_t seconds, char out[WORDS_SHORT]);

/* Seconds since 1970 of "2026-11-30T10:42:07Z". 0, or -EINVAL. */
int words_parse_time(const char *text, int64_t *seconds);

/* "2026-11-30 10:42:07 UTC". */
void words_time(int64_t seconds, char out[WORDS_SHORT]);

/* "libc", "rep", "temporal", "non-temporal", "line". */
const char *words_family(enum pc_family family);

/* "running", "done", "failed". */
const char *words_calibration(enum calibration_state state);

/* -1 if it is none of the words. */
int words_intent(const char *word);
int words_prior(const char *word);

/* What an intent or a prior means, as a clause. */
const char *words_intent_meaning(unsigned intent);
const char *words_prior_meaning(enum pc_prior prior);

#endif
