/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cost/duel.h"

#define FIRST_LOOK 8u       /* rounds: fewer pairs say nothing with 99% */
#define SAMPLE 100e-6       /* seconds that a sample of several runs takes */
#define RUNS_MOST 64u       /* a sample */
#define SHORT_RUN 10e-3     /* seconds; before a longer one no run is needed */
#define SURE_RUN 20e-3      /* one sample of so long a run is no accident */
#define ROUNDS_TO_BE_FAR 3u /* of shorter ones */
#define LEAST_ROUNDS 3u     /* of the choice against itself */

/* The choice is number 0, and 1 once more; then the rivals. */
typedef struct fighter {
    const cg_subject *of;
    bool live;
    cellgate_status status;
    cellgate_error error;
    uint32_t runs; /* a sample */
    double last;   /* seconds of the last run */
    double fastest, slowest;
    double *logs; /* of the samples */
} fighter;

typedef struct duelling {
    const cg_dueling *how;
    fighter *fighters;
    size_t count;
    uint32_t round;
    double end;
} duelling;

void cg_dueling_init(cg_dueling *how)
{
    *how = (cg_dueling){ .clock = &cg_real_clock,
                         .budget = 1,
                         .tolerance = 1.05,
                         .confidence = 0.99,
                         .far = 3,
                         .most = 200 };
}

/* ---- Samples ------------------------------------------------------------- */

static void wait(const duelling *at)
{
    const cg_dueling *how = at->how;

    if (how->gap <= 0)
        return;
    if (how->idle != NULL)
        how->idle(how->idle_context);
    how->clock->sleep(how->clock->context, how->gap);
}

static bool run(const duelling *at, fighter *who)
{
    wait(at);
    who->status = who->of->run(who->of->context, &who->error);
    who->live = who->live && who->status == CELLGATE_OK;
    return who->status == CELLGATE_OK;
}

/* Of runs that follow each other at once, together. */
static double time_runs(const duelling *at, fighter *who, uint32_t runs)
{
    const cg_clock *clock = at->how->clock;
    double start = cg_now(clock), seconds;

    for (uint32_t i = 0; i < runs; i++) {
        who->status = who->of->run(who->of->context, &who->error);
        if (who->status != CELLGATE_OK) {
            who->live = false;
            return 0;
        }
    }
    seconds = cg_now(clock) - start;
    return fmax(seconds, 1e-9) / runs;
}

static void take_sample(const duelling *at, fighter *who)
{
    if (at->how->gap > 0)
        wait(at);
    else if (who->last < SHORT_RUN && !run(at, who))
        return;
    who->last = time_runs(at, who, at->how->gap > 0 ? 1 : who->runs);
    if (!who->live)
        return;
    who->fastest = fmin(who->fastest, who->last);
    who->slowest = fmax(who->slowest, who->last);
    who->logs[at->round] = log(who->last);
}

/* The first run is a cold one; the second says how many a sample takes. */
static void warm_up(const duelling *at, fighter *who)
{
    const double least =
        fmax(SAMPLE, 200 * cg_clock_resolution(at->how->clock));

    if (!run(at, who))
        return;
    wait(at);
    who->last = time_runs(at, who, 1);
    if (who->live && who->last < least)
        who->runs = (uint32_t)fmin(RUNS_MOST, ceil(least / who->last));
}

static void take_round(duelling *at)
{
    for (size_t i = 0; i < at->count; i++) {
        fighter *who = &at->fighters[(i + at->round) % at->count];

        if (who->live)
            take_sample(at, who);
    }
    at->round++;
}

/* ---- Looks --------------------------------------------------------------- */

static bool ratio_to(const duelling *at, const fighter *who, cg_ratio *ratio)
{
    double logs[CG_RATIO_PAIRS];

    for (uint32_t i = 0; i < at->round; i++)
        logs[i] = at->fighters[0].logs[i] - who->logs[i];
    return cg_ratio_of(logs, at->round, at->how->confidence, ratio);
}

/* Samples, not predictions: every one of the rival's against every one of the
   choice's. */
static bool is_far(const duelling *at, const fighter *who)
{
    const uint32_t enough = who->fastest > SURE_RUN ? 1 : ROUNDS_TO_BE_FAR;

    return at->how->far > 0 && at->round >= enough &&
           who->fastest > at->how->far * at->fighters[0].slowest;
}

static bool look(const duelling *at, fighter *who, cg_duel_rival *rival,
                 bool intervals)
{
    if (who->status != CELLGATE_OK) {
        rival->verdict = CG_DUEL_OUT;
        rival->error = who->error;
        return true;
    }
    rival->far = is_far(at, who);
    if (!rival->far && !intervals)
        return true;
    if (!ratio_to(at, who, &rival->ratio))
        return false;
    if (rival->far || rival->ratio.high <= at->how->tolerance)
        rival->verdict = CG_DUEL_RIGHT;
    else if (rival->ratio.low > at->how->tolerance)
        rival->verdict = CG_DUEL_WRONG;
    who->live = rival->verdict == CG_DUEL_UNDECIDED;
    return true;
}

/* Whether rivals are left that nothing is decided of. */
static cellgate_status look_at_all(duelling *at, cg_duel_rival *rivals,
                                   bool intervals, bool *left,
                                   cellgate_error *error)
{
    *left = false;
    for (size_t i = 2; i < at->count; i++) {
        fighter *who = &at->fighters[i];

        if (rivals[i - 2].verdict != CG_DUEL_UNDECIDED)
            continue;
        if (!look(at, who, &rivals[i - 2], intervals))
            return cellgate_fail(error, CELLGATE_NO_MEMORY,
                                 "no memory to compare times");
        *left = *left || who->live;
    }
    return CELLGATE_OK;
}

/* ---- The duel ------------------------------------------------------------ */

static uint32_t after(uint32_t look)
{
    return look + look / 2;
}

/* One that failed leaves the pairs incomplete: the duel is over. */
static bool chosen_runs(const duelling *at)
{
    return at->fighters[0].live && at->fighters[1].live;
}

static bool may_go_on(const duelling *at)
{
    const cg_dueling *how = at->how;

    return at->round < how->most && cg_now(how->clock) < at->end &&
           (how->go_on == NULL || how->go_on(how->go_on_context));
}

/* Intervals are looked at now and then: each look is another chance to err. */
static cellgate_status take_rounds(duelling *at, cg_duel_rival *rivals,
                                   cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;
    uint32_t next = FIRST_LOOK;
    bool left = true, last = false;

    while (status == CELLGATE_OK && !last && chosen_runs(at) &&
           (left || at->round < LEAST_ROUNDS)) {
        take_round(at);
        if (!chosen_runs(at))
            break;
        last = !may_go_on(at);
        status =
            look_at_all(at, rivals, at->round >= next || last, &left, error);
        if (at->round >= next)
            next = after(next);
    }
    return status;
}

static cg_duel_verdict verdict_of(const cg_duel_rival *rivals, size_t count)
{
    cg_duel_verdict verdict = CG_DUEL_RIGHT;

    for (size_t i = 0; i < count; i++) {
        if (rivals[i].verdict == CG_DUEL_WRONG)
            return CG_DUEL_WRONG;
        if (rivals[i].verdict == CG_DUEL_UNDECIDED)
            verdict = CG_DUEL_UNDECIDED;
    }
    return verdict;
}

static cellgate_status settle(const duelling *at, const cg_duel_rival *rivals,
                              cg_duel *duel, cellgate_error *error)
{
    double seconds[CG_RATIO_PAIRS];
    cg_summary summary;

    duel->rounds = at->round;
    if (!chosen_runs(at)) {
        duel->verdict = CG_DUEL_OUT;
        duel->error = at->fighters[at->fighters[0].status == CELLGATE_OK].error;
        return CELLGATE_OK;
    }
    for (uint32_t i = 0; i < at->round; i++)
        seconds[i] = exp(at->fighters[0].logs[i]);
    cg_summarise(seconds, at->round, &summary);
    duel->seconds = summary.median;
    duel->verdict = verdict_of(rivals, at->count - 2);
    return ratio_to(at, &at->fighters[1], &duel->self)
               ? CELLGATE_OK
               : cellgate_fail(error, CELLGATE_NO_MEMORY,
                               "no memory to compare times");
}

static void fighter_init(fighter *who, const cg_subject *of, double *logs)
{
    *who = (fighter){ .of = of,
                      .live = true,
                      .error = CELLGATE_ERROR_INIT,
                      .runs = 1,
                      .fastest = HUGE_VAL,
                      .logs = logs };
}

cellgate_status cg_duel_run(const cg_dueling *how, const cg_subject *chosen,
                            const cg_subject *rivals, size_t count,
                            cg_duel *duel, cg_duel_rival *rivals_found,
                            cellgate_error *error)
{
    duelling at = { .how = how, .count = count + 2 };
    double *logs = calloc(at.count, CG_RATIO_PAIRS * sizeof *logs);
    cellgate_status status;

    at.fighters = calloc(at.count, sizeof *at.fighters);
    if (at.fighters == NULL || logs == NULL) {
        free(at.fighters);
        free(logs);
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory to compare times");
    }
    *duel = (cg_duel){ .error = CELLGATE_ERROR_INIT };
    memset(rivals_found, 0, count * sizeof *rivals_found);
    at.end = cg_now(how->clock) + how->budget;
    for (size_t i = 0; i < at.count; i++) {
        fighter_init(&at.fighters[i], i < 2 ? chosen : &rivals[i - 2],
                     logs + i * CG_RATIO_PAIRS);
        warm_up(&at, &at.fighters[i]);
    }
    status = take_rounds(&at, rivals_found, error);
    if (status == CELLGATE_OK)
        status = settle(&at, rivals_found, duel, error);
    free(at.fighters);
    free(logs);
    return status;
}
