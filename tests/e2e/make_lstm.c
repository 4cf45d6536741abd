/* SPDX-License-Identifier: Apache-2.0 */
/* make_lstm FILE INPUT HIDDEN: writes an LSTM of that size over any number of
   steps, whose last output goes through Dense(1), with made-up weights, as a
   native file. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/session_rig.h"

static cellgate_model *make(int64_t input, int64_t hidden)
{
    rig_model rig;
    rig_lstm lstm;
    int32_t x;

    rig_model_begin(&rig, 11);
    x = rig_input(&rig, CG_UNKNOWN, input);
    rig_lstm_init(&lstm, input, hidden);
    rig_add_lstm(&rig, x, &lstm);
    rig_output(&rig, rig_dense(&rig, lstm.last, hidden, 1, CELLGATE_LINEAR));
    return rig_model_end(&rig);
}

int main(int argc, char **argv)
{
    cellgate_error error = CELLGATE_ERROR_INIT;
    cellgate_model *model;
    cellgate_status status;

    if (argc != 4) {
        fprintf(stderr, "usage: make_lstm FILE INPUT HIDDEN\n");
        return 2;
    }
    model = make(strtol(argv[2], NULL, 10), strtol(argv[3], NULL, 10));
    status = cellgate_model_save(model, argv[1], &error);
    cellgate_model_destroy(model);
    if (status == CELLGATE_OK)
        return 0;
    fprintf(stderr, "make_lstm: %s\n", error.text);
    return 1;
}
