/* Policies that were measured elsewhere; with a real database and real files. */
#include "calibrd/import.h"

#include "calibrd/rollback.h"
#include "tests/unit/past.h"

enum { FROM = 16384 }; /* where the second rule of what is imported begins */

/* As another host of this kind published it. */
static char *elsewhere(size_t *len)
{
	struct pc_document document = past_document(41, FROM, "0123456789ab");

	strcpy(document.quality, "noisy");
	strcpy(document.written, "2026-10-01T00:00:00Z");
	return past_text(&document, len);
}

static void imports(void)
{
	struct pc_document *document = NULL;
	uint64_t published = 0;
	size_t len;

	start();
	char *text = elsewhere(&len);
	text[len] = 'x'; /* it need not end in NUL */
	CU_ASSERT_EQUAL(import_policy(&what, text, len, &published, &why), 0);
	CU_ASSERT_EQUAL(published, 3);
	CU_ASSERT_STRING_EQUAL(place, config.policy);
	CU_ASSERT_STRING_EQUAL(newest_two(), "3 import, 2 restart");
	CU_ASSERT_STRING_EQUAL(
		sample_sql(database, "SELECT ifnull(calibration, 'none') FROM published WHERE generation = 3"), "none");
	CU_ASSERT_EQUAL_FATAL(pc_document_read(&document, config.policy, &why), 0);
	CU_ASSERT_EQUAL(document->generation, 3);
	CU_ASSERT_STRING_EQUAL(document->quality, "noisy");
	CU_ASSERT_STRING_EQUAL(document->written, "2026-10-01T00:00:00Z");
	CU_ASSERT_EQUAL(document->tables[0].rules[1].from, FROM);
	pc_document_free(document);
	CU_ASSERT_EQUAL(import_policy(&what, text, len, &published, &why), 1);
	CU_ASSERT_EQUAL(published, 3);
	free(text);
	CU_ASSERT_EQUAL(rollback_stand(&what, &why), 1);
	stop();
}

/* For hosts that are never to measure: no calibration is known, nor was anything published. */
static void onto_a_host_that_knows_nothing(void)
{
	uint64_t published = 0;
	size_t len;

	start();
	sample_change(database, "DELETE FROM published; DELETE FROM calibration");
	CU_ASSERT_EQUAL(unlink(config.policy), 0);
	what.calibration = NULL;
	char *text = elsewhere(&len);
	CU_ASSERT_EQUAL(import_policy(&what, text, len, &published, &why), 0);
	free(text);
	CU_ASSERT_EQUAL(published, 1);
	CU_ASSERT_EQUAL(second_rule(), FROM);
	CU_ASSERT_EQUAL(unlink(config.policy), 0);
	CU_ASSERT_EQUAL(rollback_stand(&what, &why), 0);
	CU_ASSERT_EQUAL(second_rule(), FROM);
	stop();
}

static void under_pins(void)
{
	struct pin pin = {PAGECLEAR_COLD, PC_FLUSHED, false, 1024, 2048, 0};
	uint64_t published = 0;
	size_t len;

	start();
	config.pins = &pin;
	config.pin_count = 1;
	char *text = elsewhere(&len);
	CU_ASSERT_EQUAL(import_policy(&what, text, len, &published, &why), 0);
	CU_ASSERT_EQUAL(published, 4);
	CU_ASSERT_EQUAL(second_rule(), 1024);
	CU_ASSERT_STRING_EQUAL(newest_two(), "4 restart, 3 import");
	CU_ASSERT_EQUAL(import_policy(&what, text, len, &published, &why), 1);
	CU_ASSERT_EQUAL(published, 4);
	free(text);
	config.pin_count = 0;
	CU_ASSERT_EQUAL(rollback_stand(&what, &why), 0);
	CU_ASSERT_EQUAL(second_rule(), FROM);
	stop();
}

/* --- what is refused --------------------------------------------------------------------------------------------- */

/* reason: what why begins with. */
static void refused(const char *text, size_t len, int code, const char *reason)
{
	uint64_t published = 77;
	struct pc_why said = {""};
	int r = import_policy(&what, text, len, &published, &said);

	if (r != code || strncmp(said.text, reason, strlen(reason)) != 0)
		printf("%d: %s\n", r, said.text);
	CU_ASSERT_EQUAL(r, code);
	CU_ASSERT_EQUAL(strncmp(said.text, reason, strlen(reason)), 0);
	CU_ASSERT_EQUAL(published, 77);
	CU_ASSERT_EQUAL(second_rule(), 8192);
	CU_ASSERT_STRING_EQUAL(newest(), "2 restart 1");
	CU_ASSERT_STRING_EQUAL(place, "");
}

static void texts_that_are_no_policy(void)
{
	char big[PC_DOCUMENT_MAX_BYTES + 1];
	size_t len;

	start();
	char *text = elsewhere(&len);
	refused("", 0, -EBADMSG, "the imported policy: ");
	refused("hello", 5, -EBADMSG, "the imported policy: 1:1: ");
	refused("format: 2\n", 10, -EPROTONOSUPPORT, "the imported policy: ");
	refused(text, len / 2, -EBADMSG, "the imported policy: ");
	char *quality = strstr(text, "noisy");
	CU_ASSERT_PTR_NOT_NULL_FATAL(quality);
	*quality = '\0';
	refused(text, len, -EBADMSG, "the imported policy: ");
	*quality = '\xff';
	refused(text, len, -EBADMSG, "the imported policy: ");
	free(text);
	memset(big, '#', sizeof(big));
	refused(big, sizeof(big), -EFBIG, "the imported policy: ");
	stop();
}

/* Tables of a later version are left out: here nothing is left. */
static void nothing_in_it(void)
{
	size_t len;

	start();
	char *text = elsewhere(&len), *cold = strstr(text, "intent: cold");
	CU_ASSERT_PTR_NOT_NULL_FATAL(cold);
	memcpy(cold, "intent: warm", 12);
	refused(text, len, -EBADMSG, "the imported policy has no table that this version knows");
	free(text);
	stop();
}

static void of_another_host(void)
{
	size_t len;

	start();
	char *text = elsewhere(&len);
	strcpy(topology.id, "ba9876543210");
	refused(text, len, -ESTALE,
	        "the imported policy was made for topology 0123456789ab, this host is ba9876543210");
	strcpy(topology.id, "0123456789ab");
	strcpy(topology.cores[0].signature, "GenuineIntel 6/106/7");
	refused(text, len, -ESTALE, "the imported policy was made for another CPU: GenuineIntel 6/106/6");
	free(text);
	stop();
}

static void barred_kernels(void)
{
	const struct pc_kernel *kernel = pc_kernel_find("stosb");
	size_t len;

	if (kernel == NULL) {
		unit_skip("no stosb on this architecture");
		return;
	}
	start();
	char *text = elsewhere(&len);
	config.exclude = 1u << pc_kernel_index(kernel);
	refused(text, len, -EPERM, "the imported policy chooses stosb, which calibrd.yaml excludes");
	config.exclude = 0;
	sample_change(database, "UPDATE calibration SET faulted = 'sse2 stosb'");
	refused(text, len, -EPERM, "the imported policy chooses a kernel that has failed its trial");
	free(text);
	stop();
}

static const struct unit_test tests[] = {
	{"imports", imports},
	{"onto a host that knows nothing", onto_a_host_that_knows_nothing},
	{"under pins", under_pins},
	{"texts that are no policy", texts_that_are_no_policy},
	{"nothing in it", nothing_in_it},
	{"of another host", of_another_host},
	{"barred kernels", barred_kernels},
};

UNIT_MAIN("import", tests)
