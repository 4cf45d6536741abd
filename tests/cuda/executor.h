/* SPDX-License-Identifier: Apache-2.0 */
/*
 * executor.h: runs a CUDA kernel's source on the CPU.
 *
 * Every thread of every block is a fibre; a cooperative grid has all its blocks
 * under way at once, another one block after the other. A fibre runs until it
 * waits for others, in an order that tests choose. What a device would answer
 * with undefined behaviour is a fault here: a barrier that some threads of the
 * block do not reach, or reach at another place, a shuffle without all lanes of
 * its mask, a wait that nobody can end. Shared memory is filled with NaN and is
 * a heap block of its own, as device memory is in tests, so that
 * AddressSanitizer sees what lies outside. For ThreadSanitizer each fibre is a
 * thread and only barriers, __syncwarp() and atomics order memory: a shuffle
 * does not.
 *
 * A kernel is a function of one struct by value. executor_cuda.h has the words
 * of CUDA C++ in which it is written.
 */
#ifndef TESTS_CUDA_EXECUTOR_H
#define TESTS_CUDA_EXECUTOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EXECUTOR_PARAMETERS 4096 /* bytes, as on devices */

/* What cudaError_t calls these. */
enum {
    EXECUTOR_OK = 0,
    EXECUTOR_INVALID_VALUE = 1,
    EXECUTOR_INVALID_CONFIGURATION = 9,
    EXECUTOR_FAULT = 719,
    EXECUTOR_TOO_LARGE = 720 /* a cooperative grid */
};

typedef struct executor_index {
    unsigned x, y, z;
} executor_index;

/* A launch: the kernel and a copy of its parameters. */
typedef struct executor_launch {
    void (*kernel)(void);
    /* Casts the kernel to what it is, and calls it. */
    void (*call)(void (*kernel)(void), const void *parameters);
    executor_index grid, block;
    size_t shared; /* bytes of dynamic shared memory */
    int cooperative;
    size_t size; /* of the parameters */
    uint64_t parameters[EXECUTOR_PARAMETERS / sizeof(uint64_t)];
} executor_launch;

/* What a device answers to a launch at once: OK, or a size that it has not. */
int executor_check(const executor_launch *launch);
/* Runs all of it; one launch at a time. Not OK: executor_why() tells. */
int executor_run(const executor_launch *launch);
const char *executor_why(void);

/*
 * What a launch function of a kernel comes to: runs it at once, or gives it to
 * the hook, which keeps a copy and runs it when its stream gets there. A launch
 * of sizes that a device has not is refused before.
 */
int executor_submit(void *stream, const executor_launch *launch);
typedef int (*executor_hook)(void *stream, const executor_launch *launch);
void executor_set_hook(executor_hook hook);

/* Lets a kernel have more dynamic shared memory than every one may, on the
   device that the function says is current; without one there is one device. */
int executor_allow_shared(void (*kernel)(void), size_t bytes);
void executor_set_device(int (*current)(void));

/*
 * The order in which fibres run: 0 forward and 1 backward, each until it waits
 * in its turn; else mixed by the number, and each warp as far as it gets
 * without others.
 */
void executor_set_order(unsigned order);
/* Blocks that a cooperative grid may have; 0: any number. */
void executor_set_limit(unsigned blocks);
/* The most blocks in y and in z: that of devices, or fewer, so that kernels
   which go on beyond it are tried. */
#define EXECUTOR_GRID_MOST 65535u
void executor_set_grid_most(unsigned blocks);
unsigned executor_grid_most(void);

/* ---- What kernels call, by way of executor_cuda.h ---------------------- */

/* Of the fibre that runs. */
executor_index executor_thread(void);
executor_index executor_block_at(void);
executor_index executor_block(void);
executor_index executor_grid(void);
void *executor_shared(void);

void executor_syncthreads(const char *file, int line);
void executor_syncwarp(unsigned mask, const char *file, int line);
/* What lane `from` of the warp gives. */
uint64_t executor_shuffle(unsigned mask, uint64_t value, unsigned from,
                          const char *file, int line);
/* Lets others run: in a loop that waits for a number in memory. */
void executor_pause(const char *file, int line);
/* A number that others may be waiting for has changed. */
void executor_progress(void);

#ifdef __cplusplus
}
#endif

#endif /* TESTS_CUDA_EXECUTOR_H */
