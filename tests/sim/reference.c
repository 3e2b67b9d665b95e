/* Published tables as hosts and samples; see reference.h. */
#include "tests/sim/reference.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrd/stats.h"
#include "libpolicy/file.h"
#include "tests/sim/hosts.h"
#include "tests/unit/harness.h"

#define KIB ((uint64_t)1024)
#define MIB (1024 * KIB)

/* Any constant rate will do where only ticks are given. */
static const double ticks_per_ns = 2.5;

/* --- CSV --------------------------------------------------------------------------------------------------------- */

/* Cuts the cell at *at off its line, without its quotes; *at moves behind it, NULL at the end of the line. */
static char *next_cell(char **at)
{
	char *cell = *at, *end;

	if (*cell == '"') {
		end = strchr(++cell, '"');
		if (end == NULL)
			end = cell + strlen(cell);
		else
			*end++ = '\0';
	} else {
		end = cell + strcspn(cell, ",");
	}
	*at = *end == ',' ? end + 1 : NULL;
	*end = '\0';
	return cell;
}

static int add_row(struct csv *csv, char *line)
{
	char **cells, *row[32];
	size_t count = 0;

	for (char *at = line; at != NULL && count < sizeof(row) / sizeof(row[0]);)
		row[count++] = next_cell(&at);
	if (csv->columns != 0 && count != csv->columns)
		return -EBADMSG;
	csv->columns = count;
	cells = reallocarray(csv->cells, (csv->rows + 1) * count, sizeof(*cells));
	if (cells == NULL)
		return -ENOMEM;
	csv->cells = cells;
	memcpy(cells + csv->rows++ * count, row, count * sizeof(*row));
	return 0;
}

/* The file as a string. */
static int read_text(const char *path, char **out)
{
	char *text, *ended;
	size_t len;
	int r = pc_file_read(path, 1 << 20, &text, &len, NULL);

	if (r < 0)
		return r;
	ended = realloc(text, len + 1);
	if (ended == NULL) {
		free(text);
		return -ENOMEM;
	}
	ended[len] = '\0';
	*out = ended;
	return 0;
}

int csv_read(struct csv *out, const char *name)
{
	char below[128], *save = NULL;
	struct csv csv = {0};
	const char *path;
	int r;

	snprintf(below, sizeof(below), "reference/%s", name);
	path = unit_shared(below);
	if (path == NULL)
		return 1;
	r = read_text(path, &csv.text);
	for (char *line = r == 0 ? strtok_r(csv.text, "\r\n", &save) : NULL; line != NULL && r == 0;
	     line = strtok_r(NULL, "\r\n", &save))
		if (*line != '#')
			r = add_row(&csv, line);
	if (r == 0 && csv.rows == 0)
		r = -EBADMSG;
	if (r < 0) {
		csv_free(&csv);
		return r;
	}
	csv.rows--; /* names */
	*out = csv;
	return 0;
}

void csv_free(struct csv *csv)
{
	free(csv->cells);
	free(csv->text);
	*csv = (struct csv){0};
}

const char *csv_text(const struct csv *csv, size_t row, const char *column)
{
	for (size_t i = 0; i < csv->columns; i++)
		if (strcmp(csv->cells[i], column) == 0)
			return csv->cells[(row + 1) * csv->columns + i];
	return NULL;
}

double csv_number(const struct csv *csv, size_t row, const char *column)
{
	const char *text = csv_text(csv, row, column);
	char *end;
	double value = text != NULL ? strtod(text, &end) : NAN;

	return text == NULL || end == text || *end != '\0' ? NAN : value;
}

/* --- cells ------------------------------------------------------------------------------------------------------- */

/* The names that the tables use, and this project's for the same instructions. */
static unsigned kernel_row(const char *name)
{
	static const char *const names[][2] = {
		{"rep", "libc"}, {"stosb", "libc"}, {"sse2", "movnti"}, {"avx", "avxnt"}, {"avx512", "avx512nt"},
	};
	const struct pc_kernel *kernel;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i][0]) == 0)
			name = names[i][1];
	kernel = pc_kernel_find(name);
	return kernel != NULL ? pc_kernel_index(kernel) : pc_kernel_count;
}

static unsigned host_row(struct reference *reference, const char *name)
{
	unsigned host = 0;

	while (host < reference->hosts && strcmp(reference->names[host], name) != 0)
		host++;
	if (host == reference->hosts) {
		snprintf(reference->names[host], sizeof(reference->names[host]), "%s", name);
		reference->host[host].name = reference->names[host];
		reference->hosts++;
	}
	return host;
}

static struct reference_cell *find(const struct reference *reference, const struct reference_cell *key)
{
	for (size_t i = 0; i < reference->cells; i++) {
		struct reference_cell *cell = &reference->cell[i];

		if (cell->host == key->host && cell->kernel == key->kernel && cell->phase == key->phase &&
		    cell->prior == key->prior && cell->bytes == key->bytes && cell->threads == key->threads)
			return cell;
	}
	return NULL;
}

const struct reference_cell *reference_find(const struct reference *reference, unsigned host, unsigned kernel,
                                            enum phase phase, enum pc_prior prior, uint64_t bytes)
{
	return find(reference, &(struct reference_cell){
				       .host = host, .kernel = kernel, .phase = phase, .prior = prior, .bytes = bytes});
}

/* Adds a repeat to the cell of that key. */
static int add_value(struct reference *reference, const struct reference_cell *key, double ns)
{
	struct reference_cell *cell = find(reference, key);

	if (key->kernel == pc_kernel_count)
		return 0; /* another architecture's build lacks it */
	if (cell == NULL) {
		struct reference_cell *grown = reallocarray(reference->cell, reference->cells + 1, sizeof(*grown));

		if (grown == NULL)
			return -ENOMEM;
		reference->cell = grown;
		cell = &grown[reference->cells++];
		*cell = *key;
	}
	if (cell->repeats == REFERENCE_REPEATS || isnan(ns))
		return -EBADMSG;
	cell->ns[cell->repeats++] = ns;
	return 0;
}

static void fill_curve(struct reference *reference, const struct reference_cell *cell)
{
	struct sim_host *host = &reference->host[cell->host];
	struct sim_kernel *kernel = &host->kernel[cell->kernel];
	struct sim_curve *curve = &kernel->gb_per_s[cell->prior];
	double ns = stats_median(cell->ns, cell->repeats);

	host->kernels |= 1u << cell->kernel;
	if (cell->phase != PHASE_CLEAR) {
		kernel->displaces[cell->phase - PHASE_VICTIM_L1].bytes = cell->bytes;
		kernel->displaces[cell->phase - PHASE_VICTIM_L1].ns = ns;
		return;
	}
	if (cell->threads > 1)
		curve = &sim_crowd(host, cell->threads)->gb_per_s[cell->kernel][cell->prior];
	sim_point(curve, cell->bytes, (double)cell->bytes / ns);
}

static void fill_curves(struct reference *reference)
{
	for (size_t i = 0; i < reference->cells; i++)
		fill_curve(reference, &reference->cell[i]);
}

/* --- Arora ------------------------------------------------------------------------------------------------------- */

/* A mean with a standard deviation stands for five values that have both; one without for five equal ones. */
static int add_mean(struct reference *reference, struct reference_cell key, double gb_per_s, double deviation)
{
	static const double spread[REFERENCE_REPEATS] = {0.6325, -1.2649, 0, 1.2649, -0.6325}; /* of variance 1 */
	int r = 0;

	for (key.prior = PC_CACHED; key.prior <= PC_FLUSHED; key.prior++)
		for (size_t i = 0; i < REFERENCE_REPEATS && r == 0; i++)
			r = add_value(reference, &key, (double)key.bytes / (gb_per_s + spread[i] * deviation));
	return r;
}

static int add_arora(struct reference *reference, const struct csv *csv, const char *only_host, uint64_t only_llc)
{
	int r = 0;

	for (size_t i = 0; i < csv->rows && r == 0; i++) {
		unsigned host = host_row(reference, only_host != NULL ? only_host : csv_text(csv, i, "host"));
		struct reference_cell key = {.host = host,
		                             .kernel = kernel_row(csv_text(csv, i, "kernel")),
		                             .phase = PHASE_CLEAR,
		                             .bytes = (uint64_t)csv_number(csv, i, "size_bytes")};
		double deviation = csv_number(csv, i, "stdev");

		reference->host[host].llc_bytes = only_llc > 0 ? only_llc : (uint64_t)csv_number(csv, i, "llc_bytes");
		r = add_mean(reference, key, csv_number(csv, i, "gb_per_s"), isnan(deviation) ? 0 : deviation);
	}
	return r;
}

/* What no table tells, and no test here judges: caches and reads of an ordinary server. */
static void furnish(struct sim_host *host)
{
	if (host->l1_bytes == 0)
		host->l1_bytes = 32 * KIB;
	if (host->l2_bytes == 0)
		host->l2_bytes = MIB;
	if (host->llc_bytes == 0)
		host->llc_bytes = 8 * MIB;
	host->read_gb_per_s[PC_CACHED] = 30;
	host->read_gb_per_s[PC_FLUSHED] = 10;
	host->load_ns[PC_CACHED] = 15;
	host->load_ns[PC_FLUSHED] = 110;
	host->victim_ns[2] = 1; /* a last-level victim without displacement is nothing but noise */
	host_latency(host, host->l2_bytes, host->llc_bytes, 5, 20, 100);
}

/* Hands a reference over once its tables were read without trouble, with what no table has filled in. */
static int finish(struct reference *reference, int r, struct reference *out)
{
	if (r != 0) {
		reference_free(reference);
		return r;
	}
	*out = *reference;
	for (size_t i = 0; i < out->hosts; i++) {
		out->host[i].name = out->names[i];
		furnish(&out->host[i]);
	}
	fill_curves(out);
	return 0;
}

int reference_arora(struct reference *out)
{
	struct csv icelake = {0}, others = {0};
	struct reference reference = {0};
	int r = csv_read(&icelake, "icelakex-perf-bench.csv");

	if (r == 0)
		r = csv_read(&others, "lkml-perf-bench.csv");
	if (r == 0)
		r = add_arora(&reference, &icelake, "Icelake-X 8358", 48 * MIB);
	if (r == 0)
		r = add_arora(&reference, &others, NULL, 0);
	csv_free(&icelake);
	csv_free(&others);
	return finish(&reference, r, out);
}

/* --- threads and chunks ------------------------------------------------------------------------------------------ */

/* The table's avx are ordinary stores, its avxnt VMOVNTDQ; elsewhere avx is the latter. */
static unsigned threads_row(const char *name)
{
	return kernel_row(strcmp(name, "avx") == 0 ? "avx2" : name);
}

int reference_threads(struct reference *out)
{
	struct reference reference = {0};
	struct csv csv = {0};
	int r = csv_read(&csv, "skylakesp-threads.csv");

	for (size_t i = 0; i < csv.rows && r == 0; i++) {
		unsigned threads = (unsigned)csv_number(&csv, i, "threads");
		struct reference_cell key = {.host = host_row(&reference, "Skylake-SP"),
		                             .kernel = threads_row(csv_text(&csv, i, "kernel")),
		                             .threads = threads > 1 ? threads : 0,
		                             .phase = PHASE_CLEAR,
		                             .bytes = (uint64_t)csv_number(&csv, i, "size_bytes")};

		r = add_mean(&reference, key, csv_number(&csv, i, "gb_per_s"), 0);
	}
	csv_free(&csv);
	return finish(&reference, r, out);
}

/* The rows of a host and kernel come with ascending chunks, so that the last one's speed stays. */
static int add_chunk(struct reference *reference, const struct csv *csv, size_t row)
{
	unsigned kernel = kernel_row(csv_text(csv, row, "kernel"));
	struct sim_host *host = &reference->host[host_row(reference, csv_text(csv, row, "host"))];
	uint64_t bytes = (uint64_t)csv_number(csv, row, "chunk_bytes");
	double gb_per_s = csv_number(csv, row, "mb_per_s") / 1000;

	if (kernel == pc_kernel_count)
		return 0; /* another architecture's build lacks it */
	if (!(gb_per_s > 0) || bytes == 0)
		return -EBADMSG;
	host->kernels |= 1u << kernel;
	sim_point(&host->kernel[kernel].by_chunk, bytes, gb_per_s);
	for (enum pc_prior prior = PC_CACHED; prior <= PC_FLUSHED; prior++) {
		host->kernel[kernel].gb_per_s[prior].count = 0;
		sim_point(&host->kernel[kernel].gb_per_s[prior], bytes, gb_per_s);
	}
	return 0;
}

int reference_chunk(struct reference *out)
{
	struct reference reference = {0};
	struct csv csv = {0};
	int r = csv_read(&csv, "lkml-chunk.csv");

	for (size_t i = 0; i < csv.rows && r == 0; i++)
		r = add_chunk(&reference, &csv, i);
	csv_free(&csv);
	return finish(&reference, r, out);
}

/* --- Beulich ----------------------------------------------------------------------------------------------------- */

static int add_beulich(struct reference *reference, const struct csv *csv, size_t row)
{
	bool l1 = strcmp(csv_text(csv, row, "victim"), "L1") == 0;
	struct reference_cell key = {
		.host = host_row(reference, csv_text(csv, row, "host")),
		.kernel = kernel_row(csv_text(csv, row, "kernel")),
		.phase = PHASE_CLEAR,
		.prior = strcmp(csv_text(csv, row, "prior"), "warm") == 0 ? PC_CACHED : PC_FLUSHED,
	};
	struct sim_host *host = &reference->host[key.host];
	double before = csv_number(csv, row, "pre_ticks") / ticks_per_ns;
	int r;

	host->l1_bytes = (uint64_t)csv_number(csv, row, "l1d_kib") * KIB;
	host->l2_bytes = (uint64_t)csv_number(csv, row, "l2_kib") * KIB;
	key.bytes = (l1 ? host->l1_bytes : host->l2_bytes) / 2; /* half of the victim's size was cleared */
	r = add_value(reference, &key, csv_number(csv, row, "clear_ticks") / ticks_per_ns);
	if (r < 0 || key.prior == PC_CACHED)
		return r;
	host->victim_ns[l1 ? 0 : 1] = before;
	key.phase = l1 ? PHASE_VICTIM_L1 : PHASE_VICTIM_L2;
	return add_value(reference, &key, csv_number(csv, row, "post_ticks") / ticks_per_ns - before);
}

int reference_beulich(struct reference *out)
{
	struct reference reference = {0};
	struct csv csv = {0};
	int r = csv_read(&csv, "xen-clear-page.csv");

	for (size_t i = 0; i < csv.rows && r == 0; i++)
		r = add_beulich(&reference, &csv, i);
	csv_free(&csv);
	return finish(&reference, r, out);
}

void reference_free(struct reference *reference)
{
	free(reference->cell);
	*reference = (struct reference){0};
}

/* --- samples ----------------------------------------------------------------------------------------------------- */

static int add_sample(struct dataset *data, const struct reference_cell *cell, enum phase phase, unsigned epoch,
                      unsigned round, double ns)
{
	struct series_key key = {
		.bytes = cell->bytes,
		.threads = (uint16_t)(cell->threads > 1 ? cell->threads : 1),
		.kernel = (uint8_t)cell->kernel,
		.prior = (uint8_t)cell->prior,
		.phase = (uint8_t)phase,
	};
	struct round_value value = {(float)ns, (uint16_t)round, (uint8_t)epoch};

	return dataset_add(data, &key, &value, false);
}

static int add_repeats(struct dataset *data, const struct reference_cell *cell)
{
	unsigned n = (unsigned)cell->repeats;
	int r = 0;

	for (unsigned epoch = 0; epoch < n; epoch++)
		for (unsigned round = 0; round < n && r == 0; round++) {
			double ns = cell->ns[(round + (cell->kernel == 0 ? 0 : epoch)) % n];

			r = add_sample(data, cell, cell->phase, epoch, round, ns);
			for (enum phase v = PHASE_VICTIM_L1; v <= PHASE_VICTIM_LLC && r == 0; v++)
				if (cell->phase >= PHASE_VICTIM_L1 && v != cell->phase)
					r = add_sample(data, cell, v, epoch, round, 0);
		}
	return r;
}

int reference_samples(const struct reference *reference, unsigned host, struct dataset *data)
{
	int r = 0;

	for (size_t i = 0; i < reference->cells && r == 0; i++)
		if (reference->cell[i].host == host)
			r = add_repeats(data, &reference->cell[i]);
	return r;
}
