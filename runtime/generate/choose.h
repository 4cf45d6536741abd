/* SPDX-License-Identifier: Apache-2.0 */
/* Which input of a model takes the generated ids, and which output scores. */
#ifndef CELLGATE_RUNTIME_GENERATE_CHOOSE_H
#define CELLGATE_RUNTIME_GENERATE_CHOOSE_H

#include "runtime/generate/causal.h"

typedef struct cg_choice {
    size_t token;    /* input */
    int32_t scores;  /* value */
    cg_reach *reach; /* [value_count], of cg_causal_trace(); to be freed */
} cg_choice;

/*
 * The input and the output of these names, or, for NULL, the only ones with
 * which a step at a time computes the model. Errors as cg_split()'s.
 */
cellgate_status cg_choose(const cellgate_model *model, const char *token,
                          const char *scores, cg_choice *choice,
                          cellgate_error *error);

/* Whether an input can take ids: int32 [batch][steps]. */
bool cg_choose_takes_ids(const cellgate_model *model, size_t input);
/* Appends a name in quotes to a list; what does not fit is left out. */
void cg_choose_append(char *text, size_t size, const char *name);

#endif
