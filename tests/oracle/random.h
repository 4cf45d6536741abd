/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reproducible random numbers for tests: the same seed gives the same numbers
 * on every machine. The generator is SplitMix64 (Steele, Lea & Flood 2014).
 */
#ifndef TESTS_ORACLE_RANDOM_H
#define TESTS_ORACLE_RANDOM_H

#include <stdint.h>

typedef struct random_source {
    uint64_t state;
} random_source;

/* A source whose numbers depend on both arguments. */
random_source random_from(uint64_t seed, uint64_t stream);

uint64_t random_bits(random_source *source);

/* Uniform in [0, 1), a multiple of 2^-53. */
double random_unit(random_source *source);

/* Uniform in [low, high). */
double random_between(random_source *source, double low, double high);

/* Uniform among the integers low to high, both included; low <= high. */
int64_t random_integer(random_source *source, int64_t low, int64_t high);

#endif
