/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a model owns: every block of memory that it and its weights lie in, the
 * mappings, the number of its owners. Private to model/.
 */
#ifndef CELLGATE_RUNTIME_MODEL_STORE_H
#define CELLGATE_RUNTIME_MODEL_STORE_H

#include <stdatomic.h>

#include "runtime/model/model.h"

#define CG_ALIGNMENT 64

/* A block is one allocation: this header, then the memory handed out. */
typedef struct cg_block {
    _Alignas(CG_ALIGNMENT) struct cg_block *next;
} cg_block;

typedef struct cg_mapping {
    struct cg_mapping *next;
    void *address;
    size_t size;
} cg_mapping;

typedef struct cg_model_store {
    atomic_size_t owners;
    cg_block *blocks;
    cg_mapping *mappings;   /* themselves in blocks */
    cellgate_model *shared; /* whose weights are in use here, or NULL */
    /* How many entries the growing arrays of the model have room for. */
    size_t value_room, node_room, input_room, output_room, order_room;
    size_t name_room;
} cg_model_store;

/* A copy that lives as the model does; NULL if there is no memory. */
char *cg_model_text(cellgate_model *model, const char *text);

#endif
