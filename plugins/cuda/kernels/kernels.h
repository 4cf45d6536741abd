/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernels.h: the plugin's own kernels, as the host sees them.
 *
 * A kernel has a struct of parameters, a function that launches it on a stream,
 * and, where not every shape fits, a function that says so. The header knows
 * nothing of CUDA: a stream is what cudaStream_t points to, and a launch
 * returns a cudaError_t as an int, 0 for success. Launches wait for nothing,
 * allocate nothing and may be captured into a graph. The structs are copied;
 * every pointer in them is to device memory, and where it is said to be
 * optional it may be NULL. tests/cuda/executor.h runs the same source on the
 * CPU.
 *
 * A matrix of weights is packed on the host (below), float32, f16 or bf16; all
 * arithmetic is in float32.
 */
#ifndef CELLGATE_CUDA_KERNELS_H
#define CELLGATE_CUDA_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "cellgate/types.h"

#ifdef __cplusplus
extern "C" {
#endif

struct CUstream_st;

/* How weights are stored. */
enum cuk_type { CUK_F32 = 0, CUK_F16 = 1, CUK_BF16 = 2 };

/* A sequence; row (b, t) begins at b * batch + t * time, in elements. */
struct cuk_strides {
    int64_t batch, time;
};

/* ---- Packing, on the host ---------------------------------------------- */

/*
 * The four gates of a unit lie side by side: [depth][4H] of the ABI becomes
 * [depth][hidden][4]. So are kernels (depth = the input size) and biases
 * (depth = 1) packed, and so come the products of the two.
 */
void cuk_pack_gates(const float *from, int64_t depth, int64_t hidden,
                    float *to);

/*
 * The recurrent kernel [depth][4H]: blocks of 8 units, zeros beyond the last,
 * in each block the rows after each other: [blocks][depth][8][4].
 */
size_t cuk_recurrent_size(int64_t depth, int64_t hidden, enum cuk_type type);
void cuk_pack_recurrent(const float *from, int64_t depth, int64_t hidden,
                        enum cuk_type type, void *to);

/* `count` numbers as they are: a projection [hidden][output], say. */
size_t cuk_type_size(enum cuk_type type);
void cuk_pack_plain(const float *from, int64_t count, enum cuk_type type,
                    void *to);

/* ---- What fits --------------------------------------------------------- */

/* What is asked of cudaDeviceGetAttribute. */
struct cuk_device {
    int32_t major, minor; /* compute capability */
    int32_t multiprocessors;
    int32_t shared;      /* bytes a block may opt in to */
    int32_t cooperative; /* cooperative launches are there */
};

/* How a kernel would be launched. */
struct cuk_fit {
    int32_t fits;
    int32_t blocks, threads; /* of the grid; of a block */
    int64_t shared;          /* bytes of a block */
    char why[160];           /* where it does not fit: what is exceeded */
};

/*
 * Once for each device that is used, it being the current one: lets the kernels
 * have more shared memory than the default.
 */
int cuk_setup(const struct cuk_device *device);

/* ---- One LSTM layer ---------------------------------------------------- */

/*
 * The steps [first, end) of a layer, both directions, its input products being
 * there. R is the output size of a direction: that of the projection, or H.
 *
 * A row's step s is its time s, or for a reversed direction length - 1 - s.
 * State: before step s, h is in half (s & 1) of `h`, so that after the last one
 * it is in half (end & 1); c has one place. Rows that have done their steps
 * keep both. y is written for the times [first, end): zeros where a row has no
 * step. `last` is written by whoever does a row's last step, and zeros, by the
 * launch with first == 0, for rows of length 0. Where steps is 0 there is
 * nothing to launch: `last` is zeros then.
 */
struct cuk_lstm {
    int32_t batch, steps;
    int32_t hidden, output; /* H, R */
    int32_t directions;
    int32_t first, end;
    int32_t reverse[2];
    int32_t initial; /* 1: h, 2: c are given; else zeros before step 0 */
    int32_t coupled;
    float clip;   /* 0: none */
    int32_t type; /* a cuk_type, of recurrent and projection */
    cellgate_activation activations[2][3]; /* gate, cell, hidden */

    const void *recurrent;       /* packed, [directions] */
    int64_t recurrent_direction; /* from one to the next, in elements */
    const void *projection;      /* [directions][H][R]; optional */
    const float *peephole;       /* [directions][3][H]; optional */

    /*
     * Input products with their biases, [H][4] a row. Row (b, s) of a direction
     * begins at b * batch + (s - first) * time; with `products_in_time` it is
     * row (b, t) that does, at b * batch + t * time.
     */
    const float *products;
    struct cuk_strides products_at;
    int64_t products_direction;
    int32_t products_in_time;

    /*
     * cuk_step only, optional: a number in device memory that is added to first
     * and end. One graph of a few steps then serves any number of them: it is
     * launched again after cuk_count() has moved the number on. Steps from
     * `steps` on do nothing. Only with products in time.
     */
    const int32_t *counter;

    float *h;           /* [2][directions][batch][R] */
    float *c;           /* [directions][batch][H] */
    float *unprojected; /* scratch with a projection, [directions][batch][H] */
    float *y;           /* optional; direction d's features begin at d * R */
    struct cuk_strides y_at;
    float *last; /* optional; as y */
    int64_t last_stride;
    const int32_t *lengths; /* [batch] */
    const int32_t *order;   /* [batch], rows by length, the longest first */

    /*
     * cuk_persistent only: CUK_SYNC numbers, zeros before the first launch; a
     * launch that ends leaves zeros. One a launch that may be under way.
     */
    uint32_t *sync;
};

#define CUK_SYNC 256

/*
 * A launch a step, two with a projection: the recurrent product and the cell.
 * Fits always.
 */
int cuk_step(const struct cuk_lstm *lstm, struct CUstream_st *stream);
/* *counter += by, or = by where `set`. */
int cuk_count(int32_t *counter, int32_t by, int32_t set,
              struct CUstream_st *stream);

/*
 * All steps in one thread block for each few rows, the recurrent weights in
 * registers and shared memory: small hidden sizes, no projection.
 */
void cuk_block_fit(const struct cuk_device *device, const struct cuk_lstm *lstm,
                   struct cuk_fit *fit);
int cuk_block(const struct cuk_device *device, const struct cuk_lstm *lstm,
              struct CUstream_st *stream);

/*
 * All steps in one cooperative grid: each multiprocessor owns some units, their
 * recurrent weights in registers and shared memory; one grid synchronisation a
 * step, two with a projection.
 */
void cuk_persistent_fit(const struct cuk_device *device,
                        const struct cuk_lstm *lstm, struct cuk_fit *fit);
int cuk_persistent(const struct cuk_device *device, const struct cuk_lstm *lstm,
                   struct CUstream_st *stream);

/* ---- Rows -------------------------------------------------------------- */

/*
 * y = activation(x * matrix + bias) for the rows (b, s), s in [first, end): the
 * input products of an LSTM, or a dense layer. With `lengths`, rows have steps
 * as in cuk_lstm: (b, s) with s >= length is left out, and x is read at the
 * step's time. y is written at time s - first, or with `in_time` at the row's
 * time.
 */
struct cuk_product {
    int32_t batch, depth, columns;
    int32_t first, end;
    int32_t directions;
    int32_t reverse[2];
    int32_t in_time;
    int32_t type;                   /* a cuk_type, of the matrix */
    cellgate_activation activation; /* CELLGATE_LINEAR for none */
    const float *x;
    struct cuk_strides x_at;
    const int32_t
        *ids; /* optional: x is a table of rows, x_at is that of ids */
    const void *matrix; /* [depth][columns] */
    int64_t matrix_direction;
    const float *bias; /* optional, [directions][columns] */
    float *y;
    struct cuk_strides y_at;
    int64_t y_direction;
    const int32_t *lengths; /* optional */
};
int cuk_product(const struct cuk_product *product, struct CUstream_st *stream);

/*
 * y = activation(x) on each row; with ids, of the row of the table x that the
 * id names: an embedding. x may be y.
 */
struct cuk_rows {
    int32_t batch, steps, width;
    cellgate_activation activation;
    const float *x;
    struct cuk_strides x_at;
    const int32_t *ids; /* optional, at x_at */
    float *y;
    struct cuk_strides y_at;
};
int cuk_activate(const struct cuk_rows *rows, struct CUstream_st *stream);
/* y = softmax(x) over each row; `activation` and `ids` are not looked at. */
int cuk_softmax(const struct cuk_rows *rows, struct CUstream_st *stream);

/*
 * Gives the rows whose length is 0 what such rows have: zeros in y and last,
 * and after the last step the state of before the first one.
 */
struct cuk_empty {
    int32_t batch, steps, width;
    int32_t layers; /* of state, each direction of one */
    int32_t state_rows, h_width, c_width;
    const int32_t *lengths; /* [batch]; NULL: all are 0 */
    float *y;               /* optional */
    struct cuk_strides y_at;
    float *last; /* optional */
    int64_t last_stride;
    const float *h0, *c0; /* optional, as the following; else zeros */
    float *h, *c;         /* [layers][state_rows][h_width or c_width] */
};
int cuk_empty(const struct cuk_empty *empty, struct CUstream_st *stream);

#ifdef __cplusplus
}
#endif

#endif /* CELLGATE_CUDA_KERNELS_H */
