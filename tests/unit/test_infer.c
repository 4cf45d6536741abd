/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/fail_allocation.h"
#include "tests/unit/model_graph.h"

/* Values 0 to 7 are a node's inputs, 8 to 15 its outputs. */
static cg_shape shapes[16];
static const int32_t in[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
static const int32_t out[8] = { 8, 9, 10, 11, 12, 13, 14, 15 };

static void set_shape(int value, int32_t rank, int64_t a, int64_t b, int64_t c)
{
    shapes[value] = (cg_shape){ rank, { a, b, c } };
}

static cellgate_status infer(cg_node node, size_t inputs, size_t outputs,
                             cellgate_error *error)
{
    node.name = (char *)(uintptr_t) "n";
    if (node.inputs == NULL)
        node.inputs = (int32_t *)(uintptr_t)in;
    node.input_count = inputs;
    node.outputs = (int32_t *)(uintptr_t)out;
    node.output_count = outputs;
    return cg_node_infer(NULL, &node, shapes, error);
}

static void assert_shape(int value, int32_t rank, int64_t a, int64_t b,
                         int64_t c)
{
    assert_int_equal(shapes[value].rank, rank);
    assert_int_equal(shapes[value].extent[0], a);
    assert_int_equal(shapes[value].extent[1], b);
    if (rank > 2)
        assert_int_equal(shapes[value].extent[2], c);
}

static void assert_refused(cg_node node, size_t inputs, size_t outputs,
                           const char *text)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    const cg_shape before = shapes[8] = (cg_shape){ 1, { 77 } };

    assert_int_equal(infer(node, inputs, outputs, &error), CELLGATE_BAD_SHAPE);
    assert_string_equal(error.text, text);
    assert_memory_equal(&shapes[8], &before, sizeof before);
    assert_int_equal(infer(node, inputs, outputs, NULL), CELLGATE_BAD_SHAPE);
}

#define KIND(name) ((cg_node){ .kind = (name) })

static void same_shape(void **state)
{
    (void)state;
    set_shape(0, 3, 4, -1, 5);
    assert_int_equal(infer(graph_activation(CELLGATE_TANH), 1, 1, NULL), 0);
    assert_shape(8, 3, 4, -1, 5);
    assert_int_equal(infer(KIND(CG_SOFTMAX), 1, 1, NULL), 0);
    assert_int_equal(infer(KIND(CG_REVERSE), 1, 1, NULL), 0);
    assert_shape(8, 3, 4, -1, 5);
    assert_int_equal(infer(KIND(CG_NONZERO), 1, 1, NULL), 0);
    assert_shape(8, 3, 4, -1, 5);
    shapes[0].rank = 1;
    assert_refused(KIND(CG_REVERSE), 1, 1,
                   "n: the input has 1 axes; it must have 2 to 8");
}

static void embedding(void **state)
{
    const cg_node node = { .kind = CG_EMBEDDING, .as.embedding = { 9, 5 } };

    (void)state;
    set_shape(0, 2, 4, 6, 0);
    assert_int_equal(infer(node, 1, 1, NULL), 0);
    assert_shape(8, 3, 4, 6, 5);
    shapes[0].rank = 8;
    assert_refused(node, 1, 1, "n: the ids has 8 axes; it must have 1 to 7");
}

static void dense(void **state)
{
    (void)state;
    set_shape(0, 2, -1, 3, 0);
    assert_int_equal(infer(graph_dense(3, 7), 1, 1, NULL), 0);
    assert_shape(8, 2, -1, 7, 0);
    set_shape(0, 3, 2, 0, 3);
    assert_int_equal(infer(graph_dense(3, 7), 1, 1, NULL), 0);
    assert_shape(8, 3, 2, 0, 7);
    assert_refused(graph_dense(4, 7), 1, 1,
                   "n: the number of features is 3; it must be 4");
}

static void merge_and_slice(void **state)
{
    const cg_node merge = { .kind = CG_MERGE, .as.merge = CG_MERGE_SUM };
    const cg_node slice = { .kind = CG_SLICE,
                            .as.slice = { .begin = 2, .end = 5 } };

    (void)state;
    set_shape(0, 3, 2, -1, 6);
    assert_int_equal(infer(merge, 1, 1, NULL), 0);
    assert_shape(8, 3, 2, -1, 3);
    assert_int_equal(infer(slice, 1, 1, NULL), 0);
    assert_shape(8, 3, 2, -1, 3);
    shapes[0].extent[2] = -1;
    assert_int_equal(infer(merge, 1, 1, NULL), 0);
    assert_shape(8, 3, 2, -1, -1);
    assert_int_equal(infer(slice, 1, 1, NULL), 0);
    assert_shape(8, 3, 2, -1, 3);
    shapes[0].extent[2] = 5;
    assert_refused(merge, 1, 1, "n: 5 features have no two halves");
    shapes[0].extent[2] = 4;
    assert_refused(slice, 1, 1, "n: the range 2 to 5 is beyond 4 features");
}

static void slice_with_a_step(void **state)
{
    static const struct {
        int64_t extent, begin, end, step, wanted;
    } cases[] = {
        { 6, 0, 0, 2, 3 },   { 7, 0, 0, 2, 4 },   { 7, 0, 0, -2, 4 },
        { 7, 1, 7, 3, 2 },   { 7, 0, 0, 9, 1 },   { -1, 1, 7, 3, 2 },
        { -1, 0, 0, 2, -1 }, { -1, -4, 0, 3, 2 }, { -1, 2, -1, -2, -1 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const cg_node node = { .kind = CG_SLICE,
                               .as.slice = { cases[i].begin, cases[i].end, 1,
                                             cases[i].step } };

        set_shape(0, 3, 2, cases[i].extent, 5);
        assert_int_equal(infer(node, 1, 1, NULL), 0);
        assert_shape(8, 3, 2, cases[i].wanted, 5);
    }
}

static void concat(void **state)
{
    (void)state;
    set_shape(0, 3, -1, 6, 2);
    set_shape(1, 3, 4, -1, 3);
    set_shape(2, 3, 4, 6, 1);
    assert_int_equal(infer(KIND(CG_CONCAT), 3, 1, NULL), 0);
    assert_shape(8, 3, 4, 6, 6);
    assert_int_equal(infer(KIND(CG_CONCAT), 1, 1, NULL), 0);
    assert_shape(8, 3, -1, 6, 2);
    shapes[1].extent[2] = -1;
    assert_int_equal(infer(KIND(CG_CONCAT), 2, 1, NULL), 0);
    assert_shape(8, 3, 4, 6, -1);
    shapes[1].extent[1] = 7;
    assert_refused(KIND(CG_CONCAT), 2, 1,
                   "n: inputs differ on axis 1: 6 and 7");
    shapes[1].rank = 2;
    assert_refused(KIND(CG_CONCAT), 2, 1,
                   "n: an input has 2 axes; it must have 3");
    set_shape(0, 2, 1, INT64_MAX, 0);
    set_shape(1, 2, 1, 1, 0);
    assert_refused(KIND(CG_CONCAT), 2, 1,
                   "n: axis 1 of the output is too large");
}

static void masks(void **state)
{
    (void)state;
    set_shape(0, 3, -1, 6, 2);
    assert_int_equal(infer(KIND(CG_NOT_EQUAL), 1, 1, NULL), 0);
    assert_shape(8, 2, -1, 6, 0);
    set_shape(1, 2, 4, 6, 0);
    assert_int_equal(infer(KIND(CG_MASKED), 2, 1, NULL), 0);
    assert_shape(8, 3, 4, 6, 2);
    shapes[1].extent[1] = 5;
    assert_refused(KIND(CG_MASKED), 2, 1,
                   "n: inputs differ on axis 1: 6 and 5");
    shapes[1].rank = 3;
    assert_refused(KIND(CG_MASKED), 2, 1,
                   "n: the mask has 3 axes; it must have 2");
}

static void lstm(void **state)
{
    cg_node node = graph_lstm(3, 5, 2);

    (void)state;
    set_shape(0, 3, -1, 6, 3);
    set_shape(1, 2, 4, -1, 0);
    for (int i = 2; i < 6; i++)
        set_shape(i, 2, -1, 5, 0);
    assert_int_equal(infer(node, 6, 6, NULL), 0);
    assert_shape(8, 3, 4, 6, 10);
    assert_shape(9, 2, 4, 10, 0);
    for (int i = 10; i < 14; i++)
        assert_shape(i, 2, 4, 5, 0);

    node.as.lstm.shape.projection_size = 2;
    shapes[2].extent[1] = shapes[4].extent[1] = 2;
    assert_int_equal(infer(node, 6, 6, NULL), 0);
    assert_shape(8, 3, 4, 6, 4);
    assert_shape(9, 2, 4, 4, 0);
    assert_shape(10, 2, 4, 2, 0);
    assert_shape(11, 2, 4, 5, 0);
}

static void lstm_without_options(void **state)
{
    static int32_t bare[4] = { 0, CG_NO_VALUE, CG_NO_VALUE, CG_NO_VALUE };
    cg_node node = graph_lstm(3, 5, 1);

    (void)state;
    node.inputs = bare;
    set_shape(0, 3, 1, 0, 3);
    assert_int_equal(infer(node, 4, 4, NULL), 0);
    assert_shape(8, 3, 1, 0, 5);
    assert_shape(11, 2, 1, 5, 0);
}

static void lstm_refuses(void **state)
{
    const cg_node node = graph_lstm(3, 5, 1);

    (void)state;
    set_shape(0, 3, 4, 6, 2);
    set_shape(1, 2, 4, 6, 0);
    set_shape(2, 2, 4, 5, 0);
    set_shape(3, 2, 4, 5, 0);
    assert_refused(node, 4, 4, "n: the number of features is 2; it must be 3");
    shapes[0].extent[2] = 3;
    shapes[1].extent[0] = 3;
    assert_refused(node, 4, 4, "n: inputs differ on axis 0: 4 and 3");
    shapes[1].extent[0] = 4;
    shapes[1].rank = 3;
    assert_refused(node, 4, 4, "n: the mask has 3 axes; it must have 2");
    shapes[1].rank = 2;
    shapes[3].extent[1] = 4;
    assert_refused(node, 4, 4,
                   "n: the size of an initial state is 4; it must be 5");
    shapes[3].extent[1] = 5;
    shapes[3].rank = 3;
    assert_refused(node, 4, 4,
                   "n: an initial state has 3 axes; it must have 2");
    shapes[3].rank = 2;
    shapes[3].extent[0] = 9;
    assert_refused(node, 4, 4, "n: inputs differ on axis 0: 4 and 9");
    shapes[0].rank = 2;
    assert_refused(node, 4, 4, "n: the input has 2 axes; it must have 3");
}

static void outputs_have_to_fit_in_memory(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    const cg_node node = { .kind = CG_EMBEDDING,
                           .as.embedding = { 9, CG_MAX_SIZE } };

    (void)state;
    set_shape(0, 2, (int64_t)1 << 30, 1 << 10, 0);
    assert_int_equal(infer(node, 1, 1, &error), CELLGATE_BAD_SHAPE);
    assert_string_equal(error.text, "n: the output does not fit in memory");
    /* Nor with an axis of no extent or of an unknown one. */
    set_shape(0, 3, (int64_t)1 << 30, 1 << 10, 0);
    assert_int_equal(infer(node, 1, 1, NULL), CELLGATE_BAD_SHAPE);
    set_shape(0, 3, (int64_t)1 << 30, 1 << 10, -1);
    assert_int_equal(infer(node, 1, 1, NULL), CELLGATE_BAD_SHAPE);
    set_shape(0, 2, 1 << 10, 1 << 10, 0);
    assert_int_equal(infer(node, 1, 1, NULL), CELLGATE_OK);
}

static void elements_are_counted(void **state)
{
    cg_shape shape = { 3, { 4, 5, 6 } };

    (void)state;
    assert_int_equal(cg_shape_elements(&shape), 120);
    shape.extent[1] = 0;
    assert_int_equal(cg_shape_elements(&shape), 0);
    shape.extent[1] = CG_UNKNOWN;
    assert_int_equal(cg_shape_elements(&shape), -1);
    shape = (cg_shape){ 2, { INT64_MAX, 2 } };
    assert_int_equal(cg_shape_elements(&shape), -1);
    shape = (cg_shape){ 1, { INT64_MAX / 4 } };
    assert_int_equal(cg_shape_elements(&shape), -1);
    shape.rank = 0;
    assert_int_equal(cg_shape_elements(&shape), 1);
}

static cg_node reshape(int32_t keep, int32_t count, int64_t a, int64_t b)
{
    return (cg_node){ .kind = CG_RESHAPE,
                      .as.reshape = { { count, { a, b } }, keep } };
}

static void moving_kinds(void **state)
{
    const cg_node crop = { .kind = CG_SLICE,
                           .as.slice = { .begin = 1, .end = -2, .axis = 1 } };
    const cg_node pad = { .kind = CG_PAD,
                          .as.pad = { .before = 1, .after = 2, .axis = 1 } };
    const cg_node repeat = { .kind = CG_REPEAT,
                             .as.repeat = { .times = 3, .axis = 1 } };
    const cg_node join = { .kind = CG_CONCAT, .as.concat = 1 };

    (void)state;
    set_shape(0, 3, -1, -1, 4);
    assert_int_equal(infer(crop, 1, 1, NULL), 0);
    assert_shape(8, 3, -1, -1, 4);
    assert_int_equal(infer(pad, 1, 1, NULL), 0);
    assert_shape(8, 3, -1, -1, 4);
    assert_int_equal(infer(repeat, 1, 1, NULL), 0);
    assert_shape(8, 3, -1, -1, 4);
    shapes[0].extent[1] = 4;
    assert_int_equal(infer(crop, 1, 1, NULL), 0);
    assert_shape(8, 3, -1, 1, 4);
    assert_int_equal(infer(pad, 1, 1, NULL), 0);
    assert_shape(8, 3, -1, 7, 4);
    assert_int_equal(infer(repeat, 1, 1, NULL), 0);
    assert_shape(8, 3, -1, 12, 4);
    set_shape(1, 3, 2, 3, -1);
    assert_int_equal(infer(join, 2, 1, NULL), 0);
    assert_shape(8, 3, 2, 7, 4);
    shapes[0].extent[1] = 3;
    assert_refused(crop, 1, 1, "n: the range 1 to -2 is beyond 3 steps");
    shapes[0].extent[1] = INT64_MAX - 1;
    assert_refused(pad, 1, 1, "n: axis 1 of the output is too large");
    assert_refused(repeat, 1, 1, "n: axis 1 of the output is too large");
    set_shape(0, 1, 2, 0, 0);
    assert_refused(pad, 1, 1, "n: the input has 1 axes; it must have 2 to 8");
    set_shape(0, 2, 2, 6, 0);
    assert_refused((cg_node){ .kind = CG_CONCAT, .as.concat = 2 }, 1, 1,
                   "n: an input of 2 axes has no axis 2");
}

static void reshapes_and_permutations(void **state)
{
    const cg_node turn = { .kind = CG_PERMUTE,
                           .as.permute = { 3, { 0, 2, 1 } } };

    (void)state;
    set_shape(0, 3, -1, -1, 4);
    assert_int_equal(infer(reshape(1, 2, -1, 8), 1, 1, NULL), 0);
    assert_shape(8, 3, -1, -1, 8);
    assert_int_equal(infer(reshape(1, 2, 3, 8), 1, 1, NULL), 0);
    assert_shape(8, 3, -1, 3, 8);
    assert_int_equal(infer(turn, 1, 1, NULL), 0);
    assert_shape(8, 3, -1, 4, -1);
    shapes[0].extent[1] = 6;
    assert_int_equal(infer(reshape(1, 2, -1, 8), 1, 1, NULL), 0);
    assert_shape(8, 3, -1, 3, 8);
    assert_int_equal(infer(reshape(2, 2, -1, 2), 1, 1, NULL), 0);
    assert_shape(8, 4, -1, 6, 2);
    assert_refused(reshape(1, 2, 5, 5), 1, 1,
                   "n: 24 numbers do not fill the new shape, which takes 25");
    assert_refused(reshape(1, 2, -1, 9), 1, 1,
                   "n: 24 numbers do not fill the new shape, which takes a "
                   "multiple of 9");
    shapes[0].extent[1] = INT64_MAX / 2;
    assert_refused(reshape(1, 1, -1, 0), 1, 1,
                   "n: axis 1 of the output is too large");
    set_shape(0, 2, 2, 6, 0);
    assert_refused(turn, 1, 1, "n: the input has 2 axes; it must have 3");
}

static void merging_kinds(void **state)
{
    const cg_node dot = { .kind = CG_DOT, .as.dot = { 1, 2, 0, false } };

    (void)state;
    set_shape(0, 3, -1, -1, 1);
    set_shape(1, 3, 2, 1, 4);
    set_shape(2, 2, -1, 4, 0);
    assert_int_equal(infer(KIND(CG_COMBINE), 3, 1, NULL), 0);
    assert_shape(8, 3, 2, -1, 4);
    shapes[1].extent[1] = 5;
    assert_int_equal(infer(KIND(CG_COMBINE), 2, 1, NULL), 0);
    assert_shape(8, 3, 2, 5, 4);
    shapes[0].extent[1] = 3;
    assert_refused(KIND(CG_COMBINE), 2, 1,
                   "n: inputs differ on axis 1: 3 and 5");
    set_shape(0, 2, 1, 4, 0);
    set_shape(1, 2, 2, 4, 0);
    assert_refused(KIND(CG_COMBINE), 2, 1,
                   "n: inputs differ on axis 0: 1 and 2");
    set_shape(0, 3, -1, 4, 3);
    set_shape(1, 3, 2, 5, -1);
    assert_int_equal(infer(dot, 2, 1, NULL), 0);
    assert_shape(8, 3, -1, 3, 5);
    shapes[1].extent[2] = 6;
    assert_refused(dot, 2, 1,
                   "n: the second input's axis of the product is 6; it must "
                   "be 4");
    set_shape(0, 2, 3, 4, 0);
    set_shape(1, 2, 3, 4, 0);
    assert_int_equal(
        infer((cg_node){ .kind = CG_DOT, .as.dot = { 1, 1, 0, false } }, 2, 1,
              NULL),
        0);
    assert_shape(8, 2, 3, 1, 0);
    set_shape(0, 3, 2, 5, 3);
    set_shape(1, 2, 2, 4, 0);
    assert_refused(KIND(CG_SELECT), 2, 1,
                   "n: inputs differ on axis 1: 5 and 4");
    assert_int_equal(infer(KIND(CG_VALID), 1, 1, NULL), 0);
    assert_shape(8, 2, 2, 5, 0);
}

/* A request comes through here. */
static void nothing_is_allocated(void **state)
{
    (void)state;
    fail_allocation_begin(1);
    lstm(NULL);
    concat(NULL);
    assert_false(fail_allocation_end());
}

static void windows(void **state)
{
    cg_node node = { .kind = CG_WINDOW,
                     .as.window = { 3, 2, 2, CG_PADDING_VALID } };
    cg_node pool = { .kind = CG_POOL,
                     .as.pool.window = { 2, 2, 1, CG_PADDING_SAME } };

    (void)state;
    set_shape(0, 3, -1, 9, 4);
    assert_int_equal(infer(node, 1, 1, NULL), 0);
    assert_shape(8, 3, -1, 3, 12);
    assert_int_equal(infer(pool, 1, 1, NULL), 0);
    assert_shape(8, 3, -1, 5, 4);
    set_shape(0, 3, -1, -1, 4);
    assert_int_equal(infer(node, 1, 1, NULL), 0);
    assert_shape(8, 3, -1, -1, 12);
    set_shape(0, 3, -1, 4, 4);
    assert_refused(node, 1, 1, "n: 4 steps are fewer than its window of 5");
    set_shape(0, 2, -1, 4, 0);
    assert_refused(pool, 1, 1, "n: the input has 2 axes; it must have 3 to 8");
    set_shape(0, 3, -1, 9, INT64_MAX / 2);
    assert_refused(node, 1, 1, "n: the features of a window are too many");
}

static void reduction(void **state)
{
    cg_node node = { .kind = CG_REDUCE, .as.reduce.mode = CG_POOL_AVERAGE };

    (void)state;
    set_shape(0, 3, -1, -1, 4);
    set_shape(1, 2, -1, 6, 0);
    assert_int_equal(infer(node, 2, 1, NULL), 0);
    assert_shape(8, 2, -1, 4, 0);
    node.as.reduce.keep = true;
    assert_int_equal(infer(node, 2, 1, NULL), 0);
    assert_shape(8, 3, -1, 1, 4);
    set_shape(0, 3, -1, 5, 4);
    assert_refused(node, 2, 1, "n: inputs differ on axis 1: 5 and 6");
    set_shape(1, 3, -1, 6, 1);
    assert_refused(node, 2, 1, "n: the mask has 3 axes; it must have 2");
}

static void weights_over_axes(void **state)
{
    const cg_node norm = { .kind = CG_NORMALIZE,
                           .as.normalize.extents = { 2, { 5, 4 } } };
    const cg_node affine = { .kind = CG_AFFINE,
                             .as.affine.extents = { 2, { 5, 1 } } };

    (void)state;
    set_shape(0, 3, -1, -1, 4);
    assert_int_equal(infer(norm, 1, 1, NULL), 0);
    assert_shape(8, 3, -1, 5, 4);
    assert_int_equal(infer(affine, 1, 1, NULL), 0);
    assert_shape(8, 3, -1, 5, 4);
    set_shape(0, 3, -1, 6, 4);
    assert_refused(norm, 1, 1,
                   "n: axis 1 of the input is 6; its weights have 5");
    assert_refused(affine, 1, 1,
                   "n: axis 1 of the input is 6; its weights have 5");
    set_shape(0, 2, -1, 4, 0);
    assert_refused(norm, 1, 1, "n: the input has 2 axes; it must have 3 to 8");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows),
        cmocka_unit_test(reduction),
        cmocka_unit_test(weights_over_axes),
        cmocka_unit_test(same_shape),
        cmocka_unit_test(embedding),
        cmocka_unit_test(dense),
        cmocka_unit_test(merge_and_slice),
        cmocka_unit_test(slice_with_a_step),
        cmocka_unit_test(concat),
        cmocka_unit_test(masks),
        cmocka_unit_test(lstm),
        cmocka_unit_test(lstm_without_options),
        cmocka_unit_test(lstm_refuses),
        cmocka_unit_test(outputs_have_to_fit_in_memory),
        cmocka_unit_test(elements_are_counted),
        cmocka_unit_test(moving_kinds),
        cmocka_unit_test(reshapes_and_permutations),
        cmocka_unit_test(merging_kinds),
        cmocka_unit_test(nothing_is_allocated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
