/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The probe's helper process: starting it with pipes of its own, seeing its
 * end, ending it.
 */
#ifndef CELLGATE_RUNTIME_PLUGIN_PROBE_CHILD_H
#define CELLGATE_RUNTIME_PLUGIN_PROBE_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "runtime/plugin/probe.h"

typedef struct cg_probe_child {
    pid_t pid;  /* leader of its own process group */
    int answer; /* our end of the pipe for answers; does not block */
    int output; /* of what the plugin prints */
    char token[CG_PROBE_TOKEN_LENGTH + 1];
    /* Known once ended; the first two of an end that nobody saw are -1. */
    bool ended;
    int exit_status; /* or -1 */
    int signal;      /* that ended it, or 0 */
} cg_probe_child;

/* 0, or an errno. */
int cg_probe_child_start(cg_probe_child *child, const char *helper,
                         uint32_t thread_budget, const char *path);

/* Whether it has ended; fills exit_status and signal then. Never waits. */
bool cg_probe_child_ended(cg_probe_child *child);

/*
 * Ends the process and all it started, takes away what is left of it, and
 * closes the pipes. A process that the kernel can't end (a hung driver) is
 * left behind after a second.
 */
void cg_probe_child_finish(cg_probe_child *child);

#endif
