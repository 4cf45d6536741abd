/* SPDX-License-Identifier: Apache-2.0 */
/* Duels on a clock that the test moves: what each run takes is known. */
#include "config.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "runtime/cost/duel.h"

static double clock_now;
static double slept;

static double tell(void *context)
{
    (void)context;
    return clock_now += 1e-9;
}

static void pass(void *context, double seconds)
{
    (void)context;
    slept += seconds;
    clock_now += seconds;
}

static const cg_clock test_clock = { tell, pass, NULL };

/* Who takes so long, give or take `noise` of it. */
typedef struct racer {
    double seconds, noise;
    uint32_t runs;
    uint32_t fails_at; /* the run that fails; 0: none */
    uint32_t spike_every;
} racer;

static const void *ran_last;
static uint32_t changes; /* runs after one of another racer */
static uint32_t seed;

static cellgate_status race(void *context, cellgate_error *error)
{
    racer *of = context;
    double seconds = of->seconds;

    seed = (uint32_t)((uint64_t)seed * 48271 % 2147483647);
    seconds *= 1 + of->noise * (2.0 * seed / 2147483647 - 1);
    of->runs++;
    changes += ran_last != context;
    ran_last = context;
    if (of->spike_every > 0 && of->runs % of->spike_every == 0)
        seconds *= 50;
    clock_now += seconds;
    return of->runs == of->fails_at
               ? cellgate_fail(error, CELLGATE_DEVICE_FAILED, "it broke")
               : CELLGATE_OK;
}

#define RIVALS 3

typedef struct duel_rig {
    cg_dueling how;
    racer chosen, rivals[RIVALS];
    cg_duel duel;
    cg_duel_rival found[RIVALS];
} duel_rig;

static void rig_init(duel_rig *rig, double chosen, double rival)
{
    *rig = (duel_rig){ .chosen = { .seconds = chosen, .noise = 0.02 } };
    rig->rivals[0] = (racer){ .seconds = rival, .noise = 0.02 };
    cg_dueling_init(&rig->how);
    rig->how.clock = &test_clock;
    rig->how.budget = 1000;
    clock_now = 5;
    slept = 0;
    seed = 99;
    ran_last = NULL;
    changes = 0;
}

static void rig_duel(duel_rig *rig, size_t count)
{
    const cg_subject chosen = { race, &rig->chosen };
    cg_subject rivals[RIVALS];
    cellgate_error error = CELLGATE_ERROR_INIT;

    for (size_t i = 0; i < count; i++)
        rivals[i] = (cg_subject){ race, &rig->rivals[i] };
    assert_int_equal(cg_duel_run(&rig->how, &chosen, rivals, count, &rig->duel,
                                 rig->found, &error),
                     CELLGATE_OK);
}

static bool near(double got, double wanted, double tolerance)
{
    return fabs(got / wanted - 1) < tolerance;
}

static void test_right(void **state)
{
    duel_rig rig;

    (void)state;
    rig_init(&rig, 1e-3, 1.3e-3);
    rig_duel(&rig, 1);
    assert_int_equal(rig.duel.verdict, CG_DUEL_RIGHT);
    assert_int_equal(rig.found[0].verdict, CG_DUEL_RIGHT);
    assert_false(rig.found[0].far);
    assert_true(near(rig.found[0].ratio.estimate, 1 / 1.3, 0.02));
    assert_true(near(rig.duel.seconds, 1e-3, 0.02));
    assert_true(near(rig.duel.self.estimate, 1, 0.02));
    assert_int_equal(rig.duel.rounds, 8);
}

/* A tie, and a rival that is better by less than the tolerance. */
static void test_right_within_the_tolerance(void **state)
{
    static const double rivals[] = { 1e-3, 0.98e-3 };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        duel_rig rig;

        rig_init(&rig, 1e-3, rivals[i]);
        rig_duel(&rig, 1);
        assert_int_equal(rig.duel.verdict, CG_DUEL_RIGHT);
        assert_true(rig.found[0].ratio.high <= 1.05);
    }
}

static void test_wrong(void **state)
{
    duel_rig rig;

    (void)state;
    rig_init(&rig, 1e-3, 0.8e-3);
    rig.rivals[1] = (racer){ .seconds = 9e-3 };
    rig_duel(&rig, 2);
    assert_int_equal(rig.duel.verdict, CG_DUEL_WRONG);
    assert_int_equal(rig.found[0].verdict, CG_DUEL_WRONG);
    assert_true(near(rig.found[0].ratio.estimate, 1.25, 0.02));
    assert_int_equal(rig.found[1].verdict, CG_DUEL_RIGHT);
}

/* Exactly at the limit nothing can be decided, whatever the rounds. */
static void test_undecided(void **state)
{
    duel_rig rig;

    (void)state;
    rig_init(&rig, 1.05e-3, 1e-3);
    rig_duel(&rig, 1);
    assert_int_equal(rig.duel.verdict, CG_DUEL_UNDECIDED);
    assert_int_equal(rig.duel.rounds, rig.how.most);
    assert_true(rig.found[0].ratio.low < 1.05);
    assert_true(rig.found[0].ratio.high > 1.05);
}

/* One run of a second is all the time there is, but each gets a sample. */
static void test_out_of_time(void **state)
{
    duel_rig rig;

    (void)state;
    rig_init(&rig, 1, 1.2);
    rig.how.budget = 0.5;
    rig_duel(&rig, 1);
    assert_int_equal(rig.duel.verdict, CG_DUEL_UNDECIDED);
    assert_int_equal(rig.duel.rounds, 1);
    assert_int_equal(rig.rivals[0].runs, 3);
}

/* Of a hopeless rival one long sample is enough, and three short ones. */
static void test_far(void **state)
{
    duel_rig rig;

    (void)state;
    rig_init(&rig, 1e-2, 1);
    rig.rivals[1] = (racer){ .seconds = 1.001e-2, .noise = 0.02 };
    rig_duel(&rig, 2);
    assert_int_equal(rig.duel.verdict, CG_DUEL_RIGHT);
    assert_true(rig.found[0].far);
    assert_int_equal(rig.found[0].ratio.pairs, 1);
    assert_int_equal(rig.rivals[0].runs, 3); /* two of them warm-up */
    rig_init(&rig, 1e-4, 1e-3);
    rig_duel(&rig, 1);
    assert_true(rig.found[0].far);
    assert_int_equal(rig.found[0].ratio.pairs, 3);
}

/* Interruptions do not make a good rival look hopeless. */
static void test_spikes(void **state)
{
    duel_rig rig;

    (void)state;
    rig_init(&rig, 1e-3, 0.7e-3);
    rig.rivals[0].spike_every = 11;
    rig_duel(&rig, 1);
    assert_int_equal(rig.found[0].verdict, CG_DUEL_WRONG);
}

/* Short runs are timed several together, each sample after a run of the same
   one that is not timed. */
static void test_short_runs(void **state)
{
    duel_rig rig;

    (void)state;
    rig_init(&rig, 2e-6, 3e-6);
    rig_duel(&rig, 1);
    assert_int_equal(rig.duel.verdict, CG_DUEL_RIGHT);
    assert_int_equal(rig.duel.rounds, 8);
    assert_true(rig.chosen.runs > 8 * 40);
    /* Three samples a round, and as many warm-ups. */
    assert_true(changes <= 3 * 9);
}

static void count_idle(void *context)
{
    ++*(int *)context;
}

static void test_spaced(void **state)
{
    duel_rig rig;
    int idles = 0;

    (void)state;
    rig_init(&rig, 2e-6, 3e-6);
    rig.how.gap = 0.02;
    rig.how.idle = count_idle;
    rig.how.idle_context = &idles;
    rig_duel(&rig, 1);
    assert_int_equal(rig.duel.verdict, CG_DUEL_RIGHT);
    /* A gap before each run, and no runs together. */
    assert_int_equal(rig.rivals[0].runs, 2 + 8);
    assert_true(near(slept, 0.02 * 3 * (2 + 8), 1e-6));
    assert_int_equal(idles, 3 * (2 + 8));
}

static void test_failures(void **state)
{
    duel_rig rig;

    (void)state;
    rig_init(&rig, 1e-3, 1e-3);
    rig.rivals[0].fails_at = 7;
    rig_duel(&rig, 1);
    assert_int_equal(rig.found[0].verdict, CG_DUEL_OUT);
    assert_string_equal(rig.found[0].error.text, "it broke");
    assert_int_equal(rig.duel.verdict, CG_DUEL_RIGHT);
    rig_init(&rig, 1e-3, 1e-3);
    rig.chosen.fails_at = 7;
    rig_duel(&rig, 1);
    assert_int_equal(rig.duel.verdict, CG_DUEL_OUT);
    assert_string_equal(rig.duel.error.text, "it broke");
}

static bool stop(void *context)
{
    return --*(int *)context > 0;
}

static void test_stopped(void **state)
{
    duel_rig rig;
    int rounds = 4;

    (void)state;
    rig_init(&rig, 1.05e-3, 1e-3);
    rig.how.go_on = stop;
    rig.how.go_on_context = &rounds;
    rig_duel(&rig, 1);
    assert_int_equal(rig.duel.rounds, 4);
    assert_int_equal(rig.duel.verdict, CG_DUEL_UNDECIDED);
}

static void test_no_rivals(void **state)
{
    duel_rig rig;

    (void)state;
    rig_init(&rig, 1e-3, 1e-3);
    rig_duel(&rig, 0);
    assert_int_equal(rig.duel.verdict, CG_DUEL_RIGHT);
    assert_true(near(rig.duel.self.estimate, 1, 0.03));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),
        cmocka_unit_test(test_right_within_the_tolerance),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_undecided),
        cmocka_unit_test(test_out_of_time),
        cmocka_unit_test(test_far),
        cmocka_unit_test(test_spikes),
        cmocka_unit_test(test_short_runs),
        cmocka_unit_test(test_spaced),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_no_rivals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
