/* SPDX-License-Identifier: Apache-2.0 */
/*
 * onednn_api.h: what onednn_side.c asks of oneDNN, in the terms of version 2
 * (operation descriptors, memory descriptors by value) and of version 3
 * (neither; memory descriptors are objects).
 */
#ifndef BENCH_ONEDNN_API_H
#define BENCH_ONEDNN_API_H

#include <stdint.h>
#include <string.h>

#include <oneapi/dnnl/dnnl.h>

#if DNNL_VERSION_MAJOR >= 3

typedef const_dnnl_memory_desc_t api_layout;

/* Keeps a descriptor in `kept`; NULL where oneDNN makes none. */
static inline api_layout api_describe(dnnl_memory_desc_t *kept, int rank,
                                      const int64_t *sizes,
                                      dnnl_format_tag_t tag)
{
    dnnl_dims_t dims = { 0 };

    memcpy(dims, sizes, (size_t)rank * sizeof *sizes);
    if (dnnl_memory_desc_create_with_tag(kept, rank, dims, dnnl_f32, tag) !=
        dnnl_success)
        *kept = NULL;
    return *kept;
}

static inline void api_forget(dnnl_memory_desc_t *kept)
{
    (void)dnnl_memory_desc_destroy(*kept);
}

static inline dnnl_status_t
api_lstm(dnnl_primitive_desc_t *desc, dnnl_engine_t engine,
         dnnl_rnn_direction_t direction, api_layout x, api_layout kernel,
         api_layout recurrent, api_layout bias, api_layout y)
{
    return dnnl_lstm_forward_primitive_desc_create(
        desc, engine, dnnl_forward_inference, direction, x, NULL, NULL, kernel,
        recurrent, NULL, NULL, bias, y, NULL, NULL, 0, NULL);
}

static inline dnnl_status_t api_product(dnnl_primitive_desc_t *desc,
                                        dnnl_engine_t engine, api_layout x,
                                        api_layout weights, api_layout bias,
                                        api_layout y)
{
    return dnnl_inner_product_forward_primitive_desc_create(
        desc, engine, dnnl_forward_inference, x, weights, bias, y, NULL);
}

static inline dnnl_status_t api_softmax(dnnl_primitive_desc_t *desc,
                                        dnnl_engine_t engine, api_layout both)
{
    return dnnl_softmax_forward_primitive_desc_create(
        desc, engine, dnnl_forward_inference, dnnl_softmax_accurate, both, both,
        1, NULL);
}

#else

typedef const dnnl_memory_desc_t *api_layout;

static inline api_layout api_describe(dnnl_memory_desc_t *kept, int rank,
                                      const int64_t *sizes,
                                      dnnl_format_tag_t tag)
{
    dnnl_dims_t dims = { 0 };

    memcpy(dims, sizes, (size_t)rank * sizeof *sizes);
    return dnnl_memory_desc_init_by_tag(kept, rank, dims, dnnl_f32, tag) ==
                   dnnl_success
               ? kept
               : NULL;
}

static inline void api_forget(dnnl_memory_desc_t *kept)
{
    (void)kept;
}

static inline dnnl_status_t
api_lstm(dnnl_primitive_desc_t *desc, dnnl_engine_t engine,
         dnnl_rnn_direction_t direction, api_layout x, api_layout kernel,
         api_layout recurrent, api_layout bias, api_layout y)
{
    dnnl_rnn_desc_t rnn;
    dnnl_status_t status = dnnl_lstm_forward_desc_init(
        &rnn, dnnl_forward_inference, direction, x, NULL, NULL, kernel,
        recurrent, bias, y, NULL, NULL, 0);

    return status == dnnl_success
               ? dnnl_primitive_desc_create(desc, &rnn, NULL, engine, NULL)
               : status;
}

static inline dnnl_status_t api_product(dnnl_primitive_desc_t *desc,
                                        dnnl_engine_t engine, api_layout x,
                                        api_layout weights, api_layout bias,
                                        api_layout y)
{
    dnnl_inner_product_desc_t product;
    dnnl_status_t status = dnnl_inner_product_forward_desc_init(
        &product, dnnl_forward_inference, x, weights, bias, y);

    return status == dnnl_success
               ? dnnl_primitive_desc_create(desc, &product, NULL, engine, NULL)
               : status;
}

static inline dnnl_status_t api_softmax(dnnl_primitive_desc_t *desc,
                                        dnnl_engine_t engine, api_layout both)
{
    dnnl_softmax_desc_t softmax;
    dnnl_status_t status = dnnl_softmax_forward_desc_init(
        &softmax, dnnl_forward_inference, both, 1);

    return status == dnnl_success
               ? dnnl_primitive_desc_create(desc, &softmax, NULL, engine, NULL)
               : status;
}

#endif

#endif /* BENCH_ONEDNN_API_H */
