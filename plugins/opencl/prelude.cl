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

#define CELL_FUNCTION static inline
