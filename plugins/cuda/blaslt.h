/* SPDX-License-Identifier: Apache-2.0 */
/* blaslt.h: input products by cuBLASLt, which is opened at run time. */
#ifndef CELLGATE_CUDA_BLASLT_H
#define CELLGATE_CUDA_BLASLT_H

#include <stdbool.h>

#include <cublasLt.h>

#include "cellgate/plugin.h"

#define CUD_BLASLT_FUNCTION_LIST(X)                                            \
    X(GetVersion)                                                              \
    X(Create)                                                                  \
    X(Destroy)                                                                 \
    X(Matmul)                                                                  \
    X(MatmulAlgoGetHeuristic)                                                  \
    X(MatmulDescCreate)                                                        \
    X(MatmulDescDestroy)                                                       \
    X(MatmulDescSetAttribute)                                                  \
    X(MatmulPreferenceCreate)                                                  \
    X(MatmulPreferenceDestroy)                                                 \
    X(MatmulPreferenceSetAttribute)                                            \
    X(MatrixLayoutCreate)                                                      \
    X(MatrixLayoutDestroy)

struct cud_blaslt {
    void *library; /* never closed */
    size_t
        version; /* 130000 for 13.0.0; 0: there is none, and `lacks` says why */
    char lacks[320];
    cublasLtHandle_t handle; /* any number of threads use it */
#define CUD_BLASLT_MEMBER(name) __typeof__(&cublasLt##name) name;
    CUD_BLASLT_FUNCTION_LIST(CUD_BLASLT_MEMBER)
#undef CUD_BLASLT_MEMBER
};

/*
 * Opens the library at `path`, or where that is empty the one that the system
 * finds; "none" opens nothing. Without one that can be used, version is 0.
 */
void cud_blaslt_load(struct cud_blaslt *blaslt, const char *path);

/* A product y = x * matrix + bias: [rows][depth], [depth][columns], [columns],
   float32, dense. */
struct cud_product {
    int64_t rows, depth, columns;
    const float *x, *matrix, *bias;
    float *y;
};

/* How it is computed, for as long as the product is the same. */
struct cud_product_plan {
    struct cud_product of;
    bool ready;
    cublasLtMatmulDesc_t how;
    cublasLtMatrixLayout_t x, matrix, y;
    cublasLtMatmulAlgo_t algorithm;
};

/* CUBLAS_STATUS_SUCCESS, or what cuBLASLt answers. `memory` is on the device.
 */
cublasStatus_t cud_product_run(const struct cud_blaslt *blaslt,
                               struct cud_product_plan *plan,
                               const struct cud_product *product, void *memory,
                               size_t size, cudaStream_t stream);
void cud_product_destroy(const struct cud_blaslt *blaslt,
                         struct cud_product_plan *plan);

#endif /* CELLGATE_CUDA_BLASLT_H */
