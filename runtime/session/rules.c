/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <fnmatch.h>
#include <stdlib.h>

#include "runtime/config/complaint.h"
#include "runtime/file_name.h"
#include "runtime/session/rules.h"
#include "runtime/session/session.h"

static bool is_meant(const cg_pin_section *section, const cellgate_model *model)
{
    return section->model == NULL ||
           fnmatch(section->model,
                   model->path != NULL ? cg_file_name(model->path) : "",
                   FNM_CASEFOLD) == 0;
}

/* ---- Making ------------------------------------------------------------- */

/* "[pin NAME] device: ...", with the file and the line; `why` as it came. */
static cellgate_status refuse(const cellgate_session *session,
                              const cg_pin_section *section, const char *key,
                              const cellgate_error *why, cellgate_error *error)
{
    char shown[80];
    const cg_place place = { cg_device_table_config(session->table)->path,
                             section->line, shown, key };

    snprintf(shown, sizeof shown, "pin %s", section->name);
    cg_complain(error, &place, "%s", why->text);
    if (error != NULL)
        error->status = why->status;
    return (cellgate_status)why->status;
}

static cellgate_status find_candidate(cellgate_session *session,
                                      const char *name,
                                      cg_candidate **candidate,
                                      cellgate_error *error)
{
    for (size_t at = 0; at < session->candidate_count; at++)
        if (strcmp(cg_candidate_name(&session->candidates[at]), name) == 0) {
            *candidate = &session->candidates[at];
            return CELLGATE_OK;
        }
    *candidate = NULL; /* the host ops may not be among them */
    return strcmp(name, "host") == 0
               ? CELLGATE_OK
               : cg_session_no_such_device(session, name, error);
}

static cellgate_status place(cellgate_session *session,
                             const cg_pin_section *section,
                             cg_placement **placement, cellgate_error *error)
{
    const cg_engine *engine = NULL;
    cg_candidate *candidate;
    char reason[80];
    cellgate_status status =
        find_candidate(session, section->device, &candidate, error);

    if (status == CELLGATE_OK && candidate != NULL &&
        candidate->device != NULL) {
        status = cg_session_open(session, candidate, error);
        engine = candidate->engine;
    }
    if (status != CELLGATE_OK)
        return status;
    snprintf(reason, sizeof reason, "[pin %s] of the configuration",
             section->name);
    return cg_placement_create(&session->pool, engine, section->variant, reason,
                               session->watchdog, placement, error);
}

static cellgate_status add(cg_rules *rules, cellgate_session *session,
                           const cg_pin_section *section, cellgate_error *error)
{
    cg_rule *rule = &rules->of[rules->count];
    cellgate_error why = CELLGATE_ERROR_INIT;
    cg_placement *placement = NULL;
    cellgate_status status = place(session, section, &placement, &why);

    if (status == CELLGATE_NO_MEMORY)
        return cellgate_fail(error, status, "%s", why.text);
    if (status != CELLGATE_OK)
        return refuse(session, section, "device", &why, error);
    rule->section = section;
    atomic_init(&rule->placement, placement);
    rules->count++;
    if (section->variant == NULL ||
        cg_placement_has_variant(placement, section->variant))
        return CELLGATE_OK;
    cellgate_fail(&why, CELLGATE_NOT_FOUND,
                  "device '%s' runs no part of the model with a variant '%s'; "
                  "`cellgate plan` lists its variants",
                  section->device, section->variant);
    return refuse(session, section, "variant", &why, error);
}

cellgate_status cg_rules_init(cg_rules *rules, cellgate_session *session,
                              cellgate_error *error)
{
    const cg_config *config = cg_device_table_config(session->table);
    cellgate_status status = CELLGATE_OK;

    *rules = (cg_rules){ .count = 0 };
    if (config->pin_count == 0)
        return CELLGATE_OK;
    rules->of = calloc(config->pin_count, sizeof *rules->of);
    if (rules->of == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for a session's pins");
    for (size_t at = 0; status == CELLGATE_OK && at < config->pin_count; at++)
        if (is_meant(&config->pins[at], session->model))
            status = add(rules, session, &config->pins[at], error);
    return status;
}

bool cg_rules_finish(cg_rules *rules)
{
    bool freed = true;

    for (size_t at = 0; at < rules->count; at++)
        if (cg_placement_destroy(rules->of[at].placement))
            rules->of[at].placement = NULL;
        else
            freed = false;
    if (!freed)
        return false;
    free(rules->of);
    *rules = (cg_rules){ .count = 0 };
    return true;
}

/* ---- Following ---------------------------------------------------------- */

static bool within(const cg_range *range, int64_t number)
{
    return number >= range->least && number <= range->most;
}

cg_rule *cg_rules_find(const cg_rules *rules, int64_t batch, int64_t steps)
{
    for (size_t at = 0; at < rules->count; at++)
        if (within(&rules->of[at].section->batch, batch) &&
            within(&rules->of[at].section->steps, steps))
            return &rules->of[at];
    return NULL;
}

/* With the session's mutex held. */
static cellgate_status place_again(cg_rule *rule, cellgate_session *session,
                                   cellgate_error *error)
{
    cg_placement *before = atomic_load(&rule->placement), *made;
    cellgate_status status;

    if (!cg_placement_outdated(before))
        return CELLGATE_OK;
    status = place(session, rule->section, &made, error);
    if (status != CELLGATE_OK)
        return status;
    atomic_store(&rule->placement, made);
    cg_session_keep_retired(session, before);
    return CELLGATE_OK;
}

cellgate_status cg_rule_placement_held(cg_rule *rule, cellgate_session *session,
                                       cg_placement **placement,
                                       cellgate_error *error)
{
    cellgate_status status = place_again(rule, session, error);

    if (status == CELLGATE_OK)
        *placement = atomic_load(&rule->placement);
    return status;
}

cellgate_status cg_rule_placement(cg_rule *rule, cellgate_session *session,
                                  cg_placement **placement,
                                  cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    if (cg_placement_outdated(atomic_load(&rule->placement))) {
        pthread_mutex_lock(&session->mutex);
        status = place_again(rule, session, error);
        pthread_mutex_unlock(&session->mutex);
    }
    if (status == CELLGATE_OK)
        *placement = atomic_load(&rule->placement);
    return status;
}

void cg_rules_retire(const cg_rules *rules, const cg_engine *engine)
{
    for (size_t at = 0; at < rules->count; at++) {
        cg_placement *placement = atomic_load(&rules->of[at].placement);

        if (placement != NULL && cg_placement_has(placement, engine))
            cg_placement_retire(placement);
    }
}
