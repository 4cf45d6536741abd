/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds that look at several steps at once: WINDOW, POOL and REDUCE. They act
   on the last two axes, steps and features; the others only count rows. */
#include "config.h"

#include "runtime/model/infer.h"

/* Steps from the first of a window to its last. */
static int64_t span(const cg_window *window)
{
    return (window->size - 1) * window->dilation + 1;
}

int64_t cg_window_count(const cg_window *window, int64_t steps, int64_t *before)
{
    const int64_t length = span(window);
    int64_t count, padding = 0;

    *before = 0;
    if (steps < 1)
        return window->padding == CG_PADDING_VALID ? -1 : 0;
    switch (window->padding) {
    case CG_PADDING_SAME:
        count = (steps - 1) / window->stride + 1;
        padding = (count - 1) * window->stride + length - steps;
        *before = padding > 0 ? padding / 2 : 0;
        return count;
    case CG_PADDING_CAUSAL:
        *before = length - 1;
        return (steps - 1) / window->stride + 1;
    default: /* CG_PADDING_VALID */
        return steps < length ? -1 : (steps - length) / window->stride + 1;
    }
}

/* The steps of *y become the windows over them. */
static cellgate_status frame(const cg_node *node, const cg_window *window,
                             cg_shape *y, cellgate_error *error)
{
    int64_t *steps = &y->extent[y->rank - 2], before, count;

    if (*steps == CG_UNKNOWN)
        return CELLGATE_OK;
    count = cg_window_count(window, *steps, &before);
    if (count < 0)
        return cg_node_fail(error, CELLGATE_BAD_SHAPE, node,
                            "%lld steps are fewer than its window of %lld",
                            (long long)*steps, (long long)span(window));
    *steps = count;
    return CELLGATE_OK;
}

CG_INFER(window)
{
    const cg_window *window = &node->as.window;
    const cg_shape *x = cg_infer_input(node, shapes, 0);
    cg_shape y = *x;
    int64_t *features = &y.extent[y.rank - 1];
    cellgate_status status =
        cg_need_rank(node, "the input", x, 3, CELLGATE_MAX_RANK, error);

    if (status == CELLGATE_OK)
        status = frame(node, window, &y, error);
    if (status != CELLGATE_OK)
        return status;
    if (*features != CG_UNKNOWN &&
        __builtin_mul_overflow(*features, window->size, features))
        return cg_node_fail(error, CELLGATE_BAD_SHAPE, node,
                            "the features of a window are too many");
    cg_infer_output(node, shapes, 0, &y);
    return CELLGATE_OK;
}

CG_INFER(pool)
{
    const cg_shape *x = cg_infer_input(node, shapes, 0);
    cg_shape y = *x;
    cellgate_status status =
        cg_need_rank(node, "the input", x, 3, CELLGATE_MAX_RANK, error);

    if (status == CELLGATE_OK)
        status = frame(node, &node->as.pool.window, &y, error);
    if (status == CELLGATE_OK)
        cg_infer_output(node, shapes, 0, &y);
    return status;
}

CG_INFER(reduce)
{
    const cg_shape *mask =
        node->input_count > 1 ? cg_infer_input(node, shapes, 1) : NULL;
    cg_shape y = *cg_infer_input(node, shapes, 0);
    cellgate_status status =
        cg_need_rank(node, "the input", &y, 3, CELLGATE_MAX_RANK, error);

    if (status == CELLGATE_OK && mask != NULL) {
        status =
            cg_need_rank(node, "the mask", mask, y.rank - 1, y.rank - 1, error);
        if (status == CELLGATE_OK)
            status = cg_meet_leading(node, &y, mask, mask->rank, error);
    }
    if (status != CELLGATE_OK)
        return status;
    if (node->as.reduce.keep) {
        y.extent[y.rank - 2] = 1;
    } else {
        y.extent[y.rank - 2] = y.extent[y.rank - 1];
        y.extent[--y.rank] = 0;
    }
    cg_infer_output(node, shapes, 0, &y);
    return CELLGATE_OK;
}

/* ---- Attributes ---------------------------------------------------------- */

static cellgate_status check_window(const cg_node *node,
                                    const cg_window *window,
                                    cellgate_error *error)
{
    cellgate_status status =
        cg_check_size(node, "the size of the window", window->size, 1, error);

    if (status == CELLGATE_OK)
        status = cg_check_size(node, "the stride", window->stride, 1, error);
    if (status == CELLGATE_OK)
        status =
            cg_check_size(node, "the dilation", window->dilation, 1, error);
    return status;
}

cellgate_status cg_check_window(const cg_node *node, cellgate_error *error)
{
    return check_window(node, &node->as.window, error);
}

cellgate_status cg_check_pool(const cg_node *node, cellgate_error *error)
{
    cg_window window = node->as.pool.window;

    if (window.padding == CG_PADDING_CAUSAL)
        return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                            "pooling has no causal padding");
    window.dilation = 1;
    return check_window(node, &window, error);
}

cellgate_status cg_check_reduce(const cg_node *node, cellgate_error *error)
{
    if (node->input_count == 1 || node->as.reduce.mode == CG_POOL_AVERAGE)
        return CELLGATE_OK;
    return cg_node_fail(error, CELLGATE_BAD_FILE, node,
                        "only an average looks at a mask");
}

/* ---- Descriptions -------------------------------------------------------- */

static const char *padding_text(cg_padding padding)
{
    return padding == CG_PADDING_SAME     ? ", padded to the same"
           : padding == CG_PADDING_CAUSAL ? ", causal"
                                          : "";
}

void cg_describe_window(const cg_node *node, char *text, size_t size)
{
    const cg_window *window = &node->as.window;

    (void)snprintf(text, size, "%lld steps, stride %lld, dilation %lld%s",
                   (long long)window->size, (long long)window->stride,
                   (long long)window->dilation, padding_text(window->padding));
}

static const char *mode_text(cg_pool_mode mode)
{
    return mode == CG_POOL_AVERAGE ? "average" : "maximum";
}

void cg_describe_pool(const cg_node *node, char *text, size_t size)
{
    const cg_window *window = &node->as.pool.window;

    (void)snprintf(text, size, "%s of %lld steps, stride %lld%s",
                   mode_text(node->as.pool.mode), (long long)window->size,
                   (long long)window->stride, padding_text(window->padding));
}

void cg_describe_reduce(const cg_node *node, char *text, size_t size)
{
    const cg_attribute *mode = cg_kind_get(CG_REDUCE)->attributes;

    (void)snprintf(text, size, "%s of all steps",
                   mode->choices[node->as.reduce.mode]);
}

/* Additions and comparisons a row and output step; those of a reduction
   depend on the request's steps. */
int64_t cg_operations_pool(const cg_node *node, const cg_shape *output)
{
    const int64_t features = output->extent[output->rank - 1];

    return features == CG_UNKNOWN ? 0 : features * node->as.pool.window.size;
}
