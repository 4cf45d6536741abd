/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The OpenCL plugin's own promises beyond the ABI's, on PoCL: what is compiled
 * when, what becomes of the driver's errors, and that nothing grows. Skipped
 * where PoCL is not installed.
 */
#include "config.h"

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "plugins/opencl/plan.h"
#include "tests/oracle/random.h"

#define POCL "/etc/OpenCL/vendors/pocl.icd"
#define BATCH 5
#define STEPS 40
#define INPUT 7
#define HIDDEN 19

/* ---- The host ---------------------------------------------------------- */

static char cache[400];

static const char *kernels = "auto";

static void host_log(void *context, int32_t level, const char *text)
{
    (void)context;
    (void)level;
    assert_null(strchr(text, '\n')); /* the interface's word: one line */
}

static void *host_allocate(void *context, size_t alignment, size_t size)
{
    void *memory = NULL;

    (void)context;
    if (alignment < sizeof(void *))
        alignment = sizeof(void *);
    return posix_memalign(&memory, alignment, size) == 0 ? memory : NULL;
}

static void host_release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

static const char *
host_setting(void *context, const cellgate_settings *settings, const char *key)
{
    (void)context;
    (void)settings;
    return strcmp(key, "cache") == 0        ? cache
           : strcmp(key, "cache_size") == 0 ? "67108864"
           : strcmp(key, "kernels") == 0    ? kernels
                                            : "0";
}

static uint32_t host_budget(void *context, const char *resource)
{
    (void)context;
    assert_string_equal(resource, "cpu");
    return 2;
}

static uint64_t host_clock(void *context)
{
    (void)context;
    return 0;
}

static const cellgate_host host = {
    .struct_size = sizeof host,
    .log = host_log,
    .allocate = host_allocate,
    .release = host_release,
    .setting = host_setting,
    .thread_budget = host_budget,
    .clock = host_clock,
};

/* ---- One layer --------------------------------------------------------- */

static float kernel[INPUT * 4 * HIDDEN], recurrent[HIDDEN * 4 * HIDDEN];
static float bias[4 * HIDDEN], x[BATCH * STEPS * INPUT];
static float y[BATCH * STEPS * HIDDEN], first_y[BATCH * STEPS * HIDDEN];
static cellgate_lstm lstm = {
    .op = { sizeof lstm, CELLGATE_OP_LSTM, 0 },
    .input_size = INPUT,
    .hidden_size = HIDDEN,
    .directions = 1,
    .outputs = CELLGATE_LSTM_SEQUENCE,
    .has_bias = 1,
    .activations = { { { CELLGATE_SIGMOID, 0, 0 },
                       { CELLGATE_TANH, 0, 0 },
                       { CELLGATE_TANH, 0, 0 } } },
    .weights = { { kernel, recurrent, bias, NULL, NULL } },
};
static const cellgate_op *const ops[] = { &lstm.op };
static const cellgate_segment segment = { sizeof segment, 1, 0, ops };
static const cellgate_shape shape = { sizeof shape, BATCH, STEPS };
static const cellgate_plugin *table;
static cellgate_instance *instance;
static cellgate_error error;

static void make_random(float *to, size_t count, uint64_t seed)
{
    random_source random = random_from(seed, 1);
    size_t i;

    for (i = 0; i < count; i++)
        to[i] = (float)random_integer(&random, -1000, 1000) / 2500.0f;
}

static cellgate_device *open_device(void)
{
    cellgate_device *device = NULL;

    assert_int_equal(table->device_open(instance, 0, NULL, &device, &error),
                     CELLGATE_OK);
    return device;
}

static cellgate_weights *prepare(cellgate_device *device)
{
    cellgate_weights *weights = NULL;

    if (table->prepare(device, &segment, 0, &weights, &error) != CELLGATE_OK)
        fail_msg("prepare: %s", error.text);
    return weights;
}

static const int32_t *lengths;

static cellgate_status run(cellgate_plan *plan, float *to)
{
    const cellgate_segment_run r = {
        .struct_size = sizeof r,
        .batch = BATCH,
        .steps = STEPS,
        .x = { x, STEPS * INPUT, INPUT, CELLGATE_F32, 0 },
        .lengths = lengths,
        .y = { to, STEPS * HIDDEN, HIDDEN, CELLGATE_F32, 0 },
    };

    return table->run(plan, &r, &error);
}

static void remove_folder(const char *path)
{
    DIR *directory = opendir(path);
    struct dirent *entry;
    char name[700];

    while (directory && (entry = readdir(directory)) != NULL) {
        (void)snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
        (void)unlink(name);
    }
    if (directory)
        (void)closedir(directory);
    (void)rmdir(path);
}

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

/* ---- A driver that fails ----------------------------------------------- */

static struct ocl_api driver; /* as it is */
static size_t largest;        /* buffer that it gives */
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

/* ---- All of it --------------------------------------------------------- */

static int start(void **state)
{
    (void)state;
    make_random(kernel, INPUT * 4 * HIDDEN, 1);
    make_random(recurrent, HIDDEN * 4 * HIDDEN, 2);
    make_random(bias, 4 * HIDDEN, 3);
    make_random(x, BATCH * STEPS * INPUT, 4);
    table = cellgate_plugin_entry(0, 0);
    error = (cellgate_error)CELLGATE_ERROR_INIT;
    if (table->init(&host, &instance, &error) != CELLGATE_OK) {
        (void)fprintf(stderr, "%s\n", error.text);
        return -1;
    }
    driver = instance->api;
    return 0;
}

static int end(void **state)
{
    (void)state;
    table->finish(instance);
    remove_folder(cache);
    return 0;
}

/* PoCL alone, with what it compiles in the build folder. */
static bool use_pocl(void)
{
    char here[300], folder[360];

    if (access(POCL, R_OK) != 0 || !getcwd(here, sizeof here))
        return false;
    (void)snprintf(folder, sizeof folder, "%s/tests/cache", here);
    (void)mkdir(folder, 0700);
    (void)snprintf(folder, sizeof folder, "%s/tests/cache/pocl", here);
    (void)mkdir(folder, 0700);
    (void)snprintf(cache, sizeof cache, "%s/tests/cache/programs-%ld", here,
                   (long)getpid());
    return setenv("OCL_ICD_VENDORS", POCL, 1) == 0 &&
           setenv("OCL_ICD_FILENAMES", POCL, 1) == 0 &&
           setenv("POCL_CACHE_DIR", folder, 1) == 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_second_compiles_nothing),
        cmocka_unit_test(test_lengths_change),
        cmocka_unit_test(test_little_memory),
        cmocka_unit_test(test_too_much_memory),
        cmocka_unit_test(test_lost),
        cmocka_unit_test(test_out_of_resources),
        cmocka_unit_test(test_build_log),
        cmocka_unit_test(test_long_build_log),
        cmocka_unit_test(test_compiling_holds_up_nobody),
        cmocka_unit_test(test_state_after_failure),
        cmocka_unit_test(test_last_only),
        cmocka_unit_test(test_steps_of_a_launch),
        cmocka_unit_test(test_flat_groups),
        cmocka_unit_test(test_a_thousand_plans),
    };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    (void)printf("PoCL is not run in instrumented builds\n");
    return 77;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    (void)printf("PoCL is not run in instrumented builds\n");
    return 77;
#endif
#endif
    if (!use_pocl()) {
        (void)printf("PoCL is not installed\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, start, end);
}
