/* SPDX-License-Identifier: Apache-2.0 */
/*
 * oneDNN's side: primitives made once, weights in the layouts that they ask
 * for and reordered once, so that a run is nothing but execution.
 */
#include "config.h"

#include <omp.h>
#include <stdlib.h>

#include "bench/onednn_api.h"
#include "bench/sides.h"

/* Primitives of a row: LSTMs, a dense layer, a softmax. */
#define STAGES (CASE_MAX_OPS + 2)
#define MEMORIES (8 * STAGES)
#define LAYOUTS (8 * STAGES)
#define ARGUMENTS 10

struct stage {
    dnnl_primitive_t primitive;
    dnnl_exec_arg_t arguments[ARGUMENTS];
    int argument_count;
};

struct peer {
    int threads;
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    struct stage stages[STAGES];
    int stage_count;
    dnnl_memory_t memories[MEMORIES];
    int memory_count;
    dnnl_memory_desc_t layouts[LAYOUTS];
    int layout_count;
    const char *failed; /* the first call that failed */
    dnnl_status_t status;
};

/* Keeps the first failure; false from then on. */
static bool ok(struct peer *peer, dnnl_status_t status, const char *call)
{
    if (status != dnnl_success && !peer->failed) {
        peer->failed = call;
        peer->status = status;
    }
    return !peer->failed;
}

#define TRY(peer, call) ok(peer, call, #call)

static api_layout describe(struct peer *peer, int rank, const int64_t *sizes,
                           dnnl_format_tag_t tag)
{
    api_layout made = NULL;

    if (!peer->failed && peer->layout_count < LAYOUTS)
        made =
            api_describe(&peer->layouts[peer->layout_count], rank, sizes, tag);
    if (made)
        peer->layout_count++;
    else
        (void)ok(peer, dnnl_out_of_memory, "describe");
    return made;
}

/* `data` NULL: memory of oneDNN's own. */
static dnnl_memory_t memory(struct peer *peer, api_layout desc,
                            const float *data)
{
    dnnl_memory_t made = NULL;

    if (peer->failed || peer->memory_count == MEMORIES)
        return NULL;
    if (TRY(peer, dnnl_memory_create(&made, desc, peer->engine,
                                     data ? (void *)(uintptr_t)data
                                          : DNNL_MEMORY_ALLOCATE)))
        peer->memories[peer->memory_count++] = made;
    return made;
}

static float *data_of(struct peer *peer, dnnl_memory_t of)
{
    void *data = NULL;

    if (!peer->failed)
        (void)TRY(peer, dnnl_memory_get_data_handle(of, &data));
    return data;
}

static void argument(struct stage *stage, int which, dnnl_memory_t what)
{
    stage->arguments[stage->argument_count++] =
        (dnnl_exec_arg_t){ which, what };
}

/* The memory that a primitive wants for an argument. */
static api_layout wanted(dnnl_primitive_desc_t desc, int which)
{
    return dnnl_primitive_desc_query_md(desc, dnnl_query_exec_arg_md, which);
}

/* Weights from their plain layout into the one that the primitive chose. */
static void weights_argument(struct peer *peer, struct stage *stage,
                             dnnl_primitive_desc_t desc, int which,
                             api_layout plain, const float *data)
{
    dnnl_memory_t from = memory(peer, plain, data), to;
    dnnl_primitive_desc_t reorder_desc = NULL;
    dnnl_primitive_t reorder = NULL;
    dnnl_exec_arg_t arguments[2];

    to = memory(peer, peer->failed ? NULL : wanted(desc, which), NULL);
    if (peer->failed)
        return;
    arguments[0] = (dnnl_exec_arg_t){ DNNL_ARG_FROM, from };
    arguments[1] = (dnnl_exec_arg_t){ DNNL_ARG_TO, to };
    if (TRY(peer, dnnl_reorder_primitive_desc_create(
                      &reorder_desc, plain, peer->engine, wanted(desc, which),
                      peer->engine, NULL)) &&
        TRY(peer, dnnl_primitive_create(&reorder, reorder_desc)) &&
        TRY(peer, dnnl_primitive_execute(reorder, peer->stream, 2, arguments)))
        (void)TRY(peer, dnnl_stream_wait(peer->stream));
    (void)dnnl_primitive_destroy(reorder);
    (void)dnnl_primitive_desc_destroy(reorder_desc);
    argument(stage, which, to);
}

static void finish_stage(struct peer *peer, struct stage *stage,
                         dnnl_primitive_desc_t desc)
{
    if (!peer->failed &&
        TRY(peer, dnnl_primitive_create(&stage->primitive, desc)))
        peer->stage_count++;
    (void)dnnl_primitive_desc_destroy(desc);
}

/* One LSTM layer over x [T][N][I]; returns its sequence [T][N][D H]. */
static dnnl_memory_t add_lstm(struct peer *peer, const struct bench_row *row,
                              const cellgate_lstm *op, dnnl_memory_t x)
{
    const int64_t T = row->steps, N = row->batch, I = op->input_size;
    const int64_t H = op->hidden_size, D = op->directions;
    const int64_t kernel[] = { 1, D, I, 4, H }, recurrent[] = { 1, D, H, 4, H };
    const int64_t biases[] = { 1, D, 4, H };
    const int64_t in[] = { T, N, I }, out[] = { T, N, D * H };
    const api_layout src = describe(peer, 3, in, dnnl_tnc);
    const api_layout dst = describe(peer, 3, out, dnnl_tnc);
    const api_layout any_kernel =
        describe(peer, 5, kernel, dnnl_format_tag_any);
    const api_layout any_recurrent =
        describe(peer, 5, recurrent, dnnl_format_tag_any);
    const api_layout plain_kernel = describe(peer, 5, kernel, dnnl_ldigo);
    const api_layout plain_recurrent = describe(peer, 5, recurrent, dnnl_ldigo);
    const api_layout bias = describe(peer, 4, biases, dnnl_ldgo);
    struct stage *stage = &peer->stages[peer->stage_count];
    dnnl_primitive_desc_t desc = NULL;
    dnnl_memory_t y = memory(peer, dst, NULL), b = memory(peer, bias, NULL);
    /* The gates' order is the same; the directions of a weight follow. */
    float *stacked = malloc((size_t)(D * (I + H) * 4 * H) * sizeof *stacked);
    float *to = data_of(peer, b);
    int64_t d;

    if (!stacked || !to) {
        free(stacked);
        return NULL;
    }
    for (d = 0; d < D; d++) {
        memcpy(stacked + d * I * 4 * H, op->weights[d].kernel,
               (size_t)(I * 4 * H) * sizeof *stacked);
        memcpy(stacked + (D * I + d * H) * 4 * H,
               op->weights[d].recurrent_kernel,
               (size_t)(H * 4 * H) * sizeof *stacked);
        memcpy(to + d * 4 * H, op->weights[d].bias,
               (size_t)(4 * H) * sizeof *to);
    }
    (void)TRY(peer, api_lstm(&desc, peer->engine,
                             D == 2 ? dnnl_bidirectional_concat
                                    : dnnl_unidirectional_left2right,
                             src, any_kernel, any_recurrent, bias, dst));
    argument(stage, DNNL_ARG_SRC_LAYER, x);
    argument(stage, DNNL_ARG_DST_LAYER, y);
    argument(stage, DNNL_ARG_BIAS, b);
    weights_argument(peer, stage, desc, DNNL_ARG_WEIGHTS_LAYER, plain_kernel,
                     stacked);
    weights_argument(peer, stage, desc, DNNL_ARG_WEIGHTS_ITER, plain_recurrent,
                     stacked + D * I * 4 * H);
    free(stacked);
    finish_stage(peer, stage, desc);
    return y;
}

/* y [M][units] = x [M][K] * kernel + bias. */
static dnnl_memory_t add_dense(struct peer *peer, const cellgate_dense *op,
                               int64_t M, const float *x)
{
    const int64_t K = op->input_size, units = op->units;
    const int64_t in[] = { M, K }, out[] = { M, units }, w[] = { units, K };
    const api_layout src = describe(peer, 2, in, dnnl_ab);
    const api_layout dst = describe(peer, 2, out, dnnl_ab);
    const api_layout any = describe(peer, 2, w, dnnl_format_tag_any);
    /* Ours is [K][units]: the transpose. */
    const api_layout plain = describe(peer, 2, w, dnnl_ba);
    const api_layout bias = describe(peer, 1, &units, dnnl_a);
    struct stage *stage = &peer->stages[peer->stage_count];
    dnnl_primitive_desc_t desc = NULL;
    dnnl_memory_t from = memory(peer, src, x), y = memory(peer, dst, NULL);

    (void)TRY(peer, api_product(&desc, peer->engine, src, any, bias, dst));
    argument(stage, DNNL_ARG_SRC, from);
    argument(stage, DNNL_ARG_DST, y);
    argument(stage, DNNL_ARG_BIAS, memory(peer, bias, op->bias));
    weights_argument(peer, stage, desc, DNNL_ARG_WEIGHTS, plain, op->kernel);
    finish_stage(peer, stage, desc);
    return y;
}

/* In place. */
static void add_softmax(struct peer *peer, int64_t M, int64_t units,
                        dnnl_memory_t y)
{
    const int64_t sizes[] = { M, units };
    const api_layout both = describe(peer, 2, sizes, dnnl_ab);
    struct stage *stage = &peer->stages[peer->stage_count];
    dnnl_primitive_desc_t desc = NULL;

    (void)TRY(peer, api_softmax(&desc, peer->engine, both));
    argument(stage, DNNL_ARG_SRC, y);
    argument(stage, DNNL_ARG_DST, y);
    finish_stage(peer, stage, desc);
}

static void run(void *state)
{
    struct peer *peer = state;
    int i;

    omp_set_num_threads(peer->threads);
    for (i = 0; i < peer->stage_count; i++)
        (void)dnnl_primitive_execute(peer->stages[i].primitive, peer->stream,
                                     peer->stages[i].argument_count,
                                     peer->stages[i].arguments);
    (void)dnnl_stream_wait(peer->stream);
}

static void destroy(void *state)
{
    struct peer *peer = state;

    while (peer->stage_count > 0)
        (void)dnnl_primitive_destroy(
            peer->stages[--peer->stage_count].primitive);
    while (peer->memory_count > 0)
        (void)dnnl_memory_destroy(peer->memories[--peer->memory_count]);
    while (peer->layout_count > 0)
        api_forget(&peer->layouts[--peer->layout_count]);
    if (peer->stream)
        (void)dnnl_stream_destroy(peer->stream);
    if (peer->engine)
        (void)dnnl_engine_destroy(peer->engine);
    free(peer);
}

/* All layers of the row; returns where the result lies. */
static float *build(struct peer *peer, const struct bench_data *data)
{
    const struct bench_row *row = data->row;
    const int64_t in[] = { row->steps, row->batch, row->input };
    const api_layout src = describe(peer, 3, in, dnnl_tnc);
    int64_t M = row->batch * (row->on_each_step ? row->steps : 1);
    dnnl_memory_t y = memory(peer, src, data->x);
    const float *rows;
    int i;

    for (i = 0; i < row->layers && y; i++)
        y = add_lstm(peer, row, &data->cases.ops[i].lstm, y);
    if (y && row->dense) {
        rows = data_of(peer, y);
        if (rows && !row->on_each_step)
            rows += (row->steps - 1) * row->batch * row->hidden;
        y = rows ? add_dense(peer, &data->cases.ops[row->layers].dense, M, rows)
                 : NULL;
    }
    if (y && row->on_each_step)
        add_softmax(peer, M, row->dense, y);
    return y ? data_of(peer, y) : NULL;
}

int bench_onednn(struct bench_side *side, const struct bench_data *data,
                 int threads, char *why, size_t size)
{
    struct peer *peer;
    float *y = NULL;

    if (data->row->hard_gates) {
        (void)snprintf(why, size, "oneDNN has no hard_sigmoid gates");
        return -1;
    }
    peer = calloc(1, sizeof *peer);
    if (!peer)
        return -1;
    peer->threads = threads;
    omp_set_num_threads(threads);
    if (TRY(peer, dnnl_engine_create(&peer->engine, dnnl_cpu, 0)) &&
        TRY(peer, dnnl_stream_create(&peer->stream, peer->engine,
                                     dnnl_stream_default_flags)))
        y = build(peer, data);
    if (!y || peer->failed) {
        (void)snprintf(why, size, "oneDNN: status %d from %.100s",
                       (int)peer->status, peer->failed ? peer->failed : "?");
        destroy(peer);
        return -1;
    }
    *side = (struct bench_side){
        peer, run, destroy, y, "", false, CELLGATE_NUMERIC_F32
    };
    (void)snprintf(side->name, sizeof side->name, "oneDNN t%d", threads);
    return 0;
}

const char *bench_onednn_version(void)
{
    static char text[32];
    const dnnl_version_t *v = dnnl_version();

    (void)snprintf(text, sizeof text, "%d.%d.%d", v->major, v->minor, v->patch);
    return text;
}
