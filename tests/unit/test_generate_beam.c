/* SPDX-License-Identifier: Apache-2.0 */
/* Beam search, against searches of every sequence. */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/generate/beam.h"
#include "tests/unit/fail_allocation.h"

#define WORDS 4
#define STOP 3
#define LONGEST 4
#define MOST 512

/* What may follow which id, and what begins, as rows of logarithms. */
typedef double table[WORDS + 1][WORDS];
/* The same, of each number of ids so far. */
typedef table language[LONGEST];

static uint64_t random_state;

static double random_number(void)
{
    random_state = random_state * UINT64_C(6364136223846793005) +
                   UINT64_C(1442695040888963407);
    return (double)(random_state >> 11) * 0x1p-53;
}

static void make_language(language chances)
{
    for (int row = 0; row < LONGEST * (WORDS + 1); row++) {
        double *to = chances[row / (WORDS + 1)][row % (WORDS + 1)];
        double sum = 0;

        for (int id = 0; id < WORDS; id++)
            sum += to[id] = 0.02 + random_number();
        for (int id = 0; id < WORDS; id++)
            to[id] = log(to[id] / sum);
    }
}

/* Follows a sequence in a language; the next id's logarithms. */
static const double *row_of(language chances, const int32_t *ids,
                            int64_t length)
{
    return chances[length][length == 0 ? WORDS : ids[length - 1]];
}

static void same_everywhere(table one, language chances)
{
    for (int at = 0; at < LONGEST; at++)
        memcpy(chances[at], one, sizeof(table));
}

/* ---- Every sequence ------------------------------------------------------ */

typedef struct sequence {
    double sum, value;
    int length;
    bool stopped;
    int32_t ids[LONGEST];
} sequence;

typedef struct listing {
    sequence all[MOST];
    int count;
} listing;

static void list(language chances, double penalty, sequence so_far,
                 listing *into)
{
    const double *row = row_of(chances, so_far.ids, so_far.length);

    for (int32_t id = 0; id < WORDS; id++) {
        sequence more = so_far;

        more.sum += row[id];
        more.stopped = id == STOP;
        if (!more.stopped)
            more.ids[more.length++] = id;
        if (!more.stopped && more.length < LONGEST) {
            list(chances, penalty, more, into);
            continue;
        }
        more.value =
            more.sum / pow(more.length + (more.stopped ? 1 : 0), penalty);
        assert_true(into->count < MOST);
        into->all[into->count++] = more;
    }
}

static int better_first(const void *a, const void *b)
{
    const double x = ((const sequence *)a)->value;
    const double y = ((const sequence *)b)->value;

    return (x < y) - (x > y);
}

static void search(cg_beam *beam, language chances)
{
    while (beam->live_count > 0) {
        for (int64_t at = 0; at < beam->live_count; at++) {
            const cg_hypothesis *live = &beam->live[at];

            cg_beam_continue(beam, at, row_of(chances, live->ids, live->length),
                             WORDS);
        }
        cg_beam_advance(beam);
    }
}

/* A beam as wide as there are sequences leaves none out. */
static void a_wide_beam_finds_the_best_of_all(void **state)
{
    static const double penalties[3] = { 0, 0.6, 1 };

    (void)state;
    random_state = 3;
    for (int round = 0; round < 60; round++) {
        const double penalty = penalties[round % 3];
        const sequence nothing = { .length = 0 };
        static listing all;
        language chances;
        cg_beam beam;

        make_language(chances);
        all.count = 0;
        list(chances, penalty, nothing, &all);
        qsort(all.all, (size_t)all.count, sizeof all.all[0], better_first);
        assert_int_equal(cg_beam_init(&beam, 100, LONGEST, STOP, penalty, NULL),
                         CELLGATE_OK);
        search(&beam, chances);
        assert_int_equal(beam.finished_count, 100);
        for (int at = 0; at < 100; at++) {
            const cg_hypothesis *got = &beam.finished[at];

            assert_true(fabs(got->value - all.all[at].value) < 1e-12);
            assert_true(fabs(got->sum - all.all[at].sum) < 1e-12);
            assert_int_equal(got->length, all.all[at].length);
            assert_int_equal(got->stopped, all.all[at].stopped);
            assert_memory_equal(got->ids, all.all[at].ids,
                                (size_t)got->length * sizeof got->ids[0]);
        }
        cg_beam_finish(&beam);
    }
}

/*
 * Worked out by hand. 0 begins with 0.6 and 1 with 0.4; after 0 everything has
 * 0.5 or less, after 1 the stop id has 0.9: 0.36 against 0.3 for (0, stop).
 * One that keeps one sequence takes the second.
 */
static void a_beam_of_two_looks_beyond_the_first_id(void **state)
{
    const double none = -INFINITY;
    table one = {
        { log(0.3), log(0.2), none, log(0.5) },
        { log(0.1), none, none, log(0.9) },
        { none, none, none, none },
        { none, none, none, none },
        { log(0.6), log(0.4), none, none },
    };
    language chances;
    cg_beam beam;

    (void)state;
    same_everywhere(one, chances);
    for (int64_t width = 1; width <= 2; width++) {
        assert_int_equal(cg_beam_init(&beam, width, LONGEST, STOP, 0, NULL),
                         CELLGATE_OK);
        search(&beam, chances);
        assert_int_equal(beam.finished_count, width);
        assert_int_equal(beam.finished[0].length, 1);
        assert_int_equal(beam.finished[0].ids[0], width == 1 ? 0 : 1);
        assert_true(fabs(beam.finished[0].sum - log(width == 1 ? 0.3 : 0.36)) <
                    1e-12);
        assert_true(beam.finished[0].stopped);
        cg_beam_finish(&beam);
    }
}

/* Divided by its length, the longer one of two is worth more. */
static void the_penalty_favours_long_sequences(void **state)
{
    const double none = -INFINITY;
    table one = {
        { log(0.5), none, none, log(0.5) }, { none, none, none, none },
        { none, none, none, none },         { none, none, none, none },
        { log(0.7), none, none, log(0.3) },
    };
    language chances;
    cg_beam beam;

    (void)state;
    same_everywhere(one, chances);
    for (int penalty = 0; penalty <= 1; penalty++) {
        assert_int_equal(cg_beam_init(&beam, 2, LONGEST, STOP, penalty, NULL),
                         CELLGATE_OK);
        search(&beam, chances);
        /* Sums: (0, stop) log 0.35, (stop) log 0.3, (0, 0, stop) log 0.175;
           values with the penalty: -0.525, -1.204, -0.581. */
        assert_true(beam.finished[0].length == 1);
        assert_int_equal(beam.finished[1].length, penalty == 0 ? 0 : 2);
        assert_true(beam.finished[1].stopped);
        cg_beam_finish(&beam);
    }
}

/* Of equal ones the earlier: sooner finished, then lower parent, lower id. */
static void ties_are_broken_by_order(void **state)
{
    const double half = log(0.25);
    table one = {
        { half, half, half, half }, { half, half, half, half },
        { half, half, half, half }, { half, half, half, half },
        { half, half, half, half },
    };
    language chances;
    cg_beam beam;

    (void)state;
    same_everywhere(one, chances);
    assert_int_equal(cg_beam_init(&beam, 3, 2, STOP, 0, NULL), CELLGATE_OK);
    search(&beam, chances);
    assert_int_equal(beam.finished_count, 3);
    assert_int_equal(beam.finished[0].length, 0);
    assert_int_equal(beam.finished[1].length, 2);
    assert_int_equal(beam.finished[1].ids[0], 0);
    assert_int_equal(beam.finished[1].ids[1], 0);
    assert_int_equal(beam.finished[2].ids[1], 1);
    cg_beam_finish(&beam);
}

/* Without a stop id all end at the largest length. */
static void there_may_be_no_stop_id(void **state)
{
    language chances;
    cg_beam beam;

    (void)state;
    random_state = 8;
    make_language(chances);
    assert_int_equal(cg_beam_init(&beam, 2, LONGEST, -1, 0.5, NULL),
                     CELLGATE_OK);
    search(&beam, chances);
    assert_int_equal(beam.finished_count, 2);
    assert_int_equal(beam.finished[0].length, LONGEST);
    assert_false(beam.finished[0].stopped);
    cg_beam_finish(&beam);
}

/* Nothing possible follows: what has not finished is gone. */
static void a_dead_end_leaves_nothing(void **state)
{
    const double none = -INFINITY;
    table one = { { none, none, none, none },
                  { none, none, none, none },
                  { none, none, none, none },
                  { none, none, none, none },
                  { 0, none, none, none } };
    language chances;
    cg_beam beam;

    (void)state;
    same_everywhere(one, chances);
    assert_int_equal(cg_beam_init(&beam, 2, LONGEST, STOP, 0, NULL),
                     CELLGATE_OK);
    search(&beam, chances);
    assert_int_equal(beam.finished_count, 0);
    cg_beam_finish(&beam);
    cg_beam_finish(&beam); /* all zeros now */
}

static cellgate_status init_and_finish(void *context)
{
    cg_beam beam;
    const cellgate_status status = cg_beam_init(&beam, 3, 5, STOP, 0, NULL);

    (void)context;
    cg_beam_finish(&beam);
    return status;
}

static void each_allocation_may_fail(void **state)
{
    (void)state;
    assert_int_equal(fail_each_allocation(init_and_finish, NULL), 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wide_beam_finds_the_best_of_all),
        cmocka_unit_test(a_beam_of_two_looks_beyond_the_first_id),
        cmocka_unit_test(the_penalty_favours_long_sequences),
        cmocka_unit_test(ties_are_broken_by_order),
        cmocka_unit_test(there_may_be_no_stop_id),
        cmocka_unit_test(a_dead_end_leaves_nothing),
        cmocka_unit_test(each_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
