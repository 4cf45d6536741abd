/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <string.h>

#include "plugins/openmp/lstm.h"

/*
 * Computed ahead, an input product reads its weights once for many steps, and
 * not between the recurrent weights. From FEW samples on that gains nothing,
 * until their inputs and outputs together no longer fit a cache.
 */
#define FEW 16
#define CACHE_BYTES (256 * 1024)

bool cpu_lstm_hoists(const struct cpu_lstm *lstm,
                     const struct cpu_direction *direction, int64_t samples)
{
    const int64_t row = direction->kernel.depth + lstm->output;

    return samples < FEW ||
           samples > CACHE_BYTES / (row * (int64_t)sizeof(float));
}

/* One direction on its way through time. */
struct walk {
    const struct cpu_lstm_run *run;
    const struct cpu_direction *direction;
    const struct cpu_crew *crew;
    const struct cpu_scratch *scratch;
    const struct cpu_pointers *pointers;
    struct cpu_target y; /* this direction's features */
    struct cpu_target last;
    const float *h0, *c0; /* [batch][..] of this direction, or NULL */
    float *h, *c;         /* likewise */
    int64_t c_stride;
    int64_t gate_stride;
    int64_t first_panel, end_panel; /* of this member */
    bool hoisted;
    int64_t block_end;  /* the input product is there for steps before it */
    int64_t gates_done; /* rows of it used up */
};

/* Where a sample is in time when it does its step number `step`. */
static int64_t time_of(const struct walk *w, int64_t row, int64_t step)
{
    return w->direction->reversed ? w->run->lane->length[row] - 1 - step : step;
}

/* How many samples, of `count` at the step before, still do step `step`. */
static int64_t still_active(const struct cpu_lane *lane, int64_t count,
                            int64_t step)
{
    while (count > 0 && lane->length[count - 1] <= step)
        count--;
    return count;
}

static float *output_row(const struct walk *w, int64_t row, int64_t step)
{
    if (w->y.base)
        return cpu_target_row(&w->y, w->run->lane->sample[row],
                              time_of(w, row, step));
    return w->scratch->h[step & 1] + row * w->run->lstm->output;
}

static const float *output_before(const struct walk *w, int64_t row,
                                  int64_t step)
{
    if (step > 0)
        return output_row(w, row, step - 1);
    if (w->h0)
        return w->h0 + w->run->lane->sample[row] * w->run->lstm->output;
    return w->scratch->zero;
}

static void copy(float *to, const float *from, int64_t count)
{
    memcpy(to, from, (size_t)count * sizeof *to);
}

static void clear(float *to, int64_t count)
{
    memset(to, 0, (size_t)count * sizeof *to);
}

/* ---- The ends of a sample ---------------------------------------------- */

/* The initial cell states, padded with zeros. */
static void load_states(const struct walk *w)
{
    const struct cpu_lane *lane = w->run->lane;
    int64_t hidden = w->run->lstm->hidden, row;

    for (row = 0; row < lane->count; row++) {
        float *c = w->scratch->c + row * w->c_stride;

        clear(c, w->c_stride);
        if (w->c0)
            copy(c, w->c0 + lane->sample[row] * hidden, hidden);
    }
}

/* Samples [first, end) have done all their steps: hands out their results. */
static void retire(const struct walk *w, int64_t first, int64_t end)
{
    const struct cpu_lane *lane = w->run->lane;
    int64_t output = w->run->lstm->output, hidden = w->run->lstm->hidden, row;

    for (row = first; row < end; row++) {
        int64_t b = lane->sample[row], length = lane->length[row], t;
        const float *h = output_before(w, row, length);

        if (w->h)
            copy(w->h + b * output, h, output);
        if (w->c)
            copy(w->c + b * hidden, w->scratch->c + row * w->c_stride, hidden);
        if (w->last.base && length > 0)
            copy(cpu_target_row(&w->last, b, 0), h, output);
        else if (w->last.base)
            clear(cpu_target_row(&w->last, b, 0), output);
        for (t = length; w->y.base && t < lane->steps; t++)
            clear(cpu_target_row(&w->y, b, t), output);
    }
}

/* ---- A step ------------------------------------------------------------ */

/*
 * Computes this member's part of the input product for as many steps from
 * `step` on as the memory for it holds, with `active` samples in the first.
 */
static void hoist(struct walk *w, int64_t step, int64_t active)
{
    const struct cpu_lane *lane = w->run->lane;
    const struct cpu_pointers *p = w->pointers;
    struct cpu_product product = {
        .matrix = &w->direction->kernel,
        .in = p->in,
        .out = p->out,
        .columns = w->gate_stride,
        .first_panel = w->first_panel,
        .end_panel = w->end_panel,
    };
    int64_t rows = 0, row;

    while (active > 0 && rows + active <= w->scratch->gate_rows) {
        for (row = 0; row < active; row++, rows++) {
            p->in[rows] = cpu_source_row(&w->run->x, lane->sample[row],
                                         time_of(w, row, step));
            p->out[rows] = w->scratch->gates + rows * w->gate_stride;
        }
        active = still_active(lane, active, ++step);
    }
    product.rows = rows;
    w->run->kernels->product(&product);
    w->block_end = step;
    w->gates_done = 0;
}

static void project(const struct walk *w, int64_t active)
{
    const struct cpu_matrix *projection = &w->direction->projection;
    struct cpu_product product = {
        .matrix = projection,
        .in = (const float *const *)w->pointers->hidden,
        .out = w->pointers->out,
        .columns = projection->columns,
        .rows = active,
    };

    cpu_crew_meet(w->crew);
    cpu_crew_share(w->crew, projection->panel_count, &product.first_panel,
                   &product.end_panel);
    w->run->kernels->product(&product);
}

static void advance(struct walk *w, int64_t step, int64_t active)
{
    const struct cpu_lane *lane = w->run->lane;
    const struct cpu_pointers *p = w->pointers;
    const bool projected = w->direction->projection.panel_count > 0;
    struct cpu_step s = {
        .cell = &w->direction->cell,
        .kernel = &w->direction->kernel,
        .recurrent = &w->direction->recurrent,
        .h = p->before,
        .c = w->scratch->c,
        .c_stride = w->c_stride,
        .out = projected ? p->hidden : p->out,
        .rows = active,
        .first_panel = w->first_panel,
        .end_panel = w->end_panel,
        /* Back and forth, so that the caches keep what was read last. */
        .descending = (step & 1) != 0,
    };
    int64_t row;

    if (w->hoisted) {
        if (step >= w->block_end)
            hoist(w, step, active);
        s.gates = w->scratch->gates + w->gates_done * w->gate_stride;
        s.gates_stride = w->gate_stride;
        w->gates_done += active;
    } else {
        s.x = p->in;
        for (row = 0; row < active; row++)
            p->in[row] = cpu_source_row(&w->run->x, lane->sample[row],
                                        time_of(w, row, step));
    }
    for (row = 0; row < active; row++) {
        p->before[row] = output_before(w, row, step);
        p->out[row] = output_row(w, row, step);
    }
    for (row = 0; projected && row < active; row++)
        p->hidden[row] = w->scratch->hidden + row * w->run->lstm->hidden;
    w->run->kernels->step(&s);
    if (projected)
        project(w, active);
    cpu_crew_meet(w->crew);
}

/* ---- A direction ------------------------------------------------------- */

static void walk_init(struct walk *w, const struct cpu_lstm_run *run, int32_t d)
{
    const struct cpu_lstm *lstm = run->lstm;
    const int64_t vector = run->kernels->vector;
    const int64_t panels = lstm->direction[d].recurrent.panel_count;
    const int64_t before_h = d * run->batch * lstm->output;
    const int64_t before_c = d * run->batch * lstm->hidden;
    const cellgate_lstm_state *state = run->state;

    w->run = run;
    w->direction = &lstm->direction[d];
    w->y = run->y;
    w->last = run->last;
    if (w->y.base)
        w->y.base += d * lstm->output;
    if (w->last.base)
        w->last.base += d * lstm->output;
    if (state) {
        w->h0 = state->h0 ? state->h0 + before_h : NULL;
        w->c0 = state->c0 ? state->c0 + before_c : NULL;
        w->h = state->h ? state->h + before_h : NULL;
        w->c = state->c ? state->c + before_c : NULL;
    }
    w->c_stride = panels * vector;
    w->gate_stride = panels * vector * 4;
}

void cpu_lstm_direction(const struct cpu_lstm_run *run, int32_t direction,
                        const struct cpu_crew *crew,
                        const struct cpu_scratch *scratch,
                        const struct cpu_pointers *pointers)
{
    const struct cpu_lane *lane = run->lane;
    struct walk w = { .crew = crew, .scratch = scratch, .pointers = pointers };
    int64_t step, active, left;

    walk_init(&w, run, direction);
    cpu_crew_share(crew, w.direction->recurrent.panel_count, &w.first_panel,
                   &w.end_panel);
    w.hoisted = cpu_lstm_hoists(run->lstm, w.direction, lane->count);
    if (crew->member == 0)
        load_states(&w);
    cpu_crew_meet(crew);
    active = still_active(lane, lane->count, 0);
    if (crew->member == 0)
        retire(&w, active, lane->count);
    for (step = 0; active > 0; step++) {
        advance(&w, step, active);
        left = still_active(lane, active, step + 1);
        if (crew->member == 0)
            retire(&w, left, active);
        active = left;
    }
}
