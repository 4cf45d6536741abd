/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/unit/heap_watch.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Runs before a sanitizer has set itself up. */
#define UNCHECKED __attribute__((no_sanitize("address", "undefined")))
#define EXPORTED __attribute__((visibility("default")))

#define TABLE_SIZE (1u << 20) /* blocks alive at once; a power of two */
#define FRAMES_MOST 24

/* ---- The functions behind these ------------------------------------------ */

static void *(*real_malloc)(size_t);
static void *(*real_calloc)(size_t, size_t);
static void *(*real_realloc)(void *, size_t);
static void *(*real_aligned_alloc)(size_t, size_t);
static int (*real_posix_memalign)(void **, size_t, size_t);
static void (*real_free)(void *);

/* What dlsym() itself asks for meanwhile; never given back. */
static _Alignas(64) char early[4096];
static size_t early_used;
static bool resolving;

UNCHECKED static void *early_memory(size_t size)
{
    void *memory = early + early_used;

    early_used += (size + 63) / 64 * 64;
    if (early_used > sizeof early)
        abort();
    return memory;
}

UNCHECKED static bool is_early(const void *memory)
{
    return (uintptr_t)memory - (uintptr_t)early < sizeof early;
}

/* False while dlsym() is at work. */
UNCHECKED static bool resolve(void)
{
    if (real_free != NULL)
        return true;
    if (resolving)
        return false;
    resolving = true;
    *(void **)&real_malloc = dlsym(RTLD_NEXT, "malloc");
    *(void **)&real_calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&real_realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&real_aligned_alloc = dlsym(RTLD_NEXT, "aligned_alloc");
    *(void **)&real_posix_memalign = dlsym(RTLD_NEXT, "posix_memalign");
    *(void **)&real_free = dlsym(RTLD_NEXT, "free");
    resolving = false;
    return true;
}

/* ---- Keeping account ----------------------------------------------------- */

typedef struct block {
    uintptr_t address; /* 0: free place; 1: was taken once */
    size_t size;
} block;

static _Thread_local bool watching;
static size_t countdown; /* 0: none will fail any more */
static bool failed;
static block table[TABLE_SIZE];
static size_t live, peak, largest, count;
static size_t failed_size;
static void *failure[FRAMES_MOST];
static int failure_depth;
static void (*on_failure)(void);

UNCHECKED static size_t place_of(uintptr_t address)
{
    return (size_t)((address >> 4) * 0x9e3779b97f4a7c15u >> 40) % TABLE_SIZE;
}

UNCHECKED static void *record(void *memory, size_t size)
{
    size_t at;

    if (!watching || memory == NULL)
        return memory;
    at = place_of((uintptr_t)memory);
    for (size_t tries = 0; table[at].address > 1; at = (at + 1) % TABLE_SIZE)
        if (++tries == TABLE_SIZE)
            abort();
    table[at] = (block){ (uintptr_t)memory, size };
    live += size;
    peak = live > peak ? live : peak;
    largest = size > largest ? size : largest;
    return memory;
}

/* Whether it was of this watch. */
UNCHECKED static bool forget(const void *memory)
{
    if (!watching || memory == NULL)
        return false;
    for (size_t at = place_of((uintptr_t)memory); table[at].address != 0;
         at = (at + 1) % TABLE_SIZE)
        if (table[at].address == (uintptr_t)memory) {
            live -= table[at].size;
            table[at].address = 1;
            return true;
        }
    return false;
}

/* Whether the allocation at hand is the one to fail. */
UNCHECKED static bool fails(size_t size)
{
    if (!watching)
        return false;
    count++;
    if (countdown == 0 || --countdown != 0)
        return false;
    failed = true;
    failed_size = size;
    watching = false;
    failure_depth = backtrace(failure, FRAMES_MOST);
    if (on_failure != NULL)
        on_failure();
    watching = true;
    errno = ENOMEM;
    return true;
}

/* What the dynamic linker keeps of libraries that are loaded late; a leak
   checker knows it by its caller, which is this file now. */
EXPORTED const char *__lsan_default_suppressions(void);
EXPORTED UNCHECKED const char *__lsan_default_suppressions(void)
{
    return "leak:_dl_map_object_deps\nleak:dl_open_worker_begin\n";
}

/* ---- In place of the C library's ----------------------------------------- */

EXPORTED UNCHECKED void *malloc(size_t size)
{
    if (!resolve())
        return early_memory(size);
    return fails(size) ? NULL : record(real_malloc(size), size);
}

EXPORTED UNCHECKED void *calloc(size_t number, size_t size)
{
    if (!resolve())
        return early_memory(number * size);
    return fails(number * size)
               ? NULL
               : record(real_calloc(number, size), number * size);
}

EXPORTED UNCHECKED void *realloc(void *memory, size_t size)
{
    bool known;
    size_t old;
    void *grown;

    if (!resolve() || is_early(memory))
        abort();
    if (fails(size))
        return NULL;
    old = memory != NULL ? malloc_usable_size(memory) : 0;
    known = forget(memory);
    grown = real_realloc(memory, size);
    if (grown == NULL && size != 0)
        return known ? record(memory, old), NULL : NULL;
    /* A block from before the watch stays out of the account. */
    return memory == NULL || known ? record(grown, size) : grown;
}

EXPORTED UNCHECKED void *aligned_alloc(size_t alignment, size_t size)
{
    if (!resolve())
        abort();
    return fails(size) ? NULL
                       : record(real_aligned_alloc(alignment, size), size);
}

EXPORTED UNCHECKED int posix_memalign(void **memory, size_t alignment,
                                      size_t size)
{
    int result;

    if (!resolve())
        abort();
    if (fails(size))
        return ENOMEM;
    result = real_posix_memalign(memory, alignment, size);
    if (result == 0)
        (void)record(*memory, size);
    return result;
}

EXPORTED UNCHECKED void free(void *memory)
{
    if (memory == NULL || is_early(memory) || !resolve())
        return;
    (void)forget(memory);
    real_free(memory);
}

/* ---- For tests ----------------------------------------------------------- */

void heap_watch_begin(size_t nth)
{
    void *frame[1];

    (void)backtrace(frame, 1); /* loads what it needs before the watch */
    if (count != 0)
        memset(table, 0, sizeof table);
    live = peak = largest = count = 0;
    countdown = nth;
    failed = false;
    failure_depth = 0;
    watching = true;
}

void heap_watch_tell(void (*told)(void))
{
    on_failure = told;
}

bool heap_watch_end(void)
{
    watching = false;
    return failed;
}

size_t heap_watch_peak(void)
{
    return peak;
}

size_t heap_watch_largest(void)
{
    return largest;
}

size_t heap_watch_live(void)
{
    return live;
}

size_t heap_watch_count(void)
{
    return count;
}

size_t heap_watch_failed_size(void)
{
    return failed_size;
}

bool heap_watch_failed_in(const char *function)
{
    for (int i = 0; i < failure_depth; i++) {
        Dl_info about;

        if (dladdr(failure[i], &about) != 0 && about.dli_sname != NULL &&
            strcmp(about.dli_sname, function) == 0)
            return true;
    }
    return false;
}
