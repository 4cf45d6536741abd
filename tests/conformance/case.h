/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A case: one run of one segment, described completely by a plain struct, so
 * that it can be printed, repeated from its seed, tested, and timed. Weights,
 * inputs and lengths follow from the seed.
 */
#ifndef TESTS_CONFORMANCE_CASE_H
#define TESTS_CONFORMANCE_CASE_H

#include "cellgate/plugin.h"

#define CASE_MAX_OPS 6

/* Lengths of the rows. */
typedef enum case_lengths {
    CASE_FULL = 0,    /* lengths is NULL */
    CASE_FULL_LISTED, /* every length is `steps` */
    CASE_RAGGED,      /* 1 to steps, the first row full */
    CASE_WITH_ZEROS,  /* 0 to steps, at least one 0 */
    CASE_ALL_ZERO
} case_lengths;

/* Where a sequence's elements lie. */
typedef enum case_layout {
    CASE_BATCH_MAJOR = 0,
    CASE_TIME_MAJOR,
    CASE_PADDED_BATCH_MAJOR, /* gaps between steps and between rows */
    CASE_PADDED_TIME_MAJOR,
    CASE_LAYOUT_COUNT
} case_layout;

/* What the input holds. */
typedef enum case_values {
    CASE_ORDINARY = 0, /* within [-1, 1] */
    CASE_SATURATING,   /* within [-50, 50] */
    CASE_LARGE,        /* up to 1e4 in magnitude */
    CASE_DENORMAL,     /* denormal x, h0 and c0 */
    CASE_NAN_IN_A_ROW, /* ordinary but for one NaN in one row */
    CASE_INFINITY_IN_A_ROW
} case_values;

/* Which initial states are given. The others are NULL. */
typedef enum case_state {
    CASE_STATE_NONE = 0, /* run.states still has an entry for each op */
    CASE_STATE_GIVEN,
    CASE_STATE_H_ONLY,
    CASE_STATE_C_ONLY
} case_state;

/* One op; fields that its kind has no use for are 0. */
typedef struct case_op {
    int32_t kind;       /* a cellgate_op_kind */
    int64_t size;       /* hidden size, units, embedding size, features */
    int64_t vocabulary; /* embedding */
    int64_t projection;
    int32_t directions;
    int32_t reverse;
    uint32_t outputs;
    int32_t has_bias; /* LSTM, dense */
    int32_t has_peepholes;
    int32_t coupled;
    float clip;
    /* LSTM: [direction][gate, cell, hidden]; dense, activation: [0][0] */
    cellgate_activation activations[2][3];
} case_op;

typedef struct test_case {
    const char *group; /* static text: the row of the report it belongs to */
    uint64_t seed;
    int64_t batch, steps;
    int64_t input_size; /* features of x; 1 for an embedding */
    int32_t op_count;
    case_op ops[CASE_MAX_OPS];
    int32_t takes_rows; /* x is [batch][features]; then steps is 1 */
    int32_t lengths;    /* a case_lengths */
    int32_t x_layout;   /* a case_layout */
    int32_t y_layout;   /* a case_layout */
    int32_t state;      /* a case_state */
    int32_t no_finals;  /* the run wants no h and c, whatever the ops give */
    int32_t values;     /* a case_values */
    float weight_scale; /* times 1/sqrt(terms of the product) */
} test_case;

/* An LSTM of the minimum profile that gives a sequence and its final state. */
case_op case_lstm(int64_t hidden_size);
case_op case_dense(int64_t units, int32_t activation);

/* A case of one op, ordinary in everything: full lengths, batch-major. */
test_case case_of(const char *group, uint64_t seed, case_op op);

/* Whether every plugin must take it (the minimum profile in plugin.h). */
int case_is_minimal(const test_case *c);

/* Multiplications that the run takes, to bound the cost of a suite. */
int64_t case_cost(const test_case *c);

/* Features that op `index` takes and gives. */
int64_t case_op_input(const test_case *c, int32_t index);
int64_t case_op_output(const test_case *c, int32_t index);

/* Every parameter of the case in one line; cut at `size`. */
void case_describe(const test_case *c, char *text, size_t size);

/* "tanh", "sigmoid", ... or "?" */
const char *case_activation_name(int32_t kind);

#endif
