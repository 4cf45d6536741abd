/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "runtime/model/describe.h"

static const char *choice(const cg_node *node, int number)
{
    return cg_kind_get((int)node->kind)->attributes[0].choices[number];
}

void cg_describe_slice(const cg_node *node, char *text, size_t size)
{
    const cg_slice *slice = &node->as.slice;

    const char *from = slice->begin < 0 ? " before the end" : "";
    const long long begin = llabs((long long)slice->begin);

    if (slice->axis == 0)
        cg_detail_append(text, size, "features %lld%s to ", begin, from);
    else
        cg_detail_append(text, size, "axis %d, %lld%s to ", (int)slice->axis,
                         begin, from);
    if (slice->end > 0)
        (void)snprintf(text + strlen(text), size - strlen(text), "%lld",
                       (long long)slice->end - 1);
    else if (slice->end == 0)
        (void)snprintf(text + strlen(text), size - strlen(text), "the end");
    else
        (void)snprintf(text + strlen(text), size - strlen(text),
                       "%lld before the end", (long long)-slice->end);
    if (slice->step != 0)
        cg_detail_append(text, size, "step %lld", (long long)slice->step);
}

void cg_describe_concat(const cg_node *node, char *text, size_t size)
{
    if (node->as.concat != 0)
        cg_detail_append(text, size, "axis %d", (int)node->as.concat);
}

void cg_describe_pad(const cg_node *node, char *text, size_t size)
{
    cg_detail_append(text, size, "axis %d, %lld before, %lld after",
                     (int)node->as.pad.axis, (long long)node->as.pad.before,
                     (long long)node->as.pad.after);
}

void cg_describe_repeat(const cg_node *node, char *text, size_t size)
{
    cg_detail_append(text, size, "axis %d, %lld times",
                     (int)node->as.repeat.axis,
                     (long long)node->as.repeat.times);
}

void cg_describe_permute(const cg_node *node, char *text, size_t size)
{
    for (int32_t i = 1; i < node->as.permute.count; i++)
        cg_detail_append(text, size, "%s%lld", i == 1 ? "axes " : "",
                         (long long)node->as.permute.extent[i]);
}

void cg_describe_cast(const cg_node *node, char *text, size_t size)
{
    cg_detail_append(text, size, "to %s", choice(node, (int)node->as.cast));
}

void cg_describe_combine(const cg_node *node, char *text, size_t size)
{
    cg_detail_append(text, size, "%s of %zu",
                     choice(node, (int)node->as.combine), node->input_count);
}

void cg_describe_logic(const cg_node *node, char *text, size_t size)
{
    cg_detail_append(text, size, "%s", choice(node, (int)node->as.logic));
}

void cg_describe_dot(const cg_node *node, char *text, size_t size)
{
    cg_detail_append(text, size, "axes %d and %d", (int)node->as.dot.axis_a,
                     (int)node->as.dot.axis_b);
    if (node->as.dot.normalize)
        cg_detail_append(text, size, "normalised");
}

/* One a number of the last axis and input beyond the first; an average divides
   too. */
int64_t cg_operations_combine(const cg_node *node, const cg_shape *output)
{
    const int64_t features = output->extent[output->rank - 1];
    const int64_t inputs = (int64_t)node->input_count;

    if (features == CG_UNKNOWN)
        return 0;
    return (node->as.combine == CG_COMBINE_AVERAGE ? inputs : inputs - 1) *
           features;
}
