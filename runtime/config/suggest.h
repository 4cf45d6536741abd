/* SPDX-License-Identifier: Apache-2.0 */
/*
 * "Did you mean ...": among candidates, the word that was probably meant.
 * Nearness is the number of letters inserted, left out, changed or swapped with
 * their neighbour; upper and lower case count as equal.
 */
#ifndef CELLGATE_RUNTIME_CONFIG_SUGGEST_H
#define CELLGATE_RUNTIME_CONFIG_SUGGEST_H

#include <stddef.h>

typedef struct cg_suggestion {
    const char *word; /* as written, NUL-terminated; the caller's */
    const char *best; /* NULL until a candidate is near; the candidate's own
                         memory, `length` bytes */
    int length;
    size_t distance; /* of `best` */
} cg_suggestion;

void cg_suggestion_init(cg_suggestion *suggestion, const char *word);
/* Keeps the candidate if it is near and nearer than those before it. */
void cg_suggestion_offer(cg_suggestion *suggestion, const char *candidate,
                         size_t length);
/* Each of the candidates in "a|b|c". */
void cg_suggestion_offer_choices(cg_suggestion *suggestion,
                                 const char *choices);

#endif
