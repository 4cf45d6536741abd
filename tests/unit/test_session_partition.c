/* SPDX-License-Identifier: Apache-2.0 */
/* Where graphs are cut, with and without masks, and what is said about it. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "runtime/session/session.h"
#include "tests/unit/session_rig.h"

static const char config[] = "[device cpu]\nplugin = openmp\n"
                             "[device card]\nplugin = remote\n";
static cellgate_runtime *runtime;

static int open_runtime(void **state)
{
    (void)state;
    runtime = rig_runtime(config);
    return 0;
}

static int close_runtime(void **state)
{
    (void)state;
    cellgate_runtime_destroy(runtime);
    return 0;
}

/* "cpu: node_1, node_2 | host: node_3", from the partition itself. */
static void describe(const cellgate_session *session, bool masked, char *text,
                     size_t size)
{
    const cg_placement *placement =
        session->candidates[session->primary].placement;
    const cg_partition *partition = &placement->partitions[masked];

    text[0] = '\0';
    for (size_t at = 0; at < partition->count; at++) {
        const cg_part *part = &partition->parts[at];
        size_t used = strlen(text);

        snprintf(text + used, size - used, "%s%s: %s", at > 0 ? " | " : "",
                 part->segment != NULL ? cg_placement_name(placement) : "host",
                 part->segment != NULL
                     ? part->segment->names
                     : placement->graph->nodes[part->node].name);
    }
}

/* Takes over the model. */
static void expect_cut(cellgate_model *model, const char *device, bool masked,
                       const char *wanted)
{
    cellgate_session *session = rig_session(runtime, model, device, NULL);
    const cg_partition *partition;
    char text[1000];

    assert_int_equal(
        cg_placement_partition(session->candidates[session->primary].placement,
                               masked, &partition, NULL),
        CELLGATE_OK);
    describe(session, masked, text, sizeof text);
    assert_string_equal(text, wanted);
    cellgate_session_destroy(session);
    cellgate_model_destroy(model);
}

/* Input 3, LSTM (node_k), then what `next` adds. */
typedef struct start {
    rig_model rig;
    int32_t x;
    rig_lstm lstm;
} start;

static void start_lstm(start *with, bool masked, int32_t directions,
                       bool zero_masked)
{
    rig_model_begin(&with->rig, 1);
    with->x = rig_input(&with->rig, CG_UNKNOWN, 3);
    rig_lstm_init(&with->lstm, 3, 4);
    with->lstm.shape.directions = directions;
    with->lstm.zero_masked = zero_masked;
    with->lstm.mask = masked ? rig_mask(&with->rig, 0) : CG_NO_VALUE;
    rig_add_lstm(&with->rig, with->x, &with->lstm);
}

static cellgate_model *finish(start *with, int32_t output)
{
    rig_output(&with->rig, output);
    return rig_model_end(&with->rig);
}

static cellgate_model *lstm_dense(bool masked, int32_t directions,
                                  bool zero_masked, bool last)
{
    start with;
    int32_t y;

    start_lstm(&with, masked, directions, zero_masked);
    y = rig_dense(&with.rig, last ? with.lstm.last : with.lstm.sequence,
                  4 * directions, 2, CELLGATE_TANH);
    return finish(&with, y);
}

static void chains_run_as_one(void **state)
{
    (void)state;
    expect_cut(lstm_dense(false, 1, false, false), "cpu", false,
               "cpu: node_5, node_7");
    expect_cut(lstm_dense(false, 2, false, true), "cpu", false,
               "cpu: node_7, node_9");
    expect_cut(lstm_dense(false, 1, false, true), "host", false,
               "host: node_5 | host: node_7");
}

/* A mask that nobody gives cuts nothing. */
static void absent_masks_cut_nothing(void **state)
{
    (void)state;
    expect_cut(lstm_dense(true, 2, false, false), "cpu", false,
               "cpu: node_7, node_9");
    expect_cut(lstm_dense(true, 1, true, true), "cpu", false,
               "cpu: node_5, node_7");
}

/* What masked steps hold must be put right before it goes on. */
static void masks_cut_where_they_must(void **state)
{
    (void)state;
    expect_cut(lstm_dense(true, 2, false, false), "cpu", true,
               "cpu: node_7 | cpu: node_9");
    expect_cut(lstm_dense(true, 1, true, true), "cpu", true,
               "cpu: node_5 | cpu: node_7");
    expect_cut(lstm_dense(true, 1, false, false), "cpu", true,
               "cpu: node_5, node_7");
    expect_cut(lstm_dense(true, 2, true, false), "cpu", true,
               "cpu: node_7, node_9");
    expect_cut(lstm_dense(true, 1, false, true), "cpu", true,
               "cpu: node_5, node_7");
}

static cellgate_model *two_lstms(bool second_masked)
{
    start with;
    rig_lstm second;

    start_lstm(&with, true, 2, false);
    rig_lstm_init(&second, 8, 4);
    second.mask = second_masked ? with.lstm.mask : CG_NO_VALUE;
    rig_add_lstm(&with.rig, with.lstm.sequence, &second);
    return finish(&with, second.sequence);
}

static void lstms_with_one_mask_run_together(void **state)
{
    (void)state;
    expect_cut(two_lstms(true), "cpu", true, "cpu: node_7, node_12");
    expect_cut(two_lstms(false), "cpu", true, "cpu: node_7 | cpu: node_12");
    expect_cut(two_lstms(false), "cpu", false, "cpu: node_7, node_12");
}

static void a_value_used_twice_ends_the_chain(void **state)
{
    start with;
    int32_t y;

    (void)state;
    start_lstm(&with, false, 1, false);
    y = rig_dense(&with.rig, with.lstm.sequence, 4, 2, CELLGATE_TANH);
    rig_output(&with.rig, with.lstm.sequence);
    expect_cut(finish(&with, y), "cpu", false, "cpu: node_5 | cpu: node_7");
    start_lstm(&with, false, 1, false);
    y = rig_dense(&with.rig, with.lstm.sequence, 4, 2, CELLGATE_TANH);
    rig_output(&with.rig, with.lstm.last); /* both leave the LSTM */
    expect_cut(finish(&with, y), "cpu", false, "cpu: node_5 | cpu: node_7");
    start_lstm(&with, false, 1, false);
    y = rig_dense(&with.rig, with.lstm.sequence, 4, 2, CELLGATE_TANH);
    rig_output(&with.rig, with.lstm.final[0]); /* states may leave it */
    expect_cut(finish(&with, y), "cpu", false, "cpu: node_5, node_7");
}

/* The second LSTM starts from the first one's state: it has to wait for it. */
static void states_order_segments(void **state)
{
    start with;
    rig_lstm second;

    (void)state;
    start_lstm(&with, false, 1, false);
    rig_lstm_init(&second, 4, 4);
    memcpy(second.initial, with.lstm.final, sizeof second.initial);
    rig_add_lstm(&with.rig, with.lstm.sequence, &second);
    expect_cut(finish(&with, second.sequence), "cpu", false,
               "cpu: node_5 | cpu: node_10");
}

/*
 * Two chains, each of whose second LSTMs starts from the state of the other's
 * first: as two segments they would wait for each other.
 */
static void chains_do_not_wait_in_a_circle(void **state)
{
    rig_model rig;
    rig_lstm a, b, c, d;
    int32_t x;

    (void)state;
    rig_model_begin(&rig, 1);
    x = rig_input(&rig, CG_UNKNOWN, 4);
    rig_lstm_init(&a, 4, 4);
    rig_add_lstm(&rig, x, &a);
    rig_lstm_init(&b, 4, 4);
    rig_add_lstm(&rig, x, &b);
    rig_lstm_init(&c, 4, 4);
    memcpy(c.initial, b.final, sizeof c.initial);
    rig_add_lstm(&rig, a.sequence, &c);
    rig_lstm_init(&d, 4, 4);
    memcpy(d.initial, a.final, sizeof d.initial);
    rig_add_lstm(&rig, b.sequence, &d);
    rig_output(&rig, c.sequence);
    rig_output(&rig, d.sequence);
    expect_cut(rig_model_end(&rig), "cpu", false,
               "cpu: node_10 | cpu: node_5, node_15 | cpu: node_20");
}

static void refusals_go_to_the_host_with_their_reason(void **state)
{
    cellgate_segment_info info = { .struct_size = sizeof info };
    cellgate_report report = { .struct_size = sizeof report };
    cellgate_session *session;
    cellgate_model *model;
    rig_request request;
    uint64_t random = 3;
    start with;
    int32_t y;

    (void)state;
    start_lstm(&with, false, 1, false);
    y = rig_dense(&with.rig, with.lstm.sequence, 4, 2, CELLGATE_TANH);
    y = rig_simple(&with.rig, CG_SOFTMAX, y);
    model = finish(&with, y);
    session = rig_session(runtime, model, "card", NULL);
    assert_int_equal(cellgate_session_segment_count(session), 2);
    assert_int_equal(cellgate_session_segment_get(session, 0, &info),
                     CELLGATE_OK);
    assert_string_equal(info.device, "card");
    assert_string_equal(info.nodes, "node_5, node_7");
    assert_non_null(strstr(info.reason, "not together with node_9"));
    assert_int_equal(cellgate_session_segment_get(session, 1, &info),
                     CELLGATE_OK);
    assert_string_equal(info.device, "host");
    assert_string_equal(info.variant, "");
    assert_string_equal(info.nodes, "node_9");
    assert_true(strlen(info.reason) > 10);
    assert_int_equal(cellgate_session_segment_get(session, 2, &info),
                     CELLGATE_END);
    rig_request_init(&request, session, model, 2, 3, 0, &random);
    rig_run(session, &request, &report);
    assert_int_equal(report.segments, 1);
    assert_int_equal(report.host_segments, 1);
    assert_non_null(strstr(report.reason, "host: node_9"));
    rig_request_finish(&request);
    cellgate_session_destroy(session);
    cellgate_model_destroy(model);
}

/* Both partitions keep one set of weights where they cut alike. */
static void partitions_share_segments(void **state)
{
    cellgate_model *model = lstm_dense(true, 1, false, false);
    cellgate_session *session = rig_session(runtime, model, "cpu", NULL);
    cg_placement *placement = session->candidates[session->primary].placement;
    const cg_partition *partition;

    (void)state;
    assert_int_equal(session->pool.count, 1);
    assert_int_equal(cg_placement_partition(placement, true, &partition, NULL),
                     CELLGATE_OK);
    assert_int_equal(session->pool.count, 1);
    assert_ptr_equal(placement->partitions[0].parts[0].segment,
                     placement->partitions[1].parts[0].segment);
    cellgate_session_destroy(session);
    cellgate_model_destroy(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(chains_run_as_one),
        cmocka_unit_test(absent_masks_cut_nothing),
        cmocka_unit_test(masks_cut_where_they_must),
        cmocka_unit_test(lstms_with_one_mask_run_together),
        cmocka_unit_test(a_value_used_twice_ends_the_chain),
        cmocka_unit_test(states_order_segments),
        cmocka_unit_test(chains_do_not_wait_in_a_circle),
        cmocka_unit_test(refusals_go_to_the_host_with_their_reason),
        cmocka_unit_test(partitions_share_segments),
    };

    return cmocka_run_group_tests(tests, open_runtime, close_runtime);
}
