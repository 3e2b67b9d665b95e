/* What is told of measurements: costs, gains, noise, and what a wrong hint costs. */
#include "calibctl/evidence.h"

#include <math.h>

#include "pageclear/policy.h"
#include "tests/unit/harness.h"

enum { LIBC = 0, OTHER = 1, KIB = 1024 };

static struct dataset data;
static struct evidence evidence;

/* Eight rounds; epoch e's are `spread` to the power of e - 1 times as dear: the middle epoch is ns itself. */
static void put(unsigned kernel, enum pc_prior prior, enum phase phase, uint64_t bytes, double ns, double spread,
                unsigned epochs)
{
	struct series_key key = {.bytes = bytes,
	                         .threads = 1,
	                         .kernel = (uint8_t)kernel,
	                         .prior = (uint8_t)prior,
	                         .phase = (uint8_t)phase};

	for (unsigned e = 0; e < epochs; e++)
		for (unsigned r = 0; r < 8; r++) {
			struct round_value value = {.ns = (float)(ns * pow(spread, (int)e - (epochs > 1))),
			                            .round = (uint16_t)r,
			                            .epoch = (uint8_t)e};

			CU_ASSERT_EQUAL_FATAL(dataset_add(&data, &key, &value, false), 0);
		}
}

/* libc 10 ns a KiB cached and 100 flushed, the other kernel 40 and 25. */
static void put_size(uint64_t kib, double spread, unsigned epochs)
{
	put(LIBC, PC_CACHED, PHASE_CLEAR, kib * KIB, 10 * (double)kib, 1, epochs);
	put(LIBC, PC_FLUSHED, PHASE_CLEAR, kib * KIB, 100 * (double)kib, 1, epochs);
	put(OTHER, PC_CACHED, PHASE_CLEAR, kib * KIB, 40 * (double)kib, spread, epochs);
	put(OTHER, PC_FLUSHED, PHASE_CLEAR, kib * KIB, 25 * (double)kib, spread, epochs);
}

static void ask(unsigned intent, enum pc_prior prior, uint64_t bytes)
{
	struct evidence_query query = {.intent = intent, .prior = prior, .threads = 1, .bytes = bytes};

	CU_ASSERT_EQUAL_FATAL(evidence_collect(&evidence, &data, &query), 0);
}

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-4 * fabs(b);
}

static void nothing_measured(void)
{
	ask(PAGECLEAR_COLD, PC_FLUSHED, 4096);
	CU_ASSERT_EQUAL(evidence.count, 0);
}

static void sizes_around(void)
{
	put_size(4, 1, 1);
	put_size(16, 1, 1);
	ask(PAGECLEAR_COLD, PC_FLUSHED, 4 * KIB);
	CU_ASSERT_EQUAL(evidence.count, 1);
	CU_ASSERT_EQUAL(evidence.sizes[0].bytes, 4 * KIB);
	ask(PAGECLEAR_COLD, PC_FLUSHED, 4 * KIB + 1);
	CU_ASSERT_EQUAL(evidence.count, 2);
	CU_ASSERT_EQUAL(evidence.sizes[0].bytes, 4 * KIB);
	CU_ASSERT_EQUAL(evidence.sizes[1].bytes, 16 * KIB);
	ask(PAGECLEAR_COLD, PC_FLUSHED, 0);
	CU_ASSERT_EQUAL(evidence.count, 1);
	CU_ASSERT_EQUAL(evidence.sizes[0].bytes, 4 * KIB);
	ask(PAGECLEAR_COLD, PC_FLUSHED, UINT64_MAX);
	CU_ASSERT_EQUAL(evidence.count, 1);
	CU_ASSERT_EQUAL(evidence.sizes[0].bytes, 16 * KIB);
	dataset_clear(&data);
}

static void times_and_gains(void)
{
	put_size(4, 1.1, 3);
	ask(PAGECLEAR_COLD, PC_FLUSHED, 4 * KIB);
	const struct evidence_size *size = &evidence.sizes[0];
	CU_ASSERT_EQUAL_FATAL(size->count, 2);
	const struct evidence_kernel *best = &size->kernels[0], *libc = &size->kernels[1];
	CU_ASSERT_EQUAL(best->kernel, OTHER);
	CU_ASSERT_EQUAL(libc->kernel, LIBC);
	CU_ASSERT_TRUE(near(best->flushed_ns, 100));
	CU_ASSERT_TRUE(near(libc->flushed_ns, 400));
	CU_ASSERT_TRUE(isnan(best->cached_ns) && isnan(best->alone_ns) && isnan(best->displaced_ns));
	CU_ASSERT_TRUE(near(best->gain, 4));
	CU_ASSERT_TRUE(near(best->least, 4 / 1.1));
	CU_ASSERT_TRUE(near(best->most, 4 * 1.1));
	CU_ASSERT_EQUAL(best->epochs, 3);
	CU_ASSERT_TRUE(near(libc->gain, 1));
	CU_ASSERT_TRUE(near(size->noise, 0.1));
	ask(PAGECLEAR_COLD, PC_CACHED, 4 * KIB);
	CU_ASSERT_EQUAL(evidence.sizes[0].kernels[0].kernel, LIBC);
	CU_ASSERT_TRUE(near(evidence.sizes[0].kernels[1].gain, 0.25));
	CU_ASSERT_TRUE(near(evidence.sizes[0].kernels[1].cached_ns, 160));
	dataset_clear(&data);
}

/* Both priors' times, and the mean of their logarithms: sqrt(4 / 4) = 1, a tie that the earlier row wins. */
static void unknown_prior(void)
{
	put_size(4, 1, 3);
	ask(PAGECLEAR_COLD, PC_UNKNOWN, 4 * KIB);
	const struct evidence_kernel *libc = &evidence.sizes[0].kernels[0], *other = &evidence.sizes[0].kernels[1];
	CU_ASSERT_EQUAL(libc->kernel, LIBC);
	CU_ASSERT_TRUE(near(other->gain, 1));
	CU_ASSERT_TRUE(near(other->cached_ns, 160));
	CU_ASSERT_TRUE(near(other->flushed_ns, 100));
	dataset_clear(&data);
}

static void hot_pays_for_the_read(void)
{
	put_size(4, 1, 3);
	put(LIBC, PC_FLUSHED, PHASE_READ, 4 * KIB, 50, 1, 3);
	put(OTHER, PC_FLUSHED, PHASE_READ, 4 * KIB, 800, 1, 3);
	ask(PAGECLEAR_HOT, PC_FLUSHED, 4 * KIB);
	CU_ASSERT_EQUAL(evidence.sizes[0].kernels[0].kernel, LIBC);
	CU_ASSERT_TRUE(near(evidence.sizes[0].kernels[0].flushed_ns, 450));
	CU_ASSERT_TRUE(near(evidence.sizes[0].kernels[1].flushed_ns, 900));
	CU_ASSERT_TRUE(near(evidence.sizes[0].kernels[1].gain, 0.5));
	dataset_clear(&data);
}

/* The worse of the two ways of asking is the gain. */
static void alone(void)
{
	put_size(4, 1, 3);
	put(LIBC, PC_FLUSHED, PHASE_SINGLE, 4 * KIB, 300, 1, 3);
	put(OTHER, PC_FLUSHED, PHASE_SINGLE, 4 * KIB, 200, 1, 3);
	ask(PAGECLEAR_COLD, PC_FLUSHED, 4 * KIB);
	CU_ASSERT_TRUE(near(evidence.sizes[0].kernels[0].alone_ns, 200));
	CU_ASSERT_TRUE(near(evidence.sizes[0].kernels[0].gain, 1.5));
	dataset_clear(&data);
}

/* llc NaN: the extent is too small to ask for that victim. */
static void put_victims(unsigned kernel, uint64_t kib, double l1, double l2, double llc)
{
	put(kernel, PC_FLUSHED, PHASE_VICTIM_L1, kib * KIB, l1, 1, 3);
	put(kernel, PC_FLUSHED, PHASE_VICTIM_L2, kib * KIB, l2, 1, 3);
	if (!isnan(llc))
		put(kernel, PC_FLUSHED, PHASE_VICTIM_LLC, kib * KIB, llc, 1, 3);
}

static void assert_scrub(unsigned place, unsigned kernel, double flushed_ns, double displaced_ns, double gain)
{
	const struct evidence_kernel *found = &evidence.sizes[0].kernels[place];

	CU_ASSERT_EQUAL(found->kernel, kernel);
	CU_ASSERT_TRUE(near(found->flushed_ns, flushed_ns));
	CU_ASSERT_TRUE(near(found->displaced_ns, displaced_ns));
	CU_ASSERT_TRUE(near(found->gain, gain));
	CU_ASSERT_TRUE(isnan(found->least) && isnan(found->most));
}

/* (0.1 x 400 + 260) / (0.1 x 100 + 60) of libc. */
static void scrub(void)
{
	put_size(4, 1, 3);
	put_victims(LIBC, 4, 160, 100, NAN);
	put_victims(OTHER, 4, 80, -20, NAN);
	ask(PAGECLEAR_SCRUB, PC_UNKNOWN, 4 * KIB);
	assert_scrub(0, OTHER, 100, 60, 30.0 / 7);
	assert_scrub(1, LIBC, 400, 260, 1);
	dataset_clear(&data);
}

/* Larger extents have a third victim; a kernel that was measured with two there is not compared with libc. */
static void scrub_with_the_last_level(void)
{
	put_size(64, 1, 3);
	put_victims(LIBC, 64, 100, 100, 160);
	put_victims(OTHER, 64, 10, 20, 30);
	ask(PAGECLEAR_SCRUB, PC_UNKNOWN, 64 * KIB);
	assert_scrub(0, OTHER, 1600, 60, 1000.0 / 220);
	assert_scrub(1, LIBC, 6400, 360, 1);
	put_victims(OTHER + 1, 64, 10, 20, NAN);
	put(OTHER + 1, PC_FLUSHED, PHASE_CLEAR, 64 * KIB, 1600, 1, 3);
	ask(PAGECLEAR_SCRUB, PC_UNKNOWN, 64 * KIB);
	CU_ASSERT_EQUAL(evidence.sizes[0].count, 2);
	dataset_clear(&data);
}

/* What got faster counts from the lower of the two, as in the policy: (100 - 60 + 300) / (200 - 300 + 300). */
static void scrub_of_victims_that_got_faster(void)
{
	put(LIBC, PC_FLUSHED, PHASE_CLEAR, 64 * KIB, 1000, 1, 3);
	put(OTHER, PC_FLUSHED, PHASE_CLEAR, 64 * KIB, 2000, 1, 3);
	put_victims(LIBC, 64, -10, -30, -20);
	put_victims(OTHER, 64, -100, -100, -100);
	ask(PAGECLEAR_SCRUB, PC_UNKNOWN, 64 * KIB);
	assert_scrub(0, OTHER, 2000, -300, 1.7);
	assert_scrub(1, LIBC, 1000, -60, 1);
	dataset_clear(&data);
}

/* The first costs 50 of libc's 100 + 10 and the second 60, but what the first displaces counts from -150. */
static void best_is_what_the_decision_takes(void)
{
	put(LIBC, PC_FLUSHED, PHASE_CLEAR, 4 * KIB, 1000, 1, 3);
	put(OTHER, PC_FLUSHED, PHASE_CLEAR, 4 * KIB, 2000, 1, 3);
	put(OTHER + 1, PC_FLUSHED, PHASE_CLEAR, 4 * KIB, 100, 1, 3);
	put_victims(LIBC, 4, 5, 5, NAN);
	put_victims(OTHER, 4, -100, -50, NAN);
	put_victims(OTHER + 1, 4, 25, 25, NAN);
	ask(PAGECLEAR_SCRUB, PC_UNKNOWN, 4 * KIB);
	assert_scrub(0, OTHER, 2000, -150, 260.0 / 200);
	assert_scrub(1, OTHER + 1, 100, 50, 110.0 / 60);
	assert_scrub(2, LIBC, 1000, 10, 1);
	dataset_clear(&data);
}

static void one_epoch_has_no_noise(void)
{
	put_size(4, 1.1, 1);
	ask(PAGECLEAR_COLD, PC_FLUSHED, 4 * KIB);
	CU_ASSERT_TRUE(isnan(evidence.sizes[0].noise));
	dataset_clear(&data);
}

static void wrong_hints(void)
{
	struct evidence_query query = {.intent = PAGECLEAR_COLD, .prior = PC_FLUSHED, .threads = 1, .bytes = 7 * KIB};
	struct evidence_wrong wrong;

	CU_ASSERT_EQUAL(evidence_if_wrong(&wrong, &data, &query, OTHER, LIBC), 0);
	CU_ASSERT_EQUAL(wrong.bytes, 0);
	CU_ASSERT_TRUE(isnan(wrong.cost));
	put_size(4, 1, 3);
	put_size(16, 1, 3);
	CU_ASSERT_EQUAL(evidence_if_wrong(&wrong, &data, &query, OTHER, LIBC), 0);
	CU_ASSERT_EQUAL(wrong.bytes, 4 * KIB);
	CU_ASSERT_TRUE(near(wrong.cost, 4));
	query.prior = PC_CACHED;
	query.bytes = 9 * KIB;
	CU_ASSERT_EQUAL(evidence_if_wrong(&wrong, &data, &query, LIBC, OTHER), 0);
	CU_ASSERT_EQUAL(wrong.bytes, 16 * KIB);
	CU_ASSERT_TRUE(near(wrong.cost, 4));
	CU_ASSERT_EQUAL(evidence_if_wrong(&wrong, &data, &query, LIBC, OTHER + 1), 0);
	CU_ASSERT_TRUE(isnan(wrong.cost));
	query.bytes = 0;
	CU_ASSERT_EQUAL(evidence_if_wrong(&wrong, &data, &query, LIBC, OTHER), 0);
	CU_ASSERT_EQUAL(wrong.bytes, 4 * KIB);
	dataset_clear(&data);
}

static const struct unit_test tests[] = {
	{"nothing_measured", nothing_measured},
	{"sizes_around", sizes_around},
	{"times_and_gains", times_and_gains},
	{"unknown_prior", unknown_prior},
	{"hot_pays_for_the_read", hot_pays_for_the_read},
	{"alone", alone},
	{"scrub", scrub},
	{"scrub_with_the_last_level", scrub_with_the_last_level},
	{"scrub_of_victims_that_got_faster", scrub_of_victims_that_got_faster},
	{"best_is_what_the_decision_takes", best_is_what_the_decision_takes},
	{"one_epoch_has_no_noise", one_epoch_has_no_noise},
	{"wrong_hints", wrong_hints},
};

UNIT_MAIN("calibctl_evidence", tests)
