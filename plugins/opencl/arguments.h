/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arguments.h: what the host tells a kernel, one struct a kernel, passed by
 * value. The host and OpenCL C both compile this file: members have the same
 * size and place in both, the wide ones first, and every struct is a multiple
 * of 8 bytes. Strides are in elements.
 */
#ifndef CELLGATE_OPENCL_ARGUMENTS_H
#define CELLGATE_OPENCL_ARGUMENTS_H

#ifdef __OPENCL_VERSION__
typedef long ocl_wide;
#else
#include <stdint.h>
typedef int64_t ocl_wide;
#endif

struct ocl_activation {
    int kind; /* a cellgate_activation_kind */
    float alpha, beta;
    int reserved;
};

/* A sequence in device memory; row (b, t) begins at at + b * batch + t * time.
 */
struct ocl_strides {
    ocl_wide batch, time, at;
};

/* One layer, both directions, for the steps [first, end) that a row does. */
struct ocl_lstm_arguments {
    struct ocl_strides x, y;
    ocl_wide last;        /* from a row of the last output to the next */
    ocl_wide last_at;     /* where the first one begins */
    ocl_wide products;    /* from a direction's input products to the next */
    ocl_wide products_at; /* step kernel: where the step's begin */
    int batch, steps;
    int input, hidden, output;
    int blocks;        /* of units: hidden / V, rounded up */
    int output_blocks; /* of outputs, with a projection */
    int first, end;
    int directions;
    int parity; /* step kernel: which half of the h it reads */
    int reverse[2];
    int initial; /* 1: h, 2: c are given; else zeros at the first step */
    int peepholes, coupled;
    float clip; /* 0: none */
    struct ocl_activation activations[2][3];
};

/* Rows times a matrix: the input products of an LSTM, or a dense layer. */
struct ocl_product_arguments {
    struct ocl_strides x;
    struct ocl_strides y; /* of the result; time counts from `first` */
    ocl_wide y_direction, matrix_direction;
    int batch, depth;
    int columns;    /* that are stored */
    int blocks;     /* of 4 V columns in the matrix */
    int first, end; /* steps */
    int reverse[2];
    int directions;
    int reserved;
};

/* Something done to each row of a sequence. */
struct ocl_rows_arguments {
    struct ocl_strides x, y;
    int batch, steps, width;
    int reserved;
    struct ocl_activation activation;
};

#endif /* CELLGATE_OPENCL_ARGUMENTS_H */
