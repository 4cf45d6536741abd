/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/cuda/executor.h"
#include "tests/cuda/fibre.h"

#define WARP 32u
#define MOST_THREADS 1024u
#define MOST_SHARED ((size_t)232448) /* what a block of an H100 may have */
#define ANY_SHARED ((size_t)49152)   /* without asking */

enum waiting { RUNS, AT_BARRIER, AT_WARP, PAUSES, DONE };

struct source {
    const char *file;
    int line;
};

struct block;

struct thread {
    executor_index thread, block_at;
    struct block *block;
    enum waiting waiting;
    struct source where;
    unsigned mask; /* of a warp's exchange */
    uint64_t value;
};

/* An exchange of a warp: who has come to it. */
struct warp {
    unsigned mask, come;
    int shuffles;
    struct source where;
    uint64_t values[WARP];
};

struct block {
    struct thread *threads;
    unsigned count, done, come;
    struct source where; /* the barrier they come to */
    struct warp warps[MOST_THREADS / WARP];
    struct shared *shared;
};

/* Shared memory of a block; kept until the launch ends, so that no block has
   the memory of another. */
struct shared {
    struct shared *next;
    unsigned char *bytes;
};

/* The launch that runs. */
static const executor_launch *launch;
static struct thread *threads;
static struct block *blocks;
static struct shared *all_shared;
static fibre *fibres;
static unsigned long progress;
static int failed;
static char why[512];

static executor_hook hook;
static unsigned order, limit, grid_most = EXECUTOR_GRID_MOST;
static struct thread *current;
static int (*device_hook)(void);

/* What kernels were let have of shared memory. */
static struct allowed {
    void (*kernel)(void);
    int device;
    size_t bytes;
} allowed[512];
static size_t allowed_count;
static pthread_mutex_t allowed_lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- Faults ------------------------------------------------------------ */

__attribute__((format(printf, 1, 2))) QUIET static void
fault(const char *format, ...)
{
    va_list arguments;

    if (failed)
        return;
    failed = 1;
    va_start(arguments, format);
    (void)vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
}

QUIET static unsigned thread_number(const struct thread *t)
{
    return (unsigned)(t - t->block->threads);
}

/* Waits until somebody sets it running again, and for ever after a fault. */
QUIET static void wait_as(enum waiting waiting, const char *file, int line)
{
    struct thread *t = current;

    t->waiting = waiting;
    t->where = (struct source){ file, line };
    fibre_release(&launch); /* for who runs launches, if it goes no further */
    do
        fibre_yield();
    while (failed);
}

/* ---- Barriers ---------------------------------------------------------- */

QUIET static int same_source(struct source a, const char *file, int line)
{
    return a.line == line && strcmp(a.file, file) == 0;
}

QUIET static void barrier_complete(struct block *block)
{
    block->come = 0;
    progress++;
    for (unsigned i = 0; i < block->count; i++)
        if (block->threads[i].waiting == AT_BARRIER)
            block->threads[i].waiting = RUNS;
}

QUIET void executor_syncthreads(const char *file, int line)
{
    struct thread *t = current;
    struct block *block = t->block;

    fibre_release(block);
    if (block->come == 0)
        block->where = (struct source){ file, line };
    else if (!same_source(block->where, file, line))
        fault("thread %u of block %u is at the barrier of %s:%d and others at "
              "that of %s:%d",
              thread_number(t), t->block_at.x, file, line, block->where.file,
              block->where.line);
    if (block->done > 0)
        fault("a thread of block %u has ended, and others are at the barrier "
              "of %s:%d",
              t->block_at.x, file, line);
    if (++block->come == block->count)
        barrier_complete(block);
    else
        wait_as(AT_BARRIER, file, line);
    if (failed)
        wait_as(AT_BARRIER, file, line);
    fibre_acquire(block);
}

/* ---- Warps ------------------------------------------------------------- */

/* Comes to the warp's exchange, and goes on when all of the mask have come. */
QUIET static void exchange(unsigned mask, int shuffles, const char *file,
                           int line)
{
    struct thread *t = current;
    const unsigned number = thread_number(t), lane = number % WARP;
    struct warp *warp = &t->block->warps[number / WARP];
    struct thread *lanes = t - lane;

    if (warp->come == 0) {
        warp->mask = mask;
        warp->shuffles = shuffles;
        warp->where = (struct source){ file, line };
    } else if (warp->mask != mask || warp->shuffles != shuffles ||
               !same_source(warp->where, file, line)) {
        fault("lane %u of a warp is at %s:%d with mask %x and others are at "
              "%s:%d with mask %x",
              lane, file, line, mask, warp->where.file, warp->where.line,
              warp->mask);
    }
    if (!(mask >> lane & 1))
        fault("lane %u is not in the mask %x of its own exchange, %s:%d", lane,
              mask, file, line);
    warp->come |= 1u << lane;
    t->mask = mask;
    if (warp->come != mask || failed) {
        wait_as(AT_WARP, file, line);
        return;
    }
    progress++;
    warp->come = 0;
    for (unsigned i = 0; i < WARP; i++)
        if (mask >> i & 1) {
            warp->values[i] = lanes[i].value;
            if (i != lane)
                lanes[i].waiting = RUNS;
        }
}

QUIET void executor_syncwarp(unsigned mask, const char *file, int line)
{
    struct warp *warp = &current->block->warps[thread_number(current) / WARP];

    fibre_release(warp);
    exchange(mask, 0, file, line);
    fibre_acquire(warp);
}

QUIET uint64_t executor_shuffle(unsigned mask, uint64_t value, unsigned from,
                                const char *file, int line)
{
    struct warp *warp = &current->block->warps[thread_number(current) / WARP];

    current->value = value;
    exchange(mask, 1, file, line);
    if (from >= WARP || !(mask >> from & 1)) {
        fault("a shuffle at %s:%d takes from lane %u, which is not in the mask "
              "%x",
              file, line, from, mask);
        wait_as(AT_WARP, file, line);
    }
    return warp->values[from % WARP];
}

QUIET void executor_pause(const char *file, int line)
{
    wait_as(PAUSES, file, line);
}

QUIET void executor_progress(void)
{
    progress++;
}

/* ---- Running ----------------------------------------------------------- */

QUIET static void thread_body(void *argument)
{
    struct thread *t = argument;

    launch->call(launch->kernel, launch->parameters);
    t->waiting = DONE;
    t->block->done++;
    progress++;
    if (t->block->come > 0)
        fault("a thread of block %u ends and others are at the barrier of "
              "%s:%d",
              t->block_at.x, t->block->where.file, t->block->where.line);
    fibre_release(&launch);
}

/* The place in a pass of who comes as number i of `count`. */
QUIET static unsigned turn(unsigned i, unsigned count)
{
    if (order == 0)
        return i;
    if (order == 1)
        return count - 1 - i;
    /* A prime beyond any count: every number once. */
    return (unsigned)(((uint64_t)i * 2097593u + order * 31u) % count);
}

QUIET static void run_thread(struct thread *t)
{
    if (t->waiting != RUNS)
        return;
    current = t;
    fibre_resume(fibres, (size_t)(t - threads));
}

/* The lanes of a thread's warp, until all of them wait for other warps. */
QUIET static void run_warp(struct thread *of)
{
    const unsigned number = thread_number(of);
    struct thread *lanes = of - number % WARP;
    int any;

    do {
        any = 0;
        for (unsigned i = 0; i < WARP && !failed; i++) {
            any |= lanes[i].waiting == RUNS;
            run_thread(&lanes[i]);
        }
    } while (any && !failed);
}

/* Each fibre that can run does so until it waits. */
QUIET static void pass(unsigned count)
{
    for (unsigned i = 0; i < count && !failed; i++) {
        struct thread *t = &threads[turn(i, count)];

        if (t->waiting == PAUSES)
            t->waiting = RUNS;
        run_thread(t);
        if (order > 1)
            run_warp(t);
    }
}

QUIET static void stuck(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const struct thread *t = &threads[i];

        if (t->waiting == DONE)
            continue;
        fault("deadlock: thread %u of block %u waits at %s:%d for what cannot "
              "come",
              thread_number(t), t->block_at.x, t->where.file, t->where.line);
    }
}

QUIET static void run_threads(unsigned count)
{
    unsigned done = 0, idle = 0;

    while (!failed && done < count) {
        const unsigned long before = progress;

        pass(count);
        /* Who pauses may see in the next pass what this one did last. */
        idle = progress == before ? idle + 1 : 0;
        if (idle > 2)
            stuck(count);
        done = 0;
        for (unsigned i = 0; i < count; i++)
            done += threads[i].waiting == DONE;
    }
}

QUIET static executor_index index_of(unsigned number, executor_index size)
{
    const executor_index at = { number % size.x, number / size.x % size.y,
                                number / size.x / size.y };

    return at;
}

QUIET static unsigned count_of(executor_index size)
{
    return size.x * size.y * size.z;
}

static struct shared *new_shared(void)
{
    struct shared *shared = malloc(sizeof *shared);

    if (!shared)
        return NULL;
    shared->bytes = malloc(launch->shared > 0 ? launch->shared : 1);
    if (!shared->bytes) {
        free(shared);
        return NULL;
    }
    memset(shared->bytes, 0xff, launch->shared); /* NaN */
    shared->next = all_shared;
    all_shared = shared;
    return shared;
}

static void free_shared(void)
{
    while (all_shared) {
        struct shared *next = all_shared->next;

        free(all_shared->bytes);
        free(all_shared);
        all_shared = next;
    }
}

/* Makes blocks first ... first + count - 1 of the grid ready to run. */
QUIET static int begin_blocks(unsigned first, unsigned count)
{
    const unsigned size = count_of(launch->block);

    for (unsigned b = 0; b < count; b++) {
        struct block *block = &blocks[b];

        memset(block, 0, sizeof *block);
        block->threads = threads + (size_t)b * size;
        block->count = size;
        block->shared = new_shared();
        if (!block->shared)
            return -1;
        for (unsigned i = 0; i < size; i++) {
            struct thread *t = &block->threads[i];

            memset(t, 0, sizeof *t);
            t->thread = index_of(i, launch->block);
            t->block_at = index_of(first + b, launch->grid);
            t->block = block;
            fibre_begin(fibres, (size_t)(t - threads), thread_body, t);
        }
    }
    return 0;
}

QUIET static void end_blocks(unsigned count)
{
    for (unsigned b = 0; b < count; b++)
        for (unsigned i = 0; i < blocks[b].count; i++)
            fibre_end(fibres, (size_t)(blocks[b].threads + i - threads));
}

QUIET static void run_blocks(unsigned first, unsigned count)
{
    if (begin_blocks(first, count) != 0)
        fault("no memory for shared memory");
    else
        run_threads(count * count_of(launch->block));
    end_blocks(count);
}

/* ---- What a device has not --------------------------------------------- */

static int refuse(int code, const char *text)
{
    (void)snprintf(why, sizeof why, "%s", text);
    return code;
}

/* The place of a kernel, or where one would be put; under the lock. */
static struct allowed *find_allowed(void (*kernel)(void))
{
    const int device = device_hook ? device_hook() : 0;
    size_t i;

    for (i = 0; i < allowed_count; i++)
        if (allowed[i].kernel == kernel && allowed[i].device == device)
            return &allowed[i];
    if (i == sizeof allowed / sizeof allowed[0])
        abort();
    allowed[i] = (struct allowed){ kernel, device, ANY_SHARED };
    return &allowed[i];
}

int executor_allow_shared(void (*kernel)(void), size_t bytes)
{
    struct allowed *place;

    if (!kernel || bytes > MOST_SHARED)
        return refuse(EXECUTOR_INVALID_VALUE, "too much shared memory");
    (void)pthread_mutex_lock(&allowed_lock);
    place = find_allowed(kernel);
    place->bytes = bytes > ANY_SHARED ? bytes : ANY_SHARED;
    if (place == &allowed[allowed_count])
        allowed_count++;
    (void)pthread_mutex_unlock(&allowed_lock);
    return EXECUTOR_OK;
}

static size_t shared_of(void (*kernel)(void))
{
    size_t bytes;

    (void)pthread_mutex_lock(&allowed_lock);
    bytes = find_allowed(kernel)->bytes;
    (void)pthread_mutex_unlock(&allowed_lock);
    return bytes;
}

int executor_check(const executor_launch *given)
{
    const executor_index *g = &given->grid, *b = &given->block;

    if (g->x == 0 || g->y == 0 || g->z == 0 || g->x > 2147483647u ||
        g->y > grid_most || g->z > grid_most)
        return refuse(EXECUTOR_INVALID_CONFIGURATION, "the grid's size");
    if (b->x == 0 || b->y == 0 || b->z == 0 || b->x > MOST_THREADS ||
        b->y > MOST_THREADS || b->z > 64 || count_of(*b) > MOST_THREADS)
        return refuse(EXECUTOR_INVALID_CONFIGURATION, "the block's size");
    if (count_of(*b) % WARP != 0)
        return refuse(EXECUTOR_INVALID_CONFIGURATION,
                      "a block that is not made of whole warps");
    if (given->shared > shared_of(given->kernel))
        return refuse(EXECUTOR_INVALID_VALUE,
                      "more shared memory than the kernel was let have");
    if (given->cooperative && limit > 0 && count_of(*g) > limit)
        return refuse(EXECUTOR_TOO_LARGE,
                      "more blocks than the device has room for at once");
    return EXECUTOR_OK;
}

/* ---- A launch ---------------------------------------------------------- */

int executor_run(const executor_launch *given)
{
    const int bad = executor_check(given);
    const unsigned size = count_of(given->block), grid = count_of(given->grid);
    const unsigned at_once = given->cooperative ? grid : 1;

    if (bad)
        return bad;
    launch = given;
    failed = 0;
    threads = calloc((size_t)at_once * size, sizeof *threads);
    blocks = calloc(at_once, sizeof *blocks);
    fibres = fibres_create((size_t)at_once * size);
    if (!threads || !blocks || !fibres)
        fault("no memory for %u threads", at_once * size);
    for (unsigned i = 0; i < grid && !failed; i += at_once)
        run_blocks(given->cooperative ? 0 : turn(i, grid), at_once);
    fibre_acquire(&launch);
    free_shared();
    free(threads);
    free(blocks);
    fibres_destroy(fibres);
    launch = NULL;
    return failed ? EXECUTOR_FAULT : EXECUTOR_OK;
}

/* ---- Who runs ---------------------------------------------------------- */

QUIET executor_index executor_thread(void)
{
    return current->thread;
}

QUIET executor_index executor_block_at(void)
{
    return current->block_at;
}

QUIET executor_index executor_block(void)
{
    return launch->block;
}

QUIET executor_index executor_grid(void)
{
    return launch->grid;
}

QUIET void *executor_shared(void)
{
    return current->block->shared->bytes;
}

/* ---- Settings ---------------------------------------------------------- */

int executor_submit(void *stream, const executor_launch *given)
{
    const int bad = executor_check(given);

    return bad ? bad : hook ? hook(stream, given) : executor_run(given);
}

const char *executor_why(void)
{
    return why;
}

void executor_set_hook(executor_hook given)
{
    hook = given;
}

void executor_set_device(int (*given)(void))
{
    device_hook = given;
}

void executor_set_order(unsigned given)
{
    order = given;
}

void executor_set_limit(unsigned given)
{
    limit = given;
}

void executor_set_grid_most(unsigned given)
{
    grid_most = given;
}

unsigned executor_grid_most(void)
{
    return grid_most;
}
