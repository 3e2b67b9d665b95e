/* Distrust of the measuring child; see records.h. */
#include "calibrd/records.h"

#include <math.h>
#include <pageclear/policy.h>
#include <string.h>

#include "calibrd/costs.h"
#include "calibrd/trial.h"
#include "kernels/kernels.h"

_Static_assert(sizeof(struct record) <= 64, "samples are sent hundreds of thousands of times");

static const uint64_t most_bytes = (uint64_t)1 << 40;
static const double most_ns = 1e12;     /* a quarter of an hour for one sample */
static const int32_t most_errno = 4095; /* the kernel's own bound, MAX_ERRNO */
static const int32_t most_cpus = 1 << 16;
static const unsigned most_sizes = 1000;
static const uint32_t most_taints = 1 << 30; /* a quarter of an hour of the shortest samples has far less */

static bool is_time(double ns, bool may_be_negative)
{
	return isfinite(ns) && ns < most_ns && ns > (may_be_negative ? -most_ns : -1e-9);
}

static bool sample_is_sane(const struct series_key *key, const struct round_value *value, uint32_t tainted)
{
	return tainted <= 1 && key->bytes > 0 && key->bytes <= most_bytes && key->chunk <= most_bytes &&
	       key->threads > 0 && key->kernel < pc_kernel_count &&
	       (key->prior == PC_CACHED || key->prior == PC_FLUSHED) && key->phase < PHASES && key->page <= PAGE_HUGE &&
	       key->backward <= 1 && value->epoch < COST_EPOCHS &&
	       is_time((double)value->ns, key->phase >= PHASE_VICTIM_L1);
}

static bool probe_is_sane(const struct bench_probe *probe)
{
	bool sane = probe->bytes > 0 && probe->bytes <= most_bytes && is_time(probe->whole_ns, false) &&
	            (probe->prior == PC_CACHED || probe->prior == PC_FLUSHED);

	for (unsigned i = 0; i < PC_PROBE_LOOKS; i++)
		sane = sane && is_time(probe->looks[i], false);
	return sane;
}

static bool taints_are_sane(const struct taints *taints)
{
	return taints->samples <= most_taints && (uint64_t)taints->lost + taints->moved <= taints->samples &&
	       taints->rounds <= most_taints &&
	       (uint64_t)taints->stolen + taints->slow + taints->strayed <= taints->rounds &&
	       taints->lost_ms <= taints->passed_ms && taints->cpu >= -1 && taints->cpu < most_cpus;
}

/* --- reports ----------------------------------------------------------------------------------------------------- */

/* A bool that holds anything else must not even be looked at. */
static bool is_flag(const bool *flag)
{
	unsigned char byte;

	memcpy(&byte, flag, 1);
	return byte <= 1;
}

static bool is_gain(double gain)
{
	return isfinite(gain) && gain > 0;
}

static bool way_is_sane(const struct verify_way *way)
{
	return way->kernel < pc_kernel_count && way->chunk <= most_bytes;
}

/* As verify_judge() orders them: hot, cold, scrub; cached before flushed. */
static bool is_in_its_place(const struct verified *told, size_t i)
{
	enum pc_prior prior = i % 2 == 0 ? PC_CACHED : PC_FLUSHED;

	return told->intent == i / 2 && told->prior == (told->intent == PAGECLEAR_SCRUB ? PC_UNKNOWN : prior);
}

static bool figures_are_sane(const struct verified *told)
{
	return isfinite(told->mean) && isfinite(told->p95) && isfinite(told->worst) && isfinite(told->floor) &&
	       isfinite(told->floor_p95) && is_gain(told->gain) && is_gain(told->best_gain) &&
	       (isnan(told->unhinted) || is_gain(told->unhinted)) && (isnan(told->against) || is_gain(told->against));
}

static bool series_is_sane(const struct verify_series *series, size_t i)
{
	const struct verified *told = &series->told;

	return is_in_its_place(told, i) && told->sizes > 0 && told->sizes <= series->measured &&
	       series->measured <= most_sizes && told->worst_bytes > 0 && told->worst_bytes <= most_bytes &&
	       figures_are_sane(told) && is_flag(&told->passed) && way_is_sane(&series->chosen) &&
	       way_is_sane(&series->better);
}

bool record_report_is_sane(const struct verify_report *report)
{
	bool passed = true;

	if (report->count != VERIFY_SERIES || !is_flag(&report->passed))
		return false;
	for (size_t i = 0; i < VERIFY_SERIES; i++) {
		if (!series_is_sane(&report->series[i], i))
			return false;
		passed &= report->series[i].told.passed;
	}
	return report->passed == passed;
}

/* --- pieces ------------------------------------------------------------------------------------------------------ */

static size_t piece_size(size_t size, uint32_t at)
{
	return size - at < RECORD_PIECE ? size - at : RECORD_PIECE;
}

static bool piece_is_sane(const struct record_piece *piece, size_t size)
{
	return piece->at < size && piece->at % RECORD_PIECE == 0;
}

struct record_piece record_piece(const void *whole, size_t size, uint32_t at)
{
	struct record_piece piece = {.at = at};

	memcpy(piece.bytes, (const char *)whole + at, piece_size(size, at));
	return piece;
}

bool record_assemble(void *whole, size_t size, size_t held, const struct record_piece *piece)
{
	if (piece->at != held || !piece_is_sane(piece, size))
		return false;
	memcpy((char *)whole + held, piece->bytes, piece_size(size, piece->at));
	return true;
}

void record_clean_words(struct pc_why *words)
{
	char *at = words->text;

	words->text[sizeof(words->text) - 1] = '\0';
	for (unsigned n = 0; *at != '\0'; at += n > 0 ? n : 1) {
		n = pc_control(at);
		memset(at, '?', n);
	}
}

/* ----------------------------------------------------------------------------------------------------------------- */

bool record_is_sane(const struct record *record, uint32_t number)
{
	if (record->number != number || number >= RECORDS_MOST)
		return false;
	switch (record->kind) {
	case RECORD_SAMPLE:
		return sample_is_sane(&record->u.sample.key, &record->u.sample.value, record->u.sample.tainted);
	case RECORD_KNEE:
		return record->u.knee.bytes <= most_bytes && record->u.knee.epoch < COST_EPOCHS;
	case RECORD_PROBE:
		return probe_is_sane(&record->u.probe);
	case RECORD_PROGRESS:
		return record->u.progress.epochs <= COST_EPOCHS &&
		       record->u.progress.epoch < record->u.progress.epochs && record->u.progress.share >= 0 &&
		       record->u.progress.share <= 1;
	case RECORD_TRIAL:
		return record->u.trial.kernel < pc_kernel_count && record->u.trial.trial <= TRIAL_HUNG;
	case RECORD_REPORT:
		return piece_is_sane(&record->u.piece, sizeof(struct verify_report));
	case RECORD_WORDS:
		return piece_is_sane(&record->u.piece, sizeof(struct pc_why));
	case RECORD_END:
		return record->u.end.error <= 0 && record->u.end.error >= -most_errno &&
		       taints_are_sane(&record->u.end.taints);
	default:
		return false;
	}
}
