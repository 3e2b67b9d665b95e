/*
 * The loads and stores that bring memory and caches into a known state, or read them back. Ordinary code on purpose:
 * what a program would do, never a clear kernel or libc's memset, whose behaviour is what is being measured.
 */
#ifndef CALIBRD_TOUCH_H
#define CALIBRD_TOUCH_H

#include <stddef.h>
#include <stdint.h>

#include "calibrd/random.h"

/* One pass of ordinary stores of non-zero bytes (zero over zero may be elided: Downs 2021). Any address and length. */
void touch_dirty(void *at, size_t bytes);

/* One forward read of every byte; the sum keeps it alive. */
uint64_t touch_read(const void *at, size_t bytes);

/* Every line of [at, at + bytes) once, in a stride of seven lines inside each 4 KiB page. bytes: whole pages. */
uint64_t touch_victim(const void *at, size_t bytes);

/* Lays a chain of pointers through every line, in random order inside each page, pages in order. */
void touch_chain(void *at, size_t bytes, struct random *random);

/* Follows it for that many dependent loads; returns where it ended. */
const void *touch_chase(const void *at, size_t loads);

/* Dependent multiplications with two stores each into a small warm buffer of 256 words. */
void touch_work(uint64_t *scratch, unsigned rounds);

#endif
