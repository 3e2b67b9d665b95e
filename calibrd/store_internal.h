/*
 * Shared by store*.c alone: the store itself, and each statement with the record that it is bound to.
 */
#ifndef CALIBRD_STORE_INTERNAL_H
#define CALIBRD_STORE_INTERNAL_H

#include "calibrd/store.h"
#include "calibrd/store_sql.h"

enum statement {
	SAVE_TOPOLOGY,
	LOAD_TOPOLOGY,
	SAVE_KERNEL,
	BEGIN_CALIBRATION,
	END_CALIBRATION,
	FAULT_CALIBRATION,
	FAIL_INTERRUPTED,
	LOAD_LATEST,
	LOAD_CALIBRATION,
	LIST_CALIBRATIONS,
	SAVE_SERIES,
	SAVE_ROUNDS,
	FORGET_ROUNDS,
	LOAD_SERIES,
	SAVE_PUBLISHED,
	RETRACT_PUBLISHED,
	LOAD_PUBLISHED,
	LOAD_GENERATION,
	LIST_PUBLISHED,
	SAVE_VERIFICATION,
	SAVE_VERIFIED,
	LIST_VERIFICATIONS,
	LOAD_VERIFIED,
	STATEMENTS
};

extern const struct sql_statement store_statements[STATEMENTS];

struct topology_row {
	const char *id, *arch, *name;
	char *key, *raw;
};

struct kernel_row {
	const char *name;
	unsigned revision;
};

struct calibration_row {
	struct calibration c;
	const char *wanted; /* topology to look for, NULL: any */
	const char *version;
	char state[8];
	uint64_t most;
};

struct series_row {
	int64_t calibration;
	struct series_key key;
	char kernel[16], phase[16], prior[16], page[8], direction[12];
	unsigned revision;
	uint32_t number, n, tainted;
	double median, mad, least;
	struct sql_bytes rounds;
};

struct published_row {
	struct published p;
	const char *wanted;
	char hash[17];
	uint64_t most;
};

struct verification_row {
	struct verification v;
	int64_t passed;
	uint64_t most;
};

struct verified_row {
	int64_t verification;
	struct verified v;
	char intent[8], prior[8];
	int64_t passed;
};

struct store {
	struct sql *sql;
	int lock; /* -1 in STORE_READ */
};

/* Seconds since 1970 UTC. */
int64_t store_now(void);
/* A clock that is not set, or set wrongly, is no reason to lose what was measured: never below 1, as the schema has it.
 */
int64_t store_time(int64_t seconds);

/* SIZE_MAX, for all, is more than SQLite can count to. */
static inline uint64_t store_limit(size_t most)
{
	return most < INT32_MAX ? most : INT32_MAX;
}

#endif
