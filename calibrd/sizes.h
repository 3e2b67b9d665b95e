/*
 * Sizes as people write them: 4096, 4K, 1.5 MiB. All prefixes are powers of 1024. Pure.
 */
#ifndef CALIBRD_SIZES_H
#define CALIBRD_SIZES_H

#include <stddef.h>
#include <stdint.h>

enum { SIZE_TEXT = 16 }; /* room that size_format() needs at most */

/*
 * NUMBER[.DECIMALS] [B | K | KiB | KB ... E | EiB | EB] in any case, with or without spaces between; up to 9 decimals,
 * rounded to whole bytes. 0; or -EINVAL no size, -ERANGE more than 64 bits.
 */
int size_parse(const char *text, uint64_t *out);

/* "320 B", "1.5 MiB": exact where two decimals can be, else rounded to them. size_parse() takes it back. Returns text.
 */
char *size_format(uint64_t bytes, char *text, size_t size);

#endif
