/* SPDX-License-Identifier: Apache-2.0 */
/* What a plugin may offer besides: breakdown, host memory, memory in use. */
#include "config.h"

#include <math.h>

#include "tests/conformance/crash.h"
#include "tests/conformance/suite.h"

static void breakdown(suite_plan *p, double wall)
{
    cellgate_breakdown b = { .struct_size = sizeof b };
    cellgate_error error = CELLGATE_ERROR_INIT;
    double sum;

    if (p->s->plugin.table.breakdown(p->plan, &b, &error) != CELLGATE_OK) {
        suite_fail(p, "breakdown() failed: %s", error.text);
        return;
    }
    sum = b.upload + b.compute + b.download;
    /* Device clocks and the host's differ a little. */
    if (!(b.upload >= 0) || !(b.compute >= 0) || !(b.download >= 0) ||
        !isfinite(sum) || sum > 1.5 * wall + 1e-3)
        suite_fail(p,
                   "breakdown() says %g s up, %g s compute, %g s down of a "
                   "run that took %g s",
                   b.upload, b.compute, b.download, wall);
    else
        report_passed(p->s->report, p->data->c.group, p->variant.name, 0);
}

/* A run whose x and y lie in memory of the device's own choice. */
static void host_memory(suite_plan *p, expected *e)
{
    const cellgate_plugin *table = &p->s->plugin.table;
    results got = { NULL, { NULL } };
    execution with;
    void *x, *mine;
    double share;

    if (execution_init(&with, p->data, GUARD_MARGINS) != 0)
        return;
    x = table->host_allocate(p->s->device, with.x.count * sizeof(float));
    if (x == NULL) {
        suite_fail(p, "host_allocate() of %zu bytes gave NULL",
                   with.x.count * sizeof(float));
    } else {
        memcpy(x, with.x.data, with.x.count * sizeof(float));
        mine = with.run.x.data;
        with.run.x.data = x;
        if (results_init(&got, p->data) == 0 &&
            suite_run(p, &with, &got) == 0) {
            share = suite_compare(p, e, &got,
                                  "with x in host_allocate()d "
                                  "memory");
            if (share != -1)
                report_passed(p->s->report, p->data->c.group, p->variant.name,
                              share);
        }
        with.run.x.data = mine;
        table->host_release(p->s->device, x);
    }
    results_finish(&got);
    execution_finish(&with);
}

static void try_variant(suite *s, const case_data *data,
                        const cellgate_variant *variant, expected *e)
{
    const cellgate_plugin *table = &s->plugin.table;
    uint64_t before =
        table->memory_used != NULL ? table->memory_used(s->device) : 0;
    results got = { NULL, { NULL } };
    execution with;
    suite_plan p;
    double start;

    if (suite_plan_init(&p, s, data, variant, NULL, data->c.batch,
                        data->c.steps) != 0)
        return;
    if (execution_init(&with, data, GUARD_MARGINS) == 0) {
        start = suite_clock(s);
        if (results_init(&got, data) == 0 && suite_run(&p, &with, &got) == 0 &&
            table->breakdown != NULL)
            breakdown(&p, suite_clock(s) - start);
        results_finish(&got);
        execution_finish(&with);
    }
    if (table->host_allocate != NULL && table->host_release != NULL)
        host_memory(&p, e);
    if (table->memory_used != NULL) {
        uint64_t during = table->memory_used(s->device);
        suite_plan reporter = p;
        suite_plan_finish(&p);
        if (table->memory_used(s->device) > during)
            suite_fail(&reporter, "memory_used() grew when a plan and weights "
                                  "were freed");
        else if (during < before)
            suite_fail(&reporter, "memory_used() shrank when weights and a "
                                  "plan were made");
        else
            report_passed(s->report, data->c.group, variant->name, 0);
    }
    suite_plan_finish(&p);
}

void group_optional(suite *s)
{
    const cellgate_plugin *table = &s->plugin.table;
    test_case c = case_of("optional", s->options->seed, case_lstm(24));
    suite_offer offer;
    case_data data;
    expected e;

    c.batch = 8;
    c.steps = 30;
    if (!suite_wants(s, &c))
        return;
    if (table->breakdown == NULL && table->host_allocate == NULL &&
        table->memory_used == NULL)
        report_skipped(s->report, c.group, NULL,
                       "no breakdown, host memory or memory in use offered");
    if ((table->host_allocate == NULL) != (table->host_release == NULL))
        report_failed(s->report, c.group, NULL, "the plugin's table",
                      "host_allocate and host_release: one without the other");
    if (case_data_init(&data, &c) != 0)
        return;
    crash_context("optional: breakdown, host memory, memory in use", NULL);
    suite_ask(s, &data, &offer);
    if (expected_init(&e, &data) == 0) {
        for (uint32_t i = 0; i < offer.count; i++)
            try_variant(s, &data, &offer.variants[i], &e);
        expected_finish(&e);
    }
    case_data_finish(&data);
}
