/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cellgate/types.h: the words that applications and plugins share.
 *
 * Nothing here allocates, locks or does I/O. The values of every enum are
 * part of the plugin ABI: they are appended to, never renumbered.
 */
#ifndef CELLGATE_TYPES_H
#define CELLGATE_TYPES_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Status. Every function that can fail returns one of these. The list is the
 * only place where a status is defined: X(NAME, value, text for people).
 */
#define CELLGATE_STATUS_LIST(X)                                                \
    X(OK, 0, "success")                                                        \
    X(END, 1, "no more entries")                                               \
    X(INVALID, 2, "invalid argument")                                          \
    X(NO_MEMORY, 3, "out of memory")                                           \
    X(UNSUPPORTED, 4, "not supported")                                         \
    X(NOT_FOUND, 5, "not found")                                               \
    X(BAD_CONFIG, 6, "error in the configuration")                             \
    X(BAD_FILE, 7, "malformed file")                                           \
    X(IO, 8, "input or output error")                                          \
    X(BAD_SHAPE, 9, "shapes do not fit")                                       \
    X(OUT_OF_RANGE, 10, "value out of range")                                  \
    X(BAD_PLUGIN, 11, "unusable plugin")                                       \
    X(NO_DEVICE, 12, "no usable device")                                       \
    X(BUSY, 13, "resource is busy")                                            \
    X(DEVICE_FAILED, 14, "the device reported an error")                       \
    X(DEVICE_LOST, 15, "the device is lost")                                   \
    X(DEVICE_MEMORY, 16, "out of device memory")                               \
    X(TIMEOUT, 17, "time limit exceeded")                                      \
    X(FORKED, 18, "not usable in a child process after fork()")                \
    X(INTERNAL, 19, "internal error")                                          \
    X(CANCELLED, 20, "cancelled")                                              \
    X(PENDING, 21, "not finished yet")                                         \
    X(EXPIRED, 22, "deadline passed")

typedef enum cellgate_status {
#define CELLGATE_STATUS_ENUM(name, value, text) CELLGATE_##name = (value),
    CELLGATE_STATUS_LIST(CELLGATE_STATUS_ENUM)
#undef CELLGATE_STATUS_ENUM
} cellgate_status;

/*
 * Reason: what a CELLGATE_UNSUPPORTED answer objects to, for programs; the
 * error's text says it for people.
 */
#define CELLGATE_REASON_LIST(X)                                                \
    X(NONE, 0, "none")                                                         \
    X(KIND, 1, "op of an unknown kind")                                        \
    X(FIELD, 2, "a field newer than the plugin")                               \
    X(CHAIN, 3, "this chain of ops")                                           \
    X(DIRECTIONS, 4, "directions")                                             \
    X(ACTIVATION, 5, "activation")                                             \
    X(CLIP, 6, "clip")                                                         \
    X(PEEPHOLES, 7, "peepholes")                                               \
    X(COUPLED, 8, "coupled input and forget gates")                            \
    X(PROJECTION, 9, "projection")                                             \
    X(DTYPE, 10, "data type")                                                  \
    X(SHAPE, 11, "shape")                                                      \
    X(LENGTHS, 12, "lengths")                                                  \
    X(MEMORY, 13, "memory")                                                    \
    X(DEVICE, 14, "the device lacks a feature")                                \
    X(SETTING, 15, "excluded by a setting")                                    \
    X(OTHER, 16, "other")

typedef enum cellgate_reason {
#define CELLGATE_REASON_ENUM(name, value, text) CELLGATE_REASON_##name = (value),
    CELLGATE_REASON_LIST(CELLGATE_REASON_ENUM)
#undef CELLGATE_REASON_ENUM
} cellgate_reason;

/*
 * Error. The caller owns it and sets struct_size (CELLGATE_ERROR_INIT does);
 * the function that fails fills the rest. Passing NULL where a function takes
 * an error is allowed everywhere and loses only the text. It is untouched on
 * success.
 */
typedef struct cellgate_error {
    size_t struct_size;
    int32_t status;      /* a cellgate_status */
    int32_t reason;      /* a cellgate_reason; with CELLGATE_UNSUPPORTED */
    int64_t vendor_code; /* the vendor library's own code, or 0 */
    char text[488];      /* one sentence, UTF-8, no newline, NUL-terminated */
} cellgate_error;

#define CELLGATE_ERROR_INIT { sizeof(cellgate_error), 0, 0, 0, { 0 } }

/* Element types. X(NAME, value, name for people, bytes an element) */
#define CELLGATE_DTYPE_LIST(X)                                                 \
    X(F32, 0, "float32", 4)                                                    \
    X(F16, 1, "float16", 2)                                                    \
    X(BF16, 2, "bfloat16", 2)                                                  \
    X(I32, 3, "int32", 4)                                                      \
    X(F64, 4, "float64", 8)                                                    \
    X(I64, 5, "int64", 8)                                                      \
    X(U8, 6, "uint8", 1)                                                       \
    X(BOOL, 7, "bool", 1)

typedef enum cellgate_dtype {
#define CELLGATE_DTYPE_ENUM(name, value, text, size) CELLGATE_##name = (value),
    CELLGATE_DTYPE_LIST(CELLGATE_DTYPE_ENUM)
#undef CELLGATE_DTYPE_ENUM
} cellgate_dtype;

/*
 * Numeric class of a computation: the precision in which products are formed,
 * or in which the weights are kept. State and accumulation are float32 in all
 * of them. A later one is less exact than those before it.
 */
#define CELLGATE_NUMERIC_LIST(X)                                               \
    X(NUMERIC_F32, 0, "f32")                                                   \
    X(NUMERIC_TF32, 1, "tf32")                                                 \
    X(NUMERIC_F16, 2, "f16")                                                   \
    X(NUMERIC_BF16, 3, "bf16")                                                 \
    X(NUMERIC_INT8, 4, "int8")

typedef enum cellgate_numeric {
#define CELLGATE_NUMERIC_ENUM(name, value, text) CELLGATE_##name = (value),
    CELLGATE_NUMERIC_LIST(CELLGATE_NUMERIC_ENUM)
#undef CELLGATE_NUMERIC_ENUM
} cellgate_numeric;

/*
 * Activations: X(NAME, value, name for people, parameters used).
 *
 * With a = alpha, b = beta:
 *   tanh, sigmoid = 1/(1+e^-x), linear = x, relu = max(x,0)
 *   leaky_relu    = x < 0 ? a x : x
 *   relu6         = min(max(x,0),6)
 *   elu           = x > 0 ? x : a (e^x - 1)
 *   selu          = s (x > 0 ? x : t (e^x - 1)),
 *                   s = 1.0507009873554805, t = 1.6732632423543772
 *   celu          = max(x,0) + min(0, a (e^(x/a) - 1))
 *   softplus      = log(1 + e^x), softsign = x/(1+|x|)
 *   squareplus    = (x + sqrt(x^2 + a)) / 2
 *   soft_shrink   = x > a ? x-a : x < -a ? x+a : 0
 *   hard_shrink   = |x| > a ? x : 0
 *   sparse_plus   = x <= -1 ? 0 : x >= 1 ? x : (x+1)^2/4
 *   silu          = x sigmoid(x)
 *   gelu_erf      = x (1 + erf(x/sqrt 2))/2
 *   gelu_tanh     = x (1 + tanh(sqrt(2/pi)(x + 0.044715 x^3)))/2
 *   tanh_shrink   = x - tanh(x)
 *   threshold     = x > a ? x : b       (ONNX ThresholdedRelu: b = 0)
 *   sparse_sigmoid= min(max((x+1)/2, 0), 1)
 *   exponential   = e^x
 *   hard_sigmoid  = min(max(a x + b, 0), 1)
 *                   (Keras 2: a = 0.2, b = 0.5; Keras 3: a = 1/6, b = 0.5)
 *   hard_silu     = x min(max(x/6 + 0.5, 0), 1)
 *   hard_tanh     = min(max(x,-1),1)
 *   mish          = x tanh(softplus(x)), log_sigmoid = -softplus(-x)
 *   affine        = a x + b, scaled_tanh = a tanh(b x)
 * A NaN comes out as NaN from every one of them.
 */
#define CELLGATE_ACTIVATION_LIST(X)                                            \
    X(TANH, 0, "tanh", 0)                                                      \
    X(SIGMOID, 1, "sigmoid", 0)                                                \
    X(LINEAR, 2, "linear", 0)                                                  \
    X(RELU, 3, "relu", 0)                                                      \
    X(LEAKY_RELU, 4, "leaky_relu", 1)                                          \
    X(RELU6, 5, "relu6", 0)                                                    \
    X(ELU, 6, "elu", 1)                                                        \
    X(SELU, 7, "selu", 0)                                                      \
    X(CELU, 8, "celu", 1)                                                      \
    X(SOFTPLUS, 9, "softplus", 0)                                              \
    X(SOFTSIGN, 10, "softsign", 0)                                             \
    X(SQUAREPLUS, 11, "squareplus", 1)                                         \
    X(SOFT_SHRINK, 12, "soft_shrink", 1)                                       \
    X(HARD_SHRINK, 13, "hard_shrink", 1)                                       \
    X(SPARSE_PLUS, 14, "sparse_plus", 0)                                       \
    X(SILU, 15, "silu", 0)                                                     \
    X(GELU_ERF, 16, "gelu_erf", 0)                                             \
    X(GELU_TANH, 17, "gelu_tanh", 0)                                           \
    X(TANH_SHRINK, 18, "tanh_shrink", 0)                                       \
    X(THRESHOLD, 19, "threshold", 2)                                           \
    X(SPARSE_SIGMOID, 20, "sparse_sigmoid", 0)                                 \
    X(EXPONENTIAL, 21, "exponential", 0)                                       \
    X(HARD_SIGMOID, 22, "hard_sigmoid", 2)                                     \
    X(HARD_SILU, 23, "hard_silu", 0)                                           \
    X(HARD_TANH, 24, "hard_tanh", 0)                                           \
    X(MISH, 25, "mish", 0)                                                     \
    X(LOG_SIGMOID, 26, "log_sigmoid", 0)                                       \
    X(AFFINE, 27, "affine", 2)                                                 \
    X(SCALED_TANH, 28, "scaled_tanh", 2)

typedef enum cellgate_activation_kind {
#define CELLGATE_ACTIVATION_ENUM(name, value, text, parameters)                \
    CELLGATE_##name = (value),
    CELLGATE_ACTIVATION_LIST(CELLGATE_ACTIVATION_ENUM)
#undef CELLGATE_ACTIVATION_ENUM
} cellgate_activation_kind;

#define CELLGATE_ACTIVATION_COUNT 29

/* An elementwise activation with its parameters. Never grows. */
typedef struct cellgate_activation {
    int32_t kind; /* a cellgate_activation_kind */
    float alpha;  /* 0 where the list above says it has no parameter */
    float beta;
} cellgate_activation;

/* Severity of a log line. */
typedef enum cellgate_log_level {
    CELLGATE_LOG_ERROR = 0,
    CELLGATE_LOG_WARNING = 1,
    CELLGATE_LOG_INFO = 2,
    CELLGATE_LOG_DEBUG = 3
} cellgate_log_level;

/* Kind of device. */
typedef enum cellgate_device_kind {
    CELLGATE_DEVICE_CPU = 0,
    CELLGATE_DEVICE_GPU = 1,
    CELLGATE_DEVICE_ACCELERATOR = 2
} cellgate_device_kind;

/*
 * Tensor: a dense, row-major array in host memory (last axis contiguous).
 * Whoever declares it owns `data`; functions say whether they read or write.
 * It never grows: other structs have one among their members.
 */
#define CELLGATE_MAX_RANK 8

typedef struct cellgate_tensor {
    size_t struct_size;
    int32_t dtype; /* a cellgate_dtype */
    int32_t rank;  /* 0 to CELLGATE_MAX_RANK */
    int64_t shape[CELLGATE_MAX_RANK];
    void *data;
} cellgate_tensor;

#ifdef __cplusplus
}
#endif

#endif /* CELLGATE_TYPES_H */
