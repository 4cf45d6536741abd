/* SPDX-License-Identifier: Apache-2.0 */
/* The options of recurrent layers and of their cells. */
#include "config.h"

#include "runtime/formats/keras_recurrent.h"
#include "runtime/model/kinds.h"

#define CELL_OPTIONS                                                           \
    "units", "activation", "use_bias", "dropout", "recurrent_dropout", "seed", \
        "implementation", CG_KERAS_TRAINING(kernel),                           \
        CG_KERAS_TRAINING(recurrent), CG_KERAS_TRAINING(bias)
#define LAYER_OPTIONS                                                          \
    "go_backwards", "return_sequences", "return_state", "stateful", "unroll",  \
        "zero_output_for_mask", "use_cudnn", "time_major"

const char *const cg_keras_lstm_options[] = { CELL_OPTIONS, LAYER_OPTIONS,
                                              "recurrent_activation",
                                              "unit_forget_bias", NULL };
const char *const cg_keras_gru_options[] = { CELL_OPTIONS, LAYER_OPTIONS,
                                             "recurrent_activation",
                                             "reset_after", NULL };
const char *const cg_keras_simple_rnn_options[] = { CELL_OPTIONS, LAYER_OPTIONS,
                                                    NULL };
const char *const cg_keras_rnn_options[] = { LAYER_OPTIONS, "cell", NULL };
const char *const cg_keras_lstm_cell_options[] = { CELL_OPTIONS,
                                                   "recurrent_activation",
                                                   "unit_forget_bias", NULL };
const char *const cg_keras_gru_cell_options[] = { CELL_OPTIONS,
                                                  "recurrent_activation",
                                                  "reset_after", NULL };
const char *const cg_keras_simple_rnn_cell_options[] = { CELL_OPTIONS, NULL };
const char *const cg_keras_stacked_cells_options[] = { "cells", NULL };

/* The classes that are, or hold, one cell. */
static const struct {
    const char *layer, *cell, *group;
    cg_kind kind;
} classes[] = {
    { "LSTM", "LSTMCell", "lstm_cell", CG_LSTM },
    { "GRU", "GRUCell", "gru_cell", CG_GRU },
    { "SimpleRNN", "SimpleRNNCell", "simple_rnn_cell", CG_SIMPLE_RNN },
    { "CuDNNLSTM", "LSTMCell", "lstm_cell", CG_LSTM },
    { "CuDNNGRU", "GRUCell", "gru_cell", CG_GRU },
};

#define CLASS_COUNT (sizeof classes / sizeof classes[0])

bool cg_keras_is_recurrent(const cg_keras_class *class)
{
    return class != NULL && class->build == cg_keras_build_recurrent;
}

static size_t find_class(const char *name, bool cell)
{
    size_t at = 0;

    while (at < CLASS_COUNT &&
           strcmp(name, cell ? classes[at].cell : classes[at].layer) != 0)
        at++;
    return at;
}

static cellgate_status get_activation(const cg_keras_layer *layer,
                                      const char *key, const char *absent,
                                      cellgate_activation *activation,
                                      cellgate_error *error)
{
    cg_keras_activation any;
    cellgate_status status =
        cg_keras_get_activation(layer, key, absent, &any, error);

    if (status == CELLGATE_OK && any.kind != CG_ACTIVATION)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                             "%s as '%s' of a recurrent layer is not "
                             "supported; any activation that looks at one "
                             "number at a time and has a name is",
                             cg_kind_get((int)any.kind)->name, key);
    if (status == CELLGATE_OK)
        *activation = any.elementwise;
    return status;
}

/* Of a cell, or of a layer that is one: they say it in the same words. */
static cellgate_status read_cell(const cg_keras_layer *layer, cg_kind kind,
                                 const char *suffix, cg_keras_cell *cell,
                                 cellgate_error *error)
{
    const char *gate = NULL;
    cellgate_status status;

    *cell = (cg_keras_cell){ .kind = kind, .gate.kind = CELLGATE_LINEAR };
    if ((size_t)snprintf(cell->suffix, sizeof cell->suffix, "%s", suffix) >=
        sizeof cell->suffix)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                             "its path in the weights is too long");
    status = cg_keras_get_size(layer, "units", &cell->units, error);
    if (status == CELLGATE_OK)
        status = cg_keras_get_flag(layer, "use_bias", true, &cell->bias, error);
    if (status == CELLGATE_OK)
        status = get_activation(layer, "activation", "tanh", &cell->activation,
                                error);
    if (status == CELLGATE_OK && kind != CG_SIMPLE_RNN)
        status = cg_keras_default_gate(layer, &gate, error);
    if (status == CELLGATE_OK && kind != CG_SIMPLE_RNN)
        status = get_activation(layer, "recurrent_activation", gate,
                                &cell->gate, error);
    if (status == CELLGATE_OK && kind == CG_GRU)
        status = cg_keras_get_flag(layer, "reset_after",
                                   cg_keras_default_reset_after(layer),
                                   &cell->reset_after, error);
    return status;
}

/* A cell of its own, inside an RNN; counts[] are the cells of each class so
   far, by which the groups of a stack are named. */
static cellgate_status read_inner_cell(const cg_keras_layer *outer,
                                       const json_t *json, const char *base,
                                       bool stacked, size_t *counts,
                                       cg_keras_cell *cell,
                                       cellgate_error *error)
{
    cg_keras_layer inner = *outer;
    char suffix[128];
    size_t class;
    cellgate_status status =
        cg_keras_layer_init(&inner, json, 0, 1, outer->name, error);

    if (status != CELLGATE_OK)
        return status;
    class = find_class(inner.class_name, true);
    if (class == CLASS_COUNT)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, &inner,
                             "as a cell of an RNN, only LSTMCell, GRUCell and "
                             "SimpleRNNCell are supported, alone or in one "
                             "list");
    if (!stacked)
        (void)snprintf(suffix, sizeof suffix, "%s", base);
    else if (counts[class] == 0)
        (void)snprintf(suffix, sizeof suffix, "%s/cells/%s", base,
                       classes[class].group);
    else
        (void)snprintf(suffix, sizeof suffix, "%s/cells/%s_%zu", base,
                       classes[class].group, counts[class]);
    counts[class]++;
    return read_cell(&inner, classes[class].kind, suffix, cell, error);
}

/* The "cell" of an RNN: one, or a StackedRNNCells of several. */
static cellgate_status read_cells(const cg_keras_layer *layer,
                                  const char *suffix,
                                  cg_keras_recurrent *recurrent,
                                  cellgate_error *error)
{
    const json_t *cell = json_object_get(layer->config, "cell");
    const cg_keras_class *class = cg_keras_find_class(cell);
    const bool stacked =
        class != NULL && strcmp(class->name, "StackedRNNCells") == 0;
    cg_keras_layer stack = *layer;
    size_t counts[CLASS_COUNT] = { 0 };
    const json_t *cells;
    cellgate_status status = CELLGATE_OK;

    recurrent->cell_count = 1;
    if (!stacked)
        return read_inner_cell(layer, cell, suffix, false, counts,
                               &recurrent->cells[0], error);
    status = cg_keras_layer_init(&stack, cell, 0, 1, layer->name, error);
    if (status != CELLGATE_OK)
        return status;
    cells = json_object_get(stack.config, "cells");
    recurrent->cell_count = json_array_size(cells);
    if (recurrent->cell_count == 0 ||
        recurrent->cell_count > CG_KERAS_MAX_CELLS)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                             "it has %zu cells; 1 to %d are supported",
                             recurrent->cell_count, CG_KERAS_MAX_CELLS);
    for (size_t i = 0; status == CELLGATE_OK && i < recurrent->cell_count; i++)
        status = read_inner_cell(layer, json_array_get(cells, i), suffix, true,
                                 counts, &recurrent->cells[i], error);
    return status;
}

static cellgate_status read_flags(const cg_keras_layer *layer,
                                  cg_keras_recurrent *recurrent,
                                  cellgate_error *error)
{
    const struct {
        const char *key;
        bool *flag;
    } flags[] = {
        { "go_backwards", &recurrent->go_backwards },
        { "return_sequences", &recurrent->sequences },
        { "return_state", &recurrent->states },
        { "stateful", &recurrent->stateful },
        { "unroll", &recurrent->unroll },
        { "zero_output_for_mask", &recurrent->zero_masked },
        { "time_major", &recurrent->time_major },
    };
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0;
         status == CELLGATE_OK && i < sizeof flags / sizeof flags[0]; i++)
        status =
            cg_keras_get_flag(layer, flags[i].key, false, flags[i].flag, error);
    return status;
}

cellgate_status cg_keras_read_recurrent(const cg_keras_layer *layer,
                                        const char *suffix,
                                        cg_keras_recurrent *recurrent,
                                        cellgate_error *error)
{
    const size_t class = find_class(layer->class_name, false);
    cellgate_status status;

    recurrent->cell_count = 1;
    status = class < CLASS_COUNT ? read_cell(layer, classes[class].kind, suffix,
                                             &recurrent->cells[0], error)
                                 : read_cells(layer, suffix, recurrent, error);
    return status == CELLGATE_OK ? read_flags(layer, recurrent, error) : status;
}

size_t cg_keras_state_count(const cg_keras_recurrent *recurrent)
{
    size_t count = 0;

    for (size_t i = 0; i < recurrent->cell_count; i++)
        count += recurrent->cells[i].kind == CG_LSTM ? 2 : 1;
    return count;
}

cellgate_status cg_keras_build_cell(cg_keras_call *call, cellgate_error *error)
{
    return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                         "a cell is supported inside an RNN layer only");
}
