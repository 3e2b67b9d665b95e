/*
 * Tables of figures that others published, as simulated hosts and as samples. The files lie beside the project; each
 * names its source in its first lines. What a table does not hold is not made up: whoever asks gets no table for it.
 */
#ifndef TESTS_REFERENCE_H
#define TESTS_REFERENCE_H

#include "calibrd/samples.h"
#include "tests/sim/meter_sim.h"

/* A CSV file: # comments, a line of names, rows; quotes hold commas. */
struct csv {
	char *text;
	size_t columns, rows;
	char **cells; /* [1 + rows][columns]; row 0 of the file holds the names */
};

/* 0, 1 if the file is not there, -EBADMSG for a row of another length, -ENOMEM. */
int csv_read(struct csv *out, const char *name);
void csv_free(struct csv *csv);
/* NULL if there is no such column. */
const char *csv_text(const struct csv *csv, size_t row, const char *column);
/* NaN if it is no number. */
double csv_number(const struct csv *csv, size_t row, const char *column);

enum { REFERENCE_HOSTS = 16, REFERENCE_REPEATS = 5 };

/* One published measurement, repeats and all, as nanoseconds (or ticks: only ratios matter). */
struct reference_cell {
	unsigned host, kernel;
	unsigned threads; /* 0: one */
	enum phase phase;
	enum pc_prior prior;
	uint64_t bytes;
	size_t repeats;
	double ns[REFERENCE_REPEATS];
};

struct reference {
	size_t hosts;
	char names[REFERENCE_HOSTS][48];
	struct sim_host host[REFERENCE_HOSTS]; /* medians of the cells */
	size_t cells, room;
	struct reference_cell *cell;
};

/* Ankur Arora's perf bench tables: the table's rep is row 0 here, as it has no libc; one prior, taken for both.
 * 0, 1 if a file is not there, negative errno. */
int reference_arora(struct reference *out);

/* Jan Beulich's eight machines: stosb is row 0; victims from the flushed rows. */
int reference_beulich(struct reference *out);

/* goldsteinn's table of a Skylake-SP by number of threads, GB/s of each: stosb is row 0, avx the temporal stores of
 * 32 bytes, avxnt the non-temporal ones; one prior, taken for both. One host with curves for 1, 4, 8, 16 and 36
 * threads; who simulates it says how many CPUs it has. */
int reference_threads(struct reference *out);

/* Ankur Arora's table of 4 GiB cleared in chunks: what it tells is how a kernel's speed depends on the chunk. At every
 * size a host is as fast as with its largest chunk. */
int reference_chunk(struct reference *out);

void reference_free(struct reference *reference);

/* One thread's; NULL if the table holds none. */
const struct reference_cell *reference_find(const struct reference *reference, unsigned host, unsigned kernel,
                                            enum phase phase, enum pc_prior prior, uint64_t bytes);

/*
 * Samples of a host as the table gives them. Repeats of different kernels were not taken as pairs, so each repeat of a
 * kernel meets each repeat of row 0: round = repeat, and epoch e shifts all kernels but row 0 by e repeats. A victim's
 * size stands for all three victims, the others being 0. 0 or -ENOMEM.
 */
int reference_samples(const struct reference *reference, unsigned host, struct dataset *data);

#endif
