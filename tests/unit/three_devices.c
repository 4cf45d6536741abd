/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include <math.h>
#include <stdio.h>

#include "tests/unit/three_devices.h"

const int64_t three_steps[THREE_STEPS] = { 1, 8, 40 };

static cellgate_model *make_model(void)
{
    rig_model rig;
    rig_lstm first, second;

    rig_model_begin(&rig, 4);
    rig_lstm_init(&first, 4, 6);
    rig_add_lstm(&rig, rig_input(&rig, CG_UNKNOWN, 4), &first);
    rig_lstm_init(&second, 6, 5);
    rig_add_lstm(&rig, first.sequence, &second);
    rig_output(&rig, second.sequence);
    return rig_model_end(&rig);
}

static void set_costs(cellgate_session *session)
{
    static const char *const devices[][2] = { { "cpu", "t1" },
                                              { "card", "any" },
                                              { "spare", "any" } };

    for (int device = 0; device < 3; device++) {
        const cg_segment *segment = cost_rig_segment(
            session, devices[device][0], devices[device][1], 0, 2);

        for (int at = 0; at < THREE_STEPS; at++)
            for (int64_t batch = 1; batch <= 4; batch += 3)
                cost_rig_put_at(session, segment, batch, three_steps[at],
                                at == device ? 1e-5 : 4e-5);
    }
}

void three_devices_begin(three_devices *with, const char *scheduler,
                         const char *faults)
{
    char config[800];

    snprintf(config, sizeof config,
             "[cellgate]\nunlisted = no\nlog = debug\n"
             "[calibration]\nstore = /dev/null/none\n[scheduler]\n%s\n"
             "[device card]\nplugin = remote\n%s\n"
             "[device cpu]\nplugin = openmp\nthreads = 1\n"
             "[device spare]\nplugin = remote\nindex = 1\n",
             scheduler, faults);
    with->runtime = rig_runtime(config);
    with->model = make_model();
    with->session = rig_session(with->runtime, with->model, NULL, NULL);
    with->host = rig_session(with->runtime, with->model, "host", NULL);
    set_costs(with->session);
}

void three_devices_end(three_devices *with)
{
    cellgate_session_destroy(with->session);
    cellgate_session_destroy(with->host);
    cellgate_model_destroy(with->model);
    cellgate_runtime_destroy(with->runtime);
}

bool three_devices_agree(const rig_request *request, const float *wanted)
{
    const cellgate_tensor *output = &request->outputs[0];
    const int64_t count =
        output->shape[0] * output->shape[1] * output->shape[2];
    float largest = 0, off = 0;

    for (int64_t at = 0; at < count; at++) {
        const float difference =
            fabsf(((const float *)output->data)[at] - wanted[at]);

        largest = fmaxf(largest, fabsf(wanted[at]));
        off = isnan(difference) ? HUGE_VALF : fmaxf(off, difference);
    }
    return off <= 1e-5f * largest;
}
