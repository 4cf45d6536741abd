/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A good plugin in plain loops: right results, nothing fast. One direction,
 * tanh and sigmoid, float32, the minimum profile of plugin.h.
 *
 * It offers as many devices as $CELLGATE_FAKE_DEVICES says (1 without it), on
 * the resources "cpu", "fake:1", "fake:2" ..., fails to open device 9, and
 * device 8 the first time.
 */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cellgate/plugin.h"

struct cellgate_instance {
    const cellgate_host *host;
    uint32_t count;
    int busy; /* how often device 8 will not open */
};

struct cellgate_device {
    const cellgate_host *host;
    double scale; /* key "scale": outputs are multiplied by it */
};

struct cellgate_weights {
    cellgate_device *device;
    const cellgate_lstm *op; /* the host keeps it until weights_free() */
};

struct cellgate_plan {
    const cellgate_weights *weights;
    int64_t batch;
    int64_t steps;
    float *state; /* h[H], c[H], gates[4H] */
};

static cellgate_status init(const cellgate_host *host,
                            cellgate_instance **instance, cellgate_error *error)
{
    const char *count = getenv("CELLGATE_FAKE_DEVICES");
    cellgate_instance *made = host->allocate(host->context, 64, sizeof *made);

    if (made == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    made->host = host;
    made->count = count != NULL ? (uint32_t)strtoul(count, NULL, 10) : 1;
    made->busy = 1;
    if (made->count == 0)
        host->log(host->context, CELLGATE_LOG_INFO,
                  "CELLGATE_FAKE_DEVICES is 0");
    *instance = made;
    return CELLGATE_OK;
}

static void finish(cellgate_instance *instance)
{
    instance->host->release(instance->host->context, instance);
}

static uint32_t device_count(cellgate_instance *instance)
{
    return instance->count;
}

static cellgate_status device_describe(cellgate_instance *instance,
                                       uint32_t index,
                                       cellgate_device_description *out,
                                       cellgate_error *error)
{
    cellgate_device_description about = { .struct_size = sizeof about };

    if (index >= instance->count)
        return cellgate_fail(error, CELLGATE_NOT_FOUND, "no device %u", index);
    (void)snprintf(about.name, sizeof about.name, "Fake %u", index);
    (void)snprintf(about.vendor, sizeof about.vendor, "Nobody");
    (void)snprintf(about.driver, sizeof about.driver, "1.0");
    if (index == 0)
        (void)snprintf(about.resource, sizeof about.resource, "cpu");
    else
        (void)snprintf(about.resource, sizeof about.resource, "fake:%u", index);
    (void)snprintf(about.identity, sizeof about.identity, "fake-%u-1.0", index);
    about.kind = index == 0 ? CELLGATE_DEVICE_CPU : CELLGATE_DEVICE_ACCELERATOR;
    about.flags = CELLGATE_DEVICE_ON_CALLER;
    about.memory = UINT64_C(1) << 63; /* large numbers survive the way */
    about.queue_depth = index == 0 ? 0 : 2;
    cellgate_struct_copy(out, &about);
    return CELLGATE_OK;
}

static cellgate_status device_open(cellgate_instance *instance, uint32_t index,
                                   const cellgate_settings *settings,
                                   cellgate_device **device,
                                   cellgate_error *error)
{
    const cellgate_host *host = instance->host;
    cellgate_device *made;

    if (index == 9)
        return cellgate_fail(error, CELLGATE_DEVICE_FAILED,
                             "fake device 9 does not open");
    if (index == 8 && instance->busy-- > 0)
        return cellgate_fail(error, CELLGATE_BUSY,
                             "fake device 8 is in use at first");
    made = host->allocate(host->context, 64, sizeof *made);
    if (made == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    made->host = host;
    made->scale = strtod(host->setting(host->context, settings, "scale"), NULL);
    host->log(host->context, CELLGATE_LOG_DEBUG, "opened");
    *device = made;
    return CELLGATE_OK;
}

static void device_close(cellgate_device *device)
{
    if (device == NULL)
        return;
    device->host->log(device->host->context, CELLGATE_LOG_DEBUG, "closed");
    device->host->release(device->host->context, device);
}

static cellgate_status check_structs(const cellgate_segment *segment,
                                     const cellgate_shape *shape,
                                     cellgate_error *error)
{
    const cellgate_op *op = segment->ops[0];

    if (!cellgate_struct_known(segment, sizeof *segment) ||
        (shape != NULL && !cellgate_struct_known(shape, sizeof *shape)))
        return cellgate_refuse(error, CELLGATE_REASON_FIELD,
                               "a field newer than this plugin");
    if (segment->op_count != 1)
        return cellgate_refuse(error, CELLGATE_REASON_CHAIN, "chains of %u ops",
                               segment->op_count);
    if (op->kind != CELLGATE_OP_LSTM)
        return cellgate_refuse(error, CELLGATE_REASON_KIND, "ops of kind %d",
                               (int)op->kind);
    if (!cellgate_struct_known(op, sizeof(cellgate_lstm)))
        return cellgate_refuse(error, CELLGATE_REASON_FIELD,
                               "a field newer than this plugin");
    return CELLGATE_OK;
}

static cellgate_status check_lstm(const cellgate_lstm *lstm,
                                  cellgate_error *error)
{
    const cellgate_activation *gates = lstm->activations[0];

    if (lstm->directions != 1 || lstm->reverse != 0)
        return cellgate_refuse(error, CELLGATE_REASON_DIRECTIONS,
                               "only one direction, forward");
    if (lstm->projection_size != 0)
        return cellgate_refuse(error, CELLGATE_REASON_PROJECTION, "projection");
    if (lstm->has_peepholes != 0)
        return cellgate_refuse(error, CELLGATE_REASON_PEEPHOLES, "peepholes");
    if (lstm->coupled != 0)
        return cellgate_refuse(error, CELLGATE_REASON_COUPLED, "coupled gates");
    if (lstm->clip != 0)
        return cellgate_refuse(error, CELLGATE_REASON_CLIP, "clip");
    if (gates[0].kind != CELLGATE_SIGMOID || gates[1].kind != CELLGATE_TANH ||
        gates[2].kind != CELLGATE_TANH)
        return cellgate_refuse(error, CELLGATE_REASON_ACTIVATION,
                               "only sigmoid, tanh, tanh");
    return CELLGATE_OK;
}

static cellgate_status support(cellgate_device *device,
                               const cellgate_segment *segment,
                               const cellgate_shape *shape, uint32_t index,
                               cellgate_variant *variant, cellgate_error *error)
{
    cellgate_variant one = { .struct_size = sizeof one, .threads = 1 };
    cellgate_status status = check_structs(segment, shape, error);

    (void)device;
    if (status == CELLGATE_OK)
        status = check_lstm((const cellgate_lstm *)segment->ops[0], error);
    if (status != CELLGATE_OK)
        return status;
    if (index > 0)
        return CELLGATE_END;
    (void)snprintf(one.name, sizeof one.name, "loops");
    one.numeric = CELLGATE_NUMERIC_F32;
    cellgate_struct_copy(variant, &one);
    return CELLGATE_OK;
}

static cellgate_status prepare(cellgate_device *device,
                               const cellgate_segment *segment, uint32_t pack,
                               cellgate_weights **weights,
                               cellgate_error *error)
{
    cellgate_weights *made =
        device->host->allocate(device->host->context, 64, sizeof *made);

    (void)pack;
    if (made == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    made->device = device;
    made->op = (const cellgate_lstm *)segment->ops[0];
    *weights = made;
    return CELLGATE_OK;
}

static void weights_free(cellgate_weights *weights)
{
    if (weights != NULL)
        weights->device->host->release(weights->device->host->context, weights);
}

static cellgate_status plan_create(cellgate_device *device,
                                   cellgate_weights *weights, uint64_t variant,
                                   const cellgate_shape *shape,
                                   cellgate_plan **plan, cellgate_error *error)
{
    const cellgate_host *host = device->host;
    size_t hidden = (size_t)weights->op->hidden_size;
    cellgate_plan *made = host->allocate(host->context, 64, sizeof *made);

    (void)variant;
    if (made == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    made->weights = weights;
    made->batch = shape->batch;
    made->steps = shape->steps;
    made->state =
        host->allocate(host->context, 64, 6 * hidden * sizeof *made->state);
    if (made->state == NULL) {
        host->release(host->context, made);
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    }
    *plan = made;
    return CELLGATE_OK;
}

static void plan_destroy(cellgate_plan *plan)
{
    const cellgate_host *host;

    if (plan == NULL)
        return;
    host = plan->weights->device->host;
    host->release(host->context, plan->state);
    host->release(host->context, plan);
}

static float sigmoid(float x)
{
    return 1.0f / (1.0f + expf(-x));
}

/* One step of one row: h and c from x. */
static void step(const cellgate_lstm *op, const float *x, float *h, float *c,
                 float *gates)
{
    const cellgate_lstm_weights *w = &op->weights[0];
    int64_t hidden = op->hidden_size;
    int64_t width = 4 * hidden;
    int64_t i, k;

    for (i = 0; i < width; i++) {
        float sum = op->has_bias ? w->bias[i] : 0;
        for (k = 0; k < op->input_size; k++)
            sum += x[k] * w->kernel[k * width + i];
        for (k = 0; k < hidden; k++)
            sum += h[k] * w->recurrent_kernel[k * width + i];
        gates[i] = sum;
    }
    for (i = 0; i < hidden; i++) {
        c[i] = sigmoid(gates[hidden + i]) * c[i] +
               sigmoid(gates[i]) * tanhf(gates[2 * hidden + i]);
        h[i] = sigmoid(gates[3 * hidden + i]) * tanhf(c[i]);
    }
}

static void write_row(const cellgate_sequence *y, int64_t row, int64_t time,
                      const float *from, int64_t size, double scale)
{
    float *to = y->data;
    int64_t i;

    if (to == NULL)
        return;
    to += row * y->batch_stride + time * y->time_stride;
    for (i = 0; i < size; i++)
        to[i] = from != NULL ? (float)(scale * from[i]) : 0;
}

static void run_row(cellgate_plan *plan, const cellgate_segment_run *run,
                    int64_t row)
{
    const cellgate_lstm *op = plan->weights->op;
    double scale = plan->weights->device->scale;
    int64_t size = op->hidden_size;
    size_t bytes = (size_t)size * sizeof(float);
    float *h = plan->state, *c = h + size, *gates = c + size;
    const cellgate_lstm_state *state = run->states;
    int64_t length = run->lengths != NULL ? run->lengths[row] : run->steps;
    const float *x = run->x.data;
    int64_t t;

    memset(h, 0, 2 * bytes);
    if (state != NULL && state->h0 != NULL)
        memcpy(h, state->h0 + row * size, bytes);
    if (state != NULL && state->c0 != NULL)
        memcpy(c, state->c0 + row * size, bytes);
    for (t = 0; t < length; t++) {
        step(op, x + row * run->x.batch_stride + t * run->x.time_stride, h, c,
             gates);
        write_row(&run->y, row, t, h, size, scale);
    }
    for (; t < run->steps; t++)
        write_row(&run->y, row, t, NULL, size, scale);
    write_row(&run->y_last, row, 0, length > 0 ? h : NULL, size, scale);
    if (state != NULL && state->h != NULL)
        memcpy(state->h + row * size, h, bytes);
    if (state != NULL && state->c != NULL)
        memcpy(state->c + row * size, c, bytes);
}

static cellgate_status run_plan(cellgate_plan *plan,
                                const cellgate_segment_run *run,
                                cellgate_error *error)
{
    int64_t row;

    if (!cellgate_struct_known(run, sizeof *run))
        return cellgate_refuse(error, CELLGATE_REASON_FIELD,
                               "a field newer than this plugin");
    if (run->batch > plan->batch || run->steps > plan->steps)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "the run is larger than its plan");
    for (row = 0; row < run->batch; row++)
        run_row(plan, run, row);
    return CELLGATE_OK;
}

static const cellgate_key keys[] = {
    { .struct_size = sizeof(cellgate_key),
      .name = "scale",
      .type = CELLGATE_KEY_INTEGER,
      .default_text = "1",
      .minimum = 1,
      .maximum = 1000,
      .help = "multiplies the outputs" },
    { .struct_size = sizeof(cellgate_key),
      .name = "mode",
      .type = CELLGATE_KEY_CHOICE,
      .default_text = "plain",
      .choices = "plain|fancy",
      .help = "has no effect" },
};

static const char *const watched[] = { "$CELLGATE_FAKE_DEVICES", NULL };

static const cellgate_plugin table = {
    .magic = CELLGATE_PLUGIN_MAGIC,
    .abi_version = CELLGATE_ABI_VERSION,
    .struct_size = sizeof table,
    .name = "fake",
    .version = "1.0",
    .build = "loops",
    .keys = keys,
    .key_count = sizeof keys / sizeof keys[0],
    .watched = watched,
    .init = init,
    .finish = finish,
    .device_count = device_count,
    .device_describe = device_describe,
    .device_open = device_open,
    .device_close = device_close,
    .support = support,
    .prepare = prepare,
    .weights_free = weights_free,
    .plan_create = plan_create,
    .plan_destroy = plan_destroy,
    .run = run_plan,
};

const cellgate_plugin *cellgate_plugin_entry(uint32_t lowest, uint32_t highest)
{
    return CELLGATE_ABI_VERSION - lowest <= highest - lowest ? &table : NULL;
}
