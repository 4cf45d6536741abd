/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/formats/convert.h"
#include "runtime/generate/task.h"
#include "runtime/given.h"

/* A bound far beyond use: memory is taken for it at the start. */
#define LONGEST ((int64_t)1 << 24)
#define WIDEST ((int64_t)1 << 16)

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY,
                         "no memory for the request to generate");
}

/* ---- Options ------------------------------------------------------------ */

static cellgate_status check_range(const char *name, int64_t value,
                                   int64_t least, int64_t most,
                                   cellgate_error *error)
{
    if (value >= least && value <= most)
        return CELLGATE_OK;
    return cellgate_fail(error, CELLGATE_INVALID,
                         "%s is %lld; it must be from %lld to %lld", name,
                         (long long)value, (long long)least, (long long)most);
}

static cellgate_status check_numbers(const cellgate_generate_request *request,
                                     cellgate_error *error)
{
    if (!(request->length_penalty >= 0) || isinf(request->length_penalty))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "length_penalty is %g; it must be a number from 0 "
                             "up",
                             request->length_penalty);
    if (!(request->temperature >= 0) || isinf(request->temperature))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "temperature is %g; it must be a number from 0 up",
                             request->temperature);
    if (request->mode == CELLGATE_GREEDY && request->results > 1)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "greedy generation has one result a row, not "
                             "%lld; beam search and sampling have more",
                             (long long)request->results);
    if (request->mode == CELLGATE_BEAM &&
        request->results > request->beam_width)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "a beam of %lld does not have %lld results",
                             (long long)request->beam_width,
                             (long long)request->results);
    return CELLGATE_OK;
}

static cellgate_status check_options(cellgate_generate_request *request,
                                     const cg_parts *parts,
                                     cellgate_error *error)
{
    cellgate_status status;

    if (request->results == 0)
        request->results = 1;
    if (request->beam_width == 0)
        request->beam_width = request->results;
    status = check_range("mode", request->mode, CELLGATE_GREEDY,
                         CELLGATE_SAMPLE, error);
    if (status == CELLGATE_OK)
        status = check_range("the start id", request->start, -1,
                             parts->known - 1, error);
    if (status == CELLGATE_OK)
        status = check_range("the stop id", request->stop, -1, parts->words - 1,
                             error);
    if (status == CELLGATE_OK)
        status =
            check_range("max_length", request->max_length, 1, LONGEST, error);
    if (status == CELLGATE_OK)
        status = check_range("results", request->results, 1, WIDEST, error);
    if (status == CELLGATE_OK)
        status =
            check_range("beam_width", request->beam_width, 1, WIDEST, error);
    if (status == CELLGATE_OK)
        status = check_range("top_k", request->top_k, 0, INT32_MAX, error);
    return status == CELLGATE_OK ? check_numbers(request, error) : status;
}

/* ---- Inputs ------------------------------------------------------------- */

static cellgate_status copy_inputs(cg_task *task, size_t wanted,
                                   cellgate_error *error)
{
    const cellgate_generate_request *request = &task->request;
    size_t size = sizeof(cellgate_input), each;

    if (request->input_count != wanted)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "the request has %zu inputs; there are %zu to "
                             "bring",
                             request->input_count, wanted);
    if (wanted > 0 && request->inputs == NULL)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "the request's inputs are NULL");
    task->inputs = calloc(wanted + 1, sizeof *task->inputs);
    if (task->inputs == NULL)
        return no_memory(error);
    if (wanted > 0)
        memcpy(&size, request->inputs, sizeof size);
    for (size_t at = 0; at < wanted; at++) {
        const void *from = (const char *)request->inputs + at * size;

        memcpy(&each, from, sizeof each);
        if (each != size ||
            !cg_given_known(from, CG_FIRST_INPUT, sizeof(cellgate_input)))
            return cellgate_fail(error, CELLGATE_INVALID,
                                 "struct_size of the request's inputs is %zu, "
                                 "or they have members that this libcellgate "
                                 "does not know",
                                 size);
        task->inputs[at].struct_size = sizeof task->inputs[at];
        cellgate_struct_copy(&task->inputs[at], from);
    }
    return CELLGATE_OK;
}

/* ---- The prompt --------------------------------------------------------- */

static cellgate_status check_prompt(const cellgate_input *prompt,
                                    cellgate_error *error)
{
    const cellgate_tensor *tensor = &prompt->tensor;

    if (!cg_given_known(prompt, CG_FIRST_INPUT, sizeof *prompt))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "struct_size of the prompt is %zu, not %zu, or it "
                             "has members that this libcellgate does not know",
                             prompt->struct_size, sizeof *prompt);
    if (prompt->mask != NULL)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "the prompt has a mask; give lengths");
    if (tensor->rank != 2 || tensor->shape[0] < 1 || tensor->shape[1] < 0 ||
        tensor->shape[0] > INT32_MAX || tensor->shape[1] > LONGEST)
        return cellgate_fail(error, CELLGATE_BAD_SHAPE,
                             "the prompt must be ids of (batch, steps)");
    if (tensor->data == NULL && tensor->shape[1] > 0)
        return cellgate_fail(error, CELLGATE_INVALID, "the prompt has no data");
    for (int64_t row = 0; prompt->lengths != NULL && row < tensor->shape[0];
         row++)
        if (prompt->lengths[row] < 0 || prompt->lengths[row] > tensor->shape[1])
            return cellgate_fail(error, CELLGATE_OUT_OF_RANGE,
                                 "length %d of row %lld of the prompt is not "
                                 "in [0, %lld]",
                                 (int)prompt->lengths[row], (long long)row,
                                 (long long)tensor->shape[1]);
    return CELLGATE_OK;
}

/* The batch is that of whatever is given; cellgate_run() compares the inputs
   among each other. */
static cellgate_status find_batch(cg_task *task, cellgate_error *error)
{
    const cellgate_generate_request *request = &task->request;
    const cellgate_input *prompt = request->prompt;

    task->batch = request->batch != 0 ? request->batch : 1;
    if (request->input_count > 0)
        task->batch = task->inputs[0].tensor.shape[0];
    else if (prompt != NULL)
        task->batch = prompt->tensor.shape[0];
    if (task->batch < 1 || task->batch > INT32_MAX ||
        (request->batch != 0 && request->batch != task->batch))
        return cellgate_fail(error, CELLGATE_BAD_SHAPE,
                             "the request says that it has %lld rows; what it "
                             "brings has %lld",
                             (long long)request->batch, (long long)task->batch);
    if (prompt != NULL && prompt->tensor.shape[0] != task->batch)
        return cellgate_fail(error, CELLGATE_BAD_SHAPE,
                             "the prompt has %lld rows, but the inputs have "
                             "%lld",
                             (long long)prompt->tensor.shape[0],
                             (long long)task->batch);
    return CELLGATE_OK;
}

/* ids[batch][steps] of the prompt. Beyond a row's length anything may stand. */
static cellgate_status read_ids(const cg_task *task, int64_t known,
                                int32_t *ids, cellgate_error *error)
{
    const cellgate_input *prompt = task->request.prompt;
    const int64_t steps = prompt->tensor.shape[1];
    cellgate_error cause = CELLGATE_ERROR_INIT;
    int64_t where = -1;
    cellgate_status status = cg_narrow_ids(&prompt->tensor, INT32_MIN,
                                           INT32_MAX, ids, &where, &cause);

    if (status != CELLGATE_OK && where < 0)
        return cellgate_fail(error, status, "the prompt: %s", cause.text);
    if (status != CELLGATE_OK)
        return cellgate_fail(
            error, status, "the prompt, row %lld, step %lld: %s",
            (long long)(where / steps), (long long)(where % steps), cause.text);
    for (int64_t row = 0; row < task->batch; row++) {
        const int64_t length =
            prompt->lengths != NULL ? prompt->lengths[row] : steps;

        for (int64_t at = 0; at < length; at++)
            if (ids[row * steps + at] < 0 || ids[row * steps + at] >= known)
                return cellgate_fail(
                    error, CELLGATE_OUT_OF_RANGE,
                    "the prompt, row %lld, step %lld: id %d is not in the "
                    "vocabulary of %lld (0 to %lld)",
                    (long long)row, (long long)at, (int)ids[row * steps + at],
                    (long long)known, (long long)known - 1);
    }
    return CELLGATE_OK;
}

static cellgate_status join(cg_task *task, const int32_t *ids, int64_t steps,
                            cellgate_error *error)
{
    const cellgate_input *prompt = task->request.prompt;
    const int64_t start = task->request.start >= 0;

    for (int64_t row = 0; row < task->batch; row++) {
        int32_t *given = task->given + row * task->columns;
        const int64_t length = prompt != NULL && prompt->lengths != NULL
                                   ? prompt->lengths[row]
                                   : steps;

        if (start)
            given[0] = task->request.start;
        if (length > 0)
            memcpy(given + start, ids + row * steps,
                   (size_t)length * sizeof *given);
        task->lengths[row] = start + length;
        if (task->lengths[row] == 0)
            return cellgate_fail(error, CELLGATE_INVALID,
                                 "row %lld has neither a start id nor a "
                                 "prompt",
                                 (long long)row);
    }
    return CELLGATE_OK;
}

static cellgate_status read_prompt(cg_task *task, int64_t known,
                                   cellgate_error *error)
{
    const cellgate_input *prompt = task->request.prompt;
    const int64_t steps = prompt != NULL ? prompt->tensor.shape[1] : 0;
    cellgate_status status = CELLGATE_OK;
    int32_t *ids;

    task->columns = steps + 1;
    task->lengths = calloc((size_t)task->batch, sizeof *task->lengths);
    task->given = calloc((size_t)task->batch,
                         (size_t)task->columns * sizeof *task->given);
    ids = calloc((size_t)task->batch, (size_t)task->columns * sizeof *ids);
    if (task->lengths == NULL || task->given == NULL || ids == NULL)
        status = no_memory(error);
    if (status == CELLGATE_OK && steps > 0)
        status = read_ids(task, known, ids, error);
    if (status == CELLGATE_OK)
        status = join(task, ids, steps, error);
    free(ids);
    return status;
}

/* The last id of a result is not read. */
static cellgate_status check_window(const cg_task *task, int64_t window,
                                    cellgate_error *error)
{
    const int64_t most = task->request.max_length;

    for (int64_t row = 0; window > 0 && row < task->batch; row++)
        if (task->lengths[row] + most - 1 > window)
            return cellgate_fail(
                error, CELLGATE_INVALID,
                "row %lld begins with %lld ids and has a max_length of %lld, "
                "and the model's file fixes its input at %lld steps: no more "
                "ids can be read; lower max_length, or build the model with "
                "Input((None,)) and the same weights",
                (long long)row, (long long)task->lengths[row], (long long)most,
                (long long)window);
    return CELLGATE_OK;
}

/* ---- All of it ---------------------------------------------------------- */

cellgate_status cg_task_init(cg_task *task, const cellgate_generator *generator,
                             const cellgate_generate_request *request,
                             cellgate_error *error)
{
    cellgate_status status;

    memset(task, 0, sizeof *task);
    if (!cg_given_known(request, CG_FIRST_ANY, sizeof *request))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "struct_size of the request is %zu, or it has "
                             "members that this libcellgate does not know",
                             request->struct_size);
    task->request.struct_size = sizeof task->request;
    cellgate_struct_copy(&task->request, request);
    status = check_options(&task->request, &generator->parts, error);
    if (status == CELLGATE_OK && task->request.prompt != NULL)
        status = check_prompt(task->request.prompt, error);
    if (status == CELLGATE_OK)
        status =
            copy_inputs(task, cellgate_generator_input_count(generator), error);
    if (status == CELLGATE_OK)
        status = find_batch(task, error);
    if (status == CELLGATE_OK)
        status = read_prompt(task, generator->parts.known, error);
    if (status == CELLGATE_OK)
        status = check_window(task, generator->parts.window, error);
    task->width = task->request.mode == CELLGATE_BEAM ? task->request.beam_width
                                                      : task->request.results;
    return status;
}

void cg_task_finish(cg_task *task)
{
    free(task->inputs);
    free(task->given);
    free(task->lengths);
    memset(task, 0, sizeof *task);
}
