/*
 * tool-calibctl_database PATH TOPOLOGY SCENARIO: a database as calibrd leaves it, with made-up measurements whose costs
 * are simple multiples, so that tests/cli/calibctl.bats can tell what calibctl must say of them.
 *
 * Scenarios: good, faulted (sse2nt failed its trial), failed (a failed calibration after the good one), running
 * (likewise).
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
