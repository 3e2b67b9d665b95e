/* Decisions about data made by hand, for the tests of decide. */
#ifndef TESTS_DECISIONS_H
#define TESTS_DECISIONS_H

#include <stdbool.h>
#include <string.h>

#include "calibrd/decide.h"
#include "pageclear/policy.h"
#include "tests/unit/by_hand.h"

enum { EPOCHS = 5, ROUNDS = 12 };

static inline const char *name(unsigned kernel)
{
	return pc_kernels[kernel].name;
}

static inline bool holds(const struct pc_rule *rule, uint64_t from, unsigned kernel)
{
	return rule->from == from && strcmp(rule->kernel, name(kernel)) == 0;
}

/* Cold, flushed, octaves from 4 KiB up: row k takes 1000 exp(l[k - 1][size]) ns. */
static inline void cold_data(struct dataset *data, size_t sizes, unsigned kernels, const double l[][8])
{
	for (size_t i = 0; i < sizes; i++)
		for (unsigned k = 0; k < kernels; k++)
			for (unsigned epoch = 0; epoch < EPOCHS; epoch++)
				put_rounds(data, (struct where){PHASE_CLEAR, PC_FLUSHED, (uint64_t)4096 << i}, k, epoch,
				           ROUNDS, 1000 * (k == 0 ? 1 : exp(l[k - 1][i])));
}

static inline struct decide_input input_of(const struct dataset *data)
{
	return (struct decide_input){.data = data, .kernels = 7, .scrub_weight = 0.1};
}

/* The one table that cold_data() is enough for. */
static inline const struct pc_table *decided(struct decision *decision, const struct decide_input *input)
{
	CU_ASSERT_EQUAL_FATAL(decide(input, decision), 0);
	CU_ASSERT_EQUAL_FATAL(decision->table_count, 1);
	CU_ASSERT_EQUAL(decision->tables[0].intent, PAGECLEAR_COLD);
	CU_ASSERT_EQUAL(decision->tables[0].prior, PC_FLUSHED);
	CU_ASSERT_EQUAL(decision->tables[0].threads, 1);
	return &decision->tables[0];
}

#endif
