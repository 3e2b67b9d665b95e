/* A policy that somebody wished for stands, and until when; rollbacks; with a real database and real files. */
#include "calibrd/rollback.h"

#include "calibrd/import.h"
#include "tests/unit/past.h"

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
	calibration.id++; /* its policy may have been the same, and so was not recorded */
	CU_ASSERT_EQUAL(rollback_stand(&what, &why), 2);
	calibration.id--;
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

/* An import is a wish as well; the last one counts, whichever it is. */
static void imports_stand_too(void)
{
	start();
	publish_past(3, 4096, "rollback", "0123456789ab", LATER);
	publish_past(4, 8192, IMPORT_SOURCE, "0123456789ab", LATER);
	CU_ASSERT_EQUAL(unlink(config.policy), 0);
	CU_ASSERT_EQUAL(rollback_stand(&what, &why), 0);
	CU_ASSERT_EQUAL(second_rule(), 8192);
	calibration.id++;
	CU_ASSERT_EQUAL(rollback_stand(&what, &why), 2);
	stop();
}

/* A host that never measured: nothing ends the wish, and there is nothing else to decide by. */
static void without_a_calibration(void)
{
	const struct pc_kernel *kernel = pc_kernel_find("stosb");
	struct pc_document *document = NULL;

	start();
	what.calibration = NULL;
	CU_ASSERT_EQUAL(rollback_stand(&what, &why), 2);
	publish_past(3, 4096, IMPORT_SOURCE, "0123456789ab", 1);
	CU_ASSERT_EQUAL(rollback_stand(&what, &why), 1);
	if (kernel != NULL) {
		config.exclude = 1u << pc_kernel_index(kernel);
		CU_ASSERT_EQUAL(rollback_stand(&what, &why), 0);
		CU_ASSERT_EQUAL_FATAL(pc_document_read(&document, config.policy, &why), 0);
		CU_ASSERT_EQUAL(settle_named(document), 1);
		pc_document_free(document);
		config.exclude = 0;
		CU_ASSERT_EQUAL(rollback_stand(&what, &why), 0);
		CU_ASSERT_STRING_EQUAL(newest_two(), "5 restart, 4 restart");
	}
	CU_ASSERT_EQUAL(second_rule(), 4096);
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

/* --- rolling back ------------------------------------------------------------------------------------------------ */

/* What the last call said is in force, and that a restart leaves it there. */
static void in_force(uint64_t published, uint64_t generation, uint64_t from)
{
	CU_ASSERT_EQUAL(published, generation);
	CU_ASSERT_EQUAL(second_rule(), from);
	CU_ASSERT_STRING_EQUAL(place, config.policy);
	CU_ASSERT_EQUAL(rollback_stand(&what, &why), 1);
	CU_ASSERT_EQUAL(second_rule(), from);
}

static void rolls_back(void)
{
	uint64_t published = 0;

	start();
	CU_ASSERT_EQUAL(rollback_to(&what, 1, &published, &why), 0);
	CU_ASSERT_STRING_EQUAL(newest(), "3 rollback 1");
	in_force(published, 3, 4096);
	CU_ASSERT_EQUAL(rollback_to(&what, 1, &published, &why), 1);
	in_force(published, 3, 4096);
	CU_ASSERT_EQUAL(rollback_to(&what, 2, &published, &why), 0);
	in_force(published, 4, 8192);
	stop();
}

/* The wish is recorded without them, so that it is whole again once they are gone. */
static void rolls_back_under_pins(void)
{
	struct pin pin = {PAGECLEAR_COLD, PC_FLUSHED, false, 1024, 2048, 0};
	uint64_t published = 0;

	start();
	config.pins = &pin;
	config.pin_count = 1;
	CU_ASSERT_EQUAL(rollback_to(&what, 1, &published, &why), 0);
	CU_ASSERT_STRING_EQUAL(newest_two(), "4 restart, 3 rollback");
	in_force(published, 4, 1024);
	CU_ASSERT_EQUAL(rollback_to(&what, 1, &published, &why), 1);
	in_force(published, 4, 1024);
	config.pin_count = 0;
	CU_ASSERT_EQUAL(rollback_stand(&what, &why), 0);
	CU_ASSERT_EQUAL(second_rule(), 4096);
	CU_ASSERT_STRING_EQUAL(newest_two(), "5 restart, 4 restart");
	stop();
}

/* A wish that could not be published is none: nothing of it comes into force later. */
static void a_refused_wish_is_forgotten(void)
{
	struct pin pin = {PAGECLEAR_COLD, PC_FLUSHED, false, 1024, 2048, 0};
	uint64_t published = 0;
	char kept[sizeof(config.policy)];

	start();
	strcpy(kept, config.policy);
	strcpy(config.policy, "/nonexistent/policy.yaml");
	config.pins = &pin;
	for (config.pin_count = 0; config.pin_count < 2; config.pin_count++) {
		CU_ASSERT(rollback_to(&what, 1, &published, &why) < 0);
		CU_ASSERT_EQUAL(rollback_stand(&what, &why), 2);
	}
	config.pin_count = 0;
	strcpy(config.policy, kept);
	CU_ASSERT_EQUAL(second_rule(), 8192);
	stop();
}

static void refused(uint64_t generation, int code, const char *reason)
{
	uint64_t published = 77;
	struct pc_why said = {""};

	CU_ASSERT_EQUAL(rollback_to(&what, generation, &published, &said), code);
	CU_ASSERT_STRING_EQUAL(said.text, reason);
	CU_ASSERT_EQUAL(published, 77);
	CU_ASSERT_EQUAL(second_rule(), 8192);
	CU_ASSERT_STRING_EQUAL(place, "");
}

static void generations_that_there_are_not(void)
{
	start();
	refused(0, -ENOENT, "generation 0 was never published");
	refused(3, -ENOENT, "generation 3 was never published");
	refused(UINT64_MAX, -ENOENT, "generation 18446744073709551615 was never published");
	sample_change(database, "UPDATE published SET yaml = 'format: 99' WHERE generation = 1");
	refused(1, -EUCLEAN, "database: the text of generation 1 is damaged");
	stop();
}

static void rollbacks_to_another_host(void)
{
	start();
	publish_past(3, 4096, "calibration", "ba9876543210", FINISHED);
	refused(3, -ESTALE, "generation 3 was made for topology ba9876543210, this host is 0123456789ab");
	sample_change(database, "UPDATE published SET topology = 'ba9876543210' WHERE generation = 1");
	refused(1, -ESTALE, "generation 1 was made for topology ba9876543210, this host is 0123456789ab");
	strcpy(topology.cores[0].signature, "GenuineIntel 6/106/7");
	refused(2, -ESTALE, "generation 2 was made for another CPU: GenuineIntel 6/106/6");
	strcpy(topology.cores[0].signature, "GenuineIntel 6/106/6");
	strcpy(topology.arch, "aarch64");
	refused(2, -ESTALE, "generation 2 was made for another CPU: GenuineIntel 6/106/6");
	stop();
}

static void rollbacks_to_barred_kernels(void)
{
	const struct pc_kernel *kernel = pc_kernel_find("stosb");

	if (kernel == NULL) {
		unit_skip("no stosb on this architecture");
		return;
	}
	start();
	config.exclude = 1u << pc_kernel_index(kernel);
	refused(1, -EPERM, "generation 1 chooses stosb, which calibrd.yaml excludes");
	config.exclude = 0;
	sample_change(database, "UPDATE calibration SET faulted = 'sse2 stosb'");
	refused(1, -EPERM, "generation 1 chooses a kernel that has failed its trial on this host since: stosb");
	stop();
}

static const struct unit_test tests[] = {
	{"nobody rolled back", nobody_rolled_back},
	{"stands", stands},
	{"comes back when it was removed", comes_back_when_it_was_removed},
	{"the last rollback counts", the_last_rollback_counts},
	{"a calibration ends it", a_calibration_ends_it},
	{"of another topology", of_another_topology},
	{"imports stand too", imports_stand_too},
	{"without a calibration", without_a_calibration},
	{"barred kernels", barred_kernels},
	{"pins come last", pins_come_last},
	{"a text that was damaged", a_text_that_was_damaged},
	{"rolls back", rolls_back},
	{"rolls back under pins", rolls_back_under_pins},
	{"a refused wish is forgotten", a_refused_wish_is_forgotten},
	{"generations that there are not", generations_that_there_are_not},
	{"rollbacks to another host's", rollbacks_to_another_host},
	{"rollbacks to barred kernels", rollbacks_to_barred_kernels},
};

UNIT_MAIN("rollback", tests)
