/* SPDX-License-Identifier: Apache-2.0 */
/* An encoder and a decoder that come as two models. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/generate/choose.h"
#include "runtime/generate/part_model.h"
#include "runtime/generate/parts.h"

static const cg_value *input_value(const cellgate_model *model, size_t input)
{
    return &model->values[model->inputs[input].value];
}

static const cg_value *output_value(const cellgate_model *model, size_t output)
{
    return &model->values[model->outputs[output]];
}

/* ---- The ids and the scores --------------------------------------------- */

static cellgate_status find_token(const cellgate_model *decoder,
                                  const char *name, size_t *token,
                                  cellgate_error *error)
{
    char names[256] = "";
    size_t found = 0;

    for (size_t i = 0; i < decoder->input_count; i++) {
        const cg_value *value = input_value(decoder, i);

        if (!cg_choose_takes_ids(decoder, i) ||
            (value->shape[1] != CG_UNKNOWN && value->shape[1] != 1) ||
            (name != NULL && strcmp(name, value->name) != 0))
            continue;
        *token = i;
        found++;
        cg_choose_append(names, sizeof names, value->name);
    }
    if (found == 1)
        return CELLGATE_OK;
    if (found > 1)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "each of the decoder's inputs %s could take the "
                             "generated ids; name the one that does",
                             names);
    return cellgate_fail(error, CELLGATE_NOT_FOUND,
                         "the decoder has no input%s%s%s that takes one step's "
                         "ids, int32 of (batch, 1)",
                         name != NULL ? " '" : "", name != NULL ? name : "",
                         name != NULL ? "'" : "");
}

static bool is_softmax(const cellgate_model *model, size_t output)
{
    const int32_t producer = output_value(model, output)->producer;

    return producer >= 0 && model->nodes[producer].kind == CG_SOFTMAX;
}

/* How well an output looks like scores: 2 from a softmax, 1 with a time axis.
 */
static int score_rank(const cellgate_model *decoder, size_t output)
{
    if (is_softmax(decoder, output))
        return 2;
    return output_value(decoder, output)->rank == 3 ? 1 : 0;
}

static cellgate_status find_scores(const cellgate_model *decoder,
                                   const char *name, size_t *scores,
                                   cellgate_error *error)
{
    char names[256] = "";
    size_t found = 0;
    int best = 0;

    for (size_t o = 0; o < decoder->output_count; o++) {
        const int rank = score_rank(decoder, o);

        cg_choose_append(names, sizeof names, output_value(decoder, o)->name);
        if (name != NULL) {
            if (strcmp(name, output_value(decoder, o)->name) != 0)
                continue;
        } else if (rank < best) {
            continue;
        } else if (rank > best) {
            found = 0;
        }
        best = rank;
        *scores = o;
        found++;
    }
    if (found == 1)
        return CELLGATE_OK;
    if (name != NULL && found == 0)
        return cellgate_fail(error, CELLGATE_NOT_FOUND,
                             "the decoder has no output '%s'; it has %s", name,
                             names);
    return cellgate_fail(error, CELLGATE_INVALID,
                         "of the decoder's outputs %s, name the one that "
                         "scores the next id",
                         names);
}

/* ---- Pairs -------------------------------------------------------------- */

static bool shapes_agree(const cg_value *from, const cg_value *to)
{
    if (from->rank != to->rank || from->dtype != to->dtype)
        return false;
    for (int32_t axis = 1; axis < to->rank; axis++)
        if (from->shape[axis] != to->shape[axis] &&
            from->shape[axis] != CG_UNKNOWN && to->shape[axis] != CG_UNKNOWN)
            return false;
    return true;
}

typedef struct cg_pairing {
    const cellgate_model *from; /* whose outputs */
    size_t left_out;            /* one of them that is no state, or CG_NONE */
    const cellgate_model *decoder;
    size_t token;
    cg_wire *wires;
    bool carried;       /* which member of the wires is set */
    const char *who;    /* "encoder" */
    const char *option; /* that names pairs */
} cg_pairing;

static size_t *end_of(const cg_pairing *pairing, size_t input)
{
    cg_wire *wire = &pairing->wires[input];

    return pairing->carried ? &wire->carried : &wire->from;
}

static cellgate_status connect(const cg_pairing *pairing, size_t output,
                               size_t input, cellgate_error *error)
{
    const cg_value *from = output_value(pairing->from, output);
    const cg_value *to = input_value(pairing->decoder, input);

    if (*end_of(pairing, input) != CG_NONE)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "two outputs of the %s go to input '%s'",
                             pairing->who, to->name);
    if (!shapes_agree(from, to))
        return cellgate_fail(error, CELLGATE_BAD_SHAPE,
                             "output '%s' of the %s does not fit input '%s' of "
                             "the decoder: shape or kind of number differ",
                             from->name, pairing->who, to->name);
    *end_of(pairing, input) = output;
    return CELLGATE_OK;
}

static size_t find_output(const cg_pairing *pairing, const char *name,
                          size_t length)
{
    for (size_t o = 0; o < pairing->from->output_count; o++) {
        const char *own = output_value(pairing->from, o)->name;

        if (strlen(own) == length && strncmp(own, name, length) == 0)
            return o;
    }
    return CG_NONE;
}

static size_t find_input(const cg_pairing *pairing, const char *name)
{
    for (size_t i = 0; i < pairing->decoder->input_count; i++)
        if (i != pairing->token &&
            strcmp(input_value(pairing->decoder, i)->name, name) == 0)
            return i;
    return CG_NONE;
}

static cellgate_status connect_named(const cg_pairing *pairing,
                                     const char *text, cellgate_error *error)
{
    const char *equals = strchr(text, '=');
    const size_t output =
        equals == NULL ? CG_NONE
                       : find_output(pairing, text, (size_t)(equals - text));
    const size_t input =
        equals == NULL ? CG_NONE : find_input(pairing, equals + 1);

    if (output == CG_NONE || input == CG_NONE)
        return cellgate_fail(error, CELLGATE_NOT_FOUND,
                             "'%s' is not OUTPUT=INPUT, an output of the %s "
                             "and an input of the decoder",
                             text, pairing->who);
    return connect(pairing, output, input, error);
}

/* The next output, or input but the ids, of that rank from `at` on. */
static size_t next_output(const cg_pairing *pairing, size_t at, int32_t rank)
{
    for (; at < pairing->from->output_count; at++)
        if (at != pairing->left_out &&
            output_value(pairing->from, at)->rank == rank)
            return at;
    return CG_NONE;
}

static size_t next_input(const cg_pairing *pairing, size_t at, int32_t rank)
{
    for (; at < pairing->decoder->input_count; at++)
        if (at != pairing->token &&
            input_value(pairing->decoder, at)->rank == rank)
            return at;
    return CG_NONE;
}

/* Outputs of one rank go to the inputs of that rank in order, as many of one
   as of the other. None at all will do where something is carried: inputs
   that stay what they are. */
static cellgate_status connect_rank(const cg_pairing *pairing, int32_t rank,
                                    cellgate_error *error)
{
    size_t output = next_output(pairing, 0, rank);
    size_t input = next_input(pairing, 0, rank);
    cellgate_status status = CELLGATE_OK;

    if (pairing->carried && output == CG_NONE)
        return CELLGATE_OK;
    while (status == CELLGATE_OK && output != CG_NONE && input != CG_NONE) {
        status = connect(pairing, output, input, error);
        output = next_output(pairing, output + 1, rank);
        input = next_input(pairing, input + 1, rank);
    }
    if (status == CELLGATE_OK && output != input)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "which outputs of the %s go to which inputs of "
                             "the decoder does not follow from their number "
                             "and shapes ('%s' is left over); name the pairs "
                             "(%s OUTPUT=INPUT)",
                             pairing->who,
                             output != CG_NONE
                                 ? output_value(pairing->from, output)->name
                                 : input_value(pairing->decoder, input)->name,
                             pairing->option);
    return status;
}

static cellgate_status connect_all(const cg_pairing *pairing,
                                   const char *const *names, size_t count,
                                   cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t at = 0; status == CELLGATE_OK && at < count; at++)
        status = connect_named(pairing, names[at], error);
    for (int32_t rank = 1;
         count == 0 && status == CELLGATE_OK && rank <= CELLGATE_MAX_RANK;
         rank++)
        status = connect_rank(pairing, rank, error);
    return status;
}

/* ---- The encoder -------------------------------------------------------- */

/* Without an encoder's file the request brings what the decoder begins with:
   a model that hands it on, and converts it as any input is. */
static cellgate_status pass_on(const cellgate_model *decoder, size_t token,
                               cellgate_model **encoder, cellgate_error *error)
{
    cg_part_model part;
    cellgate_status status = cg_part_begin(&part, decoder, error);

    for (size_t i = 0; status == CELLGATE_OK && i < decoder->input_count; i++) {
        if (i == token)
            continue;
        status = cg_part_input(&part, decoder->inputs[i].value, CG_NO_VALUE,
                               NULL, error);
        if (status == CELLGATE_OK)
            status = cg_part_output(&part, decoder->inputs[i].value, error);
    }
    if (status == CELLGATE_OK)
        status = cg_model_finish(part.model, error);
    if (status == CELLGATE_OK) {
        *encoder = part.model;
        part.model = NULL;
    }
    cg_part_end(&part);
    return status;
}

static cellgate_status make_wires(cg_parts *parts, const cg_pairs *pairs,
                                  bool given, cellgate_error *error)
{
    cg_pairing initial = { parts->encoder, CG_NONE, parts->step, parts->token,
                           parts->wires,   false,   "encoder",   "initial" };
    cg_pairing carried = { parts->step,  parts->scores, parts->step,
                           parts->token, parts->wires,  true,
                           "decoder",    "carried" };
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; i < parts->step->input_count; i++)
        parts->wires[i] = (cg_wire){ CG_NONE, CG_NONE, CG_NONE, CG_NONE };
    if (parts->encoder != NULL)
        status = connect_all(&initial, given ? pairs->initial : NULL,
                             given ? pairs->initial_count : 0, error);
    if (status == CELLGATE_OK)
        status =
            connect_all(&carried, pairs->carried, pairs->carried_count, error);
    for (size_t i = 0; status == CELLGATE_OK && i < parts->step->input_count;
         i++)
        if (i != parts->token && parts->wires[i].from == CG_NONE &&
            parts->wires[i].carried == CG_NONE)
            return cellgate_fail(error, CELLGATE_INVALID,
                                 "nothing goes to input '%s' of the decoder; "
                                 "name its pair",
                                 input_value(parts->step, i)->name);
    return status;
}

cellgate_status cg_pair(const cellgate_model *encoder,
                        const cellgate_model *decoder, const char *token,
                        const char *scores, const cg_pairs *pairs,
                        cg_parts *parts, cellgate_error *error)
{
    cellgate_status status;

    memset(parts, 0, sizeof *parts);
    parts->step = cg_model_reference(decoder);
    parts->wires = calloc(decoder->input_count + 1, sizeof *parts->wires);
    status = parts->wires != NULL
                 ? find_token(decoder, token, &parts->token, error)
                 : cellgate_fail(error, CELLGATE_NO_MEMORY,
                                 "no memory to pair encoder and decoder");
    if (status == CELLGATE_OK)
        status = find_scores(decoder, scores, &parts->scores, error);
    if (status == CELLGATE_OK && encoder != NULL)
        parts->encoder = cg_model_reference(encoder);
    else if (status == CELLGATE_OK && decoder->input_count > 1)
        status = pass_on(decoder, parts->token, &parts->encoder, error);
    if (status == CELLGATE_OK)
        status = make_wires(parts, pairs, encoder != NULL, error);
    if (status == CELLGATE_OK)
        status = cg_parts_describe(parts, error);
    if (status != CELLGATE_OK)
        cg_parts_finish(parts);
    return status;
}
