/*
 * A host with a database, a published policy and a past, for the tests of rollbacks and imports.
 */
#ifndef TESTS_PAST_H
#define TESTS_PAST_H

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "calibrd/export.h"
#include "calibrd/settle.h"
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

/* A policy whose second rule begins at `from`. */
SAMPLE struct pc_document past_document(uint64_t generation, uint64_t from, const char *id)
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

	rules[1].from = from;
	snprintf(document.topology, sizeof(document.topology), "%s", id);
	return document;
}

/* Its text, for free(). */
SAMPLE char *past_text(const struct pc_document *document, size_t *len)
{
	char *text = NULL;

	CU_ASSERT_EQUAL_FATAL(export_yaml(document, &text, len, &why), 0);
	return text;
}

/* Records it as if it had been published at that time. */
SAMPLE void publish_past(uint64_t generation, uint64_t from, const char *source, const char *id, int64_t at)
{
	struct pc_document document = past_document(generation, from, id);
	struct published row = {.generation = generation, .calibration = calibration.id, .at = at};
	size_t len;

	snprintf(row.topology, sizeof(row.topology), "%s", id);
	snprintf(row.source, sizeof(row.source), "%s", source);
	row.yaml = past_text(&document, &len);
	CU_ASSERT_EQUAL_FATAL(store_publish(store, &row, &why), 0);
	if (strcmp(id, "0123456789ab") == 0)
		sample_write(config.policy, row.yaml, len);
	free(row.yaml);
}

/* A calibration at FINISHED, its policy, generation 1, then another, generation 2. */
SAMPLE void start(void)
{
	struct dataset none = {0};
	char folder[512];

	topology = sample_topology;
	topology.core_count = 1;
	strcpy(topology.cores[0].signature, "GenuineIntel 6/106/6");
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

SAMPLE void stop(void)
{
	store = store_close(store);
}

SAMPLE uint64_t second_rule(void)
{
	struct pc_document *document = NULL;

	CU_ASSERT_EQUAL_FATAL(pc_document_read(&document, config.policy, &why), 0);
	uint64_t from = document->tables[0].rules[1].from;
	pc_document_free(document);
	return from;
}

SAMPLE const char *newest(void)
{
	return sample_sql(database, "SELECT generation || ' ' || source || ' ' || calibration FROM published "
	                            "ORDER BY generation DESC LIMIT 1");
}

/* What is published says: generation and source, newest first, "4 restart, 3 rollback". */
SAMPLE const char *newest_two(void)
{
	return sample_sql(database,
	                  "SELECT group_concat(generation || ' ' || source, ', ') FROM (SELECT * FROM published "
	                  "ORDER BY generation DESC LIMIT 2)");
}

#endif
