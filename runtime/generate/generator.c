/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/generate/generator.h"
#include "runtime/given.h"

static cellgate_status read_options(const cellgate_generator_options *options,
                                    cellgate_generator_options *read,
                                    cellgate_error *error)
{
    memset(read, 0, sizeof *read);
    read->struct_size = sizeof *read;
    if (options == NULL)
        return CELLGATE_OK;
    if (!cg_given_known(options, CG_FIRST_ANY, sizeof *read))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "struct_size of the generator options is %zu, or "
                             "they have members that this libcellgate does not "
                             "know",
                             options->struct_size);
    cellgate_struct_copy(read, options);
    return CELLGATE_OK;
}

/* One file: split where it can be; two: paired. */
static cellgate_status make_parts(const cellgate_model *model,
                                  const cellgate_model *decoder,
                                  const cellgate_generator_options *options,
                                  cg_parts *parts, cellgate_error *error)
{
    const cellgate_model *const models[2] = { model, decoder };
    const cg_pairs pairs = { options->initial, options->initial_count,
                             options->carried, options->carried_count };

    for (size_t i = 0; i < 2; i++)
        for (size_t k = 0; models[i] != NULL && k < models[i]->input_count; k++)
            if (models[i]->inputs[k].steps_first)
                return cellgate_fail(
                    error, CELLGATE_UNSUPPORTED,
                    "input '%s' has its steps before its rows, for layers of "
                    "time_major=True; generating takes rows first: build the "
                    "model with time_major=False and the same weights",
                    models[i]->values[models[i]->inputs[k].value].name);
    if (decoder != NULL)
        return cg_pair(model, decoder, options->token, options->scores, &pairs,
                       parts, error);
    if (options->initial_count > 0)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "one model alone has no initial pairs: they go "
                             "from an encoder to a decoder");
    if (options->carried_count > 0)
        return cg_pair(NULL, model, options->token, options->scores, &pairs,
                       parts, error);
    return cg_split(model, options->token, options->scores, parts, error);
}

static cellgate_status
generator_init(cellgate_generator *generator, cellgate_runtime *runtime,
               const cellgate_model *model, const cellgate_model *decoder,
               const cellgate_generator_options *options, cellgate_error *error)
{
    cg_parts *parts = &generator->parts;
    cellgate_status status = make_parts(model, decoder, options, parts, error);

    if (status == CELLGATE_OK && parts->encoder != NULL)
        status =
            cellgate_session_create(runtime, parts->encoder, options->session,
                                    &generator->encoder, error);
    if (status == CELLGATE_OK)
        status = cellgate_session_create(runtime, parts->step, options->session,
                                         &generator->step, error);
    return status;
}

cellgate_status cellgate_generator_create(
    cellgate_runtime *runtime, const cellgate_model *model,
    const cellgate_model *decoder, const cellgate_generator_options *options,
    cellgate_generator **generator, cellgate_error *error)
{
    cellgate_generator_options read;
    cellgate_generator *made;
    cellgate_status status;

    if (runtime == NULL || model == NULL || generator == NULL)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "a generator needs a runtime, a model and a place "
                             "for the result");
    status = read_options(options, &read, error);
    if (status != CELLGATE_OK)
        return status;
    made = calloc(1, sizeof *made);
    if (made == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for a generator");
    status = generator_init(made, runtime, model, decoder, &read, error);
    if (status != CELLGATE_OK) {
        cellgate_generator_destroy(made);
        return status;
    }
    *generator = made;
    return CELLGATE_OK;
}

void cellgate_generator_destroy(cellgate_generator *generator)
{
    if (generator == NULL)
        return;
    cellgate_session_destroy(generator->encoder);
    cellgate_session_destroy(generator->step);
    cg_parts_finish(&generator->parts);
    free(generator);
}

size_t cellgate_generator_input_count(const cellgate_generator *generator)
{
    const cellgate_model *encoder = generator->parts.encoder;

    return encoder != NULL ? cellgate_model_input_count(encoder) : 0;
}

cellgate_status
cellgate_generator_input_get(const cellgate_generator *generator, size_t index,
                             cellgate_value_info *info)
{
    if (generator->parts.encoder == NULL)
        return CELLGATE_END;
    return cellgate_model_input_get(generator->parts.encoder, index, info);
}

cellgate_status cellgate_generator_describe(const cellgate_generator *generator,
                                            cellgate_generator_info *info)
{
    const cg_parts *parts = &generator->parts;
    const cellgate_model *step = parts->step;
    cellgate_generator_info filled = { .struct_size = sizeof filled };

    if (!cg_given_fillable(info))
        return CELLGATE_INVALID;
    filled.token = step->values[step->inputs[parts->token].value].name;
    filled.scores = step->values[step->outputs[parts->scores]].name;
    filled.words = parts->words;
    filled.probabilities = parts->probabilities;
    for (size_t i = 0; i < step->input_count; i++)
        filled.states +=
            i != parts->token && parts->wires[i].carried != CG_NONE;
    cellgate_struct_copy(info, &filled);
    return CELLGATE_OK;
}

const cellgate_session *
cellgate_generator_session(const cellgate_generator *generator, int32_t part)
{
    return part == 0 ? generator->encoder : generator->step;
}
