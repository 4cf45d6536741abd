/* SPDX-License-Identifier: Apache-2.0 */
/* A request to generate, checked, in the form that the loop uses. */
#ifndef CELLGATE_RUNTIME_GENERATE_TASK_H
#define CELLGATE_RUNTIME_GENERATE_TASK_H

#include "runtime/generate/generator.h"

typedef struct cg_task {
    cellgate_generate_request request; /* defaults filled in */
    cellgate_input *inputs;            /* of the encoder, in this struct_size */
    int64_t batch;
    int64_t width;    /* sequences of a row at most */
    int64_t columns;  /* of `given` */
    int32_t *given;   /* [batch][columns]: start and prompt */
    int64_t *lengths; /* [batch], at least 1 each: how many of them count */
} cg_task;

/* The caller ends it with cg_task_finish(), also after an error. */
cellgate_status cg_task_init(cg_task *task, const cellgate_generator *generator,
                             const cellgate_generate_request *request,
                             cellgate_error *error);
void cg_task_finish(cg_task *task);

#endif
