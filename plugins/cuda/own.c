/* SPDX-License-Identifier: Apache-2.0 */
/* own.c: stages that our own kernels run. */
#include "config.h"

#include "plugins/cuda/plan.h"

/* Input products computed ahead, bytes: at most, and of the device's memory. */
#define PRODUCTS_MOST ((int64_t)256 << 20)
#define PRODUCTS_SHARE 8

static cellgate_status check_launch(struct cellgate_plan *plan, int code,
                                    const char *kernel, cellgate_error *error)
{
    return cud_device_check(plan->device, error, (cudaError_t)code, kernel,
                            "running a segment");
}

static int64_t run_steps(const struct cellgate_plan *plan,
                         const struct cud_stage *stage)
{
    return !stage->sequence || plan->rows_only ? 1 : plan->run->steps;
}

/* ---- Of a plan --------------------------------------------------------- */

/* Floats of a layer's input products for one step. */
static int64_t products_of_step(const struct cellgate_plan *plan,
                                const struct cud_lstm *lstm)
{
    return plan->batch * lstm->directions * 4 * lstm->hidden;
}

/* As many steps as fit into `bytes`; all of them in time. */
static int64_t choose_chunk(const struct cellgate_plan *plan, uint32_t index,
                            int64_t bytes)
{
    struct cud_own *own = &plan->stages[index].own;
    const int64_t step =
        products_of_step(plan, &plan->weights->stages[index].lstms[0]);

    own->chunk = bytes / (int64_t)sizeof(float) / step;
    if (own->chunk < 1)
        own->chunk = 1;
    if (own->chunk > plan->steps)
        own->chunk = plan->steps;
    own->in_time = own->chunk == plan->steps;
    return own->chunk;
}

/* A smaller chunk where the products of the wanted one do not fit. */
cellgate_status cud_own_products(struct cellgate_plan *plan,
                                 cellgate_error *error)
{
    const cellgate_weights *weights = plan->weights;
    int64_t bytes = (int64_t)(plan->device->found->memory / PRODUCTS_SHARE);
    cellgate_status status;

    if (bytes > PRODUCTS_MOST)
        bytes = PRODUCTS_MOST;
    for (;; bytes /= 2) {
        int64_t most = 0, longest = 0;
        uint32_t i;

        for (i = 0; i < weights->stage_count; i++) {
            int64_t chunk, floats;

            if (weights->stages[i].kind != CUD_STAGE_LSTM)
                continue;
            chunk = choose_chunk(plan, i, bytes);
            floats =
                chunk * products_of_step(plan, &weights->stages[i].lstms[0]);
            longest = longest < chunk ? chunk : longest;
            most = most < floats ? floats : most;
        }
        if (most == 0)
            return CELLGATE_OK;
        status = cud_buffer_create(plan->device, most, sizeof(float),
                                   &plan->products, error);
        if (status != CELLGATE_DEVICE_MEMORY || longest <= 1)
            return status;
    }
}

static cellgate_status check_fit(struct cellgate_plan *plan,
                                 const struct cud_lstm *lstm,
                                 cellgate_error *error)
{
    const struct cuk_lstm of = cud_kernel_lstm(
        lstm, cud_pack_type(plan->weights->pack), plan->batch, plan->steps);
    char why[200];

    if (cud_own_fits(plan->device, plan->variant->way, &of, why, sizeof why))
        return CELLGATE_OK;
    return cellgate_refuse(error, CELLGATE_REASON_SHAPE,
                           "op %u, batch %lld: %s", lstm->op,
                           (long long)plan->batch, why);
}

cellgate_status cud_own_create(struct cellgate_plan *plan, uint32_t index,
                               cellgate_error *error)
{
    const struct cud_lstm *lstm = &plan->weights->stages[index].lstms[0];
    struct cud_own *own = &plan->stages[index].own;
    const int64_t units = lstm->directions * plan->batch * lstm->hidden;
    cellgate_status status = check_fit(plan, lstm, error);

    if (status == CELLGATE_OK && lstm->projects)
        status = cud_buffer_create(plan->device, units, sizeof(float),
                                   &own->unprojected, error);
    if (status == CELLGATE_OK && plan->variant->way == CUD_STEP)
        status = cud_graph_create(plan, &own->graph, error);
    if (status != CELLGATE_OK || plan->variant->way != CUD_PERSISTENT)
        return status;
    status = cud_buffer_create(plan->device, CUK_SYNC, sizeof(uint32_t),
                               &own->sync, error);
    return status == CELLGATE_OK
               ? cud_zero(plan, own->sync.memory, CUK_SYNC, CUK_SYNC, 1, error)
               : status;
}

void cud_own_destroy(struct cellgate_plan *plan, uint32_t index)
{
    struct cud_own *own = &plan->stages[index].own;

    cud_buffer_destroy(plan->device, &own->unprojected);
    cud_buffer_destroy(plan->device, &own->sync);
    cud_graph_destroy(plan, &own->graph);
    if (plan->variant->blas && cud_device_enter_to_free(plan->device)) {
        cud_product_destroy(&plan->device->blaslt, &own->by_blas[0]);
        cud_product_destroy(&plan->device->blaslt, &own->by_blas[1]);
    }
}

/* ---- An LSTM ----------------------------------------------------------- */

/* The input products of steps [first, end) into plan->products. */
static cellgate_status enqueue_products(struct cellgate_plan *plan,
                                        uint32_t index,
                                        const struct cud_rows *x, int64_t first,
                                        int64_t end, cellgate_error *error)
{
    const struct cud_stage *stage = &plan->weights->stages[index];
    const struct cud_lstm *lstm = &stage->lstms[0];
    const int64_t width = 4 * lstm->hidden, batch = plan->run->batch;
    const struct cuk_product product = {
        .batch = (int32_t)batch,
        .depth = (int32_t)lstm->input,
        .columns = (int32_t)width,
        .first = (int32_t)first,
        .end = (int32_t)end,
        .directions = lstm->directions,
        .reverse = { lstm->reverse, 1 },
        .in_time = plan->stages[index].own.in_time,
        .type = cud_pack_type(plan->weights->pack),
        .activation = { CELLGATE_LINEAR, 0, 0 },
        .x = x->memory,
        .x_at = x->strides,
        .ids = x->ids,
        .matrix = stage->own.kernel.memory,
        .matrix_direction = lstm->input * width,
        .bias = stage->own.bias.memory,
        .y = plan->products.memory,
        .y_at = { width, batch * width },
        .y_direction = batch * width * (end - first),
        .lengths = plan->lengths.memory,
    };

    return check_launch(plan, cuk_product(&product, plan->stream),
                        "cuk_product", error);
}

/* All of them at once, in time, rows as x has them. */
static cellgate_status multiply_by_blas(struct cellgate_plan *plan,
                                        uint32_t index,
                                        const struct cud_rows *x,
                                        cellgate_error *error)
{
    const struct cud_stage *stage = &plan->weights->stages[index];
    const struct cud_lstm *lstm = &stage->lstms[0];
    const int64_t width = 4 * lstm->hidden;
    const int64_t rows = plan->rows * plan->span;
    cublasStatus_t code = CUBLAS_STATUS_SUCCESS;
    int d;

    for (d = 0; code == CUBLAS_STATUS_SUCCESS && d < lstm->directions; d++) {
        const struct cud_product product = {
            .rows = rows,
            .depth = lstm->input,
            .columns = width,
            .x = x->memory,
            .matrix = (const float *)stage->own.kernel.memory +
                      d * lstm->input * width,
            .bias = (const float *)stage->own.bias.memory + d * width,
            .y = (float *)plan->products.memory + d * rows * width,
        };

        code = cud_product_run(
            &plan->device->blaslt, &plan->stages[index].own.by_blas[d],
            &product, plan->blas.memory, plan->blas.size, plan->stream);
    }
    return cud_blaslt_check(plan->device, error, code, "running a segment");
}

static struct cuk_lstm arguments(const struct cellgate_plan *plan,
                                 uint32_t index, const struct cud_rows *y,
                                 float *last)
{
    const struct cud_stage *stage = &plan->weights->stages[index];
    const struct cud_stage_plan *of = &plan->stages[index];
    const struct cud_lstm *lstm = &stage->lstms[0];
    const int64_t width = 4 * lstm->hidden, batch = plan->run->batch;
    struct cuk_lstm a = cud_kernel_lstm(
        lstm, cud_pack_type(plan->weights->pack), batch, plan->run->steps);

    a.recurrent = stage->own.recurrent.memory;
    a.recurrent_direction = stage->own.recurrent_direction;
    a.projection = stage->own.projection.memory;
    a.peephole = stage->own.peephole.memory;
    a.products = plan->products.memory;
    a.products_at = (struct cuk_strides){ width, batch * width };
    a.products_in_time = of->own.in_time;
    a.h = of->h.memory;
    a.c = of->c.memory;
    a.unprojected = of->own.unprojected.memory;
    a.y = y->memory;
    a.y_at = y->strides;
    a.last = last;
    a.last_stride = stage->width;
    a.lengths = plan->lengths.memory;
    a.order = plan->order.memory;
    a.sync = of->own.sync.memory;
    return a;
}

static cellgate_status launch(struct cellgate_plan *plan, uint32_t index,
                              const struct cuk_lstm *a, cellgate_error *error)
{
    const struct cuk_device device = cud_kernel_device(plan->device);
    struct cud_own *own = &plan->stages[index].own;

    switch (plan->variant->way) {
    case CUD_BLOCK:
        return check_launch(plan, cuk_block(&device, a, plan->stream),
                            "cuk_block", error);
    case CUD_PERSISTENT:
        return check_launch(plan, cuk_persistent(&device, a, plan->stream),
                            "cuk_persistent", error);
    default:
        return own->in_time ? cud_graph_run(plan, &own->graph, a, error)
                            : check_launch(plan, cuk_step(a, plan->stream),
                                           "cuk_step", error);
    }
}

/* What no kernel writes: first states that nobody gave where no step is done,
   and the last outputs of no steps. */
static cellgate_status enqueue_nothing(struct cellgate_plan *plan,
                                       uint32_t index, float *last,
                                       cellgate_error *error)
{
    const struct cud_stage *stage = &plan->weights->stages[index];
    const struct cud_stage_plan *of = &plan->stages[index];
    const struct cud_lstm *lstm = &stage->lstms[0];
    const int64_t rows = lstm->directions * plan->rows;
    cellgate_status status = CELLGATE_OK;

    if (!of->given_h)
        status = cud_zero(plan, of->h.memory, lstm->output, lstm->output, rows,
                          error);
    if (status == CELLGATE_OK && !of->given_c)
        status = cud_zero(plan, of->c.memory, lstm->hidden, lstm->hidden, rows,
                          error);
    if (status == CELLGATE_OK && last)
        status = cud_zero(plan, last, stage->width, stage->width,
                          plan->run->batch, error);
    return status;
}

static bool by_blas(const struct cellgate_plan *plan, uint32_t index,
                    const struct cud_rows *x)
{
    return plan->variant->blas && plan->stages[index].own.in_time && !x->ids;
}

/* Some steps of a layer. */
static struct cuk_lstm steps_of(const struct cellgate_plan *plan,
                                uint32_t index, const struct cud_rows *x,
                                const struct cud_rows *y, float *last,
                                int64_t first, int64_t end)
{
    const struct cud_stage_plan *of = &plan->stages[index];
    struct cuk_lstm a = arguments(plan, index, y, last);

    if (by_blas(plan, index, x))
        a.products_at = cud_strides_of(plan, 4 * (int64_t)a.hidden);
    a.first = (int32_t)first;
    a.end = (int32_t)end;
    a.initial = (of->given_h ? 1 : 0) | (of->given_c ? 2 : 0);
    a.products_direction = a.batch * 4 * (int64_t)a.hidden * (end - first);
    return a;
}

cellgate_status cud_own_graph(struct cellgate_plan *plan, uint32_t index,
                              const struct cud_rows *x,
                              const struct cud_rows *y, float *last,
                              cellgate_error *error)
{
    struct cud_own *own = &plan->stages[index].own;
    const struct cuk_lstm a =
        steps_of(plan, index, x, y, last, 0, plan->run->steps);

    return own->in_time ? cud_graph_make(plan, &own->graph, &a, error)
                        : CELLGATE_OK;
}

cellgate_status cud_enqueue_own(struct cellgate_plan *plan, uint32_t index,
                                const struct cud_rows *x,
                                const struct cud_rows *y, float *last,
                                cellgate_error *error)
{
    const struct cud_own *own = &plan->stages[index].own;
    const int64_t steps = plan->run->steps;
    cellgate_status status = CELLGATE_OK;
    int64_t first, end;

    if (steps == 0)
        return enqueue_nothing(plan, index, last, error);
    for (first = 0; status == CELLGATE_OK && first < steps; first = end) {
        struct cuk_lstm a;

        end = first + (own->in_time ? steps : own->chunk);
        if (end > steps)
            end = steps;
        a = steps_of(plan, index, x, y, last, first, end);
        status = by_blas(plan, index, x)
                     ? multiply_by_blas(plan, index, x, error)
                     : enqueue_products(plan, index, x, first, end, error);
        if (status == CELLGATE_OK)
            status = launch(plan, index, &a, error);
    }
    return status;
}

/* ---- Other stages ------------------------------------------------------ */

cellgate_status cud_enqueue_dense(struct cellgate_plan *plan, uint32_t index,
                                  const struct cud_rows *x,
                                  const struct cud_rows *y,
                                  cellgate_error *error)
{
    const struct cud_stage *stage = &plan->weights->stages[index];
    const struct cuk_product product = {
        .batch = (int32_t)plan->run->batch,
        .depth = (int32_t)stage->dense_input,
        .columns = (int32_t)stage->width,
        .end = (int32_t)run_steps(plan, stage),
        .directions = 1,
        .type = cud_pack_type(plan->weights->pack),
        .activation = stage->dense_activation,
        .x = x->memory,
        .x_at = x->strides,
        .ids = x->ids,
        .matrix = stage->own.kernel.memory,
        .bias = stage->own.bias.memory,
        .y = y->memory,
        .y_at = y->strides,
    };

    if (product.end == 0)
        return CELLGATE_OK;
    return check_launch(plan, cuk_product(&product, plan->stream),
                        "cuk_product", error);
}

static cellgate_status
enqueue_rows(struct cellgate_plan *plan, const struct cud_stage *stage,
             const cellgate_activation *activation, const struct cud_rows *x,
             const struct cud_rows *y, cellgate_error *error)
{
    const cellgate_activation none = { CELLGATE_LINEAR, 0, 0 };
    const struct cuk_rows rows = {
        .batch = (int32_t)plan->run->batch,
        .steps = (int32_t)run_steps(plan, stage),
        .width = (int32_t)stage->width,
        .activation = activation ? *activation : none,
        .x = x->memory,
        .x_at = x->strides,
        .ids = x->ids,
        .y = y->memory,
        .y_at = y->strides,
    };

    if (rows.steps == 0)
        return CELLGATE_OK;
    return activation ? check_launch(plan, cuk_activate(&rows, plan->stream),
                                     "cuk_activate", error)
                      : check_launch(plan, cuk_softmax(&rows, plan->stream),
                                     "cuk_softmax", error);
}

cellgate_status cud_enqueue_copy(struct cellgate_plan *plan, uint32_t index,
                                 const struct cud_rows *x,
                                 const struct cud_rows *y,
                                 cellgate_error *error)
{
    const cellgate_activation none = { CELLGATE_LINEAR, 0, 0 };

    return enqueue_rows(plan, &plan->weights->stages[index], &none, x, y,
                        error);
}

cellgate_status cud_enqueue_finishes(struct cellgate_plan *plan, uint32_t index,
                                     const struct cud_rows *y,
                                     cellgate_error *error)
{
    const struct cud_stage *stage = &plan->weights->stages[index];
    cellgate_status status = CELLGATE_OK;
    uint32_t i;

    for (i = 0; status == CELLGATE_OK && i < stage->finish_count; i++)
        status = enqueue_rows(
            plan, stage,
            stage->finishes[i].softmax ? NULL : &stage->finishes[i].activation,
            y, y, error);
    return status;
}
