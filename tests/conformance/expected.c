/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "tests/conformance/expected.h"

static int64_t tensor_size(const case_tensor *t)
{
    return t->outer * t->batch * t->inner;
}

static double *doubles(int64_t count)
{
    return calloc(count > 0 ? (size_t)count : 1, sizeof(double));
}

static int run_oracle(const case_data *data, double *const *values,
                      oracle_row *rows, const oracle_noise *noise)
{
    oracle_state states[CASE_MAX_OPS];
    oracle_run run = { .batch = data->c.batch,
                       .steps = data->c.steps,
                       .takes_rows = data->c.takes_rows,
                       .x = data->x,
                       .ids = data->ids,
                       .lengths = data->lengths,
                       .states = states,
                       .rows = rows,
                       .noise = noise };

    for (int32_t i = 0; i < data->c.op_count; i++)
        states[i] = (oracle_state){ data->h0[i], data->c0[i], NULL, NULL };
    for (int32_t i = 0; i < data->tensor_count; i++) {
        const case_tensor *t = &data->tensors[i];
        if (t->kind == CASE_Y)
            run.y = values[i];
        else if (t->kind == CASE_Y_LAST)
            run.y_last = values[i];
        else if (t->kind == CASE_H)
            states[t->op].h = values[i];
        else
            states[t->op].c = values[i];
    }
    return oracle_segment_run(&data->segment, &run);
}

int expected_init(expected *e, const case_data *data)
{
    int ready;

    memset(e, 0, sizeof *e);
    e->data = data;
    e->rows = calloc((size_t)data->c.batch, sizeof *e->rows);
    ready = e->rows != NULL;
    for (int32_t i = 0; i < data->tensor_count; i++) {
        e->values[i] = doubles(tensor_size(&data->tensors[i]));
        ready = ready && e->values[i] != NULL;
    }
    if (ready && run_oracle(data, e->values, e->rows, NULL) == 0)
        return 0;
    expected_finish(e);
    return -1;
}

void expected_finish(expected *e)
{
    for (int i = 0; i < CASE_MAX_TENSORS; i++) {
        free(e->values[i]);
        for (int k = 0; k < TOLERANCE_CLASSES; k++)
            free(e->tolerances[k][i]);
    }
    free(e->rows);
    memset(e, 0, sizeof *e);
}

/* The largest |a - b|, or |a| without b, over elements where both are finite.
 */
static double largest(const double *a, const double *b, int64_t count)
{
    double most = 0.0;

    for (int64_t i = 0; i < count; i++) {
        double difference = b != NULL ? fabs(a[i] - b[i]) : fabs(a[i]);
        if (isfinite(difference) && difference > most)
            most = difference;
    }
    return most;
}

static void note_changes(const expected *e, double *const *disturbed,
                         double **changes)
{
    for (int32_t i = 0; i < e->data->tensor_count; i++) {
        const case_tensor *t = &e->data->tensors[i];
        for (int64_t r = 0; r < t->outer * t->batch; r++) {
            double change = largest(e->values[i] + r * t->inner,
                                    disturbed[i] + r * t->inner, t->inner);
            if (change > changes[i][r])
                changes[i][r] = change;
        }
    }
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* The median of the changes that aren't zero; -1 without memory. */
static double median_change(const double *changes, int64_t count)
{
    double *sorted = doubles(count), median = 0.0;
    int64_t used = 0;

    if (sorted == NULL)
        return -1.0;
    for (int64_t i = 0; i < count; i++)
        if (changes[i] > 0.0)
            sorted[used++] = changes[i];
    qsort(sorted, (size_t)used, sizeof *sorted, by_size);
    if (used > 0)
        median = sorted[used / 2];
    free(sorted);
    return median;
}

static int changes_to_tolerances(const expected *e, int32_t tensor,
                                 double *changes)
{
    const case_tensor *t = &e->data->tensors[tensor];
    int64_t count = t->outer * t->batch;
    double median = median_change(changes, count);

    for (int64_t r = 0; r < count; r++) {
        double change = changes[r] > median / 2 ? changes[r] : median / 2;
        changes[r] = tolerance_of(
            change, largest(e->values[tensor] + r * t->inner, NULL, t->inner));
    }
    return median < 0.0 ? -1 : 0;
}

int expected_need_class(expected *e, int32_t numeric)
{
    const case_data *data = e->data;
    double **changes = e->tolerances[numeric];
    double *disturbed[CASE_MAX_TENSORS] = { NULL };
    int result = 0;

    if (data->tensor_count == 0 || changes[0] != NULL)
        return 0;
    for (int32_t i = 0; i < data->tensor_count; i++) {
        const case_tensor *t = &data->tensors[i];
        changes[i] = doubles(t->outer * t->batch);
        disturbed[i] = doubles(tensor_size(t));
        if (changes[i] == NULL || disturbed[i] == NULL)
            result = -1;
    }
    for (int run = 0; run < tolerance_runs(&data->c) && result == 0; run++) {
        oracle_noise noise = tolerance_noise(&data->c, numeric, run);
        result = run_oracle(data, disturbed, NULL, &noise);
        if (result == 0)
            note_changes(e, disturbed, changes);
    }
    for (int32_t i = 0; i < data->tensor_count; i++) {
        if (result == 0)
            result = changes_to_tolerances(e, i, changes[i]);
        free(disturbed[i]);
    }
    return result;
}

int results_init(results *r, const case_data *data)
{
    memset(r, 0, sizeof *r);
    r->data = data;
    for (int32_t i = 0; i < data->tensor_count; i++) {
        int64_t count = tensor_size(&data->tensors[i]);
        r->values[i] = calloc(count > 0 ? (size_t)count : 1, sizeof(float));
        if (r->values[i] == NULL) {
            results_finish(r);
            return -1;
        }
    }
    return 0;
}

void results_finish(results *r)
{
    for (int i = 0; i < CASE_MAX_TENSORS; i++)
        free(r->values[i]);
    memset(r, 0, sizeof *r);
}

int results_differ(const results *a, const results *b, int64_t row)
{
    for (int32_t i = 0; i < a->data->tensor_count; i++) {
        const case_tensor *t = &a->data->tensors[i];
        for (int64_t r = 0; r < t->outer * t->batch; r++)
            if (r % t->batch != row &&
                memcmp(a->values[i] + r * t->inner, b->values[i] + r * t->inner,
                       (size_t)t->inner * sizeof(float)) != 0)
                return i;
    }
    return -1;
}

/* ---- Comparing --------------------------------------------------------- */

/* Where a comparison stands. */
typedef struct place {
    const expected *e;
    int32_t tensor;
    int64_t outer_row, element;
} place;

static int last_op_is_lstm(const case_data *data)
{
    return data->c.ops[data->c.op_count - 1].kind == CELLGATE_OP_LSTM;
}

/* The rule that makes a value exact, or NULL. */
static const char *exact_rule(const place *at)
{
    const case_data *data = at->e->data;
    const case_tensor *t = &data->tensors[at->tensor];
    int64_t length = case_length(data, at->outer_row % t->batch);

    switch (t->kind) {
    case CASE_Y:
        return last_op_is_lstm(data) && at->element / t->features >= length
                   ? "exactly zero beyond the row's length"
                   : NULL;
    case CASE_Y_LAST:
        return last_op_is_lstm(data) && length == 0
                   ? "exactly zero for a row of length 0"
                   : NULL;
    default:
        return length == 0 ? "exactly the initial state for a row of length 0"
                           : NULL;
    }
}

static const char beyond[] = "beyond the tolerance";

/* What is wrong with a value, or NULL; *share is its error in tolerances. */
static const char *judge(const place *at, double wanted, double got,
                         double tolerance, double *share)
{
    const case_data *data = at->e->data;
    int64_t row = at->outer_row % data->tensors[at->tensor].batch;
    int from_infinity =
        row == data->special_row && data->c.values == CASE_INFINITY_IN_A_ROW;
    const char *rule = exact_rule(at);

    *share = 0.0;
    if (rule != NULL)
        return got == wanted ? NULL : rule;
    if (isnan(wanted))
        return isnan(got) ? NULL : "NaN must come out as NaN";
    if (isnan(got))
        return from_infinity
                   ? NULL
                   : "NaN where a number is expected (the input holds "
                     "NaN between its rows and steps and beyond "
                     "the lengths)";
    if (isinf(wanted) || isinf(got))
        return wanted == got || (from_infinity && isinf(wanted))
                   ? NULL
                   : "infinite where a number is expected";
    *share = fabs(wanted - got) / tolerance;
    return *share <= 1.0 ? NULL : beyond;
}

static void note(verdict *v, const place *at, double wanted, double got,
                 double tolerance, const char *rule, double share)
{
    const case_tensor *t = &at->e->data->tensors[at->tensor];

    if (v->failed || (rule == NULL && share <= v->share))
        return;
    v->failed = rule != NULL;
    v->rule = rule;
    v->share = share;
    v->tensor = at->tensor;
    v->direction = at->outer_row / t->batch;
    v->row = at->outer_row % t->batch;
    v->step = t->kind == CASE_Y ? at->element / t->features : -1;
    v->feature = at->element % t->features;
    v->wanted = wanted;
    v->got = got;
    v->tolerance = tolerance;
}

static void compare_row(const expected *e, const results *r, int32_t numeric,
                        int32_t tensor, int64_t outer_row, verdict *v)
{
    const case_tensor *t = &e->data->tensors[tensor];
    place at = { e, tensor, outer_row, 0 };
    double tolerance = e->tolerances[numeric][tensor][outer_row];

    v->compared++;
    for (at.element = 0; at.element < t->inner; at.element++) {
        int64_t k = outer_row * t->inner + at.element;
        double wanted = e->values[tensor][k], got = r->values[tensor][k];
        double share;
        const char *rule = judge(&at, wanted, got, tolerance, &share);
        note(v, &at, wanted, got, tolerance, rule, share);
    }
}

static void check_finite(const expected *e, const results *r, int32_t tensor,
                         int64_t outer_row, verdict *v)
{
    const case_tensor *t = &e->data->tensors[tensor];
    place at = { e, tensor, outer_row, 0 };

    for (at.element = 0; at.element < t->inner; at.element++) {
        int64_t k = outer_row * t->inner + at.element;
        if (!isfinite(r->values[tensor][k]))
            note(v, &at, e->values[tensor][k], r->values[tensor][k], INFINITY,
                 "not finite, though nothing overflows", 0.0);
    }
}

verdict expected_compare(const expected *e, const results *r, int32_t numeric)
{
    verdict v = { .tensor = -1 };

    for (int32_t i = 0; i < e->data->tensor_count; i++) {
        const case_tensor *t = &e->data->tensors[i];
        for (int64_t k = 0; k < t->outer * t->batch; k++) {
            int64_t row = k % t->batch;
            if (row == e->data->special_row ||
                tolerance_comparable(&e->data->c, numeric, &e->rows[row]))
                compare_row(e, r, numeric, i, k, &v);
            else if (tolerance_finite(numeric, &e->rows[row]))
                check_finite(e, r, i, k, &v);
        }
    }
    return v;
}

void verdict_describe(const verdict *v, const case_data *data, int32_t numeric,
                      char *text, size_t size)
{
    static const char *const names[] = { "y", "y_last", "h", "c" };
    const case_tensor *t;
    char place_text[120], step[32] = "";

    if (v->tensor < 0) {
        (void)snprintf(text, size, "nothing was compared");
        return;
    }
    t = &data->tensors[v->tensor];
    if (v->step >= 0)
        (void)snprintf(step, sizeof step, "step %lld, ", (long long)v->step);
    (void)snprintf(place_text, sizeof place_text,
                   "%s of op %d at direction %lld, row %lld (length %lld), "
                   "%sfeature %lld",
                   names[t->kind], (int)t->op, (long long)v->direction,
                   (long long)v->row, (long long)case_length(data, v->row),
                   step, (long long)v->feature);
    if (v->rule == beyond || v->rule == NULL)
        (void)snprintf(text, size,
                       "%s: expected %.9g, got %.9g, difference %.3g, "
                       "tolerance %.3g (%s)",
                       place_text, v->wanted, v->got, fabs(v->wanted - v->got),
                       v->tolerance, tolerance_reason(numeric));
    else
        (void)snprintf(text, size, "%s: expected %.9g, got %.9g: %s",
                       place_text, v->wanted, v->got, v->rule);
}
