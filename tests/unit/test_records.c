/* What a healthy child could have sent, and everything just beside it. */
#include "calibrd/records.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "calibrd/costs.h"
#include "calibrd/trial.h"
#include "kernels/kernels.h"
#include "libpolicy/document.h"
#include "tests/unit/harness.h"

enum { NUMBER = 7 };

static struct record sample(void)
{
	return (struct record){
		.kind = RECORD_SAMPLE,
		.number = NUMBER,
		.u.sample = {{.bytes = 4096, .threads = 1, .prior = PC_CACHED}, {.ns = 12.5f}, 0},
	};
}

static struct record knee(void)
{
	return (struct record){.kind = RECORD_KNEE, .number = NUMBER, .u.knee = {8 << 20, 2}};
}

static struct record probe(void)
{
	return (struct record){.kind = RECORD_PROBE, .number = NUMBER, .u.probe = {65536, PC_FLUSHED, 400, {90, 0}}};
}

static struct record progress(void)
{
	return (struct record){.kind = RECORD_PROGRESS, .number = NUMBER, .u.progress = {2, 3, 0.5}};
}

static struct record trial(void)
{
	return (struct record){.kind = RECORD_TRIAL, .number = NUMBER, .u.trial = {0, TRIAL_PASSED}};
}

static struct record report_piece(void)
{
	return (struct record){.kind = RECORD_REPORT, .number = NUMBER, .u.piece.at = RECORD_PIECE};
}

static struct record words_piece(void)
{
	return (struct record){.kind = RECORD_WORDS, .number = NUMBER, .u.piece.at = 0};
}

static struct record end(void)
{
	return (struct record){
		.kind = RECORD_END, .number = NUMBER, .u.end.taints = {100, 60, 40, 30, 10, 10, 10, 9000, 8000, 3}};
}

static bool sane(struct record record)
{
	return record_is_sane(&record, NUMBER);
}

/* One member of a good record changed. */
#define WITH(make, member, value)                                                                                      \
	({                                                                                                             \
		struct record changed = make();                                                                        \
		changed.member = (value);                                                                              \
		sane(changed);                                                                                         \
	})

static void test_good_ones(void)
{
	CU_ASSERT(sane(sample()));
	CU_ASSERT(sane(knee()));
	CU_ASSERT(sane(probe()));
	CU_ASSERT(sane(progress()));
	CU_ASSERT(sane(trial()));
	CU_ASSERT(sane(report_piece()));
	CU_ASSERT(sane(words_piece()));
	CU_ASSERT(sane(end()));
}

static void test_kind_and_number(void)
{
	struct record record = sample();

	CU_ASSERT_FALSE(WITH(sample, kind, 0));
	CU_ASSERT_FALSE(WITH(sample, kind, RECORD_WORDS + 1));
	CU_ASSERT_FALSE(WITH(sample, kind, UINT32_MAX));
	CU_ASSERT_FALSE(record_is_sane(&record, NUMBER - 1)); /* one was lost */
	CU_ASSERT_FALSE(record_is_sane(&record, NUMBER + 1)); /* one came twice */
	record.number = RECORDS_MOST - 1;
	CU_ASSERT(record_is_sane(&record, RECORDS_MOST - 1));
	record.number = RECORDS_MOST;
	CU_ASSERT_FALSE(record_is_sane(&record, RECORDS_MOST));
}

static void test_sample_key(void)
{
	CU_ASSERT_FALSE(WITH(sample, u.sample.key.bytes, 0));
	CU_ASSERT(WITH(sample, u.sample.key.bytes, UINT64_C(1) << 40));
	CU_ASSERT_FALSE(WITH(sample, u.sample.key.bytes, (UINT64_C(1) << 40) + 1));
	CU_ASSERT(WITH(sample, u.sample.key.chunk, UINT64_C(1) << 40));
	CU_ASSERT_FALSE(WITH(sample, u.sample.key.chunk, UINT64_MAX));
	CU_ASSERT_FALSE(WITH(sample, u.sample.key.threads, 0));
	CU_ASSERT(WITH(sample, u.sample.key.kernel, (uint8_t)(pc_kernel_count - 1)));
	CU_ASSERT_FALSE(WITH(sample, u.sample.key.kernel, (uint8_t)pc_kernel_count));
	CU_ASSERT_FALSE(WITH(sample, u.sample.key.kernel, UINT8_MAX));
	CU_ASSERT(WITH(sample, u.sample.key.prior, PC_FLUSHED));
	CU_ASSERT_FALSE(WITH(sample, u.sample.key.prior, PC_UNKNOWN));
	CU_ASSERT_FALSE(WITH(sample, u.sample.key.prior, PC_PRIORS));
	CU_ASSERT_FALSE(WITH(sample, u.sample.key.phase, PHASES));
	CU_ASSERT(WITH(sample, u.sample.key.page, PAGE_HUGE));
	CU_ASSERT_FALSE(WITH(sample, u.sample.key.page, PAGE_HUGE + 1));
}

/* Every phase: times are times, and only differences from a control may be negative. */
static void test_sample_value(void)
{
	for (unsigned phase = 0; phase < PHASES; phase++) {
		struct record record = sample();

		record.u.sample.key.phase = (uint8_t)phase;
		CU_ASSERT(sane(record));
		record.u.sample.value.ns = -5;
		CU_ASSERT_EQUAL(sane(record), phase >= PHASE_VICTIM_L1);
		record.u.sample.value.ns = -2e12f;
		CU_ASSERT_FALSE(sane(record));
		record.u.sample.value.ns = 2e12f;
		CU_ASSERT_FALSE(sane(record));
		record.u.sample.value.ns = NAN;
		CU_ASSERT_FALSE(sane(record));
		record.u.sample.value.ns = INFINITY;
		CU_ASSERT_FALSE(sane(record));
	}
	CU_ASSERT(WITH(sample, u.sample.value.epoch, COST_EPOCHS - 1));
	CU_ASSERT_FALSE(WITH(sample, u.sample.value.epoch, COST_EPOCHS));
	CU_ASSERT(WITH(sample, u.sample.tainted, 1));
	CU_ASSERT_FALSE(WITH(sample, u.sample.tainted, 2));
}

static void test_knee(void)
{
	CU_ASSERT(WITH(knee, u.knee.bytes, 0)); /* none was seen */
	CU_ASSERT_FALSE(WITH(knee, u.knee.bytes, UINT64_MAX));
	CU_ASSERT_FALSE(WITH(knee, u.knee.epoch, COST_EPOCHS));
}

static void test_probe(void)
{
	CU_ASSERT_FALSE(WITH(probe, u.probe.bytes, 0));
	CU_ASSERT_FALSE(WITH(probe, u.probe.bytes, UINT64_MAX));
	CU_ASSERT_FALSE(WITH(probe, u.probe.prior, PC_UNKNOWN));
	CU_ASSERT_FALSE(WITH(probe, u.probe.prior, PC_PRIORS));
	CU_ASSERT_FALSE(WITH(probe, u.probe.whole_ns, NAN));
	CU_ASSERT_FALSE(WITH(probe, u.probe.whole_ns, -1));
	CU_ASSERT_FALSE(WITH(probe, u.probe.whole_ns, INFINITY));
	for (unsigned i = 0; i < PC_PROBE_LOOKS; i++) {
		CU_ASSERT_FALSE(WITH(probe, u.probe.looks[i], NAN));
		CU_ASSERT_FALSE(WITH(probe, u.probe.looks[i], -1));
		CU_ASSERT_FALSE(WITH(probe, u.probe.looks[i], 1e13));
	}
}

static void test_progress(void)
{
	CU_ASSERT(WITH(progress, u.progress.share, 0));
	CU_ASSERT(WITH(progress, u.progress.share, 1));
	CU_ASSERT_FALSE(WITH(progress, u.progress.share, 1.01));
	CU_ASSERT_FALSE(WITH(progress, u.progress.share, -0.01));
	CU_ASSERT_FALSE(WITH(progress, u.progress.share, NAN));
	CU_ASSERT_FALSE(WITH(progress, u.progress.epoch, 3)); /* the fourth of three */
	CU_ASSERT_FALSE(WITH(progress, u.progress.epochs, 0));
	CU_ASSERT(WITH(progress, u.progress.epochs, COST_EPOCHS));
	CU_ASSERT_FALSE(WITH(progress, u.progress.epochs, COST_EPOCHS + 1));
}

static void test_trial(void)
{
	CU_ASSERT(WITH(trial, u.trial.trial, TRIAL_HUNG));
	CU_ASSERT_FALSE(WITH(trial, u.trial.trial, TRIAL_HUNG + 1));
	CU_ASSERT(WITH(trial, u.trial.kernel, pc_kernel_count - 1));
	CU_ASSERT_FALSE(WITH(trial, u.trial.kernel, pc_kernel_count));
	CU_ASSERT_FALSE(WITH(trial, u.trial.kernel, UINT32_MAX));
}

static void test_end(void)
{
	CU_ASSERT(WITH(end, u.end.error, -ENOMEM));
	CU_ASSERT_FALSE(WITH(end, u.end.error, 1));
	CU_ASSERT_FALSE(WITH(end, u.end.error, -5000));
	CU_ASSERT_FALSE(WITH(end, u.end.error, INT32_MIN)); /* has no positive counterpart */
}

static void test_taints(void)
{
	CU_ASSERT_FALSE(WITH(end, u.end.taints.lost, 61)); /* more than there were, with those that moved */
	CU_ASSERT_FALSE(WITH(end, u.end.taints.moved, UINT32_MAX));
	CU_ASSERT_FALSE(WITH(end, u.end.taints.samples, UINT32_MAX));
	CU_ASSERT_FALSE(WITH(end, u.end.taints.stolen, 11));
	CU_ASSERT_FALSE(WITH(end, u.end.taints.slow, UINT32_MAX - 5));
	CU_ASSERT_FALSE(WITH(end, u.end.taints.strayed, 11));
	CU_ASSERT_FALSE(WITH(end, u.end.taints.rounds, UINT32_MAX));
	CU_ASSERT_FALSE(WITH(end, u.end.taints.lost_ms, 9001));
	CU_ASSERT(WITH(end, u.end.taints.cpu, -1));
	CU_ASSERT_FALSE(WITH(end, u.end.taints.cpu, -2));
	CU_ASSERT_FALSE(WITH(end, u.end.taints.cpu, INT32_MAX));
}

/* --- pieces ------------------------------------------------------------------------------------------------------ */

static void test_pieces(void)
{
	const uint32_t last_report = (sizeof(struct verify_report) - 1) / RECORD_PIECE * RECORD_PIECE;
	const uint32_t last_words = (sizeof(struct pc_why) - 1) / RECORD_PIECE * RECORD_PIECE;

	CU_ASSERT(WITH(report_piece, u.piece.at, 0));
	CU_ASSERT_FALSE(WITH(report_piece, u.piece.at, 1));
	CU_ASSERT(WITH(report_piece, u.piece.at, last_report));
	CU_ASSERT_FALSE(WITH(report_piece, u.piece.at, last_report + RECORD_PIECE));
	CU_ASSERT_FALSE(WITH(report_piece, u.piece.at, UINT32_MAX / RECORD_PIECE * RECORD_PIECE));
	CU_ASSERT(WITH(words_piece, u.piece.at, last_words));
	CU_ASSERT_FALSE(WITH(words_piece, u.piece.at, last_words + RECORD_PIECE));
	CU_ASSERT_FALSE(WITH(words_piece, u.piece.at, last_words + 1));
}

/* Every size: what was cut comes together again, and nothing beside it is touched. */
static void test_assembly(void)
{
	char whole[200], copy[201];

	for (size_t i = 0; i < sizeof(whole); i++)
		whole[i] = (char)(i + 1);
	for (size_t size = 1; size <= sizeof(whole); size++) {
		size_t held = 0;

		memset(copy, 0, sizeof(copy));
		for (uint32_t at = 0; at < size; at += RECORD_PIECE) {
			struct record_piece piece = record_piece(whole, size, at);

			CU_ASSERT_FALSE(record_assemble(copy, size, held + RECORD_PIECE, &piece));
			CU_ASSERT_TRUE(record_assemble(copy, size, held, &piece));
			held += RECORD_PIECE;
		}
		CU_ASSERT_EQUAL(memcmp(copy, whole, size), 0);
		CU_ASSERT_EQUAL(copy[size], 0);
	}
}

/* --- reports ----------------------------------------------------------------------------------------------------- */

static struct verify_report report(void)
{
	struct verify_report made = {.count = VERIFY_SERIES, .passed = true};

	for (unsigned i = 0; i < VERIFY_SERIES; i++)
		made.series[i] = (struct verify_series){.told = {.intent = i / 2,
		                                                 .prior = i == 4 ? PC_UNKNOWN : 1 + i % 2,
		                                                 .sizes = 20,
		                                                 .worst_bytes = 1 << 20,
		                                                 .gain = 1.5,
		                                                 .best_gain = 2,
		                                                 .unhinted = NAN,
		                                                 .against = NAN,
		                                                 .passed = true},
		                                        .measured = 20};
	return made;
}

#define REPORT_WITH(member, value)                                                                                     \
	({                                                                                                             \
		struct verify_report changed = report();                                                               \
		changed.member = (value);                                                                              \
		record_report_is_sane(&changed);                                                                       \
	})

static void test_report(void)
{
	struct verify_report made = report();

	CU_ASSERT(record_report_is_sane(&made));
	CU_ASSERT_FALSE(REPORT_WITH(count, VERIFY_SERIES - 1));
	CU_ASSERT_FALSE(REPORT_WITH(count, SIZE_MAX));
	CU_ASSERT_FALSE(REPORT_WITH(passed, false));
	CU_ASSERT_FALSE(REPORT_WITH(series[2].told.passed, false)); /* and all have passed? */
	made.passed = made.series[2].told.passed = false;
	CU_ASSERT(record_report_is_sane(&made));
}

static void test_report_series(void)
{
	for (unsigned i = 0; i < VERIFY_SERIES; i++) {
		CU_ASSERT_FALSE(REPORT_WITH(series[i].told.intent, 3));
		CU_ASSERT_FALSE(REPORT_WITH(series[i].told.intent, (i / 2 + 1) % 3)); /* another one's place */
		CU_ASSERT_FALSE(REPORT_WITH(series[i].told.prior, PC_PRIORS));
		CU_ASSERT_FALSE(REPORT_WITH(series[i].told.sizes, 0));
		CU_ASSERT_FALSE(REPORT_WITH(series[i].told.sizes, 21));
		CU_ASSERT_FALSE(REPORT_WITH(series[i].measured, UINT32_MAX));
		CU_ASSERT_FALSE(REPORT_WITH(series[i].told.worst_bytes, 0));
		CU_ASSERT_FALSE(REPORT_WITH(series[i].told.worst_bytes, UINT64_MAX));
		CU_ASSERT_FALSE(REPORT_WITH(series[i].chosen.kernel, pc_kernel_count));
		CU_ASSERT_FALSE(REPORT_WITH(series[i].better.kernel, UINT32_MAX));
		CU_ASSERT_FALSE(REPORT_WITH(series[i].better.chunk, UINT64_MAX));
	}
}

static void test_report_figures(void)
{
	static const double bad[] = {NAN, INFINITY, -INFINITY}, worse[] = {INFINITY, 0, -1};

	for (int i = 0; i < 3; i++) {
		CU_ASSERT_FALSE(REPORT_WITH(series[0].told.mean, bad[i]));
		CU_ASSERT_FALSE(REPORT_WITH(series[1].told.p95, bad[i]));
		CU_ASSERT_FALSE(REPORT_WITH(series[2].told.worst, bad[i]));
		CU_ASSERT_FALSE(REPORT_WITH(series[3].told.floor, bad[i]));
		CU_ASSERT_FALSE(REPORT_WITH(series[4].told.floor_p95, bad[i]));
		CU_ASSERT_FALSE(REPORT_WITH(series[0].told.gain, bad[i]));
		CU_ASSERT_FALSE(REPORT_WITH(series[0].told.best_gain, worse[i]));
		CU_ASSERT_FALSE(REPORT_WITH(series[0].told.unhinted, worse[i]));
		CU_ASSERT_FALSE(REPORT_WITH(series[0].told.against, worse[i]));
	}
	CU_ASSERT(REPORT_WITH(series[0].told.mean, -0.02)); /* better than the best: noise does that */
	CU_ASSERT(REPORT_WITH(series[0].told.unhinted, 1.5));
}

/* What is neither true nor false must not be looked at as if it were. */
static void test_report_flags(void)
{
	struct verify_report made = report();

	memset(&made.passed, 2, 1);
	CU_ASSERT_FALSE(record_report_is_sane(&made));
	made = report();
	memset(&made.series[4].told.passed, 255, 1);
	CU_ASSERT_FALSE(record_report_is_sane(&made));
}

static const struct unit_test tests[] = {
	{"good ones", test_good_ones},
	{"kind and number", test_kind_and_number},
	{"sample: key", test_sample_key},
	{"sample: value", test_sample_value},
	{"knee", test_knee},
	{"probe", test_probe},
	{"progress", test_progress},
	{"trial", test_trial},
	{"end", test_end},
	{"taints", test_taints},
	{"pieces", test_pieces},
	{"assembly", test_assembly},
	{"report", test_report},
	{"report: series", test_report_series},
	{"report: figures", test_report_figures},
	{"report: flags", test_report_flags},
};

UNIT_MAIN("records", tests)
