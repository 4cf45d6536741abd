/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api.h: the functions of the OpenCL ICD loader, opened at run time: a machine
 * without it gets a sentence that says what to install, and tests can put their
 * own functions in place of a driver's.
 */
#ifndef CELLGATE_OPENCL_API_H
#define CELLGATE_OPENCL_API_H

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "cellgate/plugin.h"

#define OCL_FUNCTION_LIST(X)                                                   \
    X(GetPlatformIDs)                                                          \
    X(GetPlatformInfo)                                                         \
    X(GetDeviceIDs)                                                            \
    X(GetDeviceInfo)                                                           \
    X(CreateSubDevices)                                                        \
    X(ReleaseDevice)                                                           \
    X(CreateContext)                                                           \
    X(ReleaseContext)                                                          \
    X(CreateCommandQueue)                                                      \
    X(ReleaseCommandQueue)                                                     \
    X(CreateBuffer)                                                            \
    X(ReleaseMemObject)                                                        \
    X(CreateProgramWithSource)                                                 \
    X(CreateProgramWithBinary)                                                 \
    X(BuildProgram)                                                            \
    X(GetProgramInfo)                                                          \
    X(GetProgramBuildInfo)                                                     \
    X(ReleaseProgram)                                                          \
    X(CreateKernel)                                                            \
    X(ReleaseKernel)                                                           \
    X(SetKernelArg)                                                            \
    X(GetKernelWorkGroupInfo)                                                  \
    X(EnqueueNDRangeKernel)                                                    \
    X(EnqueueReadBuffer)                                                       \
    X(EnqueueWriteBuffer)                                                      \
    X(EnqueueCopyBuffer)                                                       \
    X(EnqueueFillBuffer)                                                       \
    X(EnqueueMapBuffer)                                                        \
    X(EnqueueUnmapMemObject)                                                   \
    X(Flush)                                                                   \
    X(Finish)                                                                  \
    X(GetEventInfo)                                                            \
    X(GetEventProfilingInfo)                                                   \
    X(ReleaseEvent)

struct ocl_api {
    void *library; /* never closed: drivers leave threads behind */
#define OCL_MEMBER(name) __typeof__(&cl##name) name;
    OCL_FUNCTION_LIST(OCL_MEMBER)
#undef OCL_MEMBER
};

/* Opens libOpenCL. NO_DEVICE: it is not installed, or lacks a function. */
cellgate_status ocl_api_load(struct ocl_api *api, cellgate_error *error);

/* "CL_OUT_OF_RESOURCES", or "an unknown code". */
const char *ocl_code_name(cl_int code);

/*
 * Fills *error from a code other than CL_SUCCESS that `function` returned while
 * `doing` (for people), and returns the status that it comes to.
 */
cellgate_status ocl_fail(cellgate_error *error, cl_int code,
                         const char *function, const char *doing);

#endif /* CELLGATE_OPENCL_API_H */
