/* SPDX-License-Identifier: Apache-2.0 */
/* Private to keras_by_order.c, keras_order_match.c and keras_order_data.c. */
#ifndef CELLGATE_RUNTIME_FORMATS_KERAS_ORDER_H
#define CELLGATE_RUNTIME_FORMATS_KERAS_ORDER_H

#include "runtime/formats/keras_source.h"

typedef struct cg_keras_names {
    const char **items; /* the array is malloc'ed, the texts are the h5's */
    size_t count;
} cg_keras_names;

/* A group of the file, with at least one weight. */
typedef struct cg_keras_group {
    char *path; /* "model_weights/lstm" */
    cg_keras_names names;
} cg_keras_group;

/* Where the weights that a layer asks for in one of its groups lie. */
typedef struct cg_keras_spot {
    size_t group;   /* of the file */
    size_t trained; /* so many begin at `first`, the others at `rest` */
    size_t first, rest;
    /* Keras 1 gave each gate its kernel, recurrent kernel and bias. */
    bool gate_by_gate;
    bool placed;
    size_t seen; /* group of the file that is being matched, plus 1 */
} cg_keras_spot;

typedef struct cg_keras_order {
    cg_keras_source source;
    cg_h5 *h5;
    const char *root;
    cg_keras_survey survey;
    cg_keras_spot *spots; /* one for each item of the survey */
    cg_keras_group *groups;
    size_t group_count;
} cg_keras_order;

/* The attribute's texts, in one part or in several; none if it is absent.
   names->items is the caller's to free, in every case. */
cellgate_status cg_keras_read_names(cg_h5 *h5, const char *path,
                                    const char *attribute,
                                    cg_keras_names *names,
                                    cellgate_error *error);
/* Path of a weight of a group; the caller frees it. */
cellgate_status cg_keras_dataset(const cg_keras_order *order, size_t group,
                                 size_t number, char **path,
                                 cellgate_error *error);
cellgate_status cg_keras_dataset_shape(const cg_keras_order *order,
                                       size_t group, size_t number,
                                       cg_h5_extents *shape,
                                       cellgate_error *error);

/* ---- keras_order_match.c: layers to groups ------------------------------ */

/* Fills order->spots; survey and groups are there. */
cellgate_status cg_keras_match_groups(cg_keras_order *order,
                                      const cg_keras_file *file,
                                      cellgate_error *error);

/* ---- keras_order_data.c: datasets to weights ---------------------------- */

/* Gates of a kind whose weights Keras stored in several forms; 0: of another */
size_t cg_keras_gates(cg_kind kind);
/* Checks the datasets that make the weight. */
cellgate_status cg_keras_order_check(const cg_keras_order *order,
                                     const cg_keras_spot *spot,
                                     const cg_keras_wanted *wanted,
                                     const cg_weight *weight,
                                     cellgate_error *error);
/* Fills `data` from checked datasets. */
cellgate_status cg_keras_order_read(const cg_keras_order *order,
                                    const cg_keras_spot *spot,
                                    const cg_keras_wanted *wanted,
                                    const cg_weight *weight, float *data,
                                    cellgate_error *error);

#endif
