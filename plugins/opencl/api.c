/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dlfcn.h>

#include "plugins/opencl/api.h"

#define LOADER "libOpenCL.so.1"

static cellgate_status find_function(struct ocl_api *api, const char *name,
                                     void *to, cellgate_error *error)
{
    void *found = dlsym(api->library, name);

    if (!found)
        return cellgate_fail(error, CELLGATE_NO_DEVICE,
                             LOADER
                             " has no %s: the loader is older than "
                             "OpenCL 1.2; install a newer one (on Debian: "
                             "apt-get install ocl-icd-libopencl1)",
                             name);
    memcpy(to, &found, sizeof found);
    return CELLGATE_OK;
}

cellgate_status ocl_api_load(struct ocl_api *api, cellgate_error *error)
{
    cellgate_status status = CELLGATE_OK;

    api->library = dlopen(LOADER, RTLD_NOW | RTLD_LOCAL);
    if (!api->library)
        return cellgate_fail(error, CELLGATE_NO_DEVICE,
                             "no OpenCL ICD loader (%s); install one (on "
                             "Debian: apt-get install ocl-icd-libopencl1) and "
                             "the driver of your device",
                             dlerror());
#define OCL_FIND(name)                                                         \
    if (status == CELLGATE_OK)                                                 \
        status = find_function(api, "cl" #name, &api->name, error);
    OCL_FUNCTION_LIST(OCL_FIND)
#undef OCL_FIND
    return status;
}

/* ---- Codes ------------------------------------------------------------- */

/* X(code, the status that it comes to) */
#define CODE_LIST(X)                                                           \
    X(CL_DEVICE_NOT_FOUND, NO_DEVICE)                                          \
    X(CL_DEVICE_NOT_AVAILABLE, DEVICE_LOST)                                    \
    X(CL_COMPILER_NOT_AVAILABLE, DEVICE_FAILED)                                \
    X(CL_MEM_OBJECT_ALLOCATION_FAILURE, DEVICE_MEMORY)                         \
    X(CL_OUT_OF_RESOURCES, DEVICE_MEMORY)                                      \
    X(CL_OUT_OF_HOST_MEMORY, NO_MEMORY)                                        \
    X(CL_PROFILING_INFO_NOT_AVAILABLE, DEVICE_FAILED)                          \
    X(CL_MEM_COPY_OVERLAP, INTERNAL)                                           \
    X(CL_IMAGE_FORMAT_MISMATCH, INTERNAL)                                      \
    X(CL_IMAGE_FORMAT_NOT_SUPPORTED, INTERNAL)                                 \
    X(CL_BUILD_PROGRAM_FAILURE, DEVICE_FAILED)                                 \
    X(CL_MAP_FAILURE, DEVICE_MEMORY)                                           \
    X(CL_MISALIGNED_SUB_BUFFER_OFFSET, INTERNAL)                               \
    X(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, DEVICE_FAILED)             \
    X(CL_COMPILE_PROGRAM_FAILURE, DEVICE_FAILED)                               \
    X(CL_LINKER_NOT_AVAILABLE, DEVICE_FAILED)                                  \
    X(CL_LINK_PROGRAM_FAILURE, DEVICE_FAILED)                                  \
    X(CL_DEVICE_PARTITION_FAILED, DEVICE_FAILED)                               \
    X(CL_KERNEL_ARG_INFO_NOT_AVAILABLE, DEVICE_FAILED)                         \
    X(CL_INVALID_VALUE, INTERNAL)                                              \
    X(CL_INVALID_DEVICE_TYPE, INTERNAL)                                        \
    X(CL_INVALID_PLATFORM, DEVICE_FAILED)                                      \
    X(CL_INVALID_DEVICE, DEVICE_LOST)                                          \
    X(CL_INVALID_CONTEXT, DEVICE_LOST)                                         \
    X(CL_INVALID_QUEUE_PROPERTIES, DEVICE_FAILED)                              \
    X(CL_INVALID_COMMAND_QUEUE, DEVICE_LOST)                                   \
    X(CL_INVALID_HOST_PTR, INTERNAL)                                           \
    X(CL_INVALID_MEM_OBJECT, INTERNAL)                                         \
    X(CL_INVALID_IMAGE_FORMAT_DESCRIPTOR, INTERNAL)                            \
    X(CL_INVALID_IMAGE_SIZE, INTERNAL)                                         \
    X(CL_INVALID_SAMPLER, INTERNAL)                                            \
    X(CL_INVALID_BINARY, DEVICE_FAILED)                                        \
    X(CL_INVALID_BUILD_OPTIONS, INTERNAL)                                      \
    X(CL_INVALID_PROGRAM, INTERNAL)                                            \
    X(CL_INVALID_PROGRAM_EXECUTABLE, DEVICE_FAILED)                            \
    X(CL_INVALID_KERNEL_NAME, INTERNAL)                                        \
    X(CL_INVALID_KERNEL_DEFINITION, INTERNAL)                                  \
    X(CL_INVALID_KERNEL, INTERNAL)                                             \
    X(CL_INVALID_ARG_INDEX, INTERNAL)                                          \
    X(CL_INVALID_ARG_VALUE, INTERNAL)                                          \
    X(CL_INVALID_ARG_SIZE, INTERNAL)                                           \
    X(CL_INVALID_KERNEL_ARGS, INTERNAL)                                        \
    X(CL_INVALID_WORK_DIMENSION, INTERNAL)                                     \
    X(CL_INVALID_WORK_GROUP_SIZE, INTERNAL)                                    \
    X(CL_INVALID_WORK_ITEM_SIZE, INTERNAL)                                     \
    X(CL_INVALID_GLOBAL_OFFSET, INTERNAL)                                      \
    X(CL_INVALID_EVENT_WAIT_LIST, INTERNAL)                                    \
    X(CL_INVALID_EVENT, INTERNAL)                                              \
    X(CL_INVALID_OPERATION, INTERNAL)                                          \
    X(CL_INVALID_GL_OBJECT, INTERNAL)                                          \
    X(CL_INVALID_BUFFER_SIZE, DEVICE_MEMORY)                                   \
    X(CL_INVALID_MIP_LEVEL, INTERNAL)                                          \
    X(CL_INVALID_GLOBAL_WORK_SIZE, INTERNAL)                                   \
    X(CL_INVALID_PROPERTY, INTERNAL)                                           \
    X(CL_INVALID_IMAGE_DESCRIPTOR, INTERNAL)                                   \
    X(CL_INVALID_COMPILER_OPTIONS, INTERNAL)                                   \
    X(CL_INVALID_LINKER_OPTIONS, INTERNAL)                                     \
    X(CL_INVALID_DEVICE_PARTITION_COUNT, INTERNAL)                             \
    X(CL_PLATFORM_NOT_FOUND_KHR, NO_DEVICE)                                    \
    X(CL_ILLEGAL_ACCESS_NV, DEVICE_LOST)

#define CL_PLATFORM_NOT_FOUND_KHR (-1001) /* cl_khr_icd: no driver */
/* What NVIDIA's driver says when a kernel touched what is not its own. */
#define CL_ILLEGAL_ACCESS_NV (-9999)

static const struct {
    cl_int code;
    cellgate_status status;
    const char *name;
} codes[] = {
#define CODE_ENTRY(code, status) { code, CELLGATE_##status, #code },
    CODE_LIST(CODE_ENTRY)
#undef CODE_ENTRY
};

const char *ocl_code_name(cl_int code)
{
    size_t i;

    for (i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].code == code)
            return codes[i].name;
    return "an unknown code";
}

cellgate_status ocl_fail(cellgate_error *error, cl_int code,
                         const char *function, const char *doing)
{
    cellgate_status status = CELLGATE_DEVICE_FAILED;
    size_t i;

    for (i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].code == code)
            status = codes[i].status;
    (void)cellgate_fail(error, status, "%s: %s answers %s (%d)", doing,
                        function, ocl_code_name(code), (int)code);
    error->vendor_code = code;
    return status;
}
