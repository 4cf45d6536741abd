/* SPDX-License-Identifier: Apache-2.0 */
/* One run of a device: its plan, its threads, its worker, its end. */
#include "config.h"

#include "runtime/session/call.h"

static void fly(void *argument)
{
    cg_flight *flight = argument;
    double start = cg_now(&cg_real_clock);

    flight->status =
        flight->ops->run(flight->plan, &flight->run, &flight->error);
    flight->seconds = cg_now(&cg_real_clock) - start;
    if (flight->status == CELLGATE_OK && flight->ops->breakdown != NULL) {
        cellgate_error ignored = CELLGATE_ERROR_INIT;

        flight->has_breakdown =
            flight->ops->breakdown(flight->plan, &flight->breakdown,
                                   &ignored) == CELLGATE_OK;
    }
}

static void flight_init(cg_flight *flight, const cg_engine *engine,
                        cellgate_plan *plan)
{
    flight->ops = engine->ops;
    flight->plan = plan;
    flight->has_breakdown = false;
    memset(&flight->breakdown, 0, sizeof flight->breakdown);
    flight->breakdown.struct_size = sizeof flight->breakdown;
    memset(&flight->error, 0, sizeof flight->error);
    flight->error.struct_size = sizeof flight->error;
}

static cellgate_status hung(cg_call *call, const cg_segment *segment,
                            cellgate_error *error)
{
    cg_device *device = segment->engine->device;
    char reason[160];

    snprintf(reason, sizeof reason,
             "a run did not end within %g s ([scheduler] watchdog)",
             call->placement->watchdog);
    cg_engine_failed(segment->engine, CELLGATE_TIMEOUT, reason);
    call->culprit = device;
    cg_placement_abandon(call->placement, call->context);
    call->context = NULL;
    return cellgate_fail(error, CELLGATE_TIMEOUT,
                         "device '%s': %s; it is out of service now",
                         cg_device_name(device), reason);
}

static cellgate_status landed(cg_call *call, const cg_segment *segment,
                              cellgate_error *error)
{
    cg_flight *flight = &call->context->flight;
    cg_times *times = &call->times;

    times->device += flight->seconds;
    times->segments++;
    if (flight->seconds >= times->longest) {
        times->longest = flight->seconds;
        times->longest_in = segment;
    }
    if (flight->has_breakdown) {
        times->upload += flight->breakdown.upload;
        times->compute += flight->breakdown.compute;
        times->download += flight->breakdown.download;
    }
    if (flight->status == CELLGATE_OK)
        return CELLGATE_OK;
    call->culprit = segment->engine->device;
    flight->error.text[sizeof flight->error.text - 1] = '\0';
    cg_engine_failed(segment->engine, flight->status, flight->error.text);
    cellgate_fail(error, flight->status, "device '%s', segment %s: %s",
                  cg_device_name(segment->engine->device), segment->names,
                  flight->error.text);
    if (error != NULL)
        error->vendor_code = flight->error.vendor_code;
    return flight->status;
}

static void keep_lesson(cg_call *call, const cg_segment *segment,
                        double seconds)
{
    cg_lesson *lesson = &call->lessons[call->lesson_count];

    if (call->lesson_count == CG_LESSONS)
        return;
    call->lesson_count++;
    lesson->segment = segment;
    lesson->seconds = seconds;
    cg_segment_cost_shape(segment, call->context->shapes,
                          (double)call->pin.fill, &lesson->shape);
}

/* Threads are taken for the run alone, not for the host's work around it. */
cellgate_status cg_call_launch(cg_call *call, const cg_segment *segment,
                               cellgate_error *error)
{
    cg_context *context = call->context;
    cg_device *device = segment->engine->device;
    uint32_t threads = segment->variant.threads;
    double start = cg_now(&cg_real_clock), begun;
    cellgate_plan *plan;
    bool ended = true;
    cellgate_status status =
        cg_context_plan(context, call->placement, segment, call->batch,
                        cg_call_steps(call, segment), &plan, error);

    if (status == CELLGATE_DEVICE_LOST)
        cg_engine_failed(segment->engine, status,
                         "it was lost while a run was planned");
    if (status != CELLGATE_OK) {
        call->culprit = device;
        return status;
    }
    flight_init(&context->flight, segment->engine, plan);
    cg_device_threads_acquire(device, threads);
    begun = cg_now(&cg_real_clock);
    call->times.wait += begun - start;
    if (segment->engine->staged)
        ended = cg_worker_run(context->worker, fly, &context->flight,
                              call->placement->watchdog);
    else
        fly(&context->flight);
    cg_device_threads_release(device, threads);
    if (ended)
        keep_lesson(call, segment, cg_now(&cg_real_clock) - begun);
    return ended ? landed(call, segment, error) : hung(call, segment, error);
}
