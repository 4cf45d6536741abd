/* SPDX-License-Identifier: Apache-2.0 */
/* One shape of an audit: where a request of it goes, against all rivals. */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/cost/duel.h"
#include "runtime/session/audit.h"
#include "runtime/session/audit_request.h"

#define LARGE 64e6 /* bytes of a request after which sessions are ended */
#define GAP 20e-3  /* of the spaced regime, as in a calibration */

/* Somebody who is timed; a cg_subject's context. */
typedef struct racer {
    cellgate_session *session;
    const cellgate_request *request;
    const char *device;     /* that must run it; NULL: any */
    size_t rival;           /* its number; SIZE_MAX: the session itself */
    cellgate_report report; /* of the last run */
} racer;

typedef struct race {
    cg_audit *audit;
    cg_audit_cell *cell;
    cg_audit_request request;
    cg_audit_rivals *rivals;
    racer routed;
    racer *racers; /* rivals, with the choice among them where it is one */
    size_t count;
    size_t chosen; /* SIZE_MAX: the session itself */
} race;

static cellgate_status run(void *context, cellgate_error *error)
{
    racer *of = context;
    cellgate_status status =
        cellgate_run(of->session, of->request, &of->report, error);

    if (status == CELLGATE_OK && of->device != NULL &&
        strcmp(of->report.device, of->device) != 0)
        return cellgate_fail(error, CELLGATE_UNSUPPORTED,
                             "it was run by %s instead", of->report.device);
    return status;
}

static void set_note(cg_audit_cell *cell, const char *who, const char *variant,
                     const char *why)
{
    snprintf(cell->note, sizeof cell->note, "%s%s%s%s%s", who,
             variant[0] != '\0' ? " " : "", variant, who[0] != '\0' ? ": " : "",
             why);
}

/* ---- Where requests go --------------------------------------------------- */

/* The choice at a shape, of which *explanation, unless NULL, tells; false: the
   model has no request of that shape. */
static bool ask(const cg_audit *audit, int64_t batch, int64_t steps,
                char choice[256], cellgate_explanation **explanation)
{
    const cellgate_question question = { sizeof question, batch, steps, 0 };
    cellgate_explanation *made = NULL;

    if (batch < 1 || (steps < 1 && audit->cells[0].asked > 0) ||
        cellgate_explain(audit->session, &question, &made, NULL) != CELLGATE_OK)
        return false;
    snprintf(choice, 256, "%s", made->choice);
    if (explanation != NULL)
        *explanation = made;
    else
        cellgate_explanation_destroy(made);
    return true;
}

static bool another(const cg_audit *audit, const cg_audit_cell *cell,
                    int64_t batch, int64_t steps)
{
    char choice[256];

    return ask(audit, batch, steps, choice, NULL) &&
           strcmp(choice, cell->choice) != 0;
}

static bool near_crossover(const cg_audit *audit, const cg_audit_cell *cell)
{
    const int64_t batch = cell->told.batch, steps = cell->asked;

    return another(audit, cell, batch * 2, steps) ||
           another(audit, cell, batch / 2, steps) ||
           (steps > 0 && (another(audit, cell, batch, steps * 2) ||
                          another(audit, cell, batch, steps / 2)));
}

/* ---- Who runs ------------------------------------------------------------ */

static cellgate_status add_racers(race *of, cellgate_error *error)
{
    cg_audit_rivals *rivals = of->rivals;

    of->racers = calloc(rivals->count + 1, sizeof *of->racers);
    if (of->racers == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for an audit");
    for (size_t at = 0; at < rivals->count; at++) {
        const cg_audit_rival *rival = &rivals->list[at];
        racer *added = &of->racers[of->count];
        cellgate_error why = CELLGATE_ERROR_INIT;

        if (!rival->runs)
            continue;
        *added = (racer){ .request = &of->request.request,
                          .device = rival->device,
                          .rival = at,
                          .report = { .struct_size = sizeof added->report } };
        if (cg_audit_rivals_session(rivals, at, &added->session, &why) ==
            CELLGATE_OK)
            of->count++;
        else
            set_note(of->cell, rival->device, rival->variant, why.text);
    }
    return CELLGATE_OK;
}

/* A request says where it goes; one that goes to one device and variant alone
   is timed there, as its rivals are. */
static void find_chosen(race *of)
{
    const cellgate_report *report = &of->routed.report;

    of->chosen = SIZE_MAX;
    for (size_t at = 0; at < of->count; at++) {
        const cg_audit_rival *rival = &of->rivals->list[of->racers[at].rival];
        char name[160];

        snprintf(name, sizeof name, "%s %s", rival->device, rival->variant);
        if (strcmp(rival->device, report->device) == 0 &&
            strcmp(rival->variant, report->variant) == 0 &&
            strcmp(name, of->cell->choice) == 0)
            of->chosen = at;
    }
}

/* ---- What came of it ----------------------------------------------------- */

static void tell_best(race *of, const racer *best)
{
    const cg_audit_rival *rival;

    if (best == NULL) {
        snprintf(of->cell->best, sizeof of->cell->best, "%.*s",
                 (int)sizeof of->cell->best - 1, of->cell->choice);
        return;
    }
    rival = &of->rivals->list[best->rival];
    snprintf(of->cell->best, sizeof of->cell->best, "%s %s", rival->device,
             rival->variant);
}

static void tell_rivals(race *of, racer *const *who, size_t count,
                        const cg_duel_rival *found)
{
    cellgate_audit_cell *told = &of->cell->told;
    const racer *best = NULL;

    for (size_t at = 0; at < count; at++) {
        const cg_ratio *ratio = &found[at].ratio;

        if (found[at].verdict == CG_DUEL_OUT) {
            set_note(of->cell, of->rivals->list[who[at]->rival].device,
                     of->rivals->list[who[at]->rival].variant,
                     found[at].error.text);
            continue;
        }
        told->rivals++;
        told->far += found[at].far;
        if (ratio->estimate > told->ratio) {
            told->ratio = ratio->estimate;
            told->ratio_low = ratio->low;
            told->ratio_high = ratio->high;
        }
        if (ratio->estimate > of->cell->loss) {
            of->cell->loss = ratio->estimate;
            best = who[at];
        }
    }
    tell_best(of, best);
}

static void tell_duel(race *of, const cg_duel *duel)
{
    static const int32_t verdicts[] = { [CG_DUEL_UNDECIDED] =
                                            CELLGATE_AUDIT_UNDECIDED,
                                        [CG_DUEL_RIGHT] = CELLGATE_AUDIT_RIGHT,
                                        [CG_DUEL_WRONG] = CELLGATE_AUDIT_WRONG,
                                        [CG_DUEL_OUT] =
                                            CELLGATE_AUDIT_LEFT_OUT };
    cellgate_audit_cell *told = &of->cell->told;

    told->verdict = verdicts[duel->verdict];
    told->seconds = duel->seconds;
    told->self = duel->self.estimate;
    told->self_low = duel->self.low;
    told->self_high = duel->self.high;
    told->rounds = duel->rounds;
    if (duel->verdict == CG_DUEL_OUT)
        set_note(of->cell, "", "", duel->error.text);
}

/* ---- The race ------------------------------------------------------------ */

static cellgate_status duel(race *of, double budget, cellgate_error *error)
{
    cg_duel_rival *found = calloc(of->count + 1, sizeof *found);
    cg_subject *subjects = calloc(of->count + 1, sizeof *subjects);
    racer **who = calloc(of->count + 1, sizeof(racer *));
    racer *chosen =
        of->chosen == SIZE_MAX ? &of->routed : &of->racers[of->chosen];
    const cg_subject choice = { run, chosen };
    cg_dueling how;
    cg_duel done;
    size_t count = 0;
    cellgate_status status;

    cg_dueling_init(&how);
    how.budget = budget;
    how.gap = of->audit->regime == CG_SPACED ? GAP : 0;
    how.idle = of->audit->regime == CG_SPACED ? cg_displace : NULL;
    how.idle_context = &of->audit->displacer;
    how.go_on = cg_audit_goes_on;
    how.go_on_context = of->audit;
    for (size_t at = 0; who != NULL && subjects != NULL && at < of->count; at++)
        if (at != of->chosen) {
            who[count] = &of->racers[at];
            subjects[count] = (cg_subject){ run, who[count] };
            count++;
        }
    status =
        found == NULL || subjects == NULL || who == NULL
            ? cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory for an audit")
            : cg_duel_run(&how, &choice, subjects, count, &done, found, error);
    if (status == CELLGATE_OK) {
        tell_rivals(of, who, count, found);
        tell_duel(of, &done);
    }
    free(found);
    free(subjects);
    free(who);
    return status;
}

static cellgate_status hold(race *of, double budget, cellgate_error *error)
{
    const cellgate_question question = { sizeof question, of->cell->told.batch,
                                         of->cell->asked, 0 };
    cellgate_error why = CELLGATE_ERROR_INIT;
    cellgate_status status = cg_audit_request_init(
        &of->request, of->audit->session, &question, &why);

    of->routed =
        (racer){ .session = of->audit->session,
                 .request = &of->request.request,
                 .rival = SIZE_MAX,
                 .report = { .struct_size = sizeof of->routed.report } };
    if (status == CELLGATE_OK)
        status = run(&of->routed, &why);
    if (status != CELLGATE_OK) {
        of->cell->told.verdict = CELLGATE_AUDIT_LEFT_OUT;
        set_note(of->cell, "", "", why.text);
        return CELLGATE_OK;
    }
    status = add_racers(of, error);
    if (status != CELLGATE_OK)
        return status;
    find_chosen(of);
    return duel(of, budget, error);
}

cellgate_status cg_audit_measure(cg_audit *audit, cg_audit_cell *cell,
                                 double budget, cellgate_error *error)
{
    race of = { .audit = audit, .cell = cell, .rivals = &audit->rivals };
    cellgate_explanation *explanation;
    cellgate_status status;

    cell->loss = 1;
    if (!ask(audit, cell->told.batch, cell->asked, cell->choice,
             &explanation)) {
        cell->told.verdict = CELLGATE_AUDIT_LEFT_OUT;
        set_note(cell, "", "", "the model has no request of that shape");
        return CELLGATE_OK;
    }
    cell->told.steps = explanation->decision.steps;
    cell->told.estimate = explanation->decision.estimate;
    cell->told.predicted = explanation->decision.seconds;
    cell->told.crossover = near_crossover(audit, cell);
    status = cg_audit_rivals_note(&audit->rivals, explanation, error);
    cellgate_explanation_destroy(explanation);
    if (status == CELLGATE_OK)
        status = hold(&of, budget, error);
    if (of.request.bytes > LARGE)
        cg_audit_rivals_shrink(&audit->rivals);
    cg_audit_request_finish(&of.request);
    free(of.racers);
    return status;
}
