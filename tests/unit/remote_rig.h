/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Drives the remote stand-in through its ABI table, as a core would, with a
 * host whose settings and log belong to the test.
 */
#ifndef REMOTE_RIG_H
#define REMOTE_RIG_H

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cellgate/plugin.h"

/* The sizes of the rig's model and the most that a call holds. */
enum {
    RIG_INPUT = 3,
    RIG_HIDDEN = 5,
    RIG_UNITS = 2,
    RIG_BATCH = 4,
    RIG_STEPS = 6
};

struct rig {
    const cellgate_plugin *plugin;
    cellgate_host host;
    const char *const *settings; /* key, value, ..., NULL */
    cellgate_instance *instance;
    cellgate_device *device;
    pthread_mutex_t log_lock;
    char log[4096]; /* lines of level ERROR */
};

/* A host alone: what the plugin's own parts need to be tested. */
void rig_host_init(struct rig *rig, const char *const *settings);
/* The plugin, and device 0 open with these settings. */
void rig_open(struct rig *rig, const char *const *settings);
/* Closes; expects no device memory in use before. */
void rig_close(struct rig *rig);
/* Whether an error line says so. */
bool rig_logged(struct rig *rig, const char *text);

/*
 * LSTM -> Dense: all four outputs from a lone LSTM; with a Dense behind it, the
 * LSTM passes its sequence on and gives H and C.
 */
struct rig_model {
    cellgate_lstm lstm;
    cellgate_dense dense;
    const cellgate_op *ops[2];
    cellgate_segment segment;
    float kernel[RIG_INPUT * 4 * RIG_HIDDEN];
    float recurrent_kernel[RIG_HIDDEN * 4 * RIG_HIDDEN];
    float bias[4 * RIG_HIDDEN];
    float dense_kernel[RIG_HIDDEN * RIG_UNITS];
};

void rig_model_init(struct rig_model *model, bool with_dense);

/* Buffers of one run. */
struct rig_call {
    float x[RIG_BATCH * RIG_STEPS * RIG_INPUT];
    float y[RIG_BATCH * RIG_STEPS * RIG_HIDDEN];
    float last[RIG_BATCH * RIG_HIDDEN];
    float h0[RIG_BATCH * RIG_HIDDEN], c0[RIG_BATCH * RIG_HIDDEN];
    float h[RIG_BATCH * RIG_HIDDEN], c[RIG_BATCH * RIG_HIDDEN];
    cellgate_lstm_state states[2];
    cellgate_segment_run run;
};

/* A run of the model over made-up input, from zero state. */
void rig_call_init(struct rig_call *call, const struct rig_model *model,
                   int64_t batch, int64_t steps);

/* The id of the variant of this name, and its pack. */
uint64_t rig_variant(struct rig *rig, const struct rig_model *model,
                     const char *name, uint32_t *pack);

/* Weights and a plan of a named variant; expects both to succeed. */
struct rig_plan {
    cellgate_weights *weights;
    cellgate_plan *plan;
};

void rig_plan_make(struct rig *rig, const struct rig_model *model,
                   const char *variant, int64_t batch, int64_t steps,
                   struct rig_plan *made);
void rig_plan_free(struct rig *rig, struct rig_plan *made);

/* Status of a run, its error in *error unless NULL. */
cellgate_status rig_run(struct rig *rig, const struct rig_plan *plan,
                        struct rig_call *call, cellgate_error *error);

#endif
