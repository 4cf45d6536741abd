/* SPDX-License-Identifier: Apache-2.0 */
/* standin_stream.c: streams, events, graphs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/cuda/standin_private.h"

struct work {
    struct work *next;
    void (*run)(void *arguments);
    void *arguments;
    size_t size;
    bool launch;
    void *owned;
};

struct queue {
    struct work *first, **end;
};

struct stream {
    int device;
    struct queue queue;
    struct queue *capture; /* what a graph is made of */
    long filled; /* of the kernels that fill its device, the last one that ends
                    before what is enqueued now */
    cudaError_t broken_off;
    struct stream *next;
};

struct event {
    int device;
    long recorded, done;   /* how often */
    struct stream *stream; /* and where last */
    long filled;
    double time;
    struct event *next;
};

/* Those that live. What is destroyed stays in memory for a while, so that its
   address is nothing else's, and who uses it is found. */
#define KEPT 1024
static struct stream *streams;
static struct event *events;
static void *destroyed[KEPT];
static size_t destroyed_count;
static struct stream null_streams[STANDIN_DEVICES];
static _Thread_local struct stream *captured; /* by the thread */
static long enqueued, launches, instantiations, graph_launches;

/* Kernels that fill a device, enqueued and ended. */
static long fillers[STANDIN_DEVICES], filled[STANDIN_DEVICES];

static void bury(void *thing)
{
    void **place = &destroyed[destroyed_count++ % KEPT];

    free(*place);
    *place = thing;
}

/* ---- Queues ------------------------------------------------------------ */

static struct work *add_work(struct queue *queue, void (*run)(void *),
                             const void *arguments, size_t size, bool launch)
{
    struct work *work = calloc(1, sizeof *work);

    if (!queue->end)
        queue->end = &queue->first;
    if (work)
        work->arguments = malloc(size);
    if (!work || !work->arguments)
        standin_fault("no memory");
    work->run = run;
    work->launch = launch;
    work->size = size;
    memcpy(work->arguments, arguments, size);
    *queue->end = work;
    queue->end = &work->next;
    return work;
}

static struct stream *stream_of(cudaStream_t handle)
{
    struct stream *stream = (struct stream *)handle;
    struct stream *at;

    if (!handle) {
        stream = &null_streams[standin_device()];
        stream->device = standin_device();
        return stream;
    }
    for (at = streams; at && at != stream; at = at->next)
        ;
    if (!at)
        standin_fault("%p is no stream, or was destroyed", (void *)handle);
    return at;
}

int standin_stream_device(cudaStream_t handle)
{
    return stream_of(handle)->device;
}

cudaError_t standin_enqueue(cudaStream_t handle, void (*run)(void *),
                            const void *arguments, size_t size, bool launch,
                            void *owned)
{
    struct stream *stream = stream_of(handle);
    const cudaError_t code = standin_state(stream->device);

    if (code != cudaSuccess || stream->broken_off) {
        free(owned);
        return code ? code : cudaErrorStreamCaptureInvalidated;
    }
    enqueued++;
    if (owned && stream->capture)
        standin_fault("what is captured has memory of the host");
    add_work(stream->capture ? stream->capture : &stream->queue, run, arguments,
             size, launch)
        ->owned = owned;
    return cudaSuccess;
}

struct filler {
    int device;
    long number;
};

static void end_filler(void *arguments)
{
    const struct filler *filler = arguments;

    filled[filler->device] = filler->number;
}

void standin_fills_device(cudaStream_t handle)
{
    struct stream *stream = stream_of(handle);
    const int device = stream->device;
    struct filler filler = { device, fillers[device] + 1 };

    if (stream->filled < fillers[device] && filled[device] < fillers[device])
        standin_fault("two kernels that fill a device may be under way at the "
                      "same time");
    fillers[device]++;
    stream->filled = filler.number;
    (void)add_work(&stream->queue, end_filler, &filler, sizeof filler, false);
}

void standin_forget_fillers(void)
{
    memcpy(filled, fillers, sizeof filled);
}

/* The devices' order: one thing after the other. */
static void run_work(struct stream *stream)
{
    struct work *work = stream->queue.first;

    stream->queue.first = work->next;
    if (!work->next)
        stream->queue.end = &stream->queue.first;
    if (work->launch && ++launches == standin_settings.sticky)
        standin_break(stream->device, cudaErrorIllegalAddress);
    if (standin_usable(stream->device) == cudaSuccess)
        work->run(work->arguments);
    free(work->owned);
    free(work->arguments);
    free(work);
}

static cudaError_t flush(struct stream *stream)
{
    standin_open_memory();
    while (stream->queue.first)
        run_work(stream);
    standin_close_memory();
    return standin_usable(stream->device);
}

cudaError_t standin_flush_stream(cudaStream_t handle)
{
    struct stream *stream = stream_of(handle);

    if (stream->capture)
        return standin_not_captured();
    return flush(stream);
}

void standin_flush(int device)
{
    struct stream *at;

    for (at = streams; at; at = at->next)
        if (at->device == device)
            (void)flush(at);
    (void)flush(&null_streams[device]);
}

long standin_enqueued(void)
{
    return enqueued;
}

long standin_launches(void)
{
    return launches;
}

long standin_instantiations(void)
{
    return instantiations;
}

long standin_graph_launches(void)
{
    return graph_launches;
}

/* ---- Streams ----------------------------------------------------------- */

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *handle, unsigned flags)
{
    struct stream *stream = calloc(1, sizeof *stream);
    cudaError_t code;

    if (!stream)
        standin_fault("no memory");
    if (flags != cudaStreamNonBlocking)
        standin_fault("a stream that waits for the default one");
    standin_lock();
    code = standin_usable(standin_device());
    if (code == cudaSuccess) {
        stream->device = standin_device();
        stream->next = streams;
        streams = stream;
        *handle = (cudaStream_t)stream;
        standin_count("streams", 1);
    } else {
        free(stream);
    }
    standin_unlock();
    return code;
}

cudaError_t cudaStreamDestroy(cudaStream_t handle)
{
    struct stream **at = &streams, *stream;

    standin_lock();
    stream = stream_of(handle);
    if (stream->queue.first)
        standin_fault("a stream is destroyed before its work is done");
    if (stream->device != standin_device())
        standin_fault("a stream is destroyed with another device current");
    while (*at != stream)
        at = &(*at)->next;
    *at = stream->next;
    bury(stream);
    standin_count("streams", -1);
    standin_unlock();
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t handle)
{
    const struct timespec late = { 0, standin_settings.late * 1000 };
    cudaError_t code;

    if (standin_settings.late)
        (void)nanosleep(&late, NULL);
    standin_lock();
    code = standin_flush_stream(handle);
    standin_unlock();
    return code;
}

/* It waits for nothing, and so sees what the device has said already. */
cudaError_t cudaStreamQuery(cudaStream_t handle)
{
    struct stream *stream;
    cudaError_t code;

    standin_lock();
    stream = stream_of(handle);
    code = stream->capture ? standin_not_captured()
                           : standin_usable(stream->device);
    if (code == cudaSuccess && stream->queue.first)
        code = cudaErrorNotReady;
    standin_unlock();
    return code;
}

/* ---- Events ------------------------------------------------------------ */

static struct event *event_of(cudaEvent_t handle)
{
    struct event *at;

    for (at = events; at && at != (struct event *)handle; at = at->next)
        ;
    if (!at)
        standin_fault("%p is no event, or was destroyed", (void *)handle);
    return at;
}

cudaError_t cudaEventCreate(cudaEvent_t *handle)
{
    struct event *event = calloc(1, sizeof *event);

    if (!event)
        standin_fault("no memory");
    standin_lock();
    event->device = standin_device();
    event->next = events;
    events = event;
    *handle = (cudaEvent_t)event;
    standin_count("events", 1);
    standin_unlock();
    return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *handle, unsigned flags)
{
    if (flags != cudaEventDisableTiming)
        standin_fault("an event with flags %u", flags);
    return cudaEventCreate(handle);
}

cudaError_t cudaEventDestroy(cudaEvent_t handle)
{
    struct event **at = &events, *event;

    standin_lock();
    event = event_of(handle);
    if (event->device != standin_device())
        standin_fault("an event is destroyed with another device current");
    while (*at != event)
        at = &(*at)->next;
    *at = event->next;
    bury(event);
    standin_count("events", -1);
    standin_unlock();
    return cudaSuccess;
}

/* An event as it was recorded once. */
struct record {
    struct event *event;
    struct stream *stream;
    long number;
};

static void finish_event(void *arguments)
{
    const struct record *record = arguments;
    struct event *event = record->event;
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    event->time = 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
    event->done = record->number;
}

cudaError_t cudaEventRecord(cudaEvent_t handle, cudaStream_t stream)
{
    struct record record;
    struct event *event;
    cudaError_t code;

    standin_lock();
    event = event_of(handle);
    if (event->device != standin_stream_device(stream))
        standin_fault("an event is recorded on another device");
    event->stream = stream_of(stream);
    event->filled = event->stream->filled;
    record = (struct record){ event, event->stream, ++event->recorded };
    code = standin_error(standin_enqueue(stream, finish_event, &record,
                                         sizeof record, false, NULL));
    standin_unlock();
    return code;
}

/* The other stream does its part first. */
static void wait_event(void *arguments)
{
    const struct record *record = arguments;

    if (record->event->done >= record->number)
        return;
    (void)flush(record->stream);
    standin_open_memory();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t handle, cudaEvent_t of,
                                unsigned flags)
{
    struct stream *stream;
    struct record record;
    struct event *event;
    cudaError_t code;

    if (flags)
        standin_fault("cudaStreamWaitEvent with flags %u", flags);
    standin_lock();
    stream = stream_of(handle);
    event = event_of(of);
    if (stream->filled < event->filled)
        stream->filled = event->filled;
    record = (struct record){ event, event->stream, event->recorded };
    code = standin_error(standin_enqueue(handle, wait_event, &record,
                                         sizeof record, false, NULL));
    standin_unlock();
    return code;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t from,
                                 cudaEvent_t to)
{
    const struct event *a, *b;

    standin_lock();
    a = event_of(from);
    b = event_of(to);
    if (!a->recorded || !b->recorded || a->done < a->recorded ||
        b->done < b->recorded)
        standin_fault("time is read of an event that has not happened");
    *milliseconds = (float)(b->time - a->time);
    standin_unlock();
    return cudaSuccess;
}

/* ---- Graphs ------------------------------------------------------------ */

/* Both a graph and what can be launched of it. */
struct graph {
    struct queue queue;
    bool ready; /* to be launched */
    bool uploaded;
    struct graph *next;
};

static struct graph *graphs; /* that live */

cudaError_t standin_not_captured(void)
{
    if (!captured)
        return cudaSuccess;
    captured->broken_off = cudaErrorStreamCaptureUnsupported;
    return standin_error(cudaErrorStreamCaptureUnsupported);
}

/* A kernel that is loaded by its first launch is not by one that is captured.
 */
cudaError_t standin_launchable(cudaStream_t handle, bool loaded)
{
    struct stream *stream = stream_of(handle);

    if (!stream->capture || stream->broken_off)
        return cudaSuccess;
    stream->broken_off = standin_settings.capture_code
                             ? (cudaError_t)standin_settings.capture_code
                         : loaded ? cudaSuccess
                                  : cudaErrorStreamCaptureUnsupported;
    return standin_error(stream->broken_off);
}

static void empty(struct queue *queue)
{
    struct work *work;

    while ((work = queue->first) != NULL) {
        queue->first = work->next;
        free(work->arguments);
        free(work);
    }
    queue->end = NULL;
}

static size_t count_work(const struct queue *queue)
{
    const struct work *work;
    size_t count = 0;

    for (work = queue->first; work; work = work->next)
        count++;
    return count;
}

static void copy_work(struct queue *to, const struct queue *from)
{
    const struct work *work;

    for (work = from->first; work; work = work->next)
        (void)add_work(to, work->run, work->arguments, work->size,
                       work->launch);
}

static const char *graph_kind(bool ready)
{
    return ready ? "graphs that can be launched" : "graphs";
}

static void *make_graph(const struct queue *from, bool ready)
{
    struct graph *graph = calloc(1, sizeof *graph);

    if (!graph)
        standin_fault("no memory");
    copy_work(&graph->queue, from);
    graph->ready = ready;
    graph->next = graphs;
    graphs = graph;
    standin_count(graph_kind(ready), 1);
    return graph;
}

static struct graph *graph_of(const void *handle, bool ready)
{
    struct graph *at;

    for (at = graphs; at && at != handle; at = at->next)
        ;
    if (!at || at->ready != ready)
        standin_fault("%p is not such a graph, or was destroyed", handle);
    return at;
}

static void destroy_graph(const void *handle, bool ready)
{
    struct graph *graph = graph_of(handle, ready), **at = &graphs;

    while (*at != graph)
        at = &(*at)->next;
    *at = graph->next;
    empty(&graph->queue);
    free(graph);
    standin_count(graph_kind(ready), -1);
}

cudaError_t cudaStreamBeginCapture(cudaStream_t handle,
                                   enum cudaStreamCaptureMode mode)
{
    struct stream *stream;
    cudaError_t code;

    standin_lock();
    stream = stream_of(handle);
    if (mode != cudaStreamCaptureModeThreadLocal || !handle ||
        stream->capture || captured)
        standin_fault("a stream cannot be captured so");
    code = standin_usable(stream->device);
    if (code == cudaSuccess) {
        stream->capture = calloc(1, sizeof *stream->capture);
        if (!stream->capture)
            standin_fault("no memory");
        stream->broken_off = cudaSuccess;
        captured = stream;
    }
    standin_unlock();
    return code;
}

cudaError_t cudaStreamEndCapture(cudaStream_t handle, cudaGraph_t *to)
{
    cudaError_t code = cudaSuccess;
    struct stream *stream;

    *to = NULL;
    standin_lock();
    stream = stream_of(handle);
    if (!stream->capture || captured != stream)
        standin_fault("a stream that the thread does not capture");
    if (stream->broken_off)
        code = standin_error(cudaErrorStreamCaptureInvalidated);
    else
        *to = make_graph(stream->capture, false);
    empty(stream->capture);
    free(stream->capture);
    stream->capture = NULL;
    stream->broken_off = cudaSuccess;
    captured = NULL;
    standin_unlock();
    return code;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *to, cudaGraph_t from,
                                 unsigned long long flags)
{
    if (flags)
        standin_fault("a graph with flags %llu", flags);
    if (standin_settings.instantiate_code)
        return standin_error((cudaError_t)standin_settings.instantiate_code);
    standin_lock();
    *to = make_graph(&graph_of(from, false)->queue, true);
    instantiations++;
    standin_unlock();
    return cudaSuccess;
}

/* Parameters change; what there is to do does not. */
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t to, cudaGraph_t from,
                                cudaGraphExecUpdateResultInfo *info)
{
    cudaError_t code = (cudaError_t)standin_settings.update_code;
    const struct queue *queue;
    struct graph *graph;

    memset(info, 0, sizeof *info);
    standin_lock();
    graph = graph_of(to, true);
    queue = &graph_of(from, false)->queue;
    if (count_work(&graph->queue) != count_work(queue)) {
        info->result = cudaGraphExecUpdateErrorTopologyChanged;
        code = cudaErrorGraphExecUpdateFailure;
    }
    if (code == cudaSuccess) {
        empty(&graph->queue);
        copy_work(&graph->queue, queue);
    }
    standin_unlock();
    return standin_error(code);
}

cudaError_t cudaGraphUpload(cudaGraphExec_t graph, cudaStream_t handle)
{
    cudaError_t code;

    standin_lock();
    code = standin_usable(stream_of(handle)->device);
    graph_of(graph, true)->uploaded = true;
    standin_unlock();
    return code;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    standin_lock();
    destroy_graph(graph, false);
    standin_unlock();
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
    standin_lock();
    destroy_graph(graph, true);
    standin_unlock();
    return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t handle)
{
    const struct graph *of;
    struct stream *stream;
    cudaError_t code;

    standin_lock();
    stream = stream_of(handle);
    of = graph_of(graph, true);
    code = standin_usable(stream->device);
    if (stream->capture)
        standin_fault("a graph is launched into another");
    if (!of->uploaded)
        standin_fault("a graph's memory is allocated by its first launch");
    graph_launches++;
    if (code == cudaSuccess)
        copy_work(&stream->queue, &of->queue);
    standin_unlock();
    return code;
}
