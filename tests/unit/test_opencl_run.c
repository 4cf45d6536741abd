/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenCL plugin's own promises beyond the ABI's, on PoCL: what is compiled
 * when, what a plan takes, and that nothing grows.
 */
#include "config.h"

#include <dirent.h>
#include <math.h>
#include <unistd.h>

#include "tests/unit/opencl_rig.h"

/* ---- What is compiled when --------------------------------------------- */

/* A device opened anew, as in another process, compiles nothing; and no run
   compiles or loads anything. */
static void test_second_compiles_nothing(void **state)
{
    cellgate_device *device = open_device();
    cellgate_weights *weights;
    cellgate_plan *plan = NULL;
    uint64_t built, loaded;

    (void)state;
    weights = prepare(device);
    built = device->built;
    assert_true(built > 0);
    assert_int_equal(device->loaded, 0);
    for (uint64_t variant = 0; ocl_variant_at(variant); variant++) {
        assert_int_equal(
            table->plan_create(device, weights, variant, &shape, &plan, &error),
            CELLGATE_OK);
        assert_int_equal(run(plan, y), CELLGATE_OK);
        table->plan_destroy(plan);
    }
    assert_int_equal(device->built, built);
    table->weights_free(weights);
    table->device_close(device);

    device = open_device();
    weights = prepare(device);
    loaded = device->loaded;
    assert_int_equal(device->built, 0);
    assert_int_equal(loaded, built);
    assert_int_equal(
        table->plan_create(device, weights, 0, &shape, &plan, &error),
        CELLGATE_OK);
    assert_int_equal(run(plan, y), CELLGATE_OK);
    assert_int_equal(device->built, 0);
    assert_int_equal(device->loaded, loaded);
    table->plan_destroy(plan);
    table->weights_free(weights);
    table->device_close(device);
}

/* ---- Lengths that stay on the device ------------------------------------ */

/* Full lengths are there already when a run is like the one before; not after
   others. A row that ends early is zeros from there on. */
static void test_lengths_change(void **state)
{
    static const int32_t short_ones[BATCH] = { 1, 0, 3, STEPS, 2 };
    cellgate_device *device = open_device();
    cellgate_weights *weights = prepare(device);
    cellgate_plan *plan = NULL;

    (void)state;
    for (uint64_t variant = 0; ocl_variant_at(variant); variant++) {
        assert_int_equal(
            table->plan_create(device, weights, variant, &shape, &plan, &error),
            CELLGATE_OK);
        assert_int_equal(run(plan, first_y), CELLGATE_OK);
        assert_int_equal(run(plan, y), CELLGATE_OK);
        assert_memory_equal(y, first_y, sizeof y);
        lengths = short_ones;
        assert_int_equal(run(plan, y), CELLGATE_OK);
        assert_memory_equal(y, first_y, HIDDEN * sizeof(float));
        for (size_t i = HIDDEN; i < (size_t)2 * STEPS * HIDDEN; i++)
            assert_true(y[i] == 0.0f);
        lengths = NULL;
        assert_int_equal(run(plan, y), CELLGATE_OK);
        assert_memory_equal(y, first_y, sizeof y);
        table->plan_destroy(plan);
    }
    table->weights_free(weights);
    table->device_close(device);
}

/* ---- What a plan takes ------------------------------------------------- */

/* Where only the last output is made, no memory for every step's; and what is
   not made is not handed out. */
static void test_last_only(void **state)
{
    const cellgate_shape one = { sizeof one, BATCH, 1 };
    cellgate_device *device = open_device();
    cellgate_weights *weights;
    cellgate_plan *plan = NULL;
    uint64_t before, of_one;

    (void)state;
    lstm.outputs = CELLGATE_LSTM_LAST;
    weights = prepare(device);
    before = table->memory_used(device);
    assert_int_equal(
        table->plan_create(device, weights, 0, &one, &plan, &error),
        CELLGATE_OK);
    of_one = table->memory_used(device) - before;
    table->plan_destroy(plan);
    assert_int_equal(
        table->plan_create(device, weights, 0, &shape, &plan, &error),
        CELLGATE_OK);
    /* The input alone grows with the steps. */
    assert_string_equal(ocl_variant_at(0)->name, "fused");
    assert_int_equal(table->memory_used(device) - before - of_one,
                     BATCH * (STEPS - 1) * INPUT * sizeof(float));
    assert_int_equal(run(plan, y), CELLGATE_INVALID);
    assert_non_null(strstr(error.text, "no sequence"));
    table->plan_destroy(plan);
    table->weights_free(weights);
    table->device_close(device);
    lstm.outputs = CELLGATE_LSTM_SEQUENCE;
}

/* A card that drives a display: no launch of the whole-sequence kernels does
   more than 8192 steps, however few bytes their products are. */
static void test_steps_of_a_launch(void **state)
{
    const cellgate_shape long_one = { sizeof long_one, 1, 30000 };
    cellgate_device *device = open_device();
    cellgate_weights *weights = prepare(device);
    cellgate_plan *plan = NULL;
    bool *unified = &instance->found.devices[0].unified;
    const bool before = *unified;

    (void)state;
    *unified = false;
    for (uint64_t variant = 0; variant < 4; variant++) {
        assert_int_equal(table->plan_create(device, weights, variant, &long_one,
                                            &plan, &error),
                         CELLGATE_OK);
        assert_int_equal(plan->stages[0].chunk, 8192);
        table->plan_destroy(plan);
    }
    *unified = before;
    table->weights_free(weights);
    table->device_close(device);
}

/* A device whose groups are long and flat. */
static void test_flat_groups(void **state)
{
    size_t *second = &instance->found.devices[0].second;
    const size_t before = *second;
    cellgate_device *device;
    cellgate_weights *weights;
    cellgate_plan *plan = NULL;

    (void)state;
    lengths = NULL;
    device = open_device();
    weights = prepare(device);
    assert_int_equal(
        table->plan_create(device, weights, 0, &shape, &plan, &error),
        CELLGATE_OK);
    assert_int_equal(run(plan, first_y), CELLGATE_OK);
    table->plan_destroy(plan);
    table->weights_free(weights);
    table->device_close(device);

    kernels = "lanes";
    *second = 1;
    device = open_device();
    assert_int_equal(device->side, 1);
    assert_int_equal(device->slices, 1);
    weights = prepare(device);
    for (uint64_t variant = 2; ocl_variant_at(variant); variant++) {
        assert_int_equal(
            table->plan_create(device, weights, variant, &shape, &plan, &error),
            CELLGATE_OK);
        assert_int_equal(run(plan, y), CELLGATE_OK);
        for (size_t i = 0; i < BATCH * STEPS * HIDDEN; i++)
            assert_true(fabsf(y[i] - first_y[i]) <= 1e-5f);
        table->plan_destroy(plan);
    }
    table->weights_free(weights);
    table->device_close(device);
    kernels = "auto";
    *second = before;
}

/* ---- Nothing grows ----------------------------------------------------- */

static long resident_kilobytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    long size = 0, resident = 0;

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%ld %ld", &size, &resident), 2);
    (void)fclose(file);
    return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

static int open_files(void)
{
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;

    assert_non_null(directory);
    while (readdir(directory))
        count++;
    (void)closedir(directory);
    return count;
}

static void test_a_thousand_plans(void **state)
{
    cellgate_device *device = open_device();
    cellgate_weights *weights = prepare(device);
    const uint64_t before = table->memory_used(device);
    long kilobytes = 0;
    int files = 0, i;

    (void)state;
    for (i = 0; i < 1100; i++) {
        cellgate_plan *plan = NULL;

        if (i == 100) { /* by now everything lazy is there */
            kilobytes = resident_kilobytes();
            files = open_files();
        }
        assert_int_equal(table->plan_create(device, weights, (uint64_t)(i % 6),
                                            &shape, &plan, &error),
                         CELLGATE_OK);
        assert_int_equal(run(plan, y), CELLGATE_OK);
        table->plan_destroy(plan);
    }
    assert_int_equal(table->memory_used(device), before);
    assert_int_equal(open_files(), files);
    if (resident_kilobytes() > kilobytes + 2048)
        fail_msg("%ld KiB became %ld", kilobytes, resident_kilobytes());
    table->weights_free(weights);
    table->device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_second_compiles_nothing),
        cmocka_unit_test(test_lengths_change),
        cmocka_unit_test(test_last_only),
        cmocka_unit_test(test_steps_of_a_launch),
        cmocka_unit_test(test_flat_groups),
        cmocka_unit_test(test_a_thousand_plans),
    };

    return opencl_rig_usable()
               ? cmocka_run_group_tests(tests, opencl_rig_start, opencl_rig_end)
               : 77;
}
