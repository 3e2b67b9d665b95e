/*
 * A host with a database, a place for its policy, and one calibration that is done: what tests of settle begin with.
 */
#ifndef TESTS_SETTLE_STAND_H
#define TESTS_SETTLE_STAND_H

#include <string.h>
#include <sys/stat.h>

#include "calibrd/publish.h"
#include "calibrd/settle.h"
#include "pageclear/policy.h"
#include "tests/unit/by_hand.h"
#include "tests/unit/store_sample.h"

#define KIB UINT64_C(1024)

enum { LIBC, FIRST, SECOND, EPOCHS = 4, ROUNDS = 6 };

/* --- a host ------------------------------------------------------------------------------------------------------ */

static struct config config;
static struct topology topology;
static struct store *store;
static struct calibration calibration;
static struct settlement what;
static struct pc_why why;
static char database[512], place[PUBLISH_PATH];

/* A database, a place for the policy, a calibration that is done and knows `data`. */
static void start(const struct dataset *data)
{
	char folder[512];

	topology = sample_topology;
	topology.core_count = 1;
	topology.cores[0] = (struct topology_core){"GenuineIntel 6/106/6", '-', 2};
	config = (struct config){.scrub_weight = 0.1};
	snprintf(folder, sizeof(folder), "%s", sample_path("etc"));
	CU_ASSERT_EQUAL_FATAL(mkdir(folder, 0755), 0);
	CU_ASSERT_FATAL(snprintf(config.policy, CONFIG_PATH, "%s/policy.yaml", folder) < CONFIG_PATH);
	snprintf(database, sizeof(database), "%s", sample_path("db"));
	store = sample_open(database, STORE_WRITE);
	calibration = (struct calibration){.effort = "quick",
	                                   .soft = topology.soft,
	                                   .started = 1796035267,
	                                   .finished = 1796035327,
	                                   .knee_bytes = 8 << 20};
	CU_ASSERT_EQUAL_FATAL(store_begin(store, &topology, &calibration, &why), 0);
	strcpy(calibration.quality, "good");
	calibration.state = CALIBRATION_DONE;
	CU_ASSERT_EQUAL_FATAL(store_finish(store, &calibration, data, &why), 0);
	what = (struct settlement){
		.config = &config,
		.store = store,
		.topology = &topology,
		.calibration = &calibration,
		.data = data,
		.source = "calibration",
		.where = place,
	};
	place[0] = '\0';
}

static void stop(struct dataset *data)
{
	store = store_close(store);
	dataset_clear(data);
}

/* --- measurements ------------------------------------------------------------------------------------------------ */

/* Cold memory, 16 KiB to 1 MiB. Flushed, FIRST costs twice what libc does at 16 KiB, `early` of it at 32 KiB and half
 * of it from there on; cached, twice as much. SECOND costs just what libc does. */
static struct dataset measured(double early)
{
	struct dataset data = {0};

	for (uint64_t bytes = 16 * KIB; bytes <= 1024 * KIB; bytes *= 2)
		for (unsigned epoch = 0; epoch < EPOCHS; epoch++)
			for (unsigned prior = PC_CACHED; prior <= PC_FLUSHED; prior++) {
				struct where where = {PHASE_CLEAR, prior, bytes};
				double flushed = bytes == 16 * KIB ? 2 : bytes == 32 * KIB ? early : 0.5;
				double share = prior == PC_CACHED ? 2 : flushed;

				put_rounds(&data, where, LIBC, epoch, ROUNDS, (double)bytes);
				put_rounds(&data, where, FIRST, epoch, ROUNDS, (double)bytes * share);
				put_rounds(&data, where, SECOND, epoch, ROUNDS, (double)bytes);
			}
	return data;
}

SAMPLE struct pc_document *read_policy(void)
{
	struct pc_document *document = NULL;

	CU_ASSERT_EQUAL_FATAL(pc_document_read(&document, config.policy, &why), 0);
	return document;
}

/* The published rule for cold memory of that prior and size. */
SAMPLE bool rule_is(enum pc_prior prior, uint64_t bytes, unsigned kernel)
{
	struct pc_document *document = read_policy();
	const struct pc_table *table = pc_document_table(document, PAGECLEAR_COLD, prior, 1);
	bool same = table != NULL && strcmp(pc_table_rule(table, bytes)->kernel, pc_kernels[kernel].name) == 0;

	pc_document_free(document);
	return same;
}

SAMPLE uint64_t generation(void)
{
	struct pc_document *document = read_policy();
	uint64_t number = document->generation;

	pc_document_free(document);
	return number;
}

SAMPLE uint64_t recorded(void)
{
	return strtoull(sample_sql(database, "SELECT max(generation) FROM published"), NULL, 10);
}

#endif
