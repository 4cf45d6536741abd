/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdlib.h>

#include "bench/sides.h"
#include "tests/oracle/random.h"

#define SHORTEST 10 /* row of a ragged batch */

int bench_data_init(struct bench_data *data, const struct bench_row *row,
                    uint64_t seed)
{
    const test_case c = bench_row_case(row, seed);
    random_source random = random_from(seed, 77);
    int64_t rows = row->batch * row->steps, b, t;
    const size_t bytes = (size_t)row->input * sizeof *data->x;

    memset(data, 0, sizeof *data);
    data->row = row;
    if (case_data_init(&data->cases, &c) != 0)
        return -1;
    data->x = malloc((size_t)rows * bytes);
    if (!data->x) {
        case_data_finish(&data->cases);
        return -1;
    }
    for (b = 0; b < row->batch; b++)
        for (t = 0; t < row->steps; t++)
            memcpy(data->x + (t * row->batch + b) * row->input,
                   data->cases.x + (b * row->steps + t) * row->input, bytes);
    for (b = 0; row->ragged && b < row->batch; b++)
        data->cases.lengths[b] =
            b == 0 ? (int32_t)row->steps
                   : (int32_t)random_integer(&random, SHORTEST, row->steps);
    data->y_features = row->dense ? row->dense : row->hidden * row->directions;
    data->y_count = data->y_features *
                    (row->dense && !row->on_each_step ? row->batch : rows);
    return 0;
}

void bench_data_finish(struct bench_data *data)
{
    free(data->x);
    case_data_finish(&data->cases);
}

double bench_difference(const struct bench_data *data, const float *a,
                        const float *b)
{
    const int64_t batch = data->row->batch;
    double worst = 0, largest = 0;
    int64_t i;

    for (i = 0; i < data->y_count; i++) {
        int64_t row = i / data->y_features;

        if (data->row->ragged &&
            row / batch >= data->cases.lengths[row % batch])
            continue;
        if (!isfinite(a[i]) || !isfinite(b[i]))
            return INFINITY;
        worst = fmax(worst, fabs((double)a[i] - (double)b[i]));
        largest = fmax(largest, fabs((double)b[i]));
    }
    return worst / largest;
}
