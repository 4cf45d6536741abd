/* SPDX-License-Identifier: Apache-2.0 */
/* One plan on trial: asking, preparing, planning, running, comparing. */
#include "config.h"

#include <stdlib.h>

#include "tests/conformance/crash.h"
#include "tests/conformance/suite.h"

void suite_fail(const suite_plan *p, const char *format, ...)
{
    char description[1000], text[700];
    va_list arguments;

    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    case_describe(&p->data->c, description, sizeof description);
    report_failed(p->s->report, p->data->c.group, p->variant.name, description,
                  "%s", text);
}

/* ---- Asking ------------------------------------------------------------- */

static void judge_refusal(suite *s, const case_data *data,
                          const cellgate_error *error)
{
    char description[1000];

    case_describe(&data->c, description, sizeof description);
    if (error->reason == CELLGATE_REASON_NONE || error->text[0] == '\0')
        report_failed(s->report, data->c.group, NULL, description,
                      "refused without a %s",
                      error->text[0] == '\0' ? "text" : "reason");
    else if (case_is_minimal(&data->c))
        report_failed(s->report, data->c.group, NULL, description,
                      "refused, though every plugin must take it: %s",
                      error->text);
    else
        report_refused(s->report, data->c.group, error->reason, error->text);
}

/* No variant takes the case; of one that was named, that is told at the end. */
static void judge_none(suite *s, const case_data *data, const char *what)
{
    char description[1000];

    if (s->options->variant != NULL || !case_is_minimal(&data->c))
        return;
    case_describe(&data->c, description, sizeof description);
    report_failed(s->report, data->c.group, NULL, description,
                  "%s, though every plugin must take it", what);
}

void suite_ask(suite *s, const case_data *data, suite_offer *offer)
{
    cellgate_shape shape = { sizeof shape, data->c.batch, data->c.steps };
    char description[1000];
    cellgate_status status = CELLGATE_OK;

    offer->count = 0;
    case_describe(&data->c, description, sizeof description);
    crash_context(description, "(support)");
    for (uint32_t i = 0; i < SUITE_MAX_VARIANTS; i++) {
        cellgate_error error = CELLGATE_ERROR_INIT;
        cellgate_variant v = { .struct_size = sizeof v };
        status = s->plugin.table.support(s->device, &data->structure, &shape, i,
                                         &v, &error);
        if (status == CELLGATE_UNSUPPORTED && i == 0) {
            judge_refusal(s, data, &error);
            return;
        }
        if (status != CELLGATE_OK)
            break;
        v.refusal[sizeof v.refusal - 1] = '\0';
        if (v.refusal[0] != '\0') {
            report_refused(s->report, data->c.group, CELLGATE_REASON_DEVICE,
                           v.refusal);
            continue;
        }
        if (s->options->variant == NULL ||
            strcmp(s->options->variant, v.name) == 0)
            offer->variants[offer->count++] = v;
    }
    if (status != CELLGATE_END)
        report_failed(s->report, data->c.group, NULL, description,
                      "support() gave status %d where END ends the list",
                      (int)status);
    else if (offer->count == 0)
        judge_none(s, data, "support() lists no variant that can run");
}

/*
 * What turned out when weights were prepared, a plan made or a run tried:
 * UNSUPPORTED is no failure where support() refuses the variant at that shape
 * from then on, and says why.
 */
static int is_refused_now(suite *s, const case_data *data,
                          const cellgate_variant *variant, int64_t batch,
                          int64_t steps)
{
    const cellgate_shape shape = { sizeof shape, batch, steps };

    for (uint32_t i = 0; i < SUITE_MAX_VARIANTS; i++) {
        cellgate_error error = CELLGATE_ERROR_INIT;
        cellgate_variant v = { .struct_size = sizeof v };

        if (s->plugin.table.support(s->device, &data->structure, &shape, i, &v,
                                    &error) != CELLGATE_OK)
            return 0;
        v.refusal[sizeof v.refusal - 1] = '\0';
        if (v.id != variant->id)
            continue;
        if (v.refusal[0] != '\0')
            report_refused(s->report, data->c.group, CELLGATE_REASON_DEVICE,
                           v.refusal);
        return v.refusal[0] != '\0';
    }
    return 0;
}

/* ---- Planning ----------------------------------------------------------- */

int suite_plan_init(suite_plan *p, suite *s, const case_data *data,
                    const cellgate_variant *variant, cellgate_weights *weights,
                    int64_t batch, int64_t steps)
{
    const cellgate_plugin *table = &s->plugin.table;
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_shape shape = { sizeof shape, batch, steps };
    cellgate_status status = CELLGATE_OK;
    int result = -1;

    *p = (suite_plan){ .s = s,
                       .data = data,
                       .variant = *variant,
                       .weights = weights,
                       .owns_weights = weights == NULL };
    if (p->owns_weights)
        status = table->prepare(s->device, &data->segment, variant->pack,
                                &p->weights, &error);
    if (status == CELLGATE_OK)
        status = table->plan_create(s->device, p->weights, variant->id, &shape,
                                    &p->plan, &error);
    if (status == CELLGATE_OK)
        return 0;
    if (status == CELLGATE_DEVICE_MEMORY)
        report_skipped(s->report, data->c.group, variant->name, error.text);
    else if (status == CELLGATE_UNSUPPORTED &&
             is_refused_now(s, data, variant, batch, steps))
        result = SUITE_REFUSED;
    else
        suite_fail(p, "%s failed with status %d: %s",
                   p->weights == NULL ? "prepare()" : "plan_create()",
                   (int)status, error.text);
    suite_plan_finish(p);
    return result;
}

void suite_plan_finish(suite_plan *p)
{
    if (p->s != NULL) {
        p->s->plugin.table.plan_destroy(p->plan);
        if (p->owns_weights)
            p->s->plugin.table.weights_free(p->weights);
    }
    memset(p, 0, sizeof *p);
}

/* ---- Running ------------------------------------------------------------ */

int suite_run(suite_plan *p, execution *with, results *to)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    uint64_t before = host_allocations(&p->s->plugin.host);
    cellgate_status status =
        p->s->plugin.table.run(p->plan, &with->run, &error);
    const char *wrong;

    if (status == CELLGATE_UNSUPPORTED &&
        is_refused_now(p->s, p->data, &p->variant, with->run.batch,
                       with->run.steps)) {
        execution_reset(with);
        return SUITE_REFUSED;
    }
    if (status != CELLGATE_OK) {
        suite_fail(p, "run() failed with status %d: %s", (int)status,
                   error.text);
        execution_reset(with);
        return -1;
    }
    wrong = execution_collect(with, to);
    if (wrong != NULL) {
        suite_fail(p, "%s", wrong);
        return -1;
    }
    if (host_allocations(&p->s->plugin.host) != before) {
        suite_fail(p, "run() allocated memory");
        return -1;
    }
    return 0;
}

double suite_compare(suite_plan *p, expected *e, const results *r,
                     const char *note)
{
    int32_t numeric = p->variant.numeric;
    char text[600];
    verdict v;

    if (tolerance_class_name(numeric) == NULL) {
        suite_fail(p, "the variant's numeric class is %d, which is none",
                   (int)numeric);
        return -1;
    }
    if (expected_need_class(e, numeric) != 0) {
        suite_fail(p, "no memory for the reference");
        return -1;
    }
    v = expected_compare(e, r, numeric);
    if (v.failed) {
        verdict_describe(&v, e->data, numeric, text, sizeof text);
        suite_fail(p, "%s%s%s", note != NULL ? note : "",
                   note != NULL ? ": " : "", text);
        return -1;
    }
    return v.compared == 0 ? -2 : v.share;
}

/* ---- A whole case ------------------------------------------------------- */

/* One set of weights for each pack that the case's variants need. */
typedef struct pack_cache {
    uint32_t count;
    uint32_t packs[SUITE_MAX_VARIANTS];
    cellgate_weights *weights[SUITE_MAX_VARIANTS];
} pack_cache;

static cellgate_weights *find_pack(const pack_cache *cache, uint32_t pack)
{
    for (uint32_t i = 0; i < cache->count; i++)
        if (cache->packs[i] == pack)
            return cache->weights[i];
    return NULL;
}

/* SUITE_REFUSED: refused when it came to it. */
static int try_variant(suite *s, const case_data *data,
                       const cellgate_variant *variant, expected *e,
                       pack_cache *cache)
{
    cellgate_weights *shared = find_pack(cache, variant->pack);
    execution with;
    results got = { NULL, { NULL } };
    suite_plan p;
    double share;
    int result = suite_plan_init(&p, s, data, variant, shared, data->c.batch,
                                 data->c.steps);

    if (result != 0)
        return result;
    if (execution_init(&with, data, GUARD_MARGINS) == 0 &&
        results_init(&got, data) == 0) {
        result = suite_run(&p, &with, &got);
        if (result == 0) {
            share = suite_compare(&p, e, &got, NULL);
            if (share >= 0)
                report_passed(s->report, data->c.group, variant->name, share);
            else if (share == -2)
                report_skipped(s->report, data->c.group, variant->name,
                               "no row of it can be compared in this class");
        }
        execution_finish(&with);
    } else {
        suite_fail(&p, "no memory for the case");
    }
    results_finish(&got);
    if (p.owns_weights) { /* Later variants of the pack share them. */
        p.owns_weights = 0;
        cache->packs[cache->count] = variant->pack;
        cache->weights[cache->count++] = p.weights;
    }
    suite_plan_finish(&p);
    return result;
}

/* Every variant that is offered. */
static void try_all(suite *s, const case_data *data, const suite_offer *offer,
                    const char *description)
{
    pack_cache cache = { 0 };
    uint32_t refused = 0;
    expected e;

    if (expected_init(&e, data) != 0) {
        report_failed(s->report, data->c.group, NULL, description,
                      "the reference cannot compute this case");
        return;
    }
    for (uint32_t i = 0; i < offer->count; i++) {
        const cellgate_variant *variant = &offer->variants[i];

        crash_context(description, variant->name);
        refused += try_variant(s, data, variant, &e, &cache) == SUITE_REFUSED;
    }
    if (refused == offer->count)
        judge_none(s, data, "each variant was offered, and refuses it");
    expected_finish(&e);
    for (uint32_t i = 0; i < cache.count; i++)
        s->plugin.table.weights_free(cache.weights[i]);
}

void suite_case(suite *s, const test_case *c)
{
    char description[1000];
    suite_offer offer;
    case_data data;

    if (!suite_wants(s, c) || case_data_init(&data, c) != 0)
        return;
    case_describe(c, description, sizeof description);
    suite_ask(s, &data, &offer);
    if (offer.count > 0)
        try_all(s, &data, &offer, description);
    case_data_finish(&data);
}
