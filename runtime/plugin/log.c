/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "runtime/plugin/log.h"

#include <stdarg.h>
#include <stdio.h>

void cg_log_line(const cg_log *log, int32_t level, const char *format, ...)
{
    char text[1024];
    va_list arguments;

    if (log == NULL || log->write == NULL || level > (int32_t)log->level)
        return;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    log->write(log->context, level, text);
}

const char *cg_log_level_name(int32_t level)
{
    switch (level) {
    case CELLGATE_LOG_ERROR:
        return "error";
    case CELLGATE_LOG_WARNING:
        return "warning";
    case CELLGATE_LOG_INFO:
        return "info";
    default:
        return "debug";
    }
}

void cg_log_stderr(void *context, int32_t level, const char *text)
{
    (void)context;
    /* One call, so that lines of several threads don't mix. */
    (void)fprintf(stderr, "cellgate: %s: %s\n", cg_log_level_name(level), text);
}
