/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <stdlib.h>

#include "bench/model_side.h"
#include "cellgate/cellgate.h"

struct subject {
    cellgate_runtime *runtime;
    cellgate_model *model;
    cellgate_session *session;
    cellgate_input input;
    cellgate_tensor output;
    cellgate_request request;
    cellgate_report report;
    float *y;
};

static void run(void *state)
{
    struct subject *subject = state;
    cellgate_error error = CELLGATE_ERROR_INIT;

    if (cellgate_run(subject->session, &subject->request, &subject->report,
                     &error) != CELLGATE_OK) {
        (void)fprintf(stderr, "run: %s\n", error.text);
        exit(EXIT_FAILURE);
    }
}

static void destroy(void *state)
{
    struct subject *subject = state;

    cellgate_session_destroy(subject->session);
    cellgate_model_destroy(subject->model);
    cellgate_runtime_destroy(subject->runtime);
    free(subject->y);
    free(subject);
}

static cellgate_status open_model(struct subject *subject, const char *config,
                                  const char *model, cellgate_error *error)
{
    const cellgate_runtime_options options = {
        .struct_size = sizeof options,
        .config_path = config,
    };
    cellgate_status status =
        cellgate_runtime_create(&options, &subject->runtime, error);

    if (status == CELLGATE_OK)
        status = cellgate_model_load(model, &subject->model, error);
    if (status == CELLGATE_OK)
        status = cellgate_session_create(subject->runtime, subject->model, NULL,
                                         &subject->session, error);
    return status;
}

/* Everything of the request but the memory of the output. */
static cellgate_status describe(struct subject *subject,
                                const struct bench_data *data,
                                cellgate_error *error)
{
    const struct bench_row *row = data->row;

    subject->input = (cellgate_input){
        .struct_size = sizeof subject->input,
        .tensor = { sizeof(cellgate_tensor),
                    CELLGATE_F32,
                    3,
                    { row->batch, row->steps, row->input },
                    data->cases.x },
        .lengths = data->cases.lengths,
    };
    subject->output.struct_size = sizeof subject->output;
    subject->request = (cellgate_request){
        .struct_size = sizeof subject->request,
        .inputs = &subject->input,
        .input_count = 1,
        .outputs = &subject->output,
        .output_count = 1,
    };
    subject->report.struct_size = sizeof subject->report;
    return cellgate_output_shape(subject->session, &subject->request, 0,
                                 &subject->output, error);
}

int bench_model(struct bench_side *side, const struct bench_data *data,
                const char *config, const char *model, char *why, size_t size)
{
    struct subject *subject = calloc(1, sizeof *subject);
    cellgate_error error = CELLGATE_ERROR_INIT;

    if (!subject)
        return -1;
    subject->y = calloc((size_t)data->y_count, sizeof *subject->y);
    if (open_model(subject, config, model, &error) != CELLGATE_OK ||
        describe(subject, data, &error) != CELLGATE_OK || !subject->y) {
        (void)snprintf(why, size, "%s", error.text);
        destroy(subject);
        return -1;
    }
    subject->output.data = subject->y;
    *side = (struct bench_side){
        subject, run, destroy, subject->y, "", true, CELLGATE_NUMERIC_F32
    };
    run(subject);
    (void)snprintf(side->name, sizeof side->name, "%.15s",
                   subject->report.variant);
    return 0;
}
