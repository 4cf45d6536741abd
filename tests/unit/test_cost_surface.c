/* SPDX-License-Identifier: Apache-2.0 */
/* Costs are made from a formula that the surface is not told. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/cost/crossover.h"
#include "runtime/cost/fit.h"
#include "runtime/cost/surface.h"

/* ---- The fit ------------------------------------------------------------- */

static void fit_finds_coefficients(void **state)
{
    /* 1 = 0.5 a + 0.25 b over rows made so that a = 1, b = 2 fits. */
    const double rows[][CG_FIT_UNKNOWNS] = { { 1, 0, 0, 0 },
                                             { 0, 0.5, 0, 0 },
                                             { 0.5, 0.25, 0, 0 } };
    double found[CG_FIT_UNKNOWNS];

    (void)state;
    cg_fit(rows, 3, found);
    assert_true(fabs(found[0] - 1) < 1e-9);
    assert_true(fabs(found[1] - 2) < 1e-9);
    assert_true(found[2] == 0 && found[3] == 0);
}

/* Unconstrained, the second coefficient would be -1; without it the least
   squares of 1 over (1, 2) is 3/5. */
static void fit_keeps_signs(void **state)
{
    const double rows[][CG_FIT_UNKNOWNS] = { { 1, 0, 0, 0 }, { 2, 1, 0, 0 } };
    double found[CG_FIT_UNKNOWNS];

    (void)state;
    cg_fit(rows, 2, found);
    assert_true(fabs(found[0] - 0.6) < 1e-9);
    assert_true(found[1] == 0);
}

static void fit_of_nothing(void **state)
{
    const double rows[][CG_FIT_UNKNOWNS] = { { 0, 0, 0, 0 } };
    double found[CG_FIT_UNKNOWNS];

    (void)state;
    cg_fit(rows, 0, found);
    for (int k = 0; k < CG_FIT_UNKNOWNS; k++)
        assert_true(found[k] == 0);
}

/* ---- The surface -------------------------------------------------------- */

static double modelled(int64_t batch, int64_t steps, double fill)
{
    return 20e-6 + 1e-7 * (double)batch + 2e-6 * (double)steps +
           3e-8 * (double)batch * (double)steps * fill;
}

static cg_cost_point point_at(int64_t batch, int64_t steps, double fill,
                              double seconds)
{
    return (cg_cost_point){ { batch, steps, fill },
                            { .median = seconds,
                              .low = seconds,
                              .high = seconds,
                              .error = 0.01,
                              .count = 9 },
                            0 };
}

static cg_cost predicted(const cg_surface *surface, int64_t batch,
                         int64_t steps, double fill)
{
    const cg_cost_shape shape = { batch, steps, fill };
    cg_cost cost;

    cg_surface_predict(surface, &shape, &cost);
    return cost;
}

static cg_surface *corners(void)
{
    cg_cost_point points[9];
    size_t count = 0;

    for (int64_t batch = 1; batch <= 256; batch *= 16)
        for (int64_t steps = 1; steps <= 256; steps *= 16)
            points[count++] =
                point_at(batch, steps, 1, modelled(batch, steps, 1));
    return cg_surface_create(points, count);
}

static void nothing_is_known_of_nothing(void **state)
{
    cg_surface *empty = cg_surface_create(NULL, 0);
    cg_cost cost = predicted(empty, 4, 4, 1);

    (void)state;
    assert_int_equal(cost.kind, CG_COST_NONE);
    assert_true(isinf(cost.seconds) && isinf(cost.error));
    assert_int_equal(predicted(NULL, 4, 4, 1).kind, CG_COST_NONE);
    cg_surface_destroy(empty);
    cg_surface_destroy(NULL);
}

static void measured_is_exact(void **state)
{
    const cg_cost_point points[] = { point_at(8, 16, 1, 5e-3),
                                     point_at(16, 16, 1, 4e-3) };
    cg_surface *surface = cg_surface_create(points, 2);
    cg_cost cost = predicted(surface, 8, 16, 1);

    (void)state;
    assert_int_equal(cost.kind, CG_COST_EXACT);
    assert_true(cost.seconds == 5e-3);
    assert_true(cost.error == 0.01);
    assert_int_equal(cost.samples, 9);
    cg_surface_destroy(surface);
}

static void form_is_found_between(void **state)
{
    cg_surface *surface = corners();

    (void)state;
    for (int64_t batch = 2; batch < 256; batch *= 3)
        for (int64_t steps = 3; steps < 256; steps *= 2) {
            cg_cost cost = predicted(surface, batch, steps, 1);

            assert_int_equal(cost.kind, CG_COST_INTERPOLATED);
            assert_true(fabs(log(cost.seconds / modelled(batch, steps, 1))) <
                        0.02);
        }
    cg_surface_destroy(surface);
}

static void beyond_is_said_to_be_beyond(void **state)
{
    cg_surface *surface = corners();
    cg_cost near = predicted(surface, 512, 16, 1);
    cg_cost far = predicted(surface, 1 << 20, 16, 1);

    (void)state;
    assert_int_equal(near.kind, CG_COST_EXTRAPOLATED);
    assert_int_equal(far.kind, CG_COST_EXTRAPOLATED);
    assert_true(far.error > near.error);
    cg_surface_destroy(surface);
}

static void fewer_valid_steps_cost_less(void **state)
{
    cg_cost_point points[8];
    size_t count = 0;
    cg_surface *surface;

    (void)state;
    for (int64_t batch = 16; batch <= 256; batch *= 16)
        for (int64_t steps = 16; steps <= 256; steps *= 16)
            for (int half = 0; half < 2; half++)
                points[count++] =
                    point_at(batch, steps, half ? 0.5 : 1,
                             modelled(batch, steps, half ? 0.5 : 1));
    surface = cg_surface_create(points, count);
    assert_true(fabs(log(predicted(surface, 64, 64, 0.75).seconds /
                         modelled(64, 64, 0.75))) < 0.05);
    cg_surface_destroy(surface);
}

/* A point that does not fit the form moves its neighbourhood, not the rest. */
static void local_ratio_stays_local(void **state)
{
    cg_cost_point points[10];
    size_t count = 0;
    cg_surface *surface;

    (void)state;
    for (int64_t batch = 1; batch <= 256; batch *= 16)
        for (int64_t steps = 1; steps <= 256; steps *= 16)
            points[count++] =
                point_at(batch, steps, 1, modelled(batch, steps, 1));
    points[4].summary.median *= 2; /* (16, 16) */
    surface = cg_surface_create(points, count);
    assert_true(predicted(surface, 17, 16, 1).seconds >
                1.7 * modelled(17, 16, 1));
    assert_true(predicted(surface, 240, 240, 1).seconds <
                1.3 * modelled(240, 240, 1));
    cg_surface_destroy(surface);
}

static void more_never_costs_less(void **state)
{
    const cg_cost_point points[] = {
        point_at(1, 64, 1, 1e-3),  point_at(8, 64, 1, 1.01e-3),
        point_at(64, 64, 1, 9e-3), point_at(64, 1, 1, 1e-4),
        point_at(1, 1, 1, 5e-5),   point_at(8, 8, 1, 6e-4),
    };
    cg_surface *surface = cg_surface_create(points, 6);

    (void)state;
    for (int64_t batch = 1; batch <= 64; batch++) {
        cg_cost cost = predicted(surface, batch, 64, 1);

        assert_true(cost.seconds >= 1e-3 * (1 - 1e-12));
        assert_true(batch > 8 || cost.seconds <= 1.01e-3 * (1 + 1e-12));
    }
    cg_surface_destroy(surface);
}

static void better_known_of_two(void **state)
{
    cg_cost_point points[] = { point_at(8, 8, 1, 1e-3), point_at(8, 8, 1, 2e-3),
                               point_at(4, 4, 1, 1e-3) };
    cg_surface *surface;

    (void)state;
    points[1].summary.count = 30;
    points[2].summary.count = 0;
    surface = cg_surface_create(points, 3);
    assert_true(predicted(surface, 8, 8, 1).seconds == 2e-3);
    assert_int_equal(predicted(surface, 4, 4, 1).kind, CG_COST_EXTRAPOLATED);
    cg_surface_destroy(surface);
}

/* ---- Crossovers --------------------------------------------------------- */

/* 10 us + 1 us a row against 100 us + 0.1 us a row: equal at 100 rows. */
static cg_surface *line(double launch, double row)
{
    cg_cost_point points[9];
    size_t count = 0;

    for (int64_t batch = 1; batch <= 256; batch *= 2)
        points[count++] = point_at(batch, 1, 1, launch + row * (double)batch);
    return cg_surface_create(points, count);
}

static void lines_cross_once(void **state)
{
    cg_surface *cpu = line(10e-6, 1e-6), *gpu = line(100e-6, 0.1e-6);
    const cg_cost_shape shape = { 1, 1, 1 };
    cg_crossover found[4];

    (void)state;
    assert_int_equal(
        cg_crossovers(cpu, gpu, &shape, CG_AXIS_BATCH, 1, 256, found, 4), 1);
    assert_in_range(found[0].at, 96, 104);
    assert_true(found[0].second_after);
    assert_in_range(found[0].low, 80, found[0].at);
    assert_in_range(found[0].high, found[0].at, 125);
    assert_int_equal(
        cg_crossovers(gpu, cpu, &shape, CG_AXIS_BATCH, 1, 256, found, 4), 1);
    assert_false(found[0].second_after);
    assert_int_equal(
        cg_crossovers(cpu, gpu, &shape, CG_AXIS_BATCH, 1, 50, found, 4), 0);
    assert_int_equal(
        cg_crossovers(cpu, NULL, &shape, CG_AXIS_BATCH, 1, 256, found, 4), 0);
    assert_int_equal(
        cg_crossovers(cpu, gpu, &shape, CG_AXIS_BATCH, 1, 256, NULL, 0), 1);
    cg_surface_destroy(cpu);
    cg_surface_destroy(gpu);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fit_finds_coefficients),
        cmocka_unit_test(fit_keeps_signs),
        cmocka_unit_test(fit_of_nothing),
        cmocka_unit_test(nothing_is_known_of_nothing),
        cmocka_unit_test(measured_is_exact),
        cmocka_unit_test(form_is_found_between),
        cmocka_unit_test(beyond_is_said_to_be_beyond),
        cmocka_unit_test(fewer_valid_steps_cost_less),
        cmocka_unit_test(local_ratio_stays_local),
        cmocka_unit_test(more_never_costs_less),
        cmocka_unit_test(better_known_of_two),
        cmocka_unit_test(lines_cross_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
