/* From measurements to a published policy, with a real database and real files. */
#include "calibrd/settle.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calibrd/publish.h"
#include "pageclear/policy.h"
#include "tests/unit/settle_stand.h"

/* --- publishing -------------------------------------------------------------------------------------------------- */

static void test_publishes(void)
{
	struct dataset data = measured(2);
	struct published published = {0};
	struct pc_document *document;

	start(&data);
	CU_ASSERT_EQUAL_FATAL(settle(&what, &why), 0);
	CU_ASSERT_STRING_EQUAL(place, config.policy);
	document = read_policy();
	CU_ASSERT_EQUAL(document->generation, 1);
	CU_ASSERT_EQUAL(settle_named(document), 1u << LIBC | 1u << FIRST);
	CU_ASSERT_STRING_EQUAL(document->topology, "0123456789ab");
	CU_ASSERT_STRING_EQUAL(document->quality, "good");
	CU_ASSERT_STRING_EQUAL(document->written, "2026-11-30T10:42:07Z");
	CU_ASSERT_EQUAL(document->knee_bytes, 8 << 20);
	pc_document_free(document);
	CU_ASSERT(rule_is(PC_FLUSHED, 512 * KIB, FIRST));
	CU_ASSERT(rule_is(PC_FLUSHED, 16 * KIB, LIBC));
	CU_ASSERT(rule_is(PC_CACHED, 512 * KIB, LIBC));
	CU_ASSERT_EQUAL(store_published(store, "0123456789ab", &published, &why), 0);
	CU_ASSERT_EQUAL(published.generation, 1);
	CU_ASSERT_EQUAL(published.calibration, calibration.id);
	CU_ASSERT_STRING_EQUAL(published.source, "calibration");
	free(published.yaml);
	stop(&data);
}

static void test_second_time_the_same(void)
{
	struct dataset data = measured(2);

	start(&data);
	CU_ASSERT_EQUAL(settle(&what, &why), 0);
	what.source = "restart";
	CU_ASSERT_EQUAL(settle(&what, &why), 1);
	CU_ASSERT_EQUAL(generation(), 1);
	CU_ASSERT_STRING_EQUAL(sample_sql(database, "SELECT count(*) FROM published"), "1");
	stop(&data);
}

static void test_lost_file_comes_back(void)
{
	struct dataset data = measured(2);

	start(&data);
	CU_ASSERT_EQUAL(settle(&what, &why), 0);
	CU_ASSERT_EQUAL(unlink(config.policy), 0);
	CU_ASSERT_EQUAL(settle(&what, &why), 0);
	CU_ASSERT_EQUAL(generation(), 2);
	CU_ASSERT_EQUAL(recorded(), 2);
	stop(&data);
}

/* Killed between writing the file and recording it. */
static void test_unrecorded_file_is_recorded(void)
{
	struct dataset data = measured(2);

	start(&data);
	CU_ASSERT_EQUAL(settle(&what, &why), 0);
	sample_change(database, "DELETE FROM published");
	CU_ASSERT_EQUAL(recorded(), 0);
	CU_ASSERT_EQUAL(settle(&what, &why), 1);
	CU_ASSERT_EQUAL(recorded(), 1);
	stop(&data);
}

/* Somebody has another opinion of the knee: it is kept beside. */
static void test_edited_file(void)
{
	struct dataset data = measured(2);
	char kept[CONFIG_PATH + 32], *text;
	size_t len;

	start(&data);
	CU_ASSERT_EQUAL(settle(&what, &why), 0);
	text = (char *)sample_read(config.policy, &len);
	text[len] = '\0';
	CU_ASSERT_PTR_NOT_NULL_FATAL(strstr(text, "knee_bytes: 8"));
	memcpy(strstr(text, "knee_bytes: 8"), "knee_bytes: 9", 13);
	sample_write(config.policy, text, len);
	free(text);
	CU_ASSERT_EQUAL(settle(&what, &why), 0);
	CU_ASSERT_EQUAL(generation(), 2);
	CU_ASSERT_EQUAL(recorded(), 2);
	snprintf(kept, sizeof(kept), "%s.edited-1", config.policy);
	CU_ASSERT_EQUAL(access(kept, R_OK), 0);
	stop(&data);
}

static void test_cannot_publish(void)
{
	struct dataset data = measured(2);

	start(&data);
	CU_ASSERT_EQUAL(settle_check(&config, &why), 0);
	CU_ASSERT_FATAL(snprintf(config.policy, CONFIG_PATH, "%s/nowhere/policy.yaml", unit_folder()) < CONFIG_PATH);
	why.text[0] = '\0';
	CU_ASSERT_EQUAL(settle_check(&config, &why), -ENOENT);
	CU_ASSERT(why.text[0] != '\0');
	why.text[0] = '\0';
	CU_ASSERT_EQUAL(settle(&what, &why), -ENOENT);
	CU_ASSERT(why.text[0] != '\0');
	CU_ASSERT_STRING_EQUAL(place, "");
	CU_ASSERT_EQUAL(recorded(), 0);
	stop(&data);
}

/* --- what may be chosen ------------------------------------------------------------------------------------------ */

static void test_excluded(void)
{
	struct dataset data = measured(2);

	start(&data);
	CU_ASSERT_EQUAL(settle(&what, &why), 0);
	config.exclude = 1u << FIRST;
	CU_ASSERT_EQUAL(settle(&what, &why), 0);
	CU_ASSERT(rule_is(PC_FLUSHED, 512 * KIB, LIBC));
	CU_ASSERT_EQUAL(generation(), 2);
	stop(&data);
}

static void test_faulted(void)
{
	struct dataset data = measured(2);
	char names[64];

	start(&data);
	snprintf(names, sizeof(names), "%s", pc_kernels[FIRST].name);
	calibration.faulted = names;
	CU_ASSERT_EQUAL(settle(&what, &why), 0);
	CU_ASSERT(rule_is(PC_FLUSHED, 512 * KIB, LIBC));
	stop(&data);
}

static uint32_t kernels_without(const char *faulted)
{
	struct dataset data = measured(2);
	struct calibration one = {.faulted = (char *)faulted};
	struct config all = {.scrub_weight = 0};
	uint32_t kernels = settle_kernels(&data, &one, &all);

	dataset_clear(&data);
	return kernels;
}

/* Names are told by whole words: no kernel is another one's beginning or end. */
static void test_list_of_faulted(void)
{
	const char *first = pc_kernels[FIRST].name, *second = pc_kernels[SECOND].name;
	char text[128];

	CU_ASSERT_EQUAL(kernels_without(NULL), 7);
	CU_ASSERT_EQUAL(kernels_without(""), 7);
	CU_ASSERT_EQUAL(kernels_without(" "), 7);
	snprintf(text, sizeof(text), "%s %s", first, second);
	CU_ASSERT_EQUAL(kernels_without(text), 1);
	snprintf(text, sizeof(text), "%s %s", second, first);
	CU_ASSERT_EQUAL(kernels_without(text), 1);
	snprintf(text, sizeof(text), "%.*s %sx x%s", (int)strlen(first) - 1, first, first, second);
	CU_ASSERT_EQUAL(kernels_without(text), 7);
	snprintf(text, sizeof(text), "%s%s %s", first, first, second);
	CU_ASSERT_EQUAL(kernels_without(text), 3);
	snprintf(text, sizeof(text), "x%s %s", first, first); /* not there, and then there */
	CU_ASSERT_EQUAL(kernels_without(text), 5);
	CU_ASSERT_EQUAL(kernels_without("libc"), 7); /* something must remain */
#if defined(__x86_64__)
	CU_ASSERT_EQUAL(kernels_without("stosb stosq"), 5); /* rows: libc, stosb, stosl */
	CU_ASSERT_EQUAL(kernels_without("sto stos tosl"), 7);
#endif
}

static void test_kernels_that_were_measured(void)
{
	struct dataset nothing = {0};
	struct config all = {.scrub_weight = 0};

	CU_ASSERT_EQUAL(settle_kernels(&nothing, &(struct calibration){.id = 0}, &all), 1);
	CU_ASSERT_EQUAL(kernels_without(NULL), 7);
}

/* --- pins -------------------------------------------------------------------------------------------------------- */

static void test_pins(void)
{
	struct dataset data = measured(2);
	struct pin pins[] = {{PAGECLEAR_COLD, PC_FLUSHED, false, 128 * KIB, 256 * KIB, SECOND}};

	start(&data);
	config.pins = pins;
	config.pin_count = 1;
	CU_ASSERT_EQUAL(settle(&what, &why), 0);
	CU_ASSERT(rule_is(PC_FLUSHED, 64 * KIB, FIRST));
	CU_ASSERT(rule_is(PC_FLUSHED, 128 * KIB, SECOND));
	CU_ASSERT(rule_is(PC_FLUSHED, 256 * KIB - 1, SECOND));
	CU_ASSERT(rule_is(PC_FLUSHED, 256 * KIB, FIRST));
	CU_ASSERT(rule_is(PC_CACHED, 128 * KIB, LIBC));
	config.pin_count = 0; /* and gone again */
	CU_ASSERT_EQUAL(settle(&what, &why), 0);
	CU_ASSERT(rule_is(PC_FLUSHED, 128 * KIB, FIRST));
	stop(&data);
}

static void test_too_many_pins(void)
{
	struct dataset data = measured(2);
	struct pin pins[PC_RULES_MAX];

	start(&data);
	for (unsigned i = 0; i < PC_RULES_MAX; i++)
		pins[i] = (struct pin){PAGECLEAR_COLD, PC_FLUSHED, false, (2 * i + 2) * KIB, (2 * i + 3) * KIB, SECOND};
	config.pins = pins;
	config.pin_count = PC_RULES_MAX;
	CU_ASSERT_EQUAL(settle(&what, &why), -E2BIG);
	CU_ASSERT_PTR_NOT_NULL(strstr(why.text, "pins"));
	CU_ASSERT_EQUAL(access(config.policy, F_OK), -1);
	stop(&data);
}

/* --- what was published before ----------------------------------------------------------------------------------- */

/* 5 % less at 32 KiB: enough to choose by, not enough to leave the rules that stand. */
static void test_old_rules_are_kept(void)
{
	struct dataset before = measured(2), data = measured(0.95);
	struct pc_document *old = NULL;

	start(&before);
	CU_ASSERT_EQUAL(settle(&what, &why), 0);
	CU_ASSERT_EQUAL(settle_last(store, "0123456789ab", &old, &why), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(old);
	what.data = &data;
	what.old = old;
	CU_ASSERT_EQUAL(settle(&what, &why), 1);
	CU_ASSERT(rule_is(PC_FLUSHED, 32 * KIB, LIBC));
	what.old = NULL; /* without them the data say something else */
	CU_ASSERT_EQUAL(settle(&what, &why), 0);
	CU_ASSERT(rule_is(PC_FLUSHED, 32 * KIB, FIRST));
	pc_document_free(old);
	dataset_clear(&data);
	stop(&before);
}

static void test_old_rules_that_lose_go(void)
{
	struct dataset before = measured(2), data = measured(0.5);
	struct pc_document *old = NULL;

	start(&before);
	CU_ASSERT_EQUAL(settle(&what, &why), 0);
	CU_ASSERT_EQUAL(settle_last(store, "0123456789ab", &old, &why), 0);
	what.data = &data;
	what.old = old;
	CU_ASSERT_EQUAL(settle(&what, &why), 0);
	CU_ASSERT(rule_is(PC_FLUSHED, 32 * KIB, FIRST));
	pc_document_free(old);
	dataset_clear(&data);
	stop(&before);
}

static void test_last(void)
{
	struct dataset data = measured(2);
	struct pc_document *last = (struct pc_document *)&data;

	start(&data);
	CU_ASSERT_EQUAL(settle_last(store, "0123456789ab", &last, &why), 0);
	CU_ASSERT_PTR_NULL(last);
	CU_ASSERT_EQUAL(settle(&what, &why), 0);
	CU_ASSERT_EQUAL(settle_last(store, "ffffffffffff", &last, &why), 0);
	CU_ASSERT_PTR_NULL(last);
	CU_ASSERT_EQUAL(settle_last(store, "0123456789ab", &last, &why), 0);
	CU_ASSERT_PTR_NOT_NULL_FATAL(last);
	CU_ASSERT_EQUAL(last->generation, 1);
	pc_document_free(last);
	stop(&data);
}

/* Text in the database that is no policy any more: none, rather than the end. */
static void test_last_is_no_policy(void)
{
	struct dataset data = measured(2);
	struct pc_document *last = (struct pc_document *)&data;
	char text[] = "format: 99\n";

	start(&data);
	CU_ASSERT_EQUAL_FATAL(sample_publish(store, 1, calibration.id, text, &why), 0);
	CU_ASSERT_EQUAL(settle_last(store, "0123456789ab", &last, &why), 0);
	CU_ASSERT_PTR_NULL(last);
	stop(&data);
}

/* --- probe ------------------------------------------------------------------------------------------------------- */

/* The probe is remembered with the calibration, not with what was published. */
static void test_probe_of_the_calibration(void)
{
	struct dataset data = measured(2);
	struct pc_document *document;

	start(&data);
	calibration.probe_from = 65536;
	calibration.probe_lines = 4;
	calibration.probe_slow_ns = 57.25;
	CU_ASSERT_EQUAL(settle(&what, &why), 0);
	document = read_policy();
	CU_ASSERT_EQUAL(document->probe.from, 65536);
	CU_ASSERT_EQUAL(document->probe.lines, 4);
	CU_ASSERT_EQUAL(document->probe.slow_ns, 57.25);
	pc_document_free(document);
	calibration.probe_from = 0;
	CU_ASSERT_EQUAL(settle(&what, &why), 0);
	document = read_policy();
	CU_ASSERT_EQUAL(document->probe.from, 0);
	pc_document_free(document);
	stop(&data);
}

/* No probes seen: no probe, in words and numbers. */
static void test_no_probe_is_found(void)
{
	struct dataset data = measured(2);
	struct probe_set none = {0};

	start(&data);
	calibration.probe_from = 1;
	CU_ASSERT_EQUAL(settle_probe(&config, &data, &none, &calibration, &why), 0);
	CU_ASSERT_EQUAL(calibration.probe_from, 0);
	CU_ASSERT_EQUAL(calibration.probe_lines, 0);
	stop(&data);
}

/* --- what is left of old calibrations ---------------------------------------------------------------------------- */

static struct dataset without_rounds(void)
{
	struct dataset data = measured(2);

	for (size_t i = 0; i < data.count; i++)
		data.series[i].count = 0;
	return data;
}

/* Never a policy without tables: the old one as it was, else none. */
static void test_rounds_forgotten(void)
{
	struct dataset data = measured(2), empty = without_rounds();
	struct pc_document *before, *after;

	start(&data);
	what.data = &empty;
	CU_ASSERT_FALSE(settle_has_rounds(&empty));
	CU_ASSERT_EQUAL(settle(&what, &why), -ENODATA);
	CU_ASSERT_NOT_EQUAL(access(config.policy, F_OK), 0);
	what.data = &data;
	CU_ASSERT_EQUAL_FATAL(settle(&what, &why), 0);
	CU_ASSERT_EQUAL_FATAL(settle_last(store, "0123456789ab", &before, &why), 0);
	CU_ASSERT_EQUAL(unlink(config.policy), 0);
	what.data = &empty;
	what.old = before;
	CU_ASSERT_EQUAL(settle(&what, &why), 0);
	after = read_policy();
	CU_ASSERT_EQUAL(after->table_count, before->table_count);
	CU_ASSERT(after->table_count > 0);
	pc_document_free(before);
	pc_document_free(after);
	dataset_clear(&empty);
	stop(&data);
}

static void test_unmeasured_kernels(void)
{
	struct dataset data = measured(2);
	uint32_t runs = 0;

	start(&data);
	for (unsigned k = 1; k < pc_kernel_count; k++)
		runs |= pc_kernel_runs(&pc_kernels[k]) ? 1u << k : 0;
	CU_ASSERT_EQUAL(settle_unmeasured(&data, &calibration, &config), runs & ~(1u << FIRST | 1u << SECOND));
	config.exclude = runs & ~(1u << FIRST);
	CU_ASSERT_EQUAL(settle_unmeasured(&data, &calibration, &config), 0);
	config.exclude = 0;
	calibration.faulted = "stosb";
	CU_ASSERT_EQUAL(settle_unmeasured(&data, &calibration, &config) >> pc_kernel_index(pc_kernel_find("stosb")) & 1,
	                0);
	calibration.faulted = NULL;
	stop(&data);
}

/* --- withdrawing ------------------------------------------------------------------------------------------------- */

static void test_withdraw(void)
{
	struct dataset data = measured(2);

	start(&data);
	CU_ASSERT_EQUAL(settle_withdraw(&config, store, "0123456789ab", &why), 1);
	CU_ASSERT_EQUAL(settle(&what, &why), 0);
	CU_ASSERT_EQUAL(settle_withdraw(&config, store, "0123456789ab", &why), 1);
	CU_ASSERT_EQUAL(access(config.policy, F_OK), 0);
	CU_ASSERT_EQUAL(settle_withdraw(&config, store, "ffffffffffff", &why), 0);
	CU_ASSERT_EQUAL(access(config.policy, F_OK), -1);
	CU_ASSERT_EQUAL(settle_withdraw(&config, store, "ffffffffffff", &why), 1);
	stop(&data);
}

static const struct unit_test all_tests[] = {
	{"publishes", test_publishes},
	{"second time the same", test_second_time_the_same},
	{"lost file comes back", test_lost_file_comes_back},
	{"unrecorded file is recorded", test_unrecorded_file_is_recorded},
	{"edited file", test_edited_file},
	{"cannot publish", test_cannot_publish},
	{"excluded", test_excluded},
	{"faulted", test_faulted},
	{"list of faulted", test_list_of_faulted},
	{"kernels that were measured", test_kernels_that_were_measured},
	{"pins", test_pins},
	{"too many pins", test_too_many_pins},
	{"old rules are kept", test_old_rules_are_kept},
	{"old rules that lose go", test_old_rules_that_lose_go},
	{"last", test_last},
	{"last is no policy", test_last_is_no_policy},
	{"probe of the calibration", test_probe_of_the_calibration},
	{"no probe is found", test_no_probe_is_found},
	{"rounds forgotten", test_rounds_forgotten},
	{"unmeasured kernels", test_unmeasured_kernels},
	{"withdraw", test_withdraw},
};

static void test_too_few_kernels(void)
{
	unit_skip("this build has %u kernels", pc_kernel_count);
}

static const struct unit_test no_tests[] = {{"too few kernels", test_too_few_kernels}};

int main(void)
{
	if (pc_kernel_count < 3)
		return unit_main("settle", no_tests, 1);
	return unit_main("settle", all_tests, sizeof(all_tests) / sizeof(all_tests[0]));
}
