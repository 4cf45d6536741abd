/* SPDX-License-Identifier: Apache-2.0 */
/* Rows times a matrix: the input products of an LSTM, and dense layers; by a
   kernel of our own, or by CLBlast. */
#include "config.h"

#include "plugins/opencl/clblast.h"
#include "plugins/opencl/plan.h"

/* As rows.cl has them, for vectors. */
#define PRODUCT_ROWS 32

static const struct ocl_buffer no_buffer = { NULL, 0 };

/* A matrix and what it makes of some steps of x. */
struct product {
    struct ocl_product_arguments arguments;
    const struct ocl_rows *x;
    const struct ocl_buffer *matrix, *bias, *y, *lengths;
};

static cellgate_status enqueue_own(struct cellgate_plan *plan,
                                   const struct product *product,
                                   cellgate_error *error)
{
    const cellgate_device *device = plan->device;
    const struct ocl_product_arguments *a = &product->arguments;
    const int64_t rows = (int64_t)(a->end - a->first) * a->batch;
    const size_t side = device->side;
    const struct ocl_argument arguments[] = {
        OCL_VALUE(*a),
        OCL_MEMORY(product->x->buffer),
        OCL_MEMORY(product->x->ids),
        OCL_MEMORY(*product->matrix),
        OCL_MEMORY(*product->bias),
        OCL_MEMORY(*product->y),
        OCL_MEMORY(*product->lengths),
    };
    size_t global[3] = { (size_t)a->blocks, ocl_divide_up(rows, PRODUCT_ROWS),
                         (size_t)a->directions };
    const size_t local[3] = { side, side, 1 };

    if (device->vector == 1) {
        global[0] = ocl_divide_up(a->blocks, (int64_t)side) * side;
        global[1] = ocl_divide_up(rows, 4 * (int64_t)side) * side;
    }
    return OCL_LAUNCH(plan, plan->product, arguments, global, local, error);
}

/* ---- By CLBlast -------------------------------------------------------- */

/*
 * Rows of x in one direction, a 1 after each for the bias, in the order of the
 * rows of y: step after step, or sample after sample.
 */
static cellgate_status enqueue_gathering(struct cellgate_plan *plan,
                                         const struct product *product,
                                         int direction, bool by_step,
                                         cellgate_error *error)
{
    struct ocl_product_arguments a = product->arguments;
    const int64_t width = a.depth + 1, steps = a.end - a.first;
    const size_t items = plan->device->group < 64 ? plan->device->group : 64;
    const struct ocl_argument arguments[] = {
        OCL_VALUE(a),
        OCL_MEMORY(product->x->buffer),
        OCL_MEMORY(product->x->ids),
        OCL_MEMORY(plan->gathered),
        OCL_MEMORY(*product->lengths),
    };
    const size_t global[3] = { ocl_divide_up(width, (int64_t)items) * items,
                               (size_t)steps, (size_t)a.batch };
    const size_t local[3] = { items, 1, 1 };

    a.reverse[0] = a.reverse[direction];
    a.y = by_step ? (struct ocl_strides){ width, a.batch * width, 0 }
                  : (struct ocl_strides){ steps * width, width, 0 };
    return OCL_LAUNCH(plan, plan->gather, arguments, global, local, error);
}

static cellgate_status enqueue_clblast(struct cellgate_plan *plan,
                                       const struct product *product,
                                       cellgate_error *error)
{
    const struct ocl_product_arguments *a = &product->arguments;
    const int64_t steps = a->end - a->first;
    const bool by_step = steps == 1 || a->y.time > a->y.batch;
    cellgate_status status = CELLGATE_OK;
    int direction;

    for (direction = 0; status == CELLGATE_OK && direction < a->directions;
         direction++) {
        struct ocl_gemm gemm = {
            .rows = (size_t)(steps * a->batch),
            .columns = (size_t)a->columns,
            .depth = (size_t)a->depth + 1,
            .x = plan->gathered.memory,
            .matrix = product->matrix->memory,
            .matrix_at = (size_t)(direction * a->matrix_direction),
            .matrix_stride = (size_t)(4 * a->blocks) * plan->device->vector,
            .y = product->y->memory,
            .y_at = (size_t)(a->y.at + direction * a->y_direction),
            .y_stride = (size_t)(by_step ? a->y.batch : a->y.time),
        };
        cl_event event = NULL;

        status = enqueue_gathering(plan, product, direction, by_step, error);
        if (status == CELLGATE_OK)
            status = ocl_clblast_enqueue(plan->device, plan->queue, &gemm,
                                         &event, error);
        if (status == CELLGATE_OK && event)
            status = ocl_launched(plan, event, error);
    }
    return status;
}

static cellgate_status enqueue_product(struct cellgate_plan *plan,
                                       const struct product *product,
                                       cellgate_error *error)
{
    const struct ocl_product_arguments *a = &product->arguments;

    if (a->end == a->first)
        return CELLGATE_OK;
    return plan->variant->pack == OCL_PACK_CLBLAST
               ? enqueue_clblast(plan, product, error)
               : enqueue_own(plan, product, error);
}

/* ---- Dense ------------------------------------------------------------- */

/* Rows of one piece: what it gives a compute unit is bounded, and what is
   gathered has its room. */
static int64_t dense_rows(const struct cellgate_plan *plan,
                          const struct ocl_dense *dense)
{
    const double row =
        2.0 * (double)dense->input * (double)dense->units / plan->device->units;
    const double most = WORK_A_LAUNCH / row;
    int64_t rows = most < 1 ? 1 : most < 1e9 ? (int64_t)most : (int64_t)1e9;
    int64_t room;

    if (plan->variant->pack != OCL_PACK_CLBLAST)
        return rows;
    room = (int64_t)(plan->gathered.size / sizeof(float)) / (dense->input + 1);
    return rows < room ? rows : room;
}

/*
 * In pieces of steps or, where the samples of y follow each other, of samples,
 * so that a piece of y lies together.
 */
cellgate_status ocl_enqueue_dense(struct cellgate_plan *plan, uint32_t index,
                                  const struct ocl_rows *x,
                                  const struct ocl_rows *y,
                                  cellgate_error *error)
{
    const struct ocl_stage *stage = &plan->weights->stages[index];
    const int64_t steps = stage->sequence ? ocl_run_steps(plan) : 1;
    const int64_t batch = plan->run->batch;
    const bool by_step = steps > 1 && y->strides.time > y->strides.batch;
    const int64_t count = by_step ? steps : batch;
    const int64_t each = by_step ? batch : steps;
    const int64_t most =
        dense_rows(plan, &stage->dense) / (each > 0 ? each : 1);
    struct product product = {
        .arguments = { .x = x->strides,
                       .y = y->strides,
                       .batch = (int)batch,
                       .depth = (int)stage->dense.input,
                       .columns = (int)stage->width,
                       .blocks = stage->dense.blocks,
                       .end = (int)steps,
                       .directions = 1 },
        .x = x,
        .matrix = &stage->dense.kernel,
        .bias = &stage->dense.bias,
        .y = &y->buffer,
        .lengths = &no_buffer,
    };
    struct ocl_product_arguments *a = &product.arguments;
    cellgate_status status = CELLGATE_OK;
    int64_t first = 0;

    while (status == CELLGATE_OK && first < count) {
        const int64_t left = count - first, now = most > 0 ? most : 1;
        const int64_t end = left > now ? first + now : count;

        if (by_step) {
            a->first = (int)first;
            a->end = (int)end;
            a->y.at = y->strides.at + first * y->strides.time;
        } else {
            a->batch = (int)(end - first);
            a->x.at = x->strides.at + first * x->strides.batch;
            a->y.at = y->strides.at + first * y->strides.batch;
        }
        status = enqueue_product(plan, &product, error);
        first = end;
        if (status == CELLGATE_OK && first < count)
            status = ocl_flush(plan, error);
    }
    return status;
}

/* ---- An LSTM's --------------------------------------------------------- */

cellgate_status ocl_enqueue_products(struct cellgate_plan *plan,
                                     const struct ocl_lstm *lstm,
                                     const struct ocl_rows *x, int64_t first,
                                     int64_t end, cellgate_error *error)
{
    const int64_t width = (int64_t)lstm->blocks * 4 * plan->device->vector;
    const int64_t batch = plan->run->batch;
    const int64_t depth =
        lstm->input + (plan->variant->pack == OCL_PACK_CLBLAST);
    const struct product product = {
        .arguments = { .x = x->strides,
                       .y = { width, batch * width, 0 },
                       .y_direction = batch * width * (end - first),
                       .matrix_direction = depth * width,
                       .batch = (int)batch,
                       .depth = (int)lstm->input,
                       .columns = (int)width,
                       .blocks = lstm->blocks,
                       .first = (int)first,
                       .end = (int)end,
                       .reverse = { ocl_reversed(lstm, 0), 1 },
                       .directions = lstm->directions },
        .x = x,
        .matrix = &lstm->kernel,
        .bias = &lstm->bias,
        .y = &plan->products,
        .lengths = &plan->lengths,
    };

    return enqueue_product(plan, &product, error);
}
