/* SPDX-License-Identifier: Apache-2.0 */
/* standin_memory.c: memory of devices, pinned memory, copies. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(at, size) ((void)(at), (void)(size))
#endif

#include "tests/cuda/standin_private.h"

#define MARGIN 64 /* bytes on either side, which nobody may write */
#define MARGIN_BYTE 0xA5
#define UNSET 0xFF /* floats of it are NaN */

/* Of a device, or pinned where `device` is -1. */
struct block {
    unsigned char *memory; /* with its margins */
    unsigned char *at;
    size_t size;
    int device;
    struct block *next;
};

static struct block *blocks;
static size_t used[STANDIN_DEVICES];
static long mallocs;

long standin_mallocs(void)
{
    return mallocs;
}

/* ---- Blocks ------------------------------------------------------------ */

static struct block *add_block(size_t size, int device)
{
    struct block *block = calloc(1, sizeof *block);
    unsigned char *memory = malloc(size + 2 * MARGIN);

    if (!block || !memory)
        standin_fault("no memory");
    memset(memory, MARGIN_BYTE, size + 2 * MARGIN);
    memset(memory + MARGIN, UNSET, size);
    ASAN_POISON_MEMORY_REGION(memory, MARGIN);
    ASAN_POISON_MEMORY_REGION(memory + MARGIN + size, MARGIN);
    if (device >= 0)
        ASAN_POISON_MEMORY_REGION(memory + MARGIN, size);
    block->memory = memory;
    block->at = memory + MARGIN;
    block->size = size;
    block->device = device;
    block->next = blocks;
    blocks = block;
    return block;
}

static void check_margins(const struct block *block)
{
    size_t i;

    ASAN_UNPOISON_MEMORY_REGION(block->at - MARGIN, block->size + 2 * MARGIN);
    for (i = 0; i < MARGIN; i++)
        if (block->at[-1 - (ptrdiff_t)i] != MARGIN_BYTE ||
            block->at[block->size + i] != MARGIN_BYTE)
            standin_fault("something was written beside a block of %zu bytes",
                          block->size);
}

static void remove_block(void *memory, bool pinned, const char *what)
{
    struct block **at, *found;

    for (at = &blocks; *at && (*at)->at != memory;)
        at = &(*at)->next;
    found = *at;
    if (!found || (found->device < 0) != pinned)
        standin_fault("%s of %p, which is not such memory", what, memory);
    *at = found->next;
    check_margins(found);
    if (found->device >= 0)
        used[found->device] -= found->size;
    free(found->memory);
    free(found);
}

/* The block that an address lies in; NULL: ordinary memory. */
static const struct block *block_of(const void *address)
{
    const unsigned char *byte = address;
    const struct block *at;

    for (at = blocks; at; at = at->next)
        if (byte >= at->at && byte < at->at + at->size)
            return at;
    return NULL;
}

void standin_open_memory(void)
{
    const struct block *at;

    for (at = blocks; at; at = at->next)
        ASAN_UNPOISON_MEMORY_REGION(at->at, at->size);
}

void standin_close_memory(void)
{
    const struct block *at;

    for (at = blocks; at; at = at->next)
        if (at->device >= 0)
            ASAN_POISON_MEMORY_REGION(at->at, at->size);
}

void standin_check_device(const void *at, size_t size, int device,
                          const char *what)
{
    const struct block *block = block_of(at);

    if (!block || block->device < 0)
        standin_fault("%s: %p is not memory of a device", what, at);
    if (block->device != device)
        standin_fault("%s: memory of device %d on device %d", what,
                      block->device, device);
    if (size > block->size ||
        (const unsigned char *)at + size > block->at + block->size)
        standin_fault("%s: %zu bytes at %zu of a block of %zu", what, size,
                      (size_t)((const unsigned char *)at - block->at),
                      block->size);
}

/* Ordinary or pinned, and long enough if that is known. */
static bool check_host(const void *at, size_t size, const char *what)
{
    const struct block *block = block_of(at);

    if (block && block->device >= 0)
        standin_fault("%s: %p is memory of a device, not of the host", what,
                      at);
    if (block && (const unsigned char *)at + size > block->at + block->size)
        standin_fault("%s: beyond a pinned block of %zu bytes", what,
                      block->size);
    return block != NULL;
}

/* ---- Allocating -------------------------------------------------------- */

cudaError_t cudaMalloc(void **memory, size_t size)
{
    const int device = standin_device();
    cudaError_t code;

    standin_lock();
    code = standin_not_captured();
    if (code == cudaSuccess)
        code = standin_usable(device);
    mallocs++;
    if (code == cudaSuccess &&
        (mallocs == standin_settings.fail_malloc ||
         used[device] + size > (size_t)standin_settings.memory << 20))
        code = standin_error(cudaErrorMemoryAllocation);
    if (code == cudaSuccess) {
        used[device] += size;
        *memory = add_block(size, device)->at;
        standin_count("blocks of device memory", 1);
    }
    standin_unlock();
    return code;
}

cudaError_t cudaFree(void *memory)
{
    cudaError_t code;

    standin_lock();
    code = standin_not_captured();
    if (code == cudaSuccess)
        code = standin_usable(standin_device());
    if (memory && code == cudaSuccess) {
        const struct block *block = block_of(memory);

        if (block && block->device >= 0 && block->device != standin_device())
            standin_fault("cudaFree with another device current");
        if (block && block->device >= 0)
            standin_flush(block->device); /* it waits for the device */
        remove_block(memory, false, "cudaFree");
        standin_count("blocks of device memory", -1);
    }
    standin_unlock();
    return code;
}

cudaError_t cudaHostAlloc(void **memory, size_t size, unsigned flags)
{
    cudaError_t code;

    if (flags != cudaHostAllocDefault)
        standin_fault("cudaHostAlloc with flags %u", flags);
    standin_lock();
    code = standin_not_captured();
    if (code == cudaSuccess)
        code = standin_usable(standin_device());
    if (code == cudaSuccess) {
        *memory = add_block(size, -1)->at;
        standin_count("blocks of pinned memory", 1);
    }
    standin_unlock();
    return code;
}

cudaError_t cudaFreeHost(void *memory)
{
    standin_lock();
    remove_block(memory, true, "cudaFreeHost");
    standin_count("blocks of pinned memory", -1);
    standin_unlock();
    return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *left, size_t *all)
{
    *all = (size_t)standin_settings.memory << 20;
    *left = *all - used[standin_device()];
    return cudaSuccess;
}

/* ---- Copies ------------------------------------------------------------ */

struct copy {
    unsigned char *to;
    const unsigned char *from;
    size_t to_pitch, from_pitch, width, rows;
    unsigned char *kept; /* the host's memory as it was */
};

static void do_copy(void *arguments)
{
    const struct copy *copy = arguments;
    size_t row;

    for (row = 0; row < copy->rows; row++)
        memcpy(copy->to + row * copy->to_pitch,
               copy->from + row * copy->from_pitch, copy->width);
}

static size_t extent(size_t pitch, const struct copy *copy)
{
    return (copy->rows - 1) * pitch + copy->width;
}

/* The host may change ordinary memory as soon as the call has returned. */
static void keep(struct copy *copy)
{
    size_t row;

    copy->kept = malloc(copy->width * copy->rows);
    if (!copy->kept)
        standin_fault("no memory");
    for (row = 0; row < copy->rows; row++)
        memcpy(copy->kept + row * copy->width,
               copy->from + row * copy->from_pitch, copy->width);
    copy->from = copy->kept;
    copy->from_pitch = copy->width;
}

static cudaError_t enqueue_copy(struct copy copy, enum cudaMemcpyKind kind,
                                cudaStream_t stream, bool ordinary_waits)
{
    const int device = standin_stream_device(stream);
    const bool to_device = kind != cudaMemcpyDeviceToHost;
    const bool from_device = kind != cudaMemcpyHostToDevice;
    cudaError_t code = standin_usable(device);
    bool pinned = true;

    if (kind != cudaMemcpyHostToDevice && kind != cudaMemcpyDeviceToHost &&
        kind != cudaMemcpyDeviceToDevice)
        standin_fault("a copy of kind %d", (int)kind);
    if (copy.width == 0 || copy.rows == 0)
        standin_fault("a copy of nothing");
    if (copy.rows > 1 &&
        (copy.to_pitch < copy.width || copy.from_pitch < copy.width))
        standin_fault("a copy with a pitch less than its width");
    if (to_device)
        standin_check_device(copy.to, extent(copy.to_pitch, &copy), device,
                             "a copy to");
    else
        pinned = check_host(copy.to, extent(copy.to_pitch, &copy), "a copy to");
    if (from_device)
        standin_check_device(copy.from, extent(copy.from_pitch, &copy), device,
                             "a copy from");
    else
        pinned = check_host(copy.from, extent(copy.from_pitch, &copy),
                            "a copy from");
    if (code != cudaSuccess)
        return code;
    if (!from_device && !pinned)
        keep(&copy);
    code =
        standin_enqueue(stream, do_copy, &copy, sizeof copy, false, copy.kept);
    if (code == cudaSuccess && !to_device && (!pinned || ordinary_waits))
        code = standin_flush_stream(stream);
    return code;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t size,
                            enum cudaMemcpyKind kind, cudaStream_t stream)
{
    const struct copy copy = { to, from, size, size, size, 1, NULL };
    cudaError_t code;

    standin_lock();
    code = enqueue_copy(copy, kind, stream, false);
    standin_unlock();
    return code;
}

/* On the default stream, for which those of plans do not wait. */
cudaError_t cudaMemcpy(void *to, const void *from, size_t size,
                       enum cudaMemcpyKind kind)
{
    const struct copy copy = { to, from, size, size, size, 1, NULL };
    cudaError_t code;

    standin_lock();
    code = standin_not_captured();
    if (code == cudaSuccess)
        code = enqueue_copy(copy, kind, NULL, true);
    standin_unlock();
    return code;
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from,
                              size_t from_pitch, size_t width, size_t rows,
                              enum cudaMemcpyKind kind, cudaStream_t stream)
{
    const struct copy copy = {
        to, from, to_pitch, from_pitch, width, rows, NULL
    };
    cudaError_t code;

    if (to_pitch > INT32_MAX || from_pitch > INT32_MAX)
        standin_fault("a pitch of more than 31 bits");
    standin_lock();
    code = enqueue_copy(copy, kind, stream, false);
    standin_unlock();
    return code;
}

/* ---- Setting ----------------------------------------------------------- */

struct fill {
    unsigned char *to;
    size_t pitch, width, rows;
    int value;
};

static void do_fill(void *arguments)
{
    const struct fill *fill = arguments;
    size_t row;

    for (row = 0; row < fill->rows; row++)
        memset(fill->to + row * fill->pitch, fill->value, fill->width);
}

cudaError_t cudaMemset2DAsync(void *to, size_t pitch, int value, size_t width,
                              size_t rows, cudaStream_t stream)
{
    const struct fill fill = { to, pitch, width, rows, value };
    cudaError_t code;

    if (width == 0 || rows == 0 || (rows > 1 && pitch < width) ||
        pitch > INT32_MAX)
        standin_fault("zeros of width %zu, %zu rows, pitch %zu", width, rows,
                      pitch);
    standin_lock();
    standin_check_device(to, (rows - 1) * pitch + width,
                         standin_stream_device(stream), "zeros");
    code = standin_error(
        standin_enqueue(stream, do_fill, &fill, sizeof fill, false, NULL));
    standin_unlock();
    return code;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t size,
                            cudaStream_t stream)
{
    const struct fill fill = { to, size, size, 1, value };
    cudaError_t code;

    standin_lock();
    standin_check_device(to, size, standin_stream_device(stream), "zeros");
    code = standin_error(
        standin_enqueue(stream, do_fill, &fill, sizeof fill, false, NULL));
    standin_unlock();
    return code;
}
