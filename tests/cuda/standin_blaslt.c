/* SPDX-License-Identifier: Apache-2.0 */
/* standin_blaslt.c: the part of cuBLASLt that the plugin uses: products of
   float32 matrices with a bias, column-major. */
#include <stdlib.h>
#include <string.h>

#include <cublasLt.h>

#include "tests/cuda/standin.h"

enum kind { HANDLE = 0x17, HOW, LAYOUT, PREFERENCE };

struct thing {
    struct thing *next;
    enum kind kind;
    int device; /* of a handle */
    /* Of a layout. */
    uint64_t rows, columns;
    int64_t pitch;
    /* Of how. */
    bool has_bias;
    const float *bias;
    /* Of a preference. */
    uint64_t memory;
    uint32_t alignments[4];
};

static struct thing *things; /* that live */

static struct thing *make(enum kind kind, const char *name)
{
    struct thing *thing = calloc(1, sizeof *thing);

    if (!thing)
        standin_fault("no memory");
    thing->kind = kind;
    thing->device = standin_device();
    standin_lock();
    thing->next = things;
    things = thing;
    standin_count(name, 1);
    standin_unlock();
    return thing;
}

/* Under the lock. */
static struct thing *find(const void *handle, enum kind kind)
{
    struct thing *at;

    for (at = things; at && at != handle; at = at->next)
        ;
    if (!at || at->kind != kind)
        standin_fault("cuBLASLt: %p is not what is wanted, or was destroyed",
                      handle);
    return at;
}

static struct thing *check(const void *handle, enum kind kind)
{
    struct thing *thing;

    standin_lock();
    thing = find(handle, kind);
    standin_unlock();
    return thing;
}

static cublasStatus_t unmake(const void *handle, enum kind kind,
                             const char *name)
{
    struct thing **at = &things, *thing;

    standin_lock();
    thing = find(handle, kind);
    while (*at != thing)
        at = &(*at)->next;
    *at = thing->next;
    standin_count(name, -1);
    standin_unlock();
    free(thing);
    return CUBLAS_STATUS_SUCCESS;
}

/* A call that works on a device, which is broken. */
static bool fails(int device)
{
    bool broken;

    standin_lock();
    broken = standin_library_call(device);
    standin_unlock();
    return broken;
}

size_t cublasLtGetVersion(void)
{
    return (size_t)standin_settings.blaslt;
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t *to)
{
    if (fails(standin_device()))
        return CUBLAS_STATUS_NOT_INITIALIZED;
    *to = (cublasLtHandle_t)(void *)make(HANDLE, "cuBLASLt handles");
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    return unmake(handle, HANDLE, "cuBLASLt handles");
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *to,
                                        cublasComputeType_t compute,
                                        cudaDataType_t scale)
{
    if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F)
        standin_fault("cuBLASLt: compute type %d", (int)compute);
    *to = (cublasLtMatmulDesc_t)(void *)make(HOW, "cuBLASLt descriptors");
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t how)
{
    return unmake(how, HOW, "cuBLASLt descriptors");
}

cublasStatus_t
cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t of,
                               cublasLtMatmulDescAttributes_t which,
                               const void *value, size_t size)
{
    struct thing *how = check(of, HOW);
    cublasLtEpilogue_t epilogue;

    if (which == CUBLASLT_MATMUL_DESC_EPILOGUE && size == sizeof epilogue) {
        memcpy(&epilogue, value, sizeof epilogue);
        how->has_bias = epilogue == CUBLASLT_EPILOGUE_BIAS;
    } else if (which == CUBLASLT_MATMUL_DESC_BIAS_POINTER &&
               size == sizeof how->bias) {
        memcpy(&how->bias, value, sizeof how->bias);
    } else {
        standin_fault("cuBLASLt: attribute %d of %zu bytes", (int)which, size);
    }
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *to,
                                          cudaDataType type, uint64_t rows,
                                          uint64_t columns, int64_t pitch)
{
    struct thing *layout;

    if (type != CUDA_R_32F || rows == 0 || columns == 0 ||
        pitch < (int64_t)rows)
        standin_fault("cuBLASLt: a layout of %llu rows, pitch %lld",
                      (unsigned long long)rows, (long long)pitch);
    layout = make(LAYOUT, "cuBLASLt layouts");
    layout->rows = rows;
    layout->columns = columns;
    layout->pitch = pitch;
    *to = (cublasLtMatrixLayout_t)(void *)layout;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout)
{
    return unmake(layout, LAYOUT, "cuBLASLt layouts");
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *to)
{
    struct thing *made = make(PREFERENCE, "cuBLASLt preferences");
    int i;

    for (i = 0; i < 4; i++)
        made->alignments[i] = 256;
    *to = (cublasLtMatmulPreference_t)(void *)made;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t of)
{
    return unmake(of, PREFERENCE, "cuBLASLt preferences");
}

cublasStatus_t
cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t of,
                                     cublasLtMatmulPreferenceAttributes_t which,
                                     const void *value, size_t size)
{
    struct thing *preference = check(of, PREFERENCE);
    const int at = (int)which - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES;

    if (which == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES &&
        size == sizeof preference->memory)
        memcpy(&preference->memory, value, size);
    else if (at >= 0 && at < 4 && size == sizeof(uint32_t))
        memcpy(&preference->alignments[at], value, size);
    else
        standin_fault("cuBLASLt: preference %d of %zu bytes", (int)which, size);
    return CUBLAS_STATUS_SUCCESS;
}

/* ---- Products ---------------------------------------------------------- */

/* An algorithm knows what it was chosen for. */
struct chosen {
    uint64_t m, n, k, memory;
    uint32_t alignments[4];
};

static struct chosen read_shapes(cublasLtMatrixLayout_t a,
                                 cublasLtMatrixLayout_t b,
                                 cublasLtMatrixLayout_t d)
{
    const struct thing *left = check(a, LAYOUT), *right = check(b, LAYOUT);
    const struct thing *to = check(d, LAYOUT);

    if (left->columns != right->rows || left->rows != to->rows ||
        right->columns != to->columns)
        standin_fault("cuBLASLt: matrices that do not fit");
    return (
        struct chosen){ .m = to->rows, .n = to->columns, .k = left->columns };
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t handle, cublasLtMatmulDesc_t how, cublasLtMatrixLayout_t a,
    cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c,
    cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t preference, int wanted,
    cublasLtMatmulHeuristicResult_t *results, int *found)
{
    struct chosen chosen = read_shapes(a, b, d);
    const struct thing *limits = check(preference, PREFERENCE);

    if (fails(check(handle, HANDLE)->device))
        return CUBLAS_STATUS_EXECUTION_FAILED;
    (void)check(how, HOW);
    (void)check(c, LAYOUT);
    if (wanted < 1)
        standin_fault("cuBLASLt: %d algorithms are wanted", wanted);
    chosen.memory = limits->memory;
    memcpy(chosen.alignments, limits->alignments, sizeof chosen.alignments);
    memset(results, 0, sizeof *results);
    memcpy(&results->algo, &chosen, sizeof chosen);
    results->state = CUBLAS_STATUS_SUCCESS;
    *found = standin_settings.blaslt_none ? 0 : 1;
    return CUBLAS_STATUS_SUCCESS;
}

struct work {
    struct chosen of;
    int64_t pitches[3];
    const float *a, *b, *bias;
    float *d;
};

static void multiply(void *arguments)
{
    const struct work *w = arguments;
    uint64_t i, j, k;

    for (j = 0; j < w->of.n; j++)
        for (i = 0; i < w->of.m; i++) {
            double sum = w->bias ? (double)w->bias[i] : 0;

            for (k = 0; k < w->of.k; k++)
                sum += (double)w->a[k * (uint64_t)w->pitches[0] + i] *
                       (double)w->b[j * (uint64_t)w->pitches[1] + k];
            w->d[j * (uint64_t)w->pitches[2] + i] = (float)sum;
        }
}

static void check_matrix(const void *at, const struct thing *layout, int device,
                         uint32_t alignment, const char *what)
{
    const size_t floats =
        (size_t)layout->pitch * (size_t)(layout->columns - 1) +
        (size_t)layout->rows;

    standin_check_device(at, floats * sizeof(float), device, what);
    if ((uintptr_t)at % alignment != 0)
        standin_fault("cuBLASLt: %s is not at a multiple of %u", what,
                      (unsigned)alignment);
}

cublasStatus_t
cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t how_of,
               const void *alpha, const void *a, cublasLtMatrixLayout_t a_of,
               const void *b, cublasLtMatrixLayout_t b_of, const void *beta,
               const void *c, cublasLtMatrixLayout_t c_of, void *d,
               cublasLtMatrixLayout_t d_of, const cublasLtMatmulAlgo_t *algo,
               void *memory, size_t size, cudaStream_t stream)
{
    const struct thing *how = check(how_of, HOW);
    const int device = check(handle, HANDLE)->device;
    struct chosen shapes = read_shapes(a_of, b_of, d_of), chosen;
    struct work work = { .a = a, .b = b, .d = d };
    cudaError_t code;

    memcpy(&chosen, algo, sizeof chosen);
    if (chosen.m != shapes.m || chosen.n != shapes.n || chosen.k != shapes.k ||
        size < chosen.memory || c != d || c_of != d_of)
        standin_fault("cuBLASLt: the algorithm was chosen for another product");
    if (*(const float *)alpha != 1 || *(const float *)beta != 0)
        standin_fault("cuBLASLt: factors other than 1 and 0");
    standin_lock();
    if (standin_stream_device(stream) != device || device != standin_device())
        standin_fault("cuBLASLt: a stream of another device");
    check_matrix(a, find(a_of, LAYOUT), device, chosen.alignments[0], "A");
    check_matrix(b, find(b_of, LAYOUT), device, chosen.alignments[1], "B");
    check_matrix(d, find(d_of, LAYOUT), device, chosen.alignments[3], "D");
    standin_check_device(memory, size, device, "cuBLASLt's memory");
    if (how->has_bias) {
        standin_check_device(how->bias, shapes.m * sizeof(float), device,
                             "the bias");
        work.bias = how->bias;
    }
    work.of = shapes;
    work.pitches[0] = find(a_of, LAYOUT)->pitch;
    work.pitches[1] = find(b_of, LAYOUT)->pitch;
    work.pitches[2] = find(d_of, LAYOUT)->pitch;
    code =
        standin_library_call(device)
            ? cudaErrorUnknown
            : standin_enqueue(stream, multiply, &work, sizeof work, true, NULL);
    standin_unlock();
    return code == cudaSuccess ? CUBLAS_STATUS_SUCCESS
                               : CUBLAS_STATUS_EXECUTION_FAILED;
}
