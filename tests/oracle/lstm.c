/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "tests/oracle/arithmetic.h"

/* One direction of a layer, and room for one step of one row. */
typedef struct direction {
    int64_t input, hidden, result;          /* I, H, R */
    const cellgate_activation *activations; /* gate, cell, hidden */
    double *kernel, *recurrent_kernel, *bias, *peephole, *projection;
    double *x, *h_factor; /* the factors of one step's products */
    double *z;            /* [4][H], the gates' arguments: i, f, c, o */
    double *wide;         /* [H], the hidden output before its projection */
    double *h, *c;        /* the state */
} direction;

static void direction_finish(direction *d)
{
    double *const owned[] = {
        d->kernel, d->recurrent_kernel, d->bias, d->peephole, d->projection,
        d->x,      d->h_factor,         d->z,    d->wide,     d->h,
        d->c
    };

    for (size_t i = 0; i < sizeof owned / sizeof owned[0]; i++)
        free(owned[i]);
}

static int direction_init(direction *d, oracle_arithmetic *arithmetic,
                          const cellgate_lstm *lstm, int which)
{
    const cellgate_lstm_weights *weights = &lstm->weights[which];
    int64_t i = lstm->input_size, h = lstm->hidden_size;
    int64_t r = lstm->projection_size > 0 ? lstm->projection_size : h;

    *d = (direction){ .input = i, .hidden = h, .result = r };
    d->activations = lstm->activations[which];
    d->kernel = oracle_weights(arithmetic, weights->kernel, i * 4 * h);
    d->recurrent_kernel =
        oracle_weights(arithmetic, weights->recurrent_kernel, r * 4 * h);
    if (lstm->has_bias)
        d->bias = oracle_weights(arithmetic, weights->bias, 4 * h);
    if (lstm->has_peepholes)
        d->peephole = oracle_weights(arithmetic, weights->peephole, 3 * h);
    if (lstm->projection_size > 0)
        d->projection = oracle_weights(arithmetic, weights->projection, h * r);
    d->x = oracle_doubles(i);
    d->h_factor = oracle_doubles(r);
    d->z = oracle_doubles(4 * h);
    d->wide = oracle_doubles(h);
    d->h = oracle_doubles(r);
    d->c = oracle_doubles(h);
    return d->kernel == NULL || d->recurrent_kernel == NULL ||
                   (lstm->has_bias && d->bias == NULL) ||
                   (lstm->has_peepholes && d->peephole == NULL) ||
                   (lstm->projection_size > 0 && d->projection == NULL) ||
                   d->x == NULL || d->h_factor == NULL || d->z == NULL ||
                   d->wide == NULL || d->h == NULL || d->c == NULL
               ? -1
               : 0;
}

/* clip(v); the clip of 0 limits nothing, and a NaN stays one. */
static double clipped(const cellgate_lstm *lstm, double v)
{
    double limit = lstm->clip;
    return limit <= 0.0 ? v : v < -limit ? -limit : v > limit ? limit : v;
}

/* x*W + h*R + b for the four gates. */
static void gate_arguments(direction *d, oracle_arithmetic *arithmetic,
                           const double *x)
{
    for (int64_t j = 0; j < 4 * d->hidden; j++)
        d->z[j] = d->bias != NULL ? d->bias[j] : 0.0;
    oracle_factors(arithmetic, x, d->input, d->x);
    oracle_factors(arithmetic, d->h, d->result, d->h_factor);
    oracle_multiply(d->x, d->kernel, d->input, 4 * d->hidden, d->z);
    oracle_multiply(d->h_factor, d->recurrent_kernel, d->result, 4 * d->hidden,
                    d->z);
}

/* The gates, the cell and the hidden output of unit j, from its arguments. */
static void unit(direction *d, oracle_arithmetic *arithmetic, int64_t row,
                 const cellgate_lstm *lstm, int64_t j)
{
    const cellgate_activation *gate = &d->activations[0];
    const int64_t n = d->hidden;
    const double *p = d->peephole;
    double c = d->c[j];

    double zi = d->z[j] + (p != NULL ? p[j] * c : 0.0);
    double zf = d->z[n + j] + (p != NULL ? p[n + j] * c : 0.0);
    double zg = d->z[2 * n + j];
    double i = oracle_activated(arithmetic, row, gate, clipped(lstm, zi));
    double f = lstm->coupled
                   ? 1.0 - i
                   : oracle_activated(arithmetic, row, gate, clipped(lstm, zf));
    double g = oracle_activated(arithmetic, row, &d->activations[1],
                                clipped(lstm, zg));
    double next = oracle_rounded(arithmetic, row, f * c + i * g,
                                 fabs(f * c) + fabs(i * g));
    double zo = d->z[3 * n + j] + (p != NULL ? p[2 * n + j] * next : 0.0);
    double o = oracle_activated(arithmetic, row, gate, clipped(lstm, zo));
    double squashed =
        oracle_activated(arithmetic, row, &d->activations[2], next);

    d->c[j] = next;
    d->wide[j] =
        oracle_rounded(arithmetic, row, o * squashed, fabs(o * squashed));
}

static void step(direction *d, oracle_arithmetic *arithmetic, int64_t row,
                 const cellgate_lstm *lstm, const double *x)
{
    gate_arguments(d, arithmetic, x);
    for (int64_t j = 0; j < d->hidden; j++)
        unit(d, arithmetic, row, lstm, j);
    if (d->projection == NULL) {
        for (int64_t j = 0; j < d->hidden; j++)
            d->h[j] = d->wide[j];
        return;
    }
    for (int64_t j = 0; j < d->result; j++)
        d->h[j] = 0.0;
    oracle_factors(arithmetic, d->wide, d->hidden, d->wide);
    oracle_multiply(d->wide, d->projection, d->hidden, d->result, d->h);
}

/* The state of one direction of one row: from where it starts in the arrays. */
static void load_state(direction *d, const oracle_state *state, int64_t at)
{
    for (int64_t j = 0; j < d->result; j++)
        d->h[j] = state->h0 != NULL ? state->h0[at * d->result + j] : 0.0;
    for (int64_t j = 0; j < d->hidden; j++)
        d->c[j] = state->c0 != NULL ? state->c0[at * d->hidden + j] : 0.0;
}

static void store_state(const direction *d, const oracle_state *state,
                        int64_t at)
{
    for (int64_t j = 0; j < d->result && state->h != NULL; j++)
        state->h[at * d->result + j] = d->h[j];
    for (int64_t j = 0; j < d->hidden && state->c != NULL; j++)
        state->c[at * d->hidden + j] = d->c[j];
}

/* One row in one direction; results go to its half of the features. */
static void run_row(direction *d, oracle_arithmetic *arithmetic,
                    const cellgate_lstm *lstm, const oracle_run *run, int which,
                    int64_t row, const double *x, double *sequence,
                    double *last)
{
    int64_t length = run->lengths != NULL ? run->lengths[row] : run->steps;
    int64_t width = lstm->directions * d->result, half = which * d->result;
    int backward = which == 1 || lstm->reverse != 0;

    for (int64_t n = 0; n < length; n++) {
        int64_t t = backward ? length - 1 - n : n;
        step(d, arithmetic, row, lstm,
             x + (row * run->steps + t) * lstm->input_size);
        for (int64_t j = 0; j < d->result && sequence != NULL; j++)
            sequence[(row * run->steps + t) * width + half + j] = d->h[j];
    }
    for (int64_t j = 0; j < d->result && last != NULL; j++)
        last[row * width + half + j] = length > 0 ? d->h[j] : 0.0;
}

int oracle_lstm_run(oracle_arithmetic *arithmetic, const cellgate_lstm *lstm,
                    const oracle_run *run, const double *x,
                    const oracle_state *state, double *sequence, double *last)
{
    int64_t r =
        lstm->projection_size > 0 ? lstm->projection_size : lstm->hidden_size;
    int64_t values = run->batch * run->steps * lstm->directions * r;

    for (int64_t k = 0; k < values && sequence != NULL; k++)
        sequence[k] = 0.0; /* what a row keeps from its length on */
    for (int which = 0; which < lstm->directions; which++) {
        direction d;
        int result = direction_init(&d, arithmetic, lstm, which);
        for (int64_t row = 0; row < run->batch && result == 0; row++) {
            load_state(&d, state, which * run->batch + row);
            run_row(&d, arithmetic, lstm, run, which, row, x, sequence, last);
            store_state(&d, state, which * run->batch + row);
        }
        direction_finish(&d);
        if (result != 0)
            return -1;
    }
    return 0;
}
