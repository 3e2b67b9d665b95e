/* What memory holds. */
#ifndef TESTS_BYTES_H
#define TESTS_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

static inline bool is_all(const unsigned char *at, size_t len, unsigned char byte)
{
	return len == 0 || (at[0] == byte && memcmp(at, at + 1, len - 1) == 0);
}

#endif
