/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Log lines of the core and of the plugins, on their way to the application.
 */
#ifndef CELLGATE_RUNTIME_PLUGIN_LOG_H
#define CELLGATE_RUNTIME_PLUGIN_LOG_H

#include "cellgate/plugin.h"

/* Where log lines go. */
typedef struct cg_log {
    /* May be called from any thread. NULL: nowhere. */
    void (*write)(void *context, int32_t level, const char *text);
    void *context;
    cellgate_log_level level; /* lines less severe than this are dropped */
} cg_log;

/* `log` NULL: nowhere. Lines longer than about 1000 bytes are cut. */
CELLGATE_PRINTF_LIKE(3, 4)
void cg_log_line(const cg_log *log, int32_t level, const char *format, ...);

/* A sink for cg_log.write: "cellgate: LEVEL: text" on stderr. */
void cg_log_stderr(void *context, int32_t level, const char *text);

/* "error", "warning", "info" or "debug". */
const char *cg_log_level_name(int32_t level);

#endif
