/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sides.h: what is compared. Both sides get the same data, time-major (which
 * is oneDNN's own order), and give the same result, [steps][batch][features]
 * or [batch][features].
 */
#ifndef BENCH_SIDES_H
#define BENCH_SIDES_H

#include "bench/rows.h"
#include "tests/conformance/case_data.h"
#include "tests/conformance/plugin_file.h"

/* One row's data. */
struct bench_data {
    const struct bench_row *row;
    case_data cases;
    float *x;           /* [steps][batch][input] */
    int64_t y_features; /* of a row of the result */
    int64_t y_count;    /* elements of the result */
};

int bench_data_init(struct bench_data *data, const struct bench_row *row,
                    uint64_t seed);
void bench_data_finish(struct bench_data *data);

/*
 * Largest difference of two results, against the largest magnitude of `b`. Of
 * a ragged batch it sees what is valid: a side may go on where a row has ended.
 */
double bench_difference(const struct bench_data *data, const float *a,
                        const float *b);

/* Something that computes a row, again and again. */
struct bench_side {
    void *state;
    void (*run)(void *state);
    void (*destroy)(void *state);
    float *y;         /* the result of the last run; the side's */
    char name[32];    /* of the variant */
    bool batch_major; /* the order of `y`, or else time-major */
    int32_t numeric;  /* a cellgate_numeric: what it computes with */
};

/*
 * One variant of the plugin; -1 with a sentence in `why`, 1 where `variant` is
 * past the last one.
 */
int bench_cellgate(struct bench_side *side, const struct bench_data *data,
                   plugin_file *plugin, cellgate_device *device,
                   uint32_t variant, char *why, size_t size);

/* oneDNN with this many threads; -1 with a sentence in `why`. */
int bench_onednn(struct bench_side *side, const struct bench_data *data,
                 int threads, char *why, size_t size);

/* "oneDNN 2.6.3", or why there is none. */
const char *bench_onednn_version(void);

#endif /* BENCH_SIDES_H */
