/* SPDX-License-Identifier: Apache-2.0 */
/* Sequential models: each layer is called on the output of the one before. */
#include "config.h"

#include <stdlib.h>

#include "runtime/formats/keras_graph.h"

/* Keras passes on all that a layer returns: a list reaches the next layer, or
   the model's caller, as a list. */
static cellgate_status call_on(const cg_keras_layer *layer,
                               cg_keras_list *tensors, cellgate_error *error)
{
    cg_keras_call call = { .layer = layer,
                           .inputs = *tensors,
                           .mask.value = CG_NO_VALUE };
    cellgate_status status = cg_keras_run_call(&call, error);

    *tensors = call.outputs;
    cg_keras_list_finish(&call.inputs);
    cg_keras_list_finish(&call.states);
    return status;
}

/* Without an InputLayer, the first layer or the model itself says the shape. */
static cellgate_status add_sequential_input(const cg_keras_graph *graph,
                                            cg_keras_tensor *tensor,
                                            cellgate_error *error)
{
    const json_t *first = json_array_get(graph->layers, 0);
    const json_t *config = json_object_get(first, "config");
    const char *class_name =
        json_string_value(json_object_get(first, "class_name"));
    const bool is_input =
        class_name != NULL && strcmp(class_name, "InputLayer") == 0;
    const json_t *shape = cg_keras_input_shape(config);
    const char *name = json_string_value(json_object_get(config, "name"));
    cg_keras_layer layer = *graph->model;

    if (shape == NULL)
        shape = json_object_get(graph->model->config, "build_input_shape");
    layer.name = is_input && name != NULL ? name : "input";
    return cg_keras_add_top_input(&layer, shape, is_input ? config : NULL,
                                  tensor, error);
}

cellgate_status cg_keras_build_sequential(cg_keras_graph *graph,
                                          const cg_keras_list *inputs,
                                          cg_keras_list *outputs,
                                          cellgate_error *error)
{
    cg_keras_list tensors = { 0 };
    cg_keras_tensor first = { 0 };
    cellgate_status status = CELLGATE_OK;

    if (inputs != NULL && inputs->count != 1)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, graph->model,
                             "it is called on %zu tensors; it takes one",
                             inputs->count);
    if (inputs != NULL)
        first = inputs->items[0];
    else
        status = add_sequential_input(graph, &first, error);
    if (status == CELLGATE_OK)
        status = cg_keras_list_add(&tensors, first, error);
    for (size_t i = 0; status == CELLGATE_OK && i < graph->count; i++) {
        cg_keras_layer layer;
        char *path = NULL;

        status = cg_keras_init_layer(graph, i, &layer, &path, error);
        if (status == CELLGATE_OK &&
            !(i == 0 && (layer.class->flags & CG_KERAS_INPUT)))
            status = call_on(&layer, &tensors, error);
        free(path);
    }
    for (size_t i = 0; status == CELLGATE_OK && i < tensors.count; i++)
        status = cg_keras_list_add(outputs, tensors.items[i], error);
    cg_keras_list_finish(&tensors);
    return status;
}
