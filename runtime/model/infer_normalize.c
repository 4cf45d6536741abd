/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kinds with weights that lie over the trailing axes of x: NORMALIZE, whose
 * extents are the axes it goes over, AFFINE and PRELU, where an extent of 1
 * serves a whole axis. The batch is never among the axes.
 */
#include "config.h"

#include <math.h>

#include "runtime/model/infer.h"

/* Extents against the trailing axes of x; `spread`: 1 fits any. */
static cellgate_status infer_over(const cg_node *node, cg_shape *shapes,
                                  const cg_extents *extents, bool spread,
                                  cellgate_error *error)
{
    const cg_shape *x = cg_infer_input(node, shapes, 0);
    cg_shape y = *x;
    const int32_t first = x->rank - extents->count;
    cellgate_status status = cg_need_rank(
        node, "the input", x, extents->count + 1, CELLGATE_MAX_RANK, error);

    for (int32_t i = 0; status == CELLGATE_OK && i < extents->count; i++) {
        int64_t *extent = &y.extent[first + i];

        if (spread && extents->extent[i] == 1)
            continue;
        if (*extent != CG_UNKNOWN && *extent != extents->extent[i])
            return cg_node_fail(error, CELLGATE_BAD_SHAPE, node,
                                "axis %d of the input is %lld; its weights "
                                "have %lld",
                                (int)(first + i), (long long)*extent,
                                (long long)extents->extent[i]);
        *extent = extents->extent[i];
    }
    if (status == CELLGATE_OK)
        cg_infer_output(node, shapes, 0, &y);
    return status;
}

CG_INFER(normalize)
{
    return infer_over(node, shapes, &node->as.normalize.extents, false, error);
}

CG_INFER(affine)
{
    return infer_over(node, shapes, &node->as.affine.extents, true, error);
}

CG_INFER(prelu)
{
    return infer_over(node, shapes, &node->as.prelu, true, error);
}

/* ---- Attributes ---------------------------------------------------------- */

/* Their product has to be a size too. */
static cellgate_status check_extents(const cg_node *node,
                                     const cg_extents *extents,
                                     cellgate_error *error)
{
    int64_t elements = 1;
    cellgate_status status = CELLGATE_OK;

    if (extents->count < 1 || extents->count > CELLGATE_MAX_RANK - 1)
        return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                            "its weights have %d axes; they must have 1 to %d",
                            (int)extents->count, CELLGATE_MAX_RANK - 1);
    for (int32_t i = 0; status == CELLGATE_OK && i < extents->count; i++) {
        status = cg_check_size(node, "an extent of its weights",
                               extents->extent[i], 1, error);
        if (status == CELLGATE_OK) {
            elements *= extents->extent[i];
            status = cg_check_size(node, "the number of its weights", elements,
                                   1, error);
        }
    }
    return status;
}

cellgate_status cg_check_normalize(const cg_node *node, cellgate_error *error)
{
    const cg_normalize *normalize = &node->as.normalize;

    if (!isfinite(normalize->epsilon) || normalize->epsilon < 0)
        return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                            "epsilon must be 0 or a positive number");
    return check_extents(node, &normalize->extents, error);
}

cellgate_status cg_check_affine(const cg_node *node, cellgate_error *error)
{
    return check_extents(node, &node->as.affine.extents, error);
}

cellgate_status cg_check_prelu(const cg_node *node, cellgate_error *error)
{
    return check_extents(node, &node->as.prelu, error);
}

cellgate_status cg_check_relu(const cg_node *node, cellgate_error *error)
{
    const cg_relu *relu = &node->as.relu;

    if (isfinite(relu->slope) && isfinite(relu->threshold) &&
        isfinite(relu->limit))
        return CELLGATE_OK;
    return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                        "a parameter of the ReLU is not finite");
}

/* ---- Weights ------------------------------------------------------------- */

static bool expect(cg_weight *weight, const char *name,
                   const cg_extents *extents, bool there)
{
    *weight = (cg_weight){ .name = name, .rank = extents->count };
    for (int32_t i = 0; i < extents->count; i++)
        weight->shape[i] = extents->extent[i];
    return there;
}

size_t cg_weight_count_normalize(const cg_node *node)
{
    (void)node;
    return 2;
}

bool cg_weight_normalize(const cg_node *node, size_t index, cg_weight *expected)
{
    const cg_normalize *normalize = &node->as.normalize;

    return index == 0 ? expect(expected, "gamma", &normalize->extents,
                               normalize->has_gamma)
                      : expect(expected, "beta", &normalize->extents,
                               normalize->has_beta);
}

size_t cg_weight_count_affine(const cg_node *node)
{
    (void)node;
    return 3;
}

bool cg_weight_affine(const cg_node *node, size_t index, cg_weight *expected)
{
    const cg_affine *affine = &node->as.affine;

    switch (index) {
    case 0:
        return expect(expected, "shift", &affine->extents, affine->has_shift);
    case 1:
        return expect(expected, "scale", &affine->extents, true);
    default:
        return expect(expected, "offset", &affine->extents, affine->has_offset);
    }
}

size_t cg_weight_count_prelu(const cg_node *node)
{
    (void)node;
    return 1;
}

bool cg_weight_prelu(const cg_node *node, size_t index, cg_weight *expected)
{
    (void)index;
    return expect(expected, "alpha", &node->as.prelu, true);
}

/* ---- Descriptions -------------------------------------------------------- */

static void describe_extents(const cg_extents *extents, char *text, size_t size)
{
    size_t used = strlen(text);

    for (int32_t i = 0; i < extents->count && used < size; i++) {
        (void)snprintf(text + used, size - used, "%s%lld", i > 0 ? " x " : "",
                       (long long)extents->extent[i]);
        used += strlen(text + used);
    }
}

void cg_describe_normalize(const cg_node *node, char *text, size_t size)
{
    static const char *const modes[] = {
        [CG_NORMALIZE_MOMENTS] = "mean and variance",
        [CG_NORMALIZE_VARIANCE] = "variance",
        [CG_NORMALIZE_RMS] = "root mean square",
        [CG_NORMALIZE_UNIT] = "length",
    };
    const cg_normalize *normalize = &node->as.normalize;

    (void)snprintf(text, size, "%s over ", modes[normalize->mode]);
    describe_extents(&normalize->extents, text, size);
}

void cg_describe_affine(const cg_node *node, char *text, size_t size)
{
    text[0] = '\0';
    describe_extents(&node->as.affine.extents, text, size);
}

void cg_describe_prelu(const cg_node *node, char *text, size_t size)
{
    text[0] = '\0';
    describe_extents(&node->as.prelu, text, size);
}

void cg_describe_relu(const cg_node *node, char *text, size_t size)
{
    const cg_relu *relu = &node->as.relu;
    size_t used;

    (void)snprintf(text, size, "slope %g below %g", (double)relu->slope,
                   (double)relu->threshold);
    used = strlen(text);
    if (relu->limited)
        (void)snprintf(text + used, size - used, ", at most %g",
                       (double)relu->limit);
}

/* ---- Operations ---------------------------------------------------------- */

static int64_t each(const cg_shape *output, int64_t operations)
{
    const int64_t features = output->extent[output->rank - 1];

    return features == CG_UNKNOWN ? 0 : operations * features;
}

/* Two passes for the moments, one for the result. */
int64_t cg_operations_normalize(const cg_node *node, const cg_shape *output)
{
    const cg_normalize *normalize = &node->as.normalize;

    return each(output, 6 + normalize->has_gamma + normalize->has_beta);
}

int64_t cg_operations_affine(const cg_node *node, const cg_shape *output)
{
    const cg_affine *affine = &node->as.affine;

    return each(output, 1 + affine->has_shift + affine->has_offset);
}
