/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packing, and the product and step kernels over packed weights, against plain
 * loops in double precision; sizes that reach the kernels' own blocking, which
 * whole models of a test's size do not.
 */
#include "config.h"

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plugins/openmp/pack.h"
#include "tests/oracle/random.h"
#include "tests/unit/openmp_levels.h"

static float *random_floats(int64_t count, double scale, uint64_t stream)
{
    random_source random = random_from(5, stream);
    float *made = malloc((size_t)count * sizeof *made);
    int64_t i;

    assert_non_null(made);
    for (i = 0; i < count; i++)
        made[i] = (float)random_between(&random, -scale, scale);
    return made;
}

/* Packs into memory of its own, which the caller frees. */
static void *pack(struct cpu_matrix *matrix, int64_t vector, enum cpu_pack type,
                  const struct cpu_matrix_source *source)
{
    const struct cpu_layout layout = { vector, type };
    struct cpu_arena arena = { 0 };
    void *memory = NULL;

    cpu_matrix_pack(matrix, &arena, &layout, source);
    assert_false(arena.overflow);
    assert_null(matrix->panels);
    assert_int_equal(posix_memalign(&memory, CPU_ALIGNMENT, arena.used), 0);
    arena.base = memory;
    arena.used = 0;
    cpu_matrix_pack(matrix, &arena, &layout, source);
    return memory;
}

static void test_pack_gates(void **state)
{
    /* Two rows, three units, gates i f c o side by side. */
    static const float weights[2 * 12] = { 10, 11, 12, 20, 21, 22, 30, 31,
                                           32, 40, 41, 42, 50, 51, 52, 60,
                                           61, 62, 70, 71, 72, 80, 81, 82 };
    static const float want[2][2][4][2] = {
        { { { 10, 11 }, { 20, 21 }, { 30, 31 }, { 40, 41 } },
          { { 50, 51 }, { 60, 61 }, { 70, 71 }, { 80, 81 } } },
        { { { 12, 0 }, { 22, 0 }, { 32, 0 }, { 42, 0 } },
          { { 52, 0 }, { 62, 0 }, { 72, 0 }, { 82, 0 } } },
    };
    const struct cpu_matrix_source source = { true, 2, 3, weights, weights };
    struct cpu_matrix matrix;
    void *memory = pack(&matrix, 2, CPU_PACK_F32, &source);
    int panel;

    (void)state;
    assert_int_equal(matrix.panel_count, 2);
    assert_memory_equal(matrix.panels, want, sizeof want);
    for (panel = 0; panel < 2; panel++)
        assert_memory_equal(matrix.bias + panel * 8, want[panel][0],
                            sizeof want[0][0]);
    free(memory);
}

static void test_pack_columns(void **state)
{
    static const float weights[9] = { 1, 2, 3, 4, 5, 6, 7, 8, 9 };
    static const float want[2][4][2] = {
        { { 1, 2 }, { 3, 4 }, { 5, 6 }, { 7, 8 } },
        { { 9, 0 }, { 0, 0 }, { 0, 0 }, { 0, 0 } },
    };
    static const float zeros[16] = { 0 };
    const struct cpu_matrix_source source = { false, 1, 9, weights, NULL };
    struct cpu_matrix matrix;
    void *memory = pack(&matrix, 2, CPU_PACK_F32, &source);

    (void)state;
    assert_int_equal(matrix.panel_count, 2);
    assert_memory_equal(matrix.panels, want, sizeof want);
    assert_memory_equal(matrix.bias, zeros, sizeof zeros);
    free(memory);
}

static void test_arena_overflow(void **state)
{
    struct cpu_arena arena = { 0 };

    (void)state;
    (void)cpu_arena_take(&arena, 3, 5);
    assert_int_equal(arena.used, CPU_ALIGNMENT);
    assert_false(arena.overflow);
    (void)cpu_arena_take(&arena, INT64_MAX, 8);
    assert_true(arena.overflow);
    arena = (struct cpu_arena){ .used = SIZE_MAX - 10 };
    (void)cpu_arena_take(&arena, 1, 1);
    assert_true(arena.overflow);
}

/* Sum of bias and products of one output, in double. */
static double exact_sum(const float *in, const float *weights, int64_t depth,
                        int64_t stride, int64_t column, double sum)
{
    int64_t k;

    for (k = 0; k < depth; k++)
        sum += (double)in[k] * (double)weights[k * stride + column];
    return sum;
}

static void assert_close(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance)) {
        print_error("%.9g is not %.9g\n", got, want);
        fail();
    }
}

/*
 * Weights [depth][columns] up to `scale`, a power of two. Unless they are kept
 * as float32 they are multiples of scale / 128, and one of each column is
 * 127 / 128 of it: every type of weights has them exactly.
 */
static float *random_weights(enum cpu_pack type, int64_t depth, int64_t columns,
                             double scale)
{
    float *made = random_floats(depth * columns, scale, 1);
    int64_t i;

    if (type == CPU_PACK_F32)
        return made;
    for (i = 0; i < depth * columns; i++)
        made[i] = (float)(trunc((double)made[i] / scale * 127) / 128 * scale);
    for (i = 0; i < columns; i++)
        made[i % depth * columns + i] = (float)(scale * 127 / 128);
    return made;
}

static void check_product(const struct cpu_kernels *kernels, int64_t rows,
                          int64_t depth, int64_t columns)
{
    float *weights = random_weights(kernels->pack, depth, columns, 1);
    float *bias = random_floats(columns, 1, 2);
    float *in = random_floats(rows * depth, 1, 3);
    float *out = random_floats(rows * columns + 1, 1, 4);
    const float **in_rows = malloc((size_t)rows * sizeof *in_rows);
    float **out_rows = malloc((size_t)rows * sizeof *out_rows);
    const struct cpu_matrix_source source = { false, depth, columns, weights,
                                              bias };
    struct cpu_matrix matrix;
    void *memory = pack(&matrix, kernels->vector, kernels->pack, &source);
    const struct cpu_product product = { .matrix = &matrix,
                                         .in = in_rows,
                                         .out = out_rows,
                                         .columns = columns,
                                         .rows = rows,
                                         .end_panel = matrix.panel_count };
    const float guard = out[rows * columns];
    int64_t r, j;

    assert_true(in_rows && out_rows);
    for (r = 0; r < rows; r++) {
        in_rows[r] = in + r * depth;
        out_rows[r] = out + r * columns;
    }
    in[(rows - 1) * depth] = NAN; /* of the last row alone */
    kernels->product(&product);
    for (r = 0; r < rows; r++)
        for (j = 0; j < columns; j++) {
            float got = out[r * columns + j];

            if (r == rows - 1)
                assert_true(isnan(got));
            else
                assert_close(
                    got,
                    exact_sum(in_rows[r], weights, depth, columns, j, bias[j]),
                    1e-6 + 1e-7 * (double)depth); /* rounded sums */
        }
    assert_true(out[rows * columns] == guard);
    free(memory);
    free(weights);
    free(bias);
    free(in);
    free(out);
    free((void *)in_rows);
    free(out_rows);
}

/* A product also finds each row's largest result, which may be below 0, where
   lanes beyond the last column stay. */
static void check_largest(const struct cpu_kernels *kernels, int64_t rows,
                          int64_t depth, int64_t columns)
{
    float *weights = random_weights(kernels->pack, depth, columns, 1);
    float *in = random_floats(rows * depth, 1, 3);
    float *bias = malloc((size_t)columns * sizeof *bias);
    float *out = malloc((size_t)(rows * columns) * sizeof *out);
    float *largest = malloc((size_t)(rows * kernels->vector) * sizeof *largest);
    const float **in_rows = malloc((size_t)rows * sizeof *in_rows);
    float **out_rows = malloc((size_t)rows * sizeof *out_rows);
    const struct cpu_matrix_source source = { false, depth, columns, weights,
                                              bias };
    struct cpu_matrix matrix;
    struct cpu_product product = { .matrix = &matrix,
                                   .in = in_rows,
                                   .out = out_rows,
                                   .columns = columns,
                                   .rows = rows,
                                   .largest = largest };
    void *memory;
    int64_t r, j;

    assert_true(bias && out && largest && in_rows && out_rows);
    for (j = 0; j < columns; j++)
        bias[j] = -1e4f;
    memory = pack(&matrix, kernels->vector, kernels->pack, &source);
    product.end_panel = matrix.panel_count;
    for (j = 0; j < rows * kernels->vector; j++)
        largest[j] = -INFINITY;
    for (r = 0; r < rows; r++) {
        in_rows[r] = in + r * depth;
        out_rows[r] = out + r * columns;
    }
    kernels->product(&product);
    for (r = 0; r < rows; r++) {
        float want = -INFINITY, got = -INFINITY;

        for (j = 0; j < columns; j++)
            want = fmaxf(want, out_rows[r][j]);
        for (j = 0; j < kernels->vector; j++)
            got = fmaxf(got, largest[r * kernels->vector + j]);
        assert_true(got == want && got < 0);
    }
    free(memory);
    free(weights);
    free(in);
    free(bias);
    free(out);
    free(largest);
    free((void *)in_rows);
    free(out_rows);
}

static void check_products(const struct cpu_kernels *kernels)
{
    int64_t rows;

    for (rows = 1; rows <= 14; rows++)
        check_product(kernels, rows, 1 + rows % 5, 3 + 7 * rows);
    for (rows = 1; rows <= 14; rows++)
        check_largest(kernels, rows, 1 + rows % 5, 3 + 7 * rows);
    check_largest(kernels, 9, 2000, 70);   /* several ranges of depth */
    check_product(kernels, 5, 40000, 3);   /* likewise */
    check_product(kernels, 150, 2300, 70); /* several blocks of rows */
    if (kernels->pack == CPU_PACK_INT8)
        check_product(kernels, 7, 140000, 3); /* as for float32 */
}

static void test_product(void **state)
{
    const struct cpu_kernels *kernels;
    int pack_at;

    (void)state;
    for (pack_at = 0; pack_at < CPU_PACKS; pack_at++)
        EACH_LEVEL_OF(kernels, (enum cpu_pack)pack_at)
    check_products(kernels);
}

/* A step by the formulas of plugin.h, standard activations. */
static void exact_step(const float *gates, const float *h,
                       const float *recurrent, int64_t depth, int64_t hidden,
                       const float *c, int64_t unit, double *c_out, double *out)
{
    double z[4];
    int g;

    for (g = 0; g < 4; g++)
        z[g] = exact_sum(h, recurrent, depth, 4 * hidden, g * hidden + unit,
                         gates[g]);
    *c_out = c[unit] / (1 + exp(-z[1])) + tanh(z[2]) / (1 + exp(-z[0]));
    *out = tanh(*c_out) / (1 + exp(-z[3]));
}

static void check_step(const struct cpu_kernels *kernels, int64_t rows,
                       int64_t depth, int64_t hidden, bool descending)
{
    const int64_t v = kernels->vector, panels = (hidden + v - 1) / v;
    const double scale = exp2(-rint(log2((double)depth) / 2));
    float *recurrent = random_weights(kernels->pack, depth, 4 * hidden, scale);
    float *gates = random_floats(rows * panels * 4 * v, 2, 2);
    float *kept = random_floats(rows * panels * 4 * v, 2, 2);
    float *h = random_floats(rows * depth, 1, 3);
    float *c = random_floats(rows * panels * v, 1, 4);
    float *before = random_floats(rows * panels * v, 1, 4);
    float *out = random_floats(rows * hidden, 1, 5);
    const float **h_rows = malloc((size_t)rows * sizeof *h_rows);
    float **out_rows = malloc((size_t)rows * sizeof *out_rows);
    const struct cpu_matrix_source source = { true, depth, hidden, recurrent,
                                              NULL };
    const struct cpu_cell cell = { .standard = true };
    struct cpu_matrix matrix;
    void *memory = pack(&matrix, v, kernels->pack, &source);
    const struct cpu_step step = {
        .cell = &cell,
        .kernel = &matrix,
        .recurrent = &matrix,
        .gates = gates,
        .gates_stride = panels * 4 * v,
        .h = h_rows,
        .c = c,
        .c_stride = panels * v,
        .out = out_rows,
        .rows = rows,
        .end_panel = panels,
        .descending = descending,
    };
    int64_t r, unit;

    assert_true(h_rows && out_rows);
    for (r = 0; r < rows; r++) {
        h_rows[r] = h + r * depth;
        out_rows[r] = out + r * hidden;
    }
    kernels->step(&step);
    for (r = 0; r < rows; r++)
        for (unit = 0; unit < hidden; unit++) {
            float z[4];
            double want_c, want;
            int g;

            for (g = 0; g < 4; g++)
                z[g] = kept[r * panels * 4 * v + (unit / v) * 4 * v + g * v +
                            unit % v];
            exact_step(z, h_rows[r], recurrent, depth, hidden,
                       before + r * panels * v, unit, &want_c, &want);
            assert_close(c[r * panels * v + unit], want_c, 1e-5);
            assert_close(out[r * hidden + unit], want, 1e-5);
        }
    free(memory);
    free(recurrent);
    free(gates);
    free(kept);
    free(h);
    free(c);
    free(before);
    free(out);
    free((void *)h_rows);
    free(out_rows);
}

static void check_steps(const struct cpu_kernels *kernels)
{
    int64_t rows;

    for (rows = 1; rows <= 14; rows++)
        check_step(kernels, rows, 3 * rows, 11 + rows, rows % 2 != 0);
    check_step(kernels, 8, 17000, 2, false); /* several ranges of depth */
    check_step(kernels, 200, 1500, 9, true); /* several blocks of rows */
    if (kernels->pack == CPU_PACK_INT8)
        check_step(kernels, 7, 70000, 2, false); /* as for float32 */
}

static void test_step(void **state)
{
    const struct cpu_kernels *kernels;
    int pack_at;

    (void)state;
    for (pack_at = 0; pack_at < CPU_PACKS; pack_at++)
        EACH_LEVEL_OF(kernels, (enum cpu_pack)pack_at)
    check_steps(kernels);
}

/* ---- Narrow weights ----------------------------------------------------- */

/* What the bits of a float16 stand for. */
static double half_value(uint16_t bits)
{
    const int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    const double sign = bits & 0x8000 ? -1 : 1;

    if (exponent == 31)
        return mantissa != 0 ? (double)NAN : sign * (double)INFINITY;
    return sign * (exponent == 0 ? ldexp(mantissa, -24)
                                 : ldexp(1024 + mantissa, exponent - 25));
}

/* Every float16, the float half way to the next one, and both neighbours of
   that one. */
static void test_to_f16(void **state)
{
    uint32_t bits;

    (void)state;
    for (bits = 0; bits < 0x7c00; bits++) {
        const float value = (float)half_value((uint16_t)bits);
        const double next =
            bits + 1 == 0x7c00 ? 65536 : half_value((uint16_t)(bits + 1));
        const float middle = (float)(((double)value + next) / 2);
        const uint32_t even = bits + (bits & 1);

        assert_int_equal(cpu_to_f16(value), bits);
        assert_int_equal(cpu_to_f16(-value), bits | 0x8000);
        assert_int_equal(cpu_to_f16(middle), even);
        assert_int_equal(cpu_to_f16(-middle), even | 0x8000);
        assert_int_equal(cpu_to_f16(nextafterf(middle, 0)), bits);
        assert_int_equal(cpu_to_f16(nextafterf(middle, INFINITY)), bits + 1);
    }
    assert_int_equal(cpu_to_f16(INFINITY), 0x7c00);
    assert_int_equal(cpu_to_f16(-INFINITY), 0xfc00);
    assert_int_equal(cpu_to_f16(1e30f), 0x7c00);
    assert_true(isnan(half_value(cpu_to_f16(NAN))));
}

/* A product with 1, which gives the weights as the kernels widen them. */
static void widen(const struct cpu_kernels *kernels, const float *weights,
                  int64_t columns, float *out)
{
    const float one = 1;
    const float *in = &one;
    const struct cpu_matrix_source source = { false, 1, columns, weights,
                                              NULL };
    struct cpu_matrix matrix;
    void *memory = pack(&matrix, kernels->vector, kernels->pack, &source);
    const struct cpu_product product = { .matrix = &matrix,
                                         .in = &in,
                                         .out = &out,
                                         .columns = columns,
                                         .rows = 1,
                                         .end_panel = matrix.panel_count };

    kernels->product(&product);
    free(memory);
}

static void test_widen_f16(void **state)
{
    const struct cpu_kernels *kernels;
    static float weights[65536], out[65536];
    int bits;

    (void)state;
    for (bits = 0; bits < 65536; bits++)
        weights[bits] = (float)half_value((uint16_t)bits);
    EACH_LEVEL_OF(kernels, CPU_PACK_F16)
    {
        widen(kernels, weights, 65536, out);
        for (bits = 0; bits < 65536; bits++)
            if (isnan(weights[bits]))
                assert_true(isnan(out[bits]));
            else
                assert_true(weights[bits] == out[bits]);
    }
}

/* The bound that narrow.h gives, columns of zeros and of very small weights. */
static void test_int8(void **state)
{
    enum { DEPTH = 37, COLUMNS = 9 };
    static const float magnitudes[COLUMNS] = { 1,     0, 1e-30f, 3e38f, 1e-44f,
                                               1e-3f, 7, 127,    0.1f };
    float *weights = random_floats(DEPTH * COLUMNS, 1, 9);
    const struct cpu_kernels *kernels;
    int64_t i, j;

    (void)state;
    for (i = 0; i < DEPTH * COLUMNS; i++)
        weights[i] *= magnitudes[i % COLUMNS];
    EACH_LEVEL_OF(kernels, CPU_PACK_INT8)
    {
        const struct cpu_matrix_source source = { false, DEPTH, COLUMNS,
                                                  weights, NULL };
        float in[DEPTH] = { 0 }, result[COLUMNS], *out = result;
        const float *rows = in;
        struct cpu_matrix matrix;
        void *memory = pack(&matrix, kernels->vector, CPU_PACK_INT8, &source);
        const struct cpu_product product = { .matrix = &matrix,
                                             .in = &rows,
                                             .out = &out,
                                             .columns = COLUMNS,
                                             .rows = 1,
                                             .end_panel = matrix.panel_count };

        for (i = 0; i < DEPTH; i++) {
            in[i] = 1;
            kernels->product(&product);
            in[i] = 0;
            for (j = 0; j < COLUMNS; j++) {
                double most = 0;
                int64_t k;

                for (k = 0; k < DEPTH; k++)
                    most = fmax(most, fabs((double)weights[k * COLUMNS + j]));
                assert_close(result[j], weights[i * COLUMNS + j],
                             most / 127 / 2 * 1.00001 + FLT_MIN);
            }
        }
        free(memory);
    }
    free(weights);
}

static void test_narrow_check(void **state)
{
    const float weights[] = { 1, -65504, 65505, INFINITY };
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)state;
    assert_int_equal(cpu_narrow_check(CPU_PACK_F32, 3, weights, 4, &error),
                     CELLGATE_OK);
    assert_int_equal(cpu_narrow_check(CPU_PACK_F16, 3, weights, 2, &error),
                     CELLGATE_OK);
    assert_int_equal(cpu_narrow_check(CPU_PACK_F16, 3, weights, 3, &error),
                     CELLGATE_UNSUPPORTED);
    assert_string_equal(error.text,
                        "op 3 has a weight of 65505; float16 ends at 65504");
    assert_int_equal(cpu_narrow_check(CPU_PACK_INT8, 3, weights, 3, &error),
                     CELLGATE_OK);
    assert_int_equal(cpu_narrow_check(CPU_PACK_INT8, 3, weights, 4, &error),
                     CELLGATE_UNSUPPORTED);
}

/* A large vocabulary of which one word has most of the probability: the sum of
   the others counts all the same. Each probability against double. */
static void check_softmax(const struct cpu_kernels *kernels, int64_t words,
                          float likely)
{
    float *row = random_floats(words, 1, 77), *before;
    double total = 0, worst = 0;

    before = malloc((size_t)words * sizeof *before);
    assert_non_null(before);
    row[words / 3] = likely;
    memcpy(before, row, (size_t)words * sizeof *row);
    for (int64_t i = 0; i < words; i++)
        total += exp((double)before[i]);
    softmax_in_place(kernels, row, words);
    for (int64_t i = 0; i < words; i++)
        worst = fmax(worst,
                     fabs((double)row[i] * total / exp((double)before[i]) - 1));
    if (!(worst < 2e-6))
        fail_msg("%s: of %d words a probability is off by %g of itself",
                 kernels->name, (int)words, worst);
    free(row);
    free(before);
}

static void test_softmax(void **state)
{
    static const int64_t words[] = { 1, 3, 16, 17, 257, 10000, 300007 };
    const struct cpu_kernels *kernels;
    size_t at;

    (void)state;
    EACH_LEVEL(kernels)
    for (at = 0; at < sizeof words / sizeof words[0]; at++) {
        check_softmax(kernels, words[at], 0);
        check_softmax(kernels, words[at], 12);
    }
}

static void test_levels(void **state)
{
    (void)state;
    assert_non_null(cpu_level("scalar", CPU_PACK_F32));
    assert_string_equal(cpu_level("scalar", CPU_PACK_F32)->name, "scalar");
    assert_non_null(cpu_level("auto", CPU_PACK_F32));
    assert_null(cpu_level("nonsense", CPU_PACK_F32));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pack_gates),
        cmocka_unit_test(test_pack_columns),
        cmocka_unit_test(test_arena_overflow),
        cmocka_unit_test(test_product),
        cmocka_unit_test(test_step),
        cmocka_unit_test(test_to_f16),
        cmocka_unit_test(test_widen_f16),
        cmocka_unit_test(test_int8),
        cmocka_unit_test(test_narrow_check),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_levels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
