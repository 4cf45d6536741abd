/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cudnn_header.c: what the plugin declares of cuDNN against cuDNN's own header,
 * where that is installed. It is compiled, and has nothing to run.
 */
#include <cudnn.h>

#include "plugins/cuda/cudnn_api.h"

#define SAME(ours, theirs)                                                     \
    _Static_assert((int)(ours) == (int)(theirs), "value of " #theirs)

SAME(CUD_CUDNN_SUCCESS, CUDNN_STATUS_SUCCESS);
SAME(CUD_CUDNN_NOT_INITIALIZED, CUDNN_STATUS_NOT_INITIALIZED);
SAME(CUD_CUDNN_BAD_PARAM, CUDNN_STATUS_BAD_PARAM);
SAME(CUD_CUDNN_NOT_SUPPORTED, CUDNN_STATUS_NOT_SUPPORTED);
SAME(CUD_CUDNN_HOST_ALLOCATION_FAILED,
     CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
SAME(CUD_CUDNN_DEVICE_ALLOCATION_FAILED,
     CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED);
SAME(CUD_CUDNN_EXECUTION_FAILED, CUDNN_STATUS_EXECUTION_FAILED);
SAME(CUD_RNN_ALGO_STANDARD, CUDNN_RNN_ALGO_STANDARD);
SAME(CUD_RNN_ALGO_PERSIST_STATIC, CUDNN_RNN_ALGO_PERSIST_STATIC);
SAME(CUD_RNN_ALGO_PERSIST_DYNAMIC, CUDNN_RNN_ALGO_PERSIST_DYNAMIC);
SAME(CUD_RNN_ALGO_PERSIST_STATIC_SMALL_H,
     CUDNN_RNN_ALGO_PERSIST_STATIC_SMALL_H);
SAME(CUD_FWD_MODE_INFERENCE, CUDNN_FWD_MODE_INFERENCE);
SAME(CUD_LSTM, CUDNN_LSTM);
SAME(CUD_RNN_DOUBLE_BIAS, CUDNN_RNN_DOUBLE_BIAS);
SAME(CUD_UNIDIRECTIONAL, CUDNN_UNIDIRECTIONAL);
SAME(CUD_BIDIRECTIONAL, CUDNN_BIDIRECTIONAL);
SAME(CUD_LINEAR_INPUT, CUDNN_LINEAR_INPUT);
SAME(CUD_DATA_FLOAT, CUDNN_DATA_FLOAT);
SAME(CUD_DEFAULT_MATH, CUDNN_DEFAULT_MATH);
SAME(CUD_TENSOR_OP_MATH_ALLOW_CONVERSION,
     CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION);
SAME(CUD_FMA_MATH, CUDNN_FMA_MATH);
SAME(CUD_RNN_DATA_SEQ_MAJOR_UNPACKED, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED);
SAME(CUD_RNN_DATA_BATCH_MAJOR_UNPACKED,
     CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED);
SAME(CUD_RNN_PADDED_IO_ENABLED, CUDNN_RNN_PADDED_IO_ENABLED);
SAME(CUD_CUDNN_MAJOR, CUDNN_MAJOR);
/* An enumeration is passed as an int is. */
SAME(sizeof(cudnnStatus_t), sizeof(int));
SAME(sizeof(cudnnRNNAlgo_t), sizeof(int));
SAME(sizeof(cudnnDataType_t), sizeof(int));

/*
 * Parameters: each call is checked by the compiler with arguments of cuDNN's
 * own types, in the order in which the plugin gives them.
 */
#define TYPE(of) (*(of *)there)
int cudnn_header_calls(void *there);
int cudnn_header_calls(void *there)
{
    int sum = 0;

    sum += cudnnSetRNNDescriptor_v8(
        TYPE(cud_cudnn_rnn), TYPE(cudnnRNNAlgo_t), TYPE(cudnnRNNMode_t),
        TYPE(cudnnRNNBiasMode_t), TYPE(cudnnDirectionMode_t),
        TYPE(cudnnRNNInputMode_t), TYPE(cudnnDataType_t), TYPE(cudnnDataType_t),
        TYPE(cudnnMathType_t), TYPE(int32_t), TYPE(int32_t), TYPE(int32_t),
        TYPE(int32_t), TYPE(cud_cudnn_dropout), TYPE(uint32_t));
    sum += cudnnSetDropoutDescriptor(
        TYPE(cud_cudnn_dropout), TYPE(cud_cudnn_handle), TYPE(float),
        TYPE(void *), TYPE(size_t), TYPE(unsigned long long));
    sum += cudnnBuildRNNDynamic(TYPE(cud_cudnn_handle), TYPE(cud_cudnn_rnn),
                                TYPE(int));
    sum += cudnnGetRNNTempSpaceSizes(
        TYPE(cud_cudnn_handle), TYPE(cud_cudnn_rnn), TYPE(cudnnForwardMode_t),
        TYPE(cud_cudnn_data), TYPE(size_t *), TYPE(size_t *));
    sum += cudnnGetRNNWeightSpaceSize(TYPE(cud_cudnn_handle),
                                      TYPE(cud_cudnn_rnn), TYPE(size_t *));
    sum += cudnnGetRNNWeightParams(
        TYPE(cud_cudnn_handle), TYPE(cud_cudnn_rnn), TYPE(int32_t),
        TYPE(size_t), TYPE(const void *), TYPE(int32_t), TYPE(cud_cudnn_tensor),
        TYPE(void **), TYPE(cud_cudnn_tensor), TYPE(void **));
    sum += cudnnSetRNNDataDescriptor(
        TYPE(cud_cudnn_data), TYPE(cudnnDataType_t), TYPE(cudnnRNNDataLayout_t),
        TYPE(int), TYPE(int), TYPE(int), TYPE(const int *), TYPE(void *));
    sum += cudnnSetTensorNdDescriptor(TYPE(cud_cudnn_tensor),
                                      TYPE(cudnnDataType_t), TYPE(int),
                                      TYPE(const int *), TYPE(const int *));
    sum += cudnnGetTensorNdDescriptor(TYPE(cud_cudnn_tensor), TYPE(int),
                                      TYPE(cudnnDataType_t *), TYPE(int *),
                                      TYPE(int *), TYPE(int *));
    sum += cudnnRNNForward(
        TYPE(cud_cudnn_handle), TYPE(cud_cudnn_rnn), TYPE(cudnnForwardMode_t),
        TYPE(const int32_t *), TYPE(cud_cudnn_data), TYPE(const void *),
        TYPE(cud_cudnn_data), TYPE(void *), TYPE(cud_cudnn_tensor),
        TYPE(const void *), TYPE(void *), TYPE(cud_cudnn_tensor),
        TYPE(const void *), TYPE(void *), TYPE(size_t), TYPE(const void *),
        TYPE(size_t), TYPE(void *), TYPE(size_t), TYPE(void *));
    return sum;
}
