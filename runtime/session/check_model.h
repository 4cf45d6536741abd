/* SPDX-License-Identifier: Apache-2.0 */
/* The model that a device is checked with: what every plugin has to take. */
#ifndef CELLGATE_RUNTIME_SESSION_CHECK_MODEL_H
#define CELLGATE_RUNTIME_SESSION_CHECK_MODEL_H

#include "runtime/model/model.h"

/* One LSTM of 7 over 5 features, with a mask, made-up weights and its sequence
   as the output; node 0. The caller destroys it. NO_MEMORY. */
cellgate_status cg_check_model_create(cellgate_model **model,
                                      cellgate_error *error);

#endif
