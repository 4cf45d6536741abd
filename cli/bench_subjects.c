/* SPDX-License-Identifier: Apache-2.0 */
/* Who is timed: every device and variant, in a session each. */
#include "config.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/bench.h"

static cellgate_status no_memory(cellgate_error *error)
{
    return cli_error(error, CELLGATE_NO_MEMORY, "out of memory");
}

static cellgate_status add_subject(bench_state *state, const char *device,
                                   const char *variant, bench_subject **added,
                                   cellgate_error *error)
{
    bench *of = &state->of;
    bench_subject *grown =
        realloc(of->subjects, (of->count + 1) * sizeof *grown);
    bench_subject *at;

    if (grown == NULL)
        return no_memory(error);
    of->subjects = grown;
    at = &grown[of->count++];
    memset(at, 0, sizeof *at);
    snprintf(at->device, sizeof at->device, "%s", device);
    snprintf(at->variant, sizeof at->variant, "%s", variant);
    at->seconds = calloc((size_t)of->runs, sizeof *at->seconds);
    at->compute = calloc((size_t)of->runs, sizeof *at->compute);
    *added = at;
    return at->seconds != NULL && at->compute != NULL ? CELLGATE_OK
                                                      : no_memory(error);
}

static cellgate_status open_session(const bench_state *state,
                                    const char *device, const char *variant,
                                    cellgate_session **session,
                                    cellgate_error *error)
{
    const cellgate_session_options options = { .struct_size = sizeof options,
                                               .device = device,
                                               .variant = variant };

    return cellgate_session_create(state->runtime, state->model, &options,
                                   session, error);
}

static cellgate_status add_variant(bench_state *state, const char *device,
                                   const cellgate_variant_info *variant,
                                   cellgate_error *error)
{
    cellgate_error why = CELLGATE_ERROR_INIT;
    bench_subject *added;
    cellgate_status status =
        add_subject(state, device, variant->name, &added, error);

    if (status != CELLGATE_OK)
        return status;
    memcpy(added->note, variant->note, sizeof added->note);
    if (!variant->usable)
        snprintf(added->reason, sizeof added->reason,
                 "it needs %" PRIu32 " threads, more than the device may use",
                 variant->threads);
    else if (open_session(state, device, variant->name, &added->session,
                          &why) != CELLGATE_OK)
        snprintf(added->reason, sizeof added->reason, "%.*s",
                 (int)sizeof added->reason - 1, why.text);
    return CELLGATE_OK;
}

static cellgate_status add_device(bench_state *state, const char *device,
                                  cellgate_error *error)
{
    cellgate_variant_info variant = { .struct_size = sizeof variant };
    cellgate_error why = CELLGATE_ERROR_INIT;
    cellgate_session *session = NULL;
    cellgate_status status = CELLGATE_OK;
    bench_subject *added;

    if (open_session(state, device, NULL, &session, &why) != CELLGATE_OK) {
        status = add_subject(state, device, "", &added, error);
        if (status == CELLGATE_OK)
            snprintf(added->reason, sizeof added->reason, "%.*s",
                     (int)sizeof added->reason - 1, why.text);
        return status;
    }
    for (size_t i = 0;
         status == CELLGATE_OK &&
         cellgate_session_variant_get(session, i, &variant) == CELLGATE_OK;
         i++)
        status = add_variant(state, device, &variant, error);
    if (strcmp(device, "host") == 0 && status == CELLGATE_OK) {
        status = add_subject(state, device, "", &added, error);
        if (status == CELLGATE_OK) {
            added->session = session;
            return CELLGATE_OK;
        }
    }
    cellgate_session_destroy(session);
    return status;
}

cellgate_status bench_add_subjects(bench_state *state, const char *device,
                                   cellgate_error *error)
{
    cellgate_device_info info = { .struct_size = sizeof info };
    cellgate_status status = CELLGATE_OK;

    if (device != NULL)
        return add_device(state, device, error);
    for (size_t i = 0;
         status == CELLGATE_OK &&
         cellgate_device_get(state->runtime, i, &info) == CELLGATE_OK;
         i++)
        status = add_device(state, info.name, error);
    return status;
}
