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

static int submit(void *stream, const executor_launch *launch)
{
    cudaError_t code;

    standin_lock();
    if (standin_stream_device(stream) != standin_device())
        standin_fault("a kernel is launched on a stream of another device");
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
