/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>

#include "tests/conformance/tolerance.h"

#define UNIT_ROUNDOFF 0x1p-24

/* What a class does to each factor of a product, beyond float32. */
static const struct {
    double factor;
    int32_t of_largest;
    double comparable; /* the largest intermediate value that says anything */
    double finite;     /* the largest that overflows nothing */
    const char *reason;
} classes[TOLERANCE_CLASSES] = {
    { 0.0, 0, 1e12, 1e12,
      "f32: sqrt(terms) x 2^-24 in each factor, 4 x 2^-24 elsewhere" },
    { 0x1p-11, 0, 128, 1e12, "tf32: 2^-11 in each factor, on top of f32" },
    { 0x1p-11, 0, 128, 3e4, "f16: 2^-11 in each factor, on top of f32" },
    { 0x1p-8, 0, 16, 1e12, "bf16: 2^-8 in each factor, on top of f32" },
    { 1.0 / 127, 1, 8, 1e12,
      "int8: 1/127 of the largest factor in each, on top of f32" },
};

static double typical_roundoff(const test_case *c)
{
    double most = 1.0;

    for (int32_t i = 0; i < c->op_count; i++) {
        double terms = (double)(case_op_input(c, i) + c->ops[i].size);
        if (terms > most)
            most = terms;
    }
    return sqrt(most) * UNIT_ROUNDOFF;
}

int tolerance_runs(const test_case *c)
{
    int64_t affordable = 4000000 / (case_cost(c) + 1);

    return affordable < 4 ? 4 : affordable > 16 ? 16 : (int)affordable;
}

oracle_noise tolerance_noise(const test_case *c, int32_t numeric, int run)
{
    return (oracle_noise){
        .seed = c->seed * 64 + (uint64_t)run,
        .operand = typical_roundoff(c) + classes[numeric].factor,
        .result = 4 * UNIT_ROUNDOFF,
        .of_largest = classes[numeric].of_largest,
    };
}

double tolerance_of(double change, double magnitude)
{
    return TOLERANCE_FACTOR * change + 4 * UNIT_ROUNDOFF * magnitude + 0x1p-120;
}

int tolerance_comparable(const test_case *c, int32_t numeric,
                         const oracle_row *row)
{
    oracle_noise noise = tolerance_noise(c, numeric, 0);

    return row->largest <= classes[numeric].comparable &&
           row->nearest_jump > 32 * noise.operand * (1.0 + row->largest);
}

int tolerance_finite(int32_t numeric, const oracle_row *row)
{
    return row->largest <= classes[numeric].finite;
}

const char *tolerance_class_name(int32_t numeric)
{
    switch (numeric) {
#define CLASS_NAME(name, value, text)                                          \
    case value:                                                                \
        return text;
        CELLGATE_NUMERIC_LIST(CLASS_NAME)
#undef CLASS_NAME
    default:
        return NULL;
    }
}

const char *tolerance_reason(int32_t numeric)
{
    return tolerance_class_name(numeric) != NULL ? classes[numeric].reason
                                                 : "unknown class";
}
