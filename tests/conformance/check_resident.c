/* SPDX-License-Identifier: Apache-2.0 */
/* State that stays on the device, where it's offered. */
#include "config.h"

#include <stdlib.h>

#include "tests/conformance/crash.h"
#include "tests/conformance/suite.h"

/* Room for the states of all ops of a case, as export gives them. */
typedef struct state_room {
    float *h[CASE_MAX_OPS], *c[CASE_MAX_OPS];
    cellgate_lstm_state states[CASE_MAX_OPS];
} state_room;

static int64_t h_size(const case_data *data, int32_t op)
{
    const case_op *o = &data->c.ops[op];
    return o->directions * data->c.batch * case_state_width(o);
}

static int64_t c_size(const case_data *data, int32_t op)
{
    const case_op *o = &data->c.ops[op];
    return o->directions * data->c.batch * o->size;
}

static void room_finish(state_room *room)
{
    for (int i = 0; i < CASE_MAX_OPS; i++) {
        free(room->h[i]);
        free(room->c[i]);
    }
}

static int room_init(state_room *room, const case_data *data)
{
    memset(room, 0, sizeof *room);
    for (int32_t i = 0; i < data->c.op_count; i++) {
        if (data->c.ops[i].kind != CELLGATE_OP_LSTM)
            continue;
        room->h[i] = calloc((size_t)h_size(data, i), sizeof(float));
        room->c[i] = calloc((size_t)c_size(data, i), sizeof(float));
        if (room->h[i] == NULL || room->c[i] == NULL) {
            room_finish(room);
            return -1;
        }
        room->states[i].h = room->h[i];
        room->states[i].c = room->c[i];
    }
    return 0;
}

/* One resident state on trial. */
typedef struct trial {
    suite_plan *p;
    const case_data *data;
    cellgate_resident *resident;
} trial;

/* Whether the resident state is exactly this; NULL entries mean zeros. */
static int holds(trial *t, float *const *h0, float *const *c0, const char *when)
{
    const cellgate_plugin *table = &t->p->s->plugin.table;
    cellgate_error error = CELLGATE_ERROR_INIT;
    state_room room;
    int same = 1;

    if (room_init(&room, t->data) != 0)
        return 0;
    for (int32_t i = 0; i < t->data->c.op_count; i++) { /* not zeros */
        for (int64_t k = 0; room.h[i] != NULL && k < h_size(t->data, i); k++)
            room.h[i][k] = -77.0f;
        for (int64_t k = 0; room.c[i] != NULL && k < c_size(t->data, i); k++)
            room.c[i][k] = -77.0f;
    }
    if (table->resident_export(t->resident, room.states, &error) !=
        CELLGATE_OK) {
        suite_fail(t->p, "resident_export() %s failed: %s", when, error.text);
        room_finish(&room);
        return 0;
    }
    for (int32_t i = 0; i < t->data->c.op_count; i++) {
        if (room.h[i] == NULL)
            continue;
        for (int64_t k = 0; k < h_size(t->data, i); k++)
            same &= room.h[i][k] == (h0[i] != NULL ? h0[i][k] : 0.0f);
        for (int64_t k = 0; k < c_size(t->data, i); k++)
            same &= room.c[i][k] == (c0[i] != NULL ? c0[i][k] : 0.0f);
    }
    room_finish(&room);
    if (!same)
        suite_fail(t->p, "the resident state %s is not what it must be", when);
    return same;
}

static int import(trial *t)
{
    const cellgate_plugin *table = &t->p->s->plugin.table;
    cellgate_lstm_state states[CASE_MAX_OPS];
    cellgate_error error = CELLGATE_ERROR_INIT;

    memset(states, 0, sizeof states);
    for (int32_t i = 0; i < t->data->c.op_count; i++) {
        states[i].h0 = t->data->h0[i];
        states[i].c0 = t->data->c0[i];
    }
    if (table->resident_import(t->resident, states, &error) == CELLGATE_OK)
        return 0;
    suite_fail(t->p, "resident_import() failed: %s", error.text);
    return -1;
}

/* A run that reads and updates the resident state in place of h0 and c0. */
static void use_resident(trial *t, execution *with)
{
    with->run.resident = t->resident;
    for (int i = 0; i < CASE_MAX_OPS; i++) {
        with->states[i].h0 = NULL;
        with->states[i].c0 = NULL;
    }
}

/* A run that must fail leaves the state as it was. */
static int failing_run(trial *t)
{
    const cellgate_plugin *table = &t->p->s->plugin.table;
    cellgate_error error = CELLGATE_ERROR_INIT;
    test_case longer = t->data->c;
    execution with;
    case_data data;
    cellgate_status status = CELLGATE_OK;

    longer.steps++;
    if (case_data_init(&data, &longer) != 0)
        return -1;
    if (execution_init(&with, &data, GUARD_MARGINS) == 0) {
        use_resident(t, &with);
        status = table->run(t->p->plan, &with.run, &error);
        execution_finish(&with);
    }
    case_data_finish(&data);
    if (status == CELLGATE_OK) {
        suite_fail(t->p, "a run beyond the plan's steps did not fail");
        return -1;
    }
    return holds(t, t->data->h0, t->data->c0, "after a failed run") ? 0 : -1;
}

/* The exported state is the run's own final h and c, bit for bit. */
static int state_is_result(trial *t, const results *got)
{
    float *h[CASE_MAX_OPS] = { NULL }, *c[CASE_MAX_OPS] = { NULL };

    for (int32_t i = 0; i < t->data->tensor_count; i++) {
        const case_tensor *tensor = &t->data->tensors[i];
        if (tensor->kind == CASE_H)
            h[tensor->op] = got->values[i];
        else if (tensor->kind == CASE_C)
            c[tensor->op] = got->values[i];
    }
    return holds(t, h, c, "after a run, against the run's own h and c");
}

static int round_trip(trial *t, expected *e)
{
    float *zeros[CASE_MAX_OPS] = { NULL };
    results got = { NULL, { NULL } };
    execution with;
    int result = -1;

    if (!holds(t, zeros, zeros, "at first") || import(t) != 0 ||
        !holds(t, t->data->h0, t->data->c0, "after import") ||
        failing_run(t) != 0 ||
        execution_init(&with, t->data, GUARD_MARGINS) != 0)
        return -1;
    use_resident(t, &with);
    if (results_init(&got, t->data) == 0 && suite_run(t->p, &with, &got) == 0 &&
        suite_compare(t->p, e, &got, "with resident state") != -1 &&
        state_is_result(t, &got))
        result = 0;
    results_finish(&got);
    execution_finish(&with);
    return result;
}

static void try_variant(suite *s, const case_data *data,
                        const cellgate_variant *variant, expected *e)
{
    const cellgate_plugin *table = &s->plugin.table;
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_status status;
    suite_plan p;
    trial t = { &p, data, NULL };

    if (suite_plan_init(&p, s, data, variant, NULL, data->c.batch,
                        data->c.steps) != 0)
        return;
    status =
        table->resident_create(p.weights, data->c.batch, &t.resident, &error);
    if (status == CELLGATE_UNSUPPORTED && error.text[0] != '\0' &&
        error.reason != CELLGATE_REASON_NONE)
        report_refused(s->report, data->c.group, error.reason, error.text);
    else if (status != CELLGATE_OK)
        suite_fail(&p, "resident_create() failed with status %d: %s",
                   (int)status, error.text);
    else if (round_trip(&t, e) == 0)
        report_passed(s->report, data->c.group, variant->name, 0);
    if (status == CELLGATE_OK)
        table->resident_destroy(t.resident);
    suite_plan_finish(&p);
}

static void resident(suite *s, const test_case *c)
{
    char description[1000];
    suite_offer offer;
    case_data data;
    expected e;

    if (!suite_wants(s, c) || case_data_init(&data, c) != 0)
        return;
    case_describe(c, description, sizeof description);
    suite_ask(s, &data, &offer);
    if (expected_init(&e, &data) == 0) {
        for (uint32_t i = 0; i < offer.count; i++) {
            crash_context(description, offer.variants[i].name);
            try_variant(s, &data, &offer.variants[i], &e);
        }
        expected_finish(&e);
    }
    case_data_finish(&data);
}

void group_resident(suite *s)
{
    const cellgate_plugin *table = &s->plugin.table;
    int offered =
        (table->resident_create != NULL) + (table->resident_destroy != NULL) +
        (table->resident_export != NULL) + (table->resident_import != NULL);

    if (!s->options->list && !s->options->variants && offered == 0) {
        if (suite_wants_check(s, "resident", "resident state"))
            report_skipped(s->report, "resident", NULL, "not offered");
        return;
    }
    if (!s->options->list && !s->options->variants && offered != 4) {
        report_failed(s->report, "resident", NULL, "the plugin's table",
                      "%d of the four resident callbacks are set; it must be "
                      "all or none",
                      offered);
        return;
    }
    for (int i = 0; i < 6; i++) {
        test_case c = case_of("resident", s->options->seed * 1000 + (uint64_t)i,
                              case_lstm(8 + i));
        c.batch = 1 + 2 * i;
        c.state = CASE_STATE_GIVEN;
        c.lengths = i % 2 ? CASE_WITH_ZEROS : CASE_FULL;
        c.ops[0].directions = i < 3 ? 1 : 2;
        if (i == 2 || i == 5) {
            c.op_count = 2;
            c.ops[0].outputs &= ~(uint32_t)CELLGATE_LSTM_LAST;
            c.ops[1] = case_lstm(4);
        }
        resident(s, &c);
    }
}
