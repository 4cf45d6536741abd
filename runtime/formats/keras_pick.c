/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that take parts of a tensor: x[...], Split, Unstack, Flip. */
#include "config.h"

#include "runtime/formats/keras_operation.h"

/* Parts of one axis each, and the axes that come and go. */
typedef struct picking {
    const cg_keras_layer *layer;
    cg_node nodes[CELLGATE_MAX_RANK + 1];
    size_t count;
    cg_shape x;     /* with the axes picked from, so far */
    cg_node result; /* a reshaping */
    int32_t next;   /* axis of x */
    bool reshapes;
} picking;

/* ---- One axis ------------------------------------------------------------ */

static cellgate_status fail_batch(const cg_keras_layer *layer,
                                  cellgate_error *error)
{
    return cg_keras_fail(error, CELLGATE_UNSUPPORTED, layer,
                         "it picks rows of the batch, which have to stay all; "
                         "[:] is taken for the first axis");
}

/* A whole axis, the last index first. */
static cg_node make_reversal(int32_t axis)
{
    if (axis == 1)
        return (cg_node){ .kind = CG_REVERSE };
    return (cg_node){ .kind = CG_SLICE,
                      .as.slice = { .axis = axis, .step = -1 } };
}

/* From `begin` to `end`, which may be counted from the end (0: the end). */
static void add_slice(picking *all, int64_t begin, int64_t end, int64_t step)
{
    const cg_slice slice = { begin, end, all->next, step };
    int64_t *extent = &all->x.extent[all->next];
    const bool whole = begin == 0 && (end == 0 || (end > 0 && end == *extent));
    int64_t width = CG_UNKNOWN;

    if (whole && (step == 1 || step == -1)) {
        if (step == -1)
            all->nodes[all->count++] = make_reversal(all->next);
        return;
    }
    all->nodes[all->count++] = (cg_node){ .kind = CG_SLICE, .as.slice = slice };
    if (*extent != CG_UNKNOWN || (begin < 0) == (end <= 0))
        width = end - begin;
    *extent = cg_slice_count(&slice, width);
}

static cellgate_status fail_range(const picking *all, cellgate_error *error)
{
    return cg_keras_fail(error, CELLGATE_UNSUPPORTED, all->layer,
                         "what it picks of axis %d is empty, or beyond its "
                         "extent",
                         (int)all->next);
}

static bool is_absent(const json_t *json)
{
    return json == NULL || json_is_null(json);
}

static bool is_number_or_null(const json_t *json)
{
    return is_absent(json) || json_is_integer(json);
}

/* One bound of a range of a known extent: where the index `number` begins, or
   with `behind` ends, cut off as Python does. */
static int64_t cut_bound(int64_t number, int64_t extent, bool behind)
{
    if (number < -extent - 1)
        return 0;
    if (number >= extent)
        return extent;
    number += (number < 0 ? extent : 0) + behind;
    return number < 0 ? 0 : number;
}

static bool is_size(int64_t number)
{
    return number >= -CG_MAX_SIZE && number <= CG_MAX_SIZE;
}

/* The same of an open extent, where each bound stays counted from the end that
   it is counted from. False if it is empty, or out of bounds. */
static bool find_open(const json_t *low, const json_t *high, bool behind,
                      int64_t *begin, int64_t *end)
{
    const int64_t first = json_integer_value(low);
    const int64_t last = json_integer_value(high);

    if (!is_size(first) || !is_size(last))
        return false;
    *begin = is_absent(low) ? 0 : first + behind;
    *end = is_absent(high) ? 0 : last + behind;
    if ((first < 0) != (*begin < 0) ||
        (!is_absent(high) && (last < 0) != (*end <= 0)))
        return false;
    return (*begin < 0) != (*end <= 0) || *begin < *end;
}

/* As Python counts: of a known extent, ends beyond it are cut off. Backwards,
   the range begins behind `stop`, and ends behind `start`. */
static cellgate_status pick_range(picking *all, const json_t *start,
                                  const json_t *stop, int64_t step,
                                  cellgate_error *error)
{
    const int64_t extent = all->x.extent[all->next];
    const bool back = step < 0;
    const json_t *low = back ? stop : start, *high = back ? start : stop;
    int64_t begin, end;
    bool good;

    if (extent != CG_UNKNOWN) {
        begin = is_absent(low)
                    ? 0
                    : cut_bound(json_integer_value(low), extent, back);
        end = is_absent(high)
                  ? extent
                  : cut_bound(json_integer_value(high), extent, back);
        good = begin < end;
    } else {
        good = find_open(low, high, back, &begin, &end);
    }
    if (!good)
        return fail_range(all, error);
    add_slice(all, begin, end, step);
    return CELLGATE_OK;
}

static cellgate_status pick_slice(picking *all, const json_t *slice,
                                  cellgate_error *error)
{
    const json_t *start = json_object_get(slice, "start");
    const json_t *stop = json_object_get(slice, "stop");
    const json_t *every = json_object_get(slice, "step");
    const int64_t step = is_absent(every) ? 1 : json_integer_value(every);
    cellgate_status status = CELLGATE_OK;

    if (!is_number_or_null(start) || !is_number_or_null(stop) ||
        !is_number_or_null(every))
        return cg_keras_refuse_operation(all->layer, error);
    if (step == 0 || !is_size(step))
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, all->layer,
                             "the step of what it picks of axis %d is 0 or out "
                             "of bounds",
                             (int)all->next);
    if (step != 1 || !is_absent(start) || !is_absent(stop)) {
        if (all->next == 0)
            return fail_batch(all->layer, error);
        status = pick_range(all, start, stop, step, error);
    }
    cg_keras_append_extent(&all->result, all->x.extent[all->next++]);
    return status;
}

/* One index, whose axis goes. */
static cellgate_status pick_index(picking *all, int64_t index,
                                  cellgate_error *error)
{
    const int64_t extent = all->x.extent[all->next];

    if (all->next == 0)
        return fail_batch(all->layer, error);
    if (extent != CG_UNKNOWN && index < 0)
        index += extent;
    if (index > CG_MAX_SIZE || index < -CG_MAX_SIZE ||
        (extent != CG_UNKNOWN && (index < 0 || index >= extent)))
        return fail_range(all, error);
    add_slice(all, index, index + 1, 1);
    all->reshapes = true;
    all->next++;
    return CELLGATE_OK;
}

/* ---- x[...] -------------------------------------------------------------- */

static bool is_ellipsis(const json_t *json)
{
    const char *name = json_string_value(json_object_get(json, "class_name"));

    return name != NULL && strcmp(name, "__ellipsis__") == 0;
}

/* Axes that an ellipsis, or the end, stands for. */
static void pick_rest(picking *all, int32_t count)
{
    for (; count > 0 && all->next < all->x.rank; count--)
        cg_keras_append_extent(&all->result, all->x.extent[all->next++]);
}

static cellgate_status pick(picking *all, const json_t *item, int32_t left,
                            cellgate_error *error)
{
    const json_t *config = json_object_get(item, "config");

    if (is_ellipsis(item)) {
        pick_rest(all, left);
        return CELLGATE_OK;
    }
    if (json_is_null(item)) {
        if (all->next == 0)
            return fail_batch(all->layer, error);
        all->reshapes = true;
        cg_keras_append_extent(&all->result, 1);
        return CELLGATE_OK;
    }
    if (all->next >= all->x.rank)
        return cg_keras_refuse_operation(all->layer, error);
    if (json_is_integer(item))
        return pick_index(all, json_integer_value(item), error);
    return json_is_object(item)
               ? pick_slice(all, config != NULL ? config : item, error)
               : cg_keras_refuse_operation(all->layer, error);
}

/* How many axes an ellipsis stands for. */
static int32_t count_left(const json_t *items, int32_t rank)
{
    int32_t used = 0;

    for (size_t i = 0; i < json_array_size(items); i++) {
        const json_t *item = json_array_get(items, i);

        used += !json_is_null(item) && !is_ellipsis(item);
    }
    return rank - used;
}

static cellgate_status pick_all(picking *all, const json_t *items,
                                cellgate_error *error)
{
    const int32_t left = count_left(items, all->x.rank);
    cellgate_status status = CELLGATE_OK;

    if (!json_is_array(items))
        status = pick(all, items, all->x.rank, error);
    for (size_t i = 0; status == CELLGATE_OK && i < json_array_size(items); i++)
        status = pick(all, json_array_get(items, i), left, error);
    if (status == CELLGATE_OK)
        pick_rest(all, all->x.rank);
    return status;
}

/* Axes in front that stay as they are need no reshaping. */
static void keep_leading(picking *all)
{
    cg_reshape *reshape = &all->result.as.reshape;

    reshape->keep = 1;
    reshape->extents.count--;
    memmove(reshape->extents.extent, reshape->extents.extent + 1,
            sizeof reshape->extents.extent - sizeof reshape->extents.extent[0]);
    while (reshape->extents.count > 0 && reshape->keep < all->x.rank &&
           reshape->extents.extent[0] == CG_UNKNOWN &&
           all->x.extent[reshape->keep] == CG_UNKNOWN) {
        reshape->keep++;
        reshape->extents.count--;
        memmove(reshape->extents.extent, reshape->extents.extent + 1,
                sizeof reshape->extents.extent -
                    sizeof reshape->extents.extent[0]);
    }
}

static cellgate_status start(cg_keras_call *call, picking *all,
                             cg_keras_tensor *x, cellgate_error *error)
{
    cellgate_status status = cg_keras_only_input(call, x, error);

    if (status == CELLGATE_OK)
        status = cg_keras_claim_any(call, x, error);
    if (status == CELLGATE_OK)
        *all = (picking){ .layer = call->layer,
                          .x = *cg_keras_shape(call, x->value),
                          .result = cg_keras_reshaping(0) };
    return status;
}

cellgate_status cg_keras_build_get_item(cg_keras_call *call,
                                        cellgate_error *error)
{
    const json_t *items = json_array_get(call->args, 1);
    cg_keras_tensor x = { 0 };
    picking all;
    cellgate_status status = start(call, &all, &x, error);

    if (status == CELLGATE_OK)
        status = pick_all(&all, items, error);
    if (status == CELLGATE_OK && all.reshapes) {
        if (all.result.as.reshape.extents.count > CELLGATE_MAX_RANK)
            return cg_keras_check_reshaping(call->layer, &all.result, error);
        keep_leading(&all);
        status = cg_keras_check_reshaping(call->layer, &all.result, error);
        all.nodes[all.count++] = all.result;
    }
    if (status == CELLGATE_OK)
        status =
            cg_keras_emit_chain(call, all.nodes, all.count, &x.value, error);
    return status == CELLGATE_OK
               ? cg_keras_return(call, x.value, CG_NO_VALUE, error)
               : status;
}

/* ---- Split, Unstack, Flip ------------------------------------------------ */

/* The one axis that it works along, counted from 0; never the batch. */
static cellgate_status get_axis(const cg_keras_call *call, int32_t rank,
                                int32_t *axis, cellgate_error *error)
{
    cg_extents axes;
    const cg_extents absent = { 0 };
    cellgate_status status =
        cg_keras_get_axes(call->layer, "axis", rank, &absent, &axes, error);

    if (status == CELLGATE_OK && axes.count != 1)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                             "it is supported along one axis, which it names");
    *axis = (int32_t)axes.extent[0];
    return status;
}

/* A part of the axis as an output of its own. */
static cellgate_status give_part(cg_keras_call *call, int32_t x,
                                 const cg_slice *part, bool squeeze,
                                 cellgate_error *error)
{
    const cg_node slice = { .kind = CG_SLICE, .as.slice = *part };
    const cg_shape *shape = cg_keras_shape(call, x);
    cg_node without = cg_keras_reshaping(part->axis);
    char suffix[32];
    int32_t value = CG_NO_VALUE;
    cellgate_status status = CELLGATE_OK;

    for (int32_t axis = part->axis + 1; axis < shape->rank; axis++)
        cg_keras_append_extent(&without, shape->extent[axis]);
    if (squeeze)
        status = cg_keras_check_reshaping(call->layer, &without, error);
    (void)snprintf(suffix, sizeof suffix, ":%zu", call->outputs.count);
    if (status == CELLGATE_OK)
        status = cg_keras_emit_simple(
            call, &slice, &x, 1, squeeze ? ":part" : suffix, &value, error);
    if (status == CELLGATE_OK && squeeze)
        status = cg_keras_emit_simple(call, &without, &value, 1, suffix, &value,
                                      error);
    return status == CELLGATE_OK
               ? cg_keras_return(call, value, CG_NO_VALUE, error)
               : status;
}

static cellgate_status give_equal_parts(cg_keras_call *call, int32_t x,
                                        int32_t axis, int64_t count,
                                        bool squeeze, cellgate_error *error)
{
    const int64_t extent = cg_keras_shape(call, x)->extent[axis];
    cellgate_status status = CELLGATE_OK;

    if (extent == CG_UNKNOWN || count < 1 || extent % count != 0)
        return cg_keras_fail(error, CELLGATE_UNSUPPORTED, call->layer,
                             "axis %d, of an extent that the file %s, cannot "
                             "be parted as it says",
                             (int)axis,
                             extent == CG_UNKNOWN ? "leaves open" : "tells");
    for (int64_t i = 0; status == CELLGATE_OK && i < count; i++) {
        const cg_slice part = { .begin = i * (extent / count),
                                .end = (i + 1) * (extent / count),
                                .axis = axis };

        status = give_part(call, x, &part, squeeze, error);
    }
    return status;
}

/* Keras 3 has the indices where parts begin, Keras 2 their sizes. */
static cellgate_status give_listed_parts(cg_keras_call *call, int32_t x,
                                         int32_t axis, const json_t *list,
                                         cellgate_error *error)
{
    const int64_t extent = cg_keras_shape(call, x)->extent[axis];
    const bool sizes = call->layer->reader->keras_major < 3;
    const size_t count = json_array_size(list) + !sizes;
    int64_t begin = 0;
    cellgate_status status = CELLGATE_OK;

    for (size_t i = 0; status == CELLGATE_OK && i < count; i++) {
        const json_t *item = json_array_get(list, i);
        int64_t end = json_integer_value(item) + (sizes ? begin : 0);
        const bool last = i + 1 == count;

        if (last && !sizes)
            end = extent;
        if ((!json_is_integer(item) && !(last && !sizes)) || end <= begin ||
            end > extent || (last && end != extent))
            return cg_keras_refuse_operation(call->layer, error);
        status = give_part(
            call, x, &(cg_slice){ .begin = begin, .end = end, .axis = axis },
            false, error);
        begin = end;
    }
    return status;
}

cellgate_status cg_keras_build_split(cg_keras_call *call, cellgate_error *error)
{
    const json_t *parts =
        json_object_get(call->layer->config, "indices_or_sections");
    cg_keras_tensor x = { 0 };
    picking all;
    int32_t axis = 0;
    cellgate_status status = start(call, &all, &x, error);

    if (status == CELLGATE_OK)
        status = get_axis(call, all.x.rank, &axis, error);
    if (status != CELLGATE_OK)
        return status;
    if (json_is_array(parts) && json_array_size(parts) > 0)
        return give_listed_parts(call, x.value, axis, parts, error);
    if (!json_is_integer(parts))
        return cg_keras_refuse_operation(call->layer, error);
    return give_equal_parts(call, x.value, axis, json_integer_value(parts),
                            false, error);
}

cellgate_status cg_keras_build_unstack(cg_keras_call *call,
                                       cellgate_error *error)
{
    cg_keras_tensor x = { 0 };
    picking all;
    int32_t axis = 0;
    cellgate_status status = start(call, &all, &x, error);

    if (status == CELLGATE_OK)
        status = get_axis(call, all.x.rank, &axis, error);
    return status == CELLGATE_OK
               ? give_equal_parts(call, x.value, axis, all.x.extent[axis], true,
                                  error)
               : status;
}

cellgate_status cg_keras_build_flip(cg_keras_call *call, cellgate_error *error)
{
    cg_keras_tensor x = { 0 };
    picking all;
    int32_t axis = 0;
    cellgate_status status = start(call, &all, &x, error);

    if (status == CELLGATE_OK)
        status = get_axis(call, all.x.rank, &axis, error);
    if (status == CELLGATE_OK) {
        const cg_node node = make_reversal(axis);

        status = cg_keras_emit_chain(call, &node, 1, &x.value, error);
    }
    return status == CELLGATE_OK
               ? cg_keras_return(call, x.value, CG_NO_VALUE, error)
               : status;
}
