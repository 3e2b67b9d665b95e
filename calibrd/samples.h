/*
 * What was measured: samples, kept as one series a condition. Pure: no clock, file or database.
 * A sample's round pairs it with the samples of other kernels taken next to it.
 */
#ifndef CALIBRD_SAMPLES_H
#define CALIBRD_SAMPLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a sample timed. All values are nanoseconds for one extent of `bytes`. */
enum phase {
	PHASE_CLEAR,      /* clear and fence */
	PHASE_READ,       /* first forward read after that clear, same sample */
	PHASE_SINGLE,     /* one clear and fence with ordinary work behind it (small flushed sizes) */
	PHASE_VICTIM_L1,  /* re-read of an L1D-sized victim after the clear, less its no-clear control: any sign */
	PHASE_VICTIM_L2,  /* likewise, L2-sized */
	PHASE_VICTIM_LLC, /* likewise, half the knee */
	PHASES
};

enum page_kind { PAGE_BASE, PAGE_HUGE };

/* What an extent lies on unless a spot check asks otherwise: huge pages from their own size up. */
enum page_kind page_usual(uint64_t bytes);

/* chunk == bytes is the whole extent as well: how a spot check names what it compares its chunks with, so that its
 * rounds do not mix with those of the grid. */
struct series_key {
	uint64_t bytes;   /* of the extent; of several threads, of each one's */
	uint64_t chunk;   /* bytes a kernel call covered, 0: the whole extent */
	uint16_t threads; /* CPUs that cleared at the same time, each an extent of its own */
	uint8_t kernel;   /* row of pc_kernels */
	uint8_t prior;    /* enum pc_prior: PC_CACHED or PC_FLUSHED */
	uint8_t phase;    /* enum phase */
	uint8_t page;     /* enum page_kind: what was asked for */
	uint8_t backward; /* 1: the chunks in descending order of address */
};

struct round_value {
	float ns;
	uint16_t round; /* counts within the epoch */
	uint8_t epoch;
};

struct series {
	struct series_key key;
	uint32_t count;   /* untainted rounds, in the order they were taken */
	uint32_t tainted; /* dropped */
	uint32_t room;
	struct round_value *rounds;
};

/* Series in the order of series_compare(). Zero-initialised = empty. */
struct dataset {
	size_t count, room;
	struct series *series;
};

int series_compare(const struct series_key *a, const struct series_key *b);

/* 0 or -ENOMEM. A tainted sample is counted and dropped. */
int dataset_add(struct dataset *data, const struct series_key *key, const struct round_value *value, bool tainted);

/* NULL if nothing was measured under that key. */
const struct series *dataset_find(const struct dataset *data, const struct series_key *key);

/* Releases all series and leaves an empty dataset. */
void dataset_clear(struct dataset *data);

/* Short names for people and the database: "clear", "read", "single", "victim-l1", ... and "base", "huge". */
const char *phase_name(enum phase phase);
const char *page_name(enum page_kind page);

#endif
