/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>

#include "tests/conformance/execution.h"

/* Strides of a layout, and the elements that the array spans. */
static size_t lay_out(int32_t layout, int64_t batch, int64_t steps,
                      int64_t features, cellgate_sequence *to)
{
    int64_t padded =
        layout == CASE_PADDED_BATCH_MAJOR || layout == CASE_PADDED_TIME_MAJOR;
    int64_t vector = features + 3 * padded;

    if (layout == CASE_TIME_MAJOR || layout == CASE_PADDED_TIME_MAJOR) {
        to->batch_stride = vector;
        to->time_stride = batch * vector + 7 * padded;
    } else {
        to->time_stride = vector;
        to->batch_stride = steps * vector + 5 * padded;
    }
    if (steps == 0)
        return 0;
    return (size_t)((batch - 1) * to->batch_stride +
                    (steps - 1) * to->time_stride + features);
}

/* Rows: one vector a sample; the padded layouts leave a gap between them. */
static size_t lay_out_rows(int32_t layout, int64_t batch, int64_t features,
                           cellgate_sequence *to)
{
    size_t size = lay_out(layout, batch, 1, features, to);

    to->time_stride = 0;
    return size;
}

/* Whether x beyond a row's length is anybody's business. */
static int padding_is_read(const case_data *data)
{
    return data->c.ops[0].kind != CELLGATE_OP_LSTM;
}

static void scatter_x(execution *e)
{
    const case_data *data = e->data;
    const cellgate_sequence *x = &e->run.x;
    int64_t features = data->c.input_size;

    for (int64_t b = 0; b < data->c.batch; b++) {
        int64_t used =
            padding_is_read(data) ? data->c.steps : case_length(data, b);
        for (int64_t t = 0; t < used; t++) {
            int64_t to = b * x->batch_stride + t * x->time_stride;
            int64_t from = b * data->c.steps + t;
            if (data->ids != NULL)
                ((int32_t *)x->data)[to] = data->ids[from];
            else
                memcpy((float *)x->data + to, data->x + from * features,
                       (size_t)features * sizeof(float));
        }
    }
}

static int init_x(execution *e, guard_kind kind)
{
    const test_case *c = &e->data->c;
    size_t size = c->takes_rows ? lay_out_rows(c->x_layout, c->batch,
                                               c->input_size, &e->run.x)
                                : lay_out(c->x_layout, c->batch, c->steps,
                                          c->input_size, &e->run.x);

    e->run.x.dtype = e->data->ids != NULL ? CELLGATE_I32 : CELLGATE_F32;
    if (guarded_init(&e->x, size, kind) != 0)
        return -1;
    guarded_fill(&e->x, GUARD_INPUT_PATTERN);
    e->run.x.data = e->x.data;
    scatter_x(e);
    return guarded_seal(&e->x);
}

static int init_copy(guarded *g, const void *from, size_t count,
                     guard_kind kind)
{
    if (guarded_init(g, count, kind) != 0)
        return -1;
    guarded_fill(g, GUARD_INPUT_PATTERN);
    if (count > 0)
        memcpy(g->data, from, count * sizeof(uint32_t));
    return guarded_seal(g);
}

static int init_state(execution *e, int32_t op, guard_kind kind)
{
    const case_op *o = &e->data->c.ops[op];
    int64_t rows = o->directions * e->data->c.batch;
    cellgate_lstm_state *state = &e->states[op];

    if (e->data->h0[op] != NULL) {
        if (init_copy(&e->h0[op], e->data->h0[op],
                      (size_t)(rows * case_state_width(o)), kind) != 0)
            return -1;
        state->h0 = e->h0[op].data;
    }
    if (e->data->c0[op] != NULL) {
        if (init_copy(&e->c0[op], e->data->c0[op], (size_t)(rows * o->size),
                      kind) != 0)
            return -1;
        state->c0 = e->c0[op].data;
    }
    return 0;
}

static int init_tensor(execution *e, const case_tensor *t, guard_kind kind)
{
    const test_case *c = &e->data->c;
    size_t dense = (size_t)(t->outer * t->batch * t->inner);
    size_t size;

    switch (t->kind) {
    case CASE_Y:
        size = lay_out(c->y_layout, c->batch, c->steps, t->features, &e->run.y);
        if (guarded_init(&e->y, size, kind) != 0)
            return -1;
        e->run.y.data = e->y.data;
        return 0;
    case CASE_Y_LAST:
        size = lay_out_rows(c->y_layout, c->batch, t->features, &e->run.y_last);
        if (guarded_init(&e->y_last, size, kind) != 0)
            return -1;
        e->run.y_last.data = e->y_last.data;
        return 0;
    case CASE_H:
        if (guarded_init(&e->h[t->op], dense, kind) != 0)
            return -1;
        e->states[t->op].h = e->h[t->op].data;
        return 0;
    default:
        if (guarded_init(&e->c[t->op], dense, kind) != 0)
            return -1;
        e->states[t->op].c = e->c[t->op].data;
        return 0;
    }
}

/* Where no entry says anything, half of the cases pass no entries at all. */
static void choose_states(execution *e)
{
    int needed = (e->data->c.seed & 1) != 0;

    for (int32_t i = 0; i < e->data->c.op_count; i++) {
        const cellgate_lstm_state *s = &e->states[i];
        needed |=
            s->h0 != NULL || s->c0 != NULL || s->h != NULL || s->c != NULL;
    }
    e->run.states = needed ? e->states : NULL;
}

int execution_init(execution *e, const case_data *data, guard_kind kind)
{
    int result;

    memset(e, 0, sizeof *e);
    e->data = data;
    e->run.struct_size = sizeof e->run;
    e->run.batch = data->c.batch;
    e->run.steps = data->c.steps;
    result = init_x(e, kind);
    if (result == 0 && data->lengths != NULL) {
        result =
            init_copy(&e->lengths, data->lengths, (size_t)data->c.batch, kind);
        e->run.lengths = e->lengths.data;
    }
    for (int32_t i = 0; i < data->c.op_count && result == 0; i++)
        if (data->c.ops[i].kind == CELLGATE_OP_LSTM)
            result = init_state(e, i, kind);
    for (int32_t i = 0; i < data->tensor_count && result == 0; i++)
        result = init_tensor(e, &data->tensors[i], kind);
    choose_states(e);
    if (result != 0)
        execution_finish(e);
    return result;
}

void execution_finish(execution *e)
{
    guarded_finish(&e->x);
    guarded_finish(&e->lengths);
    guarded_finish(&e->y);
    guarded_finish(&e->y_last);
    for (int i = 0; i < CASE_MAX_OPS; i++) {
        guarded_finish(&e->h0[i]);
        guarded_finish(&e->c0[i]);
        guarded_finish(&e->h[i]);
        guarded_finish(&e->c[i]);
    }
}

void execution_reset(execution *e)
{
    guarded_reset(&e->y);
    guarded_reset(&e->y_last);
    for (int i = 0; i < CASE_MAX_OPS; i++) {
        guarded_reset(&e->h[i]);
        guarded_reset(&e->c[i]);
    }
}

int execution_inputs_intact(const execution *e)
{
    int intact = guarded_is_sealed(&e->x) && guarded_is_sealed(&e->lengths);

    for (int i = 0; i < CASE_MAX_OPS; i++)
        intact = intact && guarded_is_sealed(&e->h0[i]) &&
                 guarded_is_sealed(&e->c0[i]);
    return intact;
}

/* Moves `count` elements out of a buffer, leaving the pattern; 0 if any of
 * them still had it. */
static int take(uint32_t *from, int64_t count, float *to)
{
    int written = 1;

    for (int64_t i = 0; i < count; i++) {
        written &= from[i] != GUARD_PATTERN;
        memcpy(&to[i], &from[i], sizeof to[i]);
        from[i] = GUARD_PATTERN;
    }
    return written;
}

static int take_tensor(execution *e, const case_tensor *t, float *to)
{
    const cellgate_sequence *y = &e->run.y, *last = &e->run.y_last;
    int written = 1;

    if (t->kind == CASE_H || t->kind == CASE_C)
        return take(t->kind == CASE_H ? e->h[t->op].data : e->c[t->op].data,
                    t->outer * t->batch * t->inner, to);
    for (int64_t b = 0; b < t->batch; b++) {
        if (t->kind == CASE_Y_LAST) {
            written &= take((uint32_t *)last->data + b * last->batch_stride,
                            t->features, to + b * t->features);
            continue;
        }
        for (int64_t s = 0; s < e->data->c.steps; s++)
            written &= take((uint32_t *)y->data + b * y->batch_stride +
                                s * y->time_stride,
                            t->features, to + b * t->inner + s * t->features);
    }
    return written;
}

const char *execution_collect(execution *e, results *to)
{
    static const char *const unwritten[] = {
        [CASE_Y] = "an element of y was not written",
        [CASE_Y_LAST] = "an element of y_last was not written",
        [CASE_H] = "an element of h was not written",
        [CASE_C] = "an element of c was not written",
    };
    const char *wrong = NULL;
    int blank;

    for (int32_t i = 0; i < e->data->tensor_count; i++)
        if (!take_tensor(e, &e->data->tensors[i], to->values[i]))
            wrong = unwritten[e->data->tensors[i].kind];
    blank = guarded_is_blank(&e->y) && guarded_is_blank(&e->y_last);
    for (int i = 0; i < CASE_MAX_OPS; i++)
        blank =
            blank && guarded_is_blank(&e->h[i]) && guarded_is_blank(&e->c[i]);
    if (!blank) {
        wrong = "written outside an output's elements: before, after, or in "
                "the gaps between its rows or steps";
        execution_reset(e);
    }
    if (!execution_inputs_intact(e))
        wrong = "an input was overwritten";
    return wrong;
}
