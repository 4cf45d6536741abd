/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No allocation in the steady state, and none that stays. Every allocation of
 * the process goes through the functions below, the plugins' too. Not under a
 * sanitizer, which has allocation functions of its own.
 */
#include "config.h"

#include <malloc.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/session_rig.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||     \
    __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

#if defined(__GLIBC__) && !defined(SANITIZED)
#define COUNTING 1

static atomic_ulong allocations;

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);

void *malloc(size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    atomic_fetch_add(&allocations, 1);
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    atomic_fetch_add(&allocations, 1);
    *memory = __libc_memalign(alignment, size);
    return *memory != NULL ? 0 : 12;
}
#endif

static const char config[] = "[scheduler]\nthreads = 4\n"
                             "[device cpu]\nplugin = openmp\n"
                             "[device card]\nplugin = remote\n";
static cellgate_runtime *runtime;
static cellgate_model *model;

/* Host ops between segments, so that every kind of memory is used. */
static cellgate_model *mixed_model(void)
{
    rig_model rig;
    rig_lstm first, second;
    int32_t x;

    rig_model_begin(&rig, 9);
    x = rig_input(&rig, CG_UNKNOWN, 6);
    rig_lstm_init(&first, 6, 8);
    first.shape.directions = 2;
    first.mask = rig_mask(&rig, 0);
    rig_add_lstm(&rig, x, &first);
    x = rig_simple(&rig, CG_REVERSE, first.sequence);
    rig_lstm_init(&second, 16, 4);
    rig_add_lstm(&rig, x, &second);
    rig_output(&rig, rig_dense(&rig, second.last, 4, 3, CELLGATE_LINEAR));
    rig_output(&rig, first.final[2]);
    return rig_model_end(&rig);
}

static int set_up(void **state)
{
    (void)state;
    runtime = rig_runtime(config);
    model = mixed_model();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    cellgate_model_destroy(model);
    cellgate_runtime_destroy(runtime);
    return 0;
}

#ifdef COUNTING
#define SHAPES 4

static void to_double(rig_request *request)
{
    cellgate_tensor *tensor = &request->inputs[0].tensor;
    size_t count = (size_t)(tensor->shape[0] * tensor->shape[1] * 6);
    float *from = tensor->data;
    double *to = calloc(count + 1, sizeof *to);

    assert_non_null(to);
    for (size_t at = 0; at < count; at++)
        to[at] = (double)from[at];
    free(from);
    tensor->data = to;
    tensor->dtype = CELLGATE_F64;
}

static void steady_state(const char *device, const char *variant)
{
    cellgate_session *session = rig_session(runtime, model, device, variant);
    cellgate_report report = { .struct_size = sizeof report };
    rig_request requests[SHAPES];
    cellgate_stream *stream;
    uint64_t random = 11;
    unsigned long before;

    assert_int_equal(cellgate_stream_create(session, 3, &stream, NULL),
                     CELLGATE_OK);
    for (int at = 0; at < SHAPES; at++)
        rig_request_init(&requests[at], session, model, 3 + at % 2, 4 + 5 * at,
                         0, &random);
    rig_request_lengths(&requests[1], 0, &random);
    rig_request_mask(&requests[2], 0, &random);
    to_double(&requests[3]);
    requests[0].request.stream = stream;
    for (int round = 0; round < 2; round++)
        for (int at = 0; at < SHAPES; at++)
            rig_run(session, &requests[at], &report);
    before = atomic_load(&allocations);
    for (int round = 0; round < 100; round++)
        for (int at = 0; at < SHAPES; at++)
            rig_run(session, &requests[at], &report);
    if (atomic_load(&allocations) != before)
        fail_msg("400 runs on %s allocated %lu times", device,
                 atomic_load(&allocations) - before);
    for (int at = 0; at < SHAPES; at++)
        rig_request_finish(&requests[at]);
    cellgate_stream_destroy(stream);
    cellgate_session_destroy(session);
}

static void steady_state_allocates_nothing(void **state)
{
    unsigned long before = atomic_load(&allocations);
    void *volatile memory = malloc(10);

    (void)state;
    free(memory);
    assert_true(atomic_load(&allocations) > before); /* they are counted */
    steady_state("host", NULL);
    steady_state("cpu", "t1");
    steady_state("cpu", "t4");
    steady_state("card", NULL);
}
#endif

static void create_run_free(const char *device, int rounds)
{
    for (int round = 0; round < rounds; round++) {
        cellgate_session *session = rig_session(runtime, model, device, NULL);
        uint64_t random = 5;
        rig_request request;

        rig_request_init(&request, session, model, 2, 3, 0, &random);
        if (round % 2)
            rig_request_mask(&request, 0, &random);
        rig_run(session, &request, NULL);
        rig_request_finish(&request);
        cellgate_session_destroy(session);
    }
}

#ifndef SANITIZED
static size_t resident_bytes(void)
{
    FILE *file = fopen("/proc/self/statm", "r");
    unsigned long size = 0, resident = 0;

    if (file == NULL)
        return 0;
    if (fscanf(file, "%lu %lu", &size, &resident) != 2)
        resident = 0;
    fclose(file);
    return resident * (size_t)sysconf(_SC_PAGESIZE);
}

/* A leak of one block of 32 bytes a round would show as 288 KiB. */
static void flat(const char *device, int rounds)
{
    size_t before, after;

    create_run_free(device, rounds / 10);
    malloc_trim(0);
    before = resident_bytes();
    create_run_free(device, rounds - rounds / 10);
    malloc_trim(0);
    after = resident_bytes();
    if (after > before + 256 * 1024)
        fail_msg("%d sessions on %s left %zu bytes more resident", rounds,
                 device, after - before);
}
#endif

static void memory_is_flat(void **state)
{
    (void)state;
#ifdef SANITIZED
    /* Freed memory is kept back; leaks are the sanitizer's to find. */
    create_run_free("cpu", 50);
    create_run_free("card", 20);
    create_run_free("host", 20);
#else
    flat("cpu", 10000);
    flat("card", 10000);
    flat("host", 10000);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#ifdef COUNTING
        cmocka_unit_test(steady_state_allocates_nothing),
#endif
        cmocka_unit_test(memory_is_flat),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
