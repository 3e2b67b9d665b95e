/*
 * What undid samples and rounds, counted by the meter over a calibration, and where it measured.
 */
#ifndef CALIBRD_TAINTS_H
#define CALIBRD_TAINTS_H

#include <stdint.h>

/* A sample or round counts under one reason at most. What a sample of several threads lost counts once. */
struct taints {
	uint32_t samples, lost, moved;          /* all; those that lost time; those that changed CPUs */
	uint32_t rounds, stolen, slow, strayed; /* all; time stolen; reference loop slow; ended on another CPU */
	uint32_t passed_ms, lost_ms; /* since the meter began; of that the time that its thread did not run */
	int32_t cpu;                 /* that it measured on last; -1: not told */
};

#endif
