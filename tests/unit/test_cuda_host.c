/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA plugin over the stand-ins when things go wrong: memory that is not
 * there, a device that breaks, a second GPU beside a broken one.
 */
#include "tests/unit/cuda_rig.h"

/* ---- Memory ------------------------------------------------------------ */

/* Each allocation in turn finds none: a clear refusal, and nothing is left. Our
   own path may go on, with fewer input products computed ahead. */
static void no_memory_at(const char *name, bool may_go_on)
{
    long before = standin_mallocs(), count, went_on = 0, i;

    assert_int_equal(all_of_it(0, name), CELLGATE_OK);
    count = standin_mallocs() - before;
    assert_true(count > 10);
    for (i = 1; i <= count; i++) {
        standin_settings.fail_malloc = standin_mallocs() + i;
        if (all_of_it(0, name) == CELLGATE_OK) {
            went_on++;
            continue;
        }
        assert_int_equal(error.status, CELLGATE_DEVICE_MEMORY);
        assert_non_null(strstr(error.text, "bytes do not fit into NVIDIA"));
    }
    assert_in_range(went_on, 0, may_go_on ? count / 3 : 0);
    standin_settings.fail_malloc = 0;
    assert_int_equal(all_of_it(0, name), CELLGATE_OK);
}

static void a_run_without_memory(void **state)
{
    (void)state;
    no_memory_at("cudnn", false);
    no_memory_at("step", true);
    no_memory_at("step-blas", true);
}

/* ---- A device that breaks ---------------------------------------------- */

/* It is lost at the launch, whichever that is; another goes on. */
static void breaks_at_a_launch(const char *name)
{
    long before = standin_launches(), count, i;

    assert_int_equal(all_of_it(0, name), CELLGATE_OK);
    count = standin_launches() - before;
    for (i = 1; i <= count; i += i < 8 ? 1 : 5) {
        standin_reset();
        standin_settings.devices = 2;
        standin_settings.sticky = standin_launches() + i;
        assert_int_equal(all_of_it(0, name), CELLGATE_DEVICE_LOST);
        assert_int_equal(error.vendor_code, cudaErrorIllegalAddress);
        assert_int_equal(all_of_it(1, name), CELLGATE_OK);
    }
    standin_reset();
}

static void a_device_is_lost(void **state)
{
    (void)state;
    breaks_at_a_launch("cudnn");
    breaks_at_a_launch("step");
    breaks_at_a_launch("step-blas");
}

/* What was made of it is freed all the same, and answers say what happened. */
static void a_lost_device_answers(void **state)
{
    cellgate_device *device = open_device(0);
    cellgate_variant variant = find(device, "cudnn");
    cellgate_resident *resident = NULL;
    cellgate_weights *weights = NULL;
    cellgate_plan *plan = NULL;

    (void)state;
    assert_int_equal(
        table->prepare(device, &segment, variant.pack, &weights, &error),
        CELLGATE_OK);
    assert_int_equal(
        table->plan_create(device, weights, variant.id, &shape, &plan, &error),
        CELLGATE_OK);
    assert_int_equal(table->resident_create(weights, BATCH, &resident, &error),
                     CELLGATE_OK);
    standin_settings.sticky = standin_launches() + 1;
    assert_int_equal(run(plan), CELLGATE_DEVICE_LOST);
    assert_int_equal(run(plan), CELLGATE_DEVICE_LOST);
    assert_non_null(strstr(error.text, "was lost; it needs a new process"));
    assert_int_equal(
        table->support(device, &segment, NULL, 0, &variant, &error),
        CELLGATE_DEVICE_LOST);
    assert_null(table->host_allocate(device, 100));
    table->resident_destroy(resident);
    table->plan_destroy(plan);
    table->weights_free(weights);
    table->device_close(device);
    standin_settings.sticky = 0;
    assert_int_equal(all_of_it(1, "cudnn"), CELLGATE_OK);
}

/* ---- What is there ----------------------------------------------------- */

/* In the words of who wrote the model. */
static void why_it_is_not_fused(void **state)
{
    static const struct {
        int32_t gate, cell, peepholes, coupled, reverse;
        float clip;
        const char *note;
    } cases[] = {
        { CELLGATE_HARD_SIGMOID, CELLGATE_TANH, 0, 0, 0, 0,
          "recurrent_activation hard_sigmoid is not fused" },
        { CELLGATE_SIGMOID, CELLGATE_RELU, 0, 0, 0, 0,
          "activation relu is not fused" },
        { CELLGATE_SIGMOID, CELLGATE_TANH, 1, 0, 0, 0,
          "peepholes are not fused" },
        { CELLGATE_SIGMOID, CELLGATE_TANH, 0, 1, 0, 0,
          "coupled gates (input_forget) are not fused" },
        { CELLGATE_SIGMOID, CELLGATE_TANH, 0, 0, 1, 0,
          "go_backwards is not fused" },
        { CELLGATE_SIGMOID, CELLGATE_TANH, 0, 0, 0, 3, "clip 3 is not fused" },
    };
    const cellgate_lstm usual = lstm;
    cellgate_device *device = open_device(0);
    size_t i;

    (void)state;
    for (i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cellgate_variant first = { .struct_size = sizeof first };

        lstm.activations[0][0].kind = cases[i].gate;
        lstm.activations[0][1].kind = cases[i].cell;
        lstm.has_peepholes = cases[i].peepholes;
        lstm.coupled = cases[i].coupled;
        lstm.reverse = cases[i].reverse;
        lstm.clip = cases[i].clip;
        assert_int_equal(
            table->support(device, &segment, NULL, 0, &first, &error),
            CELLGATE_OK);
        assert_string_equal(first.name, "step");
        assert_non_null(strstr(first.note, cases[i].note));
        lstm = usual;
    }
    table->device_close(device);
}

/* TF32 came with compute capability 8. */
static void no_tf32_before_8(void **state)
{
    cellgate_variant variant = { .struct_size = sizeof variant };
    cellgate_device *device;
    uint32_t i;

    (void)state;
    table->finish(instance);
    standin_settings.capability = 75;
    assert_int_equal(table->init(&host, &instance, &error), CELLGATE_OK);
    if (table->device_open(instance, 0, NULL, &device, &error) != CELLGATE_OK) {
        assert_non_null(strstr(error.text, "compute capability 7.5"));
        skip(); /* built for newer ones only */
    }
    for (i = 0; table->support(device, &segment, NULL, i, &variant, &error) ==
                CELLGATE_OK;
         i++)
        assert_int_not_equal(variant.numeric, CELLGATE_NUMERIC_TF32);
    assert_true(i > 0);
    table->device_close(device);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_run_without_memory),  TEST(a_device_is_lost),
        TEST(a_lost_device_answers), TEST(why_it_is_not_fused),
        TEST(no_tf32_before_8),
    };

    return cmocka_run_group_tests(tests, start, NULL);
}
