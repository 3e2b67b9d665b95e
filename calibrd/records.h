/*
 * What the measuring child tells its parent: fixed records over a pipe. The parent distrusts every field.
 */
#ifndef CALIBRD_RECORDS_H
#define CALIBRD_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "calibrd/bench.h"
#include "calibrd/samples.h"
#include "calibrd/taints.h"

enum { ORDER_PATH = 1024 };

enum order_task { ORDER_CALIBRATE, ORDER_VERIFY };

/* What the parent asks for: written once to the child's standard input. */
struct order {
	uint32_t magic; /* ORDER_MAGIC: both ends are the same build */
	uint32_t task;  /* enum order_task */
	uint32_t effort;
	uint32_t duty_percent; /* of its time that the child may be busy, 1 to 100; it rests between rounds */
	uint64_t memory_bytes, l1_bytes, l2_bytes, llc_bytes, seed;
	uint32_t excluded;     /* bits of pc_kernels that the admin will not have */
	uint32_t keep;         /* bits that the policy in force names */
	uint32_t threads_most; /* a quota has no room for more at the same time; 0: no bound */
	int32_t nice;
	double scrub_weight;
	/* To verify: */
	uint64_t knee_bytes;
	double tolerance;        /* share, see verify_judge() */
	char policy[ORDER_PATH]; /* the policy's file */
};

enum record_kind { RECORD_SAMPLE = 1, RECORD_KNEE, RECORD_PROBE, RECORD_PROGRESS, RECORD_TRIAL, RECORD_END };

struct record {
	uint32_t kind;
	uint32_t number; /* counts up from 0, below RECORDS_MOST, so that a lost or repeated record shows */
	union {
		struct {
			struct series_key key;
			struct round_value value;
			uint32_t tainted; /* 0 or 1 */
		} sample;
		struct {
			uint64_t bytes;
			uint32_t epoch;
		} knee;
		struct bench_probe probe;
		struct {
			uint32_t epoch, epochs;
			double share;
		} progress;
		struct {
			uint32_t kernel;
			uint32_t trial; /* enum trial */
		} trial;
		struct {
			int32_t error; /* 0: all was measured, else -errno */
			struct taints taints;
		} end;
	} u;
};

#define ORDER_MAGIC 0x70676334u

/* More than the fullest plan gives (120 rounds a block and epoch): what comes beyond would only fill memory. */
enum { RECORDS_MOST = 1 << 24 };

/* True if every field that its kind has is one that a healthy child could have sent as record `number`. */
bool record_is_sane(const struct record *record, uint32_t number);

#endif
