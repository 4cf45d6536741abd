/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <dlfcn.h>

#include "plugins/cuda/blaslt.h"

#define LIBRARY "libcublasLt.so.13"

/* ---- The library ------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void
lack(struct cud_blaslt *blaslt, const char *format, ...)
{
    va_list arguments;

    blaslt->version = 0;
    va_start(arguments, format);
    (void)vsnprintf(blaslt->lacks, sizeof blaslt->lacks, format, arguments);
    va_end(arguments);
}

static bool find_function(struct cud_blaslt *blaslt, const char *name, void *to)
{
    void *found = dlsym(blaslt->library, name);

    if (!found) {
        lack(blaslt, "cuBLASLt has no %s; install that of CUDA 13", name);
        return false;
    }
    memcpy(to, &found, sizeof found);
    return true;
}

void cud_blaslt_load(struct cud_blaslt *blaslt, const char *path)
{
    bool found = true;

    memset(blaslt, 0, sizeof *blaslt);
    if (strcmp(path, "none") == 0) {
        lack(blaslt, "a setting excludes cuBLASLt (cublaslt = none)");
        return;
    }
    blaslt->library = dlopen(path[0] ? path : LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!blaslt->library) {
        lack(blaslt, "cuBLASLt was not found (%.120s)", dlerror());
        return;
    }
#define CUD_BLASLT_FIND(name)                                                  \
    found = found && find_function(blaslt, "cublasLt" #name, &blaslt->name);
    CUD_BLASLT_FUNCTION_LIST(CUD_BLASLT_FIND)
#undef CUD_BLASLT_FIND
    if (!found)
        return;
    blaslt->version = blaslt->GetVersion();
    if (blaslt->version / 10000 != CUBLAS_VER_MAJOR)
        lack(blaslt, "cuBLASLt is of version %zu, and %d is needed",
             blaslt->version / 10000, CUBLAS_VER_MAJOR);
}

/* ---- A product --------------------------------------------------------- */

/*
 * cuBLASLt's matrices are column-major: y' = matrix' * x', [columns][rows] =
 * [columns][depth] * [depth][rows], is our memory as it lies.
 */
static cublasStatus_t describe(const struct cud_blaslt *blaslt,
                               struct cud_product_plan *plan)
{
    const struct cud_product *of = &plan->of;
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    const uint64_t columns = (uint64_t)of->columns, depth = (uint64_t)of->depth;
    const uint64_t rows = (uint64_t)of->rows;
    cublasStatus_t code =
        blaslt->MatmulDescCreate(&plan->how, CUBLAS_COMPUTE_32F, CUDA_R_32F);

    if (code == CUBLAS_STATUS_SUCCESS)
        code = blaslt->MatmulDescSetAttribute(plan->how,
                                              CUBLASLT_MATMUL_DESC_EPILOGUE,
                                              &epilogue, sizeof epilogue);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = blaslt->MatmulDescSetAttribute(plan->how,
                                              CUBLASLT_MATMUL_DESC_BIAS_POINTER,
                                              &of->bias, sizeof of->bias);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = blaslt->MatrixLayoutCreate(&plan->matrix, CUDA_R_32F, columns,
                                          depth, of->columns);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = blaslt->MatrixLayoutCreate(&plan->x, CUDA_R_32F, depth, rows,
                                          of->depth);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = blaslt->MatrixLayoutCreate(&plan->y, CUDA_R_32F, columns, rows,
                                          of->columns);
    return code;
}

/* What the address is a multiple of, up to what cuBLASLt takes for granted. */
static uint32_t alignment(const void *address)
{
    const uintptr_t at = (uintptr_t)address | 256u;

    return (uint32_t)(at & (~at + 1));
}

static cublasStatus_t set_preferences(const struct cud_blaslt *blaslt,
                                      cublasLtMatmulPreference_t preference,
                                      const struct cud_product *of,
                                      uint64_t size)
{
    const struct {
        cublasLtMatmulPreferenceAttributes_t which;
        uint32_t value;
    } alignments[] = {
        { CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(of->matrix) },
        { CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(of->x) },
        { CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(of->y) },
        { CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(of->y) },
    };
    cublasStatus_t code = blaslt->MatmulPreferenceSetAttribute(
        preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &size,
        sizeof size);
    size_t i;

    for (i = 0; code == CUBLAS_STATUS_SUCCESS &&
                i < sizeof alignments / sizeof alignments[0];
         i++)
        code = blaslt->MatmulPreferenceSetAttribute(
            preference, alignments[i].which, &alignments[i].value,
            sizeof alignments[i].value);
    return code;
}

static cublasStatus_t choose(const struct cud_blaslt *blaslt,
                             struct cud_product_plan *plan, size_t size)
{
    cublasLtMatmulPreference_t preference = NULL;
    cublasLtMatmulHeuristicResult_t result;
    int found = 0;
    cublasStatus_t code = blaslt->MatmulPreferenceCreate(&preference);

    if (code != CUBLAS_STATUS_SUCCESS)
        return code;
    code = set_preferences(blaslt, preference, &plan->of, size);
    if (code == CUBLAS_STATUS_SUCCESS)
        code = blaslt->MatmulAlgoGetHeuristic(
            blaslt->handle, plan->how, plan->matrix, plan->x, plan->y, plan->y,
            preference, 1, &result, &found);
    if (code == CUBLAS_STATUS_SUCCESS && found == 0)
        code = CUBLAS_STATUS_NOT_SUPPORTED;
    if (code == CUBLAS_STATUS_SUCCESS)
        plan->algorithm = result.algo;
    (void)blaslt->MatmulPreferenceDestroy(preference);
    return code;
}

static bool is_same(const struct cud_product *a, const struct cud_product *b)
{
    return a->rows == b->rows && a->depth == b->depth &&
           a->columns == b->columns && a->x == b->x && a->matrix == b->matrix &&
           a->bias == b->bias && a->y == b->y;
}

cublasStatus_t cud_product_run(const struct cud_blaslt *blaslt,
                               struct cud_product_plan *plan,
                               const struct cud_product *product, void *memory,
                               size_t size, cudaStream_t stream)
{
    const float one = 1, zero = 0;
    cublasStatus_t code = CUBLAS_STATUS_SUCCESS;

    if (!plan->ready || !is_same(&plan->of, product)) {
        cud_product_destroy(blaslt, plan);
        plan->of = *product;
        code = describe(blaslt, plan);
        if (code == CUBLAS_STATUS_SUCCESS)
            code = choose(blaslt, plan, size);
        plan->ready = code == CUBLAS_STATUS_SUCCESS;
    }
    if (code != CUBLAS_STATUS_SUCCESS)
        return code;
    return blaslt->Matmul(blaslt->handle, plan->how, &one, product->matrix,
                          plan->matrix, product->x, plan->x, &zero, product->y,
                          plan->y, product->y, plan->y, &plan->algorithm,
                          memory, size, stream);
}

void cud_product_destroy(const struct cud_blaslt *blaslt,
                         struct cud_product_plan *plan)
{
    if (plan->how)
        (void)blaslt->MatmulDescDestroy(plan->how);
    if (plan->x)
        (void)blaslt->MatrixLayoutDestroy(plan->x);
    if (plan->matrix)
        (void)blaslt->MatrixLayoutDestroy(plan->matrix);
    if (plan->y)
        (void)blaslt->MatrixLayoutDestroy(plan->y);
    memset(plan, 0, sizeof *plan);
}
