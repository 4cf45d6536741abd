/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is measured next, and whether few measurements find the best candidate
 * nearly everywhere: over a grid of batch 1 to 256 and steps 1 to 512 and four
 * modelled devices with launches, tiles, caches, buses and algorithms that
 * change with the batch, of which the arithmetic is not told.
 */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/cost/survey.h"

#define DEVICES 4
#define CELLS 90

static double in_tiles(int64_t batch, int64_t tile)
{
    return (double)((batch + tile - 1) / tile * tile);
}

static double on_cpu(double hidden, int64_t batch, int64_t steps, int threads)
{
    const double work = 16 * hidden * hidden * (double)steps;
    const double rate = threads * 58e9, step = threads > 1 ? 1.2e-6 : 0.15e-6;
    const double weights = 16 * hidden * hidden * (double)steps / 40e9;
    double compute = in_tiles(batch, 8 * threads) * work / rate;

    if (batch < 4)
        compute = (double)batch * work / (rate / 3);
    return (threads > 1 ? 6e-6 : 1e-6) + (double)steps * step +
           fmax(compute, weights);
}

static double on_gpu(double hidden, int64_t batch, int64_t steps, int large)
{
    const double work = 16 * hidden * hidden * (double)steps;
    const double moved = (double)batch * (double)steps * hidden * 8;

    if (large)
        return 90e-6 + (double)steps * (batch >= 64 ? 7e-6 : 4e-6) +
               in_tiles(batch, 64) * work / 8e12 + moved / 12e9;
    return 40e-6 + (double)steps * (hidden > 128 ? 9e-6 : 3e-6) +
           in_tiles(batch, 32) * work / 2e12 + moved / 6e9;
}

static double modelled(int device, double hidden, const cg_cost_shape *cell)
{
    if (device < 2)
        return on_cpu(hidden, cell->batch, cell->steps, device + 1);
    return on_gpu(hidden, cell->batch, cell->steps, device - 2);
}

/* Park and Miller's generator (1988): the same numbers everywhere. */
static double uniform(uint32_t *seed)
{
    *seed = (uint32_t)((uint64_t)*seed * 48271 % 2147483647);
    return *seed / 2147483647.0;
}

/* Nine samples with 3% of noise, and one in twenty interrupted. */
static void measure(int device, double hidden, const cg_cost_shape *cell,
                    uint32_t *seed, cg_cost_point *point)
{
    double samples[9];

    for (int i = 0; i < 9; i++) {
        double noise = -6;

        for (int k = 0; k < 12; k++)
            noise += uniform(seed);
        samples[i] = modelled(device, hidden, cell) * exp(0.03 * noise);
        if (uniform(seed) < 0.05)
            samples[i] *= 1.5;
    }
    point->shape = *cell;
    cg_summarise(samples, 9, &point->summary);
}

typedef struct survey {
    double hidden;
    uint32_t seed;
    cg_cost_shape cells[CELLS];
    bool measured[CELLS];
    cg_cost_point points[DEVICES][CELLS];
    size_t count;
    cg_surface *surfaces[DEVICES];
} survey;

static void survey_init(survey *of, double hidden, uint32_t seed)
{
    memset(of, 0, sizeof *of);
    of->hidden = hidden;
    of->seed = seed;
    for (size_t i = 0; i < CELLS; i++)
        of->cells[i] = (cg_cost_shape){ (int64_t)1 << (i / 10),
                                        (int64_t)1 << (i % 10), 1 };
}

static void survey_cell(survey *of, size_t cell)
{
    of->measured[cell] = true;
    for (int device = 0; device < DEVICES; device++) {
        measure(device, of->hidden, &of->cells[cell], &of->seed,
                &of->points[device][of->count]);
        cg_surface_destroy(of->surfaces[device]);
        of->surfaces[device] =
            cg_surface_create(of->points[device], of->count + 1);
        assert_non_null(of->surfaces[device]);
    }
    of->count++;
}

/* The corners and the middle, and then what is most in doubt. */
static size_t survey_next(const survey *of)
{
    static const size_t first[] = { 0, 9, 80, 89, 44 };

    if (of->count < sizeof first / sizeof first[0])
        return first[of->count];
    return cg_survey_next((const cg_surface *const *)of->surfaces, NULL,
                          DEVICES, of->cells, NULL, of->measured, CELLS, 1e-3);
}

static bool choice_is_good(const survey *of, size_t cell)
{
    cg_cost costs[DEVICES];
    double best = HUGE_VAL;
    cg_doubt doubt;

    for (int device = 0; device < DEVICES; device++) {
        cg_surface_predict(of->surfaces[device], &of->cells[cell],
                           &costs[device]);
        best = fmin(best, modelled(device, of->hidden, &of->cells[cell]));
    }
    cg_doubt_of(costs, DEVICES, &doubt);
    return modelled((int)doubt.best, of->hidden, &of->cells[cell]) <=
           1.05 * best;
}

static void few_cells_decide_all(void **state)
{
    static const double hidden[] = { 32, 128, 512 };
    static survey of;
    int good = 0, all = 0;

    (void)state;
    for (uint32_t seed = 1; seed <= 5; seed++)
        for (size_t h = 0; h < 3; h++) {
            survey_init(&of, hidden[h], 1000 * seed + (uint32_t)h);
            for (size_t cell = survey_next(&of);
                 cell != SIZE_MAX && of.count < CELLS * 15 / 100;
                 cell = survey_next(&of))
                survey_cell(&of, cell);
            for (size_t cell = 0; cell < CELLS; cell++, all++)
                good += choice_is_good(&of, cell);
            for (int device = 0; device < DEVICES; device++)
                cg_surface_destroy(of.surfaces[device]);
        }
    print_message("%d of %d cells within 5%% of the best\n", good, all);
    assert_true(good >= all * 95 / 100);
}

/* ---- Doubt -------------------------------------------------------------- */

static cg_cost cost_of(double seconds, double error)
{
    return (cg_cost){ seconds, error, CG_COST_INTERPOLATED, 9, 0 };
}

/* With d = 0 the loss is s / sqrt(2 pi); with d = 1 and s = 1 it is
   f(1) - F(-1) = 0.2419707245 - 0.1586552539, of the normal tables. */
static void loss_by_the_formula(void **state)
{
    cg_cost best = cost_of(1, 0), rival = cost_of(1, 0.1);

    (void)state;
    assert_true(fabs(cg_doubt_between(&best, &rival) - 0.0398942280) < 1e-9);
    rival = cost_of(exp(1), 1);
    assert_true(fabs(cg_doubt_between(&best, &rival) - 0.0833154706) < 1e-9);
    rival = cost_of(2, 0);
    assert_true(cg_doubt_between(&best, &rival) == 0);
}

static void unmeasured_is_most_doubtful(void **state)
{
    cg_cost costs[] = {
        cost_of(1, 0.01),
        cost_of(1.1, 0.01),
        { .seconds = HUGE_VAL, .error = HUGE_VAL, .kind = CG_COST_NONE }
    };
    cg_doubt doubt;

    (void)state;
    cg_doubt_of(costs, 3, &doubt);
    assert_int_equal(doubt.best, 0);
    assert_int_equal(doubt.rival, 2);
    assert_true(isinf(doubt.loss));
    cg_doubt_of(costs, 1, &doubt);
    assert_int_equal(doubt.best, 0);
    assert_true(doubt.rival == SIZE_MAX && doubt.loss == 0);
    cg_doubt_of(costs, 0, &doubt);
    assert_true(doubt.best == SIZE_MAX && doubt.loss == 0);
}

static void traffic_comes_first(void **state)
{
    static survey of;
    double weights[CELLS];
    size_t next;

    (void)state;
    survey_init(&of, 128, 7);
    for (int i = 0; i < 5; i++)
        survey_cell(&of, survey_next(&of));
    for (size_t i = 0; i < CELLS; i++)
        weights[i] = i == 33 ? 1 : 0;
    next = cg_survey_next((const cg_surface *const *)of.surfaces, NULL, DEVICES,
                          of.cells, weights, of.measured, CELLS, 0);
    assert_int_equal(next, 33);
    of.measured[33] = true;
    assert_true(cg_survey_next((const cg_surface *const *)of.surfaces, NULL,
                               DEVICES, of.cells, weights, of.measured, CELLS,
                               0) == SIZE_MAX);
    for (int device = 0; device < DEVICES; device++)
        cg_surface_destroy(of.surfaces[device]);
}

/* Where one can run nothing else, there is nothing to find out. */
static void who_cannot_run_is_not_in_doubt(void **state)
{
    static survey of;
    bool nowhere[CELLS] = { false }, at_one[CELLS] = { false };
    const bool *able[DEVICES] = { NULL, nowhere, nowhere, nowhere };
    const cg_surface *surfaces[DEVICES] = { NULL };

    (void)state;
    survey_init(&of, 128, 7);
    survey_cell(&of, 0);
    surfaces[0] = of.surfaces[0];
    assert_true(cg_survey_next(surfaces, able, DEVICES, of.cells, NULL,
                               of.measured, CELLS, 0) == SIZE_MAX);
    at_one[57] = true;
    able[2] = at_one;
    assert_int_equal(cg_survey_next(surfaces, able, DEVICES, of.cells, NULL,
                                    of.measured, CELLS, 0),
                     57);
    for (int device = 0; device < DEVICES; device++)
        cg_surface_destroy(of.surfaces[device]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(few_cells_decide_all),
        cmocka_unit_test(loss_by_the_formula),
        cmocka_unit_test(unmeasured_is_most_doubtful),
        cmocka_unit_test(traffic_comes_first),
        cmocka_unit_test(who_cannot_run_is_not_in_doubt),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
