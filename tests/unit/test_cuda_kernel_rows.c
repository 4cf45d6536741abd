/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA plugin's packing, and its kernels that work on rows, on the executor
 * against plain loops in double precision.
 */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plugins/cuda/kernels/kernels.h"
#include "tests/cuda/executor.h"
#include "tests/oracle/oracle.h"
#include "tests/oracle/random.h"

#define OUTSIDE 123.0f /* what nobody may write */

static float *random_floats(size_t count, uint64_t stream)
{
    random_source random = random_from(79, stream);
    float *made = malloc((count > 0 ? count : 1) * sizeof *made);

    assert_non_null(made);
    for (size_t i = 0; i < count; i++)
        made[i] = (float)random_between(&random, -1, 1);
    return made;
}

static void assert_near(const char *what, double got, double want,
                        double tolerance)
{
    if (isnan(want) ? !isnan(got) : !(fabs(got - want) <= tolerance))
        fail_msg("%s: %.9g and not %.9g", what, got, want);
}

/* ---- Packing ----------------------------------------------------------- */

static void test_pack_gates(void **state)
{
    /* Two rows of three units, gates i f c o. */
    static const float from[24] = { 10, 11, 12, 20, 21, 22, 30, 31,
                                    32, 40, 41, 42, 50, 51, 52, 60,
                                    61, 62, 70, 71, 72, 80, 81, 82 };
    static const float want[24] = { 10, 20, 30, 40, 11, 21, 31, 41,
                                    12, 22, 32, 42, 50, 60, 70, 80,
                                    51, 61, 71, 81, 52, 62, 72, 82 };
    float to[24];

    (void)state;
    cuk_pack_gates(from, 2, 3, to);
    assert_memory_equal(to, want, sizeof want);
}

static void test_pack_recurrent(void **state)
{
    enum { DEPTH = 5, HIDDEN = 9, ROWS = 8 /* of a block */ };
    float from[DEPTH * 4 * HIDDEN], to[2 * ROWS * 8 * 4];

    (void)state;
    for (int k = 0; k < DEPTH; k++)
        for (int i = 0; i < 4 * HIDDEN; i++)
            from[k * 4 * HIDDEN + i] = (float)(1000 * k + i);
    assert_int_equal(cuk_recurrent_size(DEPTH, HIDDEN, CUK_F32), sizeof to);
    assert_int_equal(cuk_recurrent_size(DEPTH, HIDDEN, CUK_BF16),
                     sizeof to / 2);
    cuk_pack_recurrent(from, DEPTH, HIDDEN, CUK_F32, to);
    for (int i = 0; i < 2 * ROWS * 8 * 4; i++) {
        const int unit = i / (ROWS * 32) * 8 + i / 4 % 8;
        const int k = i / 32 % ROWS, gate = i % 4;
        const float want = unit < HIDDEN && k < DEPTH
                               ? (float)(1000 * k + gate * HIDDEN + unit)
                               : 0;

        assert_true(to[i] == want);
    }
}

static void test_pack_types(void **state)
{
    /* Bits by the formats' definition: IEEE 754-2019, 3.6; bfloat16 is the
       upper half of binary32. Ties go to even. */
    static const struct {
        float value;
        uint16_t f16, bf16;
    } table[] = {
        { 0.0f, 0, 0 },
        { -0.0f, 0x8000, 0x8000 },
        { 1.0f, 0x3c00, 0x3f80 },
        { -2.0f, 0xc000, 0xc000 },
        { 65504.0f, 0x7bff, 0x4780 },   /* the largest */
        { 65519.996f, 0x7bff, 0x4780 }, /* below half a place beyond it */
        { 65520.0f, 0x7c00, 0x4780 },   /* half a place: infinity */
        { 1e9f, 0x7c00, 0x4e6e },
        { INFINITY, 0x7c00, 0x7f80 },
        { 0x1p-14f, 0x0400, 0x3880 }, /* the smallest normal */
        { 0x1p-24f, 0x0001, 0x3380 }, /* the smallest of all */
        { 0x1p-25f, 0x0000, 0x3300 }, /* half of it: to even */
        { 0x1.8p-25f, 0x0001, 0x3340 },
        { 0x1.8p-24f, 0x0002, 0x33c0 },   /* a tie, upwards */
        { 0x1.ffcp-15f, 0x0400, 0x3880 }, /* rounds up to a normal one */
        { 0x1.002p0f, 0x3c00, 0x3f80 },   /* a tie, downwards */
        { 0x1.006p0f, 0x3c02, 0x3f80 },   /* a tie, upwards */
        { 0x1.01p0f, 0x3c04, 0x3f80 },    /* a tie of bfloat16, downwards */
        { 0x1.03p0f, 0x3c0c, 0x3f82 },
        { 3.4028235e38f, 0x7c00, 0x7f80 },
    };
    uint16_t f16, bf16;
    const float nan = NAN;

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        cuk_pack_plain(&table[i].value, 1, CUK_F16, &f16);
        cuk_pack_plain(&table[i].value, 1, CUK_BF16, &bf16);
        if (f16 != table[i].f16 || bf16 != table[i].bf16)
            fail_msg("%.9g is %04x, %04x", (double)table[i].value, f16, bf16);
    }
    cuk_pack_plain(&nan, 1, CUK_F16, &f16);
    cuk_pack_plain(&nan, 1, CUK_BF16, &bf16);
    assert_true((f16 & 0x7c00) == 0x7c00 && (f16 & 0x3ff) != 0);
    assert_true((bf16 & 0x7f80) == 0x7f80 && (bf16 & 0x7f) != 0);
}

/* ---- Products ---------------------------------------------------------- */

struct product_case {
    int batch, steps, depth, columns;
    int directions, first, chunk; /* chunk 0: all steps */
    int vocabulary;               /* 0: no ids */
    int ragged, in_time, no_bias;
    cellgate_activation activation;
};

static double exact_product(const struct product_case *is,
                            const struct cuk_product *a, const float *x, int d,
                            int n)
{
    const float *matrix = (const float *)a->matrix + d * a->matrix_direction;
    double sum = a->bias ? (double)a->bias[d * is->columns + n] : 0;

    for (int k = 0; k < is->depth; k++)
        sum += (double)x[k] * (double)matrix[k * is->columns + n];
    return oracle_activate(&is->activation, sum);
}

/* y[d][b][s - first] or y[d][b][t], against sums in double. */
static void compare_product(const struct product_case *is,
                            const struct cuk_product *a, int times)
{
    const size_t count = (size_t)(is->directions * is->batch * times);
    unsigned char *written = calloc(count > 0 ? count : 1, 1);

    assert_non_null(written);
    for (int d = 0; d < is->directions; d++)
        for (int b = 0; b < is->batch; b++)
            for (int s = a->first; s < a->end; s++) {
                const int length = a->lengths ? a->lengths[b] : is->steps;
                const int t = d == 1 ? length - 1 - s : s;
                const int at = is->in_time ? t : s - a->first;
                const int64_t from = b * a->x_at.batch + t * a->x_at.time;
                const float *y = a->y + d * a->y_direction + b * a->y_at.batch +
                                 at * a->y_at.time;

                if (s >= length)
                    continue;
                written[(d * is->batch + b) * times + at] = 1;
                for (int n = 0; n < is->columns; n++)
                    assert_near(
                        "product", (double)y[n],
                        exact_product(is, a,
                                      a->ids ? a->x + a->ids[from] * is->depth
                                             : a->x + from,
                                      d, n),
                        1e-6 * (is->depth + 4));
                assert_true(y[is->columns] == OUTSIDE);
            }
    for (size_t i = 0; i < count; i++)
        for (int n = 0; n < is->columns && !written[i]; n++)
            assert_true(a->y[i * (size_t)(is->columns + 1) + (size_t)n] ==
                        OUTSIDE);
    free(written);
}

static void check_product(const struct product_case *is)
{
    const int end = is->chunk ? is->first + is->chunk : is->steps;
    const int times = is->in_time ? is->steps : end - is->first;
    const size_t rows = (size_t)(is->batch * is->steps);
    const size_t results =
        (size_t)(is->directions * is->batch * times * (is->columns + 1));
    const size_t matrix = (size_t)(is->depth * is->columns);
    float *table = random_floats(
        (is->vocabulary ? (size_t)is->vocabulary : rows) * (size_t)is->depth,
        1);
    float *weights = random_floats((size_t)is->directions * matrix, 2);
    float *bias = random_floats((size_t)(is->directions * is->columns), 3);
    int32_t *lengths = malloc((size_t)is->batch * sizeof *lengths);
    int32_t *ids = malloc(rows * sizeof *ids);
    struct cuk_product a = {
        .batch = is->batch,
        .depth = is->depth,
        .columns = is->columns,
        .first = is->first,
        .end = end,
        .directions = is->directions,
        .reverse = { 0, 1 },
        .in_time = is->in_time,
        .activation = is->activation,
        .x = table,
        .x_at = { is->steps, 1 },
        .matrix = weights,
        .matrix_direction = (int64_t)matrix,
        .bias = is->no_bias ? NULL : bias,
        .y_at = { (int64_t)times * (is->columns + 1), is->columns + 1 },
        .y_direction = (int64_t)is->batch * times * (is->columns + 1),
    };

    assert_true(lengths && ids);
    for (int b = 0; b < is->batch; b++)
        lengths[b] = is->ragged ? (b * 7 + 3) % (is->steps + 1) : is->steps;
    for (size_t i = 0; i < rows; i++)
        ids[i] = (int32_t)(i * 5 % (size_t)(is->vocabulary + 1)) %
                 (is->vocabulary ? is->vocabulary : 1);
    a.lengths = is->ragged || is->directions > 1 ? lengths : NULL;
    if (is->vocabulary) {
        a.ids = ids;
    } else {
        a.x_at.batch *= is->depth;
        a.x_at.time *= is->depth;
    }
    a.y = malloc(results * sizeof *a.y);
    assert_non_null(a.y);
    for (size_t i = 0; i < results; i++)
        a.y[i] = OUTSIDE;
    assert_int_equal(cuk_product(&a, NULL), 0);
    compare_product(is, &a, times);
    free(table);
    free(weights);
    free(bias);
    free(lengths);
    free(ids);
    free(a.y);
}

static void test_product(void **state)
{
    static const struct product_case cases[] = {
        { .batch = 1, .steps = 1, .depth = 1, .columns = 1, .directions = 1 },
        { .batch = 3,
          .steps = 2,
          .depth = 17,
          .columns = 66,
          .directions = 1,
          .activation = { CELLGATE_RELU, 0, 0 } },
        { .batch = 5,
          .steps = 6,
          .depth = 20,
          .columns = 12,
          .directions = 2,
          .ragged = 1 },
        { .batch = 5,
          .steps = 6,
          .depth = 4,
          .columns = 12,
          .directions = 2,
          .ragged = 1,
          .in_time = 1 },
        { .batch = 5,
          .steps = 6,
          .depth = 4,
          .columns = 12,
          .directions = 2,
          .ragged = 1,
          .first = 2,
          .chunk = 3,
          .no_bias = 1 },
        { .batch = 7,
          .steps = 13,
          .depth = 33,
          .columns = 70,
          .directions = 1,
          .vocabulary = 9,
          .activation = { CELLGATE_TANH, 0, 0 } },
        /* The large tile: as many of them as multiprocessors. */
        { .batch = 130,
          .steps = 2,
          .depth = 3,
          .columns = 128 * 65 + 3,
          .directions = 1,
          .activation = { CELLGATE_LINEAR, 0, 0 } },
    };

    (void)state;
    for (unsigned order = 0; order < 3; order++) {
        executor_set_order(order);
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
            check_product(&cases[i]);
    }
}

/* Grids of few blocks in y and z: more tiles of columns than that. */
static void test_product_many_tiles(void **state)
{
    static const struct product_case cases[] = {
        { .batch = 3,
          .steps = 2,
          .depth = 5,
          .columns = 64 * 7 + 9,
          .directions = 2,
          .ragged = 1 },
        { .batch = 30,
          .steps = 2,
          .depth = 3,
          .columns = 64 * 4 + 1,
          .directions = 1,
          .activation = { CELLGATE_TANH, 0, 0 } },
    };

    (void)state;
    executor_set_grid_most(4);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_product(&cases[i]);
    executor_set_grid_most(EXECUTOR_GRID_MOST);
}

static int take_launch(void *stream, const executor_launch *launch)
{
    (void)stream;
    (void)launch;
    return 0;
}

/* The largest shapes that the plugin takes: launches that a device takes. */
static void test_largest(void **state)
{
    const int32_t most = (1 << 28) - 1;
    struct cuk_product a = { .batch = 1, .end = 1, .directions = 2 };
    struct cuk_rows rows = { .batch = most, .steps = 1, .width = 1 };

    (void)state;
    executor_set_hook(take_launch);
    for (a.batch = 1; a.batch < most; a.batch = a.batch * 16 + 7)
        for (a.columns = 1; a.columns < 4 * most; a.columns += most / 7)
            assert_int_equal(cuk_product(&a, NULL), 0);
    assert_int_equal(cuk_activate(&rows, NULL), 0);
    assert_int_equal(cuk_softmax(&rows, NULL), 0);
    rows.width = 300;
    assert_int_equal(cuk_activate(&rows, NULL), 0);
    executor_set_hook(NULL);
}

/* ---- Activations, gathering, softmax ------------------------------------ */

static void check_activate(int width, int with_ids)
{
    enum { BATCH = 3, STEPS = 5, VOCABULARY = 4 };
    static const int32_t ids[BATCH * STEPS] = { 3, 0, 1, 2, 3, 0, 0, 1,
                                                2, 2, 1, 3, 0, 1, 2 };
    const cellgate_activation how = { CELLGATE_LEAKY_RELU, 0.3f, 0 };
    const int64_t pitch = width + 2;
    float *x = random_floats((size_t)(BATCH * STEPS * width), 4);
    float *y = random_floats((size_t)(BATCH * STEPS * pitch), 5);
    struct cuk_rows a = {
        .batch = BATCH,
        .steps = STEPS,
        .width = width,
        .activation = how,
        .x = x,
        .x_at = { with_ids ? STEPS : STEPS * width, with_ids ? 1 : width },
        .ids = with_ids ? ids : NULL,
        .y = y,
        .y_at = { pitch, BATCH * pitch },
    };

    for (size_t i = 0; i < (size_t)(BATCH * STEPS * pitch); i++)
        y[i] = OUTSIDE;
    assert_int_equal(cuk_activate(&a, NULL), 0);
    for (int b = 0; b < BATCH; b++)
        for (int t = 0; t < STEPS; t++) {
            const int row = b * STEPS + t;
            const float *from = x + (with_ids ? ids[row] : row) * width;
            const float *to = y + b * pitch + t * BATCH * pitch;

            for (int k = 0; k < width; k++)
                assert_near("activate", (double)to[k],
                            oracle_activate(&how, (double)from[k]), 1e-6);
            assert_true(to[width] == OUTSIDE);
        }
    free(x);
    free(y);
}

static void test_activate(void **state)
{
    static const int widths[] = { 1, 3, 64, 300, 1025 };

    (void)state;
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        check_activate(widths[i], 0);
        check_activate(widths[i], 1);
    }
}

/* Every kind, as the oracle has it: the mathematics is the OpenCL plugin's. */
static void test_every_activation(void **state)
{
    enum { COUNT = 241 };
    float x[COUNT], y[COUNT];

    (void)state;
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)(i - 120) * 0.17f;
    x[0] = NAN;
    x[1] = INFINITY;
    for (int kind = 0; kind < CELLGATE_ACTIVATION_COUNT; kind++) {
        const cellgate_activation how = { kind, 0.7f, 0.4f };
        const struct cuk_rows a = { .batch = 1,
                                    .steps = 1,
                                    .width = COUNT,
                                    .activation = how,
                                    .x = x,
                                    .y = y };

        assert_int_equal(cuk_activate(&a, NULL), 0);
        for (int i = 0; i < COUNT; i++) {
            const double want = oracle_activate(&how, (double)x[i]);
            char what[64];

            if (oracle_jump_distance(&how, (double)x[i]) < 1e-6)
                continue;
            (void)snprintf(what, sizeof what, "kind %d of %g", kind,
                           (double)x[i]);
            if (isinf(want))
                assert_true((double)y[i] == want);
            else
                assert_near(what, (double)y[i], want,
                            2e-6 * (1 + oracle_activation_scale(
                                            &how, (double)x[i], want)));
        }
    }
}

/* Only rows whose length is 0 change, or all of them without lengths. */
static void check_empty(const int32_t *lengths, int with_state)
{
    enum { BATCH = 3, ROWS = 4, STEPS = 2, WIDTH = 6, H = 3, C = 300, L = 2 };
    float y[BATCH * STEPS * WIDTH], last[BATCH * WIDTH];
    float h[L * ROWS * H], c[L * ROWS * C], h0[L * ROWS * H], c0[L * ROWS * C];
    const struct cuk_empty a = { .batch = BATCH,
                                 .steps = STEPS,
                                 .width = WIDTH,
                                 .layers = L,
                                 .state_rows = ROWS,
                                 .h_width = H,
                                 .c_width = C,
                                 .lengths = lengths,
                                 .y = y,
                                 .y_at = { WIDTH, BATCH * WIDTH },
                                 .last = last,
                                 .last_stride = WIDTH,
                                 .h0 = with_state ? h0 : NULL,
                                 .c0 = with_state ? c0 : NULL,
                                 .h = h,
                                 .c = c };

    for (int i = 0; i < L * ROWS * C; i++) {
        c[i] = OUTSIDE;
        c0[i] = (float)i;
    }
    for (int i = 0; i < L * ROWS * H; i++) {
        h[i] = OUTSIDE;
        h0[i] = (float)-i;
    }
    for (int i = 0; i < BATCH * STEPS * WIDTH; i++)
        y[i] = OUTSIDE;
    for (int i = 0; i < BATCH * WIDTH; i++)
        last[i] = OUTSIDE;
    assert_int_equal(cuk_empty(&a, NULL), 0);
    for (int i = 0; i < BATCH * STEPS * WIDTH; i++)
        assert_true(
            y[i] ==
            (!lengths || lengths[i / WIDTH % BATCH] == 0 ? 0 : OUTSIDE));
    for (int i = 0; i < BATCH * WIDTH; i++)
        assert_true(last[i] ==
                    (!lengths || lengths[i / WIDTH] == 0 ? 0 : OUTSIDE));
    for (int i = 0; i < L * ROWS * C; i++) {
        const int row = i / C % ROWS;
        const int is = row < BATCH && (!lengths || lengths[row] == 0);

        assert_true(c[i] == (!is ? OUTSIDE : with_state ? (float)i : 0));
    }
    for (int i = 0; i < L * ROWS * H; i++) {
        const int row = i / H % ROWS;
        const int is = row < BATCH && (!lengths || lengths[row] == 0);

        assert_true(h[i] == (!is ? OUTSIDE : with_state ? (float)-i : 0));
    }
}

static void test_empty(void **state)
{
    static const int32_t lengths[] = { 0, 2, 0 };

    (void)state;
    for (int with_state = 0; with_state < 2; with_state++) {
        check_empty(lengths, with_state);
        check_empty(NULL, with_state);
    }
}

static void check_softmax(int width, float likely)
{
    float *x = random_floats((size_t)(2 * width), 6);
    float *y = random_floats((size_t)(2 * width), 7);
    const struct cuk_rows a = { .batch = 2,
                                .steps = 1,
                                .width = width,
                                .x = x,
                                .x_at = { width, width },
                                .y = y,
                                .y_at = { width, width } };

    x[width / 3] = likely;
    x[width] = NAN; /* of the second row alone */
    assert_int_equal(cuk_softmax(&a, NULL), 0);
    for (int row = 0; row < 2; row++) {
        double total = 0;

        for (int k = 0; k < width; k++)
            total += exp((double)x[row * width + k] - (double)likely);
        for (int k = 0; k < width; k++) {
            const double want =
                exp((double)x[row * width + k] - (double)likely) / total;

            assert_near("softmax", (double)y[row * width + k], want,
                        4e-6 * want + 1e-37);
        }
    }
    free(x);
    free(y);
}

static void test_softmax(void **state)
{
    static const int widths[] = { 1, 2, 31, 257, 4097, 10000, 16385, 20001 };

    (void)state;
    for (unsigned order = 0; order < 3; order++) {
        executor_set_order(order);
        for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
            check_softmax(widths[i], 0.5f);
            check_softmax(widths[i], 120.0f);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pack_gates),
        cmocka_unit_test(test_pack_recurrent),
        cmocka_unit_test(test_pack_types),
        cmocka_unit_test(test_product),
        cmocka_unit_test(test_product_many_tiles),
        cmocka_unit_test(test_largest),
        cmocka_unit_test(test_activate),
        cmocka_unit_test(test_every_activation),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
