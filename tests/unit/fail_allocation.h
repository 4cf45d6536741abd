/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations that fail on purpose, for testing what happens then.
 *
 * A test program is linked with $(FAIL_ALLOCATION_WRAPS), which sends every
 * malloc(), calloc(), realloc(), strdup(), strndup(), aligned_alloc(),
 * posix_memalign() and free() of the program and of libcellgate-core through
 * this file. Memory that shared libraries allocate inside themselves is not
 * seen.
 *
 * Everything here belongs to the calling thread; other threads allocate as
 * usual. Blocks that one thread allocates under watch and another frees count
 * as live.
 */
#ifndef CELLGATE_TESTS_UNIT_FAIL_ALLOCATION_H
#define CELLGATE_TESTS_UNIT_FAIL_ALLOCATION_H

#include <stdbool.h>
#include <stddef.h>

#include "cellgate/types.h"

/*
 * Watches the allocations from here on; the `nth` one (from 1) fails, and no
 * other. 0: none fails, they are only watched.
 */
void fail_allocation_begin(size_t nth);
/* Ends it. Returns whether the failure took place. */
bool fail_allocation_end(void);
/* Blocks allocated between the last begin and end, and not freed since. */
size_t fail_allocation_live(void);

/*
 * What is tried: it must free all that it makes, whether it succeeds or not,
 * and return the status of the function under test.
 */
typedef cellgate_status (*fail_allocation_attempt)(void *context);

/*
 * Tries with the first allocation failing, then the second, and so on, until
 * an attempt makes all its allocations. A cmocka assertion fails unless every
 * attempt but the last returns NO_MEMORY, the last one returns OK, and no
 * attempt leaves a block behind. Returns how many allocations were failed.
 */
size_t fail_each_allocation(fail_allocation_attempt attempt, void *context);

#endif
