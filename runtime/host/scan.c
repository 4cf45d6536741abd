/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/host/scan.h"

/* Where one row's numbers lie; strides in elements. */
typedef struct row_place {
    const float *x;      /* [steps][input_size] */
    const uint8_t *mask; /* [steps] or NULL */
    int64_t steps;
    float *sequence; /* of this direction's half, or NULL */
    int64_t sequence_stride;
    float *last;   /* likewise */
    int64_t width; /* of h */
} row_place;

static void store_state(float *result, const double *state, int64_t size)
{
    for (int64_t k = 0; k < size; k++)
        result[k] = (float)state[k];
}

/* A step's output: the state, the previous one, or zeros. */
static void store_output(float *y, const cg_host_scan *scan, int64_t width,
                         bool valid, bool repeat)
{
    if (valid || repeat)
        store_state(y, scan->states[0], width);
    else
        memset(y, 0, (size_t)width * sizeof *y);
}

static void run_row(const cg_host_scan *scan, const row_place *place)
{
    bool seen = false, valid = false;

    for (int64_t done = 0; done < place->steps; done++) {
        int64_t step = scan->reverse ? place->steps - 1 - done : done;

        valid = place->mask == NULL || place->mask[step] != 0;
        if (valid)
            scan->step(scan->row, place->x + step * scan->input_size);
        seen = seen || valid;
        if (place->sequence != NULL)
            store_output(place->sequence + step * place->sequence_stride, scan,
                         place->width, valid, seen && !scan->zero_masked);
    }
    if (place->last != NULL)
        store_output(place->last, scan, place->width, valid,
                     seen && !scan->zero_masked);
}

static row_place find_row(const cg_host_call *call, const cg_host_scan *scan,
                          int64_t b)
{
    const float *x = cg_host_input(call, 0);
    const uint8_t *mask = cg_host_input(call, CG_RECURRENT_INPUT_MASK);
    float *sequence = cg_host_output(call, CG_RECURRENT_OUTPUT_SEQUENCE);
    float *last = cg_host_output(call, CG_RECURRENT_OUTPUT_LAST);
    row_place place = { .steps = cg_host_input_shape(call, 0)->extent[1],
                        .width = cg_node_state_width(call->node, 0) };
    int64_t both = place.width * scan->directions;
    int64_t half = place.width * scan->direction;

    place.x = x + b * place.steps * scan->input_size;
    place.mask = mask != NULL ? mask + b * place.steps : NULL;
    place.sequence_stride = both;
    if (sequence != NULL)
        place.sequence = sequence + b * place.steps * both + half;
    if (last != NULL)
        place.last = last + b * both + half;
    return place;
}

static void load_states(const cg_host_call *call, const cg_host_scan *scan,
                        int64_t b)
{
    const int32_t kinds = cg_node_state_kinds(call->node);

    for (int32_t kind = 0; kind < kinds; kind++) {
        const int64_t width = cg_node_state_width(call->node, kind);
        const float *initial =
            cg_host_input(call, (size_t)(CG_RECURRENT_INPUT_STATE +
                                         kinds * scan->direction + kind));

        for (int64_t k = 0; k < width; k++)
            scan->states[kind][k] =
                initial != NULL ? initial[b * width + k] : 0;
    }
}

static void store_states(const cg_host_call *call, const cg_host_scan *scan,
                         int64_t b)
{
    const int32_t kinds = cg_node_state_kinds(call->node);

    for (int32_t kind = 0; kind < kinds; kind++) {
        const int64_t width = cg_node_state_width(call->node, kind);
        float *final =
            cg_host_output(call, (size_t)(CG_RECURRENT_OUTPUT_STATE +
                                          kinds * scan->direction + kind));

        if (final != NULL)
            store_state(final + b * width, scan->states[kind], width);
    }
}

void cg_host_scan_rows(const cg_host_call *call, const cg_host_scan *scan)
{
    const int64_t batch = cg_host_input_shape(call, 0)->extent[0];

    for (int64_t b = 0; b < batch; b++) {
        const row_place place = find_row(call, scan, b);

        load_states(call, scan, b);
        run_row(scan, &place);
        store_states(call, scan, b);
    }
}
