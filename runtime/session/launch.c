/* SPDX-License-Identifier: Apache-2.0 */
/* One run of a device: its plan, its threads, its worker, its end. */
#include "config.h"

#include "runtime/session/call.h"

static void fly(void *argument)
{
    cg_flight *flight = argument;
    const double start = cg_now(&cg_real_clock);

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
    cg_error_clear(&flight->error);
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
    if (segment->variant.numeric > times->numeric)
        times->numeric = segment->variant.numeric;
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
    cg_segment_cost_shape(segment, call->context->shapes, call->fill,
                          &lesson->shape);
}

/* ---- Before and after --------------------------------------------------- */

static cellgate_status plan_new(cg_call *call, const cg_segment *segment,
                                cellgate_plan **plan, cellgate_error *error)
{
    cellgate_status status = cg_context_new_plan(
        call->context, call->placement, segment, call->batch,
        cg_call_steps(call, segment), plan, error);

    if (status == CELLGATE_DEVICE_LOST)
        cg_engine_failed(segment->engine, status,
                         "it was lost while a run was planned");
    if (status != CELLGATE_OK)
        call->culprit = segment->engine->device;
    return status;
}

/* A plan and the threads for it. Most often both are there, and no time need be
   taken to see how long that took. */
static cellgate_status get_ready(cg_call *call, const cg_segment *segment,
                                 cellgate_plan **plan, cellgate_error *error)
{
    cg_device *device = segment->engine->device;
    cellgate_status status = CELLGATE_OK;
    double start;

    *plan = cg_context_kept_plan(call->context, segment, call->batch,
                                 cg_call_steps(call, segment));
    if (*plan != NULL &&
        cg_device_threads_try(device, segment->variant.threads))
        return CELLGATE_OK;
    start = cg_now(&cg_real_clock);
    if (*plan == NULL)
        status = plan_new(call, segment, plan, error);
    if (status == CELLGATE_OK)
        cg_device_threads_acquire(device, segment->variant.threads);
    call->times.wait += cg_now(&cg_real_clock) - start;
    return status;
}

/* On a worker, handing over and coming back are part of what it costs. */
static bool make_run(cg_call *call, const cg_segment *segment)
{
    cg_context *context = call->context;
    double start;

    if (!segment->engine->staged) {
        fly(&context->flight);
        keep_lesson(call, segment, context->flight.seconds);
        return true;
    }
    start = cg_now(&cg_real_clock);
    if (!cg_worker_run(context->worker, fly, &context->flight,
                       call->placement->watchdog))
        return false;
    keep_lesson(call, segment, cg_now(&cg_real_clock) - start);
    return true;
}

/* Threads are taken for the run alone, not for the host's work around it. */
cellgate_status cg_call_launch(cg_call *call, const cg_segment *segment,
                               cellgate_error *error)
{
    cellgate_plan *plan;
    bool ended;
    cellgate_status status = get_ready(call, segment, &plan, error);

    if (status != CELLGATE_OK)
        return status;
    flight_init(&call->context->flight, segment->engine, plan);
    ended = make_run(call, segment);
    cg_device_threads_release(segment->engine->device,
                              segment->variant.threads);
    return ended ? landed(call, segment, error) : hung(call, segment, error);
}
