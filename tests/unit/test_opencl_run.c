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
    for (uint64_t variant = 0; next_variant(weights, &variant); variant++) {
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
    for (uint64_t variant = 0; next_variant(weights, &variant); variant++) {
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
    const cellgate_shape long_one = { sizeof long_one, 2, 30000 };
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

/* Nor more work than a small compute unit does in a second; a sequence in
   pieces is what it is in one. */
static void test_work_of_a_launch(void **state)
{
    const cellgate_shape many = { sizeof many, 4096, 400 };
    const double step = 2.0 * 4 * HIDDEN * (HIDDEN + INPUT);
    cellgate_device *device = open_device();
    cellgate_weights *weights = prepare(device);
    cellgate_plan *plan = NULL;
    double a_step, chunk;

    (void)state;
    assert_string_equal(ocl_variant_at(0)->name, "fused");
    assert_int_equal(
        table->plan_create(device, weights, 0, &many, &plan, &error),
        CELLGATE_OK);
    a_step = step * 4096 / device->units;
    chunk = (double)plan->stages[0].chunk;
    assert_true(chunk * a_step <= 2e9 && (chunk + 1) * a_step > 2e9);
    table->plan_destroy(plan);
    for (uint64_t variant = 0; next_variant(weights, &variant); variant++) {
        assert_int_equal(
            table->plan_create(device, weights, variant, &shape, &plan, &error),
            CELLGATE_OK);
        assert_int_equal(run(plan, first_y), CELLGATE_OK);
        plan->stages[0].chunk = 7;
        assert_int_equal(run(plan, y), CELLGATE_OK);
        assert_memory_equal(y, first_y, sizeof y);
        table->plan_destroy(plan);
    }
    table->weights_free(weights);
    table->device_close(device);
}

static int flushes;

static CL_API_ENTRY cl_int CL_API_CALL counted_flush(cl_command_queue queue)
{
    flushes++;
    return driver.Flush(queue);
}

/* The device begins while a long run is still enqueued, piece by piece. */
static void test_flushes(void **state)
{
    cellgate_device *device = open_device();
    cellgate_weights *weights = prepare(device);
    cellgate_plan *plan = NULL;
    const uint64_t step = 4;

    (void)state;
    assert_string_equal(ocl_variant_at(step)->name, "step");
    assert_int_equal(
        table->plan_create(device, weights, step, &shape, &plan, &error),
        CELLGATE_OK);
    plan->stages[0].chunk = 10;
    instance->api.Flush = counted_flush;
    flushes = 0;
    assert_int_equal(run(plan, y), CELLGATE_OK);
    assert_int_equal(flushes, STEPS / 10 - 1);
    flushes = 0;
    plan->stages[0].chunk = STEPS;
    assert_int_equal(run(plan, y), CELLGATE_OK);
    assert_int_equal(flushes, 0); /* few enough */
    instance->api = driver;
    table->plan_destroy(plan);
    table->weights_free(weights);
    table->device_close(device);
}

static int launches;

static CL_API_ENTRY cl_int CL_API_CALL
counted_launch(cl_command_queue queue, cl_kernel what, cl_uint dimensions,
               const size_t *offset, const size_t *global, const size_t *local,
               cl_uint count, const cl_event *events, cl_event *event)
{
    launches++;
    return driver.EnqueueNDRangeKernel(queue, what, dimensions, offset, global,
                                       local, count, events, event);
}

/* A dense layer over many rows takes as many launches, in either order of its
   rows, and makes the same. */
static void test_dense_in_pieces(void **state)
{
    enum { WIDTH = 2000, ROWS = 3, TIMES = 100 };
    const size_t rows = (size_t)ROWS * TIMES;
    float *matrix = malloc((size_t)WIDTH * WIDTH * sizeof *matrix);
    float *in = malloc(rows * WIDTH * sizeof *in);
    float *out = malloc(2 * rows * WIDTH * sizeof *out);
    const cellgate_dense dense = {
        .op = { sizeof dense, CELLGATE_OP_DENSE, 0 },
        .input_size = WIDTH,
        .units = WIDTH,
        .activation = { CELLGATE_LINEAR, 0, 0 },
        .kernel = matrix,
    };
    const cellgate_op *const dense_ops[1] = { &dense.op };
    const cellgate_segment product = { sizeof product, 1, 0, dense_ops };
    const cellgate_shape of = { sizeof of, ROWS, TIMES };
    cellgate_device *device = open_device();
    cellgate_weights *weights = NULL;
    cellgate_plan *plan = NULL;
    uint64_t id = 0;

    (void)state;
    assert_true(matrix && in && out);
    make_random(matrix, (size_t)WIDTH * WIDTH, 30);
    make_random(in, rows * WIDTH, 31);
    while (ocl_variant_at(id)->way != OCL_ROWS)
        id++;
    assert_int_equal(table->prepare(device, &product, 0, &weights, &error),
                     CELLGATE_OK);
    assert_int_equal(
        table->plan_create(device, weights, id, &of, &plan, &error),
        CELLGATE_OK);
    instance->api.EnqueueNDRangeKernel = counted_launch;
    for (int by_step = 0; by_step < 2; by_step++)
        for (int pieces = 0; pieces < 2; pieces++) {
            float *to = out + (size_t)pieces * rows * WIDTH;
            const cellgate_segment_run r = {
                .struct_size = sizeof r,
                .batch = ROWS,
                .steps = TIMES,
                .x = { in, TIMES * WIDTH, WIDTH, CELLGATE_F32, 0 },
                .y = { to, by_step ? WIDTH : TIMES * WIDTH,
                       by_step ? ROWS * WIDTH : WIDTH, CELLGATE_F32, 0 },
            };

            device->units = pieces ? 1 : 1000;
            launches = 0;
            assert_int_equal(table->run(plan, &r, &error), CELLGATE_OK);
            assert_int_equal(launches, pieces ? 2 : 1);
            if (pieces)
                assert_memory_equal(to, out, rows * WIDTH * sizeof *out);
        }
    instance->api = driver;
    table->plan_destroy(plan);
    table->weights_free(weights);
    table->device_close(device);
    free(matrix);
    free(in);
    free(out);
}

/* What support() offers is what plan_create() takes, for every variant. */
static void test_offers_are_plans(void **state)
{
    const cellgate_shape one = { sizeof one, 1, STEPS };
    cl_ulong *local = &instance->found.devices[0].local_memory;
    const cl_ulong before = *local, sizes[] = { 100, 400, 800, 2000, before };
    cellgate_device *device = open_device();
    cellgate_weights *weights[OCL_PACK_HALF + 1];
    int offers[10] = { 0 };

    (void)state;
    for (uint32_t pack = 0; pack <= OCL_PACK_HALF; pack++)
        weights[pack] = prepare_pack(device, pack);
    for (int i = 0; i < 10; i++) {
        const cellgate_shape *of = i < 5 ? &shape : &one;

        *local = sizes[i % 5];
        for (uint64_t id = 0;
             ocl_variant_at(id) && ocl_variant_at(id)->pack <= OCL_PACK_HALF;
             id++) {
            cellgate_variant variant = { .struct_size = sizeof variant };
            cellgate_plan *plan = NULL;
            cellgate_status status;
            bool offered = false;

            for (uint32_t at = 0;
                 table->support(device, &segment, of, at, &variant, &error) ==
                 CELLGATE_OK;
                 at++)
                offered = offered || variant.id == id;
            offers[i] += offered;
            status =
                table->plan_create(device, weights[ocl_variant_at(id)->pack],
                                   id, of, &plan, &error);
            assert_int_equal(status,
                             offered ? CELLGATE_OK : CELLGATE_UNSUPPORTED);
            table->plan_destroy(plan);
        }
    }
    *local = before;
    assert_true(offers[0] < offers[4] && offers[5] < offers[4]);
    assert_true(offers[0] > 0);
    for (uint32_t pack = 0; pack <= OCL_PACK_HALF; pack++)
        table->weights_free(weights[pack]);
    table->device_close(device);
}

/* ---- Threads of a CPU --------------------------------------------------- */

/* Threads beside this one that have had a good part of the work since `busy`,
   which is filled with the time that each has computed: a driver's idle threads
   wake up for every command. */
static int threads_at_work(unsigned long long busy[64])
{
    DIR *tasks = opendir("/proc/self/task");
    unsigned long long since[64] = { 0 }, most = 0;
    struct dirent *entry;
    int at = 0, working = 0;

    assert_non_null(tasks);
    while ((entry = readdir(tasks)) != NULL && at < 64) {
        unsigned long long spent = 0;
        char name[300];
        FILE *file;

        if (entry->d_name[0] == '.' || atol(entry->d_name) == (long)getpid())
            continue;
        (void)snprintf(name, sizeof name, "/proc/self/task/%s/schedstat",
                       entry->d_name);
        file = fopen(name, "r");
        if (!file)
            continue;
        if (fscanf(file, "%llu", &spent) != 1)
            spent = 0;
        (void)fclose(file);
        since[at] = spent - busy[at];
        most = since[at] > most ? since[at] : most;
        busy[at++] = spent;
    }
    (void)closedir(tasks);
    while (at-- > 0)
        working += since[at] > most / 4;
    return working;
}

/* A CPU's driver computes on the cores that are granted, and on no more. */
static void test_threads(void **state)
{
    static float many[64 * 200 * INPUT];
    const cellgate_shape large = { sizeof large, 64, 200 };
    const cellgate_segment_run of_large = {
        .struct_size = sizeof of_large,
        .batch = 64,
        .steps = 200,
        .x = { many, 200 * INPUT, INPUT, CELLGATE_F32, 0 },
    };
    unsigned long long busy[64] = { 0 };
    cellgate_variant variant = { .struct_size = sizeof variant };
    cellgate_device *device = open_device();
    cellgate_weights *weights = prepare(device);
    cellgate_plan *plan = NULL;

    (void)state;
    assert_int_equal(
        table->plan_create(device, weights, 0, &shape, &plan, &error),
        CELLGATE_OK);
    assert_int_equal(run(plan, first_y), CELLGATE_OK);
    table->plan_destroy(plan);
    table->weights_free(weights);
    table->device_close(device);
    if (instance->found.devices[0].units < 2)
        skip();
    budget = 1;
    device = open_device();
    budget = 2;
    assert_int_equal(
        table->support(device, &segment, &shape, 0, &variant, &error),
        CELLGATE_OK);
    assert_int_equal(variant.threads, 1);
    assert_string_equal(variant.name, "fused-t1");
    weights = prepare(device);
    assert_int_equal(
        table->plan_create(device, weights, 0, &shape, &plan, &error),
        CELLGATE_OK);
    assert_int_equal(run(plan, y), CELLGATE_OK);
    assert_memory_equal(y, first_y, sizeof y);
    table->plan_destroy(plan);
    assert_int_equal(
        table->plan_create(device, weights, 0, &large, &plan, &error),
        CELLGATE_OK);
    (void)threads_at_work(busy);
    for (int i = 0; i < 20; i++)
        assert_int_equal(table->run(plan, &of_large, &error), CELLGATE_OK);
    assert_int_equal(threads_at_work(busy), 1);
    table->plan_destroy(plan);
    table->weights_free(weights);
    table->device_close(device);
}

static CL_API_ENTRY cl_int CL_API_CALL
no_parts(cl_device_id id, const cl_device_partition_property *by, cl_uint most,
         cl_device_id *parts, cl_uint *count)
{
    (void)id, (void)by, (void)most, (void)parts, (void)count;
    return CL_DEVICE_PARTITION_FAILED;
}

/* ... or says why it cannot. */
static void test_threads_refused(void **state)
{
    cl_device_type *type = &instance->found.devices[0].type;
    const cl_device_type before = *type;
    cellgate_device *device = NULL;

    (void)state;
    if (instance->found.devices[0].units < 2)
        skip();
    threads = "1";
    instance->api.CreateSubDevices = no_parts;
    assert_int_equal(table->device_open(instance, 0, NULL, &device, &error),
                     CELLGATE_UNSUPPORTED);
    instance->api = driver;
    assert_non_null(strstr(error.text, "CL_DEVICE_PARTITION_FAILED"));
    *type = CL_DEVICE_TYPE_GPU;
    assert_int_equal(table->device_open(instance, 0, NULL, &device, &error),
                     CELLGATE_UNSUPPORTED);
    *type = before;
    assert_non_null(strstr(error.text, "leave the key out"));
    threads = "0";
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
    for (uint64_t variant = 2; next_variant(weights, &variant); variant++) {
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

/* The next variant after *id that runs the layer with weights of its pack. */
static void turn(cellgate_weights *const *weights, uint64_t *id)
{
    uint64_t same;

    do {
        *id = ocl_variant_at(*id + 1) ? *id + 1 : 0;
        same = *id;
    } while (!weights[ocl_variant_at(*id)->pack] ||
             !next_variant(weights[ocl_variant_at(*id)->pack], &same) ||
             same != *id);
}

/* Of every variant. */
static void test_a_thousand_plans(void **state)
{
    cellgate_weights *weights[OCL_PACKS] = { NULL };
    cellgate_device *device;
    uint64_t before, id = 0;
    long kilobytes = 0;
    int files = 0, i;

    (void)state;
#ifdef HAVE_CLBLAST
    clblast = "yes";
#endif
    device = open_device();
    clblast = "auto";
    for (i = 0; i < OCL_PACKS; i++)
        if (i != OCL_PACK_CLBLAST || device->has_clblast)
            weights[i] = prepare_pack(device, (uint32_t)i);
    before = table->memory_used(device);
    for (i = 0; i < 1100; i++) {
        cellgate_plan *plan = NULL;

        turn(weights, &id);
        if (i == 100) { /* by now everything lazy is there */
            kilobytes = resident_kilobytes();
            files = open_files();
        }
        assert_int_equal(table->plan_create(device,
                                            weights[ocl_variant_at(id)->pack],
                                            id, &shape, &plan, &error),
                         CELLGATE_OK);
        assert_int_equal(run(plan, y), CELLGATE_OK);
        table->plan_destroy(plan);
    }
    assert_int_equal(table->memory_used(device), before);
    assert_int_equal(open_files(), files);
    if (resident_kilobytes() > kilobytes + 2048)
        fail_msg("%ld KiB became %ld", kilobytes, resident_kilobytes());
    for (i = 0; i < OCL_PACKS; i++)
        table->weights_free(weights[i]);
    assert_int_equal(table->memory_used(device), 0);
    table->device_close(device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_second_compiles_nothing),
        cmocka_unit_test(test_lengths_change),
        cmocka_unit_test(test_last_only),
        cmocka_unit_test(test_steps_of_a_launch),
        cmocka_unit_test(test_work_of_a_launch),
        cmocka_unit_test(test_dense_in_pieces),
        cmocka_unit_test(test_flushes),
        cmocka_unit_test(test_offers_are_plans),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_threads_refused),
        cmocka_unit_test(test_flat_groups),
        cmocka_unit_test(test_a_thousand_plans),
    };

    return opencl_rig_usable()
               ? cmocka_run_group_tests(tests, opencl_rig_start, opencl_rig_end)
               : 77;
}
