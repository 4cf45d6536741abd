/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "plugins/cuda/status.h"

/* X(code, the status that it comes to); any other is DEVICE_FAILED. */
#define CODE_LIST(X)                                                           \
    X(cudaErrorInvalidValue, INTERNAL)                                         \
    X(cudaErrorMemoryAllocation, DEVICE_MEMORY)                                \
    X(cudaErrorInitializationError, NO_DEVICE)                                 \
    X(cudaErrorInvalidConfiguration, INTERNAL)                                 \
    X(cudaErrorInvalidPitchValue, INTERNAL)                                    \
    X(cudaErrorInvalidMemcpyDirection, INTERNAL)                               \
    X(cudaErrorInsufficientDriver, NO_DEVICE)                                  \
    X(cudaErrorNoDevice, NO_DEVICE)                                            \
    X(cudaErrorInvalidDevice, INTERNAL)                                        \
    X(cudaErrorInvalidResourceHandle, INTERNAL)                                \
    X(cudaErrorNotReady, INTERNAL)                                             \
    X(cudaErrorSystemNotReady, NO_DEVICE)                                      \
    X(cudaErrorStubLibrary, NO_DEVICE)                                         \
    X(cudaErrorDevicesUnavailable, DEVICE_FAILED)                              \
    X(cudaErrorECCUncorrectable, DEVICE_LOST)                                  \
    X(cudaErrorNvlinkUncorrectable, DEVICE_LOST)                               \
    X(cudaErrorHardwareStackError, DEVICE_LOST)                                \
    X(cudaErrorIllegalInstruction, DEVICE_LOST)                                \
    X(cudaErrorMisalignedAddress, DEVICE_LOST)                                 \
    X(cudaErrorInvalidAddressSpace, DEVICE_LOST)                               \
    X(cudaErrorInvalidPc, DEVICE_LOST)                                         \
    X(cudaErrorIllegalAddress, DEVICE_LOST)                                    \
    X(cudaErrorLaunchFailure, DEVICE_LOST)                                     \
    X(cudaErrorLaunchTimeout, DEVICE_LOST)                                     \
    X(cudaErrorAssert, DEVICE_LOST)                                            \
    X(cudaErrorContextIsDestroyed, DEVICE_LOST)                                \
    X(cudaErrorContained, DEVICE_LOST)                                         \
    X(cudaErrorTensorMemoryLeak, DEVICE_LOST)                                  \
    X(cudaErrorMpsClientTerminated, DEVICE_LOST)                               \
    X(cudaErrorExternalDevice, DEVICE_LOST)                                    \
    X(cudaErrorUnknown, DEVICE_LOST)

static const struct {
    cudaError_t code;
    cellgate_status status;
} codes[] = {
#define CODE_ENTRY(code, status) { code, CELLGATE_##status },
    CODE_LIST(CODE_ENTRY)
#undef CODE_ENTRY
};

cellgate_status cud_status_of(cudaError_t code)
{
    size_t i;

    for (i = 0; i < sizeof codes / sizeof codes[0]; i++)
        if (codes[i].code == code)
            return codes[i].status;
    return CELLGATE_DEVICE_FAILED;
}

cellgate_status cud_fail(cellgate_error *error, cudaError_t code,
                         const char *function, const char *doing)
{
    const cellgate_status status = cud_status_of(code);

    (void)cellgate_fail(error, status, "%s: %s answers %s (%d)", doing,
                        function, cudaGetErrorName(code), (int)code);
    error->vendor_code = code;
    (void)cudaGetLastError();
    return status;
}

cudaError_t cud_behind(void)
{
    const cudaError_t code = cudaStreamQuery(NULL);

    (void)cudaGetLastError();
    return code == cudaErrorNotReady ? cudaSuccess : code;
}
