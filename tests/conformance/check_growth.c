/* SPDX-License-Identifier: Apache-2.0 */
/* The growth rules of the ABI: structs older and newer than the plugin. */
#include "config.h"

#include <stddef.h>

#include "tests/conformance/crash.h"
#include "tests/conformance/suite.h"

#define NEWER 24 /* bytes that a later version might append */
#define CANARY 0xC3

/* One check of this group; -1: it has reported what's wrong. */
typedef struct growth {
    suite *s;
    case_data data; /* an LSTM of the minimum profile */
} growth;

__attribute__((format(printf, 2, 3))) static int broken(growth *g,
                                                        const char *format, ...)
{
    char text[600];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    report_failed(g->s->report, "growth", NULL, "older and newer structs", "%s",
                  text);
    return -1;
}

static cellgate_status ask(growth *g, const cellgate_segment *segment,
                           const cellgate_shape *shape, cellgate_error *error)
{
    cellgate_variant v = { .struct_size = sizeof v };

    *error = (cellgate_error)CELLGATE_ERROR_INIT;
    return g->s->plugin.table.support(g->s->device, segment, shape, 0, &v,
                                      error);
}

/* ---- Newer structs ------------------------------------------------------- */

/* An op with NEWER bytes behind it, all zero but the one at `set` (or none). */
static cellgate_status ask_newer_op(growth *g, const case_op_storage *op,
                                    int set, cellgate_error *error)
{
    union {
        cellgate_op op;
        case_op_storage known;
        unsigned char bytes[sizeof(case_op_storage) + NEWER];
    } newer;
    const cellgate_op *list[1] = { &newer.op };
    cellgate_segment segment = { sizeof segment, 1, 0, list };

    memset(&newer, 0, sizeof newer);
    memcpy(&newer, op, op->op.struct_size);
    if (set >= 0)
        newer.bytes[op->op.struct_size + (size_t)set] = 1;
    newer.op.struct_size = op->op.struct_size + NEWER;
    return ask(g, &segment, NULL, error);
}

static int newer_op_of(growth *g, const test_case *c)
{
    cellgate_error error;
    case_data data;
    int result = 0;

    if (case_data_init(&data, c) != 0)
        return -1;
    if (ask(g, &data.structure, NULL, &error) == CELLGATE_OK) {
        int kind = c->ops[0].kind;
        if (ask_newer_op(g, &data.bare_ops[0], -1, &error) != CELLGATE_OK)
            result = broken(g,
                            "an op of kind %d with trailing zeros was refused "
                            "(zero is the default): %s",
                            kind, error.text);
        for (int set = 0; set < NEWER && result == 0; set++) {
            cellgate_status status =
                ask_newer_op(g, &data.bare_ops[0], set, &error);
            if (status != CELLGATE_UNSUPPORTED ||
                error.reason != CELLGATE_REASON_FIELD)
                result = broken(g,
                                "an op of kind %d with a field that the "
                                "plugin doesn't know (byte %d beyond) gave "
                                "status %d, reason %s; it must be UNSUPPORTED "
                                "with FIELD",
                                kind, set, (int)status,
                                report_reason_name(error.reason));
        }
    }
    case_data_finish(&data);
    return result;
}

static int newer_ops(growth *g)
{
    const case_op kinds[] = {
        case_lstm(4),
        case_dense(3, CELLGATE_LINEAR),
        { .kind = CELLGATE_OP_EMBEDDING, .size = 3, .vocabulary = 5 },
        { .kind = CELLGATE_OP_ACTIVATION },
        { .kind = CELLGATE_OP_SOFTMAX },
    };

    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        test_case c = case_of("growth", 1, kinds[i]);
        if (newer_op_of(g, &c) != 0)
            return -1;
    }
    return 0;
}

static int unknown_kind(growth *g)
{
    cellgate_op unknown = { sizeof unknown, 9999, 0 };
    const cellgate_op *alone[] = { &unknown };
    const cellgate_op *behind[] = { &g->data.bare_ops[0].op, &unknown };
    cellgate_segment segments[] = { { sizeof segments[0], 1, 0, alone },
                                    { sizeof segments[0], 2, 0, behind } };
    cellgate_error error;
    cellgate_status status = ask(g, &segments[0], NULL, &error);

    if (status != CELLGATE_UNSUPPORTED || error.reason != CELLGATE_REASON_KIND)
        return broken(g,
                      "an op of an unknown kind gave status %d, reason %s; it "
                      "must be UNSUPPORTED with KIND",
                      (int)status, report_reason_name(error.reason));
    status = ask(g, &segments[1], NULL, &error);
    if (status != CELLGATE_UNSUPPORTED ||
        (error.reason != CELLGATE_REASON_KIND &&
         error.reason != CELLGATE_REASON_CHAIN))
        return broken(g,
                      "an op of an unknown kind behind an LSTM gave status "
                      "%d, reason %s; it must be UNSUPPORTED with KIND or "
                      "CHAIN",
                      (int)status, report_reason_name(error.reason));
    return 0;
}

static int newer_segment(growth *g)
{
    struct {
        cellgate_segment known;
        unsigned char newer[NEWER];
    } segment = { g->data.structure, { 0 } };
    cellgate_error error;

    segment.known.struct_size = sizeof segment;
    if (ask(g, &segment.known, NULL, &error) != CELLGATE_OK)
        return broken(g, "a longer segment struct with zeros was refused: %s",
                      error.text);
    segment.newer[NEWER - 1] = 1;
    if (ask(g, &segment.known, NULL, &error) == CELLGATE_OK)
        return broken(g, "a segment with an unknown field was taken");
    return 0;
}

/* A newer shape: in support() and in plan_create(). */
static int newer_shape(growth *g)
{
    const cellgate_plugin *table = &g->s->plugin.table;
    struct {
        cellgate_shape known;
        unsigned char newer[NEWER];
    } shape = { { sizeof shape, 2, 3 }, { 0 } };
    cellgate_error error;

    if (ask(g, &g->data.structure, &shape.known, &error) != CELLGATE_OK)
        return broken(g, "a longer shape struct with zeros was refused: %s",
                      error.text);
    shape.newer[0] = 1;
    if (ask(g, &g->data.structure, &shape.known, &error) == CELLGATE_OK)
        return broken(g, "support() took a shape with an unknown field");
    {
        cellgate_variant v = { .struct_size = sizeof v };
        cellgate_weights *weights = NULL;
        cellgate_plan *plan = NULL;
        int result = 0;
        error = (cellgate_error)CELLGATE_ERROR_INIT;
        if (table->support(g->s->device, &g->data.structure, NULL, 0, &v,
                           &error) != CELLGATE_OK ||
            table->prepare(g->s->device, &g->data.segment, v.pack, &weights,
                           &error) != CELLGATE_OK)
            return broken(g, "prepare() failed: %s", error.text);
        if (table->plan_create(g->s->device, weights, v.id, &shape.known, &plan,
                               &error) == CELLGATE_OK) {
            table->plan_destroy(plan);
            result = broken(g, "plan_create() took a shape with an unknown "
                               "field");
        }
        table->weights_free(weights);
        return result;
    }
}

/* ---- Older structs ------------------------------------------------------- */

static int untouched(const unsigned char *bytes, size_t from, size_t to)
{
    for (size_t i = from; i < to; i++)
        if (bytes[i] != CANARY)
            return 0;
    return 1;
}

/* A host whose variant struct ends before exact_batch. */
static int older_variant(growth *g)
{
    union {
        cellgate_variant v;
        unsigned char bytes[sizeof(cellgate_variant)];
    } older;
    size_t size = offsetof(cellgate_variant, exact_batch);
    cellgate_error error = CELLGATE_ERROR_INIT;

    memset(&older, CANARY, sizeof older);
    older.v.struct_size = size;
    if (g->s->plugin.table.support(g->s->device, &g->data.structure, NULL, 0,
                                   &older.v, &error) != CELLGATE_OK)
        return broken(g, "support() failed for an older variant struct: %s",
                      error.text);
    if (older.v.struct_size != size ||
        !untouched(older.bytes, size, sizeof older))
        return broken(g, "support() wrote beyond an older variant struct");
    if (memchr(older.v.name, '\0', sizeof older.v.name) == NULL ||
        older.v.threads == 0)
        return broken(g, "support() left an older variant struct empty");
    return 0;
}

/* A host whose description ends before `memory`. */
static int older_description(growth *g)
{
    union {
        cellgate_device_description d;
        unsigned char bytes[sizeof(cellgate_device_description)];
    } older;
    size_t size = offsetof(cellgate_device_description, memory);
    cellgate_error error = CELLGATE_ERROR_INIT;

    memset(&older, CANARY, sizeof older);
    older.d.struct_size = size;
    if (g->s->plugin.table.device_describe(g->s->plugin.instance,
                                           g->s->device_index, &older.d,
                                           &error) != CELLGATE_OK)
        return broken(g, "device_describe() failed for an older struct: %s",
                      error.text);
    if (older.d.struct_size != size ||
        !untouched(older.bytes, size, sizeof older))
        return broken(g, "device_describe() wrote beyond an older struct");
    if (strncmp(older.d.name, g->s->description.name, sizeof older.d.name) != 0)
        return broken(g, "device_describe() left an older struct empty");
    return 0;
}

/* A host whose shape struct ends before `steps`, which then are 0. */
static int older_shape(growth *g)
{
    const cellgate_plugin *table = &g->s->plugin.table;
    cellgate_shape older = { offsetof(cellgate_shape, steps), 2, INT64_MAX };
    cellgate_variant v = { .struct_size = sizeof v };
    cellgate_error error;
    cellgate_weights *weights = NULL;
    cellgate_plan *plan = NULL;
    int result = 0;

    if (ask(g, &g->data.structure, &older, &error) != CELLGATE_OK)
        return broken(g, "support() refused an older shape struct: %s",
                      error.text);
    if (table->support(g->s->device, &g->data.structure, NULL, 0, &v, &error) !=
            CELLGATE_OK ||
        table->prepare(g->s->device, &g->data.segment, v.pack, &weights,
                       &error) != CELLGATE_OK)
        return broken(g, "prepare() failed: %s", error.text);
    if (table->plan_create(g->s->device, weights, v.id, &older, &plan,
                           &error) != CELLGATE_OK)
        result = broken(g, "plan_create() refused an older shape struct: %s",
                        error.text);
    table->plan_destroy(plan);
    table->weights_free(weights);
    return result;
}

/* ---- Runs ---------------------------------------------------------------- */

/* A run struct without `resident`, and with bytes behind what is known. */
static int try_run(growth *g, suite_plan *p, expected *e, size_t size,
                   unsigned char beyond, int must_succeed)
{
    union {
        cellgate_segment_run run;
        unsigned char bytes[sizeof(cellgate_segment_run) + NEWER];
    } changed;
    cellgate_error error = CELLGATE_ERROR_INIT;
    results got = { NULL, { NULL } };
    cellgate_status status;
    execution with;
    int result = -1;

    if (execution_init(&with, &g->data, GUARD_MARGINS) != 0)
        return -1;
    memset(&changed, beyond, sizeof changed);
    memcpy(&changed, &with.run,
           size < sizeof with.run ? size : sizeof with.run);
    changed.run.struct_size = size;
    status = g->s->plugin.table.run(p->plan, &changed.run, &error);
    if (must_succeed && status != CELLGATE_OK)
        (void)broken(g,
                     "a run struct of %zu bytes (this version has %zu) "
                     "gave status %d: %s",
                     size, sizeof with.run, (int)status, error.text);
    else if (!must_succeed && status == CELLGATE_OK)
        (void)broken(g, "a run struct with an unknown field was run");
    else if (must_succeed && results_init(&got, &g->data) == 0 &&
             (execution_collect(&with, &got) != NULL ||
              suite_compare(p, e, &got, "with an older or newer run struct") ==
                  -1))
        (void)broken(g, "wrong results with an older or newer run struct");
    else
        result = 0;
    results_finish(&got);
    execution_finish(&with);
    return result;
}

static int runs(growth *g)
{
    const size_t known = sizeof(cellgate_segment_run);
    suite_offer offer;
    suite_plan p;
    expected e;
    int result = -1;

    suite_ask(g->s, &g->data, &offer);
    if (offer.count == 0)
        return 0;
    if (suite_plan_init(&p, g->s, &g->data, &offer.variants[0], NULL,
                        g->data.c.batch, g->data.c.steps) != 0)
        return -1;
    if (expected_init(&e, &g->data) == 0) {
        result = try_run(g, &p, &e, offsetof(cellgate_segment_run, resident),
                         CANARY, 1) != 0 ||
                         try_run(g, &p, &e, known + NEWER, 0, 1) != 0 ||
                         try_run(g, &p, &e, known + NEWER, 1, 0) != 0
                     ? -1
                     : 0;
        expected_finish(&e);
    }
    suite_plan_finish(&p);
    return result;
}

void group_growth(suite *s)
{
    static int (*const checks[])(growth *) = { newer_ops,     unknown_kind,
                                               newer_segment, newer_shape,
                                               older_variant, older_description,
                                               older_shape,   runs };
    static growth g;
    test_case c = case_of("growth", s->options->seed, case_lstm(6));

    if (!suite_wants_check(s, "growth", "older and newer structs"))
        return;
    g.s = s;
    if (case_data_init(&g.data, &c) != 0)
        return;
    crash_context("growth: older and newer structs", NULL);
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
        if (checks[i](&g) == 0)
            report_passed(s->report, "growth", NULL, 0);
    case_data_finish(&g.data);
}
