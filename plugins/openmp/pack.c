/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <float.h>
#include <math.h>

#include "cellgate/chain.h"
#include "plugins/openmp/device.h"
#include "plugins/openmp/pack.h"
#include "plugins/openmp/segment.h"

/*
 * Source column of lane `lane` of vector `part` of a panel, or -1 where the
 * panel reaches beyond the matrix.
 */
static int64_t source_column(const struct cpu_matrix *matrix, bool gates,
                             int64_t vector, int64_t panel, int64_t part,
                             int64_t lane)
{
    int64_t column;

    if (gates) {
        column = panel * vector + lane;
        return column < matrix->columns ? part * matrix->columns + column : -1;
    }
    column = (panel * 4 + part) * vector + lane;
    return column < matrix->columns ? column : -1;
}

static void pack_row(const struct cpu_matrix *matrix, bool gates,
                     int64_t vector, int64_t panel, const float *from,
                     float *to)
{
    int64_t part, lane, column;

    for (part = 0; part < 4; part++)
        for (lane = 0; lane < vector; lane++) {
            column = source_column(matrix, gates, vector, panel, part, lane);
            *to++ = column >= 0 && from ? from[column] : 0.0f;
        }
}

/* A vector has at most this many floats, and a panel four vectors. */
#define VECTOR_MOST 16

/* Where a row of the source begins. */
static const float *source_row(const struct cpu_matrix_source *source,
                               int64_t row)
{
    return source->weights +
           row * (source->gates ? 4 * source->columns : source->columns);
}

/* [2][4][v] of a panel: the columns' largest magnitudes over 127 and the
   reciprocals; 1 for a column of zeros. */
static void scale_panel(const struct cpu_matrix *matrix, int64_t vector,
                        const struct cpu_matrix_source *source, int64_t panel,
                        float *scales)
{
    float row[4 * VECTOR_MOST];
    int64_t k, i;

    memset(scales, 0, 4 * (size_t)vector * sizeof *scales);
    for (k = 0; k < source->depth; k++) {
        pack_row(matrix, source->gates, vector, panel, source_row(source, k),
                 row);
        for (i = 0; i < 4 * vector; i++)
            scales[i] = fmaxf(scales[i], fabsf(row[i]));
    }
    for (i = 0; i < 4 * vector; i++) {
        scales[i] = scales[i] / 127 >= FLT_MIN ? scales[i] / 127 : 1;
        scales[4 * vector + i] = 1 / scales[i];
    }
}

static void pack_panel(const struct cpu_matrix *matrix,
                       const struct cpu_layout *layout,
                       const struct cpu_matrix_source *source, int64_t panel,
                       const float *per, char *to)
{
    const int64_t count = 4 * layout->vector;
    const int64_t bytes = count * (int64_t)cpu_weight_size(layout->pack);
    float row[4 * VECTOR_MOST];
    int64_t k;

    for (k = 0; k < source->depth; k++) {
        pack_row(matrix, source->gates, layout->vector, panel,
                 source_row(source, k), row);
        cpu_narrow(layout->pack, row, count, per, to + k * bytes);
    }
}

void cpu_matrix_pack(struct cpu_matrix *matrix, struct cpu_arena *arena,
                     const struct cpu_layout *layout,
                     const struct cpu_matrix_source *source)
{
    const int64_t vector = layout->vector, count = 4 * vector;
    const size_t row_bytes = (size_t)count * cpu_weight_size(layout->pack);
    int64_t panel_columns = source->gates ? vector : count, panel;
    float *bias, *scales = NULL;
    char *panels;

    matrix->depth = source->depth;
    matrix->columns = source->columns;
    matrix->panel_count = (source->columns + panel_columns - 1) / panel_columns;
    panels =
        cpu_arena_take(arena, matrix->panel_count * source->depth, row_bytes);
    bias = cpu_arena_take(arena, matrix->panel_count,
                          (size_t)count * sizeof *bias);
    if (layout->pack == CPU_PACK_INT8)
        scales = cpu_arena_take(arena, matrix->panel_count,
                                2 * (size_t)count * sizeof *scales);
    matrix->panels = panels;
    matrix->bias = bias;
    matrix->scales = scales;
    if (!panels)
        return;
    for (panel = 0; panel < matrix->panel_count; panel++) {
        float *own = scales ? scales + panel * 2 * count : NULL;

        if (own)
            scale_panel(matrix, vector, source, panel, own);
        pack_panel(matrix, layout, source, panel, own ? own + count : NULL,
                   panels + (size_t)(panel * source->depth) * row_bytes);
        pack_row(matrix, source->gates, vector, panel, source->bias,
                 bias + panel * count);
    }
}

/* [3][hidden] to [panel][3][v]. */
static void pack_peepholes(struct cpu_direction *direction,
                           struct cpu_arena *arena, int64_t vector,
                           const float *from)
{
    int64_t panels = direction->recurrent.panel_count;
    int64_t hidden = direction->recurrent.columns;
    int64_t panel, gate, lane, unit;
    float *to = cpu_arena_take(arena, panels, 3 * (size_t)vector * sizeof *to);

    direction->cell.peepholes = to;
    if (!to)
        return;
    for (panel = 0; panel < panels; panel++)
        for (gate = 0; gate < 3; gate++)
            for (lane = 0; lane < vector; lane++) {
                unit = panel * vector + lane;
                *to++ = unit < hidden ? from[gate * hidden + unit] : 0.0f;
            }
}

static bool cell_is_standard(const cellgate_lstm *op,
                             const cellgate_activation act[3])
{
    return act[0].kind == CELLGATE_SIGMOID && act[1].kind == CELLGATE_TANH &&
           act[2].kind == CELLGATE_TANH && op->clip == 0 &&
           !op->has_peepholes && !op->coupled;
}

static void pack_direction(struct cpu_direction *direction,
                           struct cpu_arena *arena,
                           const struct cpu_layout *layout,
                           const cellgate_lstm *op, int which)
{
    const cellgate_lstm_weights *weights = &op->weights[which];
    const int64_t output =
        op->projection_size ? op->projection_size : op->hidden_size;
    const struct cpu_matrix_source kernel = { true, op->input_size,
                                              op->hidden_size, weights->kernel,
                                              op->has_bias ? weights->bias
                                                           : NULL };
    const struct cpu_matrix_source recurrent = { true, output, op->hidden_size,
                                                 weights->recurrent_kernel,
                                                 NULL };
    const struct cpu_matrix_source projection = { false, op->hidden_size,
                                                  output, weights->projection,
                                                  NULL };

    direction->reversed = which == 1 || op->reverse;
    cpu_matrix_pack(&direction->kernel, arena, layout, &kernel);
    cpu_matrix_pack(&direction->recurrent, arena, layout, &recurrent);
    if (op->projection_size)
        cpu_matrix_pack(&direction->projection, arena, layout, &projection);
    memcpy(direction->cell.activations, op->activations[which],
           sizeof direction->cell.activations);
    direction->cell.clip = op->clip;
    direction->cell.coupled = op->coupled != 0;
    direction->cell.standard = cell_is_standard(op, op->activations[which]);
    if (op->has_peepholes)
        pack_peepholes(direction, arena, layout->vector, weights->peephole);
}

static void pack_lstm(struct cpu_stage *stage, struct cpu_arena *arena,
                      const struct cpu_layout *layout,
                      const cellgate_op *header, uint32_t op)
{
    struct cpu_lstm *lstm = &stage->lstm;
    cellgate_lstm known = { .op = { sizeof known, 0, 0 } };
    int d;

    cellgate_struct_copy(&known, header);
    stage->kind = CPU_STAGE_LSTM;
    lstm->op = op;
    lstm->hidden = known.hidden_size;
    lstm->output =
        known.projection_size ? known.projection_size : known.hidden_size;
    lstm->outputs = known.outputs;
    lstm->directions = known.directions;
    for (d = 0; d < known.directions; d++)
        pack_direction(&lstm->direction[d], arena, layout, &known, d);
    stage->width = lstm->directions * lstm->output;
    stage->sequence = (known.outputs & CELLGATE_LSTM_SEQUENCE) != 0;
}

static void add_finish(struct cpu_stage *stage, bool softmax,
                       const cellgate_activation *activation)
{
    struct cpu_finish *finish = &stage->finishes[stage->finish_count++];

    finish->softmax = softmax;
    if (activation)
        finish->activation = *activation;
}

static void pack_dense(struct cpu_stage *stage, struct cpu_arena *arena,
                       const struct cpu_layout *layout,
                       const cellgate_op *header)
{
    cellgate_dense known = { .op = { sizeof known, 0, 0 } };
    struct cpu_matrix_source source;

    cellgate_struct_copy(&known, header);
    source = (struct cpu_matrix_source){ false, known.input_size, known.units,
                                         known.kernel,
                                         known.has_bias ? known.bias : NULL };
    stage->kind = CPU_STAGE_DENSE;
    stage->width = known.units;
    cpu_matrix_pack(&stage->dense, arena, layout, &source);
    if (known.activation.kind != CELLGATE_LINEAR)
        add_finish(stage, false, &known.activation);
}

static void pack_elementwise(struct cpu_stage *stage, const cellgate_op *header)
{
    cellgate_activation_op known = { .op = { sizeof known, 0, 0 } };

    if (header->kind == CELLGATE_OP_SOFTMAX) {
        add_finish(stage, true, NULL);
        return;
    }
    cellgate_struct_copy(&known, header);
    add_finish(stage, false, &known.activation);
}

static int64_t elementwise_size(const cellgate_op *header)
{
    cellgate_softmax known = { .op = { sizeof known, 0, 0 } };

    /* Both elementwise ops have their size in the same place. */
    cellgate_struct_copy(&known, header);
    return known.size;
}

/* The stage that op `op` belongs to; a new one for ops that make rows. */
static struct cpu_stage *stage_of(cellgate_weights *weights,
                                  struct cpu_finish *finishes,
                                  const cellgate_op *header, uint32_t op)
{
    struct cpu_stage *stage, *before = NULL;
    bool makes_rows =
        header->kind == CELLGATE_OP_LSTM || header->kind == CELLGATE_OP_DENSE;

    if (weights->stage_count > 0)
        before = &weights->stages[weights->stage_count - 1];
    if (before && !makes_rows)
        return before;
    stage = &weights->stages[weights->stage_count++];
    memset(stage, 0, sizeof *stage);
    stage->kind = CPU_STAGE_COPY;
    stage->finishes = finishes + op;
    stage->row_input = before && !before->sequence;
    stage->sequence = !stage->row_input;
    return stage;
}

static void pack_embedding(cellgate_weights *weights, const cellgate_op *header)
{
    cellgate_embedding known = { .op = { sizeof known, 0, 0 } };

    cellgate_struct_copy(&known, header);
    weights->table = known.table;
    weights->table_width = known.size;
}

/*
 * Lays out (and, with memory, fills) everything of a segment. The bookkeeping
 * is in `weights` itself, which has its own memory for it.
 */
static void lay_out(cellgate_weights *weights, struct cpu_finish *finishes,
                    struct cpu_arena *arena, const cellgate_segment *segment)
{
    const struct cpu_layout layout = { weights->kernels->vector,
                                       weights->kernels->pack };
    struct cpu_stage *stage;
    uint32_t op;

    weights->stage_count = 0;
    for (op = 0; op < segment->op_count; op++) {
        const cellgate_op *header = segment->ops[op];

        if (header->kind == CELLGATE_OP_EMBEDDING) {
            pack_embedding(weights, header);
            if (segment->op_count > 1)
                continue;
        }
        stage = stage_of(weights, finishes, header, op);
        switch (header->kind) {
        case CELLGATE_OP_LSTM:
            pack_lstm(stage, arena, &layout, header, op);
            break;
        case CELLGATE_OP_DENSE:
            pack_dense(stage, arena, &layout, header);
            break;
        case CELLGATE_OP_EMBEDDING:
            stage->width = weights->table_width;
            break;
        default:
            if (stage->width == 0)
                stage->width = elementwise_size(header);
            pack_elementwise(stage, header);
            break;
        }
    }
}

/* Whether the pack can hold an op's weights; see cpu_narrow_check(). */
static cellgate_status check_range(const cellgate_op *header, uint32_t op,
                                   enum cpu_pack pack, cellgate_error *error)
{
    cellgate_lstm lstm = { .op = { sizeof lstm, 0, 0 } };
    cellgate_dense dense = { .op = { sizeof dense, 0, 0 } };
    cellgate_status status = CELLGATE_OK;
    int64_t output;
    int d;

    if (header->kind == CELLGATE_OP_DENSE) {
        cellgate_struct_copy(&dense, header);
        return cpu_narrow_check(pack, op, dense.kernel,
                                dense.input_size * dense.units, error);
    }
    if (header->kind != CELLGATE_OP_LSTM)
        return CELLGATE_OK;
    cellgate_struct_copy(&lstm, header);
    output = lstm.projection_size ? lstm.projection_size : lstm.hidden_size;
    for (d = 0; d < lstm.directions && status == CELLGATE_OK; d++) {
        const cellgate_lstm_weights *w = &lstm.weights[d];

        status = cpu_narrow_check(
            pack, op, w->kernel, lstm.input_size * 4 * lstm.hidden_size, error);
        if (status == CELLGATE_OK)
            status = cpu_narrow_check(pack, op, w->recurrent_kernel,
                                      output * 4 * lstm.hidden_size, error);
        if (status == CELLGATE_OK && lstm.projection_size)
            status = cpu_narrow_check(pack, op, w->projection,
                                      lstm.hidden_size * output, error);
    }
    return status;
}

static cellgate_status check_weights(const cellgate_segment *segment,
                                     enum cpu_pack pack, cellgate_error *error)
{
    cellgate_status status = cellgate_chain_check_weights(segment, error);
    uint32_t op;

    for (op = 0; op < segment->op_count && status == CELLGATE_OK; op++)
        status = check_range(segment->ops[op], op, pack, error);
    return status;
}

/* The bookkeeping of a segment, in one block; its arrays follow it. */
static cellgate_weights *weights_create(cellgate_device *device, uint32_t pack,
                                        uint32_t op_count,
                                        struct cpu_finish **finishes)
{
    const cellgate_host *host = device->host;
    struct cpu_arena arena = { 0 };
    cellgate_weights *weights;
    int pass;

    for (pass = 0; pass < 2; pass++) {
        weights = cpu_arena_take(&arena, 1, sizeof *weights);
        struct cpu_stage *stages =
            cpu_arena_take(&arena, op_count, sizeof *stages);
        /* A dense layer adds one for its own activation: at most one an op. */
        *finishes = cpu_arena_take(&arena, op_count, sizeof **finishes);
        if (pass == 1) {
            memset(weights, 0, sizeof *weights);
            weights->host = host;
            weights->kernels = device->kernels[pack];
            weights->op_count = op_count;
            weights->stages = stages;
            return weights;
        }
        if (arena.overflow)
            return NULL;
        arena.base = host->allocate(host->context, CPU_ALIGNMENT, arena.used);
        arena.used = 0;
        if (!arena.base)
            return NULL;
    }
    return NULL;
}

cellgate_status cpu_prepare(cellgate_device *device,
                            const cellgate_segment *segment, uint32_t pack,
                            cellgate_weights **weights, cellgate_error *error)
{
    const cellgate_host *host = device->host;
    struct cpu_arena arena = { 0 };
    struct cpu_finish *finishes;
    cellgate_weights *made;
    cellgate_status status;

    status = cpu_segment_check(segment, error);
    if (status != CELLGATE_OK)
        return status;
    if (pack >= CPU_PACKS)
        return cellgate_fail(error, CELLGATE_INVALID, "no pack %u", pack);
    status = check_weights(segment, (enum cpu_pack)pack, error);
    if (status != CELLGATE_OK)
        return status;
    made = weights_create(device, pack, segment->op_count, &finishes);
    if (!made)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for a segment of %u ops",
                             segment->op_count);
    lay_out(made, finishes, &arena, segment);
    if (!arena.overflow)
        arena.base = host->allocate(host->context, CPU_ALIGNMENT, arena.used);
    made->packed = arena.base;
    if (!arena.base) {
        cpu_weights_free(made);
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for packed weights");
    }
    arena.used = 0;
    lay_out(made, finishes, &arena, segment);
    *weights = made;
    return CELLGATE_OK;
}

void cpu_weights_free(cellgate_weights *weights)
{
    const cellgate_host *host;

    if (!weights)
        return;
    host = weights->host;
    host->release(host->context, weights->packed);
    host->release(host->context, weights);
}
