/* SPDX-License-Identifier: Apache-2.0 */
/* Several plans of one device at once, from as many threads. */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>

#include "tests/conformance/crash.h"
#include "tests/conformance/suite.h"

#define MAX_THREADS 16

/* What one thread runs, and what it found. */
typedef struct worker {
    suite_plan plan;
    case_data data;
    execution with;
    results alone, got;
    int rounds;
    pthread_barrier_t *start;
    char wrong[300]; /* empty: nothing */
} worker;

static int worker_init(worker *w, suite *s, const test_case *c,
                       const cellgate_variant *variant,
                       cellgate_weights *weights)
{
    memset(w, 0, sizeof *w);
    if (case_data_init(&w->data, c) != 0)
        return -1;
    if (suite_plan_init(&w->plan, s, &w->data, variant, weights, c->batch,
                        c->steps) != 0)
        return -1;
    if (execution_init(&w->with, &w->data, GUARD_MARGINS) != 0 ||
        results_init(&w->alone, &w->data) != 0 ||
        results_init(&w->got, &w->data) != 0)
        return -1;
    return 0;
}

static void worker_finish(worker *w)
{
    suite_plan_finish(&w->plan);
    execution_finish(&w->with);
    results_finish(&w->alone);
    results_finish(&w->got);
    case_data_finish(&w->data);
}

/* Once with nothing beside it: right, and what the others must repeat. */
static int run_alone(worker *w)
{
    expected e;
    double share = -1;

    if (suite_run(&w->plan, &w->with, &w->alone) != 0 ||
        expected_init(&e, &w->data) != 0)
        return -1;
    share = suite_compare(&w->plan, &e, &w->alone, "on one thread");
    expected_finish(&e);
    return share == -1 ? -1 : 0;
}

static void one_round(worker *w, int round)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    const cellgate_plugin *table = &w->plan.s->plugin.table;
    cellgate_status status = table->run(w->plan.plan, &w->with.run, &error);
    const char *wrong;

    if (status != CELLGATE_OK) {
        (void)snprintf(w->wrong, sizeof w->wrong,
                       "run() gave status %d beside other threads: %.200s",
                       (int)status, error.text);
        return;
    }
    wrong = execution_collect(&w->with, &w->got);
    if (wrong == NULL && results_differ(&w->alone, &w->got, -1) >= 0)
        wrong = "results beside other threads are not bit-identical to those "
                "on one thread";
    if (wrong != NULL)
        (void)snprintf(w->wrong, sizeof w->wrong, "%s (round %d)", wrong,
                       round);
}

static void *run_rounds(void *argument)
{
    worker *w = argument;

    (void)pthread_barrier_wait(w->start);
    for (int i = 0; i < w->rounds && w->wrong[0] == '\0'; i++)
        one_round(w, i);
    return NULL;
}

/* Prepares, plans, runs and frees, all of it beside the other threads. */
static void *run_lives(void *argument)
{
    worker *w = argument;
    const cellgate_plugin *table = &w->plan.s->plugin.table;
    cellgate_shape shape = { sizeof shape, w->data.c.batch, w->data.c.steps };

    (void)pthread_barrier_wait(w->start);
    for (int i = 0; i < w->rounds && w->wrong[0] == '\0'; i++) {
        cellgate_error error = CELLGATE_ERROR_INIT;
        cellgate_weights *weights = NULL;
        cellgate_plan *plan = NULL, *kept = w->plan.plan;
        if (table->prepare(w->plan.s->device, &w->data.segment,
                           w->plan.variant.pack, &weights,
                           &error) == CELLGATE_OK &&
            table->plan_create(w->plan.s->device, weights, w->plan.variant.id,
                               &shape, &plan, &error) == CELLGATE_OK) {
            w->plan.plan = plan;
            one_round(w, i);
            w->plan.plan = kept;
        } else {
            (void)snprintf(w->wrong, sizeof w->wrong,
                           "prepare() or plan_create() failed beside other "
                           "threads: %.200s",
                           error.text);
        }
        table->plan_destroy(plan);
        table->weights_free(weights);
    }
    return NULL;
}

static int run_together(worker *workers, int count, int rounds,
                        void *(*body)(void *))
{
    pthread_t threads[MAX_THREADS];
    pthread_barrier_t start;
    int failed = 0;

    if (pthread_barrier_init(&start, NULL, (unsigned)count) != 0)
        return -1;
    for (int i = 0; i < count; i++) {
        workers[i].start = &start;
        workers[i].rounds = rounds;
        if (pthread_create(&threads[i], NULL, body, &workers[i]) != 0) {
            /* The others wait at the barrier for ever. */
            (void)fprintf(stderr, "cannot create a thread\n");
            _Exit(2);
        }
    }
    for (int i = 0; i < count; i++) {
        (void)pthread_join(threads[i], NULL);
        if (workers[i].wrong[0] != '\0') {
            suite_fail(&workers[i].plan, "%s", workers[i].wrong);
            failed = 1;
        }
    }
    (void)pthread_barrier_destroy(&start);
    return failed ? -1 : 0;
}

/* Each thread has a shape of its own; all share the weights. No batch of one:
   a variant may be for more, and not be offered there. */
static test_case for_thread(const test_case *c, int number)
{
    test_case mine = *c;

    mine.batch = 2 + 3 * number % 17;
    mine.steps = 4 + number;
    mine.lengths = number % 2 ? CASE_RAGGED : CASE_FULL;
    return mine;
}

static void try_variant(suite *s, const test_case *c, const case_data *data,
                        const cellgate_variant *variant, int count)
{
    static worker workers[MAX_THREADS];
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_weights *weights = NULL;
    int rounds = s->options->full ? 200 : 25, ready = 1;
    uint64_t before;

    if (s->plugin.table.prepare(s->device, &data->segment, variant->pack,
                                &weights, &error) != CELLGATE_OK)
        return;
    memset(workers, 0, sizeof workers);
    for (int i = 0; i < count && ready; i++) {
        test_case mine = for_thread(c, i);
        ready = worker_init(&workers[i], s, &mine, variant, weights) == 0 &&
                run_alone(&workers[i]) == 0;
    }
    before = host_allocations(&s->plugin.host);
    if (ready && run_together(workers, count, rounds, run_rounds) == 0) {
        if (host_allocations(&s->plugin.host) != before)
            suite_fail(&workers[0].plan, "run() allocated beside others");
        else
            report_passed(s->report, c->group, variant->name, 0);
    }
    if (ready && run_together(workers, count, rounds / 5, run_lives) == 0)
        report_passed(s->report, c->group, variant->name, 0);
    for (int i = 0; i < count; i++)
        worker_finish(&workers[i]);
    s->plugin.table.weights_free(weights);
}

static void together(suite *s, const test_case *c, int count)
{
    char description[1000];
    suite_offer offer;
    case_data data;

    if (!suite_wants(s, c) || case_data_init(&data, c) != 0)
        return;
    case_describe(c, description, sizeof description);
    suite_ask(s, &data, &offer);
    for (uint32_t i = 0; i < offer.count; i++) {
        crash_context(description, offer.variants[i].name);
        try_variant(s, c, &data, &offer.variants[i], count);
    }
    case_data_finish(&data);
}

/* Up to the queue depth of the device, and beyond it. */
void group_threads(suite *s)
{
    uint32_t depth = s->description.queue_depth;
    int beyond = depth > 3 ? 2 * (int)depth : 8;
    test_case c = case_of("threads", s->options->seed, case_lstm(16));

    beyond = beyond > MAX_THREADS ? MAX_THREADS : beyond;
    c.input_size = 9;
    if (depth > 1 && (int)depth < beyond)
        together(s, &c, (int)depth);
    together(s, &c, beyond);
    c.seed++;
    c.ops[0].directions = 2;
    together(s, &c, beyond);
}
