/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "tests/unit/fail_allocation.h"
#include "tests/unit/model_graph.h"

static void memory_is_zeroed_and_aligned(void **state)
{
    cellgate_model *model = graph_create();

    (void)state;
    for (size_t size = 0; size < 300; size += 7) {
        unsigned char *memory = cg_model_memory(model, size);

        assert_non_null(memory);
        assert_int_equal((uintptr_t)memory % 64, 0);
        for (size_t i = 0; i < size; i++)
            assert_int_equal(memory[i], 0);
        memset(memory, 1, size);
    }
    assert_null(cg_model_memory(model, SIZE_MAX));
    assert_null(cg_model_memory(model, (size_t)PTRDIFF_MAX - 10));
    cellgate_model_destroy(model);
}

static void mappings_go_with_the_model(void **state)
{
    cellgate_model *model = graph_create();
    void *address =
        mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_ptr_not_equal(address, MAP_FAILED);
    assert_int_equal(cg_model_map(model, address, 4096, NULL), CELLGATE_OK);
    cellgate_model_destroy(model);
    /* Gone: it can't be synchronised any more. */
    assert_int_not_equal(msync(address, 4096, MS_ASYNC), 0);
}

static void owners_are_counted(void **state)
{
    cellgate_model *model = graph_create();
    cellgate_model *other = cg_model_reference(model);

    (void)state;
    assert_ptr_equal(model, other);
    cellgate_model_destroy(model);
    assert_string_equal(cellgate_model_format(other), "test");
    cellgate_model_destroy(other);
    cellgate_model_destroy(NULL);
}

static void assert_no_value(int32_t dtype, int32_t rank, int64_t extent)
{
    cellgate_model *model = graph_create();
    const int64_t shape[9] = { CG_UNKNOWN, extent, 1, 1, 1, 1, 1, 1, 1 };
    int32_t value = 77;

    assert_int_equal(
        cg_model_add_value(model, "x", dtype, rank, shape, &value, NULL),
        CELLGATE_BAD_FILE);
    assert_int_equal(value, 77);
    cellgate_model_destroy(model);
}

static void values_are_checked(void **state)
{
    (void)state;
    assert_no_value(CELLGATE_F16, 2, 3);
    assert_no_value(99, 2, 3);
    assert_no_value(CELLGATE_F32, 0, 3);
    assert_no_value(CELLGATE_F32, 9, 3);
    assert_no_value(CELLGATE_F32, 2, -2);
    assert_no_value(CELLGATE_F32, 2, CG_MAX_SIZE + 1);
}

static void inputs_have_masks(void **state)
{
    cellgate_model *model = graph_create();
    const int64_t one[1] = { CG_UNKNOWN };
    int32_t value;

    (void)state;
    (void)graph_input(model, "x", CELLGATE_F32, 6, 3);
    assert_int_equal(model->inputs[0].mask, 1);
    assert_string_equal(model->values[1].name, "x:mask");
    assert_int_equal(model->values[1].dtype, CELLGATE_U8);
    assert_int_equal(model->values[1].rank, 2);
    assert_int_equal(model->values[1].shape[1], 6);
    assert_int_equal(
        cg_model_add_value(model, "v", CELLGATE_F32, 1, one, &value, NULL),
        CELLGATE_OK);
    assert_int_equal(cg_model_add_input(model, value, NULL), CELLGATE_OK);
    assert_int_equal(model->inputs[1].mask, CG_NO_VALUE);
    /* Not twice, not a mask, not what isn't there. */
    assert_int_equal(cg_model_add_input(model, 0, NULL), CELLGATE_BAD_FILE);
    assert_int_equal(cg_model_add_input(model, 1, NULL), CELLGATE_BAD_FILE);
    assert_int_equal(cg_model_add_input(model, 9, NULL), CELLGATE_BAD_FILE);
    value = graph_value(model, "u8", CELLGATE_U8);
    assert_int_equal(cg_model_add_input(model, value, NULL), CELLGATE_BAD_FILE);
    assert_int_equal(cg_model_add_output(model, 9, NULL), CELLGATE_BAD_FILE);
    assert_int_equal(cg_model_add_output(model, -1, NULL), CELLGATE_BAD_FILE);
    cellgate_model_destroy(model);
}

static void nodes_are_copied(void **state)
{
    cellgate_model *model = graph_create();
    char name[] = "node", layer[] = "layer 1 of 1";
    int32_t input = graph_input(model, "x", CELLGATE_F32, 3, 0);
    int32_t output = graph_value(model, "y", CELLGATE_F32);
    cg_weight weights[2];
    cg_node node = graph_dense(3, 2);

    (void)state;
    node.name = name;
    node.layer = layer;
    node.inputs = &input;
    node.input_count = 1;
    node.outputs = &output;
    node.output_count = 1;
    graph_weights(model, &node, weights);
    weights[0].name = NULL;
    assert_int_equal(cg_model_add_node(model, &node, NULL), CELLGATE_OK);
    memset(name, 'z', 4);
    memset(layer, 'z', 4);
    memset(weights, 0, sizeof weights);
    input = output = 9;
    assert_string_equal(model->nodes[0].name, "node");
    assert_string_equal(model->nodes[0].layer, "layer 1 of 1");
    assert_string_equal(model->nodes[0].weights[0].name, "kernel");
    assert_int_equal(model->nodes[0].inputs[0], 0);
    assert_int_equal(model->values[2].producer, 0);
    cellgate_model_destroy(model);
}

/* ---- What a node may not be ---------------------------------------------- */

static cg_weight wrong_weights[10];

static void assert_no_node(cg_node node, size_t inputs, size_t outputs,
                           const char *part)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model = graph_create();
    int32_t in[3] = { graph_input(model, "x", CELLGATE_F32, 3, 0), 0, 0 };
    int32_t out[3] = { graph_value(model, "y", CELLGATE_F32),
                       graph_value(model, "z", CELLGATE_F32), 0 };

    node.name = (char *)(uintptr_t) "n";
    node.inputs = in;
    node.input_count = inputs;
    node.outputs = out;
    node.output_count = outputs;
    if (node.weights == NULL) {
        memset(wrong_weights, 0, sizeof wrong_weights);
        graph_weights(model, &node, wrong_weights);
    }
    assert_int_equal(cg_model_add_node(model, &node, &error),
                     CELLGATE_BAD_FILE);
    if (strstr(error.text, part) == NULL || strncmp(error.text, "n: ", 3) != 0)
        fail_msg("%s", error.text);
    assert_int_equal(model->node_count, 0);
    assert_int_equal(model->values[2].producer, -1);
    cellgate_model_destroy(model);
}

static void wrong_nodes_are_refused(void **state)
{
    cg_node node = graph_dense(3, 2);
    cg_weight weights[2];
    float *data = aligned_alloc(64, 64);

    (void)state;
    assert_non_null(data);
    assert_no_node(graph_dense(3, 2), 0, 1, "0 inputs do not fit");
    assert_no_node(graph_dense(3, 2), 2, 1, "2 inputs do not fit");
    assert_no_node(graph_dense(3, 2), 1, 0, "0 outputs do not fit");
    assert_no_node(graph_dense(3, 2), 1, 2, "2 outputs do not fit");
    assert_no_node((cg_node){ .kind = (cg_kind)99 }, 1, 1, "kind number 99");
    assert_no_node((cg_node){ .kind = (cg_kind)-1 }, 1, 1, "kind number -1");
    memset(weights, 0, sizeof weights);
    node.weights = weights;
    node.weight_count = 1;
    assert_no_node(node, 1, 1, "1 weights do not fit");
    node.weight_count = 2;
    assert_no_node(node, 1, 1, "weight 'kernel' is missing");
    weights[0] = (cg_weight){ NULL, data, 2, { 2, 3 } };
    assert_no_node(node, 1, 1, "weight 'kernel' has the wrong shape");
    weights[0] = (cg_weight){ NULL, data, 2, { 3, 2 } };
    weights[1] = (cg_weight){ NULL, data, 2, { 2, 1 } };
    assert_no_node(node, 1, 1, "weight 'bias' has the wrong shape");
    node.as.dense.has_bias = false;
    assert_no_node(node, 1, 1, "weight 'bias' should not be there");
    free(data);
}

static void values_are_made_once(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model = graph_create();
    const int32_t x = graph_input(model, "x", CELLGATE_F32, 3, 0);
    const int32_t y = graph_value(model, "y", CELLGATE_F32);

    (void)state;
    graph_node(model, "a", graph_activation(CELLGATE_RELU), x, y);
    assert_int_equal(graph_try_node(model, "b", graph_activation(CELLGATE_RELU),
                                    x, y, &error),
                     CELLGATE_BAD_FILE);
    assert_string_equal(error.text, "b: 'y' is made twice");
    assert_int_equal(
        graph_try_node(model, "b", graph_activation(CELLGATE_RELU), y, x, NULL),
        CELLGATE_BAD_FILE);
    assert_int_equal(graph_try_node(model, "b", graph_activation(CELLGATE_RELU),
                                    y, 17, NULL),
                     CELLGATE_BAD_FILE);
    assert_int_equal(
        graph_try_node(model, "", graph_activation(CELLGATE_RELU), y, y, NULL),
        CELLGATE_BAD_FILE);
    cellgate_model_destroy(model);
}

static void an_lstm_makes_different_values(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model = graph_create();
    const int32_t x = graph_input(model, "x", CELLGATE_F32, 6, 3);
    const int32_t y = graph_value(model, "y", CELLGATE_F32);
    const int32_t inputs[4] = { x, -1, -1, -1 };
    const int32_t no_inputs[4] = { -1, -1, -1, -1 };
    const int32_t outputs[4] = { y, y, -1, -1 };

    (void)state;
    assert_int_equal(graph_try_lstm(model, "l", graph_lstm(3, 2, 1), inputs,
                                    outputs, &error),
                     CELLGATE_BAD_FILE);
    assert_string_equal(error.text, "l: 'y' is made twice");
    assert_int_equal(graph_try_lstm(model, "l", graph_lstm(3, 2, 1), no_inputs,
                                    outputs, &error),
                     CELLGATE_BAD_FILE);
    assert_string_equal(error.text, "l: input 0 does not exist");
    cellgate_model_destroy(model);
}

/* ---- Growth and failure ------------------------------------------------- */

static void many_nodes(void **state)
{
    cellgate_model *model = graph_create();
    int32_t value = graph_input(model, "x", CELLGATE_F32, 3, 0);
    char name[32];

    (void)state;
    for (int i = 0; i < 3000; i++) {
        int32_t next;

        snprintf(name, sizeof name, "v%d", i);
        next = graph_value(model, name, CELLGATE_F32);
        graph_node(model, name, graph_activation(CELLGATE_TANH), value, next);
        value = next;
    }
    graph_output(model, value);
    graph_finish(model);
    assert_int_equal(model->node_count, 3000);
    assert_int_equal(model->nodes[2999].outputs[0], model->outputs[0]);
    cellgate_model_destroy(model);
}

static cellgate_status build_attempt(void *context)
{
    cellgate_model *model = NULL;
    const int64_t shape[2] = { CG_UNKNOWN, 3 };
    int32_t in, out;
    cg_node node = graph_activation(CELLGATE_RELU);
    cellgate_status status = cg_model_create("file", "test", "1", &model, NULL);

    (void)context;
    if (status == CELLGATE_OK)
        status =
            cg_model_add_value(model, "x", CELLGATE_F32, 2, shape, &in, NULL);
    if (status == CELLGATE_OK)
        status = cg_model_add_input(model, in, NULL);
    if (status == CELLGATE_OK)
        status =
            cg_model_add_value(model, "y", CELLGATE_F32, 0, NULL, &out, NULL);
    if (status == CELLGATE_OK) {
        node.name = (char *)(uintptr_t) "n";
        node.inputs = &in;
        node.outputs = &out;
        node.input_count = node.output_count = 1;
        status = cg_model_add_node(model, &node, NULL);
    }
    if (status == CELLGATE_OK)
        status = cg_model_add_output(model, out, NULL);
    if (status == CELLGATE_OK)
        status = cg_model_finish(model, NULL);
    cellgate_model_destroy(model);
    return status;
}

static void each_allocation_fails_once(void **state)
{
    (void)state;
    assert_in_range(fail_each_allocation(build_attempt, NULL), 20, 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_and_aligned),
        cmocka_unit_test(mappings_go_with_the_model),
        cmocka_unit_test(owners_are_counted),
        cmocka_unit_test(values_are_checked),
        cmocka_unit_test(inputs_have_masks),
        cmocka_unit_test(nodes_are_copied),
        cmocka_unit_test(wrong_nodes_are_refused),
        cmocka_unit_test(values_are_made_once),
        cmocka_unit_test(an_lstm_makes_different_values),
        cmocka_unit_test(many_nodes),
        cmocka_unit_test(each_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
