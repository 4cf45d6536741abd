/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structure of a segment as text: all that its cost depends on besides the
 * shape, and nothing else, so that models with equal parts share what was
 * measured. Floats are written as their bits: no locale plays a part.
 */
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>

#include "runtime/session/segment.h"

static uint32_t bits(float number)
{
    uint32_t word;

    memcpy(&word, &number, sizeof word);
    return word;
}

static void put_activation(FILE *to, const cellgate_activation *of)
{
    fprintf(to, " a%d", (int)of->kind);
    if (of->alpha != 0 || of->beta != 0)
        fprintf(to, ":%08" PRIx32 ":%08" PRIx32, bits(of->alpha),
                bits(of->beta));
}

static void put_lstm(FILE *to, const cellgate_lstm *of)
{
    fprintf(to, "lstm %" PRId64 " %" PRId64, of->input_size, of->hidden_size);
    if (of->projection_size != 0)
        fprintf(to, " p%" PRId64, of->projection_size);
    fprintf(to, " d%d", (int)of->directions);
    fputs(of->reverse ? " reverse" : "", to);
    fputs(of->has_bias ? "" : " nobias", to);
    fputs(of->has_peepholes ? " peepholes" : "", to);
    fputs(of->coupled ? " coupled" : "", to);
    if (of->clip != 0)
        fprintf(to, " clip:%08" PRIx32, bits(of->clip));
    for (int32_t direction = 0; direction < of->directions; direction++)
        for (int at = 0; at < 3; at++)
            put_activation(to, &of->activations[direction][at]);
    fprintf(to, " o%u", (unsigned)of->outputs);
}

static void put_op(FILE *to, const cg_any_op *op)
{
    switch (op->head.kind) {
    case CELLGATE_OP_LSTM:
        put_lstm(to, &op->lstm);
        break;
    case CELLGATE_OP_DENSE:
        fprintf(to, "dense %" PRId64 " %" PRId64 "%s", op->dense.input_size,
                op->dense.units, op->dense.has_bias ? "" : " nobias");
        put_activation(to, &op->dense.activation);
        break;
    case CELLGATE_OP_EMBEDDING:
        fprintf(to, "embedding %" PRId64 " %" PRId64, op->embedding.vocabulary,
                op->embedding.size);
        break;
    case CELLGATE_OP_ACTIVATION:
        fprintf(to, "activation %" PRId64, op->activation.size);
        put_activation(to, &op->activation.activation);
        break;
    default: /* CELLGATE_OP_SOFTMAX */
        fprintf(to, "softmax %" PRId64, op->softmax.size);
        break;
    }
}

char *cg_segment_structure(const cg_segment *segment)
{
    char *text = NULL;
    size_t size;
    FILE *to = open_memstream(&text, &size);

    if (to == NULL)
        return NULL;
    fputs(segment->rows ? "rows; " : "", to);
    for (size_t at = 0; at < segment->node_count; at++) {
        fputs(at > 0 ? "; " : "", to);
        put_op(to, &segment->ops[at]);
    }
    if (fclose(to) != 0) {
        free(text);
        return NULL;
    }
    return text;
}
