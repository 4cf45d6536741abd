/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What routing costs, on a model that is small enough for it to be seen: a
 * request of a session that chooses by cost, as the one before it (`routed`),
 * in other memory (`moved`) or of another shape (`turned`) than that; the same
 * of a session whose device and variant are named; and the plan alone, from
 * host memory to host memory. routing_cost COUNT makes so many of each, in
 * turns, and prints the median nanoseconds; for instructions
 * tests/checks/routing.sh runs it under callgrind, which collects in the
 * function of that name.
 */
#include "config.h"

#include <stdlib.h>

#include "runtime/session/trial.h"
#include "tests/unit/cost_rig.h"

#define ROUNDS_MOST 100000

static const char config[] = "[cellgate]\nunlisted = no\n"
                             "[calibration]\nstore = /dev/null/none\n"
                             "[scheduler]\nmargin = 100\n"
                             "[device cpu]\nplugin = openmp\n"
                             "[device card]\nplugin = remote\n";

/* Each has a name of its own for callgrind. */
#define REQUEST_AS(name)                                                       \
    void name(cellgate_session *session, const cellgate_request *request);     \
    __attribute__((noinline)) void name(cellgate_session *session,             \
                                        const cellgate_request *request)       \
    {                                                                          \
        if (cellgate_run(session, request, NULL, NULL) != CELLGATE_OK)         \
            exit(2);                                                           \
    }

REQUEST_AS(before)
REQUEST_AS(routed)
REQUEST_AS(moved)
REQUEST_AS(turned)
REQUEST_AS(named)

void plan_alone(cg_trial *trial);

__attribute__((noinline)) void plan_alone(cg_trial *trial)
{
    if (cg_trial_run(trial, NULL) != CELLGATE_OK)
        exit(2);
}

/* What is compared. */
typedef struct ways {
    cellgate_runtime *runtime;
    cellgate_model *model;
    cellgate_session *routed, *named;
    rig_request request, elsewhere, other; /* other memory, another shape */
    cg_trial *trial;
} ways;

#define WAYS 5

static const char *const names[WAYS] = { "routed", "moved", "turned", "named",
                                         "the plan alone" };

static void make(const ways *of, int which)
{
    const cellgate_request *request = &of->request.request;

    if (which == 0)
        routed(of->routed, request);
    else if (which == 1)
        moved(of->routed, request);
    else if (which == 2)
        turned(of->routed, request);
    else if (which == 3)
        named(of->named, request);
    else
        plan_alone(of->trial);
}

/* The request before the one that is looked at. */
static void prepare(const ways *of, int which)
{
    before(of->routed, which == 1   ? &of->elsewhere.request
                       : which == 2 ? &of->other.request
                                    : &of->request.request);
    before(of->named, &of->request.request);
}

static void measure(const ways *of, uint32_t count)
{
    static double seconds[WAYS][ROUNDS_MOST];

    for (uint32_t at = 0; at < count; at++)
        for (int which = 0; which < WAYS; which++) {
            double start;

            prepare(of, which);
            start = cg_now(&cg_real_clock);
            make(of, which);
            seconds[which][at] = cg_now(&cg_real_clock) - start;
        }
    for (int which = 0; which < WAYS; which++) {
        cg_summary summary;

        cg_summarise(seconds[which], count, &summary);
        printf("%s %.0f ns\n", names[which], summary.median * 1e9);
    }
}

static void begin(ways *of)
{
    uint64_t random = 1;

    of->runtime = rig_runtime(config);
    of->model = cost_rig_model();
    of->routed = rig_session(of->runtime, of->model, NULL, NULL);
    of->named = rig_session(of->runtime, of->model, "cpu", "t1");
    cost_rig_set(of->routed, "cpu", "t1", 1e-6, 1e-6);
    cost_rig_set(of->routed, "card", "any", 1, 1);
    rig_request_init(&of->request, of->routed, of->model, 1, 5, 0, &random);
    rig_request_init(&of->elsewhere, of->routed, of->model, 1, 5, 0, &random);
    rig_request_init(&of->other, of->routed, of->model, 2, 5, 0, &random);
    if (cg_trial_create(&of->routed->pool,
                        cost_rig_segment(of->routed, "cpu", "t1", 0, 2), 1, 5,
                        false, 0, &of->trial, NULL) != CELLGATE_OK)
        exit(2);
}

static void end(ways *of)
{
    cg_trial_destroy(of->trial);
    rig_request_finish(&of->request);
    rig_request_finish(&of->elsewhere);
    rig_request_finish(&of->other);
    cellgate_session_destroy(of->named);
    cellgate_session_destroy(of->routed);
    cellgate_model_destroy(of->model);
    cellgate_runtime_destroy(of->runtime);
}

int main(int argc, char **argv)
{
    const long count = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
    ways of;

    if (count < 1 || count > ROUNDS_MOST)
        return 2;
    begin(&of);
    /* Long enough for what it costs to be learned. */
    for (int warm = 0; warm < 200; warm++)
        for (int which = 0; which < 3; which++)
            prepare(&of, which);
    measure(&of, (uint32_t)count);
    end(&of);
    return 0;
}
