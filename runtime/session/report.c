/* SPDX-License-Identifier: Apache-2.0 */
/* What a request's report says. */
#include "config.h"

#include "runtime/session/append.h"
#include "runtime/session/call.h"
#include "runtime/session/session.h"
#include "runtime/session/split.h"

/* Why that way: it is the best, or the best one was busy or has failed. */
static void report_way(const cg_call *call, bool failed, char *text,
                       size_t size)
{
    const cg_way *best = &call->pin->ways[0];
    const cg_cut *cut = best->cut;
    size_t used = strlen(text);

    if (call->was_split) {
        cg_split_text(call->pin, text + used, size - used);
        return;
    }
    if (call->way == best) {
        cg_route_text(&call->pin->route, text + used, size - used);
        return;
    }
    cg_append(text, size,
              "measured: %lld us predicted (%s); %s would take %lld us and %s",
              (long long)((double)call->way->seconds * 1e6 + 0.5),
              cg_cost_kind_name((cg_cost_kind)call->way->kind),
              cut->engine_count > 0 ? cg_device_name(cut->engines[0]->device)
                                    : "host",
              (long long)((double)best->seconds * 1e6 + 0.5),
              failed ? "failed" : "is busy");
}

static void report_reason(const cg_call *call, const cellgate_error *failure,
                          cellgate_report *report)
{
    char *text = report->reason;
    size_t size = sizeof report->reason;

    text[0] = '\0';
    if (failure->status != CELLGATE_OK)
        cg_append(text, size, "after a failure: %s; ", failure->text);
    if (call->way != NULL)
        report_way(call, failure->status != CELLGATE_OK, text, size);
    else
        cg_append(text, size, "%s", call->placement->reason);
    for (size_t at = 0; at < call->partition->count; at++) {
        const cg_part *part = &call->partition->parts[at];

        if (part->segment != NULL || cg_placement_on_host(call->placement) ||
            !cg_segment_takes(call->graph->nodes[part->node].kind))
            continue;
        cg_append(text, size, "; host: %s: %s",
                  call->graph->nodes[part->node].name, part->reason);
    }
}

void cg_call_report(const cg_call *call, const cellgate_error *failure,
                    double seconds, cellgate_report *report)
{
    const cg_times *times = &call->times;
    const cg_segment *longest = times->longest_in;

    snprintf(report->device, sizeof report->device, "%s",
             longest != NULL ? cg_device_name(longest->engine->device)
                             : "host");
    snprintf(report->variant, sizeof report->variant, "%s",
             longest != NULL ? longest->variant.name : "");
    report_reason(call, failure, report);
    report->seconds = seconds;
    report->device_seconds = times->device;
    report->host_seconds = times->host;
    report->wait_seconds = times->wait;
    report->upload_seconds = times->upload;
    report->compute_seconds = times->compute;
    report->download_seconds = times->download;
    report->segments = times->segments;
    report->host_segments = times->host_segments;
    report->numeric = times->numeric;
}
