/* From parts to a document that readers take. */
#include "calibrd/assemble.h"

#include <stdlib.h>
#include <string.h>

#include "calibrd/export.h"
#include "pageclear/policy.h"
#include "tests/unit/harness.h"

static struct topology host = {
	.arch = "x86_64",
	.core_count = 3,
	.cores = {{"GenuineIntel 6/151/2", 'P', 16},
                  {"GenuineIntel 6/151/2", 'E', 8},
                  {"GenuineIntel 6/190/0", 'E', 2}},
	.name = "A CPU: with \"quotes\"",
	.id = "0123456789ab",
};

static struct pc_rule rules[] = {{.kernel = "libc"}, {.from = 4096, .chunk = 65536, .gain = 2, .kernel = "movnti"}};

static struct decision decided = {
	.table_count = 1,
	.tables = {{PAGECLEAR_COLD, PC_FLUSHED, 1, 2, rules}},
};

static struct pc_document assembled(const struct probe_fit *probe, time_t written)
{
	struct pc_document document;

	assemble(&(struct assembly){.topology = &host,
	                            .decision = &decided,
	                            .probe = probe,
	                            .quality = "good",
	                            .knee_bytes = 8 << 20,
	                            .written = written},
	         &document);
	return document;
}

static void test_host(void)
{
	struct pc_document document = assembled(&(struct probe_fit){0}, 0);

	CU_ASSERT_STRING_EQUAL(document.topology, "0123456789ab");
	CU_ASSERT_STRING_EQUAL(document.arch, "x86_64");
	CU_ASSERT_STRING_EQUAL(document.name, host.name);
	CU_ASSERT_STRING_EQUAL(document.version, PAGECLEAR_VERSION);
	CU_ASSERT_STRING_EQUAL(document.quality, "good");
	CU_ASSERT_EQUAL(document.knee_bytes, 8 << 20);
	CU_ASSERT_EQUAL(document.generation, 0);
}

static void test_signatures_once(void)
{
	struct pc_document document = assembled(&(struct probe_fit){0}, 0);

	CU_ASSERT_EQUAL_FATAL(document.cpu_count, 2);
	CU_ASSERT_STRING_EQUAL(document.cpus[0], "GenuineIntel 6/151/2");
	CU_ASSERT_STRING_EQUAL(document.cpus[1], "GenuineIntel 6/190/0");
}

static void test_as_many_types_as_there_can_be(void)
{
	struct topology before = host;
	struct pc_document document;

	host.core_count = TOPOLOGY_CORE_TYPES;
	for (unsigned i = 0; i < TOPOLOGY_CORE_TYPES; i++)
		snprintf(host.cores[i].signature, sizeof(host.cores[i].signature), "GenuineIntel 6/%u/0", i);
	document = assembled(&(struct probe_fit){0}, 0);
	CU_ASSERT_EQUAL(document.cpu_count, PC_CPUS_MAX);
	host = before;
}

static void test_time(void)
{
	CU_ASSERT_STRING_EQUAL(assembled(&(struct probe_fit){0}, 0).written, "1970-01-01T00:00:00Z");
	CU_ASSERT_STRING_EQUAL(assembled(&(struct probe_fit){0}, 1796035327).written, "2026-11-30T10:42:07Z");
	setenv("TZ", "Asia/Tokyo", 1);
	tzset();
	CU_ASSERT_STRING_EQUAL(assembled(&(struct probe_fit){0}, 1796035327).written, "2026-11-30T10:42:07Z");
	unsetenv("TZ");
	tzset();
}

static void test_probe(void)
{
	struct pc_document without = assembled(&(struct probe_fit){.lines = 4, .slow_ns = 57}, 0);
	struct pc_document with = assembled(&(struct probe_fit){.from = 262144, .lines = 4, .slow_ns = 57}, 0);

	CU_ASSERT_EQUAL(without.probe.from, 0);
	CU_ASSERT_EQUAL(without.probe.lines, 0);
	CU_ASSERT_EQUAL(without.probe.slow_ns, 0);
	CU_ASSERT_EQUAL(with.probe.from, 262144);
	CU_ASSERT_EQUAL(with.probe.lines, 4);
	CU_ASSERT_EQUAL(with.probe.slow_ns, 57);
}

/* The one writer takes it, and with it the one reader. */
static void test_can_be_written(void)
{
	struct pc_document document =
		assembled(&(struct probe_fit){.from = 262144, .lines = 4, .slow_ns = 57.25}, 1796035327);
	struct pc_document *read = NULL;
	struct pc_why why = {""};
	char *text = NULL;
	size_t len;

	document.generation = 1;
	CU_ASSERT_EQUAL_FATAL(export_yaml(&document, &text, &len, &why), 0);
	CU_ASSERT_EQUAL_FATAL(pc_document_parse(&read, text, len, &why), 0);
	CU_ASSERT(export_same(read, &document));
	CU_ASSERT_STRING_EQUAL(read->written, document.written);
	pc_document_free(read);
	free(text);
}

static const struct unit_test tests[] = {
	{"host", test_host},
	{"signatures once", test_signatures_once},
	{"as many types as there can be", test_as_many_types_as_there_can_be},
	{"time", test_time},
	{"probe", test_probe},
	{"can be written", test_can_be_written},
};

UNIT_MAIN("assemble", tests)
