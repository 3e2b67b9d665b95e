/*
 * What a measuring child may send: any bytes, in any pieces. The parent must take or refuse them, and what it took must
 * add up to numbers within their limits.
 */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "calibrd/run.h"
#include "kernels/kernels.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool right)
{
	if (!right)
		abort();
}

static void check(const struct run *run)
{
	double tainted = run_tainted(run);

	require(run_knee(run) <= UINT64_C(1) << 40);
	require(tainted >= 0 && tainted <= 1);
	require(run->share >= 0 && run->share <= 1 && (run->epochs == 0 || run->epoch < run->epochs));
	require(((run->passed | run->faulted) & (uint32_t)(UINT64_MAX << pc_kernel_count)) == 0);
	require(run->error <= 0 && run->error > -4096);
	require(memchr(run->words.text, '\0', sizeof(run->words.text)) != NULL);
	for (const char *at = run->words.text; *at != '\0'; at++)
		require(pc_control(at) == 0);
	require(!run->verified || record_report_is_sane(&run->report));
	for (size_t i = 0; i < run->data.count; i++) {
		const struct series *series = &run->data.series[i];

		require(series->key.kernel < pc_kernel_count && series->key.phase < PHASES);
		for (size_t j = 0; j < series->count; j++)
			require(isfinite(series->rounds[j].ns) && series->rounds[j].epoch < COST_EPOCHS);
	}
}

/* Right numbers get the fuzzer beyond the first record; the first byte says whether it gets them. */
static size_t number_records(const uint8_t *data, size_t size, uint8_t *out)
{
	bool numbered = size > 0 && data[0] % 4 != 0;
	uint32_t number = 0;

	if (size < 2)
		return 0;
	memcpy(out, data + 2, size - 2);
	for (size_t at = 0; numbered && at + sizeof(struct record) <= size - 2; at += sizeof(struct record), number++)
		memcpy(out + at + offsetof(struct record, number), &number, sizeof(number));
	return size - 2;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t bytes[32768]; /* fits into a pipe */
	struct run run;
	struct pc_why why;
	int ends[2], r = 0;
	size_t step = size > 1 ? 1 + data[1] * 8u : 1, len = number_records(data, size < 32768 ? size : 32768, bytes);

	require(pipe2(ends, O_CLOEXEC) == 0);
	require(run_watch(&run, size > 0 && data[0] >= 128 ? ORDER_VERIFY : ORDER_CALIBRATE, -1, ends[0], -1, &why) ==
	        0);
	for (size_t at = 0; at < len && r == 0; at += step) {
		size_t part = len - at < step ? len - at : step;

		require(write(ends[1], bytes + at, part) == (ssize_t)part);
		r = run_read(&run, &why);
		require(r <= 0);
	}
	check(&run);
	close(ends[1]);
	run_free(&run);
	return 0;
}
