/* SPDX-License-Identifier: Apache-2.0 */
/*
 * standin.h: stand-ins for the CUDA runtime, cuDNN's RNN calls and cuBLASLt,
 * for machines without a GPU. They compute on the CPU what the documentation
 * says, and whatever it forbids or leaves undefined ends the process with a
 * message: wrong handles, sizes and orders, host memory taken for the device's,
 * memory that is used after it was freed, what is never freed.
 *
 * The plugin has the runtime linked in, and so has each library: they do not
 * see each other's last errors, and here cuDNN and cuBLASLt leave none. What
 * they did to the device is seen by who asks it.
 *
 * Work on a stream is put off until somebody waits for it, so that a missing
 * wait is seen; what the host may change or read too early is not there yet.
 *
 * $CELLGATE_STANDIN sets them: words NAME=NUMBER, the names below.
 */
#ifndef TESTS_CUDA_STANDIN_H
#define TESTS_CUDA_STANDIN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cuda_runtime_api.h>

/* X(name, default, what it is) */
#define STANDIN_SETTING_LIST(X)                                                \
    X(devices, 1, "GPUs")                                                      \
    X(capability, 90, "compute capability of the first, times 10")             \
    X(capability1, 90, "and of the second")                                    \
    X(memory, 2048, "MiB of each")                                             \
    X(driver, 13000, "CUDA version of the driver; 0: there is none")           \
    X(count_code, 0, "what cudaGetDeviceCount answers")                        \
    X(prohibited, 0, "compute mode of the first is Prohibited")                \
    X(late, 0, "microseconds until a wait for a stream begins")                \
    X(fail_malloc, 0, "number of the cudaMalloc that finds no memory")         \
    X(sticky, 0, "number of the launch that breaks its device")                \
    X(library_breaks, 0,                                                       \
      "number of the libraries' call that breaks its device")                  \
    X(capture_code, 0, "what a launch that is captured answers")               \
    X(instantiate_code, 0, "what cudaGraphInstantiate answers")                \
    X(update_code, 0, "what cudaGraphExecUpdate answers")                      \
    X(cudnn, 91900, "version of cuDNN")                                        \
    X(cudnn_create, 0, "what cudnnCreate answers")                             \
    X(cudnn_layouts, 0,                                                        \
      "persistent algorithms lay out weights otherwise; 2: "                   \
      "and each math type does, in another size")                              \
    X(cudnn_sizes, 0,                                                          \
      "what cudnnGetRNNTempSpaceSizes answers of the static "                  \
      "algorithm")                                                             \
    X(cudnn_standard, 0, "what cudnnRNNForward answers of the standard one")   \
    X(cudnn_fault, 0, "the static algorithm breaks its device when it runs")   \
    X(cudnn_wrong, 0, "what persistent algorithms make is wrong")              \
    X(blaslt, 130000, "version of cuBLASLt")                                   \
    X(blaslt_none, 0, "cuBLASLt has no algorithm")                             \
    X(cudnn_refuse, 0,                                                         \
      "what cudnnRNNForward answers of persistent algorithms")                 \
    X(cudnn_refuse_below, 0, "but that of fewer rows alone; 0: of all")

#define STANDIN_MULTIPROCESSORS 8

struct standin_settings {
#define STANDIN_MEMBER(name, value, what) long name;
    STANDIN_SETTING_LIST(STANDIN_MEMBER)
#undef STANDIN_MEMBER
};

/* Of the process; a test may change them between calls. */
extern struct standin_settings standin_settings;

/* Says what is wrong, and ends the process. */
__attribute__((noreturn, format(printf, 1, 2))) void
standin_fault(const char *format, ...);

/* Everything happens under one lock. */
void standin_lock(void);
void standin_unlock(void);

/* ---- For cuDNN and cuBLASLt, under the lock ---------------------------- */

/* The current device of the thread. */
int standin_device(void);
/* The device of a stream; a fault where it is none. */
int standin_stream_device(cudaStream_t stream);
/* A fault unless all of it is memory of the device. */
void standin_check_device(const void *at, size_t size, int device,
                          const char *what);
/* A copy of `arguments` is kept; `work` runs when the stream gets there.
   `launch`: it counts among the launches. `owned`, or NULL, is freed after it,
   also if it never runs. */
cudaError_t standin_enqueue(cudaStream_t stream, void (*work)(void *arguments),
                            const void *arguments, size_t size, bool launch,
                            void *owned);
/* What was enqueued last fills the device: a fault where another kernel that
   does may be under way then. */
void standin_fills_device(cudaStream_t stream);
/* From now on everything on the device answers so. */
void standin_break(int device, cudaError_t code);
/* A call that works on a device: whether the device is broken, perhaps by it.
 */
bool standin_library_call(int device);
/* Counts what is to be destroyed; `kind` is for people. By 1 or -1. */
void standin_count(const char *kind, int by);

/* ---- For tests --------------------------------------------------------- */

/* Everything as at first: devices are whole, counters zero. */
void standin_reset(void);
/* Calls of cudaMalloc, what was put on streams, launches, graphs that were made
   ready and that were launched, and calls of libraries, since. */
long standin_mallocs(void);
long standin_enqueued(void);
long standin_launches(void);
long standin_instantiations(void);
long standin_graph_launches(void);
long standin_library_calls(void);

#endif
