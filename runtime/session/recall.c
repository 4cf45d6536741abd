/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>

#include "runtime/session/call.h"

bool cg_recalls_init(cg_recalls *recalls, const cellgate_model *model)
{
    bool made = true;

    recalls->model = model;
    for (size_t at = 0; at < CG_RECALLS; at++) {
        cg_recall *recall = &recalls->of[at];

        atomic_flag_clear(&recall->busy);
        recall->inputs = calloc(model->input_count + 1, sizeof *recall->inputs);
        recall->outputs =
            calloc(model->output_count + 1, sizeof *recall->outputs);
        made = made && recall->inputs != NULL && recall->outputs != NULL;
    }
    return made;
}

void cg_recalls_finish(cg_recalls *recalls)
{
    for (size_t at = 0; at < CG_RECALLS; at++) {
        free(recalls->of[at].inputs);
        free(recalls->of[at].outputs);
    }
}

cg_recall *cg_recalls_take(cg_recalls *recalls)
{
    /* What threads are known by lies at least a page apart. */
    const uint64_t thread = (uint64_t)(uintptr_t)pthread_self() >> 12;
    const uint64_t mixed = thread * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    cg_recall *recall = &recalls->of[mixed % CG_RECALLS];

    return atomic_flag_test_and_set_explicit(&recall->busy,
                                             memory_order_acquire)
               ? NULL
               : recall;
}

void cg_recall_give_back(cg_recall *recall)
{
    if (recall != NULL)
        atomic_flag_clear_explicit(&recall->busy, memory_order_release);
}

/* ---- Comparing ---------------------------------------------------------- */

/* Extents beyond the rank say nothing. */
static bool same_shape(const cellgate_tensor *given,
                       const cellgate_tensor *kept)
{
    if (given->struct_size != kept->struct_size ||
        given->dtype != kept->dtype || given->rank != kept->rank)
        return false;
    for (int32_t axis = 0; axis < kept->rank; axis++)
        if (given->shape[axis] != kept->shape[axis])
            return false;
    return true;
}

/* One without data has no numbers, which its shape must allow. */
static bool same_input(const cellgate_input *given, const cellgate_input *kept)
{
    return given->struct_size == kept->struct_size &&
           same_shape(&given->tensor, &kept->tensor) &&
           given->tensor.data != NULL && kept->tensor.data != NULL &&
           given->lengths == NULL &&
           (given->mask != NULL) == (kept->mask != NULL);
}

/* An array of structs of another size than is known here says so in its first
   one; what is kept has the known size. */
bool cg_recall_is(const cg_recalls *recalls, const cg_recall *recall,
                  const cellgate_request *request)
{
    const size_t inputs = recalls->model->input_count;
    const size_t outputs = recalls->model->output_count;

    if (!recall->known || request->input_count != inputs ||
        request->output_count != outputs || request->inputs == NULL ||
        request->outputs == NULL)
        return false;
    for (size_t at = 0; at < inputs; at++)
        if (!same_input(&request->inputs[at], &recall->inputs[at]))
            return false;
    for (size_t at = 0; at < outputs; at++)
        if (!same_shape(&request->outputs[at], &recall->outputs[at]) ||
            (request->outputs[at].data != NULL) !=
                (recall->outputs[at].data != NULL))
            return false;
    return true;
}

/* ---- Remembering -------------------------------------------------------- */

void cg_recall_begin(cg_recalls *recalls, cg_recall *recall)
{
    recall->known = false;
    recall->number =
        atomic_fetch_add_explicit(&recalls->numbers, 1, memory_order_relaxed) +
        1;
    recall->age = (cg_pin_age){ 0, 0 };
    recall->pin.way_count = 0;
    recall->pin.wrong = NULL;
}

void cg_recall_keep(cg_recall *recall, const cg_call *call)
{
    const cellgate_request *request = call->request;

    recall->known = true;
    recall->batch = call->batch;
    recall->masked = call->masked;
    for (size_t at = 0; at < request->input_count; at++) {
        cg_request_input(request, at, &recall->inputs[at]);
        if (recall->inputs[at].lengths != NULL)
            recall->known = false;
    }
    for (size_t at = 0; at < request->output_count; at++)
        cg_request_output(request, at, &recall->outputs[at]);
}
