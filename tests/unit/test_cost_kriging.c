/* SPDX-License-Identifier: Apache-2.0 */
/* Expected values: the textbook formulas in numpy 2.4.6 (numpy.linalg.solve
   over the covariance matrix). */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/cost/kriging.h"

static const double places[][CG_KRIGING_AXES] = {
    { 0, 0, 2 }, { 3, 1, 2 }, { 1, 4, 2 }, { 5, 5, 1 }
};
static const double values[] = { 0.1, -0.2, 0.3, 0.05 };
static const double errors[] = { 0.01, 0.02, 0.03, 0.01 };

static void assert_at(const cg_kriging *kriging, double x, double y, double z,
                      double value, double error)
{
    const double place[] = { x, y, z };
    double found, off;

    cg_kriging_at(kriging, place, &found, &off);
    if (fabs(found - value) > 1e-9 || fabs(off - error) > 1e-9)
        fail_msg("(%g, %g, %g): %.12g +- %.12g, not %.12g +- %.12g", x, y, z,
                 found, off, value, error);
}

static void agrees_with_numpy(void **state)
{
    cg_kriging *kriging = cg_kriging_create(places, values, errors, 4);

    (void)state;
    assert_non_null(kriging);
    assert_at(kriging, 2, 2, 2, 0.038126497210873994, 0.18321232795218448);
    assert_at(kriging, 0, 0, 2, 0.10004202817152846, 0.007856851294030002);
    assert_at(kriging, 20, 20, 2, 6.906862354226973e-12, 0.23575886970498777);
    cg_kriging_destroy(kriging);
}

/* Without values, what is believed at first: none, give or take 0.3. */
static void nothing_seen(void **state)
{
    cg_kriging *kriging = cg_kriging_create(NULL, NULL, NULL, 0);

    (void)state;
    assert_at(kriging, 1, 2, 3, 0, 0.3);
    cg_kriging_destroy(kriging);
    cg_kriging_destroy(NULL);
}

static void too_many(void **state)
{
    static double many[CG_KRIGING_MOST + 1][CG_KRIGING_AXES];
    static double zeros[CG_KRIGING_MOST + 1];

    (void)state;
    assert_null(cg_kriging_create((const double(*)[CG_KRIGING_AXES])many, zeros,
                                  zeros, CG_KRIGING_MOST + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(agrees_with_numpy),
        cmocka_unit_test(nothing_seen),
        cmocka_unit_test(too_many),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
