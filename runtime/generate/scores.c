/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stddef.h>

#include "runtime/generate/scores.h"

static const char *log_of_probabilities(const float *scores, int64_t count,
                                        double *result)
{
    double largest = 0;

    for (int64_t id = 0; id < count; id++) {
        const double p = (double)scores[id];

        if (isnan(p))
            return "not numbers (NaN)";
        if (p < 0 || isinf(p))
            return "probabilities that are negative or infinite";
        largest = p > largest ? p : largest;
        result[id] = log(p);
    }
    return largest > 0 ? NULL : "all zero: nothing can follow";
}

static const char *log_of_logits(const float *scores, int64_t count,
                                 double *result)
{
    double largest = -INFINITY, sum = 0;

    for (int64_t id = 0; id < count; id++) {
        const double score = (double)scores[id];

        if (isnan(score))
            return "not numbers (NaN)";
        if (score == INFINITY)
            return "infinite";
        largest = score > largest ? score : largest;
    }
    if (largest == -INFINITY)
        return "all -infinity: nothing can follow";
    for (int64_t id = 0; id < count; id++)
        sum += exp((double)scores[id] - largest);
    for (int64_t id = 0; id < count; id++)
        result[id] = (double)scores[id] - largest - log(sum);
    return NULL;
}

const char *cg_scores_log(const float *scores, int64_t count,
                          bool probabilities, double *log)
{
    return probabilities ? log_of_probabilities(scores, count, log)
                         : log_of_logits(scores, count, log);
}

int64_t cg_scores_greedy(const double *log, int64_t count)
{
    int64_t best = 0;

    for (int64_t id = 1; id < count; id++)
        if (log[id] > log[best])
            best = id;
    return best;
}

/* ---- Sampling ----------------------------------------------------------- */

/* Of values[0 .. count), reordered, the one that `rank` others precede from
   the largest down. */
static double select_largest(double *values, int64_t count, int64_t rank)
{
    int64_t low = 0, high = count - 1;

    while (low < high) {
        const double pivot = values[low + (high - low) / 2];
        int64_t i = low, j = high;

        while (i <= j) {
            while (values[i] > pivot)
                i++;
            while (values[j] < pivot)
                j--;
            if (i <= j) {
                const double kept = values[i];

                values[i++] = values[j];
                values[j--] = kept;
            }
        }
        if (rank <= j)
            high = j;
        else if (rank >= i)
            low = i;
        else
            break;
    }
    return values[rank];
}

/* Sets weights to 0 for all but the `top` most probable ids, else to 1. */
static void mark_top(const double *log, int64_t count, int64_t top,
                     double *weights)
{
    int64_t above = 0;
    double least;

    for (int64_t id = 0; id < count; id++)
        weights[id] = log[id];
    least = top < count && top > 0 ? select_largest(weights, count, top - 1)
                                   : -INFINITY;
    for (int64_t id = 0; id < count; id++)
        above += log[id] > least;
    for (int64_t id = 0; id < count; id++) {
        const bool tied = log[id] == least && (top == 0 || above < top);

        above += tied;
        weights[id] = log[id] > least || tied ? 1 : 0;
    }
}

int64_t cg_scores_sample(const double *log, int64_t count, double temperature,
                         int64_t top, double uniform, double *weights)
{
    const int64_t best = cg_scores_greedy(log, count);
    double sum = 0, passed = 0;
    int64_t last = best;

    if (temperature <= 0)
        return best;
    mark_top(log, count, top, weights);
    for (int64_t id = 0; id < count; id++) {
        if (weights[id] != 0)
            weights[id] = log[id] == log[best]
                              ? 1
                              : exp((log[id] - log[best]) / temperature);
        sum += weights[id];
    }
    for (int64_t id = 0; id < count; id++) {
        if (weights[id] == 0)
            continue;
        passed += weights[id];
        last = id;
        if (passed > uniform * sum)
            break;
    }
    return last;
}

/* ---- Random numbers ----------------------------------------------------- */

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

uint64_t cg_random_bits(uint64_t seed, uint64_t stream, uint64_t step)
{
    return mix((seed ^ mix(stream)) +
               (step + 1) * UINT64_C(0x9e3779b97f4a7c15));
}

double cg_random_uniform(uint64_t seed, uint64_t stream, uint64_t step)
{
    return (double)(cg_random_bits(seed, stream, step) >> 11) * 0x1p-53;
}
