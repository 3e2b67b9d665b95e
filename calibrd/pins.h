/*
 * The admin's choices over a table's rules: they come last and win. Pure.
 */
#ifndef CALIBRD_PINS_H
#define CALIBRD_PINS_H

#include <stddef.h>

#include "calibrd/decide.h"

/* Puts the kernels of all pins that apply to the table in their places; where two hold, the later one. The table's
 * rules have room for PC_RULES_MAX. 0, or -E2BIG: more pins than a table holds rules. */
int pins_apply(struct pc_table *table, const struct pin *pins, size_t count);

#endif
