/* A policy that was rolled back to stands, and until when; with a real database and real files. */
#include "calibrd/rollback.h"

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calibrd/export.h"
#include "pageclear/policy.h"
#include "tests/unit/store_sample.h"

enum { FINISHED = 1700000060, LATER = FINISHED + 100 };

static struct config config;
static struct topology topology;
static struct store *store;
static struct calibration calibration;
static struct settlement what;
static struct pc_why why;
static char database[512], place[PUBLISH_PATH];

static struct pc_rule rules[] = {{.kernel = "libc"}, {.from = 4096, .kernel = "stosb", .gain = 2}};
static struct pc_table table = {PAGECLEAR_COLD, PC_FLUSHED, 1, 2, rules};

/* --- a host ------------------------------------------------------------------------------------------------------ */

/* Records a policy whose second rule begins at `from`, as if it had been published at that time. */
static void publish_past(uint64_t generation, uint64_t from, const char *source, const char *id, int64_t at)
{
	struct pc_document document = {.generation = generation,
	                               .version = "0.1.0",
	                               .written = "2026-11-30T10:42:07Z",
	                               .quality = "good",
	                               .arch = "x86_64",
	                               .cpu_count = 1,
	                               .cpus = {"GenuineIntel 6/106/6"},
	                               .table_count = 1,
	                               .tables = &table};
	struct published row = {.generation = generation, .calibration = calibration.id, .at = at};
	size_t len;

	rules[1].from = from;
	snprintf(document.topology, sizeof(document.topology), "%s", id);
	snprintf(row.topology, sizeof(row.topology), "%s", id);
	snprintf(row.source, sizeof(row.source), "%s", source);
	CU_ASSERT_EQUAL_FATAL(export_yaml(&document, &row.yaml, &len, &why), 0);
	CU_ASSERT_EQUAL_FATAL(store_publish(store, &row, &why), 0);
	if (strcmp(id, "0123456789ab") == 0)
		sample_write(config.policy, row.yaml, len);
	free(row.yaml);
}

/* A calibration at FINISHED, its policy, generation 1, then another, generation 2. */
static void start(void)
{
	struct dataset none = {0};
	char folder[512];

	topology = sample_topology;
	config = (struct config){.scrub_weight = 0.1};
	snprintf(folder, sizeof(folder), "%s", sample_path("etc"));
	CU_ASSERT_EQUAL_FATAL(mkdir(folder, 0755), 0);
	CU_ASSERT_FATAL(snprintf(config.policy, CONFIG_PATH, "%s/policy.yaml", folder) < CONFIG_PATH);
	snprintf(database, sizeof(database), "%s", sample_path("db"));
	store = sample_open(database, STORE_WRITE);
	calibration =
		(struct calibration){.effort = "quick", .quality = "good", .started = 1700000000, .finished = FINISHED};
	CU_ASSERT_EQUAL_FATAL(store_begin(store, &topology, &calibration, &why), 0);
	CU_ASSERT_EQUAL_FATAL(store_finish(store, &calibration, &none, &why), 0);
	what = (struct settlement){.config = &config,
	                           .store = store,
	                           .topology = &topology,
	                           .calibration = &calibration,
	                           .source = "restart",
	                           .where = place};
	publish_past(1, 4096, "calibration", "0123456789ab", FINISHED);
	publish_past(2, 8192, "restart", "0123456789ab", FINISHED + 1);
	place[0] = '\0';
}

static void stop(void)
{
	store = store_close(store);
}

static uint64_t second_rule(void)
{
	struct pc_document *document = NULL;

	CU_ASSERT_EQUAL_FATAL(pc_document_read(&document, config.policy, &why), 0);
	uint64_t from = document->tables[0].rules[1].from;
	pc_document_free(document);
	return from;
}

static const char *newest(void)
{
	return sample_sql(database, "SELECT generation || ' ' || source || ' ' || calibration FROM published "
	                            "ORDER BY generation DESC LIMIT 1");
}

/* --- standing ---------------------------------------------------------------------------------------------------- */

static void nobody_rolled_back(void)
{
	start();
	CU_ASSERT_EQUAL(rollback_stand(&what, &why), 2);
	CU_ASSERT_STRING_EQUAL(place, "");
	CU_ASSERT_STRING_EQUAL(newest(), "2 restart 1");
	stop();
}

/* In the second of the calibration's end, too: it came after that. */
static void stands(void)
{
	start();
	publish_past(3, 4096, "rollback", "0123456789ab", FINISHED);
	CU_ASSERT_EQUAL(rollback_stand(&what, &why), 1);
	CU_ASSERT_STRING_EQUAL(place, config.policy);
	CU_ASSERT_STRING_EQUAL(newest(), "3 rollback 1");
	stop();
}

/* What follows from it is no wish of its own, and does not end it. */
static void comes_back_when_it_was_removed(void)
{
	start();
	publish_past(3, 4096, "rollback", "0123456789ab", LATER);
	for (unsigned i = 0; i < 2; i++) {
		CU_ASSERT_EQUAL(unlink(config.policy), 0);
		CU_ASSERT_EQUAL(rollback_stand(&what, &why), 0);
		CU_ASSERT_EQUAL(second_rule(), 4096);
	}
	CU_ASSERT_STRING_EQUAL(newest(), "5 restart 1");
	stop();
}

static void the_last_rollback_counts(void)
{
	start();
	publish_past(3, 4096, "rollback", "0123456789ab", LATER);
	publish_past(4, 8192, "rollback", "0123456789ab", LATER);
	CU_ASSERT_EQUAL(unlink(config.policy), 0);
	CU_ASSERT_EQUAL(rollback_stand(&what, &why), 0);
	CU_ASSERT_EQUAL(second_rule(), 8192);
	stop();
}

static void a_calibration_ends_it(void)
{
	start();
	publish_past(3, 4096, "rollback", "0123456789ab", LATER);
	calibration.finished = LATER + 1; /* its policy may have been the same, and so was not recorded */
	CU_ASSERT_EQUAL(rollback_stand(&what, &why), 2);
	calibration.finished = FINISHED;
	publish_past(4, 8192, "calibration", "0123456789ab", LATER + 1);
	CU_ASSERT_EQUAL(rollback_stand(&what, &why), 2);
	stop();
}

static void of_another_topology(void)
{
	start();
	publish_past(3, 4096, "rollback", "ba9876543210", LATER);
	CU_ASSERT_EQUAL(rollback_stand(&what, &why), 2);
	publish_past(4, 4096, "rollback", "0123456789ab", LATER);
	publish_past(5, 8192, "calibration", "ba9876543210", LATER + 9);
	CU_ASSERT_EQUAL(rollback_stand(&what, &why), 1);
	stop();
}

/* --- what it may not do ------------------------------------------------------------------------------------------ */

static void barred_kernels(void)
{
	const struct pc_kernel *kernel = pc_kernel_find("stosb");
	char faulted[] = "sse2 stosb";

	if (kernel == NULL) {
		unit_skip("no stosb on this architecture");
		return;
	}
	start();
	publish_past(3, 4096, "rollback", "0123456789ab", LATER);
	config.exclude = 1u << pc_kernel_index(kernel);
	CU_ASSERT_EQUAL(rollback_stand(&what, &why), 2);
	config.exclude = 0; /* taken back: it stands again */
	CU_ASSERT_EQUAL(rollback_stand(&what, &why), 1);
	calibration.faulted = faulted;
	CU_ASSERT_EQUAL(rollback_stand(&what, &why), 2);
	stop();
}

static void pins_come_last(void)
{
	struct pin pin = {PAGECLEAR_COLD, PC_FLUSHED, false, 1024, 2048, 0};

	start();
	publish_past(3, 4096, "rollback", "0123456789ab", LATER);
	config.pins = &pin;
	config.pin_count = 1;
	CU_ASSERT_EQUAL(rollback_stand(&what, &why), 0);
	CU_ASSERT_EQUAL(second_rule(), 1024);
	CU_ASSERT_EQUAL(rollback_stand(&what, &why), 1);
	config.pin_count = 0;
	CU_ASSERT_EQUAL(rollback_stand(&what, &why), 0);
	CU_ASSERT_EQUAL(second_rule(), 4096);
	CU_ASSERT_STRING_EQUAL(newest(), "5 restart 1");
	stop();
}

static void a_text_that_was_damaged(void)
{
	start();
	publish_past(3, 4096, "rollback", "0123456789ab", LATER);
	sample_change(database, "UPDATE published SET yaml = 'format: 99' WHERE generation = 3");
	CU_ASSERT_EQUAL(rollback_stand(&what, &why), 2);
	stop();
}

static const struct unit_test tests[] = {
	{"nobody rolled back", nobody_rolled_back},
	{"stands", stands},
	{"comes back when it was removed", comes_back_when_it_was_removed},
	{"the last rollback counts", the_last_rollback_counts},
	{"a calibration ends it", a_calibration_ends_it},
	{"of another topology", of_another_topology},
	{"barred kernels", barred_kernels},
	{"pins come last", pins_come_last},
	{"a text that was damaged", a_text_that_was_damaged},
};

UNIT_MAIN("rollback", tests)
