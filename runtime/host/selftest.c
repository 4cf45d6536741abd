/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/host/selftest.h"

#define ROWS 3
/* Three rows of more operations than this become one. */
#define MANY_OPERATIONS 4e9

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "out of memory for the self-test");
}

/* ---- Answers ------------------------------------------------------------ */

/* One run of the whole graph on the host ops. */
typedef struct host_run {
    const cellgate_model *model;
    cg_shape *shapes;
    void **buffers; /* by value; those of inputs and masks are not ours */
    bool *owned;
    void *scratch;
} host_run;

static bool run_init(host_run *run, const cellgate_model *model)
{
    *run = (host_run){ .model = model };
    run->shapes = calloc(model->value_count + 1, sizeof *run->shapes);
    run->buffers = calloc(model->value_count + 1, sizeof *run->buffers);
    run->owned = calloc(model->value_count + 1, sizeof *run->owned);
    return run->shapes != NULL && run->buffers != NULL && run->owned != NULL;
}

static void run_finish(host_run *run)
{
    for (size_t i = 0; run->owned != NULL && i < run->model->value_count; i++)
        if (run->owned[i])
            free(run->buffers[i]);
    free(run->shapes);
    free(run->buffers);
    free(run->owned);
    free(run->scratch);
}

static void bind_inputs(host_run *run, const cg_selftest *selftest)
{
    const cellgate_model *model = run->model;

    for (size_t i = 0; i < model->input_count; i++) {
        const cg_selftest_input *input = &selftest->inputs[i];

        run->buffers[model->inputs[i].value] = input->tensor.data;
        if (model->inputs[i].mask != CG_NO_VALUE)
            run->buffers[model->inputs[i].mask] =
                (void *)(uintptr_t)input->mask;
    }
}

static bool make_buffer(host_run *run, int32_t value)
{
    const int64_t count = cg_shape_elements(&run->shapes[value]);

    if (count < 0)
        return false;
    run->buffers[value] =
        calloc((size_t)count + 1,
               cellgate_dtype_size(run->model->values[value].dtype));
    run->owned[value] = run->buffers[value] != NULL;
    return run->owned[value];
}

static cellgate_status run_node(host_run *run, const cg_node *node,
                                cellgate_error *error)
{
    const size_t scratch = cg_host_scratch(node, run->shapes);

    for (size_t i = 0; i < node->output_count; i++)
        if (node->outputs[i] != CG_NO_VALUE &&
            !make_buffer(run, node->outputs[i]))
            return no_memory(error);
    free(run->scratch);
    run->scratch = malloc(scratch + 1);
    if (run->scratch == NULL)
        return no_memory(error);
    return cg_host_run(run->model, node, run->shapes, run->buffers,
                       run->scratch, error);
}

static bool all_finite(const cellgate_tensor *tensor)
{
    const size_t count = cg_selftest_bytes(tensor) / sizeof(float);

    for (size_t i = 0; tensor->dtype == CELLGATE_F32 && i < count; i++)
        if (!isfinite(((const float *)tensor->data)[i]))
            return false;
    return true;
}

static cellgate_status keep_answers(const host_run *run, cellgate_model *model,
                                    cg_selftest *selftest,
                                    cellgate_error *error)
{
    for (size_t i = 0; i < model->output_count; i++) {
        const int32_t value = model->outputs[i];
        cellgate_tensor *output = &selftest->outputs[i];

        output->dtype = model->values[value].dtype;
        output->rank = run->shapes[value].rank;
        memcpy(output->shape, run->shapes[value].extent, sizeof output->shape);
        output->data = cg_model_memory(model, cg_selftest_bytes(output));
        if (output->data == NULL)
            return no_memory(error);
        memcpy(output->data, run->buffers[value], cg_selftest_bytes(output));
        if (!all_finite(output))
            return cellgate_fail(error, CELLGATE_OUT_OF_RANGE,
                                 "output '%s' is not finite",
                                 model->values[value].name);
    }
    return CELLGATE_OK;
}

static cellgate_status answer(cellgate_model *model, cg_selftest *selftest,
                              cellgate_error *error)
{
    host_run run;
    cellgate_status status =
        run_init(&run, model)
            ? cg_selftest_shapes(model, selftest, run.shapes, error)
            : no_memory(error);

    if (status == CELLGATE_OK)
        bind_inputs(&run, selftest);
    for (size_t i = 0; status == CELLGATE_OK && i < model->node_count; i++)
        status = run_node(&run, &model->nodes[i], error);
    if (status == CELLGATE_OK)
        status = keep_answers(&run, model, selftest, error);
    run_finish(&run);
    return status;
}

/* ---- The recipe --------------------------------------------------------- */

/* Multiplications and additions of a request of these shapes. */
static double count_operations(const cellgate_model *model,
                               const cg_shape *shapes)
{
    cellgate_node_info info = { .struct_size = sizeof info };
    double operations = 0;

    for (size_t i = 0; i < model->node_count; i++) {
        const cg_shape *x = &shapes[model->nodes[i].inputs[0]];
        const double rows = (double)x->extent[0];

        (void)cellgate_model_node_get(model, i, &info);
        operations += (double)info.operations * rows *
                      (x->rank > 2 ? (double)x->extent[1] : 1);
    }
    return operations;
}

/* Three rows, or one where three are too many. */
static cellgate_status choose_rows(const cellgate_model *model,
                                   cg_selftest *selftest, cg_shape *shapes,
                                   cg_selftest_recipe *recipe,
                                   cellgate_error *error)
{
    cellgate_status status = cg_selftest_bound(model, shapes, error);

    if (status == CELLGATE_OK &&
        count_operations(model, shapes) <= MANY_OPERATIONS)
        return CELLGATE_OK;
    recipe->rows = 1;
    cg_selftest_shape_inputs(model, recipe, selftest);
    status = cg_selftest_shapes(model, selftest, shapes, error);
    return status == CELLGATE_OK ? cg_selftest_bound(model, shapes, error)
                                 : status;
}

/* The smallest number of steps that the model takes. */
static cellgate_status find_steps(const cellgate_model *model,
                                  cg_selftest *selftest, cg_shape *shapes,
                                  cg_selftest_recipe *recipe,
                                  cellgate_error *error)
{
    cellgate_status status = CELLGATE_BAD_SHAPE;

    for (recipe->steps = 6; status != CELLGATE_OK && recipe->steps <= 768;) {
        for (recipe->stagger = 1;; recipe->stagger = 0) {
            cg_selftest_shape_inputs(model, recipe, selftest);
            status = cg_selftest_shapes(model, selftest, shapes, error);
            if (status == CELLGATE_OK || recipe->stagger == 0)
                break;
        }
        if (status != CELLGATE_OK)
            recipe->steps *= 2;
    }
    return status == CELLGATE_OK
               ? choose_rows(model, selftest, shapes, recipe, error)
               : status;
}

static cellgate_status try_recipe(cellgate_model *model,
                                  const cg_selftest_recipe *recipe,
                                  cg_selftest **made, cellgate_error *error)
{
    cg_selftest *selftest = cg_selftest_create(model);
    cellgate_status status;

    if (selftest == NULL)
        return no_memory(error);
    cg_selftest_shape_inputs(model, recipe, selftest);
    status = cg_selftest_fill_inputs(model, recipe, selftest, error);
    if (status == CELLGATE_OK)
        status = answer(model, selftest, error);
    if (status == CELLGATE_OK)
        *made = selftest;
    return status;
}

/* The inputs of a later attempt are for models that refuse an earlier one. */
static cellgate_status try_all(cellgate_model *model,
                               cg_selftest_recipe *recipe, cg_selftest **made,
                               cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (int attempt = 0; attempt < 4; attempt++) {
        recipe->masks = (attempt & 1) == 0;
        recipe->zero_ids = (attempt & 2) != 0;
        status = try_recipe(model, recipe, made, error);
        if (status == CELLGATE_OK || status == CELLGATE_NO_MEMORY)
            break;
    }
    return status;
}

/* UNSUPPORTED: too large; any other failure is of the last small request. */
static cellgate_status make(cellgate_model *model, cg_selftest **made,
                            cellgate_error *error)
{
    cg_selftest_recipe recipe = { .rows = ROWS };
    cg_shape *shapes = calloc(model->value_count + 1, sizeof *shapes);
    cg_selftest *trial = cg_selftest_create(model);
    cellgate_status status =
        shapes != NULL && trial != NULL
            ? find_steps(model, trial, shapes, &recipe, error)
            : no_memory(error);

    free(shapes);
    if (status != CELLGATE_OK)
        return status;
    status = try_all(model, &recipe, made, error);
    return status == CELLGATE_UNSUPPORTED ? CELLGATE_INVALID : status;
}

cellgate_status cellgate_model_make_selftest(cellgate_model *model,
                                             cellgate_error *error)
{
    cellgate_error cause = CELLGATE_ERROR_INIT;
    cg_selftest *made = NULL;
    cellgate_status status;

    if (model == NULL)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "a self-test needs a model");
    if (model->selftest != NULL)
        return CELLGATE_OK;
    status = make(model, &made, &cause);
    if (status == CELLGATE_OK)
        model->selftest = made;
    else if (status == CELLGATE_NO_MEMORY)
        return cellgate_fail(error, status, "%s", cause.text);
    else
        return cellgate_fail(
            error, CELLGATE_UNSUPPORTED, "no self-test can be made: %s%s",
            status == CELLGATE_UNSUPPORTED
                ? ""
                : "the host reference has no finite answer to any small "
                  "request; the last reason: ",
            cause.text);
    return CELLGATE_OK;
}
