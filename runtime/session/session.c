/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "runtime/given.h"
#include "runtime/runtime.h"
#include "runtime/session/session.h"

/* ---- Creation ---------------------------------------------------------- */

static cellgate_status read_options(const cellgate_session_options *options,
                                    cellgate_session_options *read,
                                    cellgate_error *error)
{
    memset(read, 0, sizeof *read);
    read->struct_size = sizeof *read;
    if (options == NULL)
        return CELLGATE_OK;
    if (!cg_given_known(options, CG_FIRST_ANY, sizeof *read))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "struct_size of the session options is %zu, or "
                             "they have members that this libcellgate does "
                             "not know",
                             options->struct_size);
    cellgate_struct_copy(read, options);
    if (!(read->expected_requests >= 0))
        return cellgate_fail(error, CELLGATE_INVALID,
                             "a session expects %g requests; give a number "
                             "above 0, or 0 for what the configuration says",
                             read->expected_requests);
    return CELLGATE_OK;
}

static bool chooses(const cellgate_session *session, const cg_config *config)
{
    return config->measured && session->variant == NULL &&
           session->candidates[session->primary].device != NULL;
}

static cellgate_status start_routing(cellgate_session *session,
                                     const cg_config *config,
                                     cellgate_error *error)
{
    session->learns = config->learn;
    session->watches_pace = config->regime == CG_ARRIVALS_AUTO;
    cg_pace_init(&session->pace, &cg_real_clock);
    cg_shadow_init(&session->shadow, session,
                   config->learn ? config->shadow / 100.0 : 0);
    session->learner = cg_learner_create();
    if (session->learner == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for a session");
    return cg_router_create(session, &session->router, error);
}

static double expected_of(const cellgate_session_options *options,
                          const cg_config *config)
{
    if (options->expected_requests > 0)
        return options->expected_requests;
    return config->requests > 0 ? config->requests : HUGE_VAL;
}

static cellgate_status session_init(cellgate_session *session,
                                    const cellgate_runtime *runtime,
                                    const cellgate_model *model,
                                    const cellgate_session_options *options,
                                    cellgate_error *error)
{
    const cg_config *config = cg_device_table_config(runtime->table);
    cellgate_status status;

    pthread_mutex_init(&session->mutex, NULL);
    pthread_mutex_init(&session->lessons.mutex, NULL);
    cg_segment_pool_init(&session->pool, &session->graph);
    session->table = cg_device_table_reference(runtime->table);
    session->book = cg_cost_book_reference(runtime->book);
    session->loads = cg_loads_reference(runtime->loads);
    session->readmission = cg_readmission_reference(runtime->readmission);
    session->model = cg_model_reference(model);
    session->fallback = config->fallback;
    session->watchdog = config->watchdog;
    session->expected = expected_of(options, config);
    if (options->variant != NULL) {
        session->variant = strdup(options->variant);
        if (session->variant == NULL)
            return cellgate_fail(error, CELLGATE_NO_MEMORY,
                                 "no memory for a session");
    }
    status = cg_recalls_init(&session->recalls, session->model)
                 ? cg_graph_init(&session->graph, session->model, error)
                 : cellgate_fail(error, CELLGATE_NO_MEMORY,
                                 "no memory for a session");
    if (status == CELLGATE_OK)
        status = cg_session_list_candidates(session, options->device, error);
    if (status == CELLGATE_OK)
        status = cg_session_choose(session, error);
    if (status == CELLGATE_OK && !session->named && session->variant == NULL)
        status = cg_rules_init(&session->rules, session, error);
    if (status == CELLGATE_OK && chooses(session, config))
        status = start_routing(session, config, error);
    return status;
}

cellgate_status cellgate_session_create(cellgate_runtime *runtime,
                                        const cellgate_model *model,
                                        const cellgate_session_options *options,
                                        cellgate_session **session,
                                        cellgate_error *error)
{
    cellgate_session_options read;
    cellgate_session *made;
    cellgate_status status = cg_process_check(error);

    if (status != CELLGATE_OK)
        return status;
    if (runtime == NULL || model == NULL || session == NULL)
        return cellgate_fail(error, CELLGATE_INVALID,
                             "a session needs a runtime, a model and a place "
                             "for the result");
    status = read_options(options, &read, error);
    if (status != CELLGATE_OK)
        return status;
    made = calloc(1, sizeof *made);
    if (made == NULL)
        return cellgate_fail(error, CELLGATE_NO_MEMORY,
                             "no memory for a session");
    status = session_init(made, runtime, model, &read, error);
    if (status != CELLGATE_OK) {
        cellgate_session_destroy(made);
        return status;
    }
    *session = made;
    return CELLGATE_OK;
}

/*
 * Sessions that a run that hangs keeps from being freed: it reads the model's
 * weights and the device's memory, so they stay, and with them the references
 * that hold them. The list is there for leak checkers.
 */
static cellgate_session *left_behind;
static pthread_mutex_t left_behind_mutex = PTHREAD_MUTEX_INITIALIZER;

static void leave_behind(cellgate_session *session)
{
    pthread_mutex_lock(&left_behind_mutex);
    session->next = left_behind;
    left_behind = session;
    pthread_mutex_unlock(&left_behind_mutex);
}

/* Whether all of them could be freed. */
static bool destroy_retired(cellgate_session *session)
{
    cg_placement **link = &session->retired;

    while (*link != NULL) {
        cg_placement *placement = *link, *next = placement->next;

        if (cg_placement_destroy(placement))
            *link = next;
        else
            link = &placement->next;
    }
    return session->retired == NULL;
}

static void destroy_engines(cellgate_session *session)
{
    while (session->engines != NULL) {
        cg_engine *next = session->engines->next;

        cg_engine_destroy(session->engines);
        session->engines = next;
    }
}

void cellgate_session_destroy(cellgate_session *session)
{
    bool freed = true;

    /* In a child after fork() nothing of a device may be touched. */
    if (session == NULL || cg_process_check(NULL) != CELLGATE_OK)
        return;
    cg_queue_destroy(session->queue);
    cg_readmission_release(session->readmission);
    cg_session_keep_learned(session);
    /* A measurement hangs: freeing more of its device may hang as well. */
    if (cg_segment_pool_has_remnants(&session->pool)) {
        leave_behind(session);
        return;
    }
    freed = cg_router_destroy(session->router);
    freed = cg_rules_finish(&session->rules) && freed;
    for (size_t at = 0; at < session->candidate_count; at++)
        freed =
            cg_placement_destroy(session->candidates[at].placement) && freed;
    freed = destroy_retired(session) && freed;
    if (!freed) {
        leave_behind(session);
        return;
    }
    cg_recalls_finish(&session->recalls);
    cg_learner_destroy(session->learner);
    cg_segment_pool_finish(&session->pool);
    destroy_engines(session);
    free(session->candidates);
    cg_graph_finish(&session->graph);
    cellgate_model_destroy(session->model);
    cg_cost_book_release(session->book);
    cg_loads_release(session->loads);
    cg_device_table_release(session->table);
    pthread_mutex_destroy(&session->lessons.mutex);
    pthread_mutex_destroy(&session->mutex);
    free(session->variant);
    free(session);
}

/* ---- Segments ---------------------------------------------------------- */

static const cg_placement *primary(const cellgate_session *session)
{
    return session->candidates[session->primary].placement;
}

size_t cellgate_session_segment_count(const cellgate_session *session)
{
    return primary(session)->partitions[0].count;
}

static void segment_info(const cg_placement *placement, const cg_part *part,
                         cellgate_segment_info *info)
{
    const cg_segment *segment = part->segment;

    if (segment == NULL) {
        info->device = "host";
        info->variant = "";
        info->nodes = placement->graph->nodes[part->node].name;
        info->reason = part->reason;
        info->threads = 1;
        info->numeric = CELLGATE_NUMERIC_F32;
        info->note = "";
        return;
    }
    info->device = cg_device_name(segment->engine->device);
    info->variant = segment->variant.name;
    info->nodes = segment->names;
    info->reason = part->reason[0] != '\0' ? part->reason : placement->reason;
    info->threads = segment->variant.threads;
    info->numeric = segment->variant.numeric;
    info->note = segment->variant.note;
}

cellgate_status cellgate_session_segment_get(const cellgate_session *session,
                                             size_t index,
                                             cellgate_segment_info *info)
{
    const cg_placement *placement = primary(session);
    cellgate_segment_info filled = { .struct_size = sizeof filled };

    if (!cg_given_fillable(info))
        return CELLGATE_INVALID;
    if (index >= placement->partitions[0].count)
        return CELLGATE_END;
    segment_info(placement, &placement->partitions[0].parts[index], &filled);
    cellgate_struct_copy(info, &filled);
    return CELLGATE_OK;
}
