/* SPDX-License-Identifier: Apache-2.0 */
/* standin_launch.c: launches of our own kernels, which the executor runs when
   their stream gets there. */
#include <string.h>

#include "tests/cuda/executor.h"
#include "tests/cuda/standin_private.h"

static void run(void *arguments)
{
    if (executor_run(arguments) != EXECUTOR_OK)
        standin_fault("a kernel: %s", executor_why());
}

/* Kernels that a device has: it loads one when it is first launched. */
static struct {
    void (*kernel)(void);
    int device;
} loaded[512];
static size_t loaded_count;
static long era;

static bool is_loaded(void (*kernel)(void), int device)
{
    size_t i;

    if (era != standin_era())
        loaded_count = 0;
    era = standin_era();
    for (i = 0; i < loaded_count; i++)
        if (loaded[i].kernel == kernel && loaded[i].device == device)
            return true;
    return false;
}

static void load(void (*kernel)(void), int device)
{
    if (loaded_count == sizeof loaded / sizeof loaded[0])
        standin_fault("too many kernels");
    loaded[loaded_count].kernel = kernel;
    loaded[loaded_count++].device = device;
}

static int submit(void *stream, const executor_launch *launch)
{
    cudaError_t code;
    bool has;

    standin_lock();
    if (standin_stream_device(stream) != standin_device())
        standin_fault("a kernel is launched on a stream of another device");
    has = is_loaded(launch->kernel, standin_device());
    code = standin_launchable(stream, has);
    if (code == cudaSuccess && !has)
        load(launch->kernel, standin_device());
    if (code == cudaSuccess)
        code = standin_error(
            standin_enqueue(stream, run, launch, sizeof *launch, true, NULL));
    if (code == cudaSuccess && launch->cooperative)
        standin_fills_device(stream);
    standin_unlock();
    return (int)code;
}

__attribute__((constructor)) static void set_hook(void)
{
    executor_set_hook(submit);
    executor_set_device(standin_device);
    executor_set_limit(STANDIN_MULTIPROCESSORS);
}
