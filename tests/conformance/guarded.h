/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that tells whether someone wrote where he may not: a buffer between
 * two margins, all filled with a pattern. Its data is aligned to 4 bytes and to
 * no more, as the ABI promises no more.
 */
#ifndef TESTS_CONFORMANCE_GUARDED_H
#define TESTS_CONFORMANCE_GUARDED_H

#include <stddef.h>
#include <stdint.h>

/*
 * Bits that no computation gives: a NaN with a payload. A computation that
 * reads a NaN passes its payload on, so what inputs have in their gaps must
 * differ from the pattern, or a result made of it would look like one never
 * written.
 */
#define GUARD_PATTERN 0x7FE5CA1Eu
#define GUARD_INPUT_PATTERN 0x7FD0BAD1u

typedef enum guard_kind {
    GUARD_MARGINS = 0,
    /* The data ends where a page begins that can't be read or written. */
    GUARD_PAGE
} guard_kind;

typedef struct guarded {
    void *data;       /* 32-bit elements: floats or int32 */
    size_t count;     /* elements */
    uint32_t *start;  /* with the margins */
    size_t total;     /* elements with the margins */
    uint32_t *before; /* copy of the elements, after guarded_seal() */
    void *mapping;    /* GUARD_PAGE */
    size_t mapped;
} guarded;

/* `count` elements, all of the pattern; -1 without memory. */
int guarded_init(guarded *g, size_t count, guard_kind kind);
void guarded_finish(guarded *g); /* a zeroed struct is allowed */

/* Everything is the pattern again. */
void guarded_reset(guarded *g);

/* Everything, margins too, has these bits: for inputs, before they're filled.
 */
void guarded_fill(guarded *g, uint32_t bits);

/* Remembers the contents, margins apart; -1 without memory. */
int guarded_seal(guarded *g);

/* Whether contents and margins are as they were at guarded_seal(). */
int guarded_is_sealed(const guarded *g);

/* Whether everything, margins too, is the pattern. */
int guarded_is_blank(const guarded *g);

#endif
