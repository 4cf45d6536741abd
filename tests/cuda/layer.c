/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/cuda/executor.h"
#include "tests/cuda/layer.h"
#include "tests/oracle/oracle.h"
#include "tests/oracle/random.h"

#define INPUT 3 /* features; the kernels see their products only */
#define GAP 5   /* elements that belong to nobody, after each row of y */

/* The largest error: of sums of some hundred terms in float32. */
#define TOLERANCE 2e-5

typedef struct layer {
    const layer_case *is;
    int directions, output, width;
    cellgate_lstm lstm;
    float *kernel[2], *recurrent[2], *bias[2], *peephole[2], *projection[2];
    float *x, *h0, *c0;
    int32_t *lengths, *order;
    double *y, *last, *h, *c; /* the oracle's */
} layer;

static void *take(size_t count, size_t size)
{
    void *memory = malloc(count > 0 ? count * size : 1);

    assert_non_null(memory);
    return memory;
}

static float *random_floats(size_t count, double scale, uint64_t stream)
{
    random_source random = random_from(77, stream);
    float *made = take(count, sizeof *made);

    for (size_t i = 0; i < count; i++)
        made[i] = (float)random_between(&random, -scale, scale);
    return made;
}

/* ---- What is stored in 16 bits ----------------------------------------- */

static float decoded(uint16_t bits, int type)
{
    const int sign = bits >> 15 ? -1 : 1;
    const int wide = type == CUK_F16 ? 10 : 7;
    const int exponent = (bits & 0x7fff) >> wide;
    const int fraction = bits & ((1 << wide) - 1);
    const int bias = type == CUK_F16 ? 15 : 127;

    if (exponent == 0)
        return (float)(sign * ldexp(fraction, 1 - bias - wide));
    return (float)(sign *
                   ldexp(fraction + (1 << wide), exponent - bias - wide));
}

/* The weights become what they are when stored so. */
static void round_weights(float *weights, size_t count, int type)
{
    const double precision = type == CUK_F16 ? 1.0 / 2048 : 1.0 / 256;
    uint16_t *stored;

    if (type == CUK_F32)
        return;
    stored = take(count, sizeof *stored);
    cuk_pack_plain(weights, (int64_t)count, (enum cuk_type)type, stored);
    for (size_t i = 0; i < count; i++) {
        const float value = decoded(stored[i], type);

        assert_true(fabs((double)value - (double)weights[i]) <=
                    precision * fabs((double)weights[i]) + 1e-7);
        weights[i] = value;
    }
    free(stored);
}

/* ---- Making ------------------------------------------------------------ */

static void choose_activations(layer *l)
{
    static const cellgate_activation sets[3][3] = {
        { { CELLGATE_SIGMOID, 0, 0 },
          { CELLGATE_TANH, 0, 0 },
          { CELLGATE_TANH, 0, 0 } },
        { { CELLGATE_HARD_SIGMOID, 0.2f, 0.5f },
          { CELLGATE_TANH, 0, 0 },
          { CELLGATE_TANH, 0, 0 } },
        { { CELLGATE_SIGMOID, 0, 0 },
          { CELLGATE_SOFTSIGN, 0, 0 },
          { CELLGATE_ELU, 0.7f, 0 } },
    };
    const int set = l->is->activations;

    memcpy(l->lstm.activations[0], sets[set], sizeof sets[set]);
    memcpy(l->lstm.activations[1], sets[set == LAYER_MIXED ? 1 : set],
           sizeof sets[set]);
}

static void make_lengths(layer *l)
{
    const layer_case *is = l->is;
    random_source random = random_from(78, 1);

    l->lengths = take((size_t)is->batch, sizeof *l->lengths);
    l->order = take((size_t)is->batch, sizeof *l->order);
    for (int b = 0; b < is->batch; b++) {
        l->order[b] = b;
        l->lengths[b] = is->lengths == LAYER_FULL ? is->steps
                        : is->lengths == LAYER_RAGGED
                            ? (int32_t)random_integer(&random, 0, is->steps)
                            : (b % 3 == 1 ? is->steps - 1 : 0);
    }
    for (int i = 1; i < is->batch; i++)
        for (int j = i;
             j > 0 && l->lengths[l->order[j - 1]] < l->lengths[l->order[j]];
             j--) {
            const int32_t swap = l->order[j];

            l->order[j] = l->order[j - 1];
            l->order[j - 1] = swap;
        }
}

static void make_weights(layer *l, int d)
{
    const size_t h = (size_t)l->is->hidden, r = (size_t)l->output;
    const double scale = 1 / sqrt((double)r);
    const uint64_t stream = (uint64_t)d * 10;

    l->kernel[d] = random_floats(INPUT * 4 * h, 1, stream + 1);
    l->recurrent[d] = random_floats(r * 4 * h, 2 * scale, stream + 2);
    l->bias[d] = random_floats(4 * h, 1, stream + 3);
    l->peephole[d] = random_floats(3 * h, 1, stream + 4);
    l->projection[d] = random_floats(h * r, 2 / sqrt((double)h), stream + 5);
    round_weights(l->recurrent[d], r * 4 * h, l->is->type);
    round_weights(l->projection[d], h * r, l->is->type);
    l->lstm.weights[d] = (cellgate_lstm_weights){
        .kernel = l->kernel[d],
        .recurrent_kernel = l->recurrent[d],
        .bias = l->bias[d],
        .peephole = l->is->peepholes ? l->peephole[d] : NULL,
        .projection = l->is->projection ? l->projection[d] : NULL,
    };
}

static void make_layer(layer *l, const layer_case *is)
{
    const size_t batch = (size_t)is->batch, steps = (size_t)is->steps;

    *l = (layer){ .is = is };
    l->directions = is->directions > 1 ? 2 : 1;
    l->output = is->projection ? is->projection : is->hidden;
    l->width = l->directions * l->output;
    l->lstm = (cellgate_lstm){
        .op = { sizeof l->lstm, CELLGATE_OP_LSTM, 0 },
        .input_size = INPUT,
        .hidden_size = is->hidden,
        .projection_size = is->projection,
        .directions = l->directions,
        .reverse = is->reverse,
        .outputs = CELLGATE_LSTM_SEQUENCE | CELLGATE_LSTM_LAST |
                   CELLGATE_LSTM_H | CELLGATE_LSTM_C,
        .has_bias = 1,
        .has_peepholes = is->peepholes,
        .coupled = is->coupled,
        .clip = is->clip,
    };
    choose_activations(l);
    make_lengths(l);
    for (int d = 0; d < l->directions; d++)
        make_weights(l, d);
    l->x = random_floats(batch * steps * INPUT, 1, 31);
    if (is->nan_row)
        l->x[((size_t)is->nan_row - 1) * steps * INPUT] = NAN;
    l->h0 = random_floats((size_t)l->width * batch, 1, 32);
    l->c0 = random_floats((size_t)(l->directions * is->hidden) * batch, 1, 33);
}

static void free_layer(layer *l)
{
    for (int d = 0; d < l->directions; d++) {
        free(l->kernel[d]);
        free(l->recurrent[d]);
        free(l->bias[d]);
        free(l->peephole[d]);
        free(l->projection[d]);
    }
    free(l->x);
    free(l->h0);
    free(l->c0);
    free(l->lengths);
    free(l->order);
    free(l->y);
    free(l->last);
    free(l->h);
    free(l->c);
}

static void ask_oracle(layer *l)
{
    const layer_case *is = l->is;
    const size_t batch = (size_t)is->batch, width = (size_t)l->width;
    const cellgate_op *ops[] = { &l->lstm.op };
    const cellgate_segment segment = { sizeof segment, 1, 0, ops };
    oracle_state state;
    oracle_run run;

    l->y = take(batch * (size_t)is->steps * width, sizeof *l->y);
    l->last = take(batch * width, sizeof *l->last);
    l->h = take(batch * width, sizeof *l->h);
    l->c = take(batch * (size_t)(l->directions * is->hidden), sizeof *l->c);
    state = (oracle_state){ is->initial & 1 ? l->h0 : NULL,
                            is->initial & 2 ? l->c0 : NULL, l->h, l->c };
    run = (oracle_run){ .batch = is->batch,
                        .steps = is->steps,
                        .x = l->x,
                        .lengths = l->lengths,
                        .y = l->y,
                        .y_last = l->last,
                        .states = &state };
    assert_int_equal(oracle_segment_run(&segment, &run), 0);
}

/* ---- What the device gets ---------------------------------------------- */

static float *filled(size_t count, float value)
{
    float *made = take(count, sizeof *made);

    for (size_t i = 0; i < count; i++)
        made[i] = value;
    return made;
}

static void *pack_recurrent(const layer *l)
{
    const layer_case *is = l->is;
    const enum cuk_type type = (enum cuk_type)is->type;
    const size_t size = cuk_recurrent_size(l->output, is->hidden, type);
    unsigned char *packed = take((size_t)l->directions, size);

    for (int d = 0; d < l->directions; d++)
        cuk_pack_recurrent(l->recurrent[d], l->output, is->hidden, type,
                           packed + (size_t)d * size);
    return packed;
}

static void *pack_projection(const layer *l)
{
    const enum cuk_type type = (enum cuk_type)l->is->type;
    const int64_t count = (int64_t)l->is->hidden * l->output;
    const size_t size = (size_t)count * cuk_type_size(type);
    unsigned char *packed = take((size_t)l->directions, size);

    for (int d = 0; d < l->directions; d++)
        cuk_pack_plain(l->projection[d], count, type,
                       packed + (size_t)d * size);
    return packed;
}

static float *pack_peepholes(const layer *l)
{
    const size_t size = 3 * (size_t)l->is->hidden;
    float *packed = take((size_t)l->directions * size, sizeof *packed);

    for (int d = 0; d < l->directions; d++)
        memcpy(packed + (size_t)d * size, l->peephole[d],
               size * sizeof *packed);
    return packed;
}

/* One row of input products, from the oracle's kernel and bias. */
static void one_product(const layer *l, int d, const float *x, float *to)
{
    const int hidden = l->is->hidden;

    for (int unit = 0; unit < hidden; unit++)
        for (int gate = 0; gate < 4; gate++) {
            const int column = gate * hidden + unit;
            double sum = (double)l->bias[d][column];

            for (int k = 0; k < INPUT; k++)
                sum += (double)x[k] *
                       (double)l->kernel[d][k * 4 * hidden + column];
            to[unit * 4 + gate] = (float)sum;
        }
}

/* Products of the steps [first, end); NaN where a row has no such step. */
static float *make_products(const layer *l, int first, int end,
                            struct cuk_lstm *a)
{
    const layer_case *is = l->is;
    const size_t row = 4 * (size_t)is->hidden, batch = (size_t)is->batch;
    const size_t times = (size_t)(is->in_time ? is->steps : end - first);
    float *made = filled((size_t)l->directions * times * batch * row, NAN);

    a->products = made;
    a->products_at =
        (struct cuk_strides){ (int64_t)row, (int64_t)(batch * row) };
    a->products_direction = (int64_t)(times * batch * row);
    a->products_in_time = is->in_time;
    for (int d = 0; d < l->directions; d++)
        for (int b = 0; b < is->batch; b++)
            for (int s = first; s < end && s < l->lengths[b]; s++) {
                const int t = d == 1 || is->reverse ? l->lengths[b] - 1 - s : s;
                const int at = is->in_time ? t : s - first;

                one_product(l, d, l->x + (b * is->steps + t) * INPUT,
                            made + (size_t)d * times * batch * row +
                                ((size_t)at * batch + (size_t)b) * row);
            }
    return made;
}

/* ---- Running ----------------------------------------------------------- */

static void describe(const layer *l, struct cuk_lstm *a)
{
    const layer_case *is = l->is;

    *a = (struct cuk_lstm){
        .batch = is->batch,
        .steps = is->steps,
        .hidden = is->hidden,
        .output = l->output,
        .directions = l->directions,
        .reverse = { is->reverse, 1 },
        .initial = is->initial,
        .coupled = is->coupled,
        .clip = is->clip,
        .type = is->type,
        .recurrent_direction =
            (int64_t)(cuk_recurrent_size(l->output, is->hidden,
                                         (enum cuk_type)is->type) /
                      cuk_type_size((enum cuk_type)is->type)),
        .lengths = l->lengths,
        .order = l->order,
    };
    memcpy(a->activations, l->lstm.activations, sizeof a->activations);
}

/* All steps, some at a time. */
static void run_steps(const char *name, const layer *l, struct cuk_lstm *a,
                      layer_way way)
{
    const int chunk = l->is->chunk ? l->is->chunk : l->is->steps;

    for (int first = 0; first < l->is->steps; first += chunk) {
        const int end =
            first + chunk < l->is->steps ? first + chunk : l->is->steps;
        float *products = make_products(l, first, end, a);
        int code;

        a->first = first;
        a->end = end;
        code = way(a);
        free(products);
        if (code != 0)
            fail_msg("%s: error %d, %s", name, code, executor_why());
    }
}

/* Whether `got` is what the oracle says, `count` numbers of it. */
static void compare(const char *name, const char *what, const float *got,
                    const double *want, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const double difference = fabs((double)got[i] - want[i]);
        const double tolerance = TOLERANCE * (1 + fabs(want[i]));

        if (isnan(want[i]) ? !isnan(got[i]) : !(difference <= tolerance))
            fail_msg("%s: %s[%zu] is %.9g and not %.9g", name, what, i,
                     (double)got[i], want[i]);
    }
}

/* y is compared row by row, and what lies between its rows is looked at. */
static void compare_y(const char *name, const layer *l,
                      const struct cuk_lstm *a)
{
    const size_t width = (size_t)l->width;

    for (int b = 0; b < l->is->batch; b++)
        for (int t = 0; t < l->is->steps; t++) {
            const float *row = a->y + b * a->y_at.batch + t * a->y_at.time;
            char what[64];

            (void)snprintf(what, sizeof what, "y of row %d at time %d, ", b, t);
            compare(name, what, row,
                    l->y +
                        ((size_t)b * (size_t)l->is->steps + (size_t)t) * width,
                    width);
            for (int i = 0; i < GAP; i++)
                if (row[width + (size_t)i] != 123.0f)
                    fail_msg("%s: %s something is written after it", name,
                             what);
        }
}

static void set_strides(const layer *l, struct cuk_lstm *a)
{
    const int64_t row = l->width + GAP;

    a->y_at = l->is->time_major
                  ? (struct cuk_strides){ row, row * l->is->batch }
                  : (struct cuk_strides){ row * l->is->steps, row };
    a->last_stride = l->width;
}

void layer_check(const char *name, const layer_case *is, layer_way way)
{
    layer l;
    struct cuk_lstm a;
    size_t rows, states, cells;
    float *y, *last;

    make_layer(&l, is);
    ask_oracle(&l);
    describe(&l, &a);
    rows = (size_t)(is->batch * is->steps);
    states = (size_t)(l.width * is->batch);
    cells = (size_t)(l.directions * is->hidden * is->batch);
    set_strides(&l, &a);
    y = filled(rows * ((size_t)l.width + GAP), 123.0f);
    last = filled(states, NAN);
    a.y = is->silent ? NULL : y;
    a.last = is->silent ? NULL : last;
    a.h = filled(2 * states, NAN);
    a.c = filled(cells, NAN);
    a.unprojected = is->projection ? filled(cells, NAN) : NULL;
    a.sync = calloc(CUK_SYNC, sizeof *a.sync);
    a.recurrent = pack_recurrent(&l);
    a.projection = is->projection ? pack_projection(&l) : NULL;
    a.peephole = is->peepholes ? pack_peepholes(&l) : NULL;
    assert_non_null(a.sync);
    if (is->initial & 1)
        memcpy(a.h, l.h0, states * sizeof *a.h);
    if (is->initial & 2)
        memcpy(a.c, l.c0, cells * sizeof *a.c);
    run_steps(name, &l, &a, way);
    if (!is->silent) {
        compare_y(name, &l, &a);
        compare(name, "last", last, l.last, states);
    }
    compare(name, "h", a.h + (size_t)(is->steps & 1) * states, l.h, states);
    compare(name, "c", a.c, l.c, cells);
    for (int i = 0; i < CUK_SYNC; i++)
        if (a.sync[i] != 0)
            fail_msg("%s: sync[%d] is %u after the end", name, i, a.sync[i]);
    free(y);
    free(last);
    free(a.h);
    free(a.c);
    free(a.unprojected);
    free(a.sync);
    free((void *)(uintptr_t)a.recurrent);
    free((void *)(uintptr_t)a.projection);
    free((void *)(uintptr_t)a.peephole);
    free_layer(&l);
}
