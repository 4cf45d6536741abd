/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the weights of a Keras model come from: builders ask for them by layer
 * (cg_keras_load()), and do not know which of these answers.
 *
 *   keras_by_path.c    datasets named by class, "layers/lstm/cell/vars/0", as
 *                      in .keras and .weights.h5
 *   keras_by_order.c   a group a layer, in the order of the layers, each with a
 *                      list of its datasets, as in .h5
 *   keras_survey.c     no weights at all: what the layers ask for is written
 *                      down, which keras_by_order.c has to know in advance
 */
#ifndef CELLGATE_RUNTIME_FORMATS_KERAS_SOURCE_H
#define CELLGATE_RUNTIME_FORMATS_KERAS_SOURCE_H

#include "runtime/formats/keras.h"

/* A weight that a layer asks for. Strings are the caller's. */
typedef struct cg_keras_wanted {
    const cg_keras_layer *layer;
    const char
        *group; /* "layers/lstm/cell": of the weights numbered by index */
    size_t index;
    cg_kind kind; /* of the node that it is for */
} cg_keras_wanted;

struct cg_keras_source {
    const char *name; /* of the file, for messages */
    /*
     * Sets weight->data to memory of the model (cg_keras_new_data()), filled;
     * name, rank and shape are set. Sizes are checked with the file before. One
     * of rank -1 is counted and not read.
     */
    cellgate_status (*load)(cg_keras_source *source,
                            const cg_keras_wanted *wanted, cg_weight *weight,
                            cellgate_error *error);
    /* All that the layer asks for of the group has been loaded: fails if the
       file has a weight of that index too. */
    cellgate_status (*check_end)(cg_keras_source *source,
                                 const cg_keras_wanted *end,
                                 cellgate_error *error);
    void (*destroy)(cg_keras_source *source);
};

/* Zeroed memory for the weight's elements, that lives as the model does. */
cellgate_status cg_keras_new_data(const cg_keras_wanted *wanted,
                                  const cg_weight *weight, float **data,
                                  cellgate_error *error);
size_t cg_keras_elements(const cg_weight *weight);

/* `h5` stays the caller's, open until the source is destroyed. */
cellgate_status cg_keras_by_path(cg_h5 *h5, const cg_keras_file *file,
                                 cg_keras_source **source,
                                 cellgate_error *error);
/* `root` is the group that the layers' groups are in: "model_weights", or "".
 */
cellgate_status cg_keras_by_order(cg_h5 *h5, const char *root,
                                  const cg_keras_file *file,
                                  cg_keras_source **source,
                                  cellgate_error *error);

/* ---- keras_survey.c ---------------------------------------------------- */

/* The weights that a layer asks for in one group. */
typedef struct cg_keras_asked {
    char *group;
    size_t number; /* in the order of asking */
    size_t count;
    cg_kind kind;
    int64_t last; /* extent of the first one's last axis */
} cg_keras_asked;

/* What all layers of a model ask for, ordered by the bytes of `group`. */
typedef struct cg_keras_survey {
    cg_keras_asked *items;
    size_t count;
} cg_keras_survey;

/*
 * Builds the model of the file once without weights. BAD_FILE: it asks for more
 * numbers than a file of that size can hold.
 */
cellgate_status cg_keras_survey_model(const cg_keras_file *file,
                                      cg_keras_survey *survey,
                                      cellgate_error *error);
void cg_keras_survey_finish(cg_keras_survey *survey);

/* Number of the first item whose group is not before `text`. */
size_t cg_keras_first_asked(const cg_keras_survey *survey, const char *text);
/* NULL: no layer asks for weights in that group. */
const cg_keras_asked *cg_keras_find_asked(const cg_keras_survey *survey,
                                          const char *group);

#endif
