/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of `cellgate bench` share. */
#ifndef CELLGATE_CLI_BENCH_H
#define CELLGATE_CLI_BENCH_H

#include "cli/command.h"
#include "cli/request.h"

/* A device and a variant, and its times. */
typedef struct bench_subject {
    char device[96], variant[32];
    cellgate_session *session; /* NULL: it cannot be run, `reason` says why */
    char reason[256];
    double first;    /* seconds of the first call of all */
    double *seconds; /* host to host, a run each */
    double *compute; /* of them; zeros where the device does not say */
    int runs;
    uint32_t segments, host_segments;
} bench_subject;

typedef struct bench {
    const char *model_name;
    int64_t batch, steps;
    int warm_up, runs;
    bench_subject *subjects;
    size_t count;
} bench;

/* Median and quartiles; sorts. */
typedef struct bench_summary {
    double median, low, high, least;
} bench_summary;

void bench_summarise(double *seconds, int count, bench_summary *summary);

/* bench_report.c: the results of all subjects. */
void bench_print(const bench *of);
json_t *bench_json(const bench *of);
cellgate_status bench_csv(const bench *of, const char *path,
                          cellgate_error *error);

#endif
