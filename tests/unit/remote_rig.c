/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <time.h>

#include "tests/unit/remote_rig.h"

static void host_log(void *context, int32_t level, const char *text)
{
    struct rig *rig = context;
    size_t used;

    if (level != CELLGATE_LOG_ERROR)
        return;
    pthread_mutex_lock(&rig->log_lock);
    used = strlen(rig->log);
    (void)snprintf(rig->log + used, sizeof rig->log - used, "%s\n", text);
    pthread_mutex_unlock(&rig->log_lock);
}

static void *host_allocate(void *context, size_t alignment, size_t size)
{
    size_t whole = (size / alignment + (size % alignment || !size)) * alignment;

    (void)context;
    return aligned_alloc(alignment, whole);
}

static void host_release(void *context, void *memory)
{
    (void)context;
    free(memory);
}

/* `settings` is the rig itself where the test opened a device with it. */
static const char *
host_setting(void *context, const cellgate_settings *settings, const char *key)
{
    struct rig *rig = context;
    const char *const *pair;
    size_t at;

    for (pair = settings ? rig->settings : NULL; pair && *pair; pair += 2)
        if (strcmp(pair[0], key) == 0)
            return pair[1];
    for (at = 0; at < rig->plugin->key_count; at++)
        if (strcmp(rig->plugin->keys[at].name, key) == 0)
            return rig->plugin->keys[at].default_text;
    return NULL;
}

static uint32_t host_budget(void *context, const char *resource)
{
    (void)context;
    (void)resource;
    return 1;
}

static uint64_t host_clock(void *context)
{
    struct timespec now;

    (void)context;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int32_t host_excludes(void *context, const cellgate_settings *settings,
                             const char *variant)
{
    (void)context;
    (void)settings;
    (void)variant;
    return 0;
}

void rig_host_init(struct rig *rig, const char *const *settings)
{
    memset(rig, 0, sizeof *rig);
    pthread_mutex_init(&rig->log_lock, NULL);
    rig->settings = settings;
    rig->host.struct_size = sizeof rig->host;
    rig->host.context = rig;
    rig->host.log = host_log;
    rig->host.allocate = host_allocate;
    rig->host.release = host_release;
    rig->host.setting = host_setting;
    rig->host.thread_budget = host_budget;
    rig->host.clock = host_clock;
    rig->host.excludes = host_excludes;
    rig->plugin =
        cellgate_plugin_entry(CELLGATE_ABI_VERSION, CELLGATE_ABI_VERSION);
    assert_non_null(rig->plugin);
}

void rig_open(struct rig *rig, const char *const *settings)
{
    cellgate_error error = CELLGATE_ERROR_INIT;

    rig_host_init(rig, settings);
    assert_int_equal(rig->plugin->init(&rig->host, &rig->instance, &error),
                     CELLGATE_OK);
    assert_int_equal(rig->plugin->device_open(
                         rig->instance, 0, settings ? (const void *)rig : NULL,
                         &rig->device, &error),
                     CELLGATE_OK);
}

void rig_close(struct rig *rig)
{
    assert_int_equal(rig->plugin->memory_used(rig->device), 0);
    rig->plugin->device_close(rig->device);
    rig->plugin->finish(rig->instance);
    pthread_mutex_destroy(&rig->log_lock);
}

bool rig_logged(struct rig *rig, const char *text)
{
    bool found;

    pthread_mutex_lock(&rig->log_lock);
    found = strstr(rig->log, text) != NULL;
    pthread_mutex_unlock(&rig->log_lock);
    return found;
}

/* Made-up numbers in [-1, 1], the same in every process. */
static void fill(float *values, size_t count, uint32_t seed)
{
    size_t at;

    for (at = 0; at < count; at++) {
        seed = seed * 1664525u + 1013904223u;
        values[at] = (float)(seed >> 8) / 8388608.0f - 1.0f;
    }
}

#define FILL(array, seed) fill(array, sizeof(array) / sizeof *(array), seed)

void rig_model_init(struct rig_model *model, bool with_dense)
{
    memset(model, 0, sizeof *model);
    FILL(model->kernel, 1);
    FILL(model->recurrent_kernel, 2);
    FILL(model->bias, 3);
    FILL(model->dense_kernel, 4);

    model->lstm.op.struct_size = sizeof model->lstm;
    model->lstm.op.kind = CELLGATE_OP_LSTM;
    model->lstm.input_size = RIG_INPUT;
    model->lstm.hidden_size = RIG_HIDDEN;
    model->lstm.directions = 1;
    model->lstm.outputs =
        CELLGATE_LSTM_SEQUENCE | CELLGATE_LSTM_H | CELLGATE_LSTM_C;
    if (!with_dense)
        model->lstm.outputs |= CELLGATE_LSTM_LAST;
    model->lstm.has_bias = 1;
    model->lstm.activations[0][0].kind = CELLGATE_SIGMOID;
    model->lstm.weights[0].kernel = model->kernel;
    model->lstm.weights[0].recurrent_kernel = model->recurrent_kernel;
    model->lstm.weights[0].bias = model->bias;

    model->dense.op.struct_size = sizeof model->dense;
    model->dense.op.kind = CELLGATE_OP_DENSE;
    model->dense.input_size = RIG_HIDDEN;
    model->dense.units = RIG_UNITS;
    model->dense.activation.kind = CELLGATE_LINEAR;
    model->dense.kernel = model->dense_kernel;

    model->ops[0] = &model->lstm.op;
    model->ops[1] = &model->dense.op;
    model->segment.struct_size = sizeof model->segment;
    model->segment.op_count = with_dense ? 2 : 1;
    model->segment.ops = model->ops;
}

void rig_call_init(struct rig_call *call, const struct rig_model *model,
                   int64_t batch, int64_t steps)
{
    const bool with_dense = model->segment.op_count == 2;
    const int64_t features = with_dense ? RIG_UNITS : RIG_HIDDEN;

    memset(call, 0, sizeof *call);
    FILL(call->x, 5);
    FILL(call->h0, 6);
    FILL(call->c0, 7);
    call->states[0].h = call->h;
    call->states[0].c = call->c;
    call->run.struct_size = sizeof call->run;
    call->run.batch = batch;
    call->run.steps = steps;
    call->run.x.data = call->x;
    call->run.x.batch_stride = steps * RIG_INPUT;
    call->run.x.time_stride = RIG_INPUT;
    call->run.y.data = call->y;
    call->run.y.batch_stride = steps * features;
    call->run.y.time_stride = features;
    if (!with_dense)
        call->run.y_last.data = call->last;
    call->run.y_last.batch_stride = features;
    call->run.states = call->states;
}

uint64_t rig_variant(struct rig *rig, const struct rig_model *model,
                     const char *name, uint32_t *pack)
{
    cellgate_variant variant = { .struct_size = sizeof variant };
    cellgate_error error = CELLGATE_ERROR_INIT;
    uint32_t index = 0;

    while (rig->plugin->support(rig->device, &model->segment, NULL, index++,
                                &variant, &error) == CELLGATE_OK)
        if (strcmp(variant.name, name) == 0) {
            *pack = variant.pack;
            return variant.id;
        }
    fail_msg("no variant %s", name);
    return 0;
}

void rig_plan_make(struct rig *rig, const struct rig_model *model,
                   const char *variant, int64_t batch, int64_t steps,
                   struct rig_plan *made)
{
    const cellgate_shape shape = { sizeof shape, batch, steps };
    cellgate_error error = CELLGATE_ERROR_INIT;
    uint32_t pack;
    uint64_t id = rig_variant(rig, model, variant, &pack);

    assert_int_equal(rig->plugin->prepare(rig->device, &model->segment, pack,
                                          &made->weights, &error),
                     CELLGATE_OK);
    assert_int_equal(rig->plugin->plan_create(rig->device, made->weights, id,
                                              &shape, &made->plan, &error),
                     CELLGATE_OK);
}

void rig_plan_free(struct rig *rig, struct rig_plan *made)
{
    rig->plugin->plan_destroy(made->plan);
    rig->plugin->weights_free(made->weights);
}

cellgate_status rig_run(struct rig *rig, const struct rig_plan *plan,
                        struct rig_call *call, cellgate_error *error)
{
    cellgate_error ignored = CELLGATE_ERROR_INIT;

    return rig->plugin->run(plan->plan, &call->run,
                            error != NULL ? error : &ignored);
}
