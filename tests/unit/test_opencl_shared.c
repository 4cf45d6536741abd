/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfers of the OpenCL plugin, on PoCL: nothing is copied where the device
 * shares the host's memory, and one plan's transfers go on while another plan's
 * kernels run.
 */
#include "config.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "tests/unit/opencl_rig.h"

/* ---- A driver that counts what is copied --------------------------------- */

static size_t written, read_back;

static CL_API_ENTRY cl_int CL_API_CALL counted_write(
    cl_command_queue queue, cl_mem to, cl_bool blocking, size_t at, size_t size,
    const void *from, cl_uint count, const cl_event *events, cl_event *event)
{
    written += size;
    return driver.EnqueueWriteBuffer(queue, to, blocking, at, size, from, count,
                                     events, event);
}

static CL_API_ENTRY cl_int CL_API_CALL
counted_read(cl_command_queue queue, cl_mem from, cl_bool blocking, size_t at,
             size_t size, void *to, cl_uint count, const cl_event *events,
             cl_event *event)
{
    read_back += size;
    return driver.EnqueueReadBuffer(queue, from, blocking, at, size, to, count,
                                    events, event);
}

static void count_copies(void)
{
    instance->api.EnqueueWriteBuffer = counted_write;
    instance->api.EnqueueReadBuffer = counted_read;
    written = read_back = 0;
}

/* ---- Memory that is shared ----------------------------------------------- */

#define X_AT 37 /* odd places, as long as they are floats' */
#define Y_AT 1501

static float *block; /* of host_allocate(): x and y are in it */

static cellgate_status run_block(cellgate_plan *plan)
{
    const cellgate_segment_run r = {
        .struct_size = sizeof r,
        .batch = BATCH,
        .steps = STEPS,
        .x = { block + X_AT, STEPS * INPUT, INPUT, CELLGATE_F32, 0 },
        .lengths = lengths,
        .y = { block + Y_AT, STEPS * HIDDEN, HIDDEN, CELLGATE_F32, 0 },
    };

    memcpy(block + X_AT, x, sizeof x);
    memset(block + Y_AT, 0x7f, sizeof y);
    block[Y_AT - 1] = block[Y_AT + BATCH * STEPS * HIDDEN] = 17;
    return table->run(plan, &r, &error);
}

static void expect_block(const float *wanted)
{
    assert_memory_equal(block + Y_AT, wanted, sizeof y);
    assert_true(block[Y_AT - 1] == 17);
    assert_true(block[Y_AT + BATCH * STEPS * HIDDEN] == 17);
}

static void test_nothing_is_copied(void **state)
{
    static const int32_t short_ones[BATCH] = { 1, 0, 3, STEPS, 2 };
    cellgate_device *device = open_device();
    cellgate_breakdown spent = { .struct_size = sizeof spent };

    (void)state;
    assert_true(instance->found.devices[0].unified);
    block = table->host_allocate(device, (size_t)6000 * sizeof *block);
    assert_non_null(block);
    for (uint32_t pack = 0; pack <= OCL_PACK_HALF; pack++) {
        cellgate_weights *weights = prepare_pack(device, pack);

        for (uint64_t id = 0; next_variant(weights, &id); id++) {
            cellgate_plan *plan = NULL;

            assert_int_equal(
                table->plan_create(device, weights, id, &shape, &plan, &error),
                CELLGATE_OK);
            assert_int_equal(run(plan, first_y), CELLGATE_OK);
            count_copies();
            assert_int_equal(run_block(plan), CELLGATE_OK);
            assert_int_equal(written, 0);
            assert_int_equal(read_back, 0);
            expect_block(first_y);
            assert_int_equal(table->breakdown(plan, &spent, &error),
                             CELLGATE_OK);
            assert_true(spent.compute > 0);

            lengths = short_ones;
            assert_int_equal(run_block(plan), CELLGATE_OK);
            assert_int_equal(written, 2 * BATCH * sizeof(int32_t));
            assert_int_equal(read_back, 0);
            instance->api = driver;
            assert_int_equal(run(plan, y), CELLGATE_OK);
            expect_block(y);
            lengths = NULL;
            table->plan_destroy(plan);
        }
        table->weights_free(weights);
    }
    table->host_release(device, block);
    table->device_close(device);
}

/* Strides of its own: x is read where it lies, y with gaps is copied. */
static void test_strides(void **state)
{
    cellgate_device *device = open_device();
    cellgate_weights *weights = prepare(device);
    cellgate_plan *plan = NULL;
    float *far = table->host_allocate(device, 20000 * sizeof *far);
    const cellgate_segment_run r = {
        .struct_size = sizeof r,
        .batch = BATCH,
        .steps = STEPS,
        .x = { far, INPUT + 2, BATCH * (INPUT + 2) + 1, CELLGATE_F32, 0 },
        .y = { far + 10000, HIDDEN + 1, BATCH * (HIDDEN + 1), CELLGATE_F32, 0 },
    };

    (void)state;
    assert_non_null(far);
    assert_int_equal(
        table->plan_create(device, weights, 0, &shape, &plan, &error),
        CELLGATE_OK);
    assert_int_equal(run(plan, first_y), CELLGATE_OK);
    for (int b = 0; b < BATCH; b++)
        for (int t = 0; t < STEPS; t++)
            memcpy(far + b * r.x.batch_stride + t * r.x.time_stride,
                   x + (b * STEPS + t) * INPUT, INPUT * sizeof *x);
    far[10000 + HIDDEN] = 17; /* a gap of y */
    count_copies();
    assert_int_equal(table->run(plan, &r, &error), CELLGATE_OK);
    instance->api = driver;
    assert_int_equal(written, 0);
    for (int b = 0; b < BATCH; b++)
        for (int t = 0; t < STEPS; t++)
            assert_memory_equal(
                far + 10000 + b * r.y.batch_stride + t * r.y.time_stride,
                first_y + (b * STEPS + t) * HIDDEN, HIDDEN * sizeof *first_y);
    assert_true(far[10000 + HIDDEN] == 17);
    table->plan_destroy(plan);
    table->host_release(device, far);
    table->weights_free(weights);
    table->device_close(device);
}

static CL_API_ENTRY cl_int CL_API_CALL
failing_launch(cl_command_queue queue, cl_kernel what, cl_uint dimensions,
               const size_t *offset, const size_t *global, const size_t *local,
               cl_uint count, const cl_event *events, cl_event *event)
{
    (void)queue, (void)what, (void)dimensions, (void)offset, (void)global;
    (void)local, (void)count, (void)events, (void)event;
    return CL_INVALID_KERNEL_ARGS;
}

/* It is the host's again after a failure too; and memory that another run has
   is copied. */
static void test_one_owner(void **state)
{
    cellgate_device *device = open_device();
    cellgate_weights *weights = prepare(device);
    cellgate_plan *plan = NULL;
    int another;

    (void)state;
    block = table->host_allocate(device, (size_t)6000 * sizeof *block);
    assert_int_equal(
        table->plan_create(device, weights, 0, &shape, &plan, &error),
        CELLGATE_OK);
    assert_int_equal(run(plan, first_y), CELLGATE_OK);
    instance->api.EnqueueNDRangeKernel = failing_launch;
    assert_int_equal(run_block(plan), CELLGATE_INTERNAL);
    instance->api = driver;
    assert_int_equal(run_block(plan), CELLGATE_OK);
    expect_block(first_y);

    assert_non_null(ocl_pinned_claim(device, &another, block, 1));
    assert_null(ocl_pinned_claim(device, plan, block, 1));
    count_copies();
    assert_int_equal(run_block(plan), CELLGATE_OK);
    assert_int_equal(written, sizeof x);
    assert_int_equal(read_back, sizeof y);
    expect_block(first_y);
    ocl_pinned_let_go(device, &another);
    count_copies();
    assert_int_equal(run_block(plan), CELLGATE_OK);
    instance->api = driver;
    assert_int_equal(written + read_back, 0);

    /* Not a byte beyond it. */
    assert_non_null(ocl_pinned_claim(device, plan, block, 4096 * 6 - 1));
    assert_null(ocl_pinned_claim(device, plan, block + 1, 4096 * 6));
    assert_null(ocl_pinned_claim(device, plan, block - 1, 4));
    assert_null(ocl_pinned_claim(device, plan, x, 4));
    ocl_pinned_let_go(device, plan);
    table->plan_destroy(plan);
    table->host_release(device, block);
    table->weights_free(weights);
    table->device_close(device);
}

static CL_API_ENTRY cl_mem CL_API_CALL elsewhere(cl_context context,
                                                 cl_mem_flags flags,
                                                 size_t size, void *from,
                                                 cl_int *code)
{
    (void)from;
    flags &= ~(cl_mem_flags)CL_MEM_USE_HOST_PTR;
    return driver.CreateBuffer(context, flags | CL_MEM_ALLOC_HOST_PTR, size,
                               NULL, code);
}

/* A driver that maps at another place than it was given: there is memory all
   the same, which is copied. */
static void test_not_in_place(void **state)
{
    cellgate_device *device = open_device();
    cellgate_weights *weights = prepare(device);
    cellgate_plan *plan = NULL;

    (void)state;
    instance->api.CreateBuffer = elsewhere;
    block = table->host_allocate(device, (size_t)6000 * sizeof *block);
    instance->api = driver;
    assert_non_null(block);
    assert_null(ocl_pinned_claim(device, weights, block, 1));
    assert_int_equal(
        table->plan_create(device, weights, 0, &shape, &plan, &error),
        CELLGATE_OK);
    assert_int_equal(run(plan, first_y), CELLGATE_OK);
    count_copies();
    assert_int_equal(run_block(plan), CELLGATE_OK);
    instance->api = driver;
    assert_int_equal(written, sizeof x);
    assert_int_equal(read_back, sizeof y);
    expect_block(first_y);
    table->plan_destroy(plan);
    table->host_release(device, block);
    table->weights_free(weights);
    table->device_close(device);
}

/* ---- Two plans in flight --------------------------------------------------
 */

static cl_command_queue held_queue;
static cl_event gate; /* kernels of that queue wait for it */
static atomic_int held, done;

static CL_API_ENTRY cl_int CL_API_CALL
gated_launch(cl_command_queue queue, cl_kernel what, cl_uint dimensions,
             const size_t *offset, const size_t *global, const size_t *local,
             cl_uint count, const cl_event *events, cl_event *event)
{
    const bool first = queue == held_queue && atomic_exchange(&held, 1) == 0;

    return driver.EnqueueNDRangeKernel(queue, what, dimensions, offset, global,
                                       local, first ? 1 : count,
                                       first ? &gate : events, event);
}

static void *run_held(void *plan)
{
    static float held_y[BATCH * STEPS * HIDDEN];
    const cellgate_segment_run r = {
        .struct_size = sizeof r,
        .batch = BATCH,
        .steps = STEPS,
        .x = { x, STEPS * INPUT, INPUT, CELLGATE_F32, 0 },
        .y = { held_y, STEPS * HIDDEN, HIDDEN, CELLGATE_F32, 0 },
    };
    cellgate_error its = CELLGATE_ERROR_INIT;
    const cellgate_status status = table->run(plan, &r, &its);

    atomic_store(&done, 1);
    return status == CELLGATE_OK ? held_y : NULL;
}

/* While the kernels of one plan run, the other's uploads, kernels and downloads
   are begun and ended. */
static void test_plans_overlap(void **state)
{
    cl_event(CL_API_CALL * create)(cl_context, cl_int *);
    cl_int(CL_API_CALL * set)(cl_event, cl_int);
    cellgate_device *device = open_device();
    cellgate_weights *weights = prepare(device);
    cellgate_plan *first = NULL, *second = NULL;
    pthread_t thread;
    void *result = NULL, *symbol;

    (void)state;
    symbol = dlsym(instance->api.library, "clCreateUserEvent");
    memcpy(&create, &symbol, sizeof create);
    symbol = dlsym(instance->api.library, "clSetUserEventStatus");
    memcpy(&set, &symbol, sizeof set);
    assert_int_equal(
        table->plan_create(device, weights, 0, &shape, &first, &error),
        CELLGATE_OK);
    assert_int_equal(
        table->plan_create(device, weights, 0, &shape, &second, &error),
        CELLGATE_OK);
    assert_int_equal(run(second, first_y), CELLGATE_OK);
    held_queue = first->queue;
    gate = create(device->context, NULL);
    assert_non_null(gate);
    instance->api.EnqueueNDRangeKernel = gated_launch;
    assert_int_equal(pthread_create(&thread, NULL, run_held, first), 0);
    while (!atomic_load(&held))
        (void)sched_yield();
    for (int i = 0; i < 10; i++) {
        memset(y, 0, sizeof y);
        assert_int_equal(run(second, y), CELLGATE_OK);
        assert_memory_equal(y, first_y, sizeof y);
    }
    assert_int_equal(atomic_load(&done), 0);
    assert_int_equal(set(gate, CL_COMPLETE), CL_SUCCESS);
    assert_int_equal(pthread_join(thread, &result), 0);
    instance->api = driver;
    assert_non_null(result);
    assert_memory_equal(result, first_y, sizeof first_y);
    (void)driver.ReleaseEvent(gate);
    table->plan_destroy(first);
    table->plan_destroy(second);
    table->weights_free(weights);
    table->device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_copied),
        cmocka_unit_test(test_strides),
        cmocka_unit_test(test_one_owner),
        cmocka_unit_test(test_not_in_place),
        cmocka_unit_test(test_plans_overlap),
    };

    return opencl_rig_usable()
               ? cmocka_run_group_tests(tests, opencl_rig_start, opencl_rig_end)
               : 77;
}
