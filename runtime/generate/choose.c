/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/generate/choose.h"

bool cg_choose_takes_ids(const cellgate_model *model, size_t input)
{
    const cg_value *value = &model->values[model->inputs[input].value];

    return value->dtype == CELLGATE_I32 && value->rank == 2;
}

void cg_choose_append(char *text, size_t size, const char *name)
{
    const size_t used = strlen(text);

    (void)snprintf(text + used, size - used, "%s'%s'", used > 0 ? ", " : "",
                   name);
}

/* ---- The output --------------------------------------------------------- */

static bool from_softmax(const cellgate_model *model, int32_t value)
{
    const int32_t producer = model->values[value].producer;

    return producer >= 0 && model->nodes[producer].kind == CG_SOFTMAX;
}

static cellgate_status no_scores(const cellgate_model *model,
                                 const bool *follows, cellgate_error *error)
{
    char names[256] = "";

    for (size_t i = 0; i < model->output_count; i++)
        if (follows[model->outputs[i]])
            cg_choose_append(names, sizeof names,
                             model->values[model->outputs[i]].name);
    if (names[0] == '\0')
        return cellgate_fail(error, CELLGATE_UNSUPPORTED,
                             "no output of the model depends on the ids that "
                             "are generated");
    return cellgate_fail(error, CELLGATE_INVALID,
                         "the outputs %s all depend on the ids that are "
                         "generated; name the output that scores the next id",
                         names);
}

/* The only output that follows from the ids, or the only one of those that
   comes out of a softmax. */
static cellgate_status find_scores(const cellgate_model *model,
                                   const bool *follows, int32_t *scores,
                                   cellgate_error *error)
{
    size_t count = 0, softmax_count = 0;
    int32_t any = CG_NO_VALUE, softmax = CG_NO_VALUE;

    for (size_t i = 0; i < model->output_count; i++) {
        const int32_t value = model->outputs[i];

        if (!follows[value])
            continue;
        if (value != any)
            count++;
        any = value;
        if (from_softmax(model, value) && value != softmax) {
            softmax = value;
            softmax_count++;
        }
    }
    if (count != 1 && softmax_count != 1)
        return no_scores(model, follows, error);
    *scores = count == 1 ? any : softmax;
    return CELLGATE_OK;
}

static cellgate_status named_scores(const cellgate_model *model,
                                    const char *name, int32_t *scores,
                                    cellgate_error *error)
{
    char names[256] = "";

    for (size_t i = 0; i < model->output_count; i++) {
        const cg_value *value = &model->values[model->outputs[i]];

        if (strcmp(value->name, name) == 0) {
            *scores = model->outputs[i];
            return CELLGATE_OK;
        }
        cg_choose_append(names, sizeof names, value->name);
    }
    return cellgate_fail(error, CELLGATE_NOT_FOUND,
                         "the model has no output '%s'; it has %s", name,
                         names);
}

/* ---- The input ---------------------------------------------------------- */

static cellgate_status no_input(const cellgate_model *model, const char *token,
                                cellgate_error *error)
{
    char names[256] = "";

    for (size_t i = 0; i < model->input_count; i++)
        cg_choose_append(names, sizeof names,
                         model->values[model->inputs[i].value].name);
    if (token == NULL)
        return cellgate_fail(error, CELLGATE_UNSUPPORTED,
                             "no input of the model takes ids, int32 of "
                             "(batch, steps): it has %s",
                             names);
    return cellgate_fail(error, CELLGATE_NOT_FOUND,
                         "the model has no input '%s' that takes ids, int32 "
                         "of (batch, steps); its inputs are %s",
                         token, names);
}

/* Tries one input; *reach is only filled, not replaced. */
static cellgate_status try_input(const cellgate_model *model, size_t token,
                                 const char *scores, bool *follows,
                                 cg_reach *reach, int32_t *value,
                                 cellgate_error *error)
{
    cellgate_status status;

    cg_causal_follow(model, token, follows);
    status = scores != NULL ? named_scores(model, scores, value, error)
                            : find_scores(model, follows, value, error);
    return status == CELLGATE_OK
               ? cg_causal_trace(model, token, *value, reach, error)
               : status;
}

static cellgate_status choose_among(const cellgate_model *model,
                                    const char *token, const char *scores,
                                    bool *follows, cg_choice *choice,
                                    cellgate_error *error)
{
    cellgate_error cause = CELLGATE_ERROR_INIT;
    cellgate_status status = CELLGATE_OK, last = CELLGATE_OK;
    size_t tried = 0, good = 0;
    char names[256] = "";

    for (size_t i = 0; i < model->input_count; i++) {
        const cg_value *value = &model->values[model->inputs[i].value];
        int32_t found;

        if (!cg_choose_takes_ids(model, i) ||
            (token != NULL && strcmp(token, value->name) != 0))
            continue;
        tried++;
        status =
            try_input(model, i, scores, follows, choice->reach, &found, &cause);
        if (status != CELLGATE_OK) {
            last = status;
            continue;
        }
        good++;
        choice->token = i;
        choice->scores = found;
        cg_choose_append(names, sizeof names, value->name);
    }
    if (tried == 0)
        return no_input(model, token, error);
    if (good > 1)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "each of the inputs %s could take the generated "
                             "ids; name the one that does",
                             names);
    if (good == 0)
        return cellgate_fail(error, last, "%s%s", cause.text,
                             tried > 1 ? " (nor can another input take the "
                                         "generated ids)"
                                       : "");
    return try_input(model, choice->token, scores, follows, choice->reach,
                     &choice->scores, error);
}

cellgate_status cg_choose(const cellgate_model *model, const char *token,
                          const char *scores, cg_choice *choice,
                          cellgate_error *error)
{
    bool *follows = malloc((model->value_count + 1) * sizeof *follows);
    cellgate_status status;

    choice->reach = malloc((model->value_count + 1) * sizeof *choice->reach);
    if (follows == NULL || choice->reach == NULL)
        status = cellgate_fail(error, CELLGATE_NO_MEMORY,
                               "no memory to look for the decoder");
    else
        status = choose_among(model, token, scores, follows, choice, error);
    free(follows);
    return status;
}
