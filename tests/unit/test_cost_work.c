/* SPDX-License-Identifier: Apache-2.0 */
/* The work of structures, counted by hand, and costs that are borrowed. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/cost/work.h"

static cg_work read_work(const char *structure)
{
    cg_work work;

    if (!cg_work_read(structure, &work))
        fail_msg("not read: %s", structure);
    return work;
}

static void work_by_hand(void **state)
{
    cg_work work = read_work("lstm 8 32 d1 a1 a2 a2 o1");

    (void)state;
    /* Four gates of 32 units, each from 8 + 32 numbers: 2 * 4 * 32 * 40. */
    assert_true(work.step_operations == 10240 && work.row_operations == 0);
    assert_true(work.step_numbers == 8 + 32 && work.row_numbers == 0);
    assert_int_equal(work.recurrences, 1);
    /* The last output alone (outputs 2), so the Dense is of rows. */
    work = read_work("lstm 8 32 d1 a1 a2 a2 o2; dense 32 1 a0");
    assert_true(work.step_operations == 10240 && work.row_operations == 64);
    assert_true(work.step_numbers == 8 && work.row_numbers == 1);
    /* Two directions with projections to 16: gates from 8 + 16, and 32 * 16. */
    work = read_work("lstm 8 32 p16 d2 nobias a1 a2 a2 a1 a2 a2 o1");
    assert_true(work.step_operations ==
                2 * (2.0 * 4 * 32 * 24 + 2.0 * 32 * 16));
    assert_true(work.step_numbers == 8 + 2 * 16);
    /* Peepholes are no projection. */
    work = read_work("lstm 8 32 d1 peepholes a1 a2 a2 o1");
    assert_true(work.step_operations == 10240);
    work = read_work("embedding 1000 16; lstm 16 4 d1 a1 a2 a2 o1; "
                     "lstm 4 4 d1 reverse a1 a2 a2 o1; softmax 4");
    assert_true(work.step_numbers == 1 + 4);
    assert_int_equal(work.recurrences, 2);
    work = read_work("rows; dense 10 20 nobias a0; activation 20 a3:00000000:"
                     "3f800000");
    assert_true(work.rows && work.step_operations >= 400);
    assert_false(cg_work_read("", &work));
    assert_false(cg_work_read("lstm 8", &work));
    assert_false(cg_work_read("gru 8 32 d1", &work));
    assert_false(cg_work_read("lstm 8 32 d1 a1 a2 a2 o1; gru 8 32", &work));
}

static const cg_cost_shape shape = { 16, 10, 1 };

static cg_surface *surface_of(double launch, double step, double valid)
{
    cg_cost_point points[9];

    for (int at = 0; at < 9; at++) {
        const cg_cost_shape of = { 1 << 3 * (at / 3), 1 << 3 * (at % 3), 1 };
        const double seconds = launch + step * (double)of.steps +
                               valid * (double)(of.batch * of.steps);

        points[at] = (cg_cost_point){
            of, { seconds, seconds, seconds, .error = 0.01, .count = 31 }, 0
        };
    }
    return cg_surface_create(points, 9);
}

static void expect(const cg_surface *lender, const char *of, const char *to,
                   double middle)
{
    const cg_work from = read_work(of), work = read_work(to);
    cg_cost cost;

    cg_cost_borrow(lender, &from, &work, &shape, &cost);
    assert_int_equal(cost.kind, CG_COST_BORROWED);
    assert_true(cost.error >= 0.5);
    if (!(fabs(log(cost.seconds / exp(cost.error) / middle)) < 0.05))
        fail_msg("%g, not %g", cost.seconds / exp(cost.error), middle);
}

#define SMALL "lstm 64 64 d1 a1 a2 a2 o1"
#define LARGE "lstm 128 128 d1 a1 a2 a2 o1"

/* LARGE has 4 times the operations and twice the numbers. */
static void work_costs_what_there_is_of_it(void **state)
{
    cg_surface *all_work = surface_of(0, 0, 1e-6);
    cg_surface *all_launch = surface_of(1e-3, 0, 0);
    cg_surface *all_steps = surface_of(0, 1e-5, 0);

    (void)state;
    expect(all_work, SMALL, SMALL, 160e-6);
    expect(all_work, SMALL, LARGE, 160e-6 * sqrt(8));
    expect(all_work, LARGE, SMALL, 160e-6 / sqrt(8));
    expect(all_launch, SMALL, LARGE, 1e-3);
    expect(all_steps, SMALL, LARGE, 1e-4 * sqrt(sqrt(8)));
    cg_surface_destroy(all_work);
    cg_surface_destroy(all_launch);
    cg_surface_destroy(all_steps);
}

static void the_less_alike_the_less_sure(void **state)
{
    const cg_work small = read_work(SMALL), large = read_work(LARGE);
    const cg_work rows = read_work("rows; dense 64 64 a0");
    const cg_work dense = read_work("dense 64 64 a0");
    cg_surface *lender = surface_of(1e-5, 0, 1e-6);
    cg_cost same, other;

    (void)state;
    cg_cost_borrow(lender, &small, &small, &shape, &same);
    cg_cost_borrow(lender, &small, &large, &shape, &other);
    assert_true(other.error > same.error && same.error >= 0.5);
    cg_cost_borrow(lender, &small, &dense, &shape, &other);
    assert_int_equal(other.kind, CG_COST_NONE);
    cg_cost_borrow(lender, &rows, &dense, &shape, &other);
    assert_int_equal(other.kind, CG_COST_NONE);
    cg_cost_borrow(NULL, &small, &small, &shape, &other);
    assert_int_equal(other.kind, CG_COST_NONE);
    cg_surface_destroy(lender);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(work_by_hand),
        cmocka_unit_test(work_costs_what_there_is_of_it),
        cmocka_unit_test(the_less_alike_the_less_sure),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
