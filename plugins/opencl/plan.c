/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "plugins/opencl/plan.h"
#include "plugins/opencl/program.h"

/* Input products computed ahead, bytes: what a CPU's caches keep; enough work
   to fill a card. */
#define PRODUCTS_SHARED ((int64_t)4 << 20)
#define PRODUCTS_CARD ((int64_t)64 << 20)
/* Barriers take their time too, however little is between them. */
#define STEPS_A_LAUNCH 8192

/* ---- Kernels ----------------------------------------------------------- */

/* The most work-items that a group of this kernel may have. */
static cellgate_status kernel_limit(cellgate_device *device, cl_kernel kernel,
                                    size_t *limit, cellgate_error *error)
{
    size_t most = 0;
    cl_int code = device->cl->GetKernelWorkGroupInfo(kernel, device->id,
                                                     CL_KERNEL_WORK_GROUP_SIZE,
                                                     sizeof most, &most, NULL);

    if (code != CL_SUCCESS)
        return ocl_device_fail(device, error, code, "clGetKernelWorkGroupInfo",
                               "creating a plan");
    *limit = most < device->group ? most : device->group;
    return CELLGATE_OK;
}

static cellgate_status lstm_kernels(struct cellgate_plan *plan, uint32_t index,
                                    cellgate_error *error)
{
    cellgate_device *device = plan->device;
    const struct ocl_lstm *lstm = &plan->weights->stages[index].lstm;
    const struct ocl_variant *variant = plan->variant;
    struct ocl_stage_plan *stage = &plan->stages[index];
    const bool step = variant->way == OCL_STEP;
    const struct ocl_build build = { .half = variant->pack == OCL_PACK_HALF,
                                     .lstm = true,
                                     .fused = variant->way == OCL_FUSED,
                                     .project = lstm->projects,
                                     .usual = lstm->usual,
                                     .rows = variant->rows };
    cl_program program = NULL;
    cellgate_status status = ocl_program_get(device, &build, &program, error);

    if (status == CELLGATE_OK)
        status = ocl_kernel_create(device, program,
                                   step ? "lstm_step" : "lstm_whole",
                                   &stage->main, error);
    if (status == CELLGATE_OK && step && lstm->projects)
        status = ocl_kernel_create(device, program, "lstm_project",
                                   &stage->project, error);
    if (status == CELLGATE_OK && step)
        status = ocl_kernel_create(device, program, "lstm_last", &stage->last,
                                   error);
    if (status == CELLGATE_OK)
        status = kernel_limit(device, stage->main, &stage->items, error);
    return status;
}

/* How many items of a group share a layer. */
static cellgate_status lstm_items(struct cellgate_plan *plan, uint32_t index,
                                  cellgate_error *error)
{
    const cellgate_device *device = plan->device;
    const struct ocl_lstm *lstm = &plan->weights->stages[index].lstm;
    struct ocl_stage_plan *stage = &plan->stages[index];
    size_t wanted = ((size_t)lstm->blocks + 31) / 32 * 32, sums;

    if (plan->variant->way != OCL_STEP) {
        if (stage->items > wanted)
            stage->items = wanted;
        return CELLGATE_OK;
    }
    stage->items /= device->slices;
    if (stage->items > 32)
        stage->items = 32;
    sums = sizeof(float) * 4 * plan->variant->rows * device->slices *
           device->vector;
    while (stage->items > 1 && device->slices > 1 &&
           stage->items * sums > device->found->local_memory)
        stage->items /= 2;
    if (stage->items == 0)
        return cellgate_fail(error, CELLGATE_DEVICE_FAILED,
                             "the step kernel needs %u work-items in a group, "
                             "more than %s gives it",
                             (unsigned)device->slices,
                             device->found->description.name);
    return CELLGATE_OK;
}

static cellgate_status plan_kernels(struct cellgate_plan *plan,
                                    cellgate_error *error)
{
    cellgate_device *device = plan->device;
    const struct ocl_build build = { .half =
                                         plan->variant->pack == OCL_PACK_HALF };
    cl_program rows = NULL;
    cellgate_status status = ocl_program_get(device, &build, &rows, error);
    uint32_t i;

    if (status == CELLGATE_OK)
        status =
            ocl_kernel_create(device, rows, "product", &plan->product, error);
    if (status == CELLGATE_OK)
        status = ocl_kernel_create(device, rows, "rows_gather", &plan->gather,
                                   error);
    if (status == CELLGATE_OK)
        status = ocl_kernel_create(device, rows, "rows_activate",
                                   &plan->activate, error);
    if (status == CELLGATE_OK)
        status = ocl_kernel_create(device, rows, "rows_softmax", &plan->softmax,
                                   error);
    for (i = 0; status == CELLGATE_OK && i < plan->weights->stage_count; i++) {
        if (plan->weights->stages[i].kind != OCL_STAGE_LSTM)
            continue;
        status = lstm_kernels(plan, i, error);
        if (status == CELLGATE_OK)
            status = lstm_items(plan, i, error);
    }
    return status;
}

/* ---- Memory ------------------------------------------------------------ */

/* Floats of a layer's input products for one step. */
static int64_t products_of_step(const struct cellgate_plan *plan,
                                const struct ocl_lstm *lstm)
{
    return plan->batch * lstm->directions * 4 * lstm->blocks *
           plan->device->vector;
}

/* Steps of one launch of the whole-sequence kernels. */
static int64_t steps_of_launch(const struct cellgate_plan *plan,
                               const struct ocl_lstm *lstm)
{
    const uint32_t rows = plan->variant->rows;
    const int64_t groups = lstm->directions * ((plan->batch + rows - 1) / rows);
    const int64_t rounds =
        (groups + plan->device->units - 1) / plan->device->units;
    const double depth =
        (double)lstm->output +
        (plan->variant->way == OCL_FUSED ? (double)lstm->input : 0.0);
    const double products = (double)lstm->hidden *
                            (4 * depth + (lstm->projects ? lstm->output : 0));
    const double steps = WORK_A_LAUNCH / (2 * products * rows * rounds);

    return steps < 1                ? 1
           : steps < STEPS_A_LAUNCH ? (int64_t)steps
                                    : STEPS_A_LAUNCH;
}

/* What is made ahead of the kernels that need it, in floats. */
struct ahead {
    int64_t products, gathered;
    bool least; /* less is not possible */
};

static int64_t most_of(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* Steps of a layer that are computed ahead, so that what they take is about so
   many bytes. */
static void lstm_ahead(struct cellgate_plan *plan, uint32_t index,
                       int64_t bytes, struct ahead *ahead)
{
    const struct ocl_lstm *lstm = &plan->weights->stages[index].lstm;
    const int64_t most = plan->variant->way == OCL_STEP
                             ? plan->steps
                             : steps_of_launch(plan, lstm);
    const int64_t step = products_of_step(plan, lstm);
    const int64_t row = plan->variant->pack == OCL_PACK_CLBLAST
                            ? plan->batch * (lstm->input + 1)
                            : 0;
    const double work = 2.0 * (double)step * (double)lstm->input;
    const double launch = WORK_A_LAUNCH * plan->device->units / work;
    int64_t chunk = bytes / (int64_t)sizeof(float) / most_of(step, row);

    if (plan->variant->way == OCL_FUSED) {
        plan->stages[index].chunk = most;
        return;
    }
    if (chunk > plan->steps)
        chunk = plan->steps;
    if ((double)chunk > launch)
        chunk = (int64_t)launch;
    if (chunk > most)
        chunk = most;
    if (chunk < 1)
        chunk = 1;
    plan->stages[index].chunk = chunk;
    ahead->least = ahead->least && chunk == 1;
    ahead->products = most_of(ahead->products, chunk * step);
    ahead->gathered = most_of(ahead->gathered, chunk * row);
}

/* Rows that a dense layer takes at once: at least those of a step, and those of
   a sample. */
static void dense_ahead(const struct cellgate_plan *plan, uint32_t index,
                        int64_t bytes, struct ahead *ahead)
{
    const int64_t width = plan->weights->stages[index].dense.input + 1;
    const int64_t least = most_of(plan->batch, plan->steps);
    const int64_t all = plan->batch * most_of(plan->steps, 1);
    int64_t rows = most_of(bytes / (int64_t)sizeof(float) / width, least);

    if (plan->variant->pack != OCL_PACK_CLBLAST)
        return;
    if (rows > all)
        rows = all;
    ahead->least = ahead->least && rows == least;
    ahead->gathered = most_of(ahead->gathered, rows * width);
}

static cellgate_status ahead_memory(struct cellgate_plan *plan,
                                    const struct ahead *ahead,
                                    cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    if (ahead->products > 0)
        status = ocl_buffer_create(plan->device, ahead->products, sizeof(float),
                                   &plan->products, error);
    if (status == CELLGATE_OK && ahead->gathered > 0)
        status = ocl_buffer_create(plan->device, ahead->gathered, sizeof(float),
                                   &plan->gathered, error);
    if (status != CELLGATE_OK)
        ocl_buffer_destroy(plan->device, &plan->products);
    return status;
}

/* Less is made ahead where the wanted amount does not fit. */
static cellgate_status products_memory(struct cellgate_plan *plan,
                                       cellgate_error *error)
{
    const cellgate_weights *weights = plan->weights;
    int64_t bytes =
        plan->device->found->unified ? PRODUCTS_SHARED : PRODUCTS_CARD;
    cellgate_status status;
    struct ahead ahead;

    do {
        uint32_t i;

        ahead = (struct ahead){ .least = true };
        for (i = 0; i < weights->stage_count; i++)
            if (weights->stages[i].kind == OCL_STAGE_LSTM)
                lstm_ahead(plan, i, bytes, &ahead);
            else if (weights->stages[i].kind == OCL_STAGE_DENSE)
                dense_ahead(plan, i, bytes, &ahead);
        status = ahead_memory(plan, &ahead, error);
        bytes /= 2;
    } while (status == CELLGATE_DEVICE_MEMORY && !ahead.least);
    return status;
}

static cellgate_status state_memory(struct cellgate_plan *plan, uint32_t index,
                                    cellgate_error *error)
{
    cellgate_device *device = plan->device;
    const struct ocl_lstm *lstm = &plan->weights->stages[index].lstm;
    struct ocl_stage_plan *stage = &plan->stages[index];
    const bool step = plan->variant->way == OCL_STEP;
    const int64_t rows = lstm->directions * plan->batch;
    cellgate_status status =
        ocl_buffer_create(device, (step ? 2 : 1) * rows * lstm->output,
                          sizeof(float), &stage->h, error);

    if (status == CELLGATE_OK)
        status = ocl_buffer_create(device, rows * lstm->hidden, sizeof(float),
                                   &stage->c, error);
    if (status == CELLGATE_OK && step && lstm->projects)
        status = ocl_buffer_create(device, rows * lstm->hidden, sizeof(float),
                                   &stage->hidden, error);
    return status;
}

/* Floats of a stage's result: of each step, or of each sample only. */
static int64_t result_size(const struct cellgate_plan *plan,
                           const struct ocl_stage *stage)
{
    const int64_t steps = stage->sequence && plan->steps > 0 ? plan->steps : 1;

    return plan->batch * steps * stage->width;
}

/* The largest result of a stage that is not the last. */
static int64_t between_size(const struct cellgate_plan *plan)
{
    int64_t most = 0;
    uint32_t i;

    for (i = 0; i + 1 < plan->weights->stage_count; i++) {
        const int64_t size = result_size(plan, &plan->weights->stages[i]);

        if (most < size)
            most = size;
    }
    return most;
}

static cellgate_status plan_memory(struct cellgate_plan *plan,
                                   cellgate_error *error)
{
    cellgate_device *device = plan->device;
    const cellgate_weights *weights = plan->weights;
    const int64_t batch = plan->batch;
    const int64_t rows = batch * (plan->steps > 0 ? plan->steps : 1);
    const struct ocl_stage *last = &weights->stages[weights->stage_count - 1];
    const int64_t between = between_size(plan);
    struct {
        struct ocl_buffer *buffer;
        int64_t count; /* rows are below 2^28, widths below 2^30 */
    } needs[] = {
        { &plan->x, rows * weights->input_width },
        { &plan->lengths, batch },
        { &plan->order, batch },
        { &plan->y, last->sequence ? result_size(plan, last) : 0 },
        { &plan->last, batch * last->width },
        { &plan->between[0], between },
        { &plan->between[1], between },
    };
    cellgate_status status = CELLGATE_OK;
    size_t i;

    for (i = 0; status == CELLGATE_OK && i < sizeof needs / sizeof needs[0];
         i++)
        if (needs[i].count > 0)
            status = ocl_buffer_create(device, needs[i].count, sizeof(float),
                                       needs[i].buffer, error);
    for (i = 0; status == CELLGATE_OK && i < weights->stage_count; i++)
        if (weights->stages[i].kind == OCL_STAGE_LSTM)
            status = state_memory(plan, (uint32_t)i, error);
    if (status == CELLGATE_OK)
        status = products_memory(plan, error);
    return status;
}

/* ---- plan_create() and plan_destroy() ---------------------------------- */

static struct cellgate_plan *allocate(cellgate_device *device,
                                      const cellgate_weights *weights,
                                      const cellgate_shape *shape)
{
    struct cellgate_plan *made = calloc(1, sizeof *made);

    if (!made)
        return NULL;
    made->device = device;
    made->weights = weights;
    made->batch = shape->batch;
    made->steps = shape->steps;
    made->stages = calloc(weights->stage_count, sizeof *made->stages);
    made->host_lengths = calloc((size_t)shape->batch, sizeof(int32_t));
    made->host_order = calloc((size_t)shape->batch, sizeof(int32_t));
    if (made->stages && made->host_lengths && made->host_order)
        return made;
    free(made->stages);
    free(made->host_lengths);
    free(made->host_order);
    free(made);
    return NULL;
}

cellgate_status ocl_plan_create(cellgate_device *device,
                                cellgate_weights *weights, uint64_t variant,
                                const cellgate_shape *given,
                                cellgate_plan **plan, cellgate_error *error)
{
    cellgate_shape shape;
    struct cellgate_plan *made;
    cellgate_status status = ocl_device_check(device, error);
    cl_int code;

    if (status == CELLGATE_OK)
        status = ocl_shape_read(given, &shape, error);
    if (status == CELLGATE_OK)
        status = ocl_variant_check(device, &weights->outline, variant,
                                   shape.batch, error);
    if (status != CELLGATE_OK)
        return status;
    if (ocl_variant_at(variant)->pack != weights->pack)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "variant %s needs weights of another pack",
                             ocl_variant_at(variant)->name);
    made = allocate(device, weights, &shape);
    if (!made)
        return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory for a plan");
    made->variant = ocl_variant_at(variant);
    made->queue = device->cl->CreateCommandQueue(
        device->context, device->id, CL_QUEUE_PROFILING_ENABLE, &code);
    if (code != CL_SUCCESS) {
        made->queue = NULL;
        status = ocl_device_fail(device, error, code, "clCreateCommandQueue",
                                 "creating a plan");
    }
    if (status == CELLGATE_OK)
        status = plan_kernels(made, error);
    if (status == CELLGATE_OK)
        status = plan_memory(made, error);
    if (status == CELLGATE_OK)
        *plan = made;
    else
        ocl_plan_destroy(made);
    return status;
}

static void free_kernel(const struct ocl_api *cl, cl_kernel kernel)
{
    if (kernel)
        (void)cl->ReleaseKernel(kernel);
}

void ocl_plan_destroy(cellgate_plan *plan)
{
    const struct ocl_api *cl;
    uint32_t i;

    if (!plan)
        return;
    cl = plan->device->cl;
    free_kernel(cl, plan->product);
    free_kernel(cl, plan->gather);
    free_kernel(cl, plan->activate);
    free_kernel(cl, plan->softmax);
    for (i = 0; i < plan->weights->stage_count; i++) {
        struct ocl_stage_plan *stage = &plan->stages[i];

        free_kernel(cl, stage->main);
        free_kernel(cl, stage->project);
        free_kernel(cl, stage->last);
        ocl_buffer_destroy(plan->device, &stage->h);
        ocl_buffer_destroy(plan->device, &stage->c);
        ocl_buffer_destroy(plan->device, &stage->hidden);
    }
    ocl_buffer_destroy(plan->device, &plan->x);
    ocl_buffer_destroy(plan->device, &plan->lengths);
    ocl_buffer_destroy(plan->device, &plan->order);
    ocl_buffer_destroy(plan->device, &plan->y);
    ocl_buffer_destroy(plan->device, &plan->last);
    ocl_buffer_destroy(plan->device, &plan->products);
    ocl_buffer_destroy(plan->device, &plan->gathered);
    ocl_buffer_destroy(plan->device, &plan->between[0]);
    ocl_buffer_destroy(plan->device, &plan->between[1]);
    if (plan->queue)
        (void)cl->ReleaseCommandQueue(plan->queue);
    free(plan->stages);
    free(plan->host_lengths);
    free(plan->host_order);
    free(plan);
}
