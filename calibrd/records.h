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
#include "calibrd/verify.h"
#include "libpolicy/why.h"

enum { ORDER_PATH = 1024 };

enum order_task { ORDER_CALIBRATE, ORDER_VERIFY };

/* What the parent asks for: written once to the child's standard input. */
struct order {
	uint32_t magic; /* ORDER_MAGIC: both ends are the same build */
	uint32_t task;  /* enum order_task */
	uint32_t effort;
	uint32_t duty_percent; /* of its time that the child may be busy, 1 to 100, 0 as 100; see rest.h */
	uint64_t memory_bytes, l1_bytes, l2_bytes, llc_bytes, seed;
	uint32_t excluded;     /* bits of pc_kernels that the admin will not have */
	uint32_t keep;         /* bits that the policy in force names */
	uint32_t threads_most; /* a quota has no room for more at the same time; 0: no bound */
	int32_t nice;
	int32_t parent; /* who sends it: the child does not outlive that process; run_start() fills it in */
	double scrub_weight;
	/* To verify: */
	uint64_t knee_bytes;
	double tolerance;        /* share, see verify_judge() */
	char policy[ORDER_PATH]; /* the policy's file, ending in NUL */
};

/* What is larger than a record comes in pieces: the report of a verification, and the words of a failure, before
 * RECORD_END. Samples are sent hundreds of thousands of times, so no record may be larger than theirs and the probe's
 * need. */
enum record_kind {
	RECORD_SAMPLE = 1,
	RECORD_KNEE,
	RECORD_PROBE,
	RECORD_PROGRESS,
	RECORD_TRIAL,
	RECORD_END,    /* nothing comes after it */
	RECORD_REPORT, /* piece of a struct verify_report */
	RECORD_WORDS   /* piece of a struct pc_why's text */
};

enum { RECORD_PIECE = 52 };

struct record_piece {
	uint32_t at; /* offset in the whole, a multiple of RECORD_PIECE */
	char bytes[RECORD_PIECE];
};

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
		struct record_piece piece;
		struct {
			int32_t error; /* 0: all was measured, else -errno */
			struct taints taints;
		} end;
	} u;
};

#define ORDER_MAGIC 0x70676335u

/* More than the fullest plan gives (120 rounds a block and epoch): what comes beyond would only fill memory. */
enum { RECORDS_MOST = 1 << 24 };

/* True if every field that its kind has is one that a healthy child could have sent as record `number`. */
bool record_is_sane(const struct record *record, uint32_t number);

/* True if a healthy child could have sent these bytes as its report. */
bool record_report_is_sane(const struct verify_report *report);

/* The piece at `at` of `size` bytes; what lies beyond them is NUL. */
struct record_piece record_piece(const void *whole, size_t size, uint32_t at);

/* Puts a sane piece where it belongs. False if it is not the one that comes after the first `held` bytes. */
bool record_assemble(void *whole, size_t size, size_t held, const struct record_piece *piece);

/* Makes of whatever a child has said what may stand in a log: printable, and ending in NUL. */
void record_clean_words(struct pc_why *words);

#endif
