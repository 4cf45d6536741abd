/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudnn_api.h: what the plugin uses of cuDNN 9, opened at run time. cuDNN's
 * interface is declared here, so that its headers are not needed to build;
 * tests/cuda/cudnn_header.c compares the two.
 */
#ifndef CELLGATE_CUDA_CUDNN_API_H
#define CELLGATE_CUDA_CUDNN_API_H

#include <stdbool.h>

#include <cuda_runtime_api.h>

#include "cellgate/plugin.h"

#define CUD_CUDNN_MAJOR 9

enum cud_cudnn_status {
    CUD_CUDNN_SUCCESS = 0,
    CUD_CUDNN_NOT_INITIALIZED = 1001,
    CUD_CUDNN_BAD_PARAM = 2000,     /* to 2999 */
    CUD_CUDNN_NOT_SUPPORTED = 3000, /* to 3999 */
    CUD_CUDNN_HOST_ALLOCATION_FAILED = 4003,
    CUD_CUDNN_DEVICE_ALLOCATION_FAILED = 4004,
    CUD_CUDNN_EXECUTION_FAILED = 5000 /* to 5999 */
};

/* Values of its enumerations; names as there, but for the prefix. */
enum {
    CUD_RNN_ALGO_STANDARD = 0,
    CUD_RNN_ALGO_PERSIST_STATIC = 1,
    CUD_RNN_ALGO_PERSIST_DYNAMIC = 2,
    CUD_RNN_ALGO_PERSIST_STATIC_SMALL_H = 3
};
enum { CUD_FWD_MODE_INFERENCE = 0 };
enum { CUD_LSTM = 2 };
enum { CUD_RNN_DOUBLE_BIAS = 2 };
enum { CUD_UNIDIRECTIONAL = 0, CUD_BIDIRECTIONAL = 1 };
enum { CUD_LINEAR_INPUT = 0 };
enum { CUD_DATA_FLOAT = 0 };
enum {
    CUD_DEFAULT_MATH = 0,
    CUD_TENSOR_OP_MATH_ALLOW_CONVERSION = 2,
    CUD_FMA_MATH = 3
};
enum {
    CUD_RNN_DATA_SEQ_MAJOR_UNPACKED = 0,
    CUD_RNN_DATA_BATCH_MAJOR_UNPACKED = 2
};
#define CUD_RNN_PADDED_IO_ENABLED 1u

typedef struct cudnnContext *cud_cudnn_handle;
typedef struct cudnnTensorStruct *cud_cudnn_tensor;
typedef struct cudnnRNNStruct *cud_cudnn_rnn;
typedef struct cudnnRNNDataStruct *cud_cudnn_data;
typedef struct cudnnDropoutStruct *cud_cudnn_dropout;

/* X(name, result, parameters) */
#define CUD_CUDNN_FUNCTION_LIST(X)                                             \
    X(GetVersion, size_t, (void))                                              \
    X(GetErrorString, const char *, (int))                                     \
    X(GetLastErrorString, void, (char *, size_t))                              \
    X(Create, int, (cud_cudnn_handle *))                                       \
    X(Destroy, int, (cud_cudnn_handle))                                        \
    X(SetStream, int, (cud_cudnn_handle, cudaStream_t))                        \
    X(CreateTensorDescriptor, int, (cud_cudnn_tensor *))                       \
    X(SetTensorNdDescriptor, int,                                              \
      (cud_cudnn_tensor, int, int, const int *, const int *))                  \
    X(GetTensorNdDescriptor, int,                                              \
      (cud_cudnn_tensor, int, int *, int *, int *, int *))                     \
    X(DestroyTensorDescriptor, int, (cud_cudnn_tensor))                        \
    X(CreateDropoutDescriptor, int, (cud_cudnn_dropout *))                     \
    X(SetDropoutDescriptor, int,                                               \
      (cud_cudnn_dropout, cud_cudnn_handle, float, void *, size_t,             \
       unsigned long long))                                                    \
    X(DestroyDropoutDescriptor, int, (cud_cudnn_dropout))                      \
    X(CreateRNNDescriptor, int, (cud_cudnn_rnn *))                             \
    X(DestroyRNNDescriptor, int, (cud_cudnn_rnn))                              \
    X(SetRNNDescriptor_v8, int,                                                \
      (cud_cudnn_rnn, int, int, int, int, int, int, int, int, int32_t,         \
       int32_t, int32_t, int32_t, cud_cudnn_dropout, uint32_t))                \
    X(BuildRNNDynamic, int, (cud_cudnn_handle, cud_cudnn_rnn, int))            \
    X(GetRNNTempSpaceSizes, int,                                               \
      (cud_cudnn_handle, cud_cudnn_rnn, int, cud_cudnn_data, size_t *,         \
       size_t *))                                                              \
    X(GetRNNWeightSpaceSize, int, (cud_cudnn_handle, cud_cudnn_rnn, size_t *)) \
    X(GetRNNWeightParams, int,                                                 \
      (cud_cudnn_handle, cud_cudnn_rnn, int32_t, size_t, const void *,         \
       int32_t, cud_cudnn_tensor, void **, cud_cudnn_tensor, void **))         \
    X(CreateRNNDataDescriptor, int, (cud_cudnn_data *))                        \
    X(DestroyRNNDataDescriptor, int, (cud_cudnn_data))                         \
    X(SetRNNDataDescriptor, int,                                               \
      (cud_cudnn_data, int, int, int, int, int, const int *, void *))          \
    X(RNNForward, int,                                                         \
      (cud_cudnn_handle, cud_cudnn_rnn, int, const int32_t *, cud_cudnn_data,  \
       const void *, cud_cudnn_data, void *, cud_cudnn_tensor, const void *,   \
       void *, cud_cudnn_tensor, const void *, void *, size_t, const void *,   \
       size_t, void *, size_t, void *))

struct cud_cudnn {
    void *library; /* never closed: it leaves threads behind */
    int version; /* 91900 for 9.19.0; 0: there is none, and `lacks` says why */
    char lacks[320];
#define CUD_CUDNN_MEMBER(name, result, parameters) result(*name) parameters;
    CUD_CUDNN_FUNCTION_LIST(CUD_CUDNN_MEMBER)
#undef CUD_CUDNN_MEMBER
};

/*
 * Opens the library at `path`, or where that is empty the one that the system
 * finds; "none" opens nothing. Without one that can be used, version is 0.
 */
void cud_cudnn_load(struct cud_cudnn *cudnn, const char *path);

#endif /* CELLGATE_CUDA_CUDNN_API_H */
