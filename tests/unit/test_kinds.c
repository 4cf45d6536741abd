/* SPDX-License-Identifier: Apache-2.0 */
/* The table of kinds, attributes.c and weights.c. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/model/kinds.h"
#include "tests/unit/model_graph.h"

static void the_table_is_complete(void **state)
{
    (void)state;
    for (int i = 0; i < (int)CG_KIND_COUNT; i++) {
        const cg_kind_entry *kind = cg_kind_get(i);

        assert_non_null(kind);
        assert_non_null(kind->name);
        assert_non_null(kind->infer);
        assert_true(kind->min_inputs >= 1);
        assert_true(kind->max_inputs >= kind->min_inputs);
        assert_true(kind->outputs >= 1);
        assert_int_equal(kind->weight == NULL, kind->weight_count == NULL);
        assert_int_equal(cg_kind_find(kind->name), i);
        for (size_t j = 0; j < kind->attribute_count; j++) {
            assert_true(kind->attributes[j].offset >= offsetof(cg_node, as));
            assert_int_equal(kind->attributes[j].choices != NULL,
                             kind->attributes[j].type == CG_ATTRIBUTE_CHOICE);
            for (size_t k = 0; k < j; k++)
                assert_int_not_equal(kind->attributes[j].offset,
                                     kind->attributes[k].offset);
        }
    }
    assert_null(cg_kind_get(-1));
    assert_null(cg_kind_get(CG_KIND_COUNT));
    assert_int_equal(cg_kind_find("lstm_cell"), -1);
}

/* The names of model.h are those of the table. */
static void the_names_agree(void **state)
{
    (void)state;
#define NAME_AGREES(kind, text)                                                \
    assert_string_equal(cg_kind_get(CG_##kind)->name, text);
    CG_KIND_LIST(NAME_AGREES)
#undef NAME_AGREES
}

static void assert_check(cg_node node, bool good)
{
    cellgate_error error = CELLGATE_ERROR_INIT;

    node.name = (char *)(uintptr_t) "n";
    node.layer = (char *)(uintptr_t) "layer 1 of 1, 'n' (Kind)";
    assert_int_equal(cg_node_check(&node, &error),
                     good ? CELLGATE_OK : CELLGATE_BAD_FILE);
    if (!good)
        assert_memory_equal(error.text, "layer 1 of 1, 'n' (Kind): ", 26);
}

static void sizes_are_bounded(void **state)
{
    static const int64_t sizes[] = { 1,        CG_MAX_SIZE,     0,
                                     -1,       CG_MAX_SIZE + 1, INT64_MAX,
                                     INT64_MIN };

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        cg_node lstm = graph_lstm(sizes[i], 2, 1);

        assert_check(graph_dense(sizes[i], 2), i < 2);
        assert_check(graph_dense(2, sizes[i]), i < 2);
        assert_check(lstm, i < 2);
        assert_check(graph_lstm(2, sizes[i], 1), i < 2);
        lstm.as.lstm.shape.input_size = 1;
        lstm.as.lstm.shape.projection_size = sizes[i];
        assert_check(lstm, i < 3); /* 0: no projection */
        assert_check(
            (cg_node){ .kind = CG_EMBEDDING, .as.embedding = { sizes[i], 1 } },
            i < 2);
        assert_check(
            (cg_node){ .kind = CG_EMBEDDING, .as.embedding = { 1, sizes[i] } },
            i < 2);
    }
}

static void lstm_attributes(void **state)
{
    cg_node node = graph_lstm(3, 2, 1);

    (void)state;
    assert_check(node, true);
    node.as.lstm.shape.directions = 0;
    assert_check(node, false);
    node.as.lstm.shape.directions = 3;
    assert_check(node, false);
    node.as.lstm.shape.directions = 2; /* but the arity of one */
    assert_check(node, false);
    node = graph_lstm(3, 2, 2);
    assert_check(node, true);
    node.as.lstm.shape.reverse = 1;
    assert_check(node, false);
    node = graph_lstm(3, 2, 1);
    node.as.lstm.shape.clip = -1;
    assert_check(node, false);
    node.as.lstm.shape.clip = NAN;
    assert_check(node, false);
    node.as.lstm.shape.clip = 3;
    assert_check(node, true);
    node.as.lstm.shape.activations[0][2].kind = CELLGATE_ACTIVATION_COUNT;
    assert_check(node, false);
    node.as.lstm.shape.activations[0][2] =
        (cellgate_activation){ CELLGATE_ELU, INFINITY, 0 };
    assert_check(node, false);
    /* The second direction's mean nothing here. */
    node = graph_lstm(3, 2, 1);
    node.as.lstm.shape.activations[1][0].kind = -1;
    assert_check(node, true);
}

static void other_attributes(void **state)
{
    (void)state;
    assert_check(graph_activation(-1), false);
    assert_check(graph_activation(CELLGATE_SCALED_TANH), true);
    assert_check((cg_node){ .kind = CG_MERGE, .as.merge = (cg_merge_mode)2 },
                 true);
    assert_check((cg_node){ .kind = CG_MERGE, .as.merge = (cg_merge_mode)3 },
                 false);
    assert_check((cg_node){ .kind = CG_MERGE, .as.merge = (cg_merge_mode)-1 },
                 false);
    assert_check(
        (cg_node){ .kind = CG_SLICE, .as.slice = { .begin = 0, .end = 1 } },
        true);
    assert_check(
        (cg_node){ .kind = CG_SLICE, .as.slice = { .begin = 1, .end = 1 } },
        false);
    assert_check(
        (cg_node){ .kind = CG_SLICE, .as.slice = { .begin = -2, .end = -1 } },
        true);
    assert_check(
        (cg_node){ .kind = CG_SLICE, .as.slice = { .begin = -1, .end = -1 } },
        false);
    assert_check((cg_node){ .kind = CG_SLICE,
                            .as.slice = { .begin = -CG_MAX_SIZE - 1 } },
                 false);
    assert_check((cg_node){ .kind = CG_COMBINE,
                            .as.combine = CG_COMBINE_DIVIDE,
                            .input_count = 3 },
                 false);
    assert_check((cg_node){ .kind = CG_SLICE,
                            .as.slice = { .begin = 0, .end = INT64_MAX } },
                 false);
    for (int sign = -1; sign <= 1; sign += 2) {
        cg_node node = { .kind = CG_SLICE,
                         .as.slice = { .end = 1, .step = sign * CG_MAX_SIZE } };

        assert_check(node, true);
        node.as.slice.step += sign;
        assert_check(node, false);
    }
    assert_check((cg_node){ .kind = CG_SLICE,
                            .as.slice = { .end = 1, .step = INT64_MIN } },
                 false);
    assert_check((cg_node){ .kind = CG_NOT_EQUAL, .as.not_equal = NAN }, false);
    assert_check((cg_node){ .kind = CG_NOT_EQUAL, .as.not_equal = -1 }, true);
}

static cg_node reshape(int32_t keep, int32_t count, int64_t a, int64_t b)
{
    return (cg_node){ .kind = CG_RESHAPE,
                      .as.reshape = { { count, { a, b } }, keep } };
}

static cg_node permute(int32_t count, int64_t a, int64_t b, int64_t c)
{
    return (cg_node){ .kind = CG_PERMUTE,
                      .as.permute = { count, { a, b, c } } };
}

static void moving_attributes(void **state)
{
    (void)state;
    assert_check((cg_node){ .kind = CG_SLICE,
                            .as.slice = { .begin = 1, .end = -1, .axis = 7 } },
                 true);
    assert_check((cg_node){ .kind = CG_SLICE,
                            .as.slice = { .begin = 0, .end = 1, .axis = 8 } },
                 false);
    assert_check((cg_node){ .kind = CG_CONCAT, .as.concat = -1 }, false);
    assert_check((cg_node){ .kind = CG_PAD, .as.pad = { 0, 0, 1 } }, true);
    assert_check((cg_node){ .kind = CG_PAD, .as.pad = { 0, 0, 0 } }, false);
    assert_check((cg_node){ .kind = CG_PAD, .as.pad = { -1, 0, 1 } }, false);
    assert_check((cg_node){ .kind = CG_PAD, .as.pad = { 0, INT64_MAX, 1 } },
                 false);
    assert_check((cg_node){ .kind = CG_REPEAT, .as.repeat = { 1, 1 } }, true);
    assert_check((cg_node){ .kind = CG_REPEAT, .as.repeat = { 0, 1 } }, false);
    assert_check(reshape(1, 2, 3, -1), true);
    assert_check(reshape(1, 0, 0, 0), true);
    assert_check(reshape(0, 1, 3, 0), false);
    assert_check(reshape(1, 2, -1, -1), false);
    assert_check(reshape(1, 2, 3, 0), false);
    assert_check(reshape(7, 2, 3, 3), false);
    assert_check(reshape(INT32_MAX, 2, 3, 3), false);
    assert_check(reshape(1, -1, 3, 3), false);
    assert_check(reshape(1, INT32_MAX, 3, 3), false);
    assert_check(permute(3, 0, 2, 1), true);
    assert_check(permute(3, 1, 0, 2), false);
    assert_check(permute(3, 0, 1, 1), false);
    assert_check(permute(3, 0, 1, 3), false);
    assert_check(permute(3, 0, 1, -1), false);
    assert_check(permute(0, 0, 1, 2), false);
    assert_check(permute(INT32_MAX, 0, 1, 2), false);
    assert_check((cg_node){ .kind = CG_DOT, .as.dot = { 1, 2, 0, false } },
                 true);
    assert_check((cg_node){ .kind = CG_DOT, .as.dot = { 0, 1, 0, false } },
                 false);
    assert_check((cg_node){ .kind = CG_DOT, .as.dot = { 1, 1, NAN, true } },
                 false);
    assert_check((cg_node){ .kind = CG_SELECT, .as.select = INFINITY }, false);
    assert_check((cg_node){ .kind = CG_COMBINE,
                            .as.combine = CG_COMBINE_SUBTRACT,
                            .input_count = 3 },
                 false);
    assert_check((cg_node){ .kind = CG_LOGIC,
                            .as.logic = CG_LOGIC_NOT,
                            .input_count = 2 },
                 false);
}

static void assert_weight(const cg_node *node, size_t index, bool has,
                          const char *name, int32_t rank, int64_t rows,
                          int64_t columns)
{
    cg_weight weight;

    assert_int_equal(cg_node_weight(node, index, &weight), has);
    assert_string_equal(weight.name, name);
    assert_int_equal(weight.rank, rank);
    assert_int_equal(weight.shape[0], rows);
    assert_int_equal(weight.shape[1], columns);
    assert_null(weight.data);
}

static void weights_follow_from_attributes(void **state)
{
    cg_node node = graph_lstm(3, 2, 2);

    (void)state;
    assert_int_equal(cg_node_weight_count(&node), 10);
    assert_weight(&node, 0, true, "kernel", 2, 3, 8);
    assert_weight(&node, 1, true, "recurrent_kernel", 2, 2, 8);
    assert_weight(&node, 2, true, "bias", 1, 8, 0);
    assert_weight(&node, 3, false, "peephole", 2, 3, 2);
    assert_weight(&node, 4, false, "projection", 2, 2, 2);
    assert_weight(&node, 5, true, "backward_kernel", 2, 3, 8);
    node.as.lstm.shape.projection_size = 5;
    node.as.lstm.shape.has_bias = 0;
    node.as.lstm.shape.has_peepholes = 1;
    assert_weight(&node, 6, true, "backward_recurrent_kernel", 2, 5, 8);
    assert_weight(&node, 7, false, "backward_bias", 1, 8, 0);
    assert_weight(&node, 8, true, "backward_peephole", 2, 3, 2);
    assert_weight(&node, 9, true, "backward_projection", 2, 2, 5);
    node = graph_dense(3, 2);
    assert_int_equal(cg_node_weight_count(&node), 2);
    assert_weight(&node, 0, true, "kernel", 2, 3, 2);
    assert_weight(&node, 1, true, "bias", 1, 2, 0);
    node = (cg_node){ .kind = CG_EMBEDDING, .as.embedding = { 9, 4 } };
    assert_int_equal(cg_node_weight_count(&node), 1);
    assert_weight(&node, 0, true, "table", 2, 9, 4);
    node = graph_activation(CELLGATE_RELU);
    assert_int_equal(cg_node_weight_count(&node), 0);
}

static void windows_and_weights_over_axes(void **state)
{
    const int64_t most = CG_MAX_SIZE;

    (void)state;
    assert_check((cg_node){ .kind = CG_WINDOW, .as.window = { 1, 1, 1, 2 } },
                 true);
    assert_check((cg_node){ .kind = CG_WINDOW, .as.window = { 0, 1, 1, 0 } },
                 false);
    assert_check((cg_node){ .kind = CG_WINDOW, .as.window = { 1, 0, 1, 0 } },
                 false);
    assert_check((cg_node){ .kind = CG_WINDOW, .as.window = { 1, 1, 0, 0 } },
                 false);
    assert_check((cg_node){ .kind = CG_WINDOW, .as.window = { 1, 1, 1, 3 } },
                 false);
    assert_check(
        (cg_node){ .kind = CG_POOL, .as.pool.window = { most, most, 0, 1 } },
        true);
    assert_check((cg_node){ .kind = CG_POOL, .as.pool.window = { 1, 1, 1, 2 } },
                 false);
    assert_check((cg_node){ .kind = CG_REDUCE,
                            .input_count = 2,
                            .as.reduce.mode = CG_POOL_MAXIMUM },
                 false);
    assert_check((cg_node){ .kind = CG_PRELU, .as.prelu = { 2, { 1, 3 } } },
                 true);
    assert_check((cg_node){ .kind = CG_PRELU, .as.prelu = { 0, { 0 } } },
                 false);
    assert_check((cg_node){ .kind = CG_PRELU, .as.prelu = { 8, { 1 } } },
                 false);
    assert_check((cg_node){ .kind = CG_PRELU, .as.prelu = { 2, { 1, 0 } } },
                 false);
    assert_check(
        (cg_node){ .kind = CG_AFFINE, .as.affine.extents = { 2, { most, 2 } } },
        false);
    assert_check(
        (cg_node){ .kind = CG_NORMALIZE,
                   .as.normalize = { .extents = { 1, { 3 } }, .epsilon = -1 } },
        false);
    assert_check((cg_node){ .kind = CG_RELU, .as.relu.slope = NAN }, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_and_weights_over_axes),
        cmocka_unit_test(the_table_is_complete),
        cmocka_unit_test(the_names_agree),
        cmocka_unit_test(sizes_are_bounded),
        cmocka_unit_test(lstm_attributes),
        cmocka_unit_test(other_attributes),
        cmocka_unit_test(moving_attributes),
        cmocka_unit_test(weights_follow_from_attributes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
