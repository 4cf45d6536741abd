/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs of the CUDA plugin over the stand-ins: what its libraries do to a
 * device, graphs of steps, rows of several lengths.
 */
#include "tests/unit/cuda_rig.h"

/* ---- A library that breaks a device ------------------------------------ */

/* It breaks it, or finds it broken, and tells only that it failed. */
static void breaks_in_a_library_at(const char *name)
{
    long before = standin_library_calls(), count, i;

    assert_int_equal(all_of_it(0, name), CELLGATE_OK);
    count = standin_library_calls() - before;
    assert_true(count > 2);
    for (i = 1; i <= count; i++) {
        standin_reset();
        standin_settings.devices = 2;
        standin_settings.library_breaks = standin_library_calls() + i;
        assert_int_equal(all_of_it(0, name), CELLGATE_DEVICE_LOST);
    }
    standin_reset();
    standin_settings.devices = 2;
    assert_int_equal(all_of_it(1, name), CELLGATE_OK);
}

static void breaks_in_a_library(void **state)
{
    (void)state;
    breaks_in_a_library_at("cudnn");
    breaks_in_a_library_at("step-blas");
}

/* A kernel of ours has broken it when cuDNN refuses, and nobody has asked yet:
   the run says what is worse. */
static void breaks_before_a_refusal(void **state)
{
    const cellgate_dense dense = {
        .op = { sizeof dense, CELLGATE_OP_DENSE, 0 },
        .input_size = INPUT,
        .units = INPUT,
        .kernel = x,
    };
    const cellgate_op *const both[] = { &dense.op, &lstm.op };
    const cellgate_segment longer = { sizeof longer, 2, 0, both };
    cellgate_device *device = open_device(0);
    cellgate_variant variant = find(device, "cudnn-static");
    cellgate_weights *weights = NULL;
    cellgate_plan *plan = NULL;

    (void)state;
    assert_int_equal(
        table->prepare(device, &longer, variant.pack, &weights, &error),
        CELLGATE_OK);
    assert_int_equal(
        table->plan_create(device, weights, variant.id, &shape, &plan, &error),
        CELLGATE_OK);
    assert_int_equal(run(plan), CELLGATE_OK);
    standin_settings.cudnn_refuse = CUD_CUDNN_NOT_SUPPORTED;
    standin_settings.sticky = standin_launches() + 1;
    assert_int_equal(run(plan), CELLGATE_DEVICE_LOST);
    assert_int_equal(error.vendor_code, cudaErrorIllegalAddress);
    table->plan_destroy(plan);
    table->weights_free(weights);
    table->device_close(device);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(breaks_in_a_library),
        TEST(breaks_before_a_refusal),
    };

    return cmocka_run_group_tests(tests, start, NULL);
}
