/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/host/selftest.h"

/* Ids that reach no embedding are below this. */
#define FREE_IDS 10

/* ---- Shapes ------------------------------------------------------------- */

void cg_selftest_shape_inputs(const cellgate_model *model,
                              const cg_selftest_recipe *recipe,
                              cg_selftest *selftest)
{
    selftest->rows = recipe->rows;
    for (size_t i = 0; i < model->input_count; i++) {
        const cg_value *value = &model->values[model->inputs[i].value];
        cellgate_tensor *tensor = &selftest->inputs[i].tensor;

        tensor->dtype = value->dtype;
        tensor->rank = value->rank;
        tensor->shape[0] = recipe->rows;
        for (int32_t axis = 1; axis < value->rank; axis++)
            tensor->shape[axis] =
                value->shape[axis] != CG_UNKNOWN
                    ? value->shape[axis]
                    : recipe->steps + recipe->stagger * (int64_t)i;
    }
}

/* ---- What an input is used for ------------------------------------------ */

/*
 * How many ids each value may hold, from the vocabulary of the embeddings that
 * it reaches; 0: it reaches none. Through whatever kinds move ids about.
 */
static void find_bounds(const cellgate_model *model, int64_t *bounds)
{
    for (size_t n = model->node_count; n-- > 0;) {
        const cg_node *node = &model->nodes[n];
        int64_t bound = 0;

        for (size_t i = 0; i < node->output_count; i++) {
            const int32_t value = node->outputs[i];

            if (value != CG_NO_VALUE && bounds[value] != 0 &&
                (bound == 0 || bounds[value] < bound))
                bound = bounds[value];
        }
        if (node->kind == CG_EMBEDDING)
            bound = node->as.embedding.vocabulary;
        for (size_t i = 0; bound != 0 && i < node->input_count; i++) {
            const int32_t value = node->inputs[i];

            if (value != CG_NO_VALUE &&
                (bounds[value] == 0 || bound < bounds[value]))
                bounds[value] = bound;
        }
    }
}

/* The value that a Masking layer on this input takes for "no step". */
static bool masking_value(const cellgate_model *model, int32_t value,
                          float *masked)
{
    for (size_t n = 0; n < model->node_count; n++)
        if (model->nodes[n].kind == CG_NOT_EQUAL &&
            model->nodes[n].inputs[0] == value) {
            *masked = model->nodes[n].as.not_equal;
            return true;
        }
    return false;
}

/* ---- Data --------------------------------------------------------------- */

static uint64_t next(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static bool valid_step(int64_t row, int64_t step, int64_t steps)
{
    switch (row % 3) {
    case 0:
        return true;
    case 1:
        return step < (2 * steps + 2) / 3;
    default:
        return step % 3 != 1;
    }
}

/* What the numbers of one input are drawn from. */
typedef struct input_use {
    int64_t bound; /* of ids; 0: these are no ids */
    bool zeros;    /* id 0 for steps that are not valid, and only for those */
    bool masking;  /* `masked` for steps that are not valid */
    float masked;
} input_use;

static float draw_float(const input_use *use, bool valid, uint64_t *random)
{
    const uint64_t bits = next(random);

    if (!valid && use->masking)
        return use->masked;
    if (use->bound != 0)
        return (float)(bits % (uint64_t)use->bound);
    return (float)(bits >> 40) * 0x1p-23f - 1.0f;
}

static int32_t draw_id(const input_use *use, bool valid, uint64_t *random)
{
    const uint64_t bits = next(random);

    if (!use->zeros || use->bound == 1)
        return (int32_t)(bits % (uint64_t)use->bound);
    return valid ? 1 + (int32_t)(bits % (uint64_t)(use->bound - 1)) : 0;
}

static void fill(const cellgate_tensor *tensor, const input_use *use,
                 uint64_t *random)
{
    const int64_t steps = tensor->rank > 1 ? tensor->shape[1] : 1;
    int64_t each = 1; /* elements a step */

    for (int32_t axis = 2; axis < tensor->rank; axis++)
        each *= tensor->shape[axis];
    for (int64_t at = 0; at < tensor->shape[0] * steps * each; at++) {
        const int64_t row = at / (steps * each), step = at / each % steps;
        const bool valid = valid_step(row, step, steps);

        if (tensor->dtype == CELLGATE_F32)
            ((float *)tensor->data)[at] = draw_float(use, valid, random);
        else if (tensor->dtype == CELLGATE_I32)
            ((int32_t *)tensor->data)[at] = draw_id(use, valid, random);
        else
            ((uint8_t *)tensor->data)[at] = valid;
    }
}

static bool add_mask(cellgate_model *model, cg_selftest_input *input)
{
    const int64_t rows = input->tensor.shape[0], steps = input->tensor.shape[1];
    uint8_t *mask = cg_model_memory(model, (size_t)(rows * steps) + 1);

    for (int64_t at = 0; mask != NULL && at < rows * steps; at++)
        mask[at] = valid_step(at / steps, at % steps, steps);
    input->mask = mask;
    return mask != NULL;
}

static input_use use_of(const cellgate_model *model, int32_t value,
                        int64_t bound, const cg_selftest_recipe *recipe)
{
    input_use use = { .bound = bound };

    if (bound == 0 && model->values[value].dtype == CELLGATE_I32)
        use.bound = FREE_IDS;
    if (recipe->zero_ids && use.bound != 0)
        use.bound = 1;
    use.zeros = recipe->masks && model->values[value].rank > 1;
    use.masking = recipe->masks && masking_value(model, value, &use.masked);
    return use;
}

cellgate_status cg_selftest_fill_inputs(cellgate_model *model,
                                        const cg_selftest_recipe *recipe,
                                        cg_selftest *selftest,
                                        cellgate_error *error)
{
    int64_t *bounds = calloc(model->value_count + 1, sizeof *bounds);
    uint64_t random = 1;
    bool complete = bounds != NULL;

    if (complete)
        find_bounds(model, bounds);
    for (size_t i = 0; complete && i < model->input_count; i++) {
        const int32_t value = model->inputs[i].value;
        cg_selftest_input *input = &selftest->inputs[i];
        const input_use use = use_of(model, value, bounds[value], recipe);

        input->tensor.data =
            cg_model_memory(model, cg_selftest_bytes(&input->tensor));
        if (input->tensor.data != NULL)
            fill(&input->tensor, &use, &random);
        complete = input->tensor.data != NULL;
        if (complete && recipe->masks && model->inputs[i].mask != CG_NO_VALUE)
            complete = add_mask(model, input);
    }
    free(bounds);
    return complete ? CELLGATE_OK
                    : cellgate_fail(error, CELLGATE_NO_MEMORY,
                                    "out of memory for the self-test");
}
