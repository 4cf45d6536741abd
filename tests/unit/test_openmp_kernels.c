/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packing, and the product and step kernels over packed weights, against plain
 * loops in double precision; sizes that reach the kernels' own blocking, which
 * whole models of a test's size do not.
 */
#include "config.h"

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
static void *pack(struct cpu_matrix *matrix, int64_t vector,
                  const struct cpu_matrix_source *source)
{
    struct cpu_arena arena = { 0 };
    void *memory = NULL;

    cpu_matrix_pack(matrix, &arena, vector, source);
    assert_false(arena.overflow);
    assert_null(matrix->panels);
    assert_int_equal(posix_memalign(&memory, CPU_ALIGNMENT, arena.used), 0);
    arena.base = memory;
    arena.used = 0;
    cpu_matrix_pack(matrix, &arena, vector, source);
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
    void *memory = pack(&matrix, 2, &source);
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
    void *memory = pack(&matrix, 2, &source);

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

static void check_product(const struct cpu_kernels *kernels, int64_t rows,
                          int64_t depth, int64_t columns)
{
    float *weights = random_floats(depth * columns, 1, 1);
    float *bias = random_floats(columns, 1, 2);
    float *in = random_floats(rows * depth, 1, 3);
    float *out = random_floats(rows * columns + 1, 1, 4);
    const float **in_rows = malloc((size_t)rows * sizeof *in_rows);
    float **out_rows = malloc((size_t)rows * sizeof *out_rows);
    const struct cpu_matrix_source source = { false, depth, columns, weights,
                                              bias };
    struct cpu_matrix matrix;
    void *memory = pack(&matrix, kernels->vector, &source);
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

static void test_product(void **state)
{
    const struct cpu_kernels *kernels;
    int64_t rows;

    (void)state;
    EACH_LEVEL(kernels)
    {
        for (rows = 1; rows <= 14; rows++)
            check_product(kernels, rows, 1 + rows % 5, 3 + 7 * rows);
        check_product(kernels, 5, 40000, 3);   /* several ranges of depth */
        check_product(kernels, 150, 2300, 70); /* several blocks of rows */
    }
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
    const double scale = 1 / sqrt((double)depth);
    float *recurrent = random_floats(depth * 4 * hidden, scale, 1);
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
    void *memory = pack(&matrix, v, &source);
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

static void test_step(void **state)
{
    const struct cpu_kernels *kernels;
    int64_t rows;

    (void)state;
    EACH_LEVEL(kernels)
    {
        for (rows = 1; rows <= 14; rows++)
            check_step(kernels, rows, 3 * rows, 11 + rows, rows % 2 != 0);
        check_step(kernels, 8, 17000, 2, false); /* several ranges of depth */
        check_step(kernels, 200, 1500, 9, true); /* several blocks of rows */
    }
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
    kernels->softmax(row, words);
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
    assert_non_null(cpu_level("scalar"));
    assert_string_equal(cpu_level("scalar")->name, "scalar");
    assert_non_null(cpu_level("auto"));
    assert_null(cpu_level("nonsense"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pack_gates),
        cmocka_unit_test(test_pack_columns),
        cmocka_unit_test(test_arena_overflow),
        cmocka_unit_test(test_product),
        cmocka_unit_test(test_step),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_levels),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
