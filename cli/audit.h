/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of `cellgate audit` share. */
#ifndef CELLGATE_CLI_AUDIT_H
#define CELLGATE_CLI_AUDIT_H

#include "cli/command.h"
#include "cli/extents.h"

typedef struct cli_audit_report {
    const char *model;
    cli_extents batch, steps; /* steps of 0: the model's own */
    int64_t seed;
    cellgate_audit_cell *cells; /* with texts of their own, in order of time */
    size_t count, capacity;
    cellgate_audit_result result;
    bool stopped; /* by a signal */
} cli_audit_report;

/* Keeps a copy; false: no memory. */
bool cli_audit_keep(cli_audit_report *report, const cellgate_audit_cell *cell);
void cli_audit_finish(cli_audit_report *report);

void cli_audit_print(const cli_audit_report *report);
json_t *cli_audit_json(const cli_audit_report *report);
cellgate_status cli_audit_csv(const cli_audit_report *report, const char *path,
                              cellgate_error *error);

#endif
