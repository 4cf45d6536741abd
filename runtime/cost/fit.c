/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "runtime/cost/fit.h"

#define N CG_FIT_UNKNOWNS

/* The normal equations, with columns of length 1. */
typedef struct normal {
    double matrix[N][N];
    double right[N];
    double scale[N];
    double target; /* sum of the squares of the ones */
} normal;

static void normal_init(normal *of, const double (*rows)[N], size_t count)
{
    memset(of, 0, sizeof *of);
    of->target = (double)count;
    for (size_t i = 0; i < count; i++)
        for (int j = 0; j < N; j++) {
            of->right[j] += rows[i][j];
            for (int k = 0; k < N; k++)
                of->matrix[j][k] += rows[i][j] * rows[i][k];
        }
    for (int j = 0; j < N; j++)
        of->scale[j] = of->matrix[j][j] > 0 ? sqrt(of->matrix[j][j]) : 1;
    for (int j = 0; j < N; j++) {
        of->right[j] /= of->scale[j];
        for (int k = 0; k < N; k++)
            of->matrix[j][k] /= of->scale[j] * of->scale[k];
    }
}

/* Cholesky over the unknowns in `subset`; false when they are not told apart
   by the rows. */
static bool solve(const normal *of, const int *subset, int size, double *x)
{
    double lower[N][N] = { { 0 } }, y[N];

    for (int j = 0; j < size; j++)
        for (int i = j; i < size; i++) {
            double sum = of->matrix[subset[i]][subset[j]];

            for (int k = 0; k < j; k++)
                sum -= lower[i][k] * lower[j][k];
            if (i == j && sum < 1e-10)
                return false;
            lower[i][j] = i == j ? sqrt(sum) : sum / lower[j][j];
        }
    for (int i = 0; i < size; i++) {
        y[i] = of->right[subset[i]];
        for (int k = 0; k < i; k++)
            y[i] -= lower[i][k] * y[k];
        y[i] /= lower[i][i];
    }
    for (int i = size - 1; i >= 0; i--) {
        x[i] = y[i];
        for (int k = i + 1; k < size; k++)
            x[i] -= lower[k][i] * x[k];
        x[i] /= lower[i][i];
    }
    return true;
}

/* Sum of squares left over; infinite where a coefficient is negative. */
static double residual(const normal *of, const int *subset, int size,
                       const double *x)
{
    double left = of->target;

    for (int i = 0; i < size; i++) {
        if (x[i] < 0)
            return HUGE_VAL;
        left -= x[i] * of->right[subset[i]];
    }
    return left;
}

static int members(unsigned mask, int *subset)
{
    int size = 0;

    for (int k = 0; k < N; k++)
        if (mask & (1u << k))
            subset[size++] = k;
    return size;
}

void cg_fit(const double (*rows)[N], size_t count, double coefficients[N])
{
    double best = HUGE_VAL;
    int best_size = N;
    normal of;

    normal_init(&of, rows, count);
    memset(coefficients, 0, N * sizeof *coefficients);
    for (unsigned mask = (1u << N) - 1; mask > 0; mask--) {
        const double slack = 1e-9 * of.target;
        int subset[N];
        double x[N], left;
        const int size = members(mask, subset);

        if (!solve(&of, subset, size, x))
            continue;
        left = residual(&of, subset, size, x);
        if (left > best + slack || (left > best - slack && size >= best_size))
            continue;
        best = left;
        best_size = size;
        memset(coefficients, 0, N * sizeof *coefficients);
        for (int i = 0; i < size; i++)
            coefficients[subset[i]] = x[i] / of.scale[subset[i]];
    }
}
