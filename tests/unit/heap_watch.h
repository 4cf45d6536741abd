/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every allocation of the process, also those inside shared libraries (which
 * fail_allocation.h does not see): counted, and made to fail on purpose.
 *
 * A program that is linked with heap_watch.c has its own malloc(), calloc(),
 * realloc(), aligned_alloc(), posix_memalign() and free() before those of the C
 * library, or of a sanitizer in a shared library. What belongs to a watch is
 * what the thread that began it allocates until it ends it.
 */
#ifndef CELLGATE_TESTS_UNIT_HEAP_WATCH_H
#define CELLGATE_TESTS_UNIT_HEAP_WATCH_H

#include <stdbool.h>
#include <stddef.h>

/* The `nth` allocation from here on fails (from 1), and no other; 0: none. */
void heap_watch_begin(size_t nth);
/* Calls `told` when the failure takes place, before the allocation returns: it
   may be the last that is heard of the process. NULL: nobody. */
void heap_watch_tell(void (*told)(void));
/* Returns whether the failure took place. */
bool heap_watch_end(void);

/* Of the last watch, in bytes: the most that was there at once; the largest
   block; what is there still. */
size_t heap_watch_peak(void);
size_t heap_watch_largest(void);
size_t heap_watch_live(void);
/* Allocations, those that failed too. */
size_t heap_watch_count(void);

/* Of the allocation that failed: its size, and whether a function that a shared
   library exports was being called. */
size_t heap_watch_failed_size(void);
bool heap_watch_failed_in(const char *function);

#endif
