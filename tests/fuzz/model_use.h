/* SPDX-License-Identifier: Apache-2.0 */
/* What is done with a model file that may be anything. */
#ifndef CELLGATE_TESTS_FUZZ_MODEL_USE_H
#define CELLGATE_TESTS_FUZZ_MODEL_USE_H

#include "cellgate/cellgate.h"

/*
 * Loads it; what loads is described, saved as a native file that loads as the
 * same model, and, if it is small, run on the host.
 */
void fuzz_load_model(const char *path);
/* The same with a model that is there. */
void fuzz_use_model(const cellgate_model *model);

#endif
