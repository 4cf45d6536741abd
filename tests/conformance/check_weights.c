/* SPDX-License-Identifier: Apache-2.0 */
/* Weights, plans and devices made and freed: in any order, without leaks. */
#include "config.h"

#include <malloc.h>

#include "tests/conformance/crash.h"
#include "tests/conformance/suite.h"

/* ---- Two sets of weights at once ---------------------------------------- */

static int run_and_compare(suite_plan *p, const char *note)
{
    results got = { NULL, { NULL } };
    execution with;
    expected e;
    double share = -1;

    if (execution_init(&with, p->data, GUARD_MARGINS) != 0)
        return -1;
    if (results_init(&got, p->data) == 0 && suite_run(p, &with, &got) == 0 &&
        expected_init(&e, p->data) == 0) {
        share = suite_compare(p, &e, &got, note);
        expected_finish(&e);
    }
    results_finish(&got);
    execution_finish(&with);
    return share == -1 ? -1 : 0;
}

/* Both run; then the one numbered `first` is freed, and the other runs on. */
static int two_sets(suite *s, const case_data *data,
                    const cellgate_variant *variant, int first)
{
    suite_plan p[2] = { { 0 }, { 0 } };
    int result = -1;

    if (suite_plan_init(&p[0], s, &data[0], variant, NULL, data[0].c.batch,
                        data[0].c.steps) == 0 &&
        suite_plan_init(&p[1], s, &data[1], variant, NULL, data[1].c.batch,
                        data[1].c.steps) == 0 &&
        run_and_compare(&p[0], "the first of two sets of weights") == 0 &&
        run_and_compare(&p[1], "the second of two sets of weights") == 0 &&
        run_and_compare(&p[0], "the first set again") == 0) {
        suite_plan_finish(&p[first]);
        result = run_and_compare(&p[!first], "after the other set was freed");
    }
    suite_plan_finish(&p[0]);
    suite_plan_finish(&p[1]);
    return result;
}

void group_weights(suite *s)
{
    test_case c = case_of("weights", s->options->seed, case_lstm(11));
    test_case other = case_of("weights", s->options->seed + 1, case_lstm(11));
    char description[1000];
    case_data data[2];
    suite_offer offer;

    if (!suite_wants(s, &c) || case_data_init(&data[0], &c) != 0)
        return;
    if (case_data_init(&data[1], &other) == 0) {
        case_describe(&c, description, sizeof description);
        suite_ask(s, &data[0], &offer);
        for (uint32_t i = 0; i < offer.count; i++) {
            crash_context(description, offer.variants[i].name);
            for (int first = 0; first < 2; first++)
                if (two_sets(s, data, &offer.variants[i], first) == 0)
                    report_passed(s->report, c.group, offer.variants[i].name,
                                  0);
        }
        case_data_finish(&data[1]);
    }
    case_data_finish(&data[0]);
}

/* ---- Lives and deaths --------------------------------------------------- */

/* Bytes of the C library's heap in use; 0 where that can't be told, as under
 * a sanitizer, which has an allocator of its own. */
static size_t heap_in_use(void)
{
#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 33)
    return mallinfo2().uordblks;
#else
    return 0;
#endif
}

#define WARM_UP 20
#define WINDOWS 6

/*
 * The heap over many rounds. A driver's pools fill at some time or other, and
 * what leaks grows always: rounds are judged by the window of them in which the
 * heap grew least.
 */
typedef struct heap_watch {
    size_t begin, last; /* of all rounds, and of the window */
    size_t least;       /* growth of a window */
} heap_watch;

static void heap_look(heap_watch *watch, int round, int rounds)
{
    const int window = rounds / WINDOWS;
    size_t now, grown;

    if (round < WARM_UP || (round - WARM_UP) % window != 0)
        return;
    now = heap_in_use();
    grown = now > watch->last ? now - watch->last : 0;
    if (round == WARM_UP)
        *watch = (heap_watch){ now, now, SIZE_MAX };
    else if (grown < watch->least)
        watch->least = grown;
    watch->last = now;
}

/* More than 16 bytes a round, in every window. */
static int heap_grew(const heap_watch *watch, int rounds)
{
    return watch->least > 16 * (size_t)(rounds / WINDOWS);
}

static int live_once(suite *s, const case_data *data,
                     const cellgate_variant *variant, execution *with,
                     results *got)
{
    suite_plan p;
    int result;

    if (suite_plan_init(&p, s, data, variant, NULL, data->c.batch,
                        data->c.steps) != 0)
        return -1;
    result = suite_run(&p, with, got);
    suite_plan_finish(&p);
    return result;
}

/*
 * After a few lives, in which a plugin may fill its caches, nothing grows: not
 * by one allocation, nor always by more of the heap than 16 bytes a life.
 */
static int many_lives(suite *s, const case_data *data,
                      const cellgate_variant *variant, execution *with,
                      results *got)
{
    suite_plan reporter = { .s = s, .data = data, .variant = *variant };
    int lives = s->options->full ? 10002 : 300;
    int64_t outstanding = 0;
    heap_watch heap = { 0, 0, 0 };

    for (int i = 0; i < lives + WARM_UP; i++) {
        if (i == WARM_UP)
            outstanding = host_outstanding(&s->plugin.host);
        heap_look(&heap, i, lives);
        if (live_once(s, data, variant, with, got) != 0)
            return -1;
    }
    if (host_outstanding(&s->plugin.host) != outstanding) {
        suite_fail(&reporter,
                   "%lld allocations are left after %d times prepare, plan, "
                   "run and free",
                   (long long)(host_outstanding(&s->plugin.host) - outstanding),
                   lives);
        return -1;
    }
    heap_look(&heap, lives + WARM_UP, lives);
    if (heap_grew(&heap, lives)) {
        suite_fail(&reporter,
                   "the heap grew by %zu bytes in %d times prepare, plan, run "
                   "and free",
                   heap.last - heap.begin, lives);
        return -1;
    }
    return 0;
}

/* Many runs of one plan. */
static int many_runs(suite *s, const case_data *data,
                     const cellgate_variant *variant, execution *with,
                     results *got)
{
    int runs = s->options->full ? 10002 : 498;
    suite_plan p;
    heap_watch heap = { 0, 0, 0 };
    int result = 0;

    if (suite_plan_init(&p, s, data, variant, NULL, data->c.batch,
                        data->c.steps) != 0)
        return -1;
    for (int i = 0; i < runs + WARM_UP && result == 0; i++) {
        heap_look(&heap, i, runs);
        result = suite_run(&p, with, got);
    }
    heap_look(&heap, runs + WARM_UP, runs);
    if (result == 0 && heap_grew(&heap, runs)) {
        suite_fail(&p, "the heap grew by %zu bytes in %d runs",
                   heap.last - heap.begin, runs);
        result = -1;
    }
    suite_plan_finish(&p);
    return result;
}

/* The same device opened again, used beside the first, and closed. */
static int second_device(suite *s, const case_data *data,
                         const cellgate_variant *variant, execution *with,
                         results *got)
{
    suite_plan reporter = { .s = s, .data = data, .variant = *variant };
    int64_t outstanding = host_outstanding(&s->plugin.host);
    const cellgate_plugin *table = &s->plugin.table;
    cellgate_device *first = s->device, *second = NULL;
    int result = 0;

    for (int i = 0; i < 3 && result == 0; i++) {
        cellgate_error error = CELLGATE_ERROR_INIT;
        if (table->device_open(s->plugin.instance, s->device_index,
                               &s->settings, &second, &error) != CELLGATE_OK) {
            suite_fail(&reporter, "the device could not be opened twice: %s",
                       error.text);
            return -1;
        }
        s->device = second;
        result = live_once(s, data, variant, with, got);
        s->device = first;
        if (result == 0)
            result = live_once(s, data, variant, with, got);
        table->device_close(second);
    }
    if (result == 0 && host_outstanding(&s->plugin.host) != outstanding) {
        suite_fail(
            &reporter, "%lld allocations are left after device_close()",
            (long long)(host_outstanding(&s->plugin.host) - outstanding));
        result = -1;
    }
    return result;
}

/* NULL is allowed wherever something is freed. */
static int free_nothing(suite *s)
{
    const cellgate_plugin *table = &s->plugin.table;

    table->weights_free(NULL);
    table->plan_destroy(NULL);
    table->device_close(NULL);
    if (table->resident_destroy != NULL)
        table->resident_destroy(NULL);
    return 0;
}

static void lives_of(suite *s, const case_data *data,
                     const cellgate_variant *variant)
{
    static int (*const checks[])(
        suite *, const case_data *, const cellgate_variant *, execution *,
        results *) = { many_lives, many_runs, second_device };
    results got = { NULL, { NULL } };
    execution with;

    if (execution_init(&with, data, GUARD_MARGINS) != 0)
        return;
    if (results_init(&got, data) == 0)
        for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++)
            if (checks[i](s, data, variant, &with, &got) == 0)
                report_passed(s->report, data->c.group, variant->name, 0);
    results_finish(&got);
    execution_finish(&with);
}

void group_lifecycle(suite *s)
{
    test_case c = case_of("lifecycle", s->options->seed, case_lstm(5));
    char description[1000];
    suite_offer offer;
    case_data data;

    if (!suite_wants(s, &c) || case_data_init(&data, &c) != 0)
        return;
    case_describe(&c, description, sizeof description);
    suite_ask(s, &data, &offer);
    for (uint32_t i = 0; i < offer.count; i++) {
        crash_context(description, offer.variants[i].name);
        lives_of(s, &data, &offer.variants[i]);
    }
    if (heap_in_use() == 0)
        report_skipped(s->report, c.group, NULL,
                       "growth of the heap: the C library doesn't tell");
    crash_context("lifecycle: freeing NULL", NULL);
    if (free_nothing(s) == 0)
        report_passed(s->report, c.group, NULL, 0);
    if (host_misuses(&s->plugin.host) != 0)
        report_failed(s->report, c.group, NULL, "release()",
                      "%llu releases of memory that is not the host's",
                      (unsigned long long)host_misuses(&s->plugin.host));
    case_data_finish(&data);
}
