/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `cellgate generate` share. */
#ifndef CELLGATE_CLI_GENERATE_H
#define CELLGATE_CLI_GENERATE_H

#include <jansson.h>

#include "cellgate/cellgate.h"
#include "cli/source.h"

/* ---- generate_inputs.c: what the request brings ------------------------- */

typedef struct cli_brought {
    cellgate_input *inputs; /* [count] */
    size_t count;
    cellgate_input prompt; /* data NULL: none */
    cli_source *sources;   /* what they point into */
    size_t source_count;
    int32_t **lengths; /* [count + 1], the prompt's last */
} cli_brought;

/* Lists are NULL-terminated, or NULL: [NAME=]FILE[:ARRAY] each. */
cellgate_status cli_brought_init(cli_brought *brought,
                                 const cellgate_generator *generator,
                                 char *const *inputs, char *const *lengths,
                                 const char *prompt, const char *prompt_lengths,
                                 cellgate_error *error);
void cli_brought_finish(cli_brought *brought);

/* ---- words.c: a word for each id ---------------------------------------- */

typedef struct cli_words {
    char *text;   /* the whole file */
    char **words; /* [count] */
    size_t count;
} cli_words;

/* One word a line, in the order of the ids. */
cellgate_status cli_words_read(cli_words *words, const char *path,
                               cellgate_error *error);
void cli_words_finish(cli_words *words);
/* The words of ids, separated by spaces; malloc'ed, NULL without memory. An id
   beyond the file is its number in angle brackets. */
char *cli_words_join(const cli_words *words, const int32_t *ids,
                     int64_t length);

/* ---- generate_results.c ------------------------------------------------- */

/* int32 [rows][longest], or [rows][results][longest] for several results;
   -1 behind the end of each. */
cellgate_status cli_results_write(const cellgate_generation *generation,
                                  int64_t results, const char *path,
                                  cellgate_error *error);
/* `words` may be NULL. */
void cli_results_print(const cellgate_generation *generation,
                       const cli_words *words);
json_t *cli_results_json(const cellgate_generation *generation,
                         const cli_words *words);

#endif
