/*
 * tool-calibctl_database PATH TOPOLOGY SCENARIO: a database as calibrd leaves it, with made-up measurements whose costs
 * are simple multiples, so that tests/cli/calibctl.bats can tell what calibctl must say of them.
 *
 * Scenarios: good, faulted (sse2nt failed its trial), failed (a failed calibration after the good one), running
 * (likewise), spots (with spot checks of sse2nt at 4 MiB).
 */
#include <stdio.h>
#include <string.h>

#include "calibrd/store.h"
#include "calibrd/topology.h"
#include "kernels/kernels.h"
#include "libpolicy/document.h"

enum {
	EPOCHS = 3,
	ROUNDS = 7,
	ALONE_MOST = 16384,
	SCRUB_LEAST = 65536,
	FINISHED = 1796035327 - 86400, /* 2026-11-29T10:42:07Z */
};

/* ns a byte. */
static const struct {
	const char *name;
	double cached, flushed, read,
		alone;    /* read: the first one after a clear; from cached and flushed memory alike */
	double displaced; /* ns, each victim */
} models[] = {
	{"libc", 0.020, 0.100, 0.020, 0.060, 6000},
	{"stosq", 0.025, 0.100, 0.020, 0.060, 6000},
	{"movnti", 0.080, 0.050, 0.080, 0.120, 100},
	{"sse2nt", 0.080, 0.040, 0.080, 0.030, -50},
};

static int add(struct dataset *data, struct series_key key, double ns)
{
	int r = 0;

	for (unsigned e = 0; e < EPOCHS; e++)
		for (unsigned round = 0; round < ROUNDS; round++) {
			/* Epochs differ by 2 % for all but libc: that is the noise floor to be found. */
			double epoch = key.kernel == 0 ? 1 : 0.98 + 0.02 * e;
			struct round_value value = {
				.ns = (float)(ns * epoch), .round = (uint16_t)round, .epoch = (uint8_t)e};

			if (r == 0)
				r = dataset_add(data, &key, &value, false);
		}
	return r;
}

static int add_size(struct dataset *data, size_t model, unsigned kernel, uint64_t bytes)
{
	struct series_key key = {.bytes = bytes, .threads = 1, .kernel = (uint8_t)kernel};
	int r = 0;

	for (unsigned prior = PC_CACHED; prior <= PC_FLUSHED && r == 0; prior++) {
		key.prior = (uint8_t)prior;
		key.phase = PHASE_CLEAR;
		r = add(data, key, (double)bytes * (prior == PC_CACHED ? models[model].cached : models[model].flushed));
		key.phase = PHASE_READ;
		if (r == 0)
			r = add(data, key, (double)bytes * models[model].read);
	}
	key.phase = PHASE_SINGLE;
	if (r == 0 && bytes <= ALONE_MOST)
		r = add(data, key, (double)bytes * models[model].alone);
	for (key.phase = PHASE_VICTIM_L1; r == 0 && bytes >= SCRUB_LEAST && key.phase <= PHASE_VICTIM_LLC; key.phase++)
		r = add(data, key, models[model].displaced);
	return r;
}

static int measure(struct dataset *data)
{
	int r = 0;

	for (uint64_t bytes = 4096; bytes <= 4u << 20; bytes *= 4)
		for (size_t i = 0; i < sizeof(models) / sizeof(models[0]) && r == 0; i++) {
			const struct pc_kernel *kernel = pc_kernel_find(models[i].name);

			if (kernel != NULL) /* other processors have other names */
				r = add_size(data, i, pc_kernel_index(kernel), bytes);
		}
	return r;
}

/* ns a byte when cached: a third less than libc up to 64 KiB, a third more beyond; flushed alike. */
static int add_stores(struct dataset *data, const char *name, uint64_t bytes)
{
	const struct pc_kernel *kernel = pc_kernel_find(name);
	struct series_key key = {.bytes = bytes, .threads = 1};
	int r = 0;

	if (kernel == NULL)
		return 0;
	key.kernel = (uint8_t)pc_kernel_index(kernel);
	for (unsigned prior = PC_CACHED; prior <= PC_FLUSHED && r == 0; prior++) {
		double cached = strcmp(name, "stosb") == 0 ? 0.020 : bytes <= 65536 ? 0.013 : 0.026;

		key.prior = (uint8_t)prior;
		key.phase = PHASE_CLEAR;
		r = add(data, key, (double)bytes * (prior == PC_CACHED ? cached : 0.100));
		key.phase = PHASE_READ;
		if (r == 0)
			r = add(data, key, (double)bytes * 0.020);
	}
	key.phase = PHASE_SINGLE;
	return r == 0 && bytes <= ALONE_MOST ? add(data, key, (double)bytes * 0.060) : r;
}

static int measure_stores(struct dataset *data)
{
	static const char *const names[] = {"stosb", "sse2", "avx2"};
	int r = 0;

	for (uint64_t bytes = 4096; bytes <= 4u << 20; bytes *= 4)
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && r == 0; i++)
			r = add_stores(data, names[i], bytes);
	return r;
}

/* sse2nt and libc at 4 MiB, flushed: whole 100 us, in pieces of 64 KiB 150, of 2 MiB 50, from the end twice as much;
 * on base pages 80 against libc's 100. */
static int check_spots(struct dataset *data)
{
	const struct pc_kernel *kernel = pc_kernel_find("sse2nt");
	struct series_key key = {
		.bytes = 4 << 20, .threads = 1, .prior = PC_FLUSHED, .phase = PHASE_CLEAR, .page = PAGE_HUGE};
	static const struct {
		uint64_t chunk;
		double us;
	} ways[] = {{64 << 10, 150}, {2 << 20, 50}, {4 << 20, 100}};
	int r = 0;

	if (kernel == NULL)
		return 0;
	key.kernel = (uint8_t)pc_kernel_index(kernel);
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		key.chunk = ways[i].chunk;
		key.backward = 0;
		r = r == 0 ? add(data, key, ways[i].us * 1000) : r;
		key.backward = 1;
		if (r == 0 && key.chunk < key.bytes)
			r = add(data, key, ways[i].us * 2000);
	}
	key.page = PAGE_BASE;
	key.backward = 0;
	if (r == 0)
		r = add(data, key, 80000);
	key.kernel = 0;
	return r == 0 ? add(data, key, 100000) : r;
}

static int begin(struct store *store, const char *id, struct calibration *calibration, struct pc_why *why)
{
	struct topology topology = {
		.arch = "x86_64", .name = "Example CPU", .key = "arch=x86_64\n", .soft = "libc=example\n"};

	snprintf(topology.id, sizeof(topology.id), "%s", id);
	*calibration = (struct calibration){.effort = "standard", .started = FINISHED - 60};
	return store_begin(store, &topology, calibration, why);
}

static int fill(struct store *store, const char *id, const char *scenario, const struct dataset *data,
                struct pc_why *why)
{
	struct calibration calibration;
	int r = begin(store, id, &calibration, why);

	if (r < 0)
		return r;
	calibration.finished = FINISHED;
	strcpy(calibration.quality, "good");
	if (strcmp(scenario, "faulted") == 0)
		calibration.faulted = "sse2nt";
	r = store_finish(store, &calibration, data, why);
	if (r == 0 && (strcmp(scenario, "failed") == 0 || strcmp(scenario, "running") == 0))
		r = begin(store, id, &calibration, why);
	if (r == 0 && strcmp(scenario, "failed") == 0)
		r = store_fail(store, calibration.id, "the child was killed", why);
	return r;
}

int main(int argc, char **argv)
{
	struct store *store = NULL;
	struct dataset data = {0};
	struct pc_why why = {"out of memory"};

	if (argc != 4) {
		fprintf(stderr, "usage: %s PATH TOPOLOGY SCENARIO\n", argv[0]);
		return 2;
	}
	int r = measure(&data);
	if (r == 0 && strcmp(argv[3], "spots") == 0)
		r = check_spots(&data);
	if (r == 0 && strcmp(argv[3], "stores") == 0)
		r = measure_stores(&data);
	if (r == 0)
		r = store_open(&store, argv[1], STORE_WRITE, NULL, &why);
	if (r == 0)
		r = fill(store, argv[2], argv[3], &data, &why);
	store_close(store);
	dataset_clear(&data);
	if (r < 0)
		fprintf(stderr, "%s: %s\n", argv[1], why.text);
	return r < 0;
}
