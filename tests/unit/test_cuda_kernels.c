/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CUDA plugin's sequence kernels on the executor, against the oracle. Each
 * case runs with the fibres in three orders.
 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/cuda/executor.h"
#include "tests/cuda/layer.h"

/* What every way of running a layer must get right. */
static const layer_case options[] = {
    { .batch = 1, .steps = 3, .hidden = 8 },
    { .batch = 1, .steps = 4, .hidden = 5, .initial = 3 },
    { .batch = 2, .steps = 3, .hidden = 9, .initial = 1, .reverse = 1 },
    { .batch = 3, .steps = 4, .hidden = 6, .initial = 2, .directions = 2 },
    { .batch = 4,
      .steps = 5,
      .hidden = 10,
      .lengths = LAYER_RAGGED,
      .directions = 2,
      .initial = 3 },
    { .batch = 4,
      .steps = 3,
      .hidden = 4,
      .lengths = LAYER_EMPTY,
      .reverse = 1,
      .initial = 3 },
    { .batch = 4, .steps = 3, .hidden = 4, .lengths = LAYER_EMPTY },
    { .batch = 2, .steps = 3, .hidden = 7, .peepholes = 1, .clip = 0.6f },
    { .batch = 2,
      .steps = 3,
      .hidden = 7,
      .coupled = 1,
      .directions = 2,
      .lengths = LAYER_RAGGED },
    { .batch = 2, .steps = 3, .hidden = 7, .activations = LAYER_HARD },
    { .batch = 2,
      .steps = 3,
      .hidden = 7,
      .activations = LAYER_MIXED,
      .directions = 2,
      .peepholes = 1 },
    { .batch = 3,
      .steps = 5,
      .hidden = 6,
      .chunk = 2,
      .initial = 3,
      .lengths = LAYER_RAGGED,
      .directions = 2,
      .time_major = 1 },
    { .batch = 3,
      .steps = 5,
      .hidden = 6,
      .chunk = 2,
      .in_time = 1,
      .lengths = LAYER_RAGGED,
      .directions = 2 },
    { .batch = 3,
      .steps = 4,
      .hidden = 5,
      .nan_row = 2,
      .lengths = LAYER_RAGGED },
    { .batch = 2, .steps = 3, .hidden = 5, .silent = 1 },
    { .batch = 3, .steps = 3, .hidden = 11, .type = CUK_F16 },
    { .batch = 3, .steps = 3, .hidden = 11, .type = CUK_BF16 },
};

/* Projections, which not every way does. */
static const layer_case projections[] = {
    { .batch = 2, .steps = 3, .hidden = 9, .projection = 5 },
    { .batch = 3,
      .steps = 4,
      .hidden = 7,
      .projection = 3,
      .directions = 2,
      .lengths = LAYER_RAGGED,
      .initial = 3 },
    { .batch = 5,
      .steps = 3,
      .hidden = 6,
      .projection = 35,
      .initial = 1,
      .lengths = LAYER_EMPTY,
      .type = CUK_F16,
      .peepholes = 1 },
    { .batch = 2,
      .steps = 5,
      .hidden = 6,
      .projection = 4,
      .chunk = 2,
      .coupled = 1,
      .clip = 0.5f,
      .activations = LAYER_MIXED,
      .type = CUK_BF16 },
};

static void check(const char *table, size_t number, const layer_case *is,
                  layer_way way)
{
    static const unsigned orders[] = { 0, 1, 5 };
    char name[128];

    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++) {
        executor_set_order(orders[i]);
        (void)snprintf(name, sizeof name, "%s %zu in order %u", table, number,
                       orders[i]);
        layer_check(name, is, way);
    }
}

#define CHECK_ALL(table, way)                                                  \
    for (size_t at = 0; at < sizeof(table) / sizeof(table)[0]; at++)           \
    check(#table, at, &(table)[at], way)

/* ---- A launch a step --------------------------------------------------- */

static int by_steps(const struct cuk_lstm *a)
{
    return cuk_step(a, NULL);
}

/* As a graph of two steps that is launched again and again. */
static int by_counter(const struct cuk_lstm *a)
{
    struct cuk_lstm graph = *a;
    int32_t counter = -1;
    int code = cuk_count(&counter, 0, 1, NULL);

    graph.first = 0;
    graph.end = 2;
    graph.counter = &counter;
    for (int step = 0; code == 0 && step < a->steps; step += 2) {
        code = cuk_step(&graph, NULL);
        if (code == 0)
            code = cuk_count(&counter, 2, 0, NULL);
    }
    return code;
}

static void test_step(void **state)
{
    /* Every tile, and depths beyond one part of it. */
    static const layer_case sizes[] = {
        { .batch = 1, .steps = 2, .hidden = 40 },
        { .batch = 8, .steps = 2, .hidden = 1030, .initial = 3 },
        { .batch = 11, .steps = 3, .hidden = 13, .lengths = LAYER_RAGGED },
        { .batch = 30,
          .steps = 3,
          .hidden = 9,
          .lengths = LAYER_RAGGED,
          .initial = 3 },
        { .batch = 131,
          .steps = 2,
          .hidden = 70,
          .lengths = LAYER_RAGGED,
          .initial = 3,
          .type = CUK_BF16 },
    };

    (void)state;
    CHECK_ALL(options, by_steps);
    CHECK_ALL(projections, by_steps);
    CHECK_ALL(sizes, by_steps);
}

/* Grids of few blocks in y and z: more tiles than that, some of them beyond the
   last. */
static void test_many_tiles(void **state)
{
    static const layer_case many[] = {
        { .batch = 600, .steps = 2, .hidden = 3, .lengths = LAYER_RAGGED },
        { .batch = 30,
          .steps = 2,
          .hidden = 5,
          .projection = 3,
          .directions = 2,
          .initial = 3,
          .lengths = LAYER_RAGGED },
    };

    (void)state;
    executor_set_grid_most(4);
    CHECK_ALL(many, by_steps);
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
    static const struct {
        int32_t batch, hidden, output;
    } cases[] = {
        { 262144, 4, 2 },        { (1 << 27) - 1, 1, 1 },
        { (1 << 27) - 1, 2, 1 }, { 1, (1 << 28) - 1, 1 },
        { 1, 2, (1 << 28) - 1 },
    };
    const float there = 0;
    const struct cuk_device one = { .multiprocessors = 1, .shared = 232448 };

    (void)state;
    executor_set_hook(take_launch);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct cuk_lstm a = { .batch = cases[i].batch,
                              .hidden = cases[i].hidden,
                              .output = cases[i].output,
                              .directions = 2,
                              .steps = 1,
                              .end = 1 };

        a.projection = a.hidden == a.output ? NULL : &there;
        assert_int_equal(cuk_step(&a, NULL), 0);
        if (a.hidden == a.output)
            assert_int_equal(cuk_block(&one, &a, NULL), 0);
    }
    executor_set_hook(NULL);
}

static void test_counted_steps(void **state)
{
    static const layer_case counted[] = {
        { .batch = 3,
          .steps = 5,
          .hidden = 6,
          .in_time = 1,
          .directions = 2,
          .lengths = LAYER_RAGGED,
          .initial = 3 },
        { .batch = 2, .steps = 4, .hidden = 9, .in_time = 1, .projection = 5 },
    };

    (void)state;
    CHECK_ALL(counted, by_counter);
}

/* ---- One block --------------------------------------------------------- */

/* As many multiprocessors as the case is meant for: rows one by one, or four.
 */
static struct cuk_device device = {
    .major = 9, .multiprocessors = 132, .shared = 232448, .cooperative = 1
};

static int in_one_block(const struct cuk_lstm *a)
{
    struct cuk_fit fit;

    cuk_block_fit(&device, a, &fit);
    assert_true(fit.fits);
    return cuk_block(&device, a, NULL);
}

static void test_block(void **state)
{
    static const layer_case sizes[] = {
        { .batch = 1, .steps = 11, .hidden = 20 }, /* beyond what is ahead */
        { .batch = 6,
          .steps = 9,
          .hidden = 40,
          .lengths = LAYER_RAGGED,
          .initial = 3 },
        { .batch = 3, .steps = 3, .hidden = 65, .type = CUK_F16 },
        { .batch = 3, .steps = 3, .hidden = 96, .directions = 2 },
        { .batch = 2, .steps = 3, .hidden = 97, .initial = 3 },
        { .batch = 5, .steps = 3, .hidden = 128, .initial = 1 },
    };

    (void)state;
    for (int many = 0; many < 2; many++) {
        device.multiprocessors = many ? 132 : 1;
        CHECK_ALL(options, in_one_block);
        CHECK_ALL(sizes, in_one_block);
    }
    device.multiprocessors = 132;
}

static void test_block_fit(void **state)
{
    struct cuk_lstm a = { .batch = 1, .directions = 1, .hidden = 129 };
    struct cuk_fit fit;

    (void)state;
    cuk_block_fit(&device, &a, &fit);
    assert_false(fit.fits);
    assert_non_null(strstr(fit.why, "129"));
    a.hidden = a.output = 128;
    cuk_block_fit(&device, &a, &fit);
    assert_true(fit.fits);
    assert_int_equal(fit.threads, 512);
    /* Three fours of the depth by 512 lanes, and two times h. */
    assert_int_equal(fit.shared, 3 * 4 * 4 * 4 * 512 + 2 * 128 * 4);
    device.shared = 65536;
    cuk_block_fit(&device, &a, &fit);
    assert_false(fit.fits);
    assert_non_null(strstr(fit.why, "65536"));
    device.shared = 232448;
    a.projection = &a;
    cuk_block_fit(&device, &a, &fit);
    assert_false(fit.fits);
    assert_non_null(strstr(fit.why, "projection"));
}

/* ---- A grid ------------------------------------------------------------ */

static int in_a_grid(const struct cuk_lstm *a)
{
    struct cuk_fit fit;

    cuk_persistent_fit(&device, a, &fit);
    assert_true(fit.fits);
    executor_set_limit((unsigned)device.multiprocessors);
    assert_true(fit.blocks <= device.multiprocessors);
    return cuk_persistent(&device, a, NULL);
}

static void test_persistent(void **state)
{
    static const layer_case sizes[] = {
        { .batch = 18,
          .steps = 3,
          .hidden = 12,
          .lengths = LAYER_RAGGED,
          .initial = 3 }, /* more rows than a chunk */
        { .batch = 35,
          .steps = 4,
          .hidden = 9,
          .lengths = LAYER_RAGGED,
          .directions = 2,
          .in_time = 1 },
        { .batch = 36, .steps = 2, .hidden = 5 }, /* all to the end */
        { .batch = 1, .steps = 6, .hidden = 21, .initial = 3 },
    };

    (void)state;
    device.multiprocessors = 6;
    CHECK_ALL(options, in_a_grid);
    CHECK_ALL(projections, in_a_grid);
    CHECK_ALL(sizes, in_a_grid);
    device.multiprocessors = 132;
}

/* Few multiprocessors, so that a block has many units and its registers do not
   hold their weights: each kind of block, and both kinds of row. */
static void test_persistent_blocks(void **state)
{
    static const struct {
        int multiprocessors;
        layer_case is;
    } cases[] = {
        { 2,
          { .batch = 3,
            .steps = 2,
            .hidden = 8,
            .initial = 3,
            .projection = 2050 } },
        { 1,
          { .batch = 1,
            .steps = 2,
            .hidden = 8,
            .initial = 3,
            .projection = 1100 } },
        { 1,
          { .batch = 3,
            .steps = 2,
            .hidden = 8,
            .initial = 3,
            .projection = 1100,
            .type = CUK_BF16 } },
        { 1,
          { .batch = 1,
            .steps = 2,
            .hidden = 11,
            .initial = 3,
            .projection = 1025 } },
        { 1,
          { .batch = 5,
            .steps = 2,
            .hidden = 11,
            .initial = 3,
            .projection = 1025 } },
        { 1,
          { .batch = 4,
            .steps = 2,
            .hidden = 12,
            .initial = 3,
            .projection = 1700,
            .type = CUK_F16 } },
        { 22, { .batch = 2, .steps = 2, .hidden = 260, .initial = 3 } },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        device.multiprocessors = cases[i].multiprocessors;
        check("blocks", i, &cases[i].is, in_a_grid);
    }
    device.multiprocessors = 132;
}

static void test_persistent_fit(void **state)
{
    struct cuk_lstm a = {
        .batch = 16, .directions = 1, .hidden = 1536, .output = 1536
    };
    struct cuk_fit fit;

    (void)state;
    cuk_persistent_fit(&device, &a, &fit);
    assert_true(fit.fits);
    assert_int_equal(fit.blocks, 128); /* of 12 units */
    a.directions = 2;
    cuk_persistent_fit(&device, &a, &fit);
    assert_false(fit.fits);
    assert_non_null(strstr(fit.why, "132"));
    a.hidden = a.output = 512;
    cuk_persistent_fit(&device, &a, &fit);
    assert_true(fit.fits);
    assert_int_equal(fit.blocks, 128); /* of 8, in two directions */
    a.batch = 100000;
    cuk_persistent_fit(&device, &a, &fit);
    assert_false(fit.fits);
    assert_non_null(strstr(fit.why, "batch 100000"));
    a.batch = 1;
    device.cooperative = 0;
    cuk_persistent_fit(&device, &a, &fit);
    assert_false(fit.fits);
    assert_non_null(strstr(fit.why, "cooperative"));
    device.cooperative = 1;
}

static int set_up(void **state)
{
    (void)state;
    return cuk_setup(&device);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step),
        cmocka_unit_test(test_many_tiles),
        cmocka_unit_test(test_largest),
        cmocka_unit_test(test_counted_steps),
        cmocka_unit_test(test_block),
        cmocka_unit_test(test_block_fit),
        cmocka_unit_test(test_persistent),
        cmocka_unit_test(test_persistent_blocks),
        cmocka_unit_test(test_persistent_fit),
    };

    return cmocka_run_group_tests(tests, set_up, NULL);
}
