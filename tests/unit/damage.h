/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Damages to the bytes of a file, the same ones in every run.
 */
#ifndef CELLGATE_TESTS_UNIT_DAMAGE_H
#define CELLGATE_TESTS_UNIT_DAMAGE_H

#include <stddef.h>
#include <stdint.h>

/* Changes a few bytes at a place that `number` decides on: a bit turned, a byte
   of any value, or two, four or eight of the largest or smallest numbers. */
void damage_bytes(unsigned char *bytes, size_t size, unsigned number);

/*
 * Makes the checksums of a zip archive of stored members true again, so that
 * what was damaged is what is read. Bytes that are no such archive stay.
 */
void damage_reseal_zip(unsigned char *bytes, size_t size);

#endif
