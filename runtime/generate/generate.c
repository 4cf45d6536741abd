/* SPDX-License-Identifier: Apache-2.0 */
/* cellgate_generate(): the loop. */
#include "config.h"

#include <stdlib.h>

#include "runtime/generate/beam.h"
#include "runtime/generate/feed.h"
#include "runtime/generate/scores.h"
#include "runtime/generate/task.h"

/* A row of a step: a sequence that is still going. */
typedef struct cg_place {
    int64_t row;    /* of the request */
    int64_t member; /* number of a result, or of a live hypothesis */
} cg_place;

typedef struct cg_loop {
    cellgate_generator *generator;
    const cg_task *task;
    cellgate_generation *generation;
    cg_feed feed;
    cg_beam *beams; /* [batch]; NULL: no beam search */
    int64_t capacity;
    cg_place *places, *next; /* [capacity], a row's together, in order */
    int64_t *rows, *parents; /* [capacity], of `next` */
    int64_t count, next_count;
    int64_t step;
    double *log, *weights;          /* [words] */
    cellgate_report encoder, steps; /* what they took */
} cg_loop;

/* ---- Reports ------------------------------------------------------------ */

static void add_report(cellgate_report *sum, const cellgate_report *one)
{
    cellgate_report kept = *sum;

    *sum = *one;
    sum->seconds += kept.seconds;
    sum->device_seconds += kept.device_seconds;
    sum->host_seconds += kept.host_seconds;
    sum->wait_seconds += kept.wait_seconds;
    sum->upload_seconds += kept.upload_seconds;
    sum->compute_seconds += kept.compute_seconds;
    sum->download_seconds += kept.download_seconds;
}

static void fill_report(const cg_loop *loop, cellgate_report *report)
{
    const bool encoder = loop->encoder.seconds > loop->steps.seconds;
    const cellgate_report *longer = encoder ? &loop->encoder : &loop->steps;
    cellgate_report filled = encoder ? loop->steps : loop->encoder;

    add_report(&filled, longer);
    filled.struct_size = sizeof filled;
    filled.segments = loop->encoder.segments + loop->steps.segments;
    filled.host_segments =
        loop->encoder.host_segments + loop->steps.host_segments;
    cellgate_struct_copy(report, &filled);
}

/* ---- Beginning ---------------------------------------------------------- */

static cellgate_status no_memory(const cg_loop *loop, cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "no memory to generate %lld sequences",
                         (long long)loop->capacity);
}

static cellgate_status init_beams(cg_loop *loop, cellgate_error *error)
{
    const cellgate_generate_request *request = &loop->task->request;
    cellgate_status status = CELLGATE_OK;

    if (request->mode != CELLGATE_BEAM)
        return CELLGATE_OK;
    loop->beams = calloc((size_t)loop->task->batch, sizeof *loop->beams);
    if (loop->beams == NULL)
        return no_memory(loop, error);
    for (int64_t row = 0; status == CELLGATE_OK && row < loop->task->batch;
         row++)
        status = cg_beam_init(&loop->beams[row], request->beam_width,
                              request->max_length, request->stop,
                              request->length_penalty, error);
    return status;
}

/* Beam search begins with one sequence a row. */
static void init_places(cg_loop *loop)
{
    const int64_t members =
        loop->beams != NULL ? 1 : loop->task->request.results;

    loop->count = 0;
    for (int64_t row = 0; row < loop->task->batch; row++)
        for (int64_t member = 0; member < members; member++) {
            loop->rows[loop->count] = row;
            loop->places[loop->count++] = (cg_place){ row, member };
        }
}

static cellgate_status loop_init(cg_loop *loop, cellgate_error *error)
{
    const cg_task *task = loop->task;
    const size_t words = (size_t)loop->generator->parts.words;
    cellgate_status status;

    if (__builtin_mul_overflow(task->batch, task->width, &loop->capacity) ||
        loop->capacity > INT32_MAX)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "%lld rows of %lld sequences each are more than "
                             "a batch can have",
                             (long long)task->batch, (long long)task->width);
    loop->places = calloc((size_t)loop->capacity, sizeof *loop->places);
    loop->next = calloc((size_t)loop->capacity, sizeof *loop->next);
    loop->rows = calloc((size_t)loop->capacity, sizeof *loop->rows);
    loop->parents = calloc((size_t)loop->capacity, sizeof *loop->parents);
    loop->log = calloc(words, sizeof *loop->log);
    loop->weights = calloc(words, sizeof *loop->weights);
    if (loop->places == NULL || loop->next == NULL || loop->rows == NULL ||
        loop->parents == NULL || loop->log == NULL || loop->weights == NULL)
        return no_memory(loop, error);
    status = cg_generation_create(task->batch, task->request.results,
                                  task->request.max_length, &loop->generation,
                                  error);
    if (status == CELLGATE_OK)
        status = init_beams(loop, error);
    if (status == CELLGATE_OK)
        status = cg_feed_init(
            &loop->feed, &loop->generator->parts, loop->generator->encoder,
            task->inputs, task->batch, loop->capacity, &loop->encoder, error);
    return status;
}

static void loop_finish(cg_loop *loop)
{
    for (int64_t row = 0; loop->beams != NULL && row < loop->task->batch; row++)
        cg_beam_finish(&loop->beams[row]);
    free(loop->beams);
    free(loop->places);
    free(loop->next);
    free(loop->rows);
    free(loop->parents);
    free(loop->log);
    free(loop->weights);
    cg_feed_finish(&loop->feed);
    cellgate_generation_destroy(loop->generation);
}

/* ---- What a step reads -------------------------------------------------- */

static cg_sequence *sequence_of(const cg_loop *loop, const cg_place *place)
{
    return &loop->generation->sequences[place->row * loop->generation->results +
                                        place->member];
}

static int32_t last_id(const cg_loop *loop, const cg_place *place)
{
    const cg_task *task = loop->task;

    if (loop->step < task->lengths[place->row])
        return task->given[place->row * task->columns + loop->step];
    if (loop->beams != NULL) {
        const cg_hypothesis *live =
            &loop->beams[place->row].live[place->member];

        return live->ids[live->length - 1];
    }
    return sequence_of(loop, place)->ids[sequence_of(loop, place)->length - 1];
}

static cellgate_status set_ids(cg_loop *loop, cellgate_error *error)
{
    const int64_t known = loop->generator->parts.known;

    for (int64_t at = 0; at < loop->count; at++) {
        const int32_t id = last_id(loop, &loop->places[at]);

        if (id >= known)
            return cellgate_fail(error, CELLGATE_OUT_OF_RANGE,
                                 "row %lld, step %lld: the model chose id %d, "
                                 "which is not in its own vocabulary of %lld; "
                                 "is it the stop id?",
                                 (long long)loop->places[at].row,
                                 (long long)loop->step, (int)id,
                                 (long long)known);
        loop->feed.ids[at] = id;
    }
    return CELLGATE_OK;
}

/* ---- What follows ------------------------------------------------------- */

static void keep(cg_loop *loop, int64_t row, int64_t member, int64_t parent)
{
    loop->rows[loop->next_count] = row;
    loop->parents[loop->next_count] = parent;
    loop->next[loop->next_count++] = (cg_place){ row, member };
}

static cellgate_status read_scores(cg_loop *loop, int64_t at,
                                   cellgate_error *error)
{
    const cg_parts *parts = &loop->generator->parts;
    const char *fault =
        cg_scores_log(loop->feed.scores + at * parts->words, parts->words,
                      parts->probabilities, loop->log);

    if (fault == NULL)
        return CELLGATE_OK;
    return cellgate_fail(
        error, CELLGATE_OUT_OF_RANGE,
        "row %lld, step %lld: the scores '%s' are %s",
        (long long)loop->places[at].row, (long long)loop->step,
        parts->step->values[parts->step->outputs[parts->scores]].name, fault);
}

static int64_t choose(const cg_loop *loop, const cg_place *place)
{
    const cellgate_generate_request *request = &loop->task->request;
    const cg_sequence *sequence = sequence_of(loop, place);
    const int64_t words = loop->generator->parts.words;
    const uint64_t seed =
        request->seeds != NULL ? request->seeds[place->row] : request->seed;

    if (request->mode == CELLGATE_GREEDY)
        return cg_scores_greedy(loop->log, words);
    return cg_scores_sample(loop->log, words, request->temperature,
                            request->top_k,
                            cg_random_uniform(seed, (uint64_t)place->member,
                                              (uint64_t)sequence->length),
                            loop->weights);
}

static cellgate_status extend_one(cg_loop *loop, int64_t at,
                                  cellgate_error *error)
{
    const cg_place *place = &loop->places[at];
    cg_sequence *sequence = sequence_of(loop, place);
    cellgate_status status = read_scores(loop, at, error);
    int64_t id;

    if (status != CELLGATE_OK)
        return status;
    id = choose(loop, place);
    sequence->score += loop->log[id];
    sequence->value = sequence->score;
    sequence->stopped = id == loop->task->request.stop;
    if (!sequence->stopped)
        sequence->ids[sequence->length++] = (int32_t)id;
    if (!sequence->stopped && sequence->length < loop->task->request.max_length)
        keep(loop, place->row, place->member, at);
    return CELLGATE_OK;
}

/* Places begin .. end belong to one row. */
static cellgate_status extend_beam(cg_loop *loop, int64_t begin, int64_t end,
                                   cellgate_error *error)
{
    const int64_t row = loop->places[begin].row;
    cg_beam *beam = &loop->beams[row];
    cellgate_status status = CELLGATE_OK;

    for (int64_t at = begin; status == CELLGATE_OK && at < end; at++) {
        status = read_scores(loop, at, error);
        if (status == CELLGATE_OK)
            cg_beam_continue(beam, loop->places[at].member, loop->log,
                             loop->generator->parts.words);
    }
    if (status != CELLGATE_OK)
        return status;
    cg_beam_advance(beam);
    for (int64_t member = 0; member < beam->live_count; member++)
        keep(loop, row, member, begin + beam->live[member].parent);
    return CELLGATE_OK;
}

/* A row whose prompt is not read yet goes on as it is. */
static cellgate_status extend(cg_loop *loop, cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;
    int64_t begin = 0, end;

    loop->next_count = 0;
    for (; status == CELLGATE_OK && begin < loop->count; begin = end) {
        const int64_t row = loop->places[begin].row;

        for (end = begin; end < loop->count && loop->places[end].row == row;)
            end++;
        if (loop->step + 1 < loop->task->lengths[row]) {
            for (int64_t at = begin; at < end; at++)
                keep(loop, row, loop->places[at].member, at);
        } else if (loop->beams != NULL) {
            status = extend_beam(loop, begin, end, error);
        } else {
            for (int64_t at = begin; status == CELLGATE_OK && at < end; at++)
                status = extend_one(loop, at, error);
        }
    }
    return status;
}

/* ---- The loop ----------------------------------------------------------- */

static cellgate_status run_step(cg_loop *loop, cellgate_error *error)
{
    cellgate_report report = { .struct_size = sizeof report };
    cellgate_status status = set_ids(loop, error);
    cg_place *places = loop->places;

    if (status == CELLGATE_OK)
        status = cg_feed_step(&loop->feed, loop->generator->step, loop->count,
                              &report, error);
    if (status == CELLGATE_OK)
        status = extend(loop, error);
    if (status != CELLGATE_OK)
        return status;
    add_report(&loop->steps, &report);
    loop->places = loop->next;
    loop->next = places;
    loop->count = loop->next_count;
    loop->step++;
    if (loop->count > 0)
        cg_feed_arrange(&loop->feed, loop->rows, loop->parents, loop->count);
    return CELLGATE_OK;
}

static void deliver_beams(const cg_loop *loop)
{
    cellgate_generation *generation = loop->generation;

    for (int64_t row = 0; row < generation->batch; row++) {
        const cg_beam *beam = &loop->beams[row];
        const int64_t count = beam->finished_count < generation->results
                                  ? beam->finished_count
                                  : generation->results;

        generation->counts[row] = count;
        for (int64_t at = 0; at < count; at++) {
            const cg_hypothesis *from = &beam->finished[at];
            cg_sequence *to =
                &generation->sequences[row * generation->results + at];

            to->length = from->length;
            to->score = from->sum;
            to->value = from->value;
            to->stopped = from->stopped;
            memcpy(to->ids, from->ids, (size_t)from->length * sizeof *to->ids);
        }
    }
}

static cellgate_status run_loop(cg_loop *loop, cellgate_error *error)
{
    cellgate_status status = loop_init(loop, error);

    if (status != CELLGATE_OK)
        return status;
    init_places(loop);
    cg_feed_arrange(&loop->feed, loop->rows, NULL, loop->count);
    while (status == CELLGATE_OK && loop->count > 0)
        status = run_step(loop, error);
    if (status != CELLGATE_OK)
        return status;
    loop->generation->steps = loop->step;
    for (int64_t row = 0; row < loop->task->batch; row++)
        loop->generation->counts[row] = loop->task->request.results;
    if (loop->beams != NULL)
        deliver_beams(loop);
    return CELLGATE_OK;
}

cellgate_status cellgate_generate(cellgate_generator *generator,
                                  const cellgate_generate_request *request,
                                  cellgate_generation **generation,
                                  cellgate_report *report,
                                  cellgate_error *error)
{
    cg_task task;
    cg_loop loop = { .generator = generator, .task = &task };
    cellgate_status status;

    if (generator == NULL || request == NULL || generation == NULL)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "to generate takes a generator, a request and a "
                             "place for the result");
    if (report != NULL && report->struct_size < sizeof(size_t))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "the report's struct_size is not set");
    loop.encoder.struct_size = loop.steps.struct_size = sizeof loop.steps;
    status = cg_task_init(&task, generator, request, error);
    if (status == CELLGATE_OK)
        status = run_loop(&loop, error);
    if (status == CELLGATE_OK) {
        if (report != NULL)
            fill_report(&loop, report);
        *generation = loop.generation;
        loop.generation = NULL;
    }
    loop_finish(&loop);
    cg_task_finish(&task);
    return status;
}
