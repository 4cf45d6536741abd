/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cellgate/generate.h: the loop of a decoder that feeds itself. A part of
 * cellgate/cellgate.h, which includes it.
 */
#ifndef CELLGATE_GENERATE_H
#define CELLGATE_GENERATE_H

#include "cellgate/cellgate.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A decoder that feeds itself: it reads an id (of a word, a letter, ...),
 * scores every id that may come next, one is chosen, and that is what it reads
 * next. Three kinds of model can be used.
 *
 *   An encoder-decoder as it was trained: the inputs are the encoder's and the
 *   decoder's, the latter the text so far. It is split: what does not depend
 *   on the decoder's input runs once a request; the rest runs a step at a time,
 *   with the states of its LSTMs carried. Each layer of that rest must be one
 *   of which a step needs only the steps before it, through such a state;
 *   otherwise the model is UNSUPPORTED, and the text names the layer and why.
 *
 *   A language model: one input, ids [batch][steps], and scores for each step
 *   or for the last one. The same, without an encoder.
 *
 *   Where the file of such a model fixes the steps, Input((40,)), sequences end
 *   there: a request that would read more ids is INVALID, and a model that then
 *   scores what comes behind the last step alone is UNSUPPORTED, unless it masks
 *   padding: it was made for windows that slide, which nothing here does. Layers
 *   that are stateful carry their state on, and have no such end.
 *
 *   An encoder and a decoder as two models: the decoder's inputs are one step's
 *   ids and its states, its outputs scores and new states.
 *
 * Scores are probabilities where they come out of a softmax, otherwise they are
 * logits, whose softmax is taken.
 */
typedef struct cellgate_generator_options {
    size_t struct_size;
    const cellgate_session_options *session; /* NULL: the defaults */
    const char *token;  /* the input that takes the generated ids; NULL: the
                           only one that will do */
    const char *scores; /* the output that scores the next id; likewise */
    /*
     * For two models, pairs "OUTPUT=INPUT". `initial`: which output of the
     * encoder an input of the decoder begins with; `carried`: which output of
     * the decoder is its input at the next step (an input that is in no such
     * pair keeps what it began with). Without pairs they follow from order:
     * of the outputs and inputs with the same number of axes the first goes to
     * the first. INVALID where the numbers of these differ.
     * `carried` with one model alone: it is such a decoder, and the request
     * brings what its other inputs begin with.
     */
    const char *const *initial;
    size_t initial_count;
    const char *const *carried;
    size_t carried_count;
} cellgate_generator_options;

/*
 * Splits or pairs, and prepares a session of each part. `decoder` is NULL for
 * one model. The generator keeps the runtime's devices and the models alive.
 * Errors are cellgate_session_create()'s, UNSUPPORTED as above, NOT_FOUND and
 * INVALID where names or pairs are wrong or missing, BAD_SHAPE where a pair or
 * the scores do not fit. The caller destroys it.
 */
CELLGATE_API cellgate_status cellgate_generator_create(
    cellgate_runtime *runtime, const cellgate_model *model,
    const cellgate_model *decoder, const cellgate_generator_options *options,
    cellgate_generator **generator, cellgate_error *error);
CELLGATE_API void cellgate_generator_destroy(cellgate_generator *generator);

/* What was found out. Strings live as the generator does. */
typedef struct cellgate_generator_info {
    size_t struct_size;
    const char *token;
    const char *scores;
    int64_t words;         /* ids that have a score: 0 to words - 1 */
    int32_t probabilities; /* 0: the scores are logits */
    uint32_t states;       /* carried from step to step */
} cellgate_generator_info;

/* `info->struct_size` must be set. */
CELLGATE_API cellgate_status cellgate_generator_describe(
    const cellgate_generator *generator, cellgate_generator_info *info);
/* The inputs that a request brings: those of the encoder, in order. */
CELLGATE_API size_t
cellgate_generator_input_count(const cellgate_generator *generator);
CELLGATE_API cellgate_status
cellgate_generator_input_get(const cellgate_generator *generator, size_t index,
                             cellgate_value_info *info);
/* The session of part 0, the encoder (NULL: there is none), or 1, the step:
   to look at their segments. It is the generator's. */
CELLGATE_API const cellgate_session *
cellgate_generator_session(const cellgate_generator *generator, int32_t part);

typedef enum cellgate_generate_mode {
    CELLGATE_GREEDY = 0, /* the most probable id; of equal ones the lowest */
    CELLGATE_BEAM = 1,   /* the most probable sequences, by beam search */
    CELLGATE_SAMPLE = 2  /* ids drawn at random */
} cellgate_generate_mode;

/*
 * One request. The application owns everything that it points to. A row's
 * results are the same whatever other rows there are.
 */
typedef struct cellgate_generate_request {
    size_t struct_size;
    const cellgate_input *inputs; /* as cellgate_generator_input_get() says */
    size_t input_count;
    /* What the decoder reads first, after the start id: ids [batch][steps] of
       any type, with lengths (a mask is INVALID). NULL: nothing. */
    const cellgate_input *prompt;
    int64_t batch; /* rows, where neither inputs nor prompt say; 0: 1 */
    int32_t mode;  /* a cellgate_generate_mode */
    int32_t start; /* the id that is read first, or -1: there is none, and each
                      row has a prompt */
    int32_t stop;  /* the id that ends a sequence, or -1: none does */
    int32_t reserved;
    int64_t max_length; /* ids of a result, at least 1; without start, prompt
                           and stop */
    /*
     * Results of a row; 0: 1. Greedy has one. Beam search gives that many of
     * the beam, best first, or fewer where no more are possible. Sampling
     * draws each on its own, in this order.
     */
    int64_t results;
    /*
     * Beam search keeps the beam_width most probable unfinished sequences of a
     * row, and the beam_width best finished ones. Those are ranked by the sum
     * of log probabilities divided by (ids, stop included) ^ length_penalty;
     * 0: the sum itself. Not negative.
     */
    int64_t beam_width; /* 0: as many as results */
    double length_penalty;
    /*
     * Sampling: probabilities go with exp(log p / temperature), among the
     * top_k most probable ids (0: all). Temperature 0 is its limit, greedy.
     */
    double temperature;
    int64_t top_k;
    /*
     * Number n of result r of a row is drawn with output n of SplitMix64 whose
     * state begins at seed ^ mix(r), mix being its output function: the same on
     * every machine, and for every row. `seeds`, unless NULL, has a seed for
     * each row, [batch], used in place of `seed`.
     */
    uint64_t seed;
    const uint64_t *seeds;
} cellgate_generate_request;

/*
 * Generates until each row's results have come to the stop id or have
 * max_length ids. Rows that have stopped leave the batch. The caller destroys
 * the generation. The report, which may be NULL, adds up the encoder and all
 * steps; its device, variant and reason are those of the part that took
 * longer, its segments those of the encoder and of one step. BAD_SHAPE,
 * OUT_OF_RANGE: the text names the input or the id, and the row and step;
 * OUT_OF_RANGE also for scores that are NaN. Others as cellgate_run()'s.
 */
CELLGATE_API cellgate_status cellgate_generate(
    cellgate_generator *generator, const cellgate_generate_request *request,
    cellgate_generation **generation, cellgate_report *report,
    cellgate_error *error);
CELLGATE_API void cellgate_generation_destroy(cellgate_generation *generation);

/* One result. */
typedef struct cellgate_generated {
    size_t struct_size;
    const int32_t *ids; /* [length]; they live as the generation does */
    int64_t length;
    double score; /* sum of the natural logarithms of the ids' probabilities,
                     the stop id's included; sampling: of those before the
                     temperature */
    double value; /* beam search: what results are ranked by; else the score */
    int32_t stopped; /* 0: it ended at max_length */
} cellgate_generated;

CELLGATE_API int64_t
cellgate_generation_rows(const cellgate_generation *generation);
/* Runs of the step. */
CELLGATE_API int64_t
cellgate_generation_steps(const cellgate_generation *generation);
/* `generated->struct_size` must be set. END past a row's last result. */
CELLGATE_API cellgate_status
cellgate_generation_get(const cellgate_generation *generation, int64_t row,
                        int64_t result, cellgate_generated *generated);

#ifdef __cplusplus
}
#endif

#endif /* CELLGATE_GENERATE_H */
