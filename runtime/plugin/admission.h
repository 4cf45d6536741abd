/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Admission: loads a plugin, negotiates, initialises it, asks for its devices
 * and writes down the verdict. This runs code of the plugin, so it runs in the
 * probe's process (probe_main.c), never in an application.
 */
#ifndef CELLGATE_RUNTIME_PLUGIN_ADMISSION_H
#define CELLGATE_RUNTIME_PLUGIN_ADMISSION_H

#include "runtime/plugin/verdict.h"

/* What is being done to the plugin, for the message if it doesn't return. */
typedef void cg_admission_progress(void *context, const char *stage,
                                   const cg_verdict *verdict);

typedef struct cg_admission {
    uint32_t thread_budget; /* what host->thread_budget() answers */
    cg_admission_progress *progress;
    void *progress_context;
} cg_admission;

/*
 * Fills *verdict, whatever happens, if the plugin lets it. Once a process: the
 * plugin stays loaded and initialised.
 */
void cg_admit(const char *path, const cg_admission *admission,
              cg_verdict *verdict);

#endif
