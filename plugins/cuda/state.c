/* SPDX-License-Identifier: Apache-2.0 */
/* state.c: where sequences and states lie on the device. */
#include "config.h"

#include "plugins/cuda/plan.h"

struct cuk_strides cud_strides_of(const struct cellgate_plan *plan,
                                  int64_t width)
{
    return plan->time_major ? (struct cuk_strides){ width, plan->rows * width }
                            : (struct cuk_strides){ plan->span * width, width };
}

int64_t cud_length(const struct cellgate_plan *plan, int64_t row)
{
    return plan->run->lengths ? plan->run->lengths[row] : plan->run->steps;
}

int64_t cud_state_width(const struct cud_lstm *lstm, enum cud_state which)
{
    return which == CUD_H ? lstm->output : lstm->hidden;
}

/* The layers of a stack are alike. */
static int64_t layer_at(const struct cellgate_plan *plan, uint32_t index,
                        uint32_t layer, enum cud_state which)
{
    const struct cud_lstm *lstm = &plan->weights->stages[index].lstms[0];

    return (int64_t)layer * lstm->directions * plan->rows *
           cud_state_width(lstm, which);
}

float *cud_state_first(const struct cellgate_plan *plan, uint32_t index,
                       uint32_t layer, enum cud_state which)
{
    const struct cud_stage_plan *of = &plan->stages[index];
    float *h = of->h0.memory ? of->h0.memory : of->h.memory;
    float *c = of->c0.memory ? of->c0.memory : of->c.memory;

    return (which == CUD_H ? h : c) + layer_at(plan, index, layer, which);
}

float *cud_state_final(const struct cellgate_plan *plan, uint32_t index,
                       uint32_t layer, enum cud_state which)
{
    const struct cud_stage *stage = &plan->weights->stages[index];
    const struct cud_stage_plan *of = &plan->stages[index];
    float *memory = which == CUD_H ? of->h.memory : of->c.memory;

    if (stage->kind == CUD_STAGE_LSTM && which == CUD_H && (plan->span & 1))
        memory += layer_at(plan, index, 1, CUD_H); /* the other half */
    return memory + layer_at(plan, index, layer, which);
}
