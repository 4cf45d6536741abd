/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The load of resources and the turn that a request takes, with a clock that
 * the tests set; and both together as a simulation of events, whose end is
 * compared with the best static split, found by trying all of them.
 */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "runtime/schedule/dispatch.h"
#include "runtime/schedule/load.h"

static double the_time;

static double tell(void *context)
{
    (void)context;
    return the_time;
}

static const cg_clock clock_set = { tell, NULL, NULL };

static void assert_near(double a, double b)
{
    if (fabs(a - b) > 1e-9)
        fail_msg("%g is not %g", a, b);
}

/* ---- Loads -------------------------------------------------------------- */

static void a_free_resource_is_not_waited_for(void **state)
{
    cg_loads *loads = cg_loads_create(&clock_set);
    cg_load *load = cg_loads_of(loads, "cpu", 2);

    (void)state;
    the_time = 100;
    assert_ptr_equal(cg_loads_of(loads, "cpu", 8), load);
    assert_ptr_not_equal(cg_loads_of(loads, "card", 1), load);
    assert_int_equal(cg_load_places(load), 2);
    assert_near(cg_load_wait(load, 1), 0);
    assert_near(cg_load_wait(load, 2), 0);
    cg_loads_release(loads);
}

static void requests_stand_behind_each_other(void **state)
{
    cg_loads *loads = cg_loads_create(&clock_set);
    cg_load *load = cg_loads_of(loads, "cpu", 2);
    cg_hold first, second, third;

    (void)state;
    the_time = 100;
    cg_load_begin(load, 1, 3, &first);
    assert_near(cg_load_wait(load, 1), 0);
    assert_near(cg_load_wait(load, 2), 3);
    cg_load_begin(load, 1, 5, &second);
    assert_near(cg_load_wait(load, 1), 3);
    assert_near(cg_load_wait(load, 2), 5);
    cg_load_begin(load, 2, 1, &third); /* from 105 to 106 */
    assert_near(cg_load_wait(load, 1), 6);
    the_time = 102; /* a second sooner than predicted */
    assert_false(cg_load_end(load, &first));
    assert_near(cg_load_wait(load, 1), 3);
    the_time = 107; /* two seconds late */
    assert_false(cg_load_end(load, &second));
    the_time = 108;
    assert_false(cg_load_end(load, &third));
    assert_near(cg_load_wait(load, 2), 0);
    cg_loads_release(loads);
}

/* A request that is alone from begin to end says what it costs. */
static void who_was_alone(void **state)
{
    cg_loads *loads = cg_loads_create(&clock_set);
    cg_load *load = cg_loads_of(loads, "card", 4);
    cg_hold first, second;

    (void)state;
    the_time = 1;
    cg_load_begin(load, 1, 1, &first);
    assert_true(cg_load_end(load, &first));
    cg_load_begin(load, 1, 1, &first);
    cg_load_begin(load, 1, 1, &second);
    assert_false(cg_load_end(load, &second)); /* it came second */
    assert_false(cg_load_end(load, &first));  /* another came and went */
    cg_load_begin(load, 1, 1, &first);
    assert_true(cg_load_end(load, &first));
    cg_loads_release(loads);
}

/* What is predicted to end by now and has not still holds its place. */
static void a_late_request_is_no_wait(void **state)
{
    cg_loads *loads = cg_loads_create(&clock_set);
    cg_load *load = cg_loads_of(loads, "card", 1);
    cg_hold hold;

    (void)state;
    the_time = 1;
    cg_load_begin(load, 1, 1, &hold);
    the_time = 9;
    assert_true(cg_load_wait(load, 1) > 0);
    (void)cg_load_end(load, &hold);
    cg_loads_release(loads);
}

/* ---- Turns --------------------------------------------------------------- */

static void the_first_to_end_is_taken(void **state)
{
    const cg_turn free_ones[] = { { 1, 0, 1 }, { 5, 0, 0.2 } };
    const cg_turn busy[] = { { 1, 3.5, 1 }, { 5, 0, 0.2 } };
    const cg_turn busier[] = { { 1, 4.5, 1 }, { 5, 0, 0.2 } };
    const cg_turn equal[] = { { 2, 0, 1 }, { 2, 0, 1 } };

    (void)state;
    assert_int_equal(cg_dispatch(free_ones, 2, 0), 0);
    assert_int_equal(cg_dispatch(busy, 2, 0), 0);
    assert_int_equal(cg_dispatch(busier, 2, 0), 1);
    assert_int_equal(cg_dispatch(equal, 2, 0), 0);
    assert_int_equal(cg_dispatch(equal, 1, 7), 0);
}

/* A line of ten would keep the fast one busy for ten seconds. */
static void a_line_sends_to_slower_ones(void **state)
{
    const cg_turn turns[] = { { 1, 0.5, 1 }, { 5, 0, 0.2 } };
    const cg_turn fast_is_free[] = { { 1, 0, 1 }, { 5, 0, 0.2 } };

    (void)state;
    assert_int_equal(cg_dispatch(turns, 2, 2), 0);
    assert_int_equal(cg_dispatch(turns, 2, 10), 1);
    assert_int_equal(cg_dispatch(fast_is_free, 2, 10), 0);
}

/* ---- A line of requests, as events --------------------------------------- */

#define DEVICES 3
#define THREADS 3

/* A thread that serves the line: it waits for a device, or runs there. */
typedef struct server {
    double end; /* of its request */
    cg_load *load;
    cg_hold hold;
    bool busy;
} server;

static size_t soonest(const server *servers)
{
    size_t best = THREADS;

    for (size_t at = 0; at < THREADS; at++)
        if (servers[at].busy &&
            (best == THREADS || servers[at].end < servers[best].end))
            best = at;
    return best;
}

/* The next request of the line; really[]: what it takes on each device. */
static void serve(server *of, cg_load **loads, const double *predicted,
                  const double *really, double *free_at, size_t behind)
{
    cg_turn turns[DEVICES];
    double start;
    size_t to;

    for (size_t at = 0; at < DEVICES; at++)
        turns[at] = (cg_turn){ predicted[at], cg_load_wait(loads[at], 1),
                               1 / predicted[at] };
    to = cg_dispatch(turns, DEVICES, behind);
    cg_load_begin(loads[to], 1, predicted[to], &of->hold);
    start = free_at[to] > the_time ? free_at[to] : the_time;
    free_at[to] = of->end = start + really[to];
    of->load = loads[to];
    of->busy = true;
}

/* When the last of `count` requests ends. */
static double makespan(const double *predicted, const double *really,
                       size_t count)
{
    static const char *const names[] = { "a", "b", "c" };
    cg_loads *all = cg_loads_create(&clock_set);
    cg_load *loads[DEVICES];
    server servers[THREADS] = { { .busy = false } };
    double free_at[DEVICES] = { 0 }, last = 0;

    the_time = 0;
    for (size_t at = 0; at < DEVICES; at++)
        loads[at] = cg_loads_of(all, names[at], 1);
    for (size_t at = 0; at < THREADS && count > 0; at++)
        serve(&servers[at], loads, predicted, really, free_at, --count);
    for (size_t at = soonest(servers); at < THREADS; at = soonest(servers)) {
        the_time = last = servers[at].end;
        (void)cg_load_end(servers[at].load, &servers[at].hold);
        servers[at].busy = false;
        if (count > 0)
            serve(&servers[at], loads, predicted, really, free_at, --count);
    }
    cg_loads_release(all);
    return last;
}

static double best_split(const double *really, size_t count)
{
    double best = HUGE_VAL;

    for (size_t a = 0; a <= count; a++)
        for (size_t b = 0; a + b <= count; b++) {
            const double end =
                fmax(fmax((double)a * really[0], (double)b * really[1]),
                     (double)(count - a - b) * really[2]);

            best = end < best ? end : best;
        }
    return best;
}

static void a_line_ends_like_the_best_split(void **state)
{
    static const double seconds[][DEVICES] = {
        { 1, 1, 1 }, { 1, 5, 5 }, { 1, 2, 3 },    { 3, 1, 2 },
        { 1, 9, 7 }, { 4, 4, 1 }, { 1, 1.1, 20 }, { 1, 50, 500 },
    };

    (void)state;
    for (size_t at = 0; at < sizeof seconds / sizeof seconds[0]; at++) {
        const double got = makespan(seconds[at], seconds[at], 100);
        const double best = best_split(seconds[at], 100);

        if (got > 1.1 * best)
            fail_msg("row %d: %g s, %g s would do", (int)at, got, best);
    }
}

/* Predictions that are a fifth off in both directions cost little more. */
static void wrong_predictions_do_little_harm(void **state)
{
    static const double predicted[DEVICES] = { 1.2, 2, 3 };
    static const double really[DEVICES] = { 1, 2.4, 3 };

    (void)state;
    assert_true(makespan(predicted, really, 100) <
                1.15 * best_split(really, 100));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_free_resource_is_not_waited_for),
        cmocka_unit_test(requests_stand_behind_each_other),
        cmocka_unit_test(who_was_alone),
        cmocka_unit_test(a_late_request_is_no_wait),
        cmocka_unit_test(the_first_to_end_is_taken),
        cmocka_unit_test(a_line_sends_to_slower_ones),
        cmocka_unit_test(a_line_ends_like_the_best_split),
        cmocka_unit_test(wrong_predictions_do_little_harm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
