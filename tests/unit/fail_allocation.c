/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "tests/unit/fail_allocation.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define BLOCKS_MAX 4096
#define ATTEMPTS_MAX 100000

static _Thread_local bool watching;
static _Thread_local size_t countdown; /* 0: none will fail any more */
static _Thread_local bool failed;
static _Thread_local void *blocks[BLOCKS_MAX];
static _Thread_local size_t block_count;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
int __real_posix_memalign(void **memory, size_t alignment, size_t size);
void __real_free(void *memory);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t length);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t size);
void __wrap_free(void *memory);

/* Whether the allocation at hand is the one to fail. */
static bool fails(void)
{
    if (!watching || countdown == 0 || --countdown != 0)
        return false;
    failed = true;
    errno = ENOMEM;
    return true;
}

static void *record(void *memory)
{
    if (!watching || memory == NULL)
        return memory;
    if (block_count == BLOCKS_MAX)
        abort(); /* raise BLOCKS_MAX */
    blocks[block_count++] = memory;
    return memory;
}

/* Whether it was there. */
static bool forget(const void *memory)
{
    for (size_t i = block_count; i > 0; i--)
        if (blocks[i - 1] == memory) {
            blocks[i - 1] = blocks[--block_count];
            return true;
        }
    return false;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : record(__real_malloc(size));
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : record(__real_calloc(count, size));
}

void *__wrap_realloc(void *memory, size_t size)
{
    bool known;
    void *grown;

    if (fails())
        return NULL;
    known = forget(memory);
    grown = __real_realloc(memory, size);
    /* A block from before the watch stays out of the count. */
    return memory == NULL || known ? record(grown) : grown;
}

char *__wrap_strdup(const char *text)
{
    return __wrap_strndup(text, strlen(text));
}

char *__wrap_strndup(const char *text, size_t length)
{
    size_t used = strnlen(text, length);
    char *copy = __wrap_malloc(used + 1);

    if (copy != NULL) {
        memcpy(copy, text, used);
        copy[used] = '\0';
    }
    return copy;
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return fails() ? NULL : record(__real_aligned_alloc(alignment, size));
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t size)
{
    int result;

    if (fails())
        return ENOMEM;
    result = __real_posix_memalign(memory, alignment, size);
    if (result == 0)
        (void)record(*memory);
    return result;
}

void __wrap_free(void *memory)
{
    (void)forget(memory);
    __real_free(memory);
}

void fail_allocation_begin(size_t nth)
{
    block_count = 0;
    countdown = nth;
    failed = false;
    watching = true;
}

bool fail_allocation_end(void)
{
    watching = false;
    return failed;
}

size_t fail_allocation_live(void)
{
    return block_count;
}

size_t fail_each_allocation(fail_allocation_attempt attempt, void *context)
{
    for (size_t nth = 1; nth < ATTEMPTS_MAX; nth++) {
        cellgate_status status;
        bool reached;

        fail_allocation_begin(nth);
        status = attempt(context);
        reached = fail_allocation_end();
        if (fail_allocation_live() != 0)
            fail_msg("%zu blocks leak when allocation %zu fails",
                     fail_allocation_live(), nth);
        if (!reached) {
            assert_int_equal(status, CELLGATE_OK);
            return nth - 1;
        }
        if (status != CELLGATE_NO_MEMORY)
            fail_msg("status %d when allocation %zu fails", (int)status, nth);
    }
    fail_msg("an attempt never ends");
    return 0;
}
