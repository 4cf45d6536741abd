/* SPDX-License-Identifier: Apache-2.0 */
/* Comma-separated values. */
#ifndef CELLGATE_CLI_CSV_H
#define CELLGATE_CLI_CSV_H

#include <stdio.h>

/* A text as RFC 4180 has it: in quotes, with its own ones doubled. */
void cli_csv_field(FILE *to, const char *text);

#endif
