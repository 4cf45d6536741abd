/* SPDX-License-Identifier: Apache-2.0 */
/* What the stand-in says it is, what it takes and what it refuses. */
#include "config.h"

#include <stdlib.h>

#include "tests/unit/remote_rig.h"

static struct rig rig;
static struct rig_model model;

static int setup(void **state)
{
    (void)state;
    rig_open(&rig, NULL);
    rig_model_init(&model, true);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    assert_string_equal(rig.log, "");
    rig_close(&rig);
    return 0;
}

static cellgate_status ask(uint32_t index, cellgate_variant *variant,
                           cellgate_error *error)
{
    *variant = (cellgate_variant){ .struct_size = sizeof *variant };
    *error = (cellgate_error)CELLGATE_ERROR_INIT;
    return rig.plugin->support(rig.device, &model.segment, NULL, index, variant,
                               error);
}

/* That support() and prepare() refuse the model for this reason. */
static void expect_refusal(cellgate_reason reason, const char *text)
{
    cellgate_variant variant;
    cellgate_error error;
    cellgate_weights *weights = NULL;

    assert_int_equal(ask(0, &variant, &error), CELLGATE_UNSUPPORTED);
    assert_int_equal(error.reason, reason);
    if (strstr(error.text, text) == NULL)
        fail_msg("\"%s\" does not say \"%s\"", error.text, text);
    assert_int_equal(
        rig.plugin->prepare(rig.device, &model.segment, 0, &weights, &error),
        CELLGATE_UNSUPPORTED);
    assert_null(weights);
}

static void test_there_are_two_cards(void **state)
{
    cellgate_device_description card = { .struct_size = sizeof card };
    cellgate_device_description other = { .struct_size = sizeof other };
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)state;
    assert_int_equal(rig.plugin->device_count(rig.instance), 3);
    assert_int_equal(
        rig.plugin->device_describe(rig.instance, 0, &card, &error),
        CELLGATE_OK);
    assert_int_equal(
        rig.plugin->device_describe(rig.instance, 1, &other, &error),
        CELLGATE_OK);
    assert_int_equal(card.kind, CELLGATE_DEVICE_ACCELERATOR);
    assert_int_equal(card.flags & CELLGATE_DEVICE_ON_CALLER, 0);
    assert_int_equal(card.queue_depth, 2);
    assert_string_equal(card.resource, "pci:0000:7f:00.0");
    assert_string_not_equal(card.resource, other.resource);
    assert_int_equal(
        rig.plugin->device_describe(rig.instance, 3, &card, &error),
        CELLGATE_INVALID);
}

static void test_entry_speaks_its_version_only(void **state)
{
    (void)state;
    assert_null(cellgate_plugin_entry(CELLGATE_ABI_VERSION + 1,
                                      CELLGATE_ABI_VERSION + 9));
    assert_non_null(cellgate_plugin_entry(0, CELLGATE_ABI_VERSION + 9));
}

static void test_variants_come_without_gaps(void **state)
{
    static const char *const names[] = { "batch", "exact", "any", "bf16" };
    cellgate_variant variant;
    cellgate_error error;
    uint32_t at;

    (void)state;
    for (at = 0; at < 4; at++) {
        assert_int_equal(ask(at, &variant, &error), CELLGATE_OK);
        assert_string_equal(variant.name, names[at]);
        assert_int_equal(variant.struct_size, sizeof variant);
        assert_int_equal(variant.exact_batch != 0, at < 2);
        assert_int_equal(variant.exact_steps != 0, at == 1);
        assert_int_equal(variant.pack, at == 3);
        assert_int_equal(variant.numeric, at == 3 ? CELLGATE_NUMERIC_BF16
                                                  : CELLGATE_NUMERIC_F32);
    }
    assert_int_equal(ask(4, &variant, &error), CELLGATE_END);
}

static void test_a_setting_leaves_one_variant(void **state)
{
    static const char *const settings[] = { "variants", "any", NULL };
    struct rig other;
    cellgate_variant variant = { .struct_size = sizeof variant };
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)state;
    rig_open(&other, settings);
    assert_int_equal(other.plugin->support(other.device, &model.segment, NULL,
                                           0, &variant, &error),
                     CELLGATE_OK);
    assert_string_equal(variant.name, "any");
    assert_int_equal(other.plugin->support(other.device, &model.segment, NULL,
                                           1, &variant, &error),
                     CELLGATE_END);
    rig_close(&other);
}

static void test_peepholes_are_refused(void **state)
{
    (void)state;
    model.lstm.has_peepholes = 1;
    expect_refusal(CELLGATE_REASON_PEEPHOLES, "op 0: peepholes");
}

static void test_coupled_gates_are_refused(void **state)
{
    (void)state;
    model.lstm.coupled = 1;
    expect_refusal(CELLGATE_REASON_COUPLED, "coupled");
}

static void test_other_activations_are_refused_by_name(void **state)
{
    (void)state;
    model.lstm.activations[0][2].kind = CELLGATE_GELU_ERF;
    expect_refusal(CELLGATE_REASON_ACTIVATION, "gelu_erf");
    model.lstm.activations[0][2].kind = CELLGATE_TANH;
    model.dense.activation.kind = CELLGATE_ACTIVATION_COUNT;
    expect_refusal(CELLGATE_REASON_ACTIVATION, "op 1");
}

static void test_direction_1_is_looked_at_where_there_is_one(void **state)
{
    cellgate_variant variant;
    cellgate_error error;

    (void)state;
    model.lstm.activations[1][0].kind = CELLGATE_MISH;
    assert_int_equal(ask(0, &variant, &error), CELLGATE_OK);
    model.lstm.directions = 2;
    model.dense.input_size = 2 * RIG_HIDDEN;
    expect_refusal(CELLGATE_REASON_ACTIVATION, "mish");
}

static void test_a_segment_begins_with_an_lstm(void **state)
{
    const cellgate_embedding embedding = {
        .op = { sizeof embedding, CELLGATE_OP_EMBEDDING, 0 },
        .vocabulary = 10,
        .size = RIG_INPUT,
    };

    (void)state;
    model.ops[1] = model.ops[0];
    model.ops[0] = &embedding.op;
    expect_refusal(CELLGATE_REASON_KIND, "op 0: kind 3");
    model.ops[0] = &model.dense.op;
    expect_refusal(CELLGATE_REASON_CHAIN, "op 0 is no LSTM");
}

static void test_links_are_checked(void **state)
{
    (void)state;
    model.dense.input_size = RIG_HIDDEN + 1;
    expect_refusal(CELLGATE_REASON_CHAIN, "op 0 gives 5 features");
    model.dense.input_size = RIG_HIDDEN;
    model.lstm.outputs |= CELLGATE_LSTM_LAST;
    expect_refusal(CELLGATE_REASON_CHAIN, "either its sequence");
    model.lstm.outputs = CELLGATE_LSTM_H;
    expect_refusal(CELLGATE_REASON_CHAIN, "either its sequence");
}

static void test_no_lstm_after_a_row(void **state)
{
    cellgate_lstm second = model.lstm;

    (void)state;
    second.input_size = RIG_HIDDEN;
    model.lstm.outputs = CELLGATE_LSTM_LAST;
    model.ops[1] = &second.op;
    expect_refusal(CELLGATE_REASON_CHAIN, "one row a sample");
}

static void test_newer_fields_are_refused(void **state)
{
    struct {
        cellgate_lstm known;
        int64_t newer;
    } grown = { model.lstm, 0 };
    cellgate_variant variant;
    cellgate_error error;

    (void)state;
    grown.known.op.struct_size = sizeof grown;
    model.ops[0] = &grown.known.op;
    assert_int_equal(ask(0, &variant, &error), CELLGATE_OK);
    grown.newer = 1;
    expect_refusal(CELLGATE_REASON_FIELD, "op 0");
    model.ops[0] = &model.lstm.op;
    model.lstm.outputs |= 1u << 9;
    expect_refusal(CELLGATE_REASON_FIELD, "op 0");
}

static void test_sizes_that_no_op_has_are_invalid(void **state)
{
    cellgate_variant variant;
    cellgate_error error;

    (void)state;
    model.lstm.hidden_size = 0;
    assert_int_equal(ask(0, &variant, &error), CELLGATE_INVALID);
    model.lstm.hidden_size = INT64_MAX;
    expect_refusal(CELLGATE_REASON_SHAPE, "hidden size");
}

static void test_missing_weights_are_invalid(void **state)
{
    cellgate_weights *weights = NULL;
    cellgate_error error = CELLGATE_ERROR_INIT;

    (void)state;
    model.lstm.weights[0].recurrent_kernel = NULL;
    assert_int_equal(
        rig.plugin->prepare(rig.device, &model.segment, 0, &weights, &error),
        CELLGATE_INVALID);
    assert_non_null(strstr(error.text, "recurrent kernel"));
    assert_null(weights);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_there_are_two_cards),
        TEST(test_entry_speaks_its_version_only),
        TEST(test_variants_come_without_gaps),
        TEST(test_a_setting_leaves_one_variant),
        TEST(test_peepholes_are_refused),
        TEST(test_coupled_gates_are_refused),
        TEST(test_other_activations_are_refused_by_name),
        TEST(test_direction_1_is_looked_at_where_there_is_one),
        TEST(test_a_segment_begins_with_an_lstm),
        TEST(test_links_are_checked),
        TEST(test_no_lstm_after_a_row),
        TEST(test_newer_fields_are_refused),
        TEST(test_sizes_that_no_op_has_are_invalid),
        TEST(test_missing_weights_are_invalid),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
