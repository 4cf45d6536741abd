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
    else if (status != CELLGATE_UNSUPPORTED ||
             !is_refused_now(s, data, variant, batch, steps))
        suite_fail(p, "%s failed with status %d: %s",
                   p->weights == NULL ? "prepare()" : "plan_create()",
                   (int)status, error.text);
    suite_plan_finish(p);
    return -1;
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

    if (status != CELLGATE_OK) {
        if (status != CELLGATE_UNSUPPORTED ||
            !is_refused_now(p->s, p->data, &p->variant, with->run.batch,
                            with->run.steps))
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

static void try_variant(suite *s, const case_data *data,
                        const cellgate_variant *variant, expected *e,
                        pack_cache *cache)
{
    cellgate_weights *shared = find_pack(cache, variant->pack);
    execution with;
    results got = { NULL, { NULL } };
    suite_plan p;
    double share;

    if (suite_plan_init(&p, s, data, variant, shared, data->c.batch,
                        data->c.steps) != 0)
        return;
    if (execution_init(&with, data, GUARD_MARGINS) == 0 &&
        results_init(&got, data) == 0) {
        if (suite_run(&p, &with, &got) == 0) {
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
}

void suite_case(suite *s, const test_case *c)
{
    pack_cache cache = { 0 };
    char description[1000];
    suite_offer offer;
    case_data data;
    expected e;

    if (!suite_wants(s, c) || case_data_init(&data, c) != 0)
        return;
    case_describe(c, description, sizeof description);
    suite_ask(s, &data, &offer);
    if (offer.count > 0) {
        if (expected_init(&e, &data) == 0) {
            for (uint32_t i = 0; i < offer.count; i++) {
                crash_context(description, offer.variants[i].name);
                try_variant(s, &data, &offer.variants[i], &e, &cache);
            }
            expected_finish(&e);
        } else {
            report_failed(s->report, c->group, NULL, description,
                          "the reference cannot compute this case");
        }
    }
    for (uint32_t i = 0; i < cache.count; i++)
        s->plugin.table.weights_free(cache.weights[i]);
    case_data_finish(&data);
}
