/* Distrust of the measuring child; see records.h. */
#include "calibrd/records.h"

#include <math.h>

#include "calibrd/costs.h"
#include "calibrd/trial.h"
#include "kernels/kernels.h"

static const uint64_t most_bytes = (uint64_t)1 << 40;
static const double most_ns = 1e12;     /* a quarter of an hour for one sample */
static const int32_t most_errno = 4095; /* the kernel's own bound, MAX_ERRNO */
static const int32_t most_cpus = 1 << 16;
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

	for (unsigned i = 0; i < BENCH_PROBE_LINES; i++)
		sane = sane && is_time(probe->loads[i], false);
	return sane;
}

static bool taints_are_sane(const struct taints *taints)
{
	return taints->samples <= most_taints && (uint64_t)taints->lost + taints->moved <= taints->samples &&
	       taints->rounds <= most_taints &&
	       (uint64_t)taints->stolen + taints->slow + taints->strayed <= taints->rounds &&
	       taints->lost_ms <= taints->passed_ms && taints->cpu >= -1 && taints->cpu < most_cpus;
}

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
	case RECORD_END:
		return record->u.end.error <= 0 && record->u.end.error >= -most_errno &&
		       taints_are_sane(&record->u.end.taints);
	default:
		return false;
	}
}
