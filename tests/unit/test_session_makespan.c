/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A line of requests over three devices, in real time: it ends about when the
 * best static split of them would. The devices sleep for as long as a run is to
 * take, so that it does not matter how many processors there are.
 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cost/clock.h"
#include "tests/unit/cost_rig.h"

#define REQUESTS 100
#define CARDS 3
#define AT_ONCE 2 /* runs of a card */
/* Other processes may keep a thread from waking up in time. */
#define TRIES 3

static const double seconds[CARDS] = { 30e-3, 60e-3, 90e-3 };
static const char *const names[CARDS] = { "quick", "middling", "slow" };

#define CARD(name, index, launch)                                              \
    "[device " name "]\nplugin = remote\nindex = " index "\nvariants = any\n"  \
    "simulate = yes\nlaunch = " launch "\nstep = 0\nbus = 0\nrate = 0\n"

static const char config[] =
    "[cellgate]\nunlisted = no\n[calibration]\nstore = /dev/null/none\n"
    "[scheduler]\nlearn = no\n" CARD("quick", "0", "30ms")
        CARD("middling", "1", "60ms") CARD("slow", "2", "90ms");

typedef struct asked {
    rig_request request;
    cellgate_ticket *ticket;
} asked;

/* So many requests on a card, two at a time. */
static double ends(int requests, double each)
{
    return (double)((requests + AT_ONCE - 1) / AT_ONCE) * each;
}

static double best_split(void)
{
    double best = HUGE_VAL;

    for (int a = 0; a <= REQUESTS; a++)
        for (int b = 0; a + b <= REQUESTS; b++)
            best =
                fmin(best, fmax(fmax(ends(a, seconds[0]), ends(b, seconds[1])),
                                ends(REQUESTS - a - b, seconds[2])));
    return best;
}

/* Submits all at once and waits for them; adds up how many went to each. */
static double makespan(cellgate_session *session, asked *all, int *went)
{
    const double start = cg_now(&cg_real_clock);
    double end;

    for (int at = 0; at < REQUESTS; at++)
        assert_int_equal(cellgate_submit(session, &all[at].request.request,
                                         NULL, &all[at].ticket, NULL),
                         CELLGATE_OK);
    for (int at = 0; at < REQUESTS; at++) {
        cellgate_report report = { .struct_size = sizeof report };

        assert_int_equal(cellgate_wait(all[at].ticket, -1, &report, NULL),
                         CELLGATE_OK);
        for (int card = 0; card < CARDS; card++)
            went[card] += strcmp(report.device, names[card]) == 0;
    }
    end = cg_now(&cg_real_clock);
    for (int at = 0; at < REQUESTS; at++)
        cellgate_ticket_destroy(all[at].ticket);
    return end - start;
}

static void a_line_ends_like_the_best_split(void **state)
{
    cellgate_runtime *runtime = rig_runtime(config);
    cellgate_model *model = cost_rig_model();
    cellgate_session *session = rig_session(runtime, model, NULL, NULL);
    const double best = best_split();
    int went[CARDS] = { 0 };
    asked *all = calloc(REQUESTS, sizeof *all);
    double least = HUGE_VAL;

    (void)state;
    assert_non_null(all);
    for (int card = 0; card < CARDS; card++)
        cost_rig_set(session, names[card], "any", seconds[card], seconds[card]);
    for (int at = 0; at < REQUESTS; at++) {
        uint64_t random = 7;

        rig_request_init(&all[at].request, session, model, 1, 5, 0, &random);
    }
    for (int try = 0; try < TRIES && least > 1.1 * best; try++)
        least = fmin(least, makespan(session, all, went));
    print_message("%d requests in %.0f ms; the best split takes %.0f ms; %d, "
                  "%d and %d went to each\n",
                  REQUESTS, least * 1e3, best * 1e3, went[0], went[1], went[2]);
    /* Runs take no less than they are to. */
    assert_true(least >= best * 0.99);
    assert_true(least <= 1.1 * best);
    assert_true(went[0] > went[1] && went[1] > went[2] && went[2] > 0);
    for (int at = 0; at < REQUESTS; at++)
        rig_request_finish(&all[at].request);
    free(all);
    cellgate_session_destroy(session);
    cellgate_model_destroy(model);
    cellgate_runtime_destroy(runtime);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_line_ends_like_the_best_split),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
