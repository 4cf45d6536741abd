/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Products by CLBlast in the OpenCL plugin, on PoCL: when it compiles, what it
 * takes, and what becomes of its errors. Its results are conformance's.
 */
#include "config.h"

#include <math.h>

#include "plugins/opencl/clblast.h"
#include "tests/unit/opencl_rig.h"

/* CLBlast finds this one before the loader's, and the plugin does not. */
static int clblast_builds;

__attribute__((visibility("default"))) CL_API_ENTRY cl_int CL_API_CALL
clBuildProgram(cl_program program, cl_uint count, const cl_device_id *devices,
               const char *options,
               void(CL_CALLBACK *notify)(cl_program, void *), void *data)
{
    clblast_builds++;
    return driver.BuildProgram(program, count, devices, options, notify, data);
}

/* The kernels that it has made. */
static char clblast_kernels[32][48];
static int clblast_kernel_count;

static bool has_made(const char *name)
{
    for (int i = 0; i < clblast_kernel_count; i++)
        if (strcmp(clblast_kernels[i], name) == 0)
            return true;
    return false;
}

__attribute__((visibility("default"))) CL_API_ENTRY cl_kernel CL_API_CALL
clCreateKernel(cl_program program, const char *name, cl_int *code)
{
    if (!has_made(name) && clblast_kernel_count < 32)
        (void)snprintf(clblast_kernels[clblast_kernel_count++],
                       sizeof clblast_kernels[0], "%s", name);
    return driver.CreateKernel(program, name, code);
}

static cellgate_device *open_with(const char *wanted)
{
    cellgate_device *device;

    clblast = wanted;
    device = open_device();
    clblast = "auto";
    return device;
}

static int offered(cellgate_device *device)
{
    cellgate_variant variant = { .struct_size = sizeof variant };
    int count = 0;

    for (uint32_t i = 0; table->support(device, &segment, NULL, i, &variant,
                                        &error) == CELLGATE_OK;
         i++) {
        count += variant.pack == OCL_PACK_CLBLAST;
        assert_true((variant.pack == OCL_PACK_CLBLAST) ==
                    (strstr(variant.name, "clblast") != NULL));
        if (variant.pack == OCL_PACK_CLBLAST)
            assert_int_equal(variant.numeric, CELLGATE_NUMERIC_F32);
    }
    return count;
}

/* On a CPU where it is asked for; elsewhere where it is not declined. */
static void test_where_it_is_offered(void **state)
{
    cl_device_type *type = &instance->found.devices[0].type;
    const cl_device_type before = *type;
    const struct {
        const char *wanted;
        cl_device_type type;
        bool is_offered;
    } cases[] = {
        { "auto", CL_DEVICE_TYPE_CPU, false },
        { "yes", CL_DEVICE_TYPE_CPU, true },
        { "no", CL_DEVICE_TYPE_GPU, false },
        { "auto", CL_DEVICE_TYPE_GPU, true },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cellgate_device *device;
        cellgate_weights *weights = NULL;

        *type = cases[i].type;
        device = open_with(cases[i].wanted);
        *type = before;
        assert_int_equal(offered(device), cases[i].is_offered ? 4 : 0);
        if (!cases[i].is_offered)
            assert_int_equal(table->prepare(device, &segment, OCL_PACK_CLBLAST,
                                            &weights, &error),
                             CELLGATE_INVALID);
        assert_int_equal(device->clblast_woken, 0); /* nothing is compiled */
        table->device_close(device);
    }
}

/* It compiles when weights are prepared, once a device, and for its own pack
   only; what is computed is what our own kernels compute. */
static void test_woken_once(void **state)
{
    cellgate_device *device = open_with("yes");
    cellgate_weights *own = prepare(device), *weights, *again;
    cellgate_plan *plan = NULL;
    uint64_t built;
    int builds;

    (void)state;
    assert_int_equal(device->clblast_woken, 0);
    assert_int_equal(clblast_builds, 0);
    assert_int_equal(table->plan_create(device, own, 0, &shape, &plan, &error),
                     CELLGATE_OK);
    assert_int_equal(run(plan, first_y), CELLGATE_OK);
    table->plan_destroy(plan);
    weights = prepare_pack(device, OCL_PACK_CLBLAST);
    assert_int_equal(device->clblast_woken, 1);
    again = prepare_pack(device, OCL_PACK_CLBLAST);
    assert_int_equal(device->clblast_woken, 1);
    built = device->built;
    builds = clblast_builds;
    assert_true(builds > 0);
    for (uint64_t id = 0; next_variant(weights, &id); id++) {
        assert_int_equal(
            table->plan_create(device, weights, id, &shape, &plan, &error),
            CELLGATE_OK);
        for (int chunk = STEPS; chunk > 0; chunk -= 33) { /* also in pieces */
            plan->stages[0].chunk = chunk;
            assert_int_equal(run(plan, y), CELLGATE_OK);
            for (int i = 0; i < BATCH * STEPS * HIDDEN; i++)
                assert_true(fabsf(y[i] - first_y[i]) <= 1e-5f);
        }
        table->plan_destroy(plan);
        /* Weights of another pack are not taken for its own. */
        plan = NULL;
        assert_int_equal(
            table->plan_create(device, own, id, &shape, &plan, &error),
            CELLGATE_INVALID);
    }
    assert_int_equal(device->built, built);
    assert_int_equal(clblast_builds, builds);
    table->weights_free(again);
    table->weights_free(weights);
    table->weights_free(own);
    assert_int_equal(table->memory_used(device), 0);
    table->device_close(device);
}

/* A dense layer over either order of rows, in pieces too. */
static void test_dense(void **state)
{
    enum { DEPTH = 33, UNITS = 21 };
    static float matrix[DEPTH * UNITS], offset[UNITS];
    static float rows[BATCH * STEPS * DEPTH], result[BATCH * STEPS * UNITS];
    const cellgate_dense dense = {
        .op = { sizeof dense, CELLGATE_OP_DENSE, 0 },
        .input_size = DEPTH,
        .units = UNITS,
        .has_bias = 1,
        .activation = { CELLGATE_LINEAR, 0, 0 },
        .kernel = matrix,
        .bias = offset,
    };
    const cellgate_op *const dense_ops[1] = { &dense.op };
    const cellgate_segment product = { sizeof product, 1, 0, dense_ops };
    cellgate_device *device = open_with("yes");
    cellgate_weights *weights = NULL;
    cellgate_plan *plan = NULL;
    uint64_t id = 0;

    (void)state;
    make_random(matrix, DEPTH * UNITS, 20);
    make_random(offset, UNITS, 21);
    make_random(rows, BATCH * STEPS * DEPTH, 22);
    while (ocl_variant_at(id)->way != OCL_ROWS ||
           ocl_variant_at(id)->pack != OCL_PACK_CLBLAST)
        id++;
    assert_int_equal(
        table->prepare(device, &product, OCL_PACK_CLBLAST, &weights, &error),
        CELLGATE_OK);
    assert_int_equal(
        table->plan_create(device, weights, id, &shape, &plan, &error),
        CELLGATE_OK);
    for (int form = 0; form < 4; form++) {
        const bool by_step = form % 2;
        const size_t before = plan->gathered.size;
        const cellgate_segment_run r = {
            .struct_size = sizeof r,
            .batch = BATCH,
            .steps = STEPS,
            .x = { rows, STEPS * DEPTH, DEPTH, CELLGATE_F32, 0 },
            .y = { result, by_step ? UNITS : STEPS * UNITS,
                   by_step ? BATCH * UNITS : UNITS, CELLGATE_F32, 0 },
        };

        if (form >= 2) /* room for no more than the longest of both needs */
            plan->gathered.size = (size_t)STEPS * (DEPTH + 1) * sizeof(float);
        assert_int_equal(table->run(plan, &r, &error), CELLGATE_OK);
        plan->gathered.size = before;
        for (int b = 0; b < BATCH; b++)
            for (int t = 0; t < STEPS; t++)
                for (int u = 0; u < UNITS; u++) {
                    double sum = offset[u];

                    for (int k = 0; k < DEPTH; k++)
                        sum += (double)rows[(b * STEPS + t) * DEPTH + k] *
                               matrix[k * UNITS + u];
                    assert_true(fabs(result[b * r.y.batch_stride +
                                            t * r.y.time_stride + u] -
                                     sum) <= 1e-5);
                }
    }
    table->plan_destroy(plan);
    table->weights_free(weights);
    table->device_close(device);
}

/* A large product takes other kernels of it than a small one: all of them have
   run when weights are prepared. */
static void test_large_products_are_woken(void **state)
{
    enum { WIDTH = 900, ROWS = 901 };
    float *matrix = calloc((size_t)WIDTH * WIDTH, sizeof *matrix);
    float *rows = calloc((size_t)ROWS * WIDTH, sizeof *rows);
    float *result = calloc((size_t)ROWS * WIDTH, sizeof *result);
    const cellgate_dense dense = {
        .op = { sizeof dense, CELLGATE_OP_DENSE, 0 },
        .input_size = WIDTH,
        .units = WIDTH,
        .activation = { CELLGATE_LINEAR, 0, 0 },
        .kernel = matrix,
    };
    const cellgate_op *const dense_ops[1] = { &dense.op };
    const cellgate_segment product = { sizeof product, 1, 0, dense_ops };
    const cellgate_shape of = { sizeof of, ROWS, 1 };
    const cellgate_segment_run r = {
        .struct_size = sizeof r,
        .batch = ROWS,
        .steps = 1,
        .x = { rows, WIDTH, WIDTH, CELLGATE_F32, 0 },
        .y = { result, WIDTH, WIDTH, CELLGATE_F32, 0 },
    };
    cellgate_device *device = open_with("yes");
    cellgate_weights *weights = NULL;
    cellgate_plan *plan = NULL;
    uint64_t id = 0;
    int count, builds;

    (void)state;
    assert_true(matrix && rows && result);
    for (int i = 0; i < WIDTH; i++)
        matrix[i * WIDTH + i] = 2;
    for (int i = 0; i < ROWS * WIDTH; i++)
        rows[i] = (float)(i % 1013);
    while (ocl_variant_at(id)->way != OCL_ROWS ||
           ocl_variant_at(id)->pack != OCL_PACK_CLBLAST)
        id++;
    assert_int_equal(
        table->prepare(device, &product, OCL_PACK_CLBLAST, &weights, &error),
        CELLGATE_OK);
    assert_true(has_made("Xgemm"));
    count = clblast_kernel_count;
    builds = clblast_builds;
    assert_int_equal(
        table->plan_create(device, weights, id, &of, &plan, &error),
        CELLGATE_OK);
    assert_int_equal(table->run(plan, &r, &error), CELLGATE_OK);
    for (int i = 0; i < ROWS * WIDTH; i++)
        assert_true(result[i] == 2 * rows[i]);
    assert_int_equal(clblast_kernel_count, count);
    assert_int_equal(clblast_builds, builds);
    table->plan_destroy(plan);
    table->weights_free(weights);
    table->device_close(device);
    free(matrix);
    free(rows);
    free(result);
}

static CL_API_ENTRY cl_int CL_API_CALL
no_fill(cl_command_queue queue, cl_mem buffer, const void *pattern,
        size_t pattern_size, size_t at, size_t size, cl_uint count,
        const cl_event *events, cl_event *event)
{
    (void)queue, (void)buffer, (void)pattern, (void)pattern_size, (void)at;
    (void)size, (void)count, (void)events, (void)event;
    return CL_INVALID_OPERATION;
}

/* Where it does not start, its variants are refused with the reason, and those
   of our own run. */
static void test_does_not_start(void **state)
{
    cellgate_device *device = open_with("yes");
    cellgate_weights *weights = NULL;
    cellgate_variant variant = { .struct_size = sizeof variant };
    int refused = 0;

    (void)state;
    instance->api.EnqueueFillBuffer = no_fill;
    assert_int_equal(
        table->prepare(device, &segment, OCL_PACK_CLBLAST, &weights, &error),
        CELLGATE_INTERNAL);
    instance->api = driver;
    assert_null(weights);
    assert_non_null(strstr(error.text, "CLBlast"));
    for (uint32_t i = 0; table->support(device, &segment, NULL, i, &variant,
                                        &error) == CELLGATE_OK;
         i++) {
        assert_int_equal(variant.refusal[0] != '\0',
                         variant.pack == OCL_PACK_CLBLAST);
        refused += variant.refusal[0] != '\0';
    }
    assert_int_equal(refused, 4);
    table->weights_free(prepare(device));
    assert_int_equal(table->memory_used(device), 0);
    table->device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_where_it_is_offered),
        cmocka_unit_test(test_does_not_start),
        cmocka_unit_test(test_woken_once),
        cmocka_unit_test(test_dense),
        cmocka_unit_test(test_large_products_are_woken),
    };

#ifndef HAVE_CLBLAST
    (void)printf("built without CLBlast\n");
    return 77;
#endif
    return opencl_rig_usable()
               ? cmocka_run_group_tests(tests, opencl_rig_start, opencl_rig_end)
               : 77;
}
