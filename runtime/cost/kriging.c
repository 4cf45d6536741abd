/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/cost/kriging.h"

#define AXES CG_KRIGING_AXES

/*
 * What is believed of the size of values before any is seen: a standard
 * deviation of 0.3, as firmly as two values would tell. Without it, two values
 * that happen to be small would be taken for certainty.
 */
#define PRIOR_DEVIATION 0.3
#define PRIOR_WEIGHT 2.0

struct cg_kriging {
    size_t count;
    double length[AXES];
    double variance; /* of the process */
    double *lower;   /* [count][count]: of covariance / variance */
    double *weights; /* [count]: covariance^-1 values */
    double (*places)[AXES];
};

/* What one try of lengths needs, and what it came to. */
typedef struct trial {
    const double (*places)[AXES];
    const double *values, *errors;
    size_t count;
    double length[AXES];
    double *lower, *weights;
    double variance, likelihood;
} trial;

static double covariance(const double *length, const double *a, const double *b)
{
    double sum = 0, distance;

    for (int axis = 0; axis < AXES; axis++) {
        const double apart = (a[axis] - b[axis]) / length[axis];

        sum += apart * apart;
    }
    distance = sqrt(3 * sum);
    return (1 + distance) * exp(-distance);
}

/* Cholesky in place of the lower triangle of a positive definite matrix. */
static void factor(double *a, size_t n)
{
    for (size_t j = 0; j < n; j++)
        for (size_t i = j; i < n; i++) {
            double sum = a[i * n + j];

            for (size_t k = 0; k < j; k++)
                sum -= a[i * n + k] * a[j * n + k];
            if (i == j)
                a[i * n + j] = sqrt(fmax(sum, 1e-12));
            else
                a[i * n + j] = sum / a[j * n + j];
        }
}

/* x = L^-1 x */
static void forward(const double *lower, size_t n, double *x)
{
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < i; k++)
            x[i] -= lower[i * n + k] * x[k];
        x[i] /= lower[i * n + i];
    }
}

/* x = L^-T x */
static void backward(const double *lower, size_t n, double *x)
{
    for (size_t i = n; i-- > 0;) {
        for (size_t k = i + 1; k < n; k++)
            x[i] -= lower[k * n + i] * x[k];
        x[i] /= lower[i * n + i];
    }
}

/* Values' errors count relative to the deviation that is believed at first. */
static void try_lengths(trial *of)
{
    const size_t n = of->count;
    double fit = 0, determinant = 0;

    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++)
            of->lower[i * n + j] =
                covariance(of->length, of->places[i], of->places[j]);
    for (size_t i = 0; i < n; i++)
        of->lower[i * n + i] += 1e-6 + of->errors[i] * of->errors[i] /
                                           (PRIOR_DEVIATION * PRIOR_DEVIATION);
    factor(of->lower, n);
    for (size_t i = 0; i < n; i++)
        of->weights[i] = of->values[i];
    forward(of->lower, n, of->weights);
    for (size_t i = 0; i < n; i++) {
        fit += of->weights[i] * of->weights[i];
        determinant += log(of->lower[i * n + i]);
    }
    backward(of->lower, n, of->weights);
    of->variance = (fit + PRIOR_WEIGHT * PRIOR_DEVIATION * PRIOR_DEVIATION) /
                   ((double)n + PRIOR_WEIGHT);
    of->likelihood =
        -((double)n + PRIOR_WEIGHT) / 2 * log(of->variance) - determinant;
}

/* The first two axes have lengths of their own, the third the first one's. */
static void choose_lengths(trial *of)
{
    static const double tried[] = { 1, 2, 4, 8 };
    const size_t count = sizeof tried / sizeof tried[0];
    double best = -HUGE_VAL, first = 0, second = 0;

    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++) {
            of->length[0] = of->length[2] = tried[i];
            of->length[1] = tried[j];
            try_lengths(of);
            if (of->likelihood > best) {
                best = of->likelihood;
                first = tried[i];
                second = tried[j];
            }
        }
    of->length[0] = of->length[2] = first;
    of->length[1] = second;
    try_lengths(of);
}

static bool allocate(cg_kriging *kriging, size_t count)
{
    if (count > CG_KRIGING_MOST)
        return false;
    kriging->lower = calloc(count * count + 1, sizeof *kriging->lower);
    kriging->weights = calloc(count + 1, sizeof *kriging->weights);
    kriging->places = calloc(count + 1, sizeof *kriging->places);
    return kriging->lower != NULL && kriging->weights != NULL &&
           kriging->places != NULL;
}

cg_kriging *cg_kriging_create(const double (*places)[AXES],
                              const double *values, const double *errors,
                              size_t count)
{
    cg_kriging *kriging = calloc(1, sizeof *kriging);
    trial of = {
        .places = places, .values = values, .errors = errors, .count = count
    };

    if (kriging == NULL)
        return NULL;
    if (!allocate(kriging, count)) {
        cg_kriging_destroy(kriging);
        return NULL;
    }
    of.lower = kriging->lower;
    of.weights = kriging->weights;
    choose_lengths(&of);
    kriging->count = count;
    kriging->variance = of.variance;
    memcpy(kriging->length, of.length, sizeof of.length);
    if (count > 0)
        memcpy(kriging->places, places, count * sizeof *places);
    return kriging;
}

void cg_kriging_destroy(cg_kriging *kriging)
{
    if (kriging == NULL)
        return;
    free(kriging->lower);
    free(kriging->weights);
    free(kriging->places);
    free(kriging);
}

/* |L^-1 k|^2: how much of the variance at a place the values explain. */
static double explained(const cg_kriging *kriging, const double *place)
{
    double solved[CG_KRIGING_MOST], sum = 0;

    for (size_t i = 0; i < kriging->count; i++)
        solved[i] = covariance(kriging->length, place, kriging->places[i]);
    forward(kriging->lower, kriging->count, solved);
    for (size_t i = 0; i < kriging->count; i++)
        sum += solved[i] * solved[i];
    return sum;
}

void cg_kriging_at(const cg_kriging *kriging, const double place[AXES],
                   double *value, double *error)
{
    const double left = 1 - explained(kriging, place);

    *value = 0;
    for (size_t i = 0; i < kriging->count; i++)
        *value += kriging->weights[i] *
                  covariance(kriging->length, place, kriging->places[i]);
    *error = sqrt(kriging->variance * fmax(left, 0));
}
