/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of one run of a case, laid out as the case says, between guards:
 * what a plugin gets, and the check that it touched only what it may.
 */
#ifndef TESTS_CONFORMANCE_EXECUTION_H
#define TESTS_CONFORMANCE_EXECUTION_H

#include "tests/conformance/expected.h"
#include "tests/conformance/guarded.h"

typedef struct execution {
    const case_data *data; /* must outlive it */
    guarded x, lengths, y, y_last;
    guarded h0[CASE_MAX_OPS], c0[CASE_MAX_OPS];
    guarded h[CASE_MAX_OPS], c[CASE_MAX_OPS];
    cellgate_lstm_state states[CASE_MAX_OPS];
    cellgate_segment_run
        run; /* hand this to the plugin; it points into the above */
} execution;

/*
 * Lays out the inputs. What a plugin has no business to read holds NaN: gaps
 * between strided elements and, where the first op is an LSTM, the steps beyond
 * a row's length. The execution must not move. -1 without memory.
 */
int execution_init(execution *x, const case_data *data, guard_kind kind);
void execution_finish(execution *x);

/* Blanks the outputs, for another run. */
void execution_reset(execution *x);

/*
 * After a run: collects the outputs and blanks them. Returns NULL, or what is
 * wrong: an input that changed, a write outside, an element never written.
 */
const char *execution_collect(execution *x, results *to);

/* Whether the inputs are as they were (collect says it too). */
int execution_inputs_intact(const execution *x);

#endif
