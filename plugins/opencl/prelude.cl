/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prelude.cl: OpenCL C in the words of cell.cl.
 *
 * V, the width of a vector, is 1 where work-items of a group work in lockstep
 * and each has one unit, and the device's vector width where a work-item is a
 * CPU's thread. `real` is V floats.
 */
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)

#if V == 1
typedef float real;
#define REAL(x) ((float)(x))
#define REAL_LOAD(p) (*(p))
#define REAL_STORE(x, p) (*(p) = (x))
#define REAL_POWER_OF_TWO(n) as_float((convert_int(n) + 127) << 23)
#define REAL_LIMIT(x, low, high)                                               \
    ((x) < (low) ? (low) : (x) > (high) ? (high) : (x))
#else
typedef JOIN(float, V) real;
#define REAL(x) ((real)(x))
#define REAL_LOAD(p) JOIN(vload, V)(0, p)
#define REAL_STORE(x, p) JOIN(vstore, V)(x, 0, p)
#define REAL_POWER_OF_TWO(n)                                                   \
    JOIN(as_float, V)((JOIN(convert_int, V)(n) + 127) << 23)
#define REAL_LIMIT(x, low, high)                                               \
    ((x) < (low) ? (low) : (x) > (high) ? (high) : (x))
#endif

/* Matrices are kept in half precision, or as floats; vload_half is of every
   OpenCL. */
#if HALF
#define WEIGHT half
#define WEIGHT_AT(p) vload_half(0, p)
#if V == 1
#define WEIGHT_LOAD(p) vload_half(0, p)
#else
#define WEIGHT_LOAD(p) JOIN(vload_half, V)(0, p)
#endif
#else
#define WEIGHT float
#define WEIGHT_AT(p) (*(p))
#define WEIGHT_LOAD(p) REAL_LOAD(p)
#endif

#define CELL_FUNCTION static inline
/* One that is not worth its size at every place. */
#define CELL_LARGE_FUNCTION CELL_FUNCTION
#define CELL_ACTIVATION struct ocl_activation
