/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/config/suggest.h"

#include <string.h>

/* Longer words are not compared: nobody mistypes those by a letter. */
#define WORD_MAX_LENGTH 63

static char lower(char letter)
{
    return letter >= 'A' && letter <= 'Z' ? (char)(letter - 'A' + 'a') : letter;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/*
 * The edit distance with swaps of neighbours (optimal string alignment),
 * row by row: rows[0] is the current one, rows[1] and rows[2] those before.
 */
static size_t edit_distance(const char *a, size_t a_length, const char *b,
                            size_t b_length)
{
    size_t rows[3][WORD_MAX_LENGTH + 1] = { { 0 } };
    size_t i, j;

    for (j = 0; j <= b_length; j++)
        rows[0][j] = j;
    for (i = 1; i <= a_length; i++) {
        memcpy(rows[2], rows[1], sizeof rows[2]);
        memcpy(rows[1], rows[0], sizeof rows[1]);
        rows[0][0] = i;
        for (j = 1; j <= b_length; j++) {
            int same = lower(a[i - 1]) == lower(b[j - 1]);

            rows[0][j] = least(rows[1][j - 1] + (same ? 0 : 1),
                               least(rows[1][j], rows[0][j - 1]) + 1);
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1]))
                rows[0][j] = least(rows[0][j], rows[2][j - 2] + 1);
        }
    }
    return rows[0][b_length];
}

/* Mistakes forgiven in a word: one in three letters, three at most. */
static size_t tolerance(size_t length)
{
    return length < 3 ? 1 : least(length / 3, 3);
}

void cg_suggestion_init(cg_suggestion *suggestion, const char *word)
{
    suggestion->word = word;
    suggestion->best = NULL;
    suggestion->length = 0;
    suggestion->distance = 0;
}

void cg_suggestion_offer(cg_suggestion *suggestion, const char *candidate,
                         size_t length)
{
    size_t word_length = strlen(suggestion->word);
    size_t distance;

    if (word_length == 0 || length == 0 || word_length > WORD_MAX_LENGTH ||
        length > WORD_MAX_LENGTH)
        return;
    distance = edit_distance(suggestion->word, word_length, candidate, length);
    /* A word with no letter in common is no near miss, however short. */
    if (distance > tolerance(length) || distance >= length ||
        (suggestion->best != NULL && distance >= suggestion->distance))
        return;
    suggestion->best = candidate;
    suggestion->length = (int)length;
    suggestion->distance = distance;
}

void cg_suggestion_offer_choices(cg_suggestion *suggestion, const char *choices)
{
    while (choices != NULL && *choices != '\0') {
        size_t length = strcspn(choices, "|");

        cg_suggestion_offer(suggestion, choices, length);
        choices += length;
        choices += *choices == '|';
    }
}
