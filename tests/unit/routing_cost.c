/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What routing costs, on a model that is small enough for it to be seen: a
 * request of a session that chooses by cost, the same of a session whose device
 * and variant are named, and the plan alone, from host memory to host memory.
 * routing_cost COUNT makes so many of each, in turns, and prints the median
 * nanoseconds; for instructions tests/checks/routing.sh runs it under
 * callgrind, which collects in routed(), named() or plan_alone().
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

void routed(cellgate_session *session, const cellgate_request *request);
void named(cellgate_session *session, const cellgate_request *request);
void plan_alone(cg_trial *trial);

__attribute__((noinline)) void routed(cellgate_session *session,
                                      const cellgate_request *request)
{
    if (cellgate_run(session, request, NULL, NULL) != CELLGATE_OK)
        exit(2);
}

__attribute__((noinline)) void named(cellgate_session *session,
                                     const cellgate_request *request)
{
    if (cellgate_run(session, request, NULL, NULL) != CELLGATE_OK)
        exit(2);
}

__attribute__((noinline)) void plan_alone(cg_trial *trial)
{
    if (cg_trial_run(trial, NULL) != CELLGATE_OK)
        exit(2);
}

/* What is compared. */
typedef struct ways {
    cellgate_session *routed, *named;
    const cellgate_request *request;
    cg_trial *trial;
} ways;

static void measure(const ways *of, uint32_t count)
{
    static double seconds[3][ROUNDS_MOST];
    cg_summary summary[3];

    for (uint32_t at = 0; at < count; at++) {
        double times[4];

        times[0] = cg_now(&cg_real_clock);
        routed(of->routed, of->request);
        times[1] = cg_now(&cg_real_clock);
        named(of->named, of->request);
        times[2] = cg_now(&cg_real_clock);
        plan_alone(of->trial);
        times[3] = cg_now(&cg_real_clock);
        for (int which = 0; which < 3; which++)
            seconds[which][at] = times[which + 1] - times[which];
    }
    for (int which = 0; which < 3; which++)
        cg_summarise(seconds[which], count, &summary[which]);
    printf("routed %.0f ns, named %.0f ns, the plan alone %.0f ns\n",
           summary[0].median * 1e9, summary[1].median * 1e9,
           summary[2].median * 1e9);
}

int main(int argc, char **argv)
{
    const long count = argc > 1 ? strtol(argv[1], NULL, 10) : 1000;
    cellgate_runtime *runtime = rig_runtime(config);
    cellgate_model *model = cost_rig_model();
    cellgate_session *session = rig_session(runtime, model, NULL, NULL);
    ways of = { .routed = session,
                .named = rig_session(runtime, model, "cpu", "t1") };
    uint64_t random = 1;
    rig_request request;

    if (count < 1 || count > ROUNDS_MOST)
        return 2;
    cost_rig_set(session, "cpu", "t1", 1e-6, 1e-6);
    cost_rig_set(session, "card", "any", 1, 1);
    rig_request_init(&request, session, model, 1, 5, 0, &random);
    if (cg_trial_create(&session->pool,
                        cost_rig_segment(session, "cpu", "t1", 0, 2), 1, 5,
                        false, 0, &of.trial, NULL) != CELLGATE_OK)
        return 2;
    /* Long enough for what it costs to be learned. */
    for (int warm = 0; warm < 200; warm++) {
        rig_run(of.routed, &request, NULL);
        rig_run(of.named, &request, NULL);
    }
    of.request = &request.request;
    measure(&of, (uint32_t)count);
    cg_trial_destroy(of.trial);
    cellgate_session_destroy(of.named);
    rig_request_finish(&request);
    cellgate_session_destroy(session);
    cellgate_model_destroy(model);
    cellgate_runtime_destroy(runtime);
    return 0;
}
