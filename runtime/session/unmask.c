/* SPDX-License-Identifier: Apache-2.0 */
/* What masked steps hold after a segment that knew lengths only. */
#include "config.h"

#include "runtime/session/call.h"
#include "runtime/session/mask.h"

/* Calls with each direction's half of the features and its running order. */
static void unpack(const cg_mask *mask, const cg_lstm *lstm, const float *from,
                   float *y, int64_t features)
{
    bool both = lstm->shape.directions == 2;
    int64_t half = features / 2;

    if (lstm->zero_masked) {
        cg_mask_unpack(mask, from, y, features, 0, features, CG_FILL_PADDING);
    } else if (both) {
        cg_mask_unpack(mask, from, y, features, 0, half, CG_FILL_FORWARD);
        cg_mask_unpack(mask, from, y, features, half, features,
                       CG_FILL_BACKWARD);
    } else {
        cg_mask_unpack(mask, from, y, features, 0, features,
                       lstm->shape.reverse ? CG_FILL_BACKWARD
                                           : CG_FILL_FORWARD);
    }
}

/* Padding on the right: a reversed direction meets it first, so it shows what
   the device makes of it already; so does one that zeroes masked steps. */
static void repeat(const cg_mask *mask, const cg_lstm *lstm,
                   const int32_t *lengths, float *y, int64_t features)
{
    if (lstm->zero_masked || lstm->shape.reverse)
        return;
    cg_mask_repeat_last(mask, lengths, y, features, 0,
                        lstm->shape.directions == 2 ? features / 2 : features);
}

static void zero_last(const cg_call *call, const cg_segment *segment,
                      const cg_mask *mask, const cg_lstm *lstm)
{
    int64_t features = cg_call_features(call, segment->last);
    int64_t half = lstm->shape.directions == 2 ? features / 2 : features;
    float *last = call->context->buffers[segment->last];

    if (mask->steps == 0)
        return;
    cg_mask_zero_rows(mask, lstm->shape.reverse ? 0 : mask->steps - 1, last,
                      features, 0, half);
    if (half < features)
        cg_mask_zero_rows(mask, 0, last, features, half, features);
}

void cg_call_apply_mask(const cg_call *call, const cg_segment *segment,
                        const cg_mask *mask, const cg_part_memory *memory,
                        bool packed)
{
    const cg_lstm *lstm = &call->graph->nodes[segment->shaping_lstm].as.lstm;

    if (segment->sequence != CG_NO_VALUE) {
        float *y = call->context->buffers[segment->sequence];
        int64_t features = cg_call_features(call, segment->sequence);

        if (packed)
            unpack(mask, lstm, memory->y, y, features);
        else
            repeat(mask, lstm, memory->lengths, y, features);
    }
    if (segment->last != CG_NO_VALUE && segment->zero_last)
        zero_last(call, segment, mask, lstm);
}
