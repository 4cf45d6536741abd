/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The smallest plugin that conforms: one device, one variant, the minimum
 * profile (one forward direction, sigmoid and tanh, float32), plain loops. It
 * is an example to start from, and what the conformance suite is tested with:
 * faults can be compiled into it (faults.h), so every HAS_FAULT() below is a 0
 * to whoever reads it as an example.
 */
#include "config.h"

#include <math.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>

#include "cellgate/plugin.h"
#include "tests/conformance/faults.h"

struct cellgate_instance {
    const cellgate_host *host;
};

struct cellgate_device {
    const cellgate_host *host;
};

/* The op, whose weights the host keeps valid: nothing is laid out anew. */
struct cellgate_weights {
    const cellgate_host *host;
    cellgate_lstm lstm;
};

struct cellgate_plan {
    const cellgate_weights *weights;
    int64_t batch, steps; /* the most that a run may have */
    float *h, *c, *z;     /* one row's state [H], and its gates [4][H] */
};

/* ---- Instance and device ------------------------------------------------ */

static cellgate_status init(const cellgate_host *host,
                            cellgate_instance **instance, cellgate_error *error)
{
    cellgate_instance *made =
        host->allocate(host->context, _Alignof(max_align_t), sizeof *made);

    if (made == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory");
    made->host = host;
    *instance = made;
    return CELLGATE_OK;
}

static void finish(cellgate_instance *instance)
{
    if (instance != NULL)
        instance->host->release(instance->host->context, instance);
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
    cellgate_device_description d = { .struct_size = sizeof d,
                                      .name = "reference",
                                      .vendor = "Cellgate",
                                      .driver = "0",
                                      .resource = "cpu",
                                      .identity = "reference 0",
                                      .kind = CELLGATE_DEVICE_CPU,
                                      .flags = CELLGATE_DEVICE_ON_CALLER,
                                      .queue_depth = 1 };

    (void)instance;
    if (index != 0)
        return cellgate_fail(error, CELLGATE_INVALID, "no device %u", index);
    if (HAS_FAULT(NO_IDENTITY))
        d.identity[0] = '\0';
    cellgate_struct_copy(out, &d);
    return CELLGATE_OK;
}

static cellgate_status device_open(cellgate_instance *instance, uint32_t index,
                                   const cellgate_settings *settings,
                                   cellgate_device **device,
                                   cellgate_error *error)
{
    const cellgate_host *host = instance->host;
    cellgate_device *made;

    (void)settings;
    if (index != 0)
        return cellgate_fail(error, CELLGATE_INVALID, "no device %u", index);
    made = host->allocate(host->context, _Alignof(max_align_t), sizeof *made);
    if (made == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory");
    made->host = host;
    *device = made;
    return CELLGATE_OK;
}

static void device_close(cellgate_device *device)
{
    if (device != NULL)
        device->host->release(device->host->context, device);
}

/* ---- What the faulty plugin shares where it must not; unused otherwise -- */

#ifdef WITH_FAULTS
int fault_now;
#endif
static cellgate_lstm newest;
static float shared_scratch[4096];
static volatile float bystander;
static void *volatile lost;
static volatile int refuses;

/* ---- Support ------------------------------------------------------------ */

/* Whether a struct of the host asks for nothing that is newer than we are. */
static int is_known(const void *object, size_t known)
{
    size_t size;

    if (HAS_FAULT(IGNORES_NEW_FIELD))
        return 1;
    memcpy(&size, object, sizeof size);
    if (HAS_FAULT(REFUSES_LONGER_STRUCTS))
        return size <= known;
    return cellgate_struct_known(object, known);
}

static int is(const cellgate_activation *activation, int32_t kind)
{
    return activation->kind == kind;
}

static cellgate_status check_lstm(const cellgate_lstm *lstm,
                                  cellgate_error *error)
{
    const cellgate_activation *a = lstm->activations[0];

    if (lstm->directions != 1 || lstm->reverse)
        return cellgate_refuse(error, CELLGATE_REASON_DIRECTIONS,
                               "only one forward direction");
    if (!is(&a[0], CELLGATE_SIGMOID) || !is(&a[1], CELLGATE_TANH) ||
        !is(&a[2], CELLGATE_TANH))
        return cellgate_refuse(error, CELLGATE_REASON_ACTIVATION,
                               "only sigmoid gates and tanh");
    if (lstm->clip != 0.0f)
        return cellgate_refuse(error, CELLGATE_REASON_CLIP, "no clipping");
    if (lstm->has_peepholes && HAS_FAULT(REFUSES_WITHOUT_REASON))
        return cellgate_fail(error, CELLGATE_UNSUPPORTED, "no peepholes");
    if (lstm->has_peepholes && HAS_FAULT(REFUSES_WITHOUT_TEXT))
        return cellgate_refuse(error, CELLGATE_REASON_PEEPHOLES, "%s", "");
    if (lstm->has_peepholes)
        return cellgate_refuse(error, CELLGATE_REASON_PEEPHOLES,
                               "no peepholes");
    if (lstm->coupled)
        return cellgate_refuse(error, CELLGATE_REASON_COUPLED,
                               "no coupled gates");
    if (lstm->projection_size != 0)
        return cellgate_refuse(error, CELLGATE_REASON_PROJECTION,
                               "no projection");
    return CELLGATE_OK;
}

static cellgate_status check_segment(const cellgate_segment *segment,
                                     cellgate_error *error)
{
    const cellgate_op *op = segment->ops[0];

    if (!is_known(segment, sizeof *segment))
        return cellgate_refuse(error, CELLGATE_REASON_FIELD,
                               "the segment has a field of a newer version");
    if (segment->op_count != 1)
        return cellgate_refuse(error, CELLGATE_REASON_CHAIN,
                               "only a single LSTM, not %u ops",
                               segment->op_count);
    if (HAS_FAULT(UNKNOWN_KIND_WITHOUT_REASON) && op->kind > 5)
        return cellgate_refuse(error, CELLGATE_REASON_OTHER, "no");
    if (op->kind != CELLGATE_OP_LSTM)
        return cellgate_refuse(error, CELLGATE_REASON_KIND,
                               "only LSTM, not op kind %d", (int)op->kind);
    if (!is_known(op, sizeof(cellgate_lstm)))
        return cellgate_refuse(error, CELLGATE_REASON_FIELD,
                               "the LSTM has a field of a newer version");
    return check_lstm((const cellgate_lstm *)(const void *)op, error);
}

static cellgate_status support(cellgate_device *device,
                               const cellgate_segment *segment,
                               const cellgate_shape *shape, uint32_t index,
                               cellgate_variant *variant, cellgate_error *error)
{
    cellgate_variant v = { .struct_size = sizeof v,
                           .name = "naive",
                           .id = 1,
                           .numeric = CELLGATE_NUMERIC_F32,
                           .threads = 1 };
    cellgate_status status = check_segment(segment, error);

    (void)device;
    if (status != CELLGATE_OK)
        return status;
    if (shape != NULL && !is_known(shape, sizeof *shape))
        return cellgate_refuse(error, CELLGATE_REASON_FIELD,
                               "the shape has a field of a newer version");
    if (HAS_FAULT(REFUSES_A_SHAPE) && shape != NULL && shape->steps > 50)
        return cellgate_refuse(error, CELLGATE_REASON_SHAPE, "too long");
    if (HAS_FAULT(NO_THREADS))
        v.threads = 0;
    if (HAS_FAULT(NAME_NOT_LISTED))
        v.name[0] = 'x';
    if (HAS_FAULT(REFUSES_ALL_ONCE_RUN) && refuses)
        (void)snprintf(v.refusal, sizeof v.refusal, "no kernel starts");
    if (index > (HAS_FAULT(SAME_NAME_TWICE) ? 1u : 0u))
        return CELLGATE_END;
    if (HAS_FAULT(WRITES_BEYOND_VARIANT)) {
        v.struct_size = variant->struct_size;
        *variant = v;
        return CELLGATE_OK;
    }
    cellgate_struct_copy(variant, &v);
    return CELLGATE_OK;
}

/* ---- Weights and plans -------------------------------------------------- */

static cellgate_status prepare(cellgate_device *device,
                               const cellgate_segment *segment, uint32_t pack,
                               cellgate_weights **weights,
                               cellgate_error *error)
{
    const cellgate_host *host = device->host;
    cellgate_status status = check_segment(segment, error);
    cellgate_weights *made;

    (void)pack;
    if (status != CELLGATE_OK)
        return status;
    made = host->allocate(host->context, _Alignof(max_align_t), sizeof *made);
    if (made == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory");
    made->host = host;
    made->lstm.op.struct_size = sizeof made->lstm;
    cellgate_struct_copy(&made->lstm, segment->ops[0]);
    if (HAS_FAULT(SHARED_WEIGHTS))
        newest = made->lstm;
    *weights = made;
    return CELLGATE_OK;
}

static void weights_free(cellgate_weights *weights)
{
    if (HAS_FAULT(LEAK_OF_HEAP))
        lost = malloc(64);
    if (weights != NULL)
        weights->host->release(weights->host->context, weights);
}

static void plan_destroy(cellgate_plan *plan)
{
    const cellgate_host *host;

    if (plan == NULL)
        return;
    host = plan->weights->host;
    host->release(host->context, plan->h);
    host->release(host->context, plan->c);
    if (!HAS_FAULT(LEAK_OF_HOST_MEMORY))
        host->release(host->context, plan->z);
    host->release(host->context, plan);
}

static cellgate_status plan_create(cellgate_device *device,
                                   cellgate_weights *weights, uint64_t variant,
                                   const cellgate_shape *shape,
                                   cellgate_plan **plan, cellgate_error *error)
{
    const cellgate_host *host = device->host;
    size_t row = (size_t)weights->lstm.hidden_size * sizeof(float);
    cellgate_shape wanted = { .struct_size = sizeof wanted };
    cellgate_plan *made;

    (void)variant;
    if (!is_known(shape, sizeof *shape))
        return cellgate_refuse(error, CELLGATE_REASON_FIELD,
                               "the shape has a field of a newer version");
    made = host->allocate(host->context, _Alignof(max_align_t), sizeof *made);
    if (made == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory");
    cellgate_struct_copy(&wanted, shape);
    if (HAS_FAULT(READS_BEYOND_SHAPE))
        wanted = *shape;
    if (wanted.batch < 1 || wanted.steps < 0 || wanted.steps > INT32_MAX) {
        host->release(host->context, made);
        return cellgate_fail(error, CELLGATE_INVALID, "no such shape");
    }
    *made = (cellgate_plan){ .weights = weights,
                             .batch = wanted.batch,
                             .steps = wanted.steps };
    made->h = host->allocate(host->context, sizeof(float), row);
    made->c = host->allocate(host->context, sizeof(float), row);
    made->z = host->allocate(host->context, sizeof(float), 4 * row);
    if (made->h == NULL || made->c == NULL || made->z == NULL) {
        plan_destroy(made);
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory");
    }
    memset(made->h, 0, row);
    memset(made->c, 0, row);
    *plan = made;
    return CELLGATE_OK;
}

/* ---- Running ------------------------------------------------------------ */

static float sigmoid(float x)
{
    if (HAS_FAULT(SIGMOID_RANGE) && fabsf(x) > 40.0f)
        return 0.5f;
    return 1.0f / (1.0f + expf(-x));
}

static float squash(float x)
{
    if (HAS_FAULT(TANH_OVERFLOWS))
        return (expf(x) - expf(-x)) / (expf(x) + expf(-x));
    return tanhf(x);
}

/* x as a factor of a product. */
static float factor(float x)
{
    uint32_t bits;

    if (HAS_FAULT(NAN_VANISHES) && isnan(x))
        return 0.0f;
    if (!HAS_FAULT(TF32_CLAIMED_F32))
        return x;
    memcpy(&bits, &x, sizeof bits);
    bits &= 0xFFFFE000u;
    memcpy(&x, &bits, sizeof bits);
    return x;
}

/* z = x W + h R + b */
static void gate_arguments(const cellgate_lstm *lstm, const float *x,
                           const float *h, float *z)
{
    const cellgate_lstm_weights *w = &lstm->weights[0];
    const int64_t n = lstm->hidden_size;

    for (int64_t j = 0; j < 4 * n; j++)
        z[j] = lstm->has_bias && !HAS_FAULT(NO_BIAS) ? w->bias[j] : 0.0f;
    for (int64_t k = 0; k < lstm->input_size; k++)
        for (int64_t j = 0; j < 4 * n; j++)
            z[j] += factor(x[k]) * w->kernel[k * 4 * n + j];
    for (int64_t k = 0; k < n; k++)
        for (int64_t j = 0; j < 4 * n; j++)
            z[j] += h[k] * w->recurrent_kernel[k * 4 * n + j];
    if (HAS_FAULT(NAN_SPREADS)) {
        bystander = 0.0f * z[0] + bystander;
        z[0] += bystander;
    }
    if (HAS_FAULT(READS_BEYOND))
        bystander = x[lstm->input_size + 7];
}

/* One step of one row: the gates' arguments, then the cell. */
static void step(cellgate_plan *plan, const float *x)
{
    const cellgate_lstm *lstm =
        HAS_FAULT(SHARED_WEIGHTS) ? &newest : &plan->weights->lstm;
    const int64_t n = lstm->hidden_size;
    float *z = HAS_FAULT(SHARED_SCRATCH) ? shared_scratch : plan->z;
    const float *zi = z, *zf = z + n;

    gate_arguments(lstm, x, plan->h, z);
    if (HAS_FAULT(SHARED_SCRATCH))
        (void)sched_yield();
    if (HAS_FAULT(GATE_ORDER)) {
        zi = z + n;
        zf = z;
    }
    for (int64_t j = 0; j < n; j++) {
        float i = sigmoid(zi[j]), f = sigmoid(zf[j]);
        float g = squash(z[2 * n + j]), o = sigmoid(z[3 * n + j]);
        plan->c[j] = f * plan->c[j] + i * g;
        plan->h[j] = o * squash(plan->c[j]);
    }
}

/* A row's initial state; `from` is NULL for zeros. */
static void load(float *to, const float *from, int64_t row, int64_t n)
{
    if (from == NULL && row == 0 && HAS_FAULT(STALE_STATE))
        return;
    for (int64_t j = 0; j < n; j++)
        to[j] = from != NULL ? from[row * n + j] : 0.0f;
}

static void store(float *to, const float *from, int64_t n)
{
    if (to != NULL)
        memcpy(to, from, (size_t)n * sizeof *to);
}

static float *element(const cellgate_sequence *s, int64_t b, int64_t t)
{
    return (float *)s->data + b * s->batch_stride + t * s->time_stride;
}

/* One step beyond a row's length, which leaves the state alone. */
static void skip(cellgate_plan *plan, const cellgate_segment_run *run,
                 int64_t b, int64_t t, int64_t n)
{
    if (HAS_FAULT(PADDING_TIMES_ZERO))
        for (int64_t j = 0; j < n; j++)
            plan->h[j] += 0.0f * element(&run->x, b, t)[0];
    if (run->y.data != NULL)
        memset(element(&run->y, b, t), 0, (size_t)n * sizeof(float));
}

static void store_last(const cellgate_plan *plan,
                       const cellgate_segment_run *run, int64_t b,
                       int64_t length, int64_t n)
{
    float *last;

    if (run->y_last.data == NULL ||
        (HAS_FAULT(LAST_NOT_WRITTEN) && run->y.data != NULL))
        return;
    last = (float *)run->y_last.data + b * run->y_last.batch_stride;
    if (length > 0 || HAS_FAULT(LAST_IS_H))
        store(last, plan->h, n);
    else
        memset(last, 0, (size_t)n * sizeof(float));
}

static void store_state(cellgate_plan *plan, const cellgate_lstm_state *state,
                        int64_t b, int64_t length, int64_t n)
{
    if (HAS_FAULT(NO_STEPS_NO_STATE) && length == 0) {
        memset(plan->h, 0, (size_t)n * sizeof(float));
        memset(plan->c, 0, (size_t)n * sizeof(float));
    }
    if (state->h != NULL)
        store(state->h + b * n, plan->h, n);
    else if (HAS_FAULT(ALWAYS_WRITES_H) && state->c != NULL)
        store(state->c + b * n, plan->h, n);
    if (state->c != NULL && !(HAS_FAULT(ALWAYS_WRITES_H) && state->h == NULL))
        store(state->c + b * n, plan->c, n);
    if (HAS_FAULT(OVERWRITES_INPUT) && state->h0 != NULL)
        memcpy((void *)(uintptr_t)(state->h0 + b * n), plan->h,
               (size_t)n * sizeof(float));
}

static void run_row(cellgate_plan *plan, const cellgate_segment_run *run,
                    int64_t b)
{
    static const cellgate_lstm_state none = { NULL, NULL, NULL, NULL };
    const cellgate_lstm_state *state =
        run->states != NULL ? &run->states[0] : &none;
    const int64_t n = plan->weights->lstm.hidden_size;
    int64_t length = run->lengths != NULL && !HAS_FAULT(LENGTHS_IGNORED)
                         ? run->lengths[b]
                         : run->steps;
    int forgets = HAS_FAULT(STATE_NOT_CARRIED) && length < 5;

    load(plan->h, forgets ? NULL : state->h0, b, n);
    load(plan->c, HAS_FAULT(C0_IGNORED) ? NULL : state->c0, b, n);
    for (int64_t t = 0; t < length; t++) {
        step(plan, element(&run->x, b, t));
        if (run->y.data != NULL)
            store(element(&run->y, b, t), plan->h, n);
        if (run->y.data != NULL && HAS_FAULT(WRITES_GAPS) &&
            t + 1 < run->steps && run->y.time_stride > n)
            element(&run->y, b, t)[n] = 0.0f;
    }
    for (int64_t t = length; t < run->steps; t++)
        skip(plan, run, b, t, n);
    store_last(plan, run, b, length, n);
    store_state(plan, state, b, length, n);
}

static cellgate_status run(cellgate_plan *plan,
                           const cellgate_segment_run *given,
                           cellgate_error *error)
{
    cellgate_segment_run r = { .struct_size = sizeof r };
    const cellgate_host *host = plan->weights->host;

    if (!cellgate_struct_known(given, sizeof r) &&
        !HAS_FAULT(IGNORES_NEW_RUN_FIELD))
        return cellgate_refuse(error, CELLGATE_REASON_FIELD,
                               "the run has a field of a newer version");
    cellgate_struct_copy(&r, given);
    if ((r.batch < 1 || r.batch > plan->batch || r.steps < 0 ||
         r.steps > plan->steps) &&
        !HAS_FAULT(NO_CAPACITY))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "a run of %lld rows and %lld steps exceeds the "
                             "plan's %lld and %lld",
                             (long long)r.batch, (long long)r.steps,
                             (long long)plan->batch, (long long)plan->steps);
    if (HAS_FAULT(FINALS_REQUIRED) &&
        (plan->weights->lstm.outputs & CELLGATE_LSTM_H) != 0 &&
        (r.states == NULL || r.states[0].h == NULL))
        return cellgate_fail(error, CELLGATE_INVALID, "h is missing");
    if (HAS_FAULT(BATCH_MAJOR_ONLY)) {
        r.x.time_stride = plan->weights->lstm.input_size;
        r.x.batch_stride = r.steps * r.x.time_stride;
    }
    if (HAS_FAULT(REFUSES_RUNS_AND_OFFERS_THEM) && r.steps > 50)
        return cellgate_refuse(error, CELLGATE_REASON_SHAPE, "too long");
    if (HAS_FAULT(REFUSES_ALL_ONCE_RUN)) {
        refuses = 1;
        return cellgate_refuse(error, CELLGATE_REASON_DEVICE,
                               "no kernel starts");
    }
    if (HAS_FAULT(ALLOCATES_IN_RUN))
        host->release(host->context, host->allocate(host->context, 64, 64));
    for (int64_t b = 0; b < r.batch; b++)
        run_row(plan, &r, b);
    return CELLGATE_OK;
}

static const char *const variants[] = { "naive", NULL };

static const cellgate_plugin table = {
    .magic = CELLGATE_PLUGIN_MAGIC,
    .abi_version = CELLGATE_ABI_VERSION,
    .struct_size = sizeof table,
    .name = "reference",
    .version = "0",
    .build = "reference 0",
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
    .variants = variants,
};

#ifdef WITH_FAULTS
/* Takes the fault from the environment; an unknown name is none. */
static void choose_fault(void)
{
    static const char *const names[] = { "NONE",
#define FAULT_NAME(name, group) #name,
                                         FAULT_LIST(FAULT_NAME)
#undef FAULT_NAME
    };
    const char *wanted = getenv("FAULT");

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (wanted != NULL && strcmp(wanted, names[i]) == 0)
            fault_now = (int)i;
}
#endif

const cellgate_plugin *cellgate_plugin_entry(uint32_t lowest, uint32_t highest)
{
    const uint32_t mine = table.abi_version;

#ifdef WITH_FAULTS
    choose_fault();
#endif
    if (HAS_FAULT(ANY_VERSION))
        return &table;
    return lowest <= mine && mine <= highest ? &table : NULL;
}
