/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/runtime.h"
#include "runtime/session/audit_rivals.h"

static cellgate_status no_memory(cellgate_error *error)
{
    return cellgate_fail(error, CELLGATE_NO_MEMORY, "no memory for an audit");
}

static cg_audit_rival *find(const cg_audit_rivals *rivals, const char *device,
                            const char *variant)
{
    for (size_t at = 0; at < rivals->count; at++)
        if (strcmp(rivals->list[at].device, device) == 0 &&
            strcmp(rivals->list[at].variant, variant) == 0)
            return &rivals->list[at];
    return NULL;
}

static cellgate_status add(cg_audit_rivals *rivals, const char *device,
                           const char *variant, cellgate_error *error)
{
    cg_audit_rival *grown =
        realloc(rivals->list, (rivals->count + 1) * sizeof *grown);
    cg_audit_rival *added;

    if (grown == NULL)
        return no_memory(error);
    rivals->list = grown;
    added = &grown[rivals->count++];
    memset(added, 0, sizeof *added);
    added->device = strdup(device);
    added->variant = strdup(variant);
    return added->device != NULL && added->variant != NULL ? CELLGATE_OK
                                                           : no_memory(error);
}

/* One that may not run some piece of the model is no rival: its session would
   run it all the same. */
static void mark(cg_audit_rivals *rivals,
                 const cellgate_explanation *explanation)
{
    for (int pass = 0; pass < 2; pass++)
        for (size_t at = 0; at < explanation->count; at++) {
            const cg_explanation_line *line = &explanation->lines[at];
            cg_audit_rival *of =
                find(rivals, line->info.device, line->info.variant);

            if (of != NULL)
                of->runs = pass == 0 || (of->runs && line->runs);
        }
}

cellgate_status cg_audit_rivals_note(cg_audit_rivals *rivals,
                                     const cellgate_explanation *explanation,
                                     cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    for (size_t at = 0; at < rivals->count; at++)
        rivals->list[at].runs = false;
    for (size_t at = 0; status == CELLGATE_OK && at < explanation->count;
         at++) {
        const cellgate_candidate_info *info = &explanation->lines[at].info;

        if (info->variant[0] != '\0' &&
            find(rivals, info->device, info->variant) == NULL)
            status = add(rivals, info->device, info->variant, error);
    }
    if (status == CELLGATE_OK)
        mark(rivals, explanation);
    return status;
}

cellgate_status cg_audit_session(const cellgate_session *like,
                                 const char *device, const char *variant,
                                 cellgate_session **session,
                                 cellgate_error *error)
{
    cellgate_runtime runtime = { .table = like->table,
                                 .book = like->book,
                                 .loads = like->loads,
                                 .readmission = like->readmission };
    const cellgate_session_options options = { .struct_size = sizeof options,
                                               .device = device,
                                               .variant = variant };
    cellgate_status status = cellgate_session_create(&runtime, like->model,
                                                     &options, session, error);

    if (status == CELLGATE_OK)
        (*session)->learns = false;
    return status;
}

cellgate_status cg_audit_rivals_session(cg_audit_rivals *rivals, size_t index,
                                        cellgate_session **session,
                                        cellgate_error *error)
{
    cg_audit_rival *at = &rivals->list[index];
    cellgate_status status = CELLGATE_OK;

    if (at->session == NULL)
        status = cg_audit_session(rivals->of, at->device, at->variant,
                                  &at->session, error);
    *session = at->session;
    return status;
}

void cg_audit_rivals_shrink(cg_audit_rivals *rivals)
{
    for (size_t at = 0; at < rivals->count; at++) {
        cellgate_session_destroy(rivals->list[at].session);
        rivals->list[at].session = NULL;
    }
}

void cg_audit_rivals_finish(cg_audit_rivals *rivals)
{
    cg_audit_rivals_shrink(rivals);
    for (size_t at = 0; at < rivals->count; at++) {
        free(rivals->list[at].device);
        free(rivals->list[at].variant);
    }
    free(rivals->list);
}
