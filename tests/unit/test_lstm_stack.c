/* SPDX-License-Identifier: Apache-2.0 */
/* Models that are made to be timed. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/model/model.h"
#include "tests/unit/fail_allocation.h"

static const cellgate_lstm_stack two_layers = { sizeof two_layers, 3, 5, 2, 1 };

static void layers_lie_on_one_another(void **state)
{
    cellgate_value_info info = { .struct_size = sizeof info };
    cellgate_model *model = NULL;
    const cellgate_lstm *second;
    const float *kernel;
    bool differ = false;

    (void)state;
    assert_int_equal(cellgate_model_make_lstm(&two_layers, &model, NULL),
                     CELLGATE_OK);
    assert_int_equal(cellgate_model_node_count(model), 2);
    cellgate_model_input_get(model, 0, &info);
    assert_int_equal(info.rank, 3);
    assert_int_equal(info.shape[2], 3);
    assert_int_equal(info.shape[1], CG_UNKNOWN);
    cellgate_model_output_get(model, 0, &info);
    assert_int_equal(info.rank, 3);
    assert_int_equal(info.shape[2], 10);
    second = &model->nodes[1].as.lstm.shape;
    assert_int_equal(second->input_size, 10);
    assert_int_equal(second->directions, 2);
    kernel = model->nodes[1].weights[0].data;
    for (size_t at = 0; at < 10 * 20; at++) {
        assert_true(fabsf(kernel[at]) <= 1 / sqrtf(10));
        differ = differ || kernel[at] != kernel[0];
    }
    assert_true(differ);
    cellgate_model_destroy(model);
}

static void sizes_that_are_none(void **state)
{
    static const cellgate_lstm_stack bad[] = {
        { sizeof bad[0], 0, 5, 1, 0 },     { sizeof bad[0], 3, 0, 1, 0 },
        { sizeof bad[0], 3, 65537, 1, 0 }, { sizeof bad[0], 65537, 5, 1, 0 },
        { sizeof bad[0], 3, 5, 0, 0 },     { sizeof bad[0], 3, 5, 65, 0 },
        { sizeof bad[0], -1, 5, 1, 0 },    { 0, 3, 5, 1, 0 },
    };
    cellgate_model *model = NULL;

    (void)state;
    for (size_t at = 0; at < sizeof bad / sizeof bad[0]; at++)
        assert_int_equal(cellgate_model_make_lstm(&bad[at], &model, NULL),
                         CELLGATE_INVALID);
    assert_int_equal(cellgate_model_make_lstm(NULL, &model, NULL),
                     CELLGATE_INVALID);
    assert_null(model);
}

static cellgate_status make_once(void *context)
{
    cellgate_model *model = NULL;
    cellgate_status status = cellgate_model_make_lstm(context, &model, NULL);

    cellgate_model_destroy(model);
    return status;
}

static void any_allocation_may_fail(void **state)
{
    cellgate_lstm_stack stack = two_layers;

    (void)state;
    assert_true(fail_each_allocation(make_once, &stack) > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_lie_on_one_another),
        cmocka_unit_test(sizes_that_are_none),
        cmocka_unit_test(any_allocation_may_fail),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
