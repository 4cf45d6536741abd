/* SPDX-License-Identifier: Apache-2.0 */
/* The suite's own judgement: what it lets pass and what not. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "tests/conformance/execution.h"
#include "tests/conformance/expected.h"
#include "tests/conformance/host_table.h"
#include "tests/oracle/random.h"

/* A case, what's expected of it, and results that are exactly that. */
typedef struct fixture {
    case_data data;
    expected e;
    results r;
} fixture;

static void make(fixture *f, const test_case *c)
{
    assert_int_equal(case_data_init(&f->data, c), 0);
    assert_int_equal(expected_init(&f->e, &f->data), 0);
    assert_int_equal(results_init(&f->r, &f->data), 0);
    assert_int_equal(expected_need_class(&f->e, CELLGATE_NUMERIC_F32), 0);
    for (int32_t i = 0; i < f->data.tensor_count; i++) {
        const case_tensor *t = &f->data.tensors[i];
        for (int64_t k = 0; k < t->outer * t->batch * t->inner; k++)
            f->r.values[i][k] = (float)f->e.values[i][k];
    }
}

static void unmake(fixture *f)
{
    results_finish(&f->r);
    expected_finish(&f->e);
    case_data_finish(&f->data);
}

static verdict judge(const fixture *f)
{
    return expected_compare(&f->e, &f->r, CELLGATE_NUMERIC_F32);
}

/* The number of a tensor in the case's list. */
static int32_t tensor(const fixture *f, int32_t kind)
{
    for (int32_t i = 0; i < f->data.tensor_count; i++)
        if (f->data.tensors[i].kind == kind)
            return i;
    fail_msg("the case has no tensor of kind %d", (int)kind);
    return -1;
}

static test_case ragged(void)
{
    test_case c = case_of("test", 7, case_lstm(6));

    c.batch = 8;
    c.lengths = CASE_WITH_ZEROS;
    c.state = CASE_STATE_GIVEN;
    return c;
}

static int64_t row_of_length(const fixture *f, int shortest, int longest)
{
    for (int64_t b = 0; b < f->data.c.batch; b++)
        if (case_length(&f->data, b) >= shortest &&
            case_length(&f->data, b) <= longest)
            return b;
    fail_msg("the case has no row of a length from %d to %d", shortest,
             longest);
    return -1;
}

static void test_the_exact_passes(void **state)
{
    test_case c = ragged();
    fixture f;
    verdict v;

    (void)state;
    make(&f, &c);
    v = judge(&f);
    assert_false(v.failed);
    assert_true(v.share < 0.5);
    assert_int_equal(v.compared, 4 * 8);
    unmake(&f);
}

static void test_a_wrong_value_is_named(void **state)
{
    test_case c = case_of("test", 3, case_lstm(6));
    char text[600];
    fixture f;
    verdict v;
    int32_t y;

    (void)state;
    make(&f, &c);
    y = tensor(&f, CASE_Y);
    f.r.values[y][(1 * 5 + 3) * 6 + 4] += 1e-4f;
    v = judge(&f);
    assert_true(v.failed);
    assert_int_equal(v.row, 1);
    assert_int_equal(v.step, 3);
    assert_int_equal(v.feature, 4);
    verdict_describe(&v, &f.data, CELLGATE_NUMERIC_F32, text, sizeof text);
    assert_non_null(strstr(text, "row 1 (length 5), step 3, feature 4"));
    assert_non_null(strstr(text, "difference 0.0001, tolerance "));
    unmake(&f);
}

static void test_rounding_passes_and_a_lower_class_does_not(void **state)
{
    test_case c = case_of("test", 3, case_lstm(6));
    fixture f;
    float *h;

    (void)state;
    make(&f, &c);
    h = f.r.values[tensor(&f, CASE_H)];
    h[2] *= 1.0f + 0x1p-22f;
    assert_false(judge(&f).failed);
    h[2] *= 1.0f + 0x1p-10f;
    assert_true(judge(&f).failed);
    assert_int_equal(expected_need_class(&f.e, CELLGATE_NUMERIC_BF16), 0);
    assert_false(expected_compare(&f.e, &f.r, CELLGATE_NUMERIC_BF16).failed);
    h[2] = -h[2];
    assert_true(expected_compare(&f.e, &f.r, CELLGATE_NUMERIC_BF16).failed);
    unmake(&f);
}

static void test_what_must_be_exact(void **state)
{
    test_case c = ragged();
    fixture f;
    float *y, *last, *h, kept;
    int64_t empty, shorter;

    (void)state;
    make(&f, &c);
    y = f.r.values[tensor(&f, CASE_Y)];
    last = f.r.values[tensor(&f, CASE_Y_LAST)];
    h = f.r.values[tensor(&f, CASE_H)];
    empty = row_of_length(&f, 0, 0);
    shorter = row_of_length(&f, 1, 4);

    y[(shorter * 5 + 4) * 6] = 1e-30f;
    assert_true(judge(&f).failed);
    y[(shorter * 5 + 4) * 6] = -0.0f;
    assert_false(judge(&f).failed);
    last[empty * 6 + 1] = 1e-30f;
    assert_true(judge(&f).failed);
    last[empty * 6 + 1] = 0.0f;
    kept = h[empty * 6 + 2];
    h[empty * 6 + 2] = nextafterf(kept, 2.0f);
    assert_true(judge(&f).failed);
    h[empty * 6 + 2] = kept;
    assert_false(judge(&f).failed);
    unmake(&f);
}

static void test_nan(void **state)
{
    test_case c = case_of("test", 4, case_lstm(3));
    fixture f;
    float *h, kept;
    int64_t row;

    (void)state;
    c.values = CASE_NAN_IN_A_ROW;
    make(&f, &c);
    row = f.data.special_row;
    h = f.r.values[tensor(&f, CASE_H)];
    assert_true(row >= 0 && isnan(h[row * 3]));
    assert_false(judge(&f).failed);
    h[row * 3] = 0.5f; /* a NaN that vanished */
    assert_true(judge(&f).failed);
    h[row * 3] = NAN;
    kept = h[(row + 1) % 3 * 3];
    h[(row + 1) % 3 * 3] = NAN; /* a NaN that spread */
    assert_true(judge(&f).failed);
    h[(row + 1) % 3 * 3] = kept;
    assert_false(judge(&f).failed);
    unmake(&f);
}

/* e^(e^x) leaves float32's range: not compared. */
static void test_what_says_nothing_is_not_compared(void **state)
{
    test_case c = case_of("test", 4, case_lstm(3));
    fixture f;

    (void)state;
    for (int a = 0; a < 3; a++)
        c.ops[0].activations[0][a].kind = CELLGATE_EXPONENTIAL;
    c.steps = 9;
    make(&f, &c);
    assert_int_equal(judge(&f).compared, 0);
    unmake(&f);
}

static void test_bits_differ(void **state)
{
    test_case c = case_of("test", 4, case_lstm(3));
    fixture a, b;
    int32_t h;

    (void)state;
    make(&a, &c);
    make(&b, &c);
    h = tensor(&a, CASE_H);
    assert_int_equal(results_differ(&a.r, &b.r, -1), -1);
    b.r.values[h][1 * 3 + 2] = nextafterf(b.r.values[h][1 * 3 + 2], 9.0f);
    assert_int_equal(results_differ(&a.r, &b.r, -1), h);
    assert_int_equal(results_differ(&a.r, &b.r, 1), -1); /* that row apart */
    unmake(&a);
    unmake(&b);
}

/* ---- Memory -------------------------------------------------------------- */

static void test_guards_see_writes(void **state)
{
    for (guard_kind kind = GUARD_MARGINS; kind <= GUARD_PAGE; kind++) {
        guarded g;
        (void)state;
        assert_int_equal(guarded_init(&g, 10, kind), 0);
        assert_true(guarded_is_blank(&g));
        ((float *)g.data)[-1] = 0.0f;
        assert_false(guarded_is_blank(&g));
        guarded_reset(&g);
        assert_int_equal(guarded_seal(&g), 0);
        assert_true(guarded_is_sealed(&g));
        ((float *)g.data)[9] = 3.0f;
        assert_false(guarded_is_sealed(&g));
        guarded_finish(&g);
    }
}

/* Writes what's expected where the run says; then one element too many. */
static void test_collecting(void **state)
{
    test_case c = case_of("test", 5, case_lstm(2));
    execution with;
    fixture f;
    float *y;

    (void)state;
    c.ops[0].outputs = CELLGATE_LSTM_SEQUENCE;
    c.y_layout = CASE_PADDED_TIME_MAJOR;
    make(&f, &c);
    assert_int_equal(execution_init(&with, &f.data, GUARD_MARGINS), 0);
    y = with.run.y.data;
    for (int extra = 0; extra < 3; extra++) {
        for (int b = 0; b < 3; b++)
            for (int t = 0; t < 5; t++)
                for (int k = 0; k < 2; k++)
                    y[b * with.run.y.batch_stride + t * with.run.y.time_stride +
                      k] = 0.25f;
        if (extra == 1)
            y[2] = 0.25f; /* in the gap behind the first step */
        if (extra == 2)
            ((float *)with.x.data)[0] += 1.0f;
        assert_int_equal(execution_collect(&with, &f.r) == NULL, extra == 0);
        assert_true(f.r.values[0][0] == 0.25f);
    }
    assert_non_null(execution_collect(&with, &f.r)); /* nothing written */
    execution_finish(&with);
    unmake(&f);
}

/* ---- Cases --------------------------------------------------------------- */

static void test_slices_are_the_whole(void **state)
{
    test_case c = ragged();
    case_data whole, piece;
    int64_t steps = 0;

    (void)state;
    assert_int_equal(case_data_init(&whole, &c), 0);
    for (int64_t from = 0; from < c.steps; from += 2) {
        int64_t to = from + 2 < c.steps ? from + 2 : c.steps;
        assert_int_equal(case_data_slice(&piece, &whole, from, to, NULL, NULL),
                         0);
        steps += case_length(&piece, 0);
        for (int64_t k = 0; k < (to - from) * c.input_size; k++)
            assert_true(piece.x[k] == whole.x[from * c.input_size + k]);
        case_data_finish(&piece);
    }
    assert_int_equal(steps, case_length(&whole, 0));
    case_data_finish(&whole);
}

static void test_cases_repeat(void **state)
{
    random_source random = random_from(1, 2);
    test_case c = ragged();
    case_data a, b;
    char text[1000];

    (void)state;
    assert_int_equal(case_data_init(&a, &c), 0);
    assert_int_equal(case_data_init(&b, &c), 0);
    assert_memory_equal(a.weights, b.weights,
                        (size_t)a.weight_count * sizeof(float));
    case_data_finish(&a);
    case_data_finish(&b);
    case_describe(&c, text, sizeof text);
    assert_non_null(strstr(text, "batch=8 steps=5 input=4"));
    assert_non_null(strstr(text, "seed=7"));
    for (int i = 0; i < 1000; i++) {
        int64_t n = random_integer(&random, -2, 2);
        double u = random_unit(&random);
        assert_true(n >= -2 && n <= 2 && u >= 0.0 && u < 1.0);
    }
}

static void test_settings_become_canonical(void **state)
{
    static const cellgate_key keys[] = {
        { sizeof keys[0], "b", CELLGATE_KEY_BOOLEAN, "no", NULL, 0, 0, "" },
        { sizeof keys[0], "i", CELLGATE_KEY_INTEGER, "1", NULL, 1, 9, "" },
        { sizeof keys[0], "s", CELLGATE_KEY_SIZE, "0", NULL, 0, 0, "" },
        { sizeof keys[0], "t", CELLGATE_KEY_SECONDS, "0", NULL, 0, 0, "" },
        { sizeof keys[0], "c", CELLGATE_KEY_CHOICE, "x", "x|yy", 0, 0, "" },
    };
    static const struct {
        int key;
        const char *text, *wanted; /* NULL: no valid value */
    } table[] = {
        { 0, "On", "yes" },
        { 0, "maybe", NULL },
        { 1, "9", "9" },
        { 1, "10", NULL },
        { 1, "3x", NULL },
        { 2, "2K", "2048" },
        { 2, "1T", "1099511627776" },
        { 2, "99999999T", NULL },
        { 3, "2min", "120" },
        { 3, "5 lightyears", NULL },
        { 4, "yy", "yy" },
        { 4, "y", NULL },
        { 4, "", NULL },
    };
    char text[64];

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        int valid = host_canonical(&keys[table[i].key], table[i].text, text,
                                   sizeof text);
        assert_int_equal(valid, table[i].wanted != NULL);
        if (valid)
            assert_string_equal(text, table[i].wanted);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_exact_passes),
        cmocka_unit_test(test_a_wrong_value_is_named),
        cmocka_unit_test(test_rounding_passes_and_a_lower_class_does_not),
        cmocka_unit_test(test_what_must_be_exact),
        cmocka_unit_test(test_nan),
        cmocka_unit_test(test_what_says_nothing_is_not_compared),
        cmocka_unit_test(test_bits_differ),
        cmocka_unit_test(test_guards_see_writes),
        cmocka_unit_test(test_collecting),
        cmocka_unit_test(test_slices_are_the_whole),
        cmocka_unit_test(test_cases_repeat),
        cmocka_unit_test(test_settings_become_canonical),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
