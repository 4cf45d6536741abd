/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What becomes of the driver's errors in the OpenCL plugin, on PoCL: functions
 * of the driver are replaced by ones that fail.
 */
#include "config.h"

#include <dlfcn.h>
#include <math.h>

#include "tests/unit/opencl_rig.h"

/* ---- A driver that fails ----------------------------------------------- */

static size_t largest; /* buffer that it gives */
static cl_int launch_code;

static CL_API_ENTRY cl_mem CL_API_CALL small_buffers(cl_context context,
                                                     cl_mem_flags flags,
                                                     size_t size, void *from,
                                                     cl_int *code)
{
    if (size > largest) {
        *code = CL_MEM_OBJECT_ALLOCATION_FAILURE;
        return NULL;
    }
    return driver.CreateBuffer(context, flags, size, from, code);
}

static CL_API_ENTRY cl_int CL_API_CALL
failing_launch(cl_command_queue queue, cl_kernel what, cl_uint dimensions,
               const size_t *offset, const size_t *global, const size_t *local,
               cl_uint count, const cl_event *events, cl_event *event)
{
    (void)queue, (void)what, (void)dimensions, (void)offset, (void)global;
    (void)local, (void)count, (void)events, (void)event;
    return launch_code;
}

static CL_API_ENTRY cl_int CL_API_CALL
failing_build(cl_program program, cl_uint count, const cl_device_id *devices,
              const char *options,
              void(CL_CALLBACK *notify)(cl_program, void *), void *data)
{
    (void)options;
    (void)driver.BuildProgram(program, count, devices, "-DV=none", notify,
                              data);
    return CL_BUILD_PROGRAM_FAILURE;
}

/* Products computed ahead shrink to what there is; the result is the same. */
static void test_little_memory(void **state)
{
    cellgate_device *device = open_device();
    cellgate_weights *weights = prepare(device);
    const uint64_t before = table->memory_used(device);
    cellgate_plan *plan = NULL;
    const uint64_t whole = 2;

    (void)state;
    assert_string_equal(ocl_variant_at(whole)->name, "whole");
    assert_int_equal(
        table->plan_create(device, weights, whole, &shape, &plan, &error),
        CELLGATE_OK);
    assert_int_equal(plan->stages[0].chunk, STEPS);
    assert_int_equal(run(plan, first_y), CELLGATE_OK);
    table->plan_destroy(plan);
    assert_int_equal(table->memory_used(device), before);

    instance->api.CreateBuffer = small_buffers;
    largest = sizeof y;
    assert_int_equal(
        table->plan_create(device, weights, whole, &shape, &plan, &error),
        CELLGATE_OK);
    assert_true(plan->stages[0].chunk < STEPS);
    assert_int_equal(run(plan, y), CELLGATE_OK);
    assert_memory_equal(y, first_y, sizeof y);
    table->plan_destroy(plan);
    assert_int_equal(table->memory_used(device), before);

    largest = sizeof y - 1;
    plan = NULL;
    assert_int_equal(
        table->plan_create(device, weights, whole, &shape, &plan, &error),
        CELLGATE_DEVICE_MEMORY);
    assert_null(plan);
    assert_non_null(strstr(error.text, "CL_MEM_OBJECT_ALLOCATION_FAILURE"));
    assert_int_equal(error.vendor_code, CL_MEM_OBJECT_ALLOCATION_FAILURE);
    assert_int_equal(table->memory_used(device), before);
    instance->api = driver;
    table->weights_free(weights);
    assert_int_equal(table->memory_used(device), 0);
    table->device_close(device);
}

/* More than the device has is refused before the driver is asked: CPUs promise
   any amount. */
static void test_too_much_memory(void **state)
{
    const cellgate_shape huge = { sizeof huge, 1 << 20, 200 };
    cellgate_device *device = open_device();
    cellgate_weights *weights = prepare(device);
    const uint64_t before = table->memory_used(device);
    cellgate_plan *plan = NULL;

    (void)state;
    assert_int_equal(
        table->plan_create(device, weights, 0, &huge, &plan, &error),
        CELLGATE_DEVICE_MEMORY);
    assert_non_null(strstr(error.text, "smaller batch"));
    assert_int_equal(table->memory_used(device), before);
    table->weights_free(weights);
    table->device_close(device);
}

static void test_lost(void **state)
{
    cellgate_device *device = open_device();
    cellgate_weights *weights = prepare(device), *more = NULL;
    cellgate_plan *plan = NULL, *another = NULL;
    cellgate_variant variant = { .struct_size = sizeof variant };

    (void)state;
    assert_int_equal(
        table->plan_create(device, weights, 0, &shape, &plan, &error),
        CELLGATE_OK);
    instance->api.EnqueueNDRangeKernel = failing_launch;
    launch_code = CL_INVALID_KERNEL_ARGS; /* this run only */
    assert_int_equal(run(plan, y), CELLGATE_INTERNAL);
    instance->api = driver;
    assert_int_equal(run(plan, y), CELLGATE_OK);

    instance->api.EnqueueNDRangeKernel = failing_launch;
    launch_code = CL_DEVICE_NOT_AVAILABLE;
    assert_int_equal(run(plan, y), CELLGATE_DEVICE_LOST);
    instance->api = driver;
    assert_int_equal(run(plan, y), CELLGATE_DEVICE_LOST);
    assert_int_equal(
        table->support(device, &segment, &shape, 0, &variant, &error),
        CELLGATE_DEVICE_LOST);
    assert_int_equal(table->prepare(device, &segment, 0, &more, &error),
                     CELLGATE_DEVICE_LOST);
    assert_int_equal(
        table->plan_create(device, weights, 0, &shape, &another, &error),
        CELLGATE_DEVICE_LOST);
    table->plan_destroy(plan);
    table->weights_free(weights);
    table->device_close(device);
}

static CL_API_ENTRY cl_int CL_API_CALL failing_finish(cl_command_queue queue)
{
    (void)driver.Finish(queue);
    return CL_OUT_OF_RESOURCES;
}

static CL_API_ENTRY cl_int CL_API_CALL
failing_read(cl_command_queue queue, cl_mem from, cl_bool blocking, size_t at,
             size_t size, void *to, cl_uint count, const cl_event *events,
             cl_event *event)
{
    if (blocking)
        return CL_OUT_OF_RESOURCES;
    return driver.EnqueueReadBuffer(queue, from, blocking, at, size, to, count,
                                    events, event);
}

/* The same code, of a run that was too large and of a context that is dead. */
static void test_out_of_resources(void **state)
{
    cellgate_device *device = open_device();
    cellgate_weights *weights = prepare(device);
    cellgate_plan *plan = NULL;

    (void)state;
    assert_int_equal(
        table->plan_create(device, weights, 0, &shape, &plan, &error),
        CELLGATE_OK);
    instance->api.Finish = failing_finish;
    assert_int_equal(run(plan, y), CELLGATE_DEVICE_MEMORY);
    instance->api = driver;
    assert_int_equal(run(plan, y), CELLGATE_OK);
    instance->api.Finish = failing_finish;
    instance->api.EnqueueReadBuffer = failing_read;
    assert_int_equal(run(plan, y), CELLGATE_DEVICE_LOST);
    instance->api = driver;
    assert_int_equal(error.vendor_code, CL_OUT_OF_RESOURCES);
    assert_int_equal(run(plan, y), CELLGATE_DEVICE_LOST);
    table->plan_destroy(plan);
    table->weights_free(weights);
    table->device_close(device);
}

/* The compiler's own words are in the error. */
static void test_build_log(void **state)
{
    cellgate_weights *weights = NULL;
    cellgate_device *device;

    (void)state;
    remove_folder(cache);
    device = open_device();
    instance->api.BuildProgram = failing_build;
    assert_int_equal(table->prepare(device, &segment, 0, &weights, &error),
                     CELLGATE_DEVICE_FAILED);
    instance->api = driver;
    assert_non_null(strstr(error.text, "CL_BUILD_PROGRAM_FAILURE (-11)"));
    assert_non_null(strstr(error.text, "error: "));
    assert_null(weights);
    assert_int_equal(table->memory_used(device), 0);
    table->device_close(device);
}

static const char *long_log;

static CL_API_ENTRY cl_int CL_API_CALL
log_of_a_driver(cl_program program, cl_device_id id, cl_program_build_info what,
                size_t size, void *to, size_t *needed)
{
    (void)program, (void)id;
    assert_int_equal(what, CL_PROGRAM_BUILD_LOG);
    if (needed)
        *needed = strlen(long_log) + 1;
    if (to && size < strlen(long_log) + 1)
        return CL_INVALID_VALUE;
    if (to)
        memcpy(to, long_log, strlen(long_log) + 1);
    return CL_SUCCESS;
}

/* However long it is. */
static void test_long_build_log(void **state)
{
    static char text[100000];
    cellgate_weights *weights = NULL;
    cellgate_device *device = open_device();

    (void)state;
    memset(text, 'w', sizeof text - 1);
    memcpy(text, "error: no such\n", 15);
    long_log = text;
    remove_folder(cache);
    instance->api.BuildProgram = failing_build;
    instance->api.GetProgramBuildInfo = log_of_a_driver;
    assert_int_equal(table->prepare(device, &segment, 0, &weights, &error),
                     CELLGATE_DEVICE_FAILED);
    instance->api = driver;
    assert_non_null(strstr(error.text, "error: no such"));
    table->device_close(device);
}

static CL_API_ENTRY cl_int CL_API_CALL
no_fused(cl_program program, cl_uint count, const cl_device_id *devices,
         const char *options, void(CL_CALLBACK *notify)(cl_program, void *),
         void *data)
{
    if (strstr(options, "FUSED=1"))
        return failing_build(program, count, devices, options, notify, data);
    return driver.BuildProgram(program, count, devices, options, notify, data);
}

/* A variant whose program the driver does not take is refused with the reason;
   the others run. */
static void test_one_variant_fails(void **state)
{
    cellgate_variant variant = { .struct_size = sizeof variant };
    cellgate_weights *weights;
    cellgate_device *device;
    cellgate_plan *plan = NULL;
    int running = 0, refused = 0;

    (void)state;
    remove_folder(cache);
    device = open_device();
    instance->api.BuildProgram = no_fused;
    weights = prepare(device);
    instance->api = driver;
    for (uint32_t i = 0; table->support(device, &segment, &shape, i, &variant,
                                        &error) == CELLGATE_OK;
         i++) {
        const bool fused = strncmp(variant.name, "fused", 5) == 0;

        if (variant.pack != 0)
            continue;
        assert_int_equal(variant.refusal[0] != '\0', fused);
        if (fused)
            assert_non_null(
                strstr(variant.refusal, "CL_BUILD_PROGRAM_FAILURE"));
        assert_int_equal(table->plan_create(device, weights, variant.id, &shape,
                                            &plan, &error),
                         fused ? CELLGATE_UNSUPPORTED : CELLGATE_OK);
        if (!fused) {
            assert_int_equal(run(plan, y), CELLGATE_OK);
            table->plan_destroy(plan);
        }
        refused += fused;
        running += !fused;
    }
    assert_true(refused > 0 && running > 0);
    table->weights_free(weights);
    table->device_close(device);
}

/* What is excluded is not tried, so nothing is found about it. */
static void test_excluded_ones_do_not_start(void **state)
{
    cellgate_variant variant = { .struct_size = sizeof variant };
    cellgate_weights *weights;
    cellgate_device *device;

    (void)state;
    remove_folder(cache);
    device = open_device();
    instance->api.BuildProgram = no_fused;
    excluded = "fused";
    weights = prepare(device);
    excluded = "";
    instance->api = driver;
    for (uint32_t i = 0; table->support(device, &segment, &shape, i, &variant,
                                        &error) == CELLGATE_OK;
         i++)
        if (variant.pack == 0)
            assert_string_equal(variant.refusal, "");
    table->weights_free(weights);
    table->device_close(device);
}

static int32_t beyond_the_host(void *context, const cellgate_settings *settings,
                               const char *variant)
{
    (void)context;
    (void)settings;
    fail_msg("%s: the host has no excludes", variant);
    return 1;
}

/* It was made before there was one: nothing is excluded. */
static void test_host_without_excludes(void **state)
{
    const cellgate_host *usual = instance->host;
    cellgate_host older = *usual;
    cellgate_weights *weights;
    cellgate_device *device;

    (void)state;
    older.struct_size = offsetof(cellgate_host, excludes);
    older.excludes = beyond_the_host;
    instance->host = &older;
    device = open_device();
    weights = prepare(device);
    table->weights_free(weights);
    table->device_close(device);
    instance->host = usual;
}

static CL_API_ENTRY cl_int CL_API_CALL
no_whole(cl_command_queue queue, cl_kernel what, cl_uint dimensions,
         const size_t *offset, const size_t *global, const size_t *local,
         cl_uint count, const cl_event *events, cl_event *event)
{
    cl_int(CL_API_CALL * ask)(cl_kernel, cl_kernel_info, size_t, void *,
                              size_t *);
    void *symbol = dlsym(instance->api.library, "clGetKernelInfo");
    char name[64] = "";

    memcpy(&ask, &symbol, sizeof ask);
    assert_int_equal(
        ask(what, CL_KERNEL_FUNCTION_NAME, sizeof name, name, NULL),
        CL_SUCCESS);
    if (strcmp(name, "lstm_whole") == 0)
        return CL_OUT_OF_RESOURCES;
    return driver.EnqueueNDRangeKernel(queue, what, dimensions, offset, global,
                                       local, count, events, event);
}

/* So is one whose kernel needs more than there is of something. */
static void test_one_variant_too_large(void **state)
{
    cellgate_variant variant = { .struct_size = sizeof variant };
    cellgate_device *device = open_device();
    cellgate_weights *weights;
    int refused = 0, count = 0;

    (void)state;
    instance->api.EnqueueNDRangeKernel = no_whole;
    weights = prepare(device);
    instance->api = driver;
    for (; table->support(device, &segment, &shape, (uint32_t)count, &variant,
                          &error) == CELLGATE_OK;
         count++) {
        const bool is_step = strncmp(variant.name, "step", 4) == 0;

        if (variant.pack != 0)
            continue;
        assert_int_equal(variant.refusal[0] != '\0', !is_step);
        if (!is_step)
            assert_non_null(strstr(variant.refusal, "CL_OUT_OF_RESOURCES"));
        refused += !is_step;
    }
    assert_int_equal(refused, 4);
    table->weights_free(weights);
    table->device_close(device);
}

/* ---- A kernel that fails after it was accepted --------------------------- */

static cl_event the_latest;

static CL_API_ENTRY cl_int CL_API_CALL
watched_launch(cl_command_queue queue, cl_kernel what, cl_uint dimensions,
               const size_t *offset, const size_t *global, const size_t *local,
               cl_uint count, const cl_event *events, cl_event *event)
{
    cl_int code = driver.EnqueueNDRangeKernel(
        queue, what, dimensions, offset, global, local, count, events, event);

    the_latest = event ? *event : NULL;
    return code;
}

static CL_API_ENTRY cl_int CL_API_CALL failed_event(cl_event event,
                                                    cl_event_info what,
                                                    size_t size, void *to,
                                                    size_t *needed)
{
    if (event != the_latest || what != CL_EVENT_COMMAND_EXECUTION_STATUS)
        return driver.GetEventInfo(event, what, size, to, needed);
    *(cl_int *)to = CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST;
    return CL_SUCCESS;
}

/* Also in a run that wants no result, whose last command it is. */
static void test_kernel_fails_later(void **state)
{
    const cellgate_segment_run r = {
        .struct_size = sizeof r,
        .batch = BATCH,
        .steps = STEPS,
        .x = { x, STEPS * INPUT, INPUT, CELLGATE_F32, 0 },
    };
    cellgate_device *device = open_device();
    cellgate_weights *weights = prepare(device);
    cellgate_plan *plan = NULL;

    (void)state;
    for (uint64_t id = 0; next_variant(weights, &id); id++) {
        assert_int_equal(
            table->plan_create(device, weights, id, &shape, &plan, &error),
            CELLGATE_OK);
        instance->api.EnqueueNDRangeKernel = watched_launch;
        instance->api.GetEventInfo = failed_event;
        assert_int_equal(table->run(plan, &r, &error), CELLGATE_DEVICE_FAILED);
        assert_non_null(strstr(error.text, "a kernel's event"));
        instance->api = driver;
        assert_int_equal(table->run(plan, &r, &error), CELLGATE_OK);
        table->plan_destroy(plan);
    }
    table->weights_free(weights);
    table->device_close(device);
}

/* ---- Others go on while a program is compiled -------------------------- */

static cellgate_device *compiling_for;
static int builds;

static CL_API_ENTRY cl_int CL_API_CALL
watched_build(cl_program program, cl_uint count, const cl_device_id *devices,
              const char *options,
              void(CL_CALLBACK *notify)(cl_program, void *), void *data)
{
    builds++;
    assert_int_equal(pthread_mutex_trylock(&compiling_for->lock), 0);
    assert_int_equal(pthread_mutex_unlock(&compiling_for->lock), 0);
    return driver.BuildProgram(program, count, devices, options, notify, data);
}

static void test_compiling_holds_up_nobody(void **state)
{
    cellgate_device *device = open_device();

    (void)state;
    compiling_for = device;
    instance->api.BuildProgram = watched_build;
    table->weights_free(prepare(device));
    instance->api = driver;
    assert_true(builds > 0);
    table->device_close(device);
}

/* ---- A state that is as before after a failure ------------------------- */

static int copies_left, finishes;

static CL_API_ENTRY cl_int CL_API_CALL some_copies(cl_command_queue queue,
                                                   cl_mem from, cl_mem to,
                                                   size_t from_at, size_t to_at,
                                                   size_t size, cl_uint count,
                                                   const cl_event *events,
                                                   cl_event *event)
{
    if (copies_left-- <= 0)
        return CL_OUT_OF_RESOURCES;
    return driver.EnqueueCopyBuffer(queue, from, to, from_at, to_at, size,
                                    count, events, event);
}

static CL_API_ENTRY cl_int CL_API_CALL
failing_fill(cl_command_queue queue, cl_mem buffer, const void *pattern,
             size_t pattern_size, size_t at, size_t size, cl_uint count,
             const cl_event *events, cl_event *event)
{
    (void)queue, (void)buffer, (void)pattern, (void)pattern_size, (void)at;
    (void)size, (void)count, (void)events, (void)event;
    return CL_OUT_OF_RESOURCES;
}

static CL_API_ENTRY cl_int CL_API_CALL counted_finish(cl_command_queue queue)
{
    finishes++;
    return driver.Finish(queue);
}

static void test_state_after_failure(void **state)
{
    static float h[BATCH * HIDDEN], c[BATCH * HIDDEN];
    static float h_after[BATCH * HIDDEN], c_after[BATCH * HIDDEN];
    const cellgate_lstm_state from = { h, c, NULL, NULL };
    const cellgate_lstm_state to = { NULL, NULL, h_after, c_after };
    const cellgate_lstm_state no_c = { h, NULL, NULL, NULL };
    cellgate_device *device = open_device();
    cellgate_weights *weights = prepare(device);
    cellgate_resident *resident = NULL;
    cellgate_plan *plan = NULL;
    cellgate_breakdown spent = { .struct_size = sizeof spent };
    cellgate_segment_run r = {
        .struct_size = sizeof r,
        .batch = BATCH,
        .steps = STEPS,
        .x = { x, STEPS * INPUT, INPUT, CELLGATE_F32, 0 },
    };

    (void)state;
    make_random(h, BATCH * HIDDEN, 5);
    make_random(c, BATCH * HIDDEN, 6);
    assert_int_equal(
        table->plan_create(device, weights, 0, &shape, &plan, &error),
        CELLGATE_OK);
    assert_int_equal(table->resident_create(weights, BATCH, &resident, &error),
                     CELLGATE_OK);
    assert_int_equal(table->resident_import(resident, &from, &error),
                     CELLGATE_OK);
    r.resident = resident;
    instance->api.EnqueueCopyBuffer = some_copies;
    copies_left = 3; /* h and c in, h out */
    assert_int_equal(table->run(plan, &r, &error), CELLGATE_DEVICE_MEMORY);
    instance->api = driver;
    assert_int_equal(table->resident_export(resident, &to, &error),
                     CELLGATE_OK);
    assert_memory_equal(h_after, h, sizeof h);
    assert_memory_equal(c_after, c, sizeof c);
    assert_int_equal(table->run(plan, &r, &error), CELLGATE_OK);
    assert_int_equal(table->resident_export(resident, &to, &error),
                     CELLGATE_OK);
    assert_memory_not_equal(h_after, h, sizeof h);
    assert_memory_not_equal(c_after, c, sizeof c);
    /* A run that wants no result has a breakdown all the same. */
    assert_int_equal(table->breakdown(plan, &spent, &error), CELLGATE_OK);

    /* The host's h is read no more when a failed import has returned. */
    instance->api.EnqueueFillBuffer = failing_fill;
    instance->api.Finish = counted_finish;
    finishes = 0;
    assert_int_equal(table->resident_import(resident, &no_c, &error),
                     CELLGATE_DEVICE_MEMORY);
    instance->api = driver;
    assert_int_equal(finishes, 1);
    table->resident_destroy(resident);
    table->plan_destroy(plan);
    table->weights_free(weights);
    assert_int_equal(table->memory_used(device), 0);
    table->device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_little_memory),
        cmocka_unit_test(test_too_much_memory),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_out_of_resources),
        cmocka_unit_test(test_build_log),
        cmocka_unit_test(test_long_build_log),
        cmocka_unit_test(test_one_variant_fails),
        cmocka_unit_test(test_excluded_ones_do_not_start),
        cmocka_unit_test(test_host_without_excludes),
        cmocka_unit_test(test_one_variant_too_large),
        cmocka_unit_test(test_kernel_fails_later),
        cmocka_unit_test(test_compiling_holds_up_nobody),
        cmocka_unit_test(test_state_after_failure),
    };

    return opencl_rig_usable()
               ? cmocka_run_group_tests(tests, opencl_rig_start, opencl_rig_end)
               : 77;
}
