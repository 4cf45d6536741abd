/* SPDX-License-Identifier: Apache-2.0 */
/* native_writer.c, native_reader.c and native_attributes.c, by way of files. */
#include "config.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "runtime/formats/native.h"
#include "tests/unit/fail_allocation.h"
#include "tests/unit/model_graph.h"
#include "tests/unit/scratch_folder.h"

/* Every kind, every type of attribute, a shared weight, two inputs. */
static cellgate_model *build(void)
{
    cellgate_model *model = graph_create();
    const int32_t ids = graph_input(model, "ids", CELLGATE_I32, CG_UNKNOWN, 0);
    const int32_t x = graph_input(model, "x \"quoted\" \xc3\xa9", CELLGATE_F32,
                                  CG_UNKNOWN, 4);
    const int32_t mask = graph_value(model, "mask", CELLGATE_U8);
    const int32_t other_mask = graph_value(model, "other", CELLGATE_U8);
    const int32_t word = graph_value(model, "word", CELLGATE_F32);
    const int32_t masked = graph_value(model, "masked", CELLGATE_F32);
    const int32_t both = graph_value(model, "both", CELLGATE_F32);
    const int32_t sequence = graph_value(model, "sequence", CELLGATE_F32);
    const int32_t h = graph_value(model, "h", CELLGATE_F32);
    const int32_t turned = graph_value(model, "turned", CELLGATE_F32);
    const int32_t merged = graph_value(model, "merged", CELLGATE_F32);
    const int32_t part = graph_value(model, "part", CELLGATE_F32);
    const int32_t curved = graph_value(model, "curved", CELLGATE_F32);
    const int32_t once = graph_value(model, "once", CELLGATE_F32);
    const int32_t twice = graph_value(model, "twice", CELLGATE_F32);
    const int32_t soft = graph_value(model, "soft", CELLGATE_F32);
    const int32_t lstm_inputs[6] = { both, mask, -1, -1, -1, -1 };
    const int32_t lstm_outputs[6] = { sequence, -1, -1, -1, h, -1 };
    const int32_t pair[2] = { word, masked };
    const int32_t masked_pair[2] = { x, other_mask };
    cg_node node, lstm = graph_lstm(7, 3, 2);
    cg_weight shared[2];

    graph_node(model, "nonzero", (cg_node){ .kind = CG_NONZERO }, ids, mask);
    graph_node(model, "not_equal",
               (cg_node){ .kind = CG_NOT_EQUAL, .as.not_equal = -0.1f }, x,
               other_mask);
    graph_node(model, "table",
               (cg_node){ .kind = CG_EMBEDDING, .as.embedding = { 11, 3 } },
               ids, word);
    node = (cg_node){ .name = (char *)(uintptr_t) "masked",
                      .kind = CG_MASKED,
                      .inputs = (int32_t *)(uintptr_t)masked_pair,
                      .input_count = 2,
                      .outputs = (int32_t *)(uintptr_t)&masked,
                      .output_count = 1 };
    assert_int_equal(cg_model_add_node(model, &node, NULL), CELLGATE_OK);
    node = (cg_node){ .name = (char *)(uintptr_t) "concat",
                      .layer = (char *)(uintptr_t) "layer 4 of 9, 'c' (C)",
                      .kind = CG_CONCAT,
                      .inputs = (int32_t *)(uintptr_t)pair,
                      .input_count = 2,
                      .outputs = (int32_t *)(uintptr_t)&both,
                      .output_count = 1 };
    assert_int_equal(cg_model_add_node(model, &node, NULL), CELLGATE_OK);
    lstm.as.lstm.shape.projection_size = 2;
    lstm.as.lstm.shape.has_peepholes = 1;
    lstm.as.lstm.shape.coupled = 1;
    lstm.as.lstm.shape.clip = 0.1f;
    lstm.as.lstm.shape.activations[0][0] =
        (cellgate_activation){ CELLGATE_HARD_SIGMOID, 1.0f / 6, 0.5f };
    lstm.as.lstm.shape.activations[1][2] =
        (cellgate_activation){ CELLGATE_LEAKY_RELU, 1e-30f, 0 };
    lstm.as.lstm.zero_masked = true;
    lstm.as.lstm.stateful = true;
    assert_int_equal(
        graph_try_lstm(model, "lstm", lstm, lstm_inputs, lstm_outputs, NULL),
        CELLGATE_OK);
    graph_node(model, "reverse", (cg_node){ .kind = CG_REVERSE }, sequence,
               turned);
    graph_node(model, "merge",
               (cg_node){ .kind = CG_MERGE, .as.merge = CG_MERGE_PRODUCT },
               turned, merged);
    graph_node(
        model, "slice",
        (cg_node){ .kind = CG_SLICE, .as.slice = { .end = 2, .step = 1 } },
        merged, part);
    graph_node(model, "act", graph_activation(CELLGATE_MISH), part, curved);
    graph_node(model, "dense", graph_dense(2, 2), curved, once);
    node = graph_dense(2, 2);
    memcpy(shared, model->nodes[model->node_count - 1].weights, sizeof shared);
    node.name = (char *)(uintptr_t) "dense again";
    node.inputs = (int32_t *)(uintptr_t)&once;
    node.outputs = (int32_t *)(uintptr_t)&twice;
    node.input_count = node.output_count = 1;
    node.weights = shared;
    node.weight_count = 2;
    assert_int_equal(cg_model_add_node(model, &node, NULL), CELLGATE_OK);
    graph_node(model, "softmax", (cg_node){ .kind = CG_SOFTMAX }, twice, soft);
    graph_output(model, soft);
    graph_output(model, h);
    graph_output(model, x);
    graph_output(model, soft);
    graph_finish(model);
    return model;
}

static const char *saved(void)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model = build();
    const char *path = scratch_path("model.cellgate");

    if (cellgate_model_save(model, path, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    cellgate_model_destroy(model);
    return path;
}

static cellgate_model *load(const char *path)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model = NULL;

    if (cellgate_model_load(path, &model, &error) != CELLGATE_OK)
        fail_msg("%s", error.text);
    return model;
}

static void assert_same_node(const cg_node *a, const cg_node *b)
{
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->layer, b->layer);
    assert_string_equal(a->detail, b->detail);
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->input_count, b->input_count);
    assert_memory_equal(a->inputs, b->inputs,
                        a->input_count * sizeof a->inputs[0]);
    assert_int_equal(a->output_count, b->output_count);
    assert_memory_equal(a->outputs, b->outputs,
                        a->output_count * sizeof a->outputs[0]);
    assert_memory_equal(&a->as, &b->as, sizeof a->as);
    assert_int_equal(a->weight_count, b->weight_count);
    for (size_t i = 0; i < a->weight_count; i++) {
        size_t size = sizeof(float);

        assert_int_equal(a->weights[i].data == NULL,
                         b->weights[i].data == NULL);
        if (a->weights[i].data == NULL)
            continue;
        for (int32_t axis = 0; axis < a->weights[i].rank; axis++)
            size *= (size_t)a->weights[i].shape[axis];
        assert_memory_equal(a->weights[i].data, b->weights[i].data, size);
        assert_int_equal((uintptr_t)b->weights[i].data % 64, 0);
    }
}

static void everything_comes_back(void **state)
{
    cellgate_model *model = build(), *native = load(saved());

    (void)state;
    assert_string_equal(cellgate_model_format(native), "native");
    assert_string_equal(cellgate_model_format_version(native), "1");
    assert_string_equal(cellgate_model_fingerprint(native),
                        cellgate_model_fingerprint(model));
    assert_int_equal(native->node_count, 13);
    assert_int_equal(native->node_count, model->node_count);
    for (size_t i = 0; i < model->node_count; i++)
        assert_same_node(&model->nodes[i], &native->nodes[i]);
    assert_int_equal(native->value_count, model->value_count);
    for (size_t i = 0; i < model->value_count; i++) {
        assert_string_equal(native->values[i].name, model->values[i].name);
        assert_int_equal(native->values[i].dtype, model->values[i].dtype);
        assert_int_equal(native->values[i].producer, model->values[i].producer);
        assert_memory_equal(native->values[i].shape, model->values[i].shape,
                            sizeof model->values[i].shape);
    }
    assert_memory_equal(native->inputs, model->inputs,
                        model->input_count * sizeof model->inputs[0]);
    assert_memory_equal(native->outputs, model->outputs,
                        model->output_count * sizeof model->outputs[0]);
    cellgate_model_destroy(model);
    cellgate_model_destroy(native);
}

/* The first files of this version had no axes; where they mean the same, they
   still look the same. */
static void axes_are_left_out_where_they_say_nothing(void **state)
{
    size_t size;
    unsigned char *bytes = read_whole_file(saved(), &size);

    (void)state;
    assert_null(memmem(bytes, size, "axis", strlen("axis")));
    assert_null(memmem(bytes, size, "step", strlen("step")));
    free(bytes);
}

static cellgate_model *build_moving(void)
{
    cellgate_model *model = graph_create();
    const int32_t x = graph_input(model, "x", CELLGATE_F32, CG_UNKNOWN, 4);
    int32_t y = graph_value(model, "cropped", CELLGATE_F32), last = x;

    graph_node(model, "crop",
               (cg_node){ .kind = CG_SLICE,
                          .as.slice = { 1, -2, .axis = 1, .step = -2 } },
               last, y);
    last = y;
    y = graph_value(model, "turned", CELLGATE_F32);
    graph_node(
        model, "turn",
        (cg_node){ .kind = CG_PERMUTE, .as.permute = { 3, { 0, 2, 1 } } }, last,
        y);
    last = y;
    y = graph_value(model, "flat", CELLGATE_F32);
    graph_node(model, "flatten",
               (cg_node){ .kind = CG_RESHAPE,
                          .as.reshape = { { 1, { CG_UNKNOWN } }, 1 } },
               last, y);
    last = y;
    y = graph_value(model, "ids", CELLGATE_I32);
    graph_node(model, "cast",
               (cg_node){ .kind = CG_CAST, .as.cast = CG_CAST_IDS }, last, y);
    graph_output(model, y);
    graph_finish(model);
    return model;
}

static void moving_kinds_come_back(void **state)
{
    cellgate_model *model = build_moving(), *native;
    const char *path = scratch_path("moving.cellgate");

    (void)state;
    assert_int_equal(cellgate_model_save(model, path, NULL), CELLGATE_OK);
    native = load(path);
    assert_string_equal(cellgate_model_fingerprint(native),
                        cellgate_model_fingerprint(model));
    assert_int_equal(native->node_count, 4);
    for (size_t i = 0; i < model->node_count; i++)
        assert_same_node(&model->nodes[i], &native->nodes[i]);
    cellgate_model_destroy(model);
    cellgate_model_destroy(native);
}

static void shared_weights_are_stored_once(void **state)
{
    cellgate_model *native = load(saved());
    const cg_node *nodes = native->nodes;

    (void)state;
    assert_string_equal(nodes[11].name, "dense again");
    assert_ptr_equal(nodes[10].weights[0].data, nodes[11].weights[0].data);
    assert_ptr_equal(nodes[10].weights[1].data, nodes[11].weights[1].data);
    cellgate_model_destroy(native);
}

static void saving_again_gives_the_same_bytes(void **state)
{
    size_t size, again_size;
    unsigned char *bytes = read_whole_file(saved(), &size), *again;
    cellgate_model *native = load(scratch_path("model.cellgate"));

    (void)state;
    assert_int_equal(
        cellgate_model_save(native, scratch_path("again.cellgate"), NULL),
        CELLGATE_OK);
    again = read_whole_file(scratch_path("again.cellgate"), &again_size);
    assert_int_equal(size, again_size);
    assert_memory_equal(bytes, again, size);
    /* Over the file that it is mapped from: the old file stays while it is. */
    assert_int_equal(
        cellgate_model_save(native, scratch_path("model.cellgate"), NULL),
        CELLGATE_OK);
    cellgate_model_destroy(native);
    free(bytes);
    free(again);
}

/* ---- Damage ------------------------------------------------------------- */

static cellgate_status try(const void *bytes, size_t size, char *text)
{
    const char *path = scratch_write("damaged", bytes, size);
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model = NULL;
    const cellgate_status status = cellgate_model_load(path, &model, &error);

    if (status != CELLGATE_OK)
        assert_null(model);
    cellgate_model_destroy(model);
    if (text != NULL)
        strcpy(text, error.text);
    return status;
}

static void a_file_cut_anywhere(void **state)
{
    size_t size;
    unsigned char *bytes = read_whole_file(saved(), &size);

    (void)state;
    for (size_t cut = 0; cut < size; cut += 64)
        assert_int_not_equal(try(bytes, cut, NULL), CELLGATE_OK);
    assert_int_not_equal(try(bytes, size - 1, NULL), CELLGATE_OK);
    free(bytes);
}

/* A bit of the names may change, or of what fills gaps; nothing else. */
static void a_file_with_a_bit_turned(void **state)
{
    size_t size, refused = 0, tried = 0;
    unsigned char *bytes = read_whole_file(saved(), &size);

    (void)state;
    for (size_t at = 0; at < size; at += 5) {
        bytes[at] ^= (unsigned char)(1u << (at / 5 % 8));
        refused += try(bytes, size, NULL) != CELLGATE_OK;
        tried++;
        bytes[at] ^= (unsigned char)(1u << (at / 5 % 8));
    }
    assert_int_equal(try(bytes, size, NULL), CELLGATE_OK);
    assert_in_range(refused, tried * 6 / 10, tried);
    free(bytes);
}

static void weights_that_were_edited(void **state)
{
    size_t size;
    char text[512];
    unsigned char *bytes = read_whole_file(saved(), &size);

    (void)state;
    bytes[size - 1] ^= 1;
    assert_int_equal(try(bytes, size, text), CELLGATE_BAD_FILE);
    assert_non_null(strstr(text, "do not match its fingerprint"));
    free(bytes);
}

/* What a file on a network file system goes through. */
static void a_copy_in_place_of_a_mapping(void **state)
{
    size_t size;
    unsigned char *bytes = read_whole_file(saved(), &size);
    const int fd = open(scratch_path("model.cellgate"), O_RDONLY);
    cellgate_error error = CELLGATE_ERROR_INIT;
    void *image = NULL;

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(cg_native_copy(fd, size, &image, &error), CELLGATE_OK);
    assert_int_equal((uintptr_t)image % 64, 0);
    assert_memory_equal(image, bytes, size);
    assert_int_equal(munmap(image, size), 0);
    assert_int_equal(cg_native_copy(fd, size + 1, &image, &error),
                     CELLGATE_BAD_FILE);
    assert_non_null(strstr(error.text, "cut while it was read"));
    assert_int_equal(close(fd), 0);
    /* NFS, FUSE; ext4, tmpfs, overlay. */
    assert_true(cg_native_is_remote(0x6969));
    assert_true(cg_native_is_remote(0x65735546));
    assert_false(cg_native_is_remote(0xef53));
    assert_false(cg_native_is_remote(0x01021994));
    assert_false(cg_native_is_remote(0x794c7630));
    free(bytes);
}

static void with_quotes(char *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            *out++ = '\\';
        *out++ = *text == '\'' ? '"' : *text;
    }
    *out = '\0';
}

/*
 * The file with `from` replaced by `to` everywhere in its header, of which the
 * size follows; ' stands for \" (a quote inside the graph's text).
 */
static void assert_edited(const char *from, const char *to,
                          cellgate_status status, const char *part)
{
    size_t size;
    char text[512], *header, *at;
    unsigned char *bytes = read_whole_file(saved(), &size), *edited;
    uint64_t length, new_length;
    char wanted[200], given[200];

    with_quotes(wanted, from);
    with_quotes(given, to);
    memcpy(&length, bytes, 8);
    header = calloc(1, length * 2);
    edited = calloc(1, size * 2);
    assert_non_null(header);
    assert_non_null(edited);
    memcpy(header, bytes + 8, length);
    at = strstr(header, wanted);
    if (at == NULL)
        fail_msg("no %s in %s", wanted, header);
    memmove(at + strlen(given), at + strlen(wanted),
            strlen(at + strlen(wanted)) + 1);
    memcpy(at, given, strlen(given));
    new_length = strlen(header);
    while ((new_length + 8) % 64 != 0)
        header[new_length++] = ' ';
    memcpy(edited, &new_length, 8);
    memcpy(edited + 8, header, new_length);
    memcpy(edited + 8 + new_length, bytes + 8 + length, size - 8 - length);
    if (try(edited, size - length + new_length, text) != status ||
        strstr(text, part) == NULL)
        fail_msg("%s -> %s: %s", from, to, text);
    free(bytes);
    free(header);
    free(edited);
}

static void wrong_metadata(void **state)
{
    (void)state;
    assert_edited("\"format_version\":\"1\"", "\"format_version\":\"2\"",
                  CELLGATE_UNSUPPORTED,
                  "is of version 2; this libcellgate "
                  "reads version 1");
    assert_edited("\"format\":\"cellgate\"", "\"format\":\"pt\"",
                  CELLGATE_UNSUPPORTED, "weights alone, without a graph");
    assert_edited("\"fingerprint\":\"", "\"fingerprint\":\"0",
                  CELLGATE_BAD_FILE, "do not match its fingerprint");
    assert_edited("\"graph\":", "\"grape\":", CELLGATE_BAD_FILE,
                  "lack the graph");
    assert_edited("\"graph\":\"{", "\"graph\":\"", CELLGATE_BAD_FILE,
                  "the graph:1:");
}

static void wrong_graphs(void **state)
{
    (void)state;
    assert_edited("'kind':'merge'", "'kind':'lstm_cell'", CELLGATE_UNSUPPORTED,
                  "merge: this version has no kind 'lstm_cell'");
    assert_edited("'mode':'product'", "'mode':'max'", CELLGATE_BAD_FILE,
                  "attribute 'mode'");
    assert_edited("'mode':'product'", "'mode':'product','more':1",
                  CELLGATE_BAD_FILE, "unknown attribute");
    assert_edited("'hidden_size':3", "'hidden_size':3.0", CELLGATE_BAD_FILE,
                  "attribute 'hidden_size'");
    assert_edited("'hidden_size':3", "'hidden_size':4", CELLGATE_BAD_FILE,
                  "lstm: weight 'kernel' has the wrong shape");
    assert_edited("'directions':2", "'directions':4294967298",
                  CELLGATE_BAD_FILE, "attribute 'directions'");
    assert_edited("'directions':2", "'directions':-2147483648",
                  CELLGATE_BAD_FILE, "1 or 2 directions");
    assert_edited("'clip':", "'clip':-", CELLGATE_BAD_FILE, "clip must be");
    assert_edited("['mish']", "['mish',1.0]", CELLGATE_BAD_FILE,
                  "attribute 'activation'");
    assert_edited("['mish']", "['mush']", CELLGATE_BAD_FILE,
                  "attribute 'activation'");
    assert_edited("'bias':true", "'bias':1", CELLGATE_BAD_FILE,
                  "attribute 'bias'");
    assert_edited("'dense/kernel'", "'dense/kernels'", CELLGATE_BAD_FILE,
                  "weight 'kernel' is missing");
    assert_edited("'table':'table/table'", "'table':'__padding_0__'",
                  CELLGATE_BAD_FILE, "weight 'table' is missing");
    assert_edited("'table':'table/table'", "'table':'table/table','a':'b'",
                  CELLGATE_BAD_FILE, "a weight too many");
    assert_edited("'dtype':'int32'", "'dtype':'int7'", CELLGATE_BAD_FILE,
                  "a value lacks");
    assert_edited("'dtype':'int32'", "'dtype':'float32'", CELLGATE_BAD_FILE,
                  "it takes ids");
    assert_edited("'name':'softmax'", "'name':'merge'", CELLGATE_BAD_FILE,
                  "two nodes have the name 'merge'");
    assert_edited("{'value':0,'mask':null}", "{'value':0,'mask':0}",
                  CELLGATE_BAD_FILE, "an input's value or mask");
    assert_edited("{'value':0,'mask':null}", "{'value':99,'mask':null}",
                  CELLGATE_BAD_FILE, "an input's value or mask");
    assert_edited("{'value':0,'mask':null}", "{'value':null,'mask':null}",
                  CELLGATE_BAD_FILE, "an input's value or mask");
    assert_edited("'inputs':[0]", "'inputs':[99]", CELLGATE_BAD_FILE,
                  "no value of that number");
    assert_edited("'inputs':[0]", "'inputs':[]", CELLGATE_BAD_FILE,
                  "0 inputs do not fit");
    assert_edited("'inputs':[0]", "'inputs':[null]", CELLGATE_BAD_FILE,
                  "input 0 does not exist");
}

/* A cycle, and an order that is not usable: the file may say anything. */
static void graphs_in_another_order(void **state)
{
    (void)state;
    assert_edited("'kind':'softmax','inputs':[14]",
                  "'kind':'softmax','inputs':[15]", CELLGATE_BAD_FILE, "cycle");
}

static void tensors_out_of_place(void **state)
{
    (void)state;
    assert_edited("\"dtype\":\"F32\"", "\"dtype\":\"I32\"", CELLGATE_BAD_FILE,
                  "not F32");
    assert_edited("\"data_offsets\":[0,", "\"data_offsets\":[4,",
                  CELLGATE_BAD_FILE, "do not fit");
}

/* ---- Saving ------------------------------------------------------------- */

static void a_folder_that_is_not_there(void **state)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model = build();

    (void)state;
    assert_int_equal(
        cellgate_model_save(model, "nowhere/at/all.cellgate", &error),
        CELLGATE_IO);
    assert_non_null(strstr(error.text, "nowhere/at/all.cellgate"));
    cellgate_model_destroy(model);
}

static const char *attempt_path;
static cellgate_model *attempt_model;

static cellgate_status load_attempt(void *context)
{
    cellgate_model *model = NULL;
    const cellgate_status status =
        cellgate_model_load(attempt_path, &model, NULL);

    (void)context;
    cellgate_model_destroy(model);
    return status;
}

static cellgate_status save_attempt(void *context)
{
    (void)context;
    return cellgate_model_save(attempt_model, attempt_path, NULL);
}

static void *json_allocate(size_t size)
{
    return malloc(size);
}

static void json_release(void *memory)
{
    free(memory);
}

/*
 * The same with Jansson's allocations failing too, which happen inside its
 * library, out of reach of the linker. Not for loading: Jansson 2.14 crashes
 * in json_loadb() when some of them fail.
 */
static void try_each_allocation(fail_allocation_attempt attempt)
{
    json_malloc_t allocate;
    json_free_t release;
    size_t nth = 1;
    bool failed;

    json_get_alloc_funcs(&allocate, &release);
    json_set_alloc_funcs(json_allocate, json_release);
    do {
        cellgate_status status;

        fail_allocation_begin(nth++);
        status = attempt(NULL);
        failed = fail_allocation_end();
        assert_int_equal(fail_allocation_live(), 0);
        assert_int_equal(status, failed ? CELLGATE_NO_MEMORY : CELLGATE_OK);
    } while (failed);
    json_set_alloc_funcs(allocate, release);
    assert_in_range(nth, 100, 10000);
}

static void each_allocation_fails_once(void **state)
{
    (void)state;
    attempt_path = saved();
    attempt_model = build();
    try_each_allocation(save_attempt);
    assert_in_range(fail_each_allocation(load_attempt, NULL), 20, 10000);
    assert_in_range(fail_each_allocation(save_attempt, NULL), 10, 10000);
    cellgate_model_destroy(attempt_model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_comes_back),
        cmocka_unit_test(axes_are_left_out_where_they_say_nothing),
        cmocka_unit_test(moving_kinds_come_back),
        cmocka_unit_test(shared_weights_are_stored_once),
        cmocka_unit_test(saving_again_gives_the_same_bytes),
        cmocka_unit_test(a_file_cut_anywhere),
        cmocka_unit_test(a_file_with_a_bit_turned),
        cmocka_unit_test(weights_that_were_edited),
        cmocka_unit_test(a_copy_in_place_of_a_mapping),
        cmocka_unit_test(wrong_metadata),
        cmocka_unit_test(wrong_graphs),
        cmocka_unit_test(graphs_in_another_order),
        cmocka_unit_test(tensors_out_of_place),
        cmocka_unit_test(a_folder_that_is_not_there),
        cmocka_unit_test(each_allocation_fails_once),
    };
    return cmocka_run_group_tests(tests, scratch_folder_setup,
                                  scratch_folder_teardown);
}
