/* SPDX-License-Identifier: Apache-2.0 */
#include "config.h"

#include "cli/csv.h"

void cli_csv_field(FILE *to, const char *text)
{
    fputc('"', to);
    for (; *text != '\0'; text++) {
        if (*text == '"')
            fputc('"', to);
        fputc(*text, to);
    }
    fputc('"', to);
}
