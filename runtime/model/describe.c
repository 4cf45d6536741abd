/* SPDX-License-Identifier: Apache-2.0 */
/* What people and applications are told about a model. */
#include "config.h"

#include "runtime/model/describe.h"

/* ---- Details ------------------------------------------------------------ */

void cg_detail_append(char *text, size_t size, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;

    if (used > 0 && used + 2 < size) {
        memcpy(text + used, ", ", 3);
        used += 2;
    }
    va_start(arguments, format);
    (void)vsnprintf(text + used, size - used, format, arguments);
    va_end(arguments);
}

void cg_detail_activation(char *text, size_t size,
                          const cellgate_activation *activation)
{
    const char *name = cg_activations[activation->kind].name;

    switch (cg_activations[activation->kind].parameters) {
    case 0:
        cg_detail_append(text, size, "%s", name);
        break;
    case 1:
        cg_detail_append(text, size, "%s(%.4g)", name,
                         (double)activation->alpha);
        break;
    default:
        cg_detail_append(text, size, "%s(%.4g, %.4g)", name,
                         (double)activation->alpha, (double)activation->beta);
        break;
    }
}

static bool differs(const cellgate_activation *a, const cellgate_activation *b)
{
    return a->kind != b->kind || a->alpha != b->alpha || a->beta != b->beta;
}

/* In Keras's order: activation, recurrent_activation. */
static void append_triple(char *text, size_t size,
                          const cellgate_activation triple[3])
{
    cg_detail_activation(text, size, &triple[1]);
    cg_detail_activation(text, size, &triple[0]);
    if (differs(&triple[1], &triple[2])) {
        cg_detail_append(text, size, "output activation");
        cg_detail_activation(text, size, &triple[2]);
    }
}

static void append_lstm_options(const cg_node *node, char *text, size_t size)
{
    const cg_lstm *lstm = &node->as.lstm;

    if (lstm->shape.projection_size != 0)
        cg_detail_append(text, size, "projection to %lld",
                         (long long)lstm->shape.projection_size);
    if (!lstm->shape.has_bias)
        cg_detail_append(text, size, "no bias");
    if (lstm->shape.has_peepholes)
        cg_detail_append(text, size, "peepholes");
    if (lstm->shape.coupled)
        cg_detail_append(text, size, "coupled gates");
    if (lstm->shape.clip > 0)
        cg_detail_append(text, size, "clip %.4g", (double)lstm->shape.clip);
    if (lstm->stateful)
        cg_detail_append(text, size, "stateful");
}

void cg_describe_lstm(const cg_node *node, char *text, size_t size)
{
    const cg_lstm *lstm = &node->as.lstm;
    const cellgate_lstm *shape = &lstm->shape;

    cg_detail_append(text, size, "%lld units", (long long)shape->hidden_size);
    append_triple(text, size, shape->activations[0]);
    if (shape->directions == 2)
        cg_detail_append(text, size, "bidirectional");
    for (int i = 0; shape->directions == 2 && i < 3; i++) {
        if (!differs(&shape->activations[0][i], &shape->activations[1][i]))
            continue;
        cg_detail_append(text, size, "backward");
        append_triple(text, size, shape->activations[1]);
        break;
    }
    if (shape->reverse)
        cg_detail_append(text, size, "reversed");
    append_lstm_options(node, text, size);
    if (node->inputs[CG_LSTM_INPUT_STATE] != CG_NO_VALUE)
        cg_detail_append(text, size, "initial state");
    if (shape->outputs & CELLGATE_LSTM_SEQUENCE)
        cg_detail_append(text, size, "returns sequences");
    if (shape->outputs & (CELLGATE_LSTM_H | CELLGATE_LSTM_C))
        cg_detail_append(text, size, "returns states");
    if (node->inputs[CG_LSTM_INPUT_MASK] != CG_NO_VALUE && lstm->zero_masked)
        cg_detail_append(text, size, "zero where masked");
}

void cg_describe_dense(const cg_node *node, char *text, size_t size)
{
    cg_detail_append(text, size, "%lld units", (long long)node->as.dense.units);
    cg_detail_activation(text, size, &node->as.dense.activation);
    if (!node->as.dense.has_bias)
        cg_detail_append(text, size, "no bias");
}

void cg_describe_embedding(const cg_node *node, char *text, size_t size)
{
    cg_detail_append(text, size, "vocabulary of %lld",
                     (long long)node->as.embedding.vocabulary);
}

void cg_describe_activation(const cg_node *node, char *text, size_t size)
{
    cg_detail_activation(text, size, &node->as.activation);
}

void cg_describe_merge(const cg_node *node, char *text, size_t size)
{
    static const char *const names[] = { "sum", "average", "product" };

    cg_detail_append(text, size, "%s of the two halves", names[node->as.merge]);
}

void cg_describe_not_equal(const cg_node *node, char *text, size_t size)
{
    cg_detail_append(text, size, "masks steps of %.4g",
                     (double)node->as.not_equal);
}

/* ---- Operations --------------------------------------------------------- */

/*
 * Products and sums of the matrices, the bias, the peepholes and the cell;
 * activation functions are not counted.
 */
int64_t cg_operations_lstm(const cg_node *node, const cg_shape *output)
{
    const cellgate_lstm *lstm = &node->as.lstm.shape;
    const int64_t hidden = lstm->hidden_size;
    const int64_t state =
        lstm->projection_size != 0 ? lstm->projection_size : hidden;
    int64_t count = 8 * hidden * (lstm->input_size + state) + 4 * hidden;

    (void)output;
    if (lstm->has_bias)
        count += 4 * hidden;
    if (lstm->has_peepholes)
        count += 6 * hidden;
    if (lstm->projection_size != 0)
        count += 2 * hidden * lstm->projection_size;
    return count * lstm->directions;
}

int64_t cg_operations_dense(const cg_node *node, const cg_shape *output)
{
    const cg_dense *dense = &node->as.dense;

    (void)output;
    return 2 * dense->input_size * dense->units +
           (dense->has_bias ? dense->units : 0);
}

int64_t cg_operations_merge(const cg_node *node, const cg_shape *output)
{
    const int64_t features = output->extent[output->rank - 1];

    if (features == CG_UNKNOWN)
        return 0;
    return node->as.merge == CG_MERGE_AVERAGE ? 2 * features : features;
}

static int64_t count_parameters(const cg_node *node)
{
    int64_t count = 0;

    for (size_t i = 0; i < node->weight_count; i++) {
        const cg_weight *weight = &node->weights[i];
        int64_t elements = weight->data != NULL;

        for (int32_t axis = 0; axis < weight->rank; axis++)
            elements *= weight->shape[axis];
        count += elements;
    }
    return count;
}

/* ---- The public functions ----------------------------------------------- */

const char *cellgate_model_format(const cellgate_model *model)
{
    return model->format;
}

const char *cellgate_model_format_version(const cellgate_model *model)
{
    return model->format_version;
}

const char *cellgate_model_note(const cellgate_model *model)
{
    return model->note != NULL ? model->note : "";
}

const char *cellgate_model_fingerprint(const cellgate_model *model)
{
    return model->fingerprint;
}

size_t cellgate_model_input_count(const cellgate_model *model)
{
    return model->input_count;
}

size_t cellgate_model_output_count(const cellgate_model *model)
{
    return model->output_count;
}

size_t cellgate_model_node_count(const cellgate_model *model)
{
    return model->node_count;
}

/* `name` NULL: the value's own. */
static cellgate_status fill_value(const cellgate_model *model, int32_t number,
                                  const char *name, bool steps_first,
                                  bool takes_mask, cellgate_value_info *info)
{
    const cg_value *value = &model->values[number];
    cellgate_value_info full = { .struct_size = sizeof full,
                                 .name = name != NULL ? name : value->name,
                                 .dtype = value->dtype,
                                 .rank = value->rank,
                                 .steps_first = steps_first,
                                 .takes_mask = takes_mask };

    memcpy(full.shape, value->shape, sizeof full.shape);
    cellgate_struct_copy(info, &full);
    return CELLGATE_OK;
}

cellgate_status cellgate_model_input_get(const cellgate_model *model,
                                         size_t index,
                                         cellgate_value_info *info)
{
    if (index >= model->input_count)
        return CELLGATE_END;
    return fill_value(model, model->inputs[index].value, NULL,
                      model->inputs[index].steps_first,
                      model->inputs[index].mask != CG_NO_VALUE, info);
}

cellgate_status cellgate_model_output_get(const cellgate_model *model,
                                          size_t index,
                                          cellgate_value_info *info)
{
    if (index >= model->output_count)
        return CELLGATE_END;
    return fill_value(model, model->outputs[index], model->output_names[index],
                      model->output_steps_first[index], false, info);
}

static int32_t first_output(const cg_node *node)
{
    size_t i = 0;

    while (node->outputs[i] == CG_NO_VALUE)
        i++;
    return node->outputs[i];
}

cellgate_status cellgate_model_node_get(const cellgate_model *model,
                                        size_t index, cellgate_node_info *info)
{
    const cg_node *node;
    const cg_kind_entry *kind;
    const cg_value *output;
    cg_shape shape;

    if (index >= model->node_count)
        return CELLGATE_END;
    node = &model->nodes[index];
    kind = cg_kind_get((int)node->kind);
    output = &model->values[first_output(node)];
    shape.rank = output->rank;
    memcpy(shape.extent, output->shape, sizeof shape.extent);
    cellgate_node_info full = {
        .struct_size = sizeof full,
        .name = node->name,
        .kind = kind->name,
        .detail = node->detail,
        .parameters = count_parameters(node),
        .operations =
            kind->operations != NULL ? kind->operations(node, &shape) : 0,
        .rank = output->rank,
    };
    memcpy(full.shape, output->shape, sizeof full.shape);
    cellgate_struct_copy(info, &full);
    return CELLGATE_OK;
}
