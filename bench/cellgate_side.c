/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "bench/sides.h"

struct subject {
    const cellgate_plugin *plugin;
    cellgate_weights *weights;
    cellgate_plan *plan;
    cellgate_segment_run run;
    cellgate_lstm_state states[CASE_MAX_OPS];
    float *y;
};

static void run(void *state)
{
    struct subject *subject = state;
    cellgate_error error = CELLGATE_ERROR_INIT;

    if (subject->plugin->run(subject->plan, &subject->run, &error) !=
        CELLGATE_OK) {
        (void)fprintf(stderr, "run: %s\n", error.text);
        exit(EXIT_FAILURE);
    }
}

static void destroy(void *state)
{
    struct subject *subject = state;

    if (subject->plan)
        subject->plugin->plan_destroy(subject->plan);
    if (subject->weights)
        subject->plugin->weights_free(subject->weights);
    free(subject->y);
    free(subject);
}

static void describe_run(struct subject *subject, const struct bench_data *data)
{
    const struct bench_row *row = data->row;
    const bool rows = row->dense && !row->on_each_step;
    cellgate_segment_run *r = &subject->run;

    r->struct_size = sizeof *r;
    r->batch = row->batch;
    r->steps = row->steps;
    r->x = (cellgate_sequence){ data->x, row->input, row->batch * row->input,
                                CELLGATE_F32, 0 };
    r->lengths = data->cases.lengths;
    if (rows)
        r->y_last = (cellgate_sequence){ subject->y, data->y_features, 0,
                                         CELLGATE_F32, 0 };
    else
        r->y = (cellgate_sequence){ subject->y, data->y_features,
                                    row->batch * data->y_features, CELLGATE_F32,
                                    0 };
    r->states = subject->states;
}

int bench_cellgate(struct bench_side *side, const struct bench_data *data,
                   plugin_file *plugin, cellgate_device *device, uint32_t index,
                   char *why, size_t size)
{
    const cellgate_shape shape = { sizeof shape, data->row->batch,
                                   data->row->steps };
    const cellgate_plugin *table = &plugin->table;
    cellgate_variant variant = { .struct_size = sizeof variant };
    cellgate_error error = CELLGATE_ERROR_INIT;
    struct subject *subject = calloc(1, sizeof *subject);
    cellgate_status status;

    if (!subject)
        return -1;
    subject->plugin = table;
    subject->y = calloc((size_t)data->y_count, sizeof *subject->y);
    status = table->support(device, &data->cases.structure, &shape, index,
                            &variant, &error);
    if (status == CELLGATE_OK)
        status = table->prepare(device, &data->cases.segment, variant.pack,
                                &subject->weights, &error);
    if (status == CELLGATE_OK)
        status = table->plan_create(device, subject->weights, variant.id,
                                    &shape, &subject->plan, &error);
    if (status != CELLGATE_OK || !subject->y) {
        (void)snprintf(why, size, "%s",
                       status == CELLGATE_END ? "no such variant" : error.text);
        destroy(subject);
        return status == CELLGATE_END ? 1 : -1;
    }
    describe_run(subject, data);
    *side = (struct bench_side){ subject, run,   destroy,        subject->y,
                                 "",      false, variant.numeric };
    (void)snprintf(side->name, sizeof side->name, "%s", variant.name);
    return 0;
}
