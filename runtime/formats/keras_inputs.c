/* SPDX-License-Identifier: Apache-2.0 */
/* The inputs of the model at the top. */
#include "config.h"

#include "runtime/formats/keras_graph.h"

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "out of memory while wiring the layers");
}

static cellgate_status read_shape(const cg_keras_layer *layer,
                                  const json_t *json, int32_t *rank,
                                  int64_t *shape, cellgate_error *error)
{
    const size_t size = json_array_size(json);

    if (json == NULL && strcmp(layer->class_name, "Sequential") == 0)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                             "it was saved before it was built: it has neither "
                             "weights nor a shape of its input; call it once "
                             "on data, or begin it with Input(shape), and save "
                             "it again");
    if (!json_is_array(json) || size < 1 || size > CELLGATE_MAX_RANK)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                             "it does not say the shape of its input, of 1 to "
                             "%d axes",
                             CELLGATE_MAX_RANK);
    for (size_t axis = 0; axis < size; axis++) {
        const json_t *extent = json_array_get(json, axis);

        if (!json_is_null(extent) &&
            (!json_is_integer(extent) || json_integer_value(extent) < 1 ||
             json_integer_value(extent) > CG_MAX_SIZE))
            return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                                 "axis %zu of its input has no usable extent",
                                 axis);
        /* A batch size in the file is what training used. */
        shape[axis] = axis == 0 || json_is_null(extent)
                          ? CG_UNKNOWN
                          : json_integer_value(extent);
    }
    *rank = (int32_t)size;
    return CELLGATE_OK;
}

const json_t *cg_keras_input_shape(const json_t *config)
{
    const json_t *shape = json_object_get(config, "batch_shape");

    return shape != NULL ? shape : json_object_get(config, "batch_input_shape");
}

/* The dtype of the value of an InputLayer: numbers, or ids for integers and
   truth values. */
static cellgate_status read_dtype(const cg_keras_layer *layer,
                                  const json_t *config, int32_t *dtype,
                                  cellgate_error *error)
{
    const char *name = json_string_value(json_object_get(config, "dtype"));

    if (name == NULL || strncmp(name, "float", 5) == 0 ||
        strcmp(name, "bfloat16") == 0)
        *dtype = CELLGATE_F32;
    else if (strncmp(name, "int", 3) == 0 || strncmp(name, "uint", 4) == 0 ||
             strcmp(name, "bool") == 0)
        *dtype = CELLGATE_I32;
    else
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                             "an input of dtype '%.40s' is not supported; "
                             "numbers, ids and bool are%s",
                             name,
                             strcmp(name, "string") == 0
                                 ? ": turn texts into ids in your program, and "
                                   "rebuild the model from the layer behind "
                                   "TextVectorization or StringLookup"
                                 : "");
    return CELLGATE_OK;
}

/* Steps, which the file has first, go where a model has them. */
static cellgate_status turn(const cg_keras_layer *layer, const json_t *json,
                            int32_t rank, int64_t *shape, cellgate_error *error)
{
    const json_t *steps = json_array_get(json, 0);

    if (rank < 2)
        return cg_keras_fail(error, CELLGATE_BAD_FILE, layer,
                             "its input, of one axis, has no steps");
    shape[1] = json_is_null(steps) ? CG_UNKNOWN : json_integer_value(steps);
    return CELLGATE_OK;
}

cellgate_status cg_keras_add_top_input(const cg_keras_layer *layer,
                                       const json_t *shape_json,
                                       const json_t *config,
                                       cg_keras_tensor *tensor,
                                       cellgate_error *error)
{
    int64_t shape[CELLGATE_MAX_RANK];
    int32_t rank = 0, dtype = CELLGATE_F32;
    const bool turned =
        json_object_get(layer->reader->steps_first, layer->name) != NULL;
    const char *name;
    cellgate_status status = read_shape(layer, shape_json, &rank, shape, error);

    if (status == CELLGATE_OK && config != NULL)
        status = read_dtype(layer, config, &dtype, error);
    if (status == CELLGATE_OK && turned)
        status = turn(layer, shape_json, rank, shape, error);
    if (status != CELLGATE_OK)
        return status;
    name = cg_keras_unique_name(layer->reader, layer->name);
    if (name == NULL)
        return no_memory(error);
    status = cg_keras_add_input(layer->reader, name, dtype, rank, shape, tensor,
                                error);
    if (status != CELLGATE_OK || !turned)
        return status;
    tensor->turned = true;
    return cg_model_turn_input(layer->reader->model, error);
}
