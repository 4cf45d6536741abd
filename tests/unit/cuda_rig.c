/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/unit/cuda_rig.h"

#include "tests/oracle/oracle.h"

static float kernel[INPUT * 4 * HIDDEN], recurrent[HIDDEN * 4 * HIDDEN];
static float bias[4 * HIDDEN];
float x[BATCH * STEPS * INPUT];
float y[BATCH * STEPS * HIDDEN];
double expected[BATCH * STEPS * HIDDEN];
cellgate_lstm lstm = {
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
const cellgate_segment segment = { sizeof segment, 1, 0, ops };
const cellgate_shape shape = { sizeof shape, BATCH, STEPS };

const cellgate_plugin *table;
cellgate_instance *instance;
cellgate_error error = CELLGATE_ERROR_INIT;
char logged[2000];

/* ---- A host ------------------------------------------------------------ */

static void take_log(void *context, int32_t level, const char *text)
{
    (void)context;
    (void)level;
    (void)snprintf(logged + strlen(logged), sizeof logged - strlen(logged),
                   "%s\n", text);
}

static void *allocate(void *context, size_t alignment, size_t size)
{
    (void)context;
    return aligned_alloc(alignment < 16 ? 16 : alignment,
                         (size + 63) / 64 * 64);
}

static void release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

static const char *setting(void *context, const cellgate_settings *settings,
                           const char *key)
{
    (void)context;
    (void)settings;
    return strcmp(key, "cudnn") == 0      ? CUDNN_STANDIN
           : strcmp(key, "cublaslt") == 0 ? BLASLT_STANDIN
                                          : "";
}

static uint32_t budget(void *context, const char *resource)
{
    (void)context;
    (void)resource;
    return 2;
}

static uint64_t now(void *context)
{
    (void)context;
    return 0;
}

/* The only variant that is left out. */
const char *excluded = "";

static int32_t excludes(void *context, const cellgate_settings *settings,
                        const char *variant)
{
    (void)context;
    (void)settings;
    return strcmp(variant, excluded) == 0;
}

const cellgate_host host = { .struct_size = sizeof host,
                             .log = take_log,
                             .allocate = allocate,
                             .release = release,
                             .setting = setting,
                             .thread_budget = budget,
                             .clock = now,
                             .excludes = excludes };

static void make_random(float *to, size_t count, uint64_t seed)
{
    size_t i;

    for (i = 0; i < count; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        to[i] = ((float)(seed >> 40) / 8388608.0f - 1) * 0.4f;
    }
}

int start(void **state)
{
    const oracle_run run = {
        .batch = BATCH, .steps = STEPS, .x = x, .y = expected
    };

    (void)state;
    make_random(kernel, sizeof kernel / sizeof *kernel, 1);
    make_random(recurrent, sizeof recurrent / sizeof *recurrent, 2);
    make_random(bias, sizeof bias / sizeof *bias, 3);
    make_random(x, sizeof x / sizeof *x, 4);
    return oracle_segment_run(&segment, &run);
}

int set_up(void **state)
{
    (void)state;
    standin_reset();
    standin_settings.devices = 2;
    logged[0] = '\0';
    excluded = "";
    table = cellgate_plugin_entry(0, 0);
    if (table->init(&host, &instance, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return 0;
}

int tear_down(void **state)
{
    (void)state;
    table->finish(instance);
    return 0;
}

/* ---- Words ------------------------------------------------------------- */

cellgate_device *open_device(uint32_t index)
{
    cellgate_device *device = NULL;

    if (table->device_open(instance, index, NULL, &device, &error) !=
        CELLGATE_OK)
        fail_msg("%s", error.text);
    return device;
}

cellgate_variant find_at(cellgate_device *device, const char *name,
                         const cellgate_shape *at)
{
    cellgate_variant variant = { .struct_size = sizeof variant };
    uint32_t i;

    for (i = 0; table->support(device, &segment, at, i, &variant, &error) ==
                CELLGATE_OK;
         i++)
        if (strcmp(variant.name, name) == 0)
            return variant;
    fail_msg("no variant %s", name);
    return variant;
}

cellgate_variant find(cellgate_device *device, const char *name)
{
    return find_at(device, name, NULL);
}

bool has_variant(cellgate_device *device, const char *name)
{
    cellgate_variant variant = { .struct_size = sizeof variant };
    uint32_t i;

    for (i = 0; table->support(device, &segment, NULL, i, &variant, &error) ==
                CELLGATE_OK;
         i++)
        if (strcmp(variant.name, name) == 0)
            return true;
    return false;
}

cellgate_weights *prepare(cellgate_device *device, const char *name)
{
    cellgate_weights *weights = NULL;

    if (table->prepare(device, &segment, find(device, name).pack, &weights,
                       &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return weights;
}

cellgate_plan *make_plan(cellgate_device *device, cellgate_weights *weights,
                         const char *name)
{
    cellgate_plan *plan = NULL;

    if (table->plan_create(device, weights, find(device, name).id, &shape,
                           &plan, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return plan;
}

cellgate_status run_rows(cellgate_plan *plan, int64_t rows)
{
    const cellgate_segment_run of = {
        .struct_size = sizeof of,
        .batch = rows,
        .steps = STEPS,
        .x = { x, STEPS * INPUT, INPUT, CELLGATE_F32, 0 },
        .y = { y, STEPS * HIDDEN, HIDDEN, CELLGATE_F32, 0 },
    };

    memset(y, 0, sizeof y);
    return table->run(plan, &of, &error);
}

cellgate_status run(cellgate_plan *plan)
{
    return run_rows(plan, BATCH);
}

void check_y(void)
{
    size_t i;

    for (i = 0; i < sizeof y / sizeof *y; i++)
        assert_float_equal(y[i], expected[i], 1e-5);
}

cellgate_status all_of_it(uint32_t index, const char *name)
{
    cellgate_device *device = NULL;
    cellgate_weights *weights = NULL;
    cellgate_plan *plan = NULL;
    cellgate_variant variant;
    cellgate_status status =
        table->device_open(instance, index, NULL, &device, &error);

    if (status != CELLGATE_OK)
        return status;
    variant = find(device, name);
    status = table->prepare(device, &segment, variant.pack, &weights, &error);
    if (status == CELLGATE_OK)
        status = table->plan_create(device, weights, variant.id, &shape, &plan,
                                    &error);
    if (status == CELLGATE_OK)
        status = run(plan);
    if (status == CELLGATE_OK)
        check_y();
    table->plan_destroy(plan);
    table->weights_free(weights);
    if (!standin_settings.sticky && !standin_settings.library_breaks)
        assert_int_equal(table->memory_used(device), 0);
    table->device_close(device);
    return status;
}
