/*
 * The child that measures: calibrd executed anew, one order in, records out. It never sees the database or the policy.
 */
#ifndef CALIBRD_WORKER_H
#define CALIBRD_WORKER_H

/* Reads a struct order from in, writes records to out until RECORD_END. Returns what main should return. */
int worker_main(int in, int out);

#endif
