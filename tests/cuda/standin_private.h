/* SPDX-License-Identifier: Apache-2.0 */
/* standin_private.h: what the parts of the runtime's stand-in share. */
#ifndef TESTS_CUDA_STANDIN_PRIVATE_H
#define TESTS_CUDA_STANDIN_PRIVATE_H

#include "tests/cuda/standin.h"

#define STANDIN_DEVICES 8

/* Success where the device is whole; else its error, which stays. */
cudaError_t standin_state(int device);
/* The same, which the plugin's runtime remembers. */
cudaError_t standin_usable(int device);
/* Remembers and returns an error. */
cudaError_t standin_error(cudaError_t code);

/* What was under way on devices that broke is not any more. */
void standin_forget_fillers(void);

/* A call that may not be made while the thread captures a stream, which it
   breaks off then; success where it does not. */
cudaError_t standin_not_captured(void);
/* What a launch of a kernel on the stream answers before it is one; `loaded`:
   it has run on the device before. */
cudaError_t standin_launchable(cudaStream_t stream, bool loaded);

/* Changes with every standin_reset(). */
long standin_era(void);

/* Does what the device's streams still have to do. */
void standin_flush(int device);
/* The same for one stream; what its device says then. */
cudaError_t standin_flush_stream(cudaStream_t stream);

/* Makes the devices' memory accessible for work, and forbids it again. */
void standin_open_memory(void);
void standin_close_memory(void);

/* Everything that lives of each kind is a fault. */
void standin_check_leaks(void);

#endif
