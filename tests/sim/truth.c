/* True costs and regrets of a simulated host; see truth.h. */
#include "tests/sim/truth_parts.h"

#include <math.h>

#include "calibrd/grid.h"
#include "pageclear/policy.h"

enum { SINGLE_MOST = 16384 }; /* small flushed sizes are also asked for alone (design: measuring) */

static const double guard = 0.04879; /* ln 1.05 */

/* --- costs ------------------------------------------------------------------------------------------------------- */

static struct meter_ask ask_of(const struct truth *truth, unsigned kernel, enum pc_prior prior, uint64_t bytes)
{
	return (struct meter_ask){.kernel = &pc_kernels[kernel],
	                          .phase = PHASE_CLEAR,
	                          .prior = prior,
	                          .bytes = bytes,
	                          .threads = truth->threads};
}

static double clear_ns(const struct truth *truth, unsigned kernel, enum pc_prior prior, uint64_t bytes, double octaves)
{
	struct meter_ask ask = ask_of(truth, kernel, prior, bytes);
	double ns = sim_ask_clear_ns(truth->host, &ask, octaves);

	return truth->intent == PAGECLEAR_HOT ? ns + sim_ask_read_ns(truth->host, &ask, octaves) : ns;
}

/* Small flushed sizes are asked for in two ways; the worse one counts. */
static double known_l(const struct truth *truth, unsigned kernel, enum pc_prior prior, uint64_t bytes, double octaves)
{
	double l = log(clear_ns(truth, kernel, prior, bytes, octaves) / clear_ns(truth, 0, prior, bytes, octaves));
	struct meter_ask one = ask_of(truth, kernel, prior, bytes), libc = ask_of(truth, 0, prior, bytes);

	if (truth->intent != PAGECLEAR_COLD || prior != PC_FLUSHED || truth->threads > 1 || bytes > SINGLE_MOST)
		return l;
	one.phase = libc.phase = PHASE_SINGLE;
	return fmax(l, log(sim_ask_clear_ns(truth->host, &one, 0) / sim_ask_clear_ns(truth->host, &libc, 0)));
}

/* As the benchmark takes them: what is unknown or absurd counts as usual. */
uint64_t truth_victim_bytes(const struct sim_host *host, unsigned victim)
{
	uint64_t bytes = victim == 0 ? host->l1_bytes : host->l2_bytes;

	if (host->misreports)
		bytes = victim == 0 ? host->reported_l1_bytes : host->reported_l2_bytes;
	if (bytes > 0 && bytes <= (victim == 0 ? 1 << 20 : 64 << 20))
		return bytes;
	return victim == 0 ? 32 << 10 : 512 << 10;
}

void truth_find_last_level(struct truth *truth, const struct dataset *data)
{
	truth->last_level_from = UINT64_MAX;
	for (size_t i = 0; i < data->count; i++) {
		const struct series_key *key = &data->series[i].key;

		if (key->phase == PHASE_VICTIM_LLC && key->threads == truth->threads &&
		    key->bytes < truth->last_level_from)
			truth->last_level_from = key->bytes;
	}
}

unsigned truth_victims(const struct truth *truth, uint64_t bytes)
{
	uint64_t from = truth->last_level_from > 0 ? truth->last_level_from : truth_victim_bytes(truth->host, 1);

	return bytes >= from / 4096 * 4096 ? 3 : 2;
}

static double displaced_ns(const struct truth *truth, unsigned kernel, uint64_t bytes)
{
	double ns = 0;

	for (unsigned v = 0; v < truth_victims(truth, bytes); v++) {
		struct meter_ask ask = ask_of(truth, kernel, PC_FLUSHED, bytes);

		ask.phase = PHASE_VICTIM_L1 + v;
		ns += sim_ask_displaced_ns(truth->host, &ask);
	}
	return ns;
}

double truth_scrub_scale(const struct truth *truth, uint64_t bytes)
{
	return truth->scrub_weight * clear_ns(truth, 0, PC_FLUSHED, bytes, 0) + fmax(0, displaced_ns(truth, 0, bytes));
}

static double scrub_l(const struct truth *truth, unsigned kernel, uint64_t bytes)
{
	double clear = clear_ns(truth, kernel, PC_FLUSHED, bytes, 0) - clear_ns(truth, 0, PC_FLUSHED, bytes, 0);
	double moved = displaced_ns(truth, kernel, bytes) - displaced_ns(truth, 0, bytes);

	return (truth->scrub_weight * clear + moved) / truth_scrub_scale(truth, bytes);
}

/* octaves: by how much the last-level cache is larger than it says. */
double truth_shifted_l(const struct truth *truth, unsigned kernel, uint64_t bytes, double octaves)
{
	double cached, flushed;

	if (truth->intent == PAGECLEAR_SCRUB)
		return scrub_l(truth, kernel, bytes);
	if (truth->prior != PC_UNKNOWN)
		return known_l(truth, kernel, truth->prior, bytes, octaves);
	cached = known_l(truth, kernel, PC_CACHED, bytes, octaves);
	flushed = known_l(truth, kernel, PC_FLUSHED, bytes, octaves);
	return (cached + flushed) / 2;
}

double truth_l(const struct truth *truth, unsigned kernel, uint64_t bytes)
{
	return truth_shifted_l(truth, kernel, bytes, 0);
}

bool truth_is_guarded(const struct truth *truth)
{
	return truth->intent != PAGECLEAR_SCRUB && truth->prior == PC_UNKNOWN;
}

/* How far inside the guard the worse prior is; negative: outside. */
double truth_inside_guard(const struct truth *truth, unsigned kernel, uint64_t bytes)
{
	if (!truth_is_guarded(truth) || kernel == 0)
		return INFINITY;
	return guard - fmax(known_l(truth, kernel, PC_CACHED, bytes, 0), known_l(truth, kernel, PC_FLUSHED, bytes, 0));
}

double truth_beyond_guard(const struct truth *truth, unsigned kernel, uint64_t bytes)
{
	return fmax(0, -truth_inside_guard(truth, kernel, bytes));
}

double truth_least(const struct truth *truth, uint32_t kernels, uint64_t bytes)
{
	double least = 0;

	if (bytes < GRID_LEAST_BYTES) /* libc's by design: no cost here holds the look-up's */
		return 0;
	for (unsigned k = 1; k < pc_kernel_count; k++)
		if ((kernels >> k & 1) != 0 && truth_inside_guard(truth, k, bytes) >= 0)
			least = fmin(least, truth_l(truth, k, bytes));
	return least;
}

double truth_regret(const struct truth *truth, unsigned kernel, uint32_t kernels, uint64_t bytes)
{
	return fmax(0, truth_l(truth, kernel, bytes) - truth_least(truth, kernels, bytes)) +
	       truth_beyond_guard(truth, kernel, bytes);
}
