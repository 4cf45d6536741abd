/* SPDX-License-Identifier: Apache-2.0 */
/* bfloat16: the upper half of a float32, rounded to nearest, ties to even. */
#ifndef REMOTE_BF16_H
#define REMOTE_BF16_H

#include <stdint.h>
#include <string.h>

static inline uint16_t remote_to_bf16(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof bits);
    /* Rounding could carry a NaN's payload into infinity: keep it a NaN. */
    if ((bits & 0x7FFFFFFFu) > 0x7F800000u)
        return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7FFFu + (bits >> 16 & 1u)) >> 16);
}

static inline float remote_from_bf16(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;

    memcpy(&value, &bits, sizeof value);
    return value;
}

#endif
