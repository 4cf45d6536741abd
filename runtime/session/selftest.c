/* SPDX-License-Identifier: Apache-2.0 */
/* A model's self-test on a session, and the variants to run it in. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/given.h"
#include "runtime/model/selftest.h"
#include "runtime/session/numeric.h"
#include "runtime/session/session.h"

/* ---- Comparing ---------------------------------------------------------- */

static double number_at(const cellgate_tensor *tensor, size_t index)
{
    switch (tensor->dtype) {
    case CELLGATE_F32:
        return (double)((const float *)tensor->data)[index];
    case CELLGATE_I32:
        return (double)((const int32_t *)tensor->data)[index];
    default:
        return (double)((const uint8_t *)tensor->data)[index];
    }
}

/* Relative to the largest magnitude of the answer. */
static double compare(const cellgate_tensor *output,
                      const cellgate_tensor *answer)
{
    const size_t count =
        cg_selftest_bytes(answer) / cellgate_dtype_size(answer->dtype);
    double largest = 0, magnitude = 0;

    for (size_t i = 0; i < count; i++) {
        const double got = number_at(output, i), wanted = number_at(answer, i);
        const double off = fabs(got - wanted);

        largest = isnan(off) ? INFINITY : fmax(largest, off);
        magnitude = fmax(magnitude, fabs(wanted));
    }
    return largest > 0 ? largest / magnitude : 0;
}

/* See cellgate_selftest_result; the widest of the variants that may run. */
static double tolerance_of(const cellgate_session *session)
{
    const cg_placement *placement =
        session->candidates[session->primary].placement;
    double widest = cg_numeric_tolerance(CELLGATE_NUMERIC_F32);

    for (int masked = 0; masked < 2; masked++) {
        const cg_partition *partition = &placement->partitions[masked];

        if (!atomic_load_explicit(&placement->ready[masked],
                                  memory_order_acquire))
            continue;
        for (size_t i = 0; i < partition->count; i++)
            if (partition->parts[i].segment != NULL)
                widest = fmax(
                    widest, cg_numeric_tolerance(
                                partition->parts[i].segment->variant.numeric));
    }
    return widest;
}

/* ---- Running ------------------------------------------------------------ */

typedef struct selftest_run {
    const cg_selftest *selftest;
    cellgate_input *inputs;
    cellgate_tensor *outputs;
    cellgate_request request;
} selftest_run;

static void run_finish(selftest_run *run)
{
    for (size_t i = 0; run->outputs != NULL && i < run->request.output_count;
         i++)
        free(run->outputs[i].data);
    free(run->inputs);
    free(run->outputs);
}

static cellgate_status run_init(selftest_run *run, const cellgate_model *model,
                                cellgate_error *error)
{
    bool complete;

    *run = (selftest_run){ .selftest = model->selftest };
    run->inputs = calloc(model->input_count + 1, sizeof *run->inputs);
    run->outputs = calloc(model->output_count + 1, sizeof *run->outputs);
    complete = run->inputs != NULL && run->outputs != NULL;
    run->request = (cellgate_request){ .struct_size = sizeof run->request,
                                       .inputs = run->inputs,
                                       .input_count = model->input_count,
                                       .outputs = run->outputs,
                                       .output_count = model->output_count };
    for (size_t i = 0; complete && i < model->input_count; i++)
        run->inputs[i] =
            (cellgate_input){ .struct_size = sizeof run->inputs[i],
                              .tensor = run->selftest->inputs[i].tensor,
                              .mask = run->selftest->inputs[i].mask };
    for (size_t i = 0; complete && i < model->output_count; i++) {
        run->outputs[i] = run->selftest->outputs[i];
        run->outputs[i].data =
            calloc(1, cg_selftest_bytes(&run->outputs[i]) + 1);
        complete = run->outputs[i].data != NULL;
    }
    return complete ? CELLGATE_OK
                    : cellgate_fail(error, CELLGATE_NO_MEMORY,
                                    "no memory for the self-test");
}

cellgate_status cellgate_session_selftest(cellgate_session *session,
                                          cellgate_selftest_result *result,
                                          cellgate_error *error)
{
    cellgate_selftest_result filled = { .struct_size = sizeof filled };
    selftest_run run;
    cellgate_status status;

    if (session == NULL || !cg_given_fillable(result))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "a self-test needs a session and a result with "
                             "its struct_size set");
    if (session->model->selftest == NULL)
        return cellgate_fail(error, CELLGATE_NOT_FOUND,
                             "the model has no self-test; "
                             "cellgate_model_make_selftest() makes one");
    filled.report.struct_size = sizeof filled.report;
    status = run_init(&run, session->model, error);
    if (status == CELLGATE_OK)
        status = cellgate_run(session, &run.request, &filled.report, error);
    for (size_t i = 0;
         status == CELLGATE_OK && i < session->model->output_count; i++)
        filled.difference =
            fmax(filled.difference,
                 compare(&run.outputs[i], &run.selftest->outputs[i]));
    run_finish(&run);
    if (status != CELLGATE_OK)
        return status;
    filled.tolerance = tolerance_of(session);
    filled.agrees = filled.difference <= filled.tolerance;
    cellgate_struct_copy(result, &filled);
    return CELLGATE_OK;
}

/* ---- Variants ----------------------------------------------------------- */

static bool same_name(const cellgate_variant *a, const cellgate_variant *b)
{
    return strncmp(a->name, b->name, sizeof a->name) == 0;
}

static bool offers(const cg_segment *segment, const cellgate_variant *variant)
{
    cellgate_error ignored = CELLGATE_ERROR_INIT;
    cellgate_variant other;

    for (uint32_t i = 0;
         segment != NULL &&
         cg_segment_variant(segment, NULL, i, &other, &ignored) == CELLGATE_OK;
         i++)
        if (same_name(&other, variant))
            return true;
    return false;
}

/* Whether a segment before part `at` has a variant of that name. */
static bool offered_before(const cg_partition *partition, size_t at,
                           const cellgate_variant *variant)
{
    for (size_t i = 0; i < at; i++)
        if (offers(partition->parts[i].segment, variant))
            return true;
    return false;
}

static void variant_info(const cg_segment *segment,
                         const cellgate_variant *variant,
                         cellgate_variant_info *info)
{
    cellgate_variant_info filled = { .struct_size = sizeof filled };

    memcpy(filled.name, variant->name, sizeof filled.name);
    filled.name[sizeof filled.name - 1] = '\0';
    filled.threads = variant->threads > 0 ? variant->threads : 1;
    filled.numeric = variant->numeric;
    memcpy(filled.note, variant->note, sizeof filled.note);
    if (variant->refusal[0] != '\0')
        memcpy(filled.note, variant->refusal, sizeof filled.note);
    filled.usable =
        variant->refusal[0] == '\0' &&
        variant->threads <= cg_device_thread_budget(segment->engine->device);
    cellgate_struct_copy(info, &filled);
}

cellgate_status cellgate_session_variant_get(const cellgate_session *session,
                                             size_t index,
                                             cellgate_variant_info *info)
{
    const cg_partition *partition =
        &session->candidates[session->primary].placement->partitions[0];
    cellgate_error ignored = CELLGATE_ERROR_INIT;
    cellgate_variant variant;

    if (!cg_given_fillable(info))
        return CELLGATE_INVALID;
    for (size_t at = 0; at < partition->count; at++) {
        const cg_segment *segment = partition->parts[at].segment;

        for (uint32_t i = 0;
             segment != NULL && cg_segment_variant(segment, NULL, i, &variant,
                                                   &ignored) == CELLGATE_OK;
             i++)
            if (!offered_before(partition, at, &variant) && index-- == 0) {
                variant_info(segment, &variant, info);
                return CELLGATE_OK;
            }
    }
    return CELLGATE_END;
}
