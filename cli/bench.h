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
    char note[160]; /* why it is not the device's fastest way, or "" */
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

/* All that a bench holds. */
typedef struct bench_state {
    bench of;
    cellgate_runtime *runtime;
    cellgate_model *model;
    cellgate_input *inputs;
    cellgate_tensor *outputs;
    cellgate_request request;
} bench_state;

/* bench_request.c: made-up numbers in the inputs. */
cellgate_status bench_make_request(bench_state *state, cellgate_error *error);
/* Memory for the outputs, once there is a session to ask for their shapes. */
cellgate_status bench_make_outputs(bench_state *state,
                                   const cellgate_session *session,
                                   cellgate_error *error);

/* bench_subjects.c: all of that device, or of every one (NULL). */
cellgate_status bench_add_subjects(bench_state *state, const char *device,
                                   cellgate_error *error);

/* Median and quartiles; sorts. */
typedef struct bench_summary {
    double median, low, high, least;
} bench_summary;

/* The summary of a subject that was timed, else false; *computes: its device
   says how long it computed. */
bool bench_summarise(const bench_subject *of, bench_summary *all,
                     bench_summary *compute, bool *computes);

/* bench_report.c: the results of all subjects. */
void bench_print(const bench *of);
json_t *bench_json(const bench *of);
cellgate_status bench_csv(const bench *of, const char *path,
                          cellgate_error *error);

/* bench_plot.c: draws them with gnuplot; as cli_gnuplot(). */
cellgate_status bench_plot(const bench *of, const char *path,
                           cellgate_error *error);

#endif
