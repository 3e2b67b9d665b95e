/* When a calibration may replace the policy that stands. */
#include <string.h>

#include "calibrd/service_parts.h"
#include "tests/unit/harness.h"

/* A calibration of this quality beside a published policy of that one (NULL: none). */
static bool worth(const char *quality, const char *published)
{
	struct pc_document old = {.generation = 1};
	struct service service = {.old = published != NULL ? &old : NULL};
	struct calibration calibration = {.id = 1};

	if (published != NULL)
		strcpy(old.quality, published);
	strcpy(calibration.quality, quality);
	bool is = looking_worth_publishing(&service, &calibration);
	log_once_over(&service.noise);
	return is;
}

static void test_noisy_never_replaces_good(void)
{
	CU_ASSERT_FALSE(worth("noisy", "good"));
}

/* A busy host that never is quiet gets the best that can be had there. */
static void test_noisy_is_better_than_nothing(void)
{
	CU_ASSERT(worth("noisy", NULL));
	CU_ASSERT(worth("noisy", "noisy"));
	CU_ASSERT(worth("noisy", ""));         /* an import that does not say */
	CU_ASSERT(worth("noisy", "emulated")); /* says nothing of hardware */
}

static void test_good_replaces_all(void)
{
	CU_ASSERT(worth("good", NULL));
	CU_ASSERT(worth("good", "noisy"));
	CU_ASSERT(worth("good", "good"));
	CU_ASSERT(worth("emulated", "emulated"));
}

static const struct unit_test tests[] = {
	{"noisy never replaces good", test_noisy_never_replaces_good},
	{"noisy is better than nothing", test_noisy_is_better_than_nothing},
	{"good replaces all", test_good_replaces_all},
};

UNIT_MAIN("service", tests)
