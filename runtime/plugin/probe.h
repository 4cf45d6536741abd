/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Probing: what a plugin offers is found out in a helper process, so that one
 * that crashes, hangs or exits costs a line in a list and nothing else.
 *
 * The application's signals, handlers, descriptors and children are left
 * alone: it may ignore SIGCHLD or reap any child, it then costs the reason's
 * detail.
 */
#ifndef CELLGATE_RUNTIME_PLUGIN_PROBE_H
#define CELLGATE_RUNTIME_PLUGIN_PROBE_H

#include "runtime/plugin/verdict.h"

/* Between libcellgate and its helper program (probe_main.c). */
#define CG_PROBE_TOKEN_LENGTH 32
#define CG_PROBE_DONE "done"

/* How probes are made. */
typedef struct cg_prober {
    const char *helper;     /* path of cellgate-probe */
    double timeout;         /* seconds that one plugin may take */
    uint32_t thread_budget; /* what host->thread_budget() answers */
    uint32_t at_once;       /* helpers at work at the same time, at least 1 */
} cg_prober;

/*
 * The helper program: $CELLGATE_PROBE (not in a setuid program), else the
 * installed one.
 */
const char *cg_probe_helper(void);

/*
 * Probes `count` files and fills verdicts[i], the caller's to destroy; one is
 * NULL only without memory. Status INTERNAL: the probe itself could not be
 * made, which says nothing of the plugin. Takes at most about
 * timeout * count / at_once. Any thread.
 */
void cg_probe(const cg_prober *prober, const char *const *paths,
              cg_verdict **verdicts, size_t count);

#endif
