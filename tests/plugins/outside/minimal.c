/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The smallest useful Cellgate plugin: LSTM on one core, in plain C. It is the
 * example of doc/plugin-guide.md, built against installed files only.
 */
#include <math.h>
#include <stdlib.h>

#include <cellgate/plugin.h>

/* The plugin's own idea of the objects that the host holds. */
struct cellgate_instance {
    cellgate_host host;
};

struct cellgate_device {
    int64_t max_batch; /* from the INI; 0 is no limit */
};

struct cellgate_weights {
    cellgate_lstm lstm;
};

struct cellgate_plan {
    const cellgate_lstm *lstm;
    int64_t batch, steps;
    float *gates, *h, *c; /* [4H], [H], [H]: one row at a time */
};

static cellgate_status init(const cellgate_host *host,
                            cellgate_instance **instance, cellgate_error *error)
{
    cellgate_instance *made = calloc(1, sizeof *made);

    if (made == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    made->host.struct_size = sizeof made->host;
    cellgate_struct_copy(&made->host, host);
    *instance = made;
    return CELLGATE_OK;
}

static void finish(cellgate_instance *instance)
{
    free(instance);
}

static uint32_t device_count(cellgate_instance *instance)
{
    (void)instance;
    return 1;
}

static cellgate_status device_describe(cellgate_instance *instance,
                                       uint32_t index,
                                       cellgate_device_description *out,
                                       cellgate_error *error)
{
    const cellgate_device_description device = {
        .struct_size = sizeof device,
        .name = "One core, plain C",
        .vendor = "Example",
        .driver = "1.0",
        .resource = "cpu",
        .identity = "minimal 1.0",
        .kind = CELLGATE_DEVICE_CPU,
        .flags = CELLGATE_DEVICE_ON_CALLER,
    };

    (void)instance;
    if (index > 0)
        return cellgate_fail(error, CELLGATE_INVALID, "there is no device %u",
                             (unsigned)index);
    cellgate_struct_copy(out, &device);
    return CELLGATE_OK;
}

static const cellgate_key keys[] = {
    { .struct_size = sizeof(cellgate_key),
      .name = "max_batch",
      .type = CELLGATE_KEY_INTEGER,
      .default_text = "0",
      .maximum = 1 << 20,
      .help = "largest batch to take; 0 is no limit" },
};

static cellgate_status device_open(cellgate_instance *instance, uint32_t index,
                                   const cellgate_settings *settings,
                                   cellgate_device **device,
                                   cellgate_error *error)
{
    const cellgate_host *host = &instance->host;
    cellgate_device *made;

    if (index > 0)
        return cellgate_fail(error, CELLGATE_INVALID, "there is no device %u",
                             (unsigned)index);
    made = calloc(1, sizeof *made);
    if (made == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    made->max_batch =
        strtoll(host->setting(host->context, settings, "max_batch"), NULL, 10);
    *device = made;
    return CELLGATE_OK;
}

static void device_close(cellgate_device *device)
{
    free(device);
}

static cellgate_status check_activations(const cellgate_lstm *lstm,
                                         cellgate_error *error)
{
    int which;

    for (which = 0; which < 3; which++) {
        int32_t kind = lstm->activations[0][which].kind;
        if (kind != CELLGATE_TANH && kind != CELLGATE_SIGMOID)
            return cellgate_refuse(error, CELLGATE_REASON_ACTIVATION,
                                   "activation %d is neither tanh nor sigmoid",
                                   (int)kind);
    }
    return CELLGATE_OK;
}

/* Reads the one op that this plugin takes, or refuses it with a reason. */
static cellgate_status read_segment(const cellgate_segment *segment,
                                    cellgate_lstm *lstm, cellgate_error *error)
{
    const cellgate_op *op = segment->ops[0];

    if (op->kind != CELLGATE_OP_LSTM)
        return cellgate_refuse(error, CELLGATE_REASON_KIND,
                               "op kind %d is not LSTM", (int)op->kind);
    if (segment->op_count != 1)
        return cellgate_refuse(error, CELLGATE_REASON_CHAIN,
                               "one LSTM at a time");
    if (!cellgate_struct_known(segment, sizeof *segment) ||
        !cellgate_struct_known(op, sizeof *lstm))
        return cellgate_refuse(error, CELLGATE_REASON_FIELD,
                               "a field that this plugin does not know");
    lstm->op.struct_size = sizeof *lstm;
    cellgate_struct_copy(lstm, op);
    if (lstm->directions != 1)
        return cellgate_refuse(error, CELLGATE_REASON_DIRECTIONS,
                               "%d directions", (int)lstm->directions);
    if (lstm->projection_size != 0)
        return cellgate_refuse(error, CELLGATE_REASON_PROJECTION, "projection");
    if (lstm->has_peepholes)
        return cellgate_refuse(error, CELLGATE_REASON_PEEPHOLES, "peepholes");
    if (lstm->coupled)
        return cellgate_refuse(error, CELLGATE_REASON_COUPLED,
                               "coupled input and forget gates");
    if (lstm->clip != 0)
        return cellgate_refuse(error, CELLGATE_REASON_CLIP, "clip");
    return check_activations(lstm, error);
}

static cellgate_status support(cellgate_device *device,
                               const cellgate_segment *segment,
                               const cellgate_shape *shape, uint32_t index,
                               cellgate_variant *variant, cellgate_error *error)
{
    const cellgate_variant only = {
        .struct_size = sizeof only,
        .name = "plain",
        .id = 0,
        .pack = 0,
        .numeric = CELLGATE_NUMERIC_F32,
        .threads = 1,
    };
    cellgate_lstm lstm;
    cellgate_status status = read_segment(segment, &lstm, error);

    if (status != CELLGATE_OK)
        return status;
    if (shape != NULL && !cellgate_struct_known(shape, sizeof *shape))
        return cellgate_refuse(error, CELLGATE_REASON_FIELD,
                               "a field that this plugin does not know");
    if (shape != NULL && device->max_batch > 0 &&
        shape->batch > device->max_batch)
        return cellgate_refuse(error, CELLGATE_REASON_SETTING,
                               "batch %lld is above max_batch = %lld",
                               (long long)shape->batch,
                               (long long)device->max_batch);
    if (index > 0)
        return CELLGATE_END;
    cellgate_struct_copy(variant, &only);
    return CELLGATE_OK;
}

static cellgate_status prepare(cellgate_device *device,
                               const cellgate_segment *segment, uint32_t pack,
                               cellgate_weights **weights,
                               cellgate_error *error)
{
    cellgate_lstm lstm;
    cellgate_status status = read_segment(segment, &lstm, error);
    cellgate_weights *made;

    (void)device;
    (void)pack; /* there is one */
    if (status != CELLGATE_OK)
        return status;
    made = calloc(1, sizeof *made);
    if (made == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    made->lstm = lstm; /* its arrays stay valid until weights_free() */
    *weights = made;
    return CELLGATE_OK;
}

static void weights_free(cellgate_weights *weights)
{
    free(weights);
}

static cellgate_status plan_create(cellgate_device *device,
                                   cellgate_weights *weights, uint64_t variant,
                                   const cellgate_shape *shape,
                                   cellgate_plan **plan, cellgate_error *error)
{
    const size_t hidden = (size_t)weights->lstm.hidden_size;
    cellgate_plan *made;

    if (!cellgate_struct_known(shape, sizeof *shape))
        return cellgate_refuse(error, CELLGATE_REASON_FIELD,
                               "a field that this plugin does not know");
    made = calloc(1, sizeof *made);
    (void)device;
    (void)variant; /* there is one */
    if (made != NULL)
        made->gates = calloc(hidden, 6 * sizeof *made->gates);
    if (made == NULL || made->gates == NULL) {
        free(made);
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "out of memory");
    }
    made->lstm = &weights->lstm;
    made->batch = shape->batch;
    made->steps = shape->steps;
    made->h = made->gates + 4 * hidden;
    made->c = made->h + hidden;
    *plan = made;
    return CELLGATE_OK;
}

static void plan_destroy(cellgate_plan *plan)
{
    if (plan == NULL)
        return;
    free(plan->gates);
    free(plan);
}

static float activate(const cellgate_activation *activation, float x)
{
    if (activation->kind == CELLGATE_SIGMOID)
        return 1.0f / (1.0f + expf(-x));
    return tanhf(x);
}

/* gates += x[rows] * kernel[rows][columns] */
static void multiply(const float *x, int64_t rows, const float *kernel,
                     int64_t columns, float *gates)
{
    int64_t row, column;

    for (row = 0; row < rows; row++)
        for (column = 0; column < columns; column++)
            gates[column] += x[row] * kernel[row * columns + column];
}

/* One step of one row, on plan->h and plan->c. */
static void step(cellgate_plan *plan, const float *x)
{
    const cellgate_lstm *lstm = plan->lstm;
    const cellgate_lstm_weights *weights = &lstm->weights[0];
    const cellgate_activation *activations = lstm->activations[0];
    const int64_t H = lstm->hidden_size;
    const float *i = plan->gates, *f = i + H, *g = f + H, *o = g + H;
    int64_t k;

    if (lstm->has_bias)
        memcpy(plan->gates, weights->bias, (size_t)(4 * H) * sizeof(float));
    else
        memset(plan->gates, 0, (size_t)(4 * H) * sizeof(float));
    multiply(x, lstm->input_size, weights->kernel, 4 * H, plan->gates);
    multiply(plan->h, H, weights->recurrent_kernel, 4 * H, plan->gates);
    for (k = 0; k < H; k++) {
        plan->c[k] =
            activate(&activations[0], f[k]) * plan->c[k] +
            activate(&activations[0], i[k]) * activate(&activations[1], g[k]);
        plan->h[k] = activate(&activations[0], o[k]) *
                     activate(&activations[2], plan->c[k]);
    }
}

/* to = from, or zeros where it is NULL; nothing where `to` is NULL. */
static void put(float *to, const float *from, int64_t count)
{
    if (to == NULL)
        return;
    if (from != NULL)
        memcpy(to, from, (size_t)count * sizeof *to);
    else
        memset(to, 0, (size_t)count * sizeof *to);
}

/* `features` values at (b, t); NULL where the run does not have them. */
static float *at(const cellgate_sequence *sequence, int64_t b, int64_t t)
{
    if (sequence->data == NULL)
        return NULL;
    return (float *)sequence->data + b * sequence->batch_stride +
           t * sequence->time_stride;
}

/* Row b of a dense [batch][count] array, or NULL. */
static const float *row_of(const float *array, int64_t b, int64_t count)
{
    return array != NULL ? array + b * count : NULL;
}

static void run_row(cellgate_plan *plan, const cellgate_segment_run *run,
                    const cellgate_lstm_state *state, int64_t b)
{
    const int64_t H = plan->lstm->hidden_size;
    const int64_t length = run->lengths != NULL ? run->lengths[b] : run->steps;
    int64_t done;

    put(plan->h, row_of(state->h0, b, H), H);
    put(plan->c, row_of(state->c0, b, H), H);
    for (done = 0; done < length; done++) {
        int64_t t = plan->lstm->reverse ? length - 1 - done : done;
        step(plan, at(&run->x, b, t));
        put(at(&run->y, b, t), plan->h, H);
    }
    for (; done < run->steps; done++)
        put(at(&run->y, b, done), NULL, H);
    put(at(&run->y_last, b, 0), length > 0 ? plan->h : NULL, H);
    if (state->h != NULL)
        put(state->h + b * H, plan->h, H);
    if (state->c != NULL)
        put(state->c + b * H, plan->c, H);
}

static cellgate_status run(cellgate_plan *plan, const cellgate_segment_run *run,
                           cellgate_error *error)
{
    static const cellgate_lstm_state none;
    int64_t b;

    if (!cellgate_struct_known(run, sizeof *run))
        return cellgate_refuse(error, CELLGATE_REASON_FIELD,
                               "a field that this plugin does not know");
    if (run->batch < 1 || run->batch > plan->batch || run->steps < 0 ||
        run->steps > plan->steps)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "batch %lld, steps %lld in a plan of %lld, %lld",
                             (long long)run->batch, (long long)run->steps,
                             (long long)plan->batch, (long long)plan->steps);
    for (b = 0; b < run->batch; b++)
        run_row(plan, run, run->states != NULL ? run->states : &none, b);
    return CELLGATE_OK;
}

static const cellgate_plugin table = {
    .magic = CELLGATE_PLUGIN_MAGIC,
    .abi_version = CELLGATE_ABI_VERSION,
    .struct_size = sizeof table,
    .name = "minimal",
    .version = "1.0",
    .build = "1.0 " __VERSION__,
    .keys = keys,
    .key_count = sizeof keys / sizeof keys[0],
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
    .run = run,
};

const cellgate_plugin *cellgate_plugin_entry(uint32_t lowest, uint32_t highest)
{
    if (table.abi_version < lowest || table.abi_version > highest)
        return NULL;
    return &table;
}
