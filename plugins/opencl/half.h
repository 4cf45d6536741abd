/* SPDX-License-Identifier: Apache-2.0 */
/* half.h: numbers in half precision (IEEE 754 binary16), made on the host. */
#ifndef CELLGATE_OPENCL_HALF_H
#define CELLGATE_OPENCL_HALF_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Whether it is a number that no half is near to: 65520 and more. */
static inline bool ocl_half_overflows(float from)
{
    return (from >= 65520.0f || from <= -65520.0f) && from - from == 0.0f;
}

/* The nearest half, ties to even; infinity and NaN stay what they are. */
static inline uint16_t ocl_half(float from)
{
    uint32_t bits, sign, rest;
    float scaled;

    memcpy(&bits, &from, sizeof bits);
    sign = bits >> 16 & 0x8000u;
    rest = bits & 0x7fffffffu;
    if (rest > 0x7f800000u)
        return (uint16_t)(sign | 0x7e00u);
    if (rest >= 0x477ff000u) /* 65520 */
        return (uint16_t)(sign | 0x7c00u);
    if (rest < 0x38800000u) { /* 2^-14: a sum of floats rounds it */
        memcpy(&scaled, &rest, sizeof scaled);
        scaled += 0.5f; /* whose last place is 2^-24, as a half's here */
        memcpy(&bits, &scaled, sizeof bits);
        return (uint16_t)(sign | (bits - 0x3f000000u));
    }
    rest += 0x0fffu + (rest >> 13 & 1u);
    return (uint16_t)(sign | ((rest - 0x38000000u) >> 13));
}

#endif /* CELLGATE_OPENCL_HALF_H */
