/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model while its layers are called. Private to keras_graph.c,
 * keras_sequential.c, keras_functional.c, keras_inputs.c, keras_tensors.c,
 * keras_steps_first.c, keras_operation.c.
 */
#ifndef CELLGATE_RUNTIME_FORMATS_KERAS_GRAPH_H
#define CELLGATE_RUNTIME_FORMATS_KERAS_GRAPH_H

#include "runtime/formats/keras.h"

/* A layer of a functional model, and the results of its calls so far. */
typedef struct cg_keras_entry {
    cg_keras_layer layer;
    char *path;
    cg_keras_list *calls;
    size_t call_count, call_room;
    int64_t first_call; /* what [layer, call, tensor] counts its calls from */
    size_t done;        /* of its inbound nodes */
} cg_keras_entry;

typedef struct cg_keras_graph {
    const cg_keras_layer *model; /* as a layer; at the top, a stand-in */
    bool top;
    const json_t *layers;
    size_t count;
    const char *base; /* of its layers' paths: "layers/" */
    json_t *path_counts;
    json_t *index;           /* name -> number of its layer */
    cg_keras_entry *entries; /* of a functional model */
} cg_keras_graph;

/* ---- keras_graph.c ------------------------------------------------------ */

/* Layer number `number` of the model; the caller frees *path, in every case. */
cellgate_status cg_keras_init_layer(cg_keras_graph *graph, size_t number,
                                    cg_keras_layer *layer, char **path,
                                    cellgate_error *error);
/* Runs the builder of a call whose inputs are set. All of the call's lists are
   the caller's to finish, in every case. */
cellgate_status cg_keras_run_call(cg_keras_call *call, cellgate_error *error);

/* `inputs` NULL: the model at the top, which makes its own. */
cellgate_status cg_keras_build_sequential(cg_keras_graph *graph,
                                          const cg_keras_list *inputs,
                                          cg_keras_list *outputs,
                                          cellgate_error *error);
cellgate_status cg_keras_build_functional(cg_keras_graph *graph,
                                          const cg_keras_list *inputs,
                                          cg_keras_list *outputs,
                                          cellgate_error *error);

/* ---- keras_inputs.c ----------------------------------------------------- */

/* The shape that a layer's configuration says it begins with; NULL without. */
const json_t *cg_keras_input_shape(const json_t *config);
/* A model input called after the layer; `config` is an InputLayer's, for its
   dtype, or NULL. */
cellgate_status cg_keras_add_top_input(const cg_keras_layer *layer,
                                       const json_t *shape,
                                       const json_t *config,
                                       cg_keras_tensor *tensor,
                                       cellgate_error *error);

/* ---- keras_tensors.c ---------------------------------------------------- */

/* A tensor in the file: output `tensor` of call `call` of a layer. */
typedef struct cg_keras_tensor_name {
    const char *layer;
    int64_t call, tensor;
    /* Of a __keras_tensor__: there, calls of every layer are counted from 0. */
    bool is_history;
} cg_keras_tensor_name;

typedef cellgate_status (*cg_keras_tensor_visitor)(
    void *context, const cg_keras_tensor_name *name, cellgate_error *error);

/* Whether the JSON is [layer, call, tensor, ...]. */
bool cg_keras_is_tensor_name(const json_t *json);
/* Keys of an object, in the order in which Keras takes them; the caller frees
   the list. NULL: no memory. */
const char **cg_keras_sorted_keys(const json_t *json);
/* Visits the tensors of a structure in the order in which Keras flattens it;
   stops at the first status that is not OK, and returns it. */
cellgate_status cg_keras_visit_tensors(const json_t *json,
                                       cg_keras_tensor_visitor visit,
                                       void *context, cellgate_error *error);
/* The same; for null, visits the name NULL. */
cellgate_status cg_keras_visit_nulls_too(const json_t *json,
                                         cg_keras_tensor_visitor visit,
                                         void *context, cellgate_error *error);

#endif
